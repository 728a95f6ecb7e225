# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The alternatives of a layer, with weights that come from the layer's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import nn

from ..zoo._layers import Shift, Shuffle
from ._units import Unit

Factory = Callable[[], nn.Module]
SHARE = 0.75
"""The largest share of the multiply-adds of a layer that an alternative may have."""


@dataclass(frozen=True)
class _Geometry:
    """A convolution without its channels."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]

    def make(self, inputs: int, outputs: int, *, groups: int = 1, bias: bool = False) -> nn.Conv2d:
        return nn.Conv2d(inputs, outputs, self.kernel, self.stride, self.padding, self.dilation, groups, bias)

    @property
    def is_centred(self) -> bool:
        """Output o sees the neighbours of input o times the stride."""
        sizes = zip(self.kernel, self.padding, self.dilation)
        return all(k % 2 == 1 and p == d * (k // 2) for k, p, d in sizes)

    @property
    def centre(self) -> tuple[int, int]:
        return self.kernel[0] // 2, self.kernel[1] // 2


class _Layer:
    """A convolution as a dense one: its weight has zeros between its groups."""

    def __init__(self, layer: nn.Conv2d):
        padding = layer.padding
        if padding == "valid":
            padding = (0, 0)
        elif padding == "same":
            padding = tuple(d * (k - 1) // 2 for d, k in zip(layer.dilation, layer.kernel_size))
        self.geometry = _Geometry(_pair(layer.kernel_size), _pair(layer.stride), _pair(padding), _pair(layer.dilation))
        self.inputs, self.outputs, self.groups = layer.in_channels, layer.out_channels, layer.groups
        self.weight = _expand(layer)
        self.bias = None if layer.bias is None else layer.bias.detach().clone()

    def finish(self, last: nn.Conv2d) -> nn.Conv2d:
        """Gives the last convolution the bias of the layer."""
        if self.bias is not None:
            last.bias = nn.Parameter(self.bias.clone())
        return last


def _pair(sizes: Sequence[int] | str) -> tuple[int, int]:
    return int(sizes[0]), int(sizes[1])


def _expand(layer: nn.Conv2d) -> torch.Tensor:
    """The weight [outputs, inputs, height, width] of a convolution without groups that computes the same."""
    weight = layer.weight.detach().clone()
    if layer.groups == 1:
        return weight
    dense = weight.new_zeros(layer.out_channels, layer.in_channels, *weight.shape[2:])
    outputs, inputs = layer.out_channels // layer.groups, layer.in_channels // layer.groups
    for group in range(layer.groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        dense[rows, group * inputs : (group + 1) * inputs] = weight[rows]
    return dense


def _rectified(channels: int, is_rectified: bool) -> list[nn.Module]:
    return [nn.BatchNorm2d(channels), nn.ReLU()] if is_rectified else []


def _fill(module: nn.Conv2d, weight: torch.Tensor) -> nn.Conv2d:
    with torch.no_grad():
        module.weight.copy_(weight.reshape(module.weight.shape))
    return module


def _factor(matrix: torch.Tensor, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The best product of `[..., m, rank]` and `[..., rank, n]`, both of one size."""
    u, s, v = torch.linalg.svd(matrix.double(), full_matrices=False)
    root = s[..., :rank].sqrt()
    return (u[..., :rank] * root[..., None, :]).float(), (root[..., :, None] * v[..., :rank, :]).float()


# ---- Forms: each makes a module from a layer


def _pointwise(layer: _Layer) -> nn.Module:
    h, w = layer.geometry.centre
    module = nn.Conv2d(layer.inputs, layer.outputs, 1, layer.geometry.stride, bias=False)
    return layer.finish(_fill(module, layer.weight[:, :, h, w]))


def _depthwise(layer: _Layer) -> nn.Module:
    ratio = layer.outputs // layer.inputs
    own = layer.weight[torch.arange(layer.outputs), torch.arange(layer.outputs) // ratio]
    return layer.finish(_fill(layer.geometry.make(layer.inputs, layer.outputs, groups=layer.inputs), own))


def _separable(layer: _Layer, windows: int, is_rectified: bool) -> nn.Module:
    """Windows for each input channel, then 1x1: the best of that rank for each input channel."""
    inner = windows * layer.inputs
    outer, own = _factor(layer.weight.flatten(2).transpose(0, 1), windows)  # [inputs, outputs, windows], ...
    window = _fill(layer.geometry.make(layer.inputs, inner, groups=layer.inputs), own)
    mix = _fill(nn.Conv2d(inner, layer.outputs, 1, bias=False), outer.permute(1, 0, 2))
    return nn.Sequential(window, *_rectified(inner, is_rectified), layer.finish(mix))


def _pointwise_depthwise(layer: _Layer, is_rectified: bool) -> nn.Module:
    """1x1, then a window for each output channel."""
    own, mix = _factor(layer.weight.flatten(2).transpose(1, 2), 1)  # [outputs, taps, 1], [outputs, 1, inputs]
    first = _fill(nn.Conv2d(layer.inputs, layer.outputs, 1, bias=False), mix)
    window = _fill(layer.geometry.make(layer.outputs, layer.outputs, groups=layer.outputs), own)
    return nn.Sequential(first, *_rectified(layer.outputs, is_rectified), layer.finish(window))


def _low_rank(layer: _Layer, rank: int, is_rectified: bool) -> nn.Module:
    outer, inner = _factor(layer.weight.flatten(1), rank)
    first = _fill(layer.geometry.make(layer.inputs, rank), inner)
    mix = _fill(nn.Conv2d(rank, layer.outputs, 1, bias=False), outer)
    return nn.Sequential(first, *_rectified(rank, is_rectified), layer.finish(mix))


def _bottleneck(layer: _Layer, rank: int, is_rectified: bool) -> nn.Module:
    """1x1 to fewer channels, the window there, 1x1: projections on the largest singular vectors of both sides."""
    outputs, _ = _factor(layer.weight.flatten(1), rank)
    inputs, _ = _factor(layer.weight.transpose(0, 1).flatten(1), rank)
    outputs, inputs = (torch.linalg.qr(side)[0] for side in (outputs, inputs))
    core = torch.einsum("ochw,or,cs->rshw", layer.weight, outputs, inputs)
    return nn.Sequential(
        _fill(nn.Conv2d(layer.inputs, rank, 1, bias=False), inputs.T),
        *_rectified(rank, is_rectified),
        _fill(layer.geometry.make(rank, rank), core),
        *_rectified(rank, is_rectified),
        layer.finish(_fill(nn.Conv2d(rank, layer.outputs, 1, bias=False), outputs)),
    )


def _grouped(layer: _Layer, groups: int) -> nn.Module:
    """Groups of neighbouring channels, then their outputs shuffled."""
    shuffle = Shuffle(groups)
    places = shuffle(torch.arange(layer.outputs).reshape(1, -1, 1, 1)).flatten()
    module = layer.geometry.make(layer.inputs, layer.outputs, groups=groups, bias=False)
    outputs, inputs = layer.outputs // groups, layer.inputs // groups
    weight = torch.empty_like(module.weight)
    for place, channel in enumerate(places.tolist()):
        group = channel // outputs
        weight[channel] = layer.weight[place, group * inputs : (group + 1) * inputs]
    if layer.bias is not None:
        bias = torch.empty_like(layer.bias)
        bias[places] = layer.bias
        module.bias = nn.Parameter(bias)
    return nn.Sequential(_fill(module, weight), shuffle)


def _shift_pointwise(layer: _Layer) -> nn.Module:
    shift = Shift(layer.inputs)
    rows = shift.kernel.flatten(1).argmax(1)
    taps = layer.weight.flatten(2)[:, torch.arange(layer.inputs), rows]
    mix = nn.Conv2d(layer.inputs, layer.outputs, 1, layer.geometry.stride, bias=False)
    return nn.Sequential(shift, layer.finish(_fill(mix, taps)))


def _smaller_window(layer: nn.Conv2d) -> nn.Module:
    """The middle 3x3 of the window of a convolution."""
    own = _Layer(layer)
    geometry = replace(own.geometry, kernel=(3, 3), padding=own.geometry.dilation)
    h, w = own.geometry.centre
    module = geometry.make(layer.in_channels, layer.out_channels, groups=layer.groups, bias=False)
    return own.finish(_fill(module, layer.weight.detach()[:, :, h - 1 : h + 2, w - 1 : w + 2]))


def _low_rank_linear(layer: nn.Linear, rank: int) -> nn.Module:
    outer, inner = _factor(layer.weight.detach(), rank)
    first = nn.Linear(layer.in_features, rank, bias=False)
    second = nn.Linear(rank, layer.out_features, bias=layer.bias is not None)
    with torch.no_grad():
        first.weight.copy_(inner)
        second.weight.copy_(outer)
        if layer.bias is not None:
            second.bias.copy_(layer.bias)
    return nn.Sequential(first, second)


def _round(channels: float) -> int:
    """Channels in whole vectors, where there are so many."""
    step = 16 if channels >= 24 else 8 if channels >= 8 else 1
    return max(1, round(channels / step) * step)


# ---- Which forms a layer has


def list_forms(layer: nn.Module, unit: Unit) -> dict[str, Factory]:
    """What may take the place of a layer, by name; all have the shapes of the layer, and fewer multiply-adds."""
    if isinstance(layer, nn.Linear):
        forms = _list_linear(layer)
    elif isinstance(layer, nn.Conv2d):
        forms = _list_convolution(layer, unit)
    else:
        forms = {}
    return {name: _checked(name, make, layer, unit) for name, make in forms.items()}


def _checked(name: str, make: Factory, layer: nn.Module, unit: Unit) -> Factory:
    """The form in evaluation mode, on the type of the layer."""

    def call() -> nn.Module:
        module = make().to(next(layer.parameters()).dtype).eval()
        with torch.no_grad():
            shape = tuple(module(next(layer.parameters()).new_zeros(1, *unit.data_shape)).shape[1:])
        assert shape == unit.output_shape, f"{name} of {unit.name}: {shape} instead of {unit.output_shape}"
        return module

    return call


def _list_linear(layer: nn.Linear) -> dict[str, Factory]:
    inputs, outputs = layer.in_features, layer.out_features
    forms: dict[str, Factory] = {}
    for ratio in (2, 4, 8):
        rank = _round(min(inputs, outputs) / ratio)
        if rank >= 8 and rank * (inputs + outputs) <= SHARE * inputs * outputs:
            forms[f"low-rank-{rank}"] = partial(_low_rank_linear, layer, rank)
    return forms


def _list_convolution(layer: nn.Conv2d, unit: Unit) -> dict[str, Factory]:
    own = _Layer(layer)
    inputs, outputs, taps = own.inputs, own.outputs, math.prod(own.geometry.kernel)
    points, all_points = math.prod(unit.output_shape[1:]), math.prod(unit.data_shape[1:])
    is_centred = own.geometry.is_centred
    found: list[tuple[str, int, Factory]] = []

    def add(name: str, macs: int, make: Factory) -> None:
        found.append((name, macs, make))

    if inputs == outputs and unit.data_shape == unit.output_shape:
        add("skip", 0, nn.Identity)
    is_depthwise = layer.groups == inputs == outputs
    if is_depthwise:
        if min(own.geometry.kernel) > 3 and is_centred:
            add("window-3", points * outputs * 9, partial(_smaller_window, layer))
        return _fit(found, unit)
    if taps > 1:
        if is_centred:
            add("pointwise", points * inputs * outputs, partial(_pointwise, own))
        if outputs % inputs == 0:
            add("depthwise", points * outputs * taps, partial(_depthwise, own))
        for windows in (1, 2):
            macs = points * windows * inputs * (taps + outputs)
            name = "depthwise-separable" if windows == 1 else f"depthwise-{windows}-separable"
            if windows == 1:
                add(name, macs, partial(_separable, own, 1, False))
            if inputs > 3:
                add(f"{name}-relu", macs, partial(_separable, own, windows, True))
        macs = all_points * inputs * outputs + points * outputs * taps
        add("pointwise-depthwise-relu", macs, partial(_pointwise_depthwise, own, True))
        if is_centred and own.geometry.kernel == (3, 3) and own.geometry.dilation == (1, 1) and inputs >= 9:
            add("shift-pointwise", points * inputs * outputs, partial(_shift_pointwise, own))
    for ratio in (2, 4):
        rank = _round(min(inputs, outputs) / ratio)
        if rank < 4:
            continue
        macs = points * rank * (inputs * taps + outputs)
        add(f"low-rank-{rank}", macs, partial(_low_rank, own, rank, False))
        if taps > 1:
            macs = all_points * inputs * rank + points * rank * (rank * taps + outputs)
            add(f"bottleneck-{rank}-relu", macs, partial(_bottleneck, own, rank, True))
    for groups in (2, 4, 8):
        if inputs % groups == 0 and outputs % groups == 0 and min(inputs, outputs) // groups >= 4:
            macs = points * inputs * outputs * taps // groups
            add(f"grouped-{groups}-shuffle", macs, partial(_grouped, own, groups))
    return _fit(found, unit)


def _fit(found: list[tuple[str, int, Factory]], unit: Unit) -> dict[str, Factory]:
    return {name: make for name, macs, make in found if macs <= SHARE * unit.macs}
