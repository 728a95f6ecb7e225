# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums up to each place, and orders of rows, which torch-mlir leaves to a dialect of its own.

Sums up to each place are made in steps of doubled length, orders by merging parts of doubled length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ._loops import ELEMENTS, Result, compute, get_type, pointwise

aten = torch.ops.aten
LONGEST = 64
"""What each element is compared with."""

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


def _compare(descending: bool, is_float: bool, element: str) -> str:
    """Whether `%b`, which comes later, is to be before `%a`: NaN are largest."""
    if not is_float:
        return f"%precedes = arith.cmpi {'sgt' if descending else 'slt'}, %b, %a : {element}"
    one, two = ("b", "a") if descending else ("a", "b")
    return f"""%first = arith.cmpf {"ogt" if descending else "olt"}, %b, %a : {element}
%is_none = arith.cmpf uno, %{one}, %{one} : {element}
%is_one = arith.cmpf ord, %{two}, %{two} : {element}
%is_larger = arith.andi %is_none, %is_one : i1
%precedes = arith.ori %first, %is_larger : i1"""


def _merge(level: int, width: int, x: torch.Tensor, descending: bool) -> str:
    """Merges sorted parts of `width` elements to ones of twice the size, with the places where elements were."""
    values, places = get_type(x.shape, x.dtype), get_type(x.shape, torch.int64)
    both, element = f"{values}, {places}", ELEMENTS[x.dtype]
    return f"""%width{level} = arith.constant {width} : index
%step{level} = arith.constant {2 * width} : index
%empty_values{level} = tensor.empty() : {values}
%empty_places{level} = tensor.empty() : {places}
%values{level + 1}, %places{level + 1} = scf.for %row = %zero to %rows step %one
    iter_args(%v0 = %empty_values{level}, %p0 = %empty_places{level}) -> ({both}) {{
  %block:2 = scf.for %begin = %zero to %size step %step{level} iter_args(%v1 = %v0, %p1 = %p0) -> ({both}) {{
    %half = arith.addi %begin, %width{level} : index
    %middle = arith.minsi %half, %size : index
    %whole = arith.addi %begin, %step{level} : index
    %end = arith.minsi %whole, %size : index
    %merged:4 = scf.for %k = %begin to %end step %one
        iter_args(%i = %begin, %j = %middle, %v2 = %v1, %p2 = %p1) -> (index, index, {both}) {{
      %left = arith.minsi %i, %last : index
      %right = arith.minsi %j, %last : index
      %a = tensor.extract %values{level}[%row, %left] : {values}
      %b = tensor.extract %values{level}[%row, %right] : {values}
      %place_a = tensor.extract %places{level}[%row, %left] : {places}
      %place_b = tensor.extract %places{level}[%row, %right] : {places}
      {_compare(descending, x.dtype.is_floating_point, element)}
      %no_left = arith.cmpi sge, %i, %middle : index
      %is_right = arith.cmpi slt, %j, %end : index
      %wanted = arith.ori %no_left, %precedes : i1
      %takes = arith.andi %wanted, %is_right : i1
      %value = arith.select %takes, %b, %a : {element}
      %place = arith.select %takes, %place_b, %place_a : i64
      %v3 = tensor.insert %value into %v2[%row, %k] : {values}
      %p3 = tensor.insert %place into %p2[%row, %k] : {places}
      %next_i = arith.addi %i, %one : index
      %next_j = arith.addi %j, %one : index
      %new_i = arith.select %takes, %i, %next_i : index
      %new_j = arith.select %takes, %next_j, %j : index
      scf.yield %new_i, %new_j, %v3, %p3 : index, index, {both}
    }}
    scf.yield %merged#2, %merged#3 : {both}
  }}
  scf.yield %block#0, %block#1 : {both}
}}"""


def _sort(x: torch.Tensor, dim: int, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """With the places where the elements were; those that are the same stay in order, NaN are largest."""
    moved = x.movedim(dim, -1)
    size = moved.shape[-1]
    rows = moved.reshape(-1, size)
    places = torch.arange(size).expand(rows.shape)
    level, lines = 0, []
    for name, value in (("zero", 0), ("one", 1), ("rows", rows.shape[0]), ("size", size), ("last", size - 1)):
        lines.append(f"%{name} = arith.constant {value} : index")
    while (1 << level) < size:
        lines.append(_merge(level, 1 << level, rows, descending))
        level += 1
    body = "\n".join(lines).replace("%values0[", "%0[").replace("%places0[", "%1[")
    if not level:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    results = [Result(rows.shape, rows.dtype), Result(rows.shape, torch.int64)]
    found = compute([rows, places], results, f"{body}\nreturn %values{level}, %places{level}")
    return tuple(part.reshape(moved.shape).movedim(-1, dim).contiguous() for part in found)


def sort(x: torch.Tensor, dim: int = -1, descending: bool = False) -> Any:
    """`torch.sort`."""
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if x.dtype not in ELEMENTS or not x.numel():
        return NotImplemented
    return _sort(x, dim, descending)


def sort_stable(x: torch.Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """`torch.sort` that says whether the same elements stay in order: they do."""
    return sort(x, dim, descending)


def topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """`torch.topk`."""
    found = sort(x, dim, largest)
    if found is NotImplemented or not x.dim():
        return found
    return tuple(part.narrow(dim, 0, k).clone() for part in found)


def _choose(found: Pair, dim: int, keepdim: bool) -> Pair:
    return tuple((part if keepdim else part.squeeze(dim)).clone() for part in found)


def kthvalue(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """`torch.kthvalue`."""
    found = sort(x, dim)
    if found is NotImplemented or not x.dim():
        return found
    return _choose(tuple(part.narrow(dim, k - 1, 1) for part in found), dim, keepdim)


def _median(skips: bool) -> Callable[..., Any]:
    def decompose(x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
        """`torch.median` and `torch.nanmedian`: of an even number the lower one."""
        found = sort(x, dim)
        if found is NotImplemented or not x.dim():
            return found
        size = x.shape[dim]
        if not x.dtype.is_floating_point:
            return _choose(tuple(part.narrow(dim, (size - 1) // 2, 1) for part in found), dim, keepdim)
        numbers = (x == x).to(torch.int64).sum(dim, keepdim=True)
        if skips:
            place = torch.div(torch.where(numbers > 0, numbers - 1, numbers), 2, rounding_mode="floor")
        else:
            place = torch.where(numbers < size, numbers, torch.full_like(numbers, (size - 1) // 2))
        return _choose(tuple(part.gather(dim, place) for part in found), dim, keepdim)

    return decompose


def _median_of_all(skips: bool) -> Callable[..., Any]:
    find = _median(skips)

    def decompose(x: torch.Tensor) -> Any:
        found = find(x.reshape(-1), 0)
        return found if found is NotImplemented else found[0]

    return decompose


def searchsorted(
    boundaries: torch.Tensor,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> Any:
    """`torch.searchsorted`, by halves."""
    if not isinstance(x, torch.Tensor):
        x = torch.full((), x, dtype=boundaries.dtype)
    if sorter is not None:
        boundaries = boundaries.gather(-1, sorter)
    dtype = torch.promote_types(boundaries.dtype, x.dtype)
    if boundaries.dtype != x.dtype or dtype not in ELEMENTS or not boundaries.numel() or not x.numel():
        return NotImplemented
    size, after = boundaries.shape[-1], right or side == "right"
    of_rows = boundaries.dim() > 1
    rows = boundaries.reshape(-1, size)
    given = x.reshape(rows.shape[0], -1) if of_rows else x.reshape(1, -1)
    kind = "cmpf o" if dtype.is_floating_point else "cmpi s"
    body = f"""%row = linalg.index 0 : index
%column = linalg.index 1 : index
%wanted = tensor.extract %1[%row, %column] : {get_type(given.shape, dtype)}
%found:2 = scf.for %i = %zero to %halves step %one iter_args(%begin = %zero, %end = %size) -> (index, index) {{
  %sum = arith.addi %begin, %end : index
  %middle = arith.shrui %sum, %one : index
  %place = arith.minsi %middle, %last : index
  %value = tensor.extract %0[%row, %place] : {get_type(rows.shape, dtype)}
  %is_past = arith.{kind}{"gt" if after else "ge"}, %value, %wanted : {ELEMENTS[dtype]}
  %is_open = arith.cmpi slt, %begin, %end : index
  %next = arith.addi %middle, %one : index
  %moved = arith.select %is_past, %begin, %next : index
  %cut = arith.select %is_past, %middle, %end : index
  %new_begin = arith.select %is_open, %moved, %begin : index
  %new_end = arith.select %is_open, %cut, %end : index
  scf.yield %new_begin, %new_end : index, index
}}
%number = arith.index_cast %found#0 : index to i64
yield %number"""
    names = (("zero", 0), ("one", 1), ("size", size), ("last", size - 1), ("halves", size.bit_length()))
    constants = "\n".join(f"%{name} = arith.constant {value} : index" for name, value in names)
    found = pointwise([rows, given], [Result(given.shape, torch.int64)], body, constants).reshape(x.shape)
    return found.to(torch.int32) if out_int32 else found


def bucketize(x: Any, boundaries: torch.Tensor, *, out_int32: bool = False, right: bool = False) -> Any:
    """`torch.bucketize`."""
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


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
        return torch.where(difference > 0, torch.ones_like(difference), difference).sum(-1)
    if p == 1:
        return difference.sum(-1)
    if p == math.inf:
        return NotImplemented
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
        aten.bucketize.Scalar: bucketize,
        aten.bucketize.Tensor: bucketize,
        aten.kthvalue.default: kthvalue,
        aten.logaddexp.default: logaddexp,
        aten.logaddexp2.default: logaddexp2,
        aten.logcumsumexp.default: logcumsumexp,
        aten.median.default: _median_of_all(False),
        aten.median.dim: _median(False),
        aten.nanmedian.default: _median_of_all(True),
        aten.nanmedian.dim: _median(True),
        aten.searchsorted.Scalar: searchsorted,
        aten.searchsorted.Tensor: searchsorted,
        aten.sort.default: sort,
        aten.sort.stable: sort_stable,
        aten.topk.default: topk,
    }
