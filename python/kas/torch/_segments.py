# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on parts of rows whose sizes are data: bags, segments, histograms, what is repeated or not zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._indexing import read_rows, write_rows
from ._loops import ELEMENTS, Result, compute, elementwise, get_type, pointwise

aten = torch.ops.aten


def _constants(**numbers: int) -> str:
    return "\n".join(f"%{name} = arith.constant {value} : index" for name, value in numbers.items())


def pool_bags(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    mode: int,
    per_sample_weights: torch.Tensor | None,
    include_last_offset: bool,
    padding_idx: int,
) -> Any:
    """The result of `torch.nn.functional.embedding_bag`."""
    if weight.dtype != torch.float32 or not weight.numel() or not indices.numel():
        return NotImplemented
    (rows, width), count = weight.shape, indices.shape[0]
    bags = offsets.shape[0] - include_last_offset
    if not bags:
        return NotImplemented
    places = [weight, indices.to(torch.int64), torch.cat([offsets.to(torch.int64), torch.full((1,), count)])]
    scales = [] if per_sample_weights is None else [per_sample_weights]
    combined = {
        0: "%sum = arith.addf %total, %scaled : f32",
        1: "%sum = arith.addf %total, %scaled : f32",
        2: """%is_larger = arith.cmpf ugt, %scaled, %total : f32
    %is_first = arith.cmpi eq, %number, %zero : index
    %is_chosen = arith.ori %is_larger, %is_first : i1
    %sum = arith.select %is_chosen, %scaled, %total : f32""",
    }[mode]
    given = get_type((count,), torch.int64)
    body = f"""%bag = linalg.index 0 : index
%column = linalg.index 1 : index
%next_bag = arith.addi %bag, %one : index
%begin64 = tensor.extract %2[%bag] : {get_type(places[2].shape, torch.int64)}
%end64 = tensor.extract %2[%next_bag] : {get_type(places[2].shape, torch.int64)}
%begin = arith.index_cast %begin64 : i64 to index
%end = arith.index_cast %end64 : i64 to index
%is_begun = arith.cmpi sge, %begin, %zero : index
%is_ended = arith.cmpi sle, %end, %count : index
%is_ordered = arith.cmpi sle, %begin, %end : index
%is_within = arith.andi %is_begun, %is_ended : i1
%is_bag = arith.andi %is_within, %is_ordered : i1
cf.assert %is_bag, "offsets require an order and at most {count}, the number of places"
%found:2 = scf.for %i = %begin to %end step %one iter_args(%total = %nothing, %number = %zero) -> (f32, index) {{
    %place64 = tensor.extract %1[%i] : {given}
    %place = arith.index_cast %place64 : i64 to index
    %is_least = arith.cmpi sge, %place, %zero : index
    %is_row = arith.cmpi slt, %place, %rows : index
    %is_there = arith.andi %is_least, %is_row : i1
    cf.assert %is_there, "index is out of bounds for a dimension of size {rows}"
    %element = tensor.extract %0[%place, %column] : {get_type(weight.shape, weight.dtype)}
    {f"%scale = tensor.extract %3[%i] : {get_type((count,), torch.float32)}" if scales else ""}
    %scaled = {"arith.mulf %element, %scale : f32" if scales else "arith.addf %element, %minus_zero : f32"}
    {combined}
    %more = arith.addi %number, %one : index
    %counts = arith.cmpi ne, %place, %padding : index
    %new_total = arith.select %counts, %sum, %total : f32
    %new_number = arith.select %counts, %more, %number : index
    scf.yield %new_total, %new_number : f32, index
}}
%least_number = arith.maxsi %found#1, %one : index
%number32 = arith.index_cast %least_number : index to i64
%divisor = arith.sitofp %number32 : i64 to f32
%mean = arith.divf %found#0, %divisor : f32
yield {"%mean" if mode == 1 else "%found#0"}"""
    outside = f"""{_constants(zero=0, one=1, count=count, rows=rows, padding=padding_idx)}
%nothing = arith.constant 0.0 : f32
%minus_zero = arith.constant -0.0 : f32"""
    return pointwise([*places, *scales], [Result((bags, width), torch.float32)], body, outside)


def embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """`torch.nn.functional.embedding_bag` where it has no gradient."""
    result = pool_bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
    if result is NotImplemented:
        return result
    # What else it gives, where anything reads it, is left to PyTorch.
    others = aten._embedding_bag.default(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
    return result, *others[1:]


def get_sizes(data: torch.Tensor, axis: int) -> tuple[int, int, int]:
    return math.prod(data.shape[:axis]), data.shape[axis], math.prod(data.shape[axis + 1 :])


def get_ends(given: torch.Tensor, outer: int, are_lengths: bool) -> torch.Tensor:
    """Where segments begin and the last one ends, for each row."""
    ends = given.to(torch.int64).reshape(outer, -1)
    return torch.cat([torch.zeros((outer, 1), dtype=torch.int64), ends.cumsum(1)], 1) if are_lengths else ends


def _read_segment(ends: torch.Tensor, reaches: str, size: int) -> str:
    """`%begin` and `%end` of `%segment` in `%row` of the argument 1, `ends`, checked; all reach to `size` or less."""
    numbers = get_type(ends.shape, torch.int64)
    return f"""%next = arith.addi %segment, %one : index
%begin64 = tensor.extract %1[%row, %segment] : {numbers}
%end64 = tensor.extract %1[%row, %next] : {numbers}
%last64 = tensor.extract %1[%row, %segments] : {numbers}
%begin = arith.index_cast %begin64 : i64 to index
%end = arith.index_cast %end64 : i64 to index
%last = arith.index_cast %last64 : i64 to index
%is_begun = arith.cmpi sge, %begin, %zero : index
%is_ended = arith.cmpi sle, %end, %size : index
%is_ordered = arith.cmpi sle, %begin, %end : index
%is_all = arith.cmpi {reaches}, %last, %size : index
%is_within = arith.andi %is_begun, %is_ended : i1
%is_segment = arith.andi %is_within, %is_ordered : i1
%is_fine = arith.andi %is_segment, %is_all : i1
cf.assert %is_fine, "segments require lengths of at least 0 that sum to {size}\""""


def segment_reduce(
    data: torch.Tensor,
    reduce: str,
    *,
    lengths: torch.Tensor | None = None,
    indices: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Any:
    """`torch.segment_reduce`."""
    given = lengths if offsets is None else offsets
    if data.dtype != torch.float32 or not data.numel() or given is None or not given.numel():
        return NotImplemented
    outer, size, inner = get_sizes(data, axis)
    ends = get_ends(given, outer, offsets is None)
    segments = ends.shape[1] - 1
    if not segments:
        return NotImplemented
    neutral = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[reduce]
    start = neutral if initial is None else float(initial)
    number = {math.inf: "0x7F800000", -math.inf: "0xFF800000"}.get(start, repr(start))
    if math.isnan(start) or "e" in number:
        return NotImplemented
    name = {"sum": "addf", "mean": "addf", "prod": "mulf", "max": "maximumf", "min": "minimumf"}[reduce]
    rows = data.reshape(outer, size, inner)
    body = f"""%row = linalg.index 0 : index
%segment = linalg.index 1 : index
%column = linalg.index 2 : index
{_read_segment(ends, "sle" if unsafe or offsets is not None else "eq", size)}
%found = scf.for %i = %begin to %end step %one iter_args(%total = %start) -> (f32) {{
  %element = tensor.extract %0[%row, %i, %column] : {get_type(rows.shape, data.dtype)}
  %new = arith.{name} %total, %element : f32
  scf.yield %new : f32
}}
%length = arith.subi %end64, %begin64 : i64
%divisor = arith.sitofp %length : i64 to f32
%quotient = arith.divf %found, %divisor : f32
%is_empty = arith.cmpi eq, %begin, %end : index
%mean = arith.select %is_empty, %{"none" if initial is None else "start"}, %quotient : f32
yield {"%mean" if reduce == "mean" else "%found"}"""
    outside = f"""{_constants(zero=0, one=1, size=size, segments=segments)}
%start = arith.constant {number} : f32
%none = arith.constant 0x7FC00000 : f32"""
    shape = (outer, segments, inner)
    found = pointwise([rows, ends], [Result(shape, torch.float32)], body, outside)
    return found.reshape(*data.shape[:axis], segments, *data.shape[axis + 1 :])


def nonzero_static(x: torch.Tensor, *, size: int, fill_value: int = -1) -> Any:
    """`torch.nonzero_static`."""
    if not x.numel() or not x.dim() or not size:
        return NotImplemented
    flags = (x != 0).reshape(-1).to(torch.int32)
    shape, type = (size, x.dim()), get_type((size, x.dim()), torch.int64)
    lines, last = [], "%so_far"
    for dim, length in enumerate(x.shape):
        lines.append(f"""  %length{dim} = arith.constant {length} : index
  %stride{dim} = arith.constant {math.prod(x.shape[dim + 1 :])} : index
  %dim{dim} = arith.constant {dim} : index
  %quotient{dim} = arith.divui %i, %stride{dim} : index
  %place{dim} = arith.remui %quotient{dim}, %length{dim} : index
  %number{dim} = arith.index_cast %place{dim} : index to i64
  %old{dim} = tensor.extract {last}[%row, %dim{dim}] : {type}
  %new{dim} = arith.select %writes, %number{dim}, %old{dim} : i64
  %written{dim} = tensor.insert %new{dim} into {last}[%row, %dim{dim}] : {type}""")
        last = f"%written{dim}"
    body = f"""{_constants(zero=0, one=1, count=flags.shape[0], size=size, last=size - 1)}
%clear = arith.constant 0 : i32
%all:2 = scf.for %i = %zero to %count step %one iter_args(%so_far = %1, %next = %zero) -> ({type}, index) {{
  %bit = tensor.extract %0[%i] : {get_type(flags.shape, torch.int32)}
  %set = arith.cmpi ne, %bit, %clear : i32
  %is_open = arith.cmpi slt, %next, %size : index
  %writes = arith.andi %set, %is_open : i1
  %row = arith.minsi %next, %last : index
{chr(10).join(lines)}
  %more = arith.addi %next, %one : index
  %following = arith.select %set, %more, %next : index
  scf.yield {last}, %following : {type}, index
}}
return %all#0"""
    filled = torch.full(shape, fill_value, dtype=torch.int64)
    return compute([flags, filled], [Result(shape, torch.int64)], body)


def repeat_interleave(repeats: torch.Tensor, *, output_size: int | None = None) -> Any:
    """`torch.repeat_interleave` of numbers, with a sum that is known."""
    if not output_size or not repeats.numel():
        return NotImplemented
    numbers = repeats.to(torch.int64)
    type = get_type((output_size,), torch.int64)
    body = f"""{_constants(zero=0, one=1, count=numbers.shape[0], size=output_size)}
%all:2 = scf.for %i = %zero to %count step %one iter_args(%before = %1, %begin = %zero) -> ({type}, index) {{
  %times64 = tensor.extract %0[%i] : {get_type(numbers.shape, torch.int64)}
  %times = arith.index_cast %times64 : i64 to index
  %end = arith.addi %begin, %times : index
  %is_some = arith.cmpi sge, %times, %zero : index
  %is_open = arith.cmpi sle, %end, %size : index
  %is_fine = arith.andi %is_some, %is_open : i1
  cf.assert %is_fine, "repeats require numbers of at least 0 with a sum of {output_size}"
  %number = arith.index_cast %i : index to i64
  %after = scf.for %k = %begin to %end step %one iter_args(%so_far = %before) -> ({type}) {{
    %written = tensor.insert %number into %so_far[%k] : {type}
    scf.yield %written : {type}
  }}
  scf.yield %after, %end : {type}, index
}}
%is_all = arith.cmpi eq, %all#1, %size : index
cf.assert %is_all, "repeats require numbers of at least 0 with a sum of {output_size}"
return %all#0"""
    empty = torch.zeros((output_size,), dtype=torch.int64)
    return compute([numbers, empty], [Result((output_size,), torch.int64)], body)


# ---- Histograms


def _get_range(x: torch.Tensor, least: float, most: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The ends of a histogram: those that are given, or of the data, which must be finite."""
    if least != most:
        return torch.full((), least, dtype=x.dtype), torch.full((), most, dtype=x.dtype)
    body = f"""%none = arith.subf %x0, %x0 : {ELEMENTS[x.dtype]}
%finite = arith.cmpf ord, %none, %none : {ELEMENTS[x.dtype]}
cf.assert %finite, "range of a histogram is not finite"
yield %x0"""
    first, last = elementwise([x.amin()], body), elementwise([x.amax()], body)
    is_one = first == last
    return torch.where(is_one, first - 1, first), torch.where(is_one, last + 1, last)


def _count(places: torch.Tensor, is_counted: torch.Tensor, bins: int, weight: torch.Tensor) -> torch.Tensor:
    """The sums of weights at places; what is not counted goes past the last."""
    places = torch.where(is_counted, places, torch.full_like(places, bins))
    return write_rows(weight.new_zeros((bins + 1, 1)), places, weight.reshape(-1, 1), "sum")[:bins, 0].clone()


def histc(x: torch.Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """`torch.histc`."""
    if x.dtype != torch.float32 or not x.numel() or min > max:
        return NotImplemented
    x = x.reshape(-1)
    first, last = _get_range(x, min, max)
    is_counted = (x >= first) & (x <= last)
    places = torch.where(is_counted, (x - first) * bins / (last - first), torch.zeros_like(x)).to(torch.int64)
    return _count(places.clamp(max=bins - 1), is_counted, bins, torch.ones_like(x))


def _histogram(x: torch.Tensor, edges: torch.Tensor, weight: torch.Tensor | None, density: bool) -> Any:
    x = x.reshape(-1)
    bins = edges.shape[0] - 1
    is_counted = (x >= edges[0]) & (x <= edges[-1])
    places = (torch.searchsorted(edges, x, right=True) - 1).clamp(0, bins - 1)
    found = _count(places, is_counted, bins, torch.ones_like(x) if weight is None else weight.reshape(-1))
    if density:
        found = found / (found.sum() * (edges[1:] - edges[:-1]))
    return found, edges.clone()


def histogram_of_bins(
    x: torch.Tensor, bins: torch.Tensor, *, weight: torch.Tensor | None = None, density: bool = False
) -> Any:
    """`torch.histogram` between edges."""
    if x.dtype != torch.float32 or bins.dtype != x.dtype or bins.shape[0] < 2:
        return NotImplemented
    if not x.numel():
        return x.new_full((bins.shape[0] - 1,), math.nan if density else 0.0), bins.clone()
    return _histogram(x, bins, weight, density)


def histogram(
    x: torch.Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: torch.Tensor | None = None,
    density: bool = False,
) -> Any:
    """`torch.histogram` with bins of one size."""
    if x.dtype != torch.float32 or not x.numel():
        return NotImplemented
    first, last = _get_range(x, *(range or (0.0, 0.0)))
    step = (last - first) / bins
    numbers = torch.arange(bins + 1, dtype=x.dtype)
    edges = torch.where(numbers < (bins + 1) // 2, first + step * numbers, last - step * (bins - numbers))
    return _histogram(x, edges, weight, density)


# ---- Places that are known


def _get_strided(x: torch.Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Any:
    """The numbers of elements of a strided view; None where they are not all of the tensor."""
    if not x.is_contiguous() or not x.numel() or 0 in size:
        return None
    first = 0 if offset is None else offset - x.storage_offset()
    last = first + sum((length - 1) * step for length, step in zip(size, stride))
    if first < 0 or last >= x.numel():
        return None
    places = torch.full((), int(first), dtype=torch.int64)
    for dim, (length, step) in enumerate(zip(size, stride)):
        places = places + (torch.arange(length) * step).view([-1] + [1] * (len(size) - dim - 1))
    return places.reshape(-1)


def as_strided_copy(x: torch.Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Any:
    """`torch.as_strided_copy`."""
    places = _get_strided(x, size, stride, offset)
    return NotImplemented if places is None else read_rows(x.reshape(-1, 1), places).reshape(size)


def as_strided_scatter(
    x: torch.Tensor, source: torch.Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Any:
    """`torch.as_strided_scatter`."""
    places = _get_strided(x, size, stride, offset)
    if places is None or x.dtype not in ELEMENTS or source.dtype != x.dtype:
        return NotImplemented
    return write_rows(x.reshape(-1, 1), places, source.reshape(-1, 1)).reshape(x.shape)


def pdist(x: torch.Tensor, p: float = 2.0) -> Any:
    """`torch.nn.functional.pdist`: the distances of rows, each pair once."""
    size = x.shape[0]
    if not 2 <= size <= 64 or not x.numel():
        return NotImplemented
    distances = aten._cdist_forward.default(x, x, p, None)
    return torch.cat([distances[row, row + 1 :] for row in range(size - 1)])


def get_segments_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file."""
    return {
        aten._embedding_bag_forward_only.default: embedding_bag,
        aten._pdist_forward.default: pdist,
        aten.as_strided_copy.default: as_strided_copy,
        aten.as_strided_scatter.default: as_strided_scatter,
        aten.histc.default: histc,
        aten.histogram.bin_ct: histogram,
        aten.histogram.bins_tensor: histogram_of_bins,
        aten.nonzero_static.default: nonzero_static,
        aten.repeat_interleave.Tensor: repeat_interleave,
        aten.segment_reduce.default: segment_reduce,
    }
