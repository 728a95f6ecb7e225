# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ONNX that write some elements of a tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy
import torch
from torch.nn import functional

from .._node import Node, constant, define
from ._elements import largest, smallest
from ._shapes import _find_entries, _spread, take_rows, wrap_indices

Tensor = torch.Tensor
MOST_PAIRS = 2**26
"""The pairs of a place and an update that are compared."""

_REDUCTIONS = ("none", "add", "mul", "max", "min")


def scatter(node: Node, rows: Tensor, places: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """Rows (N, R) with updates (M, R) of those at places (M); the last of several counts, or all by the reduction."""
    if reduction not in _REDUCTIONS:
        raise node.refuse(f"requires a reduction of {', '.join(_REDUCTIONS)}, got {reduction}")
    if not places.numel() or not rows.numel():
        return rows
    if type(places) is torch.Tensor and reduction == "none":
        return _scatter_known(rows, places.numpy(), updates)
    size, count = rows.shape[0], places.shape[0]
    pairs = size * count * (1 if reduction == "none" else rows.shape[1])
    if pairs > MOST_PAIRS:
        raise node.refuse(
            f"requires indices that are known when the model is read, or {MOST_PAIRS} pairs of elements and updates "
            f"at most, got {pairs}"
        )
    is_it = torch.arange(size).reshape(size, 1) == places.reshape(1, count)
    if reduction == "none":
        last = torch.amax(torch.where(is_it, torch.arange(count), -1), 1)
        found = take_rows(updates, torch.where(last < 0, 0, last))
        return torch.where((last >= 0).reshape(-1, 1), found, rows)
    result = rows
    chosen = is_it.unsqueeze(2)
    if reduction == "add":
        return result + torch.sum(torch.where(chosen, updates, torch.zeros((), dtype=rows.dtype)), 1, dtype=rows.dtype)
    # One update after the other.
    for number in range(count):
        here = chosen[:, number]
        update = updates[number : number + 1]
        if reduction == "mul":
            new = result * update
        else:
            new = (largest if reduction == "max" else smallest)(node, result, update)
        result = torch.where(here, new, result)
    return result


def _scatter_known(rows: Tensor, places: numpy.ndarray, updates: Tensor) -> Tensor:
    """The rows of both, in their new order."""
    order = numpy.arange(rows.shape[0])
    order[places] = rows.shape[0] + numpy.arange(len(places))
    return take_rows(torch.cat([rows, updates]), constant(order, torch.int64))


@define("ScatterElements", "Scatter")
def _scatter_elements(node: Node, x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    axis = node.wrap(node.get("axis", 0), x.dim())
    flat = _know(node, places, lambda known: _spread(known, x.shape, axis)).reshape(-1)
    y = scatter(node, x.reshape(-1, 1), flat, updates.reshape(-1, 1), node.get("reduction", "none"))
    return y.reshape(x.shape)


@define("ScatterND")
def _scatter_nd(node: Node, x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    length = math.prod(x.shape[places.shape[-1] :])
    flat = _know(node, places, lambda known: _find_entries(node, x, known, 0)[0]).reshape(-1)
    y = scatter(node, x.reshape(-1, length), flat, updates.reshape(-1, length), node.get("reduction", "none"))
    return y.reshape(x.shape)


def _know(node: Node, places: Tensor, function: Any) -> Tensor:
    """What is made of indices; known where they are."""
    from torch.utils._python_dispatch import _disable_current_modes

    value = node.inputs[1]
    if value.real is None or value.is_weight:
        found: Tensor = function(places)
        return found
    with _disable_current_modes():
        found = function(value.real)
        return found


@define("TensorScatter")
def _tensor_scatter(node: Node, past: Tensor, update: Tensor, starts: Tensor | None = None) -> Tensor:
    """A cache of keys or values, in which new ones are written from a place on that each sample has."""
    axis = node.wrap(node.get("axis", -2), past.dim())
    is_circular = node.get("mode", "linear") == "circular"
    size, count = past.shape[axis], update.shape[axis]
    shape = [1] * past.dim()
    shape[axis] = size
    steps = torch.arange(size).reshape(shape)
    begin: Any = 0
    if starts is not None:
        begin = starts.to(torch.int64).reshape(-1, *[1] * (past.dim() - 1))
    offset = steps - begin
    if is_circular:
        offset = torch.where(offset < 0, offset + size, offset)
    is_new = (offset >= 0) & (offset < count)
    # Each place takes the update of its offset.
    rows = update.movedim(axis, 1)
    batch = rows.shape[0]
    places = torch.where(is_new, offset, 0).reshape(-1, size).expand(batch, size)
    places = places + constant(numpy.arange(batch)[:, None] * count, torch.int64)
    found = take_rows(rows.reshape(batch * count, -1), places.reshape(-1)).reshape(batch, size, *rows.shape[2:])
    return torch.where(is_new, found.movedim(1, axis), past)


@define("MaxUnpool")
def _max_unpool(node: Node, x: Tensor, places: Tensor, shape: Tensor | None = None) -> Tensor:
    rank = x.dim() - 2
    kernel = list(node.get("kernel_shape"))
    strides, pads = list(node.get("strides", [1] * rank)), list(node.get("pads", [0] * (2 * rank)))
    sizes = [(x.shape[2 + dim] - 1) * strides[dim] + kernel[dim] - pads[dim] - pads[rank + dim] for dim in range(rank)]
    inner = [*x.shape[:2], *sizes]
    zeros = torch.zeros(math.prod(inner), 1, dtype=x.dtype)
    y = scatter(node, zeros, wrap_indices(places, math.prod(inner)).reshape(-1), x.reshape(-1, 1), "none").reshape(
        inner
    )
    if shape is None:
        return y
    # Larger ones have zeros after their elements.
    pad = []
    for own, size in zip(reversed(inner), reversed(node.read_ints(2))):
        pad += [0, size - own]
    return functional.pad(y, pad)
