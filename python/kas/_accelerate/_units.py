# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of a network that something else may take the place of, and the blocks that they are in."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize

from ..evaluate._task import call
from ..torch._layers import is_layer, observing

Shape = tuple[int, ...]
MOST_OF_RUN = 4
"""The layers of a run, in a block, that a sequence of operators may take the place of; two at least."""


@dataclass(frozen=True)
class Unit:
    """A layer, or a block of layers that keeps the shape of its data or is a run of a few of them.

    Shapes are those of one example.
    """

    name: str
    """The path of the module."""
    data_shape: Shape
    output_shape: Shape
    macs: int
    """Of one example."""
    is_block: bool = False
    is_rectified: bool = False
    """Whether all outputs for the example are at least 0."""

    @property
    def keeps_shape(self) -> bool:
        """Whether nothing at all may take its place."""
        return self.data_shape == self.output_shape


@dataclass
class Units:
    """What `find_units` found."""

    layers: list[Unit]
    blocks: list[Unit]
    """From the outermost to the innermost; each has at least one of the layers inside."""
    macs: int
    """Of all convolutions and linear layers for one example."""
    misses: dict[str, str] = field(default_factory=dict)
    """Layers that stay as they are, and why."""

    def get_parts(self, block: Unit | None) -> tuple[list[Unit], list[Unit]]:
        """The blocks and the layers that are in a block, or in the network, and in no smaller block of it."""
        prefix = "" if block is None else block.name + "."
        inside = [one for one in self.blocks if one is not block and one.name.startswith(prefix)]
        nearest = [
            one
            for one in inside
            if not any(one is not other and one.name.startswith(other.name + ".") for other in inside)
        ]
        taken = tuple(one.name + "." for one in nearest)
        layers = [
            one for one in self.layers if one.name.startswith(prefix) and not one.name.startswith(taken or ("\0",))
        ]
        return nearest, layers


def count_layer_macs(module: nn.Module, output_shape: Sequence[int]) -> int:
    """Of a convolution or a linear layer, whose output has this shape; of other modules 0."""
    if not isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)):
        return 0
    weight = module.weight
    return math.prod(output_shape) * (weight.numel() // weight.shape[0])


def count_macs(module: nn.Module, inputs: Any) -> int:
    """The multiply-adds of the convolutions and linear layers of a module for inputs."""
    total = 0

    def add(one: nn.Module, _: Any, output: Any) -> None:
        nonlocal total
        total += count_layer_macs(one, output.shape)

    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
    with observing(module, {one: add for one in module.modules() if isinstance(one, kinds)}):
        call(module, inputs)
    return total


def get_module(model: nn.Module, name: str) -> nn.Module:
    """The module of a path."""
    return model.get_submodule(name)


def set_module(model: nn.Module, name: str, module: nn.Module) -> None:
    """Puts a module at a path."""
    parent, _, own = name.rpartition(".")
    setattr(model.get_submodule(parent), own, module)


class _Calls:
    """What modules were called with."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.shapes: dict[str, tuple[Shape, Shape] | None] = {}
        self.rectified: set[str] = set()
        """Those whose outputs are at least 0."""

    def record(self, name: str, inputs: tuple[Any, ...], output: Any) -> None:
        self.counts[name] += 1
        plain = len(inputs) == 1 and isinstance(inputs[0], torch.Tensor) and isinstance(output, torch.Tensor)
        self.shapes[name] = (tuple(inputs[0].shape), tuple(output.shape)) if plain else None
        if plain and not bool((output < 0).any()):
            self.rectified.add(name)


def _observe(model: nn.Module, example: Any) -> tuple[_Calls, dict[str, nn.Module]]:
    calls, modules = _Calls(), dict(model.named_modules())

    def hook(name: str) -> Any:
        return lambda module, inputs, output: calls.record(name, inputs, output)

    with observing(model, {module: hook(name) for name, module in modules.items()}):
        call(model, example)
    return calls, modules


def _find_miss(name: str, module: nn.Module, calls: _Calls, shared: set[str]) -> str | None:
    """Why a layer cannot be replaced."""
    if not is_layer(module) or isinstance(module, nn.Conv1d):
        kind = f"{type(module).__module__}.{type(module).__qualname__}".replace("torch.nn.modules.", "torch.nn.")
        return f"requires a torch.nn.Conv2d or Linear without a forward of its own, got {kind}"
    if parametrize.is_parametrized(module):
        return "requires a weight that is a parameter, got a parametrization of it"
    if calls.counts[name] != 1:
        return f"requires a layer that runs once, got {calls.counts[name]} times"
    if name in shared:
        return "requires a layer with one name, got several"
    if calls.shapes[name] is None:
        return "requires one tensor as the input, got others"
    if isinstance(module, nn.Conv2d) and module.padding_mode != "zeros":
        return f"requires padding with zeros, got padding_mode='{module.padding_mode}'"
    return None


def find_units(model: nn.Module, example: Any) -> Units:
    """The layers and blocks of a network that `example`, the inputs of one example, passes through."""
    calls, modules = _observe(model, example)
    names = Counter(module for _, module in model.named_modules(remove_duplicate=False))
    shared = {name for name, module in modules.items() if names[module] > 1}
    layers: list[Unit] = []
    misses: dict[str, str] = {}
    total = 0
    for name, module in modules.items():
        if not isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Linear)) or not calls.counts[name]:
            continue
        shapes = calls.shapes[name]
        macs = 0 if shapes is None else calls.counts[name] * count_layer_macs(module, shapes[1])
        total += macs
        if reason := _find_miss(name, module, calls, shared):
            misses[name] = reason
            continue
        assert shapes is not None
        layers.append(Unit(name, shapes[0][1:], shapes[1][1:], macs))
    blocks = []
    for name in modules:
        inside = [unit for unit in layers if unit.name.startswith(name + ".")]
        shapes = calls.shapes.get(name)
        if not name or not inside or shapes is None or calls.counts[name] != 1 or name in shared:
            continue
        if shapes[0] == shapes[1] or 2 <= len(inside) <= MOST_OF_RUN:
            macs, is_rectified = sum(unit.macs for unit in inside), name in calls.rectified
            blocks.append(Unit(name, shapes[0][1:], shapes[1][1:], macs, is_block=True, is_rectified=is_rectified))
    return Units(layers, blocks, total, misses)
