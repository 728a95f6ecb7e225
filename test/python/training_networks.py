# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole networks for the tests of training steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


class BasicBlock(nn.Module):
    """The block of He et al., "Deep Residual Learning", CVPR 2016: two 3x3 convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv0 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm0 = nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm0(self.conv0(x)))
        return torch.relu(self.norm1(self.conv1(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """A residual network for small images."""

    def __init__(self, widths: Sequence[int], blocks: int, classes: int = 10):
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
        inputs = widths[0]
        for stage, width in enumerate(widths):
            for block in range(blocks):
                layers.append(BasicBlock(inputs, width, 2 if stage > 0 and block == 0 else 1))
                inputs = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).mean((2, 3)))


def resnet8() -> nn.Module:
    return ResNet((16, 32, 64), 1)


def resnet18() -> nn.Module:
    """ResNet-18 as it is used for CIFAR: a 3x3 stem of stride 1, no pool."""
    return ResNet((64, 128, 256, 512), 2)


class InvertedResidual(nn.Module):
    """The block of Sandler et al., "MobileNetV2", CVPR 2018."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int):
        super().__init__()
        hidden = inputs * expansion
        self.is_residual = stride == 1 and inputs == outputs
        expand = [nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()]
        self.layers = nn.Sequential(
            *(expand if expansion > 1 else []),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.is_residual else self.layers(x)


def mobilenet_v2() -> nn.Module:
    """MobileNetV2 with a quarter of the channels and as many kinds of blocks, for small images."""
    blocks = [
        InvertedResidual(inputs, outputs, stride, expansion)
        for inputs, outputs, stride, expansion in (
            (8, 4, 1, 1),
            (4, 6, 1, 6),
            (6, 6, 1, 6),
            (6, 8, 2, 6),
            (8, 8, 1, 6),
            (8, 16, 2, 6),
            (16, 16, 1, 6),
        )
    ]
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU6(),
        *blocks,
        nn.Conv2d(16, 64, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU6(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


class TokenTransformer(nn.Module):
    """Two layers of a Transformer with GELU on numbers of tokens, which it classifies."""

    VOCABULARY, LENGTH = 37, 12

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.tokens = nn.Embedding(self.VOCABULARY, 16)
        self.places = nn.Parameter(torch.randn(self.LENGTH, 16) * 0.1)
        self.layers = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(
                    16, 2, 32, dropout=dropout, activation="gelu", batch_first=True, norm_first=index > 0
                )
                for index in range(2)
            )
        )
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.layers(self.tokens(tokens) + self.places)).mean(1))
