# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The residual networks that trainings are compared on."""

import torch
from torch import nn


def make_layer(kind: str, inputs: int, outputs: int, stride: int) -> nn.Module:
    if kind == "separable":
        return nn.Sequential(
            nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
            nn.Conv2d(inputs, outputs, 1, bias=False),
        )
    return nn.Conv2d(inputs, outputs, 3, stride, 1, groups=4 if kind == "groups" else 1, bias=False)


class Block(nn.Module):
    """Two layers of 3x3 and what comes past them."""

    def __init__(self, kind: str, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.layer0 = make_layer(kind, inputs, outputs, stride)
        self.norm0 = nn.BatchNorm2d(outputs)
        self.layer1 = make_layer(kind, outputs, outputs, 1)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.short = nn.Identity()
        if inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(self.layer1(torch.relu(self.norm0(self.layer0(x)))))
        return torch.relu(y + self.short(x))


def make_residual(kind: str, width: int, blocks: list[int], inputs: int = 3) -> nn.Module:
    """`blocks` of each stage, with twice the channels from stage to stage; images of `inputs` channels, ten classes."""
    layers: list[nn.Module] = [nn.Conv2d(inputs, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    channels = width
    for stage, count in enumerate(blocks):
        for number in range(count):
            stride = 2 if stage > 0 and number == 0 else 1
            layers.append(Block(kind, channels, width << stage, stride))
            channels = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))
