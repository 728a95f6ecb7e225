# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replacements of the layers of a network: layers made by hand, and operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

Layer = Callable[[int, int], nn.Module]
"""Makes a layer [N, C, H, H] -> [N, C, H, H] of C and H."""


def _convolution(inputs: int, outputs: int, kernel: tuple[int, int] = (3, 3), groups: int = 1) -> nn.Conv2d:
    padding = kernel[0] // 2, kernel[1] // 2
    return nn.Conv2d(inputs, outputs, kernel, padding=padding, groups=groups, bias=False)


def _pointwise(inputs: int, outputs: int) -> nn.Conv2d:
    return _convolution(inputs, outputs, (1, 1))


def _rectified(channels: int) -> nn.Module:
    return nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU())


class Shuffle(nn.Module):
    """Channel g*C/G+c goes to c*G+g: Zhang et al., "ShuffleNet", CVPR 2018, section 3.1."""

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = x.shape
        return x.reshape(batch, self.groups, channels // self.groups, height, width).transpose(1, 2).flatten(1, 2)


class Shift(nn.Module):
    """Channel c is shifted by one of nine steps, (c mod 9) // 3 - 1 and c mod 3 - 1, zeros move in.

    Wu et al., "Shift: A Zero FLOP, Zero Parameter Alternative to Spatial Convolutions", CVPR 2018.
    """

    kernel: torch.Tensor

    def __init__(self, channels: int):
        super().__init__()
        kernel = torch.zeros(channels, 1, 3, 3)
        for channel in range(channels):
            kernel[channel, 0, channel % 9 // 3, channel % 3] = 1
        self.register_buffer("kernel", kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.conv2d(x, self.kernel, padding=1, groups=len(self.kernel))


class Slabs(nn.Module):
    """Slabs of rows, each zero-padded by itself and convolved by weights of its own."""

    def __init__(self, channels: int, slabs: int):
        super().__init__()
        self.parts = nn.ModuleList(_convolution(channels, channels) for _ in range(slabs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        slabs = x.chunk(len(self.parts), 2)  # By numbers: what traces networks cannot iterate over them.
        return torch.cat([part(slabs[number]) for number, part in enumerate(self.parts)], 2)


class Concatenated(nn.Module):
    """Channels of the output in two parts; the second part sees the input from channel `skip` on."""

    def __init__(self, first: nn.Module, second: nn.Module, skip: int = 0):
        super().__init__()
        self.first, self.second, self.skip = first, second, skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.first(x), self.second(x[:, self.skip :] if self.skip else x)], 1)


def _bottleneck(channels: int, ratio: int, rectified: bool) -> nn.Module:
    inner = channels // ratio
    first, second, third = _pointwise(channels, inner), _convolution(inner, inner), _pointwise(inner, channels)
    if rectified:
        return nn.Sequential(first, _rectified(inner), second, _rectified(inner), third)
    return nn.Sequential(first, second, third)


def _low_rank(channels: int, ratio: int, rectified: bool) -> nn.Module:
    inner = channels // ratio
    between = [_rectified(inner)] if rectified else []
    return nn.Sequential(_convolution(channels, inner), *between, _pointwise(inner, channels))


def _depthwise(channels: int, rectified: bool) -> nn.Module:
    between = [_rectified(channels)] if rectified else []
    return nn.Sequential(_convolution(channels, channels, groups=channels), *between, _pointwise(channels, channels))


def _multiplied(channels: int, multiplier: int) -> nn.Module:
    inner = multiplier * channels
    window = _convolution(channels, inner, groups=channels)
    return nn.Sequential(window, _rectified(inner), _pointwise(inner, channels))


def _pointwise_depthwise(channels: int) -> nn.Module:
    window = _convolution(channels, channels, groups=channels)
    return nn.Sequential(_pointwise(channels, channels), _rectified(channels), window)


def _grouped(channels: int, groups: int) -> nn.Module:
    return nn.Sequential(_convolution(channels, channels, groups=groups), Shuffle(groups))


def _sequence2(channels: int) -> nn.Module:
    half = channels // 2
    return Concatenated(_convolution(channels, half), _convolution(half, half, groups=4), half)


def _sequence3(channels: int) -> nn.Module:
    half = channels // 2
    return Concatenated(_convolution(channels, half, groups=2), _convolution(channels, half, groups=4))


LAYERS: Mapping[str, Layer] = {
    "dense": lambda c, h: _convolution(c, c),
    "pointwise": lambda c, h: _pointwise(c, c),
    "depthwise-separable": lambda c, h: _depthwise(c, False),
    "depthwise-separable-relu": lambda c, h: _depthwise(c, True),
    "depthwise": lambda c, h: _convolution(c, c, groups=c),
    "depthwise-2-separable-relu": lambda c, h: _multiplied(c, 2),
    "depthwise-4-separable-relu": lambda c, h: _multiplied(c, 4),
    "pointwise-depthwise-relu": lambda c, h: _pointwise_depthwise(c),
    "grouped-4-shuffle": lambda c, h: _grouped(c, 4),
    "grouped-8-shuffle": lambda c, h: _grouped(c, 8),
    "bottleneck-2": lambda c, h: _bottleneck(c, 2, False),
    "bottleneck-2-relu": lambda c, h: _bottleneck(c, 2, True),
    "bottleneck-4": lambda c, h: _bottleneck(c, 4, False),
    "bottleneck-4-relu": lambda c, h: _bottleneck(c, 4, True),
    "low-rank-2": lambda c, h: _low_rank(c, 2, False),
    "low-rank-4": lambda c, h: _low_rank(c, 4, False),
    "low-rank-4-relu": lambda c, h: _low_rank(c, 4, True),
    "spatially-separable": lambda c, h: nn.Sequential(_convolution(c, c, (3, 1)), _convolution(c, c, (1, 3))),
    "shift-pointwise": lambda c, h: nn.Sequential(Shift(c), _pointwise(c, c)),
    "nas-pte-1": lambda c, h: Slabs(c, 2),
    "nas-pte-2": lambda c, h: _sequence2(c),
    "nas-pte-3": lambda c, h: _sequence3(c),
}
"""By name; `pointwise` sees no neighbours, it is the control."""

_SEPARABLE = """
kas.operator @depthwise<N, Cin, H, W | k>(%n: N, %o: Cin, %h: H, %w: W) from [N, Cin, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %o_d, %o_w = kas.share %o : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %h, %i_d : H, k
  %y = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %o_d, %x, %y) weight(%o_w, %i_w, %j_w)
}
kas.operator @pointwise<N, Cin, Cout, H, W>(%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.sequence @separable [@depthwise, @pointwise] between [STEP]
"""

SEQUENCES: Mapping[str, str] = {
    "depthwise-separable": _SEPARABLE.replace("STEP", "none"),
    "depthwise-separable-relu": _SEPARABLE.replace("STEP", "normalize_relu"),
}
"""Layers made by hand as the sequences that a search would find, which are compiled in another way."""

OPERATORS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "syno-operator-1": ("syno_operator1", {"k": 3, "g": 4, "s": 2}),
    "syno-operator-2": ("syno_operator2", {"k": 3, "g": 4, "s": 2}),
    "kernel-07923": ("kernel_07923", {"k": 3, "s": 2}),
}
"""Names of the library with the sizes that a layer does not have."""
