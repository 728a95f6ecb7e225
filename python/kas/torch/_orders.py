# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums up to each place, and orders of short rows, which torch-mlir leaves to a dialect of its own.

Sums up to each place are made in steps of doubled length. Orders count for each element what comes before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
LONGEST = 64
"""Rows that are ordered by comparing all pairs."""

Pair = tuple[torch.Tensor, ...]


def _scan(combine: Callable[[Pair, Pair], Pair], values: Pair, dim: int) -> Pair:
    """Of each place what `combine` makes of all up to it."""
    size, step = values[0].shape[dim], 1
    while step < size:
        first = tuple(value.narrow(dim, 0, size - step) for value in values)
        second = tuple(value.narrow(dim, step, size - step) for value in values)
        both = combine(first, second)
        values = tuple(torch.cat([value.narrow(dim, 0, step), new], dim) for value, new in zip(values, both))
        step *= 2
    return values


def _widen(x: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    if dtype is None:
        dtype = x.dtype if x.dtype.is_floating_point else torch.int64
    return x.to(dtype)


def cumsum(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """`torch.cumsum`."""
    x = _widen(x, dtype)
    return _scan(lambda a, b: (a[0] + b[0],), (x,), dim)[0] if x.dim() else x.clone()


def cumprod(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """`torch.cumprod`."""
    x = _widen(x, dtype)
    return _scan(lambda a, b: (a[0] * b[0],), (x,), dim)[0] if x.dim() else x.clone()


def _find_largest(x: torch.Tensor, y: torch.Tensor) -> Pair:
    """The larger of two, and how much less the other one is, which of equal infinities is nothing."""
    largest, least = torch.maximum(x, y), torch.minimum(x, y)
    return largest, torch.where(largest == least, torch.zeros_like(largest), least - largest)


def logaddexp(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`torch.logaddexp`."""
    largest, difference = _find_largest(x, y)
    return largest + torch.log1p(torch.exp(difference))


def logaddexp2(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`torch.logaddexp2`."""
    largest, difference = _find_largest(x, y)
    return largest + torch.log1p(torch.exp(difference * math.log(2))) / math.log(2)


def logcumsumexp(x: torch.Tensor, dim: int) -> Any:
    """`torch.logcumsumexp`."""
    if not x.dtype.is_floating_point:
        return NotImplemented
    return _scan(lambda a, b: (logaddexp(a[0], b[0]),), (x,), dim)[0] if x.dim() else x.clone()


def _place(x: torch.Tensor, dim: int) -> torch.Tensor:
    """The number of each element along `dim`."""
    shape = [1] * x.dim()
    shape[dim] = x.shape[dim]
    return torch.arange(x.shape[dim]).view(shape).expand(x.shape)


def _cumulative(compare: Callable[[Any, Any], torch.Tensor]) -> Callable[..., Any]:
    def combine(first: Pair, second: Pair) -> Pair:
        (a, i), (b, j) = first, second
        later = compare(b, a)
        if a.dtype.is_floating_point:
            later = (later & (a == a)) | (b != b)
        return torch.where(later, b, a), torch.where(later, j, i)

    def decompose(x: torch.Tensor, dim: int) -> Any:
        """`torch.cummax` or `torch.cummin`: the last place of what is the same."""
        if not x.dim():
            return x.clone(), torch.zeros_like(x, dtype=torch.int64)
        return _scan(combine, (x, _place(x, dim)), dim)

    return decompose


def _sort(x: torch.Tensor, dim: int, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """With the places where the elements were; those that are the same stay in order, NaN are largest."""
    x = x.movedim(dim, -1)
    mine, other = x.unsqueeze(-1), x.unsqueeze(-2)
    precedes = other > mine if descending else other < mine
    same = mine == other
    if x.dtype.is_floating_point:
        no_number, other_is_none = mine != mine, other != other
        one, two = (other_is_none, no_number) if descending else (no_number, other_is_none)
        precedes = precedes | (one & ~two)
        same = same | (no_number & other_is_none)
    places = torch.arange(x.shape[-1])
    precedes = precedes | (same & (places < places.unsqueeze(-1)))
    ranks = precedes.to(torch.int64).sum(-1)
    # Of each rank the element that has it.
    chosen = ranks.unsqueeze(-2) == places.unsqueeze(-1)
    # A sum would lose the sign of zeros.
    least = -math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    values = torch.where(chosen, x.unsqueeze(-2), x.new_full((), least)).amax(-1)
    found = torch.where(chosen, places, places.new_zeros(())).sum(-1)
    return values.movedim(-1, dim), found.movedim(-1, dim)


def sort(x: torch.Tensor, dim: int = -1, descending: bool = False) -> Any:
    """`torch.sort`."""
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if x.shape[dim] > LONGEST or x.dtype == torch.bool:
        return NotImplemented
    return _sort(x, dim, descending)


def sort_stable(x: torch.Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """`torch.sort` that says whether the same elements stay in order: they do."""
    return sort(x, dim, descending)


def topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """`torch.topk`."""
    found = sort(x, dim, largest)
    if found is NotImplemented or not x.dim():
        return NotImplemented
    return tuple(part.narrow(dim, 0, k).clone() for part in found)


def kthvalue(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """`torch.kthvalue`."""
    found = sort(x, dim)
    if found is NotImplemented or not x.dim():
        return NotImplemented
    parts = tuple(part.narrow(dim, k - 1, 1) for part in found)
    return tuple((part if keepdim else part.squeeze(dim)).clone() for part in parts)


def isin(elements: torch.Tensor, others: torch.Tensor, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """`torch.isin`, of few elements to compare with."""
    if others.numel() > LONGEST:
        return NotImplemented
    found = (elements.unsqueeze(-1) == others.reshape(-1)).any(-1)
    return ~found if invert else found


def cdist(x: torch.Tensor, y: torch.Tensor, p: float, compute_mode: int | None = None) -> Any:
    """`torch.cdist`."""
    difference = (x.unsqueeze(-2) - y.unsqueeze(-3)).abs()
    if p == 0:
        return (difference != 0).to(x.dtype).sum(-1)
    if p == 1:
        return difference.sum(-1)
    if p == math.inf:
        return difference.amax(-1)
    return (difference * difference).sum(-1).sqrt() if p == 2 else difference.pow(p).sum(-1).pow(1 / p)


def get_orders_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file."""
    return {
        aten._cdist_forward.default: cdist,
        aten.cummax.default: _cumulative(lambda x, y: x >= y),
        aten.cummin.default: _cumulative(lambda x, y: x <= y),
        aten.cumprod.default: cumprod,
        aten.cumsum.default: cumsum,
        aten.isin.Tensor_Tensor: isin,
        aten.kthvalue.default: kthvalue,
        aten.logaddexp.default: logaddexp,
        aten.logaddexp2.default: logaddexp2,
        aten.logcumsumexp.default: logcumsumexp,
        aten.sort.default: sort,
        aten.sort.stable: sort_stable,
        aten.topk.default: topk,
    }
