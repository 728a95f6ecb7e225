# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of PyTorch as linalg on tensors, for `kas-extract`: one function per layer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn.utils import parametrize

LAYERS = (nn.Conv1d, nn.Conv2d, nn.Linear)

Shape: TypeAlias = tuple[int, ...]
Convolution: TypeAlias = nn.Conv1d | nn.Conv2d


class NoLayerError(Exception):
    """Why a module is only nearly a layer."""


def _tensor(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def _map(loops: str, *results: str) -> str:
    return ", ".join(f"affine_map<({loops}) -> ({result})>" for result in results)


def _generic(
    name: str,
    layer: str,
    data: Shape,
    weight: Shape,
    output: Shape,
    maps: str,
    kinds: str,
    pad: str = "",
    padded: Shape | None = None,
) -> str:
    """A function that adds products of the data and the weight to its last argument."""
    kinds = ", ".join(f'"{"reduction" if kind == "r" else "parallel"}"' for kind in kinds)
    source = "%p" if padded else "%x"
    types = f"{_tensor(padded or data)}, {_tensor(weight)}"
    return (
        f'func.func @{name}(%x: {_tensor(data)} {{kas.name = "input"}}, '
        f"%w: {_tensor(weight)} {{kas.name = {json.dumps(layer + '.weight', ensure_ascii=False)}}}, "
        f"%i: {_tensor(output)}) -> {_tensor(output)} {{\n"
        f"{pad}  %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
        f"ins({source}, %w : {types}) outs(%i : {_tensor(output)}) {{\n"
        "  ^bb0(%a: f32, %b: f32, %c: f32):\n    %m = arith.mulf %a, %b : f32\n    %s = arith.addf %c, %m : f32\n"
        f"    linalg.yield %s : f32\n  }} -> {_tensor(output)}\n  return %y : {_tensor(output)}\n}}\n"
    )


def _linear(name: str, layer: str, module: nn.Linear, data: Shape, output: Shape) -> str:
    if len(data) not in (2, 3):
        raise NoLayerError(f"requires data with 2 or 3 dimensions, got {len(data)}")
    rows = ("n", "n, l")[len(data) - 2]
    maps = _map(f"{rows}, o, c", f"{rows}, c", "o, c", f"{rows}, o")
    return _generic(name, layer, data, tuple(module.weight.shape), output, maps, "p" * len(data) + "r")


def _amounts(module: Convolution) -> tuple[list[int], list[int]]:
    """The zeros before and after each spatial dimension."""
    if module.padding == "valid":
        totals = [(0, 0)] * len(module.kernel_size)
    elif module.padding == "same":
        sizes = [d * (k - 1) for d, k in zip(module.dilation, module.kernel_size)]
        totals = [(size // 2, size - size // 2) for size in sizes]
    else:
        totals = [(int(amount), int(amount)) for amount in module.padding]
    return [low for low, _ in totals], [high for _, high in totals]


def _pad(data: Shape, low: Sequence[int], high: Sequence[int]) -> tuple[str, Shape]:
    padded = tuple(size + one + two for size, one, two in zip(data, low, high))
    indices = ", ".join(f"%i{dim}: index" for dim in range(len(data)))
    return (
        "  %zero = arith.constant 0.0 : f32\n"
        f"  %p = tensor.pad %x low{low} high{high} {{\n  ^bb0({indices}):\n    tensor.yield %zero : f32\n"
        f"  }} : {_tensor(data)} to {_tensor(padded)}\n"
    ), padded


def _convolution(name: str, layer: str, module: Convolution, data: Shape, output: Shape) -> str:
    if module.padding_mode != "zeros":
        raise NoLayerError(f"requires padding with zeros, got padding_mode='{module.padding_mode}'")
    num_spatial = len(module.kernel_size)
    if len(data) != num_spatial + 2:
        raise NoLayerError(f"requires data with a batch dimension, got {len(data)} dimensions")
    groups = module.groups
    weight: Shape = tuple(module.weight.shape)
    positions = [f"o{dim}" for dim in range(num_spatial)]
    windows = [f"k{dim}" for dim in range(num_spatial)]
    reads = [
        f"{o} * {stride} + {k} * {dilation}"
        for o, k, stride, dilation in zip(positions, windows, module.stride, module.dilation)
    ]
    if groups == 1:
        leading, results, weights = ["n", "c"], ["n", "f"], ["f", "c"]
    elif groups == module.in_channels == module.out_channels:
        leading = results = ["n", "c"]
        weights, weight = ["c"], (weight[0], *weight[2:])
    else:
        leading, results, weights = ["n", "g", "c"], ["n", "g", "f"], ["g", "f", "c"]
        data = (data[0], groups, data[1] // groups, *data[2:])
        output = (output[0], groups, output[1] // groups, *output[2:])
        weight = (groups, weight[0] // groups, *weight[1:])
    reduced = (["c"] if "c" not in results else []) + windows
    loops = results + positions + reduced
    maps = _map(
        ", ".join(loops), ", ".join(leading + reads), ", ".join(weights + windows), ", ".join(results + positions)
    )
    low, high = _amounts(module)
    zeros = [0] * len(leading)
    pad: str = ""
    padded: Shape | None = None
    if any(low + high):
        pad, padded = _pad(data, zeros + low, zeros + high)
    kinds = "p" * (len(loops) - len(reduced)) + "r" * len(reduced)
    return _generic(name, layer, data, weight, output, maps, kinds, pad, padded)


@contextlib.contextmanager
def observing(model: nn.Module, hooks: Mapping[nn.Module, Callable[[nn.Module, Any, Any], None]]) -> Iterator[None]:
    """Evaluation mode without gradients, in which modules call hooks of module, inputs and output; all as before after.

    Neither statistics of normalizations nor the state of random numbers change.
    """
    modes = {module: module.training for module in model.modules()}
    handles = [module.register_forward_hook(hook) for module, hook in hooks.items()]
    try:
        model.eval()
        with torch.no_grad():
            yield
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode


def is_layer(module: nn.Module) -> bool:
    """A layer whose computation is not overridden by a subclass."""
    return any(isinstance(module, kind) and type(module).forward is kind.forward for kind in LAYERS)


def write_layer(name: str, layer: str, module: nn.Module, data: Shape, output: Shape) -> str:
    """The function `name` for the module at the path `layer`. Raises `NoLayerError` when it is only nearly one."""
    if parametrize.is_parametrized(module):
        raise NoLayerError("requires a weight that is a parameter, got a parametrization of it")
    if isinstance(module, nn.Linear):
        return _linear(name, layer, module, data, output)
    assert isinstance(module, Convolution)
    return _convolution(name, layer, module, data, output)
