# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks with a width and with places for the layers that are compared.

All take images [N, 1, 32, 32] and give logits [N, classes].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.nn import functional

from ._layers import Layer


def _pointwise(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)


SIZES = (16, 8, 4)
"""Rows of the images of the stages, which the replaced layers see."""


class ResidualBlock(nn.Module):
    """relu(norm(second(relu(norm(first(x))))) + shortcut(x)).

    With stride 2 `first` is no replaced layer: a 3x3 convolution, or with `pooled` a 1x1 convolution of means of 2x2
    pixels, which see no neighbours across blocks.
    """

    def __init__(self, inputs: int, outputs: int, size: int, layer: Layer, stride: int, pooled: bool):
        super().__init__()
        self.pool = nn.AvgPool2d(2) if pooled and stride == 2 else nn.Identity()
        if stride == 1:
            self.first = layer(outputs, size)
        elif pooled:
            self.first = _pointwise(inputs, outputs)
        else:
            self.first = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.second = layer(outputs, size)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride == 2:
            self.shortcut = _pointwise(inputs, outputs, 1 if pooled else 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(x)
        y = self.norm2(self.second(functional.relu(self.norm1(self.first(x)))))
        return functional.relu(y + self.shortcut(x))


class ResNet8(nn.Module):
    """Stem 3x3 of stride 2, stages of w, 2w and 4w channels at 16x16, 8x8 and 4x4 with a residual block each.

    The shape of MLPerf Tiny's ResNet-8 (Banbury et al., 2021) with a stem of stride 2. Four layers are replaced.
    """

    def __init__(self, width: int, layer: Layer, pooled: bool = False, classes: int = 10):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.stage1 = ResidualBlock(width, width, 16, layer, 1, pooled)
        self.stage2 = ResidualBlock(width, 2 * width, 8, layer, 2, pooled)
        self.stage3 = ResidualBlock(2 * width, 4 * width, 4, layer, 2, pooled)
        self.head = nn.Linear(4 * width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.norm(self.stem(x)))
        x = self.stage3(self.stage2(self.stage1(x)))
        logits: torch.Tensor = self.head(x.mean((2, 3)))
        return logits


class InvertedResidual(nn.Module):
    """x + project(relu(norm(layer(relu(norm(expand(x))))))), normalized; `layer` is the one that is replaced."""

    def __init__(self, channels: int, size: int, layer: Layer, expansion: int = 2):
        super().__init__()
        hidden = expansion * channels
        self.expand, self.norm1 = _pointwise(channels, hidden), nn.BatchNorm2d(hidden)
        self.layer, self.norm2 = layer(hidden, size), nn.BatchNorm2d(hidden)
        self.project, self.norm3 = _pointwise(hidden, channels), nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu6(self.norm1(self.expand(x)))
        y = functional.relu6(self.norm2(self.layer(y)))
        result: torch.Tensor = x + self.norm3(self.project(y))
        return result


class ConvNeXtBlock(nn.Module):
    """x + contract(gelu(expand(norm(layer(x))))): the block of Liu et al., CVPR 2022, section 2.6.

    With a batch norm, which is free after training, in place of the layer norm, and an expansion of 2 in place of 4.
    """

    def __init__(self, channels: int, size: int, layer: Layer, expansion: int = 2):
        super().__init__()
        self.layer, self.norm = layer(channels, size), nn.BatchNorm2d(channels)
        self.expand = nn.Conv2d(channels, expansion * channels, 1)
        self.contract = nn.Conv2d(expansion * channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.gelu(self.expand(self.norm(self.layer(x))))
        result: torch.Tensor = x + self.contract(y)
        return result


class Staged(nn.Module):
    """Stem 3x3 of stride 2, then stages of w, 2w and 4w channels with so many blocks each.

    Between them are means of 2x2 pixels and a 1x1 convolution with a normalization.
    """

    def __init__(
        self,
        width: int,
        layer: Layer,
        block: Callable[[int, int, Layer], nn.Module],
        blocks: tuple[int, int, int] = (2, 2, 2),
        classes: int = 10,
    ):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(1, width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(width)
        stages: list[nn.Module] = []
        for stage, count in enumerate(blocks):
            channels, size = width << stage, 16 >> stage
            if stage:
                stages += [nn.AvgPool2d(2), _pointwise(channels // 2, channels), nn.BatchNorm2d(channels)]
            stages += [block(channels, size, layer) for _ in range(count)]
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(4 * width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stages(functional.relu(self.norm(self.stem(x))))
        logits: torch.Tensor = self.head(x.mean((2, 3)))
        return logits


NETWORKS: Mapping[str, Callable[[int, Layer], nn.Module]] = {
    "pooled": lambda width, layer: ResNet8(width, layer, pooled=True),
    "resnet8": lambda width, layer: ResNet8(width, layer),
    "mobilenet": lambda width, layer: Staged(width, layer, InvertedResidual),
    "convnext": lambda width, layer: Staged(width, layer, ConvNeXtBlock, (1, 1, 2)),
}
"""By name, of a width and of what makes the replaced layers. In all but `resnet8` the stem and these layers alone see
neighbours."""
