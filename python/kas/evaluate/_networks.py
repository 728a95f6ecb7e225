# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small networks to try searches on."""

from __future__ import annotations

from .._errors import need

need("torch", "torch")

import torch
from torch import nn
from torch.nn import functional


class _Block(nn.Module):
    """relu(x + norm(conv(x)))."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(x + self.norm(self.conv(x)))


class DigitsNetwork(nn.Module):
    """A residual network of 3x3 convolutions, four by default, for images [1, 10, 10].

    A stem of 1x1, `blocks` blocks of `channels` channels at 10x10, a pooling, and as many of twice the channels at 5x5.

    The convolutions have 98 % of its FLOPs. All that sees neighbours is in them: what takes their place has to.
    """

    def __init__(self, channels: int = 16, blocks: int = 2, num_classes: int = 10):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 1, bias=False)
        self.stem_norm = nn.BatchNorm2d(channels)
        self.stage0 = nn.Sequential(*(_Block(channels) for _ in range(blocks)))
        self.widen = nn.Conv2d(channels, 2 * channels, 1, bias=False)
        self.widen_norm = nn.BatchNorm2d(2 * channels)
        self.stage1 = nn.Sequential(*(_Block(2 * channels) for _ in range(blocks)))
        self.classify = nn.Linear(2 * channels, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits [examples, classes] of images [examples, 1, 10, 10]."""
        x = self.stage0(functional.relu(self.stem_norm(self.stem(x))))
        x = functional.relu(self.widen_norm(self.widen(functional.avg_pool2d(x, 2))))
        output: torch.Tensor = self.classify(self.stage1(x).mean((2, 3)))
        return output
