# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparisons and what is made of them, with PyTorch's results for NaN.

torch-mlir takes each tensor to be equal to itself, and makes maxima and bounds that keep a NaN of one side alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten


def replace_comparisons(graph: fx.GraphModule) -> None:
    """Writes each comparison of floats for equality as the negation of the other one, which is not simplified."""
    for node in list(graph.graph.nodes):
        if node.op != "call_function" or node.target is not aten.eq.Tensor:
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


def hardsigmoid(x: torch.Tensor) -> Any:
    """`torch.nn.functional.hardsigmoid`."""
    return hardtanh(x + 3, 0, 6) / 6


def hardswish(x: torch.Tensor) -> Any:
    """`torch.nn.functional.hardswish`."""
    return x * clamp(x + 3, 0, 6) / 6


def get_comparison_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file."""
    return {
        aten.clamp.default: clamp,
        aten.clamp.Tensor: clamp_tensor,
        aten.clamp_max.default: clamp_max,
        aten.clamp_max.Tensor: minimum,
        aten.clamp_min.default: clamp_min,
        aten.clamp_min.Tensor: maximum,
        aten.fmax.default: fmax,
        aten.fmin.default: fmin,
        aten.hardsigmoid.default: hardsigmoid,
        aten.hardswish.default: hardswish,
        aten.hardtanh.default: hardtanh,
        aten.maximum.default: maximum,
        aten.minimum.default: minimum,
    }
