# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Maxima of windows with the places where they are, what is put back there, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from ._indexing import check_indices, write_rows
from ._loops import ELEMENTS, Result, get_type, pointwise
from ._pooling import get_axes

aten = torch.ops.aten


def _bound(name: str) -> str:
    """The first place of a window within the data, and where it ends."""
    return f"""%scaled{name} = arith.muli %o{name}, %stride{name} : index
%start{name} = arith.subi %scaled{name}, %padding{name} : index
%missing{name} = arith.subi %zero, %start{name} : index
%outside{name} = arith.maxsi %missing{name}, %zero : index
%skipped{name} = arith.ceildivsi %outside{name}, %step{name} : index
%moved{name} = arith.muli %skipped{name}, %step{name} : index
%first{name} = arith.addi %start{name}, %moved{name} : index
%reach{name} = arith.addi %start{name}, %extent{name} : index
%end{name} = arith.minsi %reach{name}, %size{name} : index"""


def _bound_adaptive(name: str) -> str:
    return f"""%scaled{name} = arith.muli %o{name}, %size{name} : index
%first{name} = arith.divsi %scaled{name}, %windows{name} : index
%ended{name} = arith.addi %scaled{name}, %size{name} : index
%end{name} = arith.ceildivsi %ended{name}, %windows{name} : index"""


def _find_maxima(data: torch.Tensor, windows: Sequence[int], bounds: Sequence[str], constants: str) -> Any:
    """Of each window the largest element and its place; `data` and the results have one dimension before the images."""
    rank, element = len(windows), ELEMENTS[data.dtype]
    names = [str(number) for number in range(rank)]
    lines = ["%batch = linalg.index 0 : index"]
    lines += [f"%o{name} = linalg.index {number} : index" for number, name in enumerate(names, start=1)]
    lines += bounds

    def combine(prefix: str) -> tuple[list[str], str]:
        """The number of a place among all of an image."""
        found, last = [], f"%{prefix}0"
        for name in names[1:]:
            found.append(f"%{prefix}t{name} = arith.muli {last}, %size{name} : index")
            found.append(f"%{prefix}n{name} = arith.addi %{prefix}t{name}, %{prefix}{name} : index")
            last = f"%{prefix}n{name}"
        return found, last

    first, place = combine("first")
    lines += [*first, "%least = arith.constant " + f"0xFF800000 : {element}"]
    value = "%least"
    for name in names:
        outer = "%found" + name
        lines.append(
            f"{outer}:2 = scf.for %p{name} = %first{name} to %end{name} step %step{name} "
            f"iter_args(%value{name} = {value}, %place{name} = {place}) -> ({element}, index) {{"
        )
        value, place = f"%value{name}", f"%place{name}"
    here, number = combine("p")
    at = ", ".join(f"%p{name}" for name in names)
    lines += [
        *here,
        f"%element = tensor.extract %0[%batch, {at}] : {get_type(data.shape, data.dtype)}",
        f"%larger = arith.cmpf ogt, %element, {value} : {element}",
        f"%none = arith.cmpf uno, %element, %element : {element}",
        "%chosen = arith.ori %larger, %none : i1",
        f"%new_value = arith.select %chosen, %element, {value} : {element}",
        f"%new_place = arith.select %chosen, {number}, {place} : index",
        f"scf.yield %new_value, %new_place : {element}, index",
        "}",
    ]
    for name in reversed(names[1:]):
        lines += [f"scf.yield %found{name}#0, %found{name}#1 : {element}, index", "}"]
    lines += ["%number = arith.index_cast %found0#1 : index to i64", "yield %found0#0, %number"]
    shape = (data.shape[0], *windows)
    results = [Result(shape, data.dtype), Result(shape, torch.int64)]
    return pointwise([data], results, "\n".join(lines), f"%zero = arith.constant 0 : index\n{constants}")


def _constant(name: str, value: int) -> str:
    return f"%{name} = arith.constant {value} : index"


def _pool(rank: int) -> Callable[..., Any]:
    def decompose(
        data: torch.Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        """`torch.nn.functional.max_pool2d` and `max_pool3d` with places."""
        if data.dtype != torch.float32 or not data.numel():
            return NotImplemented
        axes = get_axes(data, rank, kernel, stride, padding, dilation, ceil_mode)
        constants, bounds = [], []
        for number, axis in enumerate(axes):
            extent = (axis.kernel - 1) * axis.dilation + 1
            numbers = {"size": axis.size, "stride": axis.stride, "padding": axis.padding, "step": axis.dilation}
            constants += [_constant(f"{name}{number}", value) for name, value in (*numbers.items(), ("extent", extent))]
            bounds.append(_bound(str(number)))
        leading = data.shape[: data.dim() - rank]
        windows = [axis.windows for axis in axes]
        images = data.reshape(math.prod(leading), *data.shape[-rank:])
        found = _find_maxima(images, windows, bounds, "\n".join(constants))
        return tuple(part.reshape(*leading, *windows) for part in found)

    return decompose


def _pool_adaptive(rank: int) -> Callable[..., Any]:
    def decompose(data: torch.Tensor, output_size: Sequence[int]) -> Any:
        """`torch.nn.functional.adaptive_max_pool2d` and `adaptive_max_pool3d`."""
        if data.dtype != torch.float32 or not data.numel() or 0 in output_size:
            return NotImplemented
        leading, sizes = data.shape[: data.dim() - rank], data.shape[-rank:]
        windows = [*output_size] * (rank if len(output_size) == 1 else 1)
        constants = []
        for number, (size, count) in enumerate(zip(sizes, windows)):
            numbers = {"size": size, "windows": count, "step": 1}
            constants += [_constant(f"{name}{number}", value) for name, value in numbers.items()]
        images = data.reshape(math.prod(leading), *sizes)
        bounds = [_bound_adaptive(str(number)) for number in range(rank)]
        found = _find_maxima(images, windows, bounds, "\n".join(constants))
        return tuple(part.reshape(*leading, *windows) for part in found)

    return decompose


def _put_back(values: torch.Tensor, places: torch.Tensor, sizes: Sequence[int], rank: int, reduce: str) -> torch.Tensor:
    """Images of zeros with values at places of theirs."""
    leading, count = values.shape[: values.dim() - rank], math.prod(sizes)
    images = math.prod(leading)
    numbers = check_indices(places.reshape(images, -1), count) + (torch.arange(images) * count).view(-1, 1)
    zeros = values.new_zeros((images * count, 1))
    found = write_rows(zeros, numbers.reshape(-1), values.reshape(-1, 1), reduce)
    return found.reshape(*leading, *sizes)


def _unpool(rank: int) -> Callable[..., Any]:
    def decompose(values: torch.Tensor, places: torch.Tensor, output_size: Sequence[int], *_: Any) -> Any:
        """`torch.nn.functional.max_unpool2d` and `max_unpool3d`."""
        if not values.numel() or values.dtype not in ELEMENTS:
            return NotImplemented
        return _put_back(values, places, output_size, rank, "")

    return decompose


def _get_gradient(rank: int, position: int) -> Callable[..., Any]:
    """Of a maximum; the places are the argument at `position`."""

    def decompose(gradient: torch.Tensor, data: torch.Tensor, *rest: Any) -> Any:
        if not gradient.numel() or gradient.dtype not in ELEMENTS:
            return NotImplemented
        return _put_back(gradient, rest[position], data.shape[-rank:], rank, "sum")

    return decompose


def get_max_pooling_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file."""
    return {
        aten.adaptive_max_pool2d.default: _pool_adaptive(2),
        aten.adaptive_max_pool2d_backward.default: _get_gradient(2, 0),
        aten.adaptive_max_pool3d.default: _pool_adaptive(3),
        aten.adaptive_max_pool3d_backward.default: _get_gradient(3, 0),
        aten.max_pool2d_with_indices_backward.default: _get_gradient(2, 5),
        aten.max_pool3d_with_indices_backward.default: _get_gradient(3, 5),
        aten.max_unpool2d.default: _unpool(2),
        aten.max_unpool3d.default: _unpool(3),
    }


def get_indices_table() -> dict[Any, Callable[..., Any]]:
    """Of graphs that use the places of maxima: without them, there is a faster way."""
    return {aten.max_pool2d_with_indices.default: _pool(2), aten.max_pool3d_with_indices.default: _pool(3)}


def uses_indices(graph: fx.GraphModule) -> bool:
    """Whether a graph uses the places of maxima."""
    return any(
        node.target in get_indices_table() and any(user.args[1] == 1 for user in node.users)
        for node in graph.graph.nodes
        if node.op == "call_function"
    )
