# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small networks that the tests of several doors compile."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Images(nn.Module):
    """Images `[N, 3, H, W]` to five scores: convolutions, one of them depthwise with a residual, and a batch norm."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.norm(self.first(x))), 2)
        return self.head((x + functional.gelu(self.depthwise(x))).mean((2, 3)))


class WeightsInBytes(nn.Module):
    """The weights of a convolution and a linear layer as PyTorch's PT2E flow keeps them: bytes, a step per channel."""

    def __init__(self):
        super().__init__()
        for name, shape in (("first", (8, 3, 3, 3)), ("second", (5, 8))):
            weight = torch.randn(shape)
            scale = weight.abs().amax(tuple(range(1, weight.ndim))) / 127
            rounded = (weight / scale.view(-1, *[1] * (weight.ndim - 1))).round().to(torch.int8)
            self.register_buffer(f"{name}_scale", scale)
            self.register_buffer(f"{name}_zero_point", torch.zeros(len(scale), dtype=torch.int64))
            self.register_buffer(f"{name}_weight", rounded)

    def weigh(self, name, least):
        """The weight of a layer in f32; `least` is the least byte."""
        parts = [getattr(self, f"{name}_{part}") for part in ("weight", "scale", "zero_point")]
        return torch.ops.quantized_decomposed.dequantize_per_channel.default(*parts, 0, least, 127, torch.int8)
