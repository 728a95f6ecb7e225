# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fashion-MNIST, and the network that is trained on it."""

import gzip
from pathlib import Path

import numpy
import torch
from torch import nn

from .residual import make_residual

FOLDER = Path("/usr/share/datasets/fashion-mnist")


def make_network(seed: int) -> nn.Module:
    """ResNet-8 for its images, with the parameters of a seed."""
    torch.manual_seed(seed)
    return make_residual("dense", 16, [1, 1, 1], inputs=1)


def read_part(part: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The images (0 to 1) and labels of `train` or `t10k`."""
    images = gzip.decompress((FOLDER / f"{part}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((FOLDER / f"{part}-labels-idx1-ubyte.gz").read_bytes())
    pixels = numpy.frombuffer(images, numpy.uint8, offset=16).reshape(-1, 1, 28, 28)
    classes = numpy.frombuffer(labels, numpy.uint8, offset=8)
    return torch.from_numpy(pixels.astype(numpy.float32) / 255), torch.from_numpy(classes.astype(numpy.int64))
