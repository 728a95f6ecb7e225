# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparisons and what is made of them, with PyTorch's results for NaN.

torch-mlir takes each tensor to be equal to itself, and makes maxima and bounds that keep a NaN of one side alone.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten


_WITH_NUMBER = (aten.eq.Scalar, aten.ne.Scalar, aten.lt.Scalar, aten.le.Scalar, aten.gt.Scalar, aten.ge.Scalar)
_WITH_TENSOR = (aten.eq.Tensor, aten.ne.Tensor, aten.lt.Tensor, aten.le.Tensor, aten.gt.Tensor, aten.ge.Tensor)


def _round_number(node: fx.Node) -> None:
    """0.1 is the f32 next to it beside f32; torch-mlir compares in f64, where no f32 is equal to 0.1."""
    left, number = node.args
    value = left.meta.get("val") if isinstance(left, fx.Node) else None
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and isinstance(number, float):
        node.args = (left, struct.unpack("f", struct.pack("f", number))[0] if math.isfinite(number) else number)


def replace_comparisons(graph: fx.GraphModule) -> None:
    """Compares in the type that PyTorch compares in.

    Each comparison of floats for equality becomes the negation of the other one, which is not simplified.
    """
    for node in list(graph.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in _WITH_NUMBER:
            _round_number(node)
        if node.target is not aten.eq.Tensor:
            continue
        values = [argument.meta.get("val") for argument in node.all_input_nodes]
        if not any(isinstance(value, torch.Tensor) and value.dtype.is_floating_point for value in values):
            continue
        with graph.graph.inserting_before(node):
            different = graph.graph.call_function(aten.ne.Tensor, node.args, node.kwargs)
            equal = graph.graph.call_function(aten.logical_not.default, (different,))
        different.meta, equal.meta = dict(node.meta), dict(node.meta)
        node.replace_all_uses_with(equal)
        graph.graph.erase_node(node)


def _promoting(compare: Any) -> Callable[[torch.Tensor, torch.Tensor], Any]:
    """A comparison of tensors of two types, in the one that PyTorch compares them in."""

    def promote(x: torch.Tensor, y: torch.Tensor) -> Any:
        if x.dtype == y.dtype:
            return NotImplemented
        dtype = torch.result_type(x, y)
        return compare(x.to(dtype), y.to(dtype))

    return promote


def _with_number(compare: Any) -> Callable[[torch.Tensor, Any], Any]:
    """A comparison with a number: beside booleans it is one of integers, and integers wrap around as PyTorch's do."""

    def promote(x: torch.Tensor, number: Any) -> Any:
        if isinstance(number, bool) or not isinstance(number, int) or x.dtype.is_floating_point:
            return NotImplemented
        if x.dtype == torch.bool:
            return compare(x.to(torch.int64), number)
        limits = torch.iinfo(x.dtype)
        if limits.min <= number <= limits.max or x.dtype not in (torch.int32, torch.int64):
            return NotImplemented
        return compare(x, (number - limits.min) % (1 << limits.bits) + limits.min)

    return promote


def _is_nan(x: torch.Tensor) -> torch.Tensor:
    return torch.ne(x, x)


def _promote(x: torch.Tensor, y: Any) -> tuple[torch.Tensor, Any]:
    dtype = torch.result_type(x, y)
    return x.to(dtype), y.to(dtype) if isinstance(y, torch.Tensor) else y


def _take_first(compare: Callable[[Any, Any], Any], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The first where the comparison holds or it is NaN, else the second, which may be NaN."""
    x, y = _promote(x, y)
    chosen = compare(x, y)
    return torch.where(chosen | _is_nan(x) if x.dtype.is_floating_point else chosen, x, y)


def maximum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`torch.maximum`."""
    return _take_first(operator.gt, x, y)


def minimum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`torch.minimum`."""
    return _take_first(operator.lt, x, y)


def _take_number(compare: Callable[[Any, Any], Any], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x, y = _promote(x, y)
    chosen = compare(x, y)
    return torch.where(chosen | _is_nan(y) if x.dtype.is_floating_point else chosen, x, y)


def fmax(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`torch.fmax`: the other one where one is NaN."""
    return _take_number(operator.ge, x, y)


def fmin(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`torch.fmin`."""
    return _take_number(operator.le, x, y)


def _fits(x: torch.Tensor, *bounds: Any) -> bool:
    """Whether bounds that are numbers do not change the type."""
    return all(bound is None or torch.result_type(x, bound) == x.dtype for bound in bounds)


def clamp(x: torch.Tensor, min: Any = None, max: Any = None) -> Any:
    """`torch.clamp` by numbers. A bound that is NaN makes all of it NaN."""
    if not _fits(x, min, max) or any(bound is not None and bound != bound for bound in (min, max)):
        return NotImplemented
    if min is not None:
        x = torch.where(x < min, torch.full_like(x, min), x)
    if max is not None:
        x = torch.where(x > max, torch.full_like(x, max), x)
    return x.clone() if min is None and max is None else x


def clamp_tensor(x: torch.Tensor, min: torch.Tensor | None = None, max: torch.Tensor | None = None) -> torch.Tensor:
    """`torch.clamp` by tensors."""
    if min is not None:
        x = maximum(x, min)
    if max is not None:
        x = minimum(x, max)
    return x


def clamp_min(x: torch.Tensor, min: Any) -> Any:
    """`torch.clamp_min`."""
    return clamp(x, min, None)


def clamp_max(x: torch.Tensor, max: Any) -> Any:
    """`torch.clamp_max`."""
    return clamp(x, None, max)


def hardtanh(x: torch.Tensor, min_val: Any = -1, max_val: Any = 1) -> Any:
    """`torch.nn.functional.hardtanh`, of which relu6 is made: at the bounds the derivative is 0, not so of clamp."""
    if not _fits(x, min_val, max_val):
        return NotImplemented
    x = torch.where(x <= min_val, torch.full_like(x, min_val), x)
    return torch.where(x >= max_val, torch.full_like(x, max_val), x)


def threshold(x: torch.Tensor, threshold: Any, value: Any) -> Any:
    """`torch.nn.functional.threshold`, which takes whole numbers beside integers."""
    if not x.dtype.is_floating_point:
        threshold, value = int(threshold), int(value)
    return torch.where(x <= threshold, torch.full_like(x, value), x) if _fits(x, threshold, value) else NotImplemented


def hardshrink(x: torch.Tensor, lambd: Any = 0.5) -> torch.Tensor:
    """`torch.nn.functional.hardshrink`, which keeps NaN."""
    return torch.where((x >= -lambd) & (x <= lambd), torch.zeros_like(x), x)


def hardsigmoid(x: torch.Tensor) -> Any:
    """`torch.nn.functional.hardsigmoid`."""
    return hardtanh(x + 3, 0, 6) / 6


def hardswish(x: torch.Tensor) -> Any:
    """`torch.nn.functional.hardswish`."""
    return x * clamp(x + 3, 0, 6) / 6


def get_comparison_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file."""
    return {
        **{compare: _promoting(compare) for compare in _WITH_TENSOR},
        **{compare: _with_number(compare) for compare in _WITH_NUMBER},
        aten.clamp.default: clamp,
        aten.clamp.Tensor: clamp_tensor,
        aten.clamp_max.default: clamp_max,
        aten.clamp_max.Tensor: minimum,
        aten.clamp_min.default: clamp_min,
        aten.clamp_min.Tensor: maximum,
        aten.fmax.default: fmax,
        aten.fmin.default: fmin,
        aten.hardshrink.default: hardshrink,
        aten.hardsigmoid.default: hardsigmoid,
        aten.hardswish.default: hardswish,
        aten.hardtanh.default: hardtanh,
        aten.maximum.default: maximum,
        aten.minimum.default: minimum,
        aten.threshold.default: threshold,
    }
