# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The images of the second task; `kas.evaluate.load_data` calls this file by its name."""

import torch
from torch.nn import functional

from kas.evaluate import Data, load_data


def moved_mnist(train: int = 3000, seed: int = 0) -> Data:
    """5000 images of MNIST, 1x32x32: each digit lies once at a place of its own, up to four pixels from the middle."""
    data = load_data("mnist-5000", train=train, validation=1000, test=1000, seed=seed)
    generator = torch.Generator().manual_seed(seed)

    def move(split: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        images, classes = split
        padded = functional.pad(images, (6,) * 4, value=float(images.min()))
        places = torch.randint(0, 9, (len(images), 2), generator=generator).tolist()
        moved = [image[:, top : top + 32, left : left + 32] for image, (top, left) in zip(padded, places)]
        return torch.stack(moved), classes

    parts = [move(split) for split in (data.train, data.validation, data.test)]
    return Data("moved-mnist", parts[0], parts[1], parts[2], 10)
