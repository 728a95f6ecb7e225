# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that read and write at places that are given as integers, each of which is checked.

All of them read or write rows of a matrix: places along several dimensions become one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._loops import ELEMENTS, Result, broadcast, compute, elementwise, get_type

aten = torch.ops.aten
INTEGERS = (torch.int64, torch.int32)


def check_indices(places: torch.Tensor, size: int, wraps: bool = False) -> torch.Tensor:
    """The places as int64, an error where one is not less than `size`. `wraps`: those below 0 count from the end."""
    body = f"""%size = arith.constant {size} : i64
%zero = arith.constant 0 : i64
%least = arith.constant {-size if wraps else 0} : i64
%after = arith.cmpi sge, %x0, %least : i64
%before = arith.cmpi slt, %x0, %size : i64
%within = arith.andi %after, %before : i1
cf.assert %within, "index is out of bounds for a dimension of size {size}"
%negative = arith.cmpi slt, %x0, %zero : i64
%turned = arith.addi %x0, %size : i64
%place = arith.select %negative, %turned, %x0 : i64
yield %place"""
    found: torch.Tensor = elementwise([places.to(torch.int64)], body)
    return found


def read_rows(data: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Rows of a matrix; the places are those of rows."""
    rows: torch.Tensor = aten.embedding(data, places)
    return rows


def _combine(reduce: str, dtype: torch.dtype) -> str:
    """`%new` of what was there and what comes."""
    kind = "f" if dtype.is_floating_point else "i"
    extreme = {"amax": "maximumf" if kind == "f" else "maxsi", "amin": "minimumf" if kind == "f" else "minsi"}
    name = {"sum": f"add{kind}", "prod": f"mul{kind}", **extreme}[reduce]
    return f"%new = arith.{name} %old, %element : {ELEMENTS[dtype]}"


def write_rows(data: torch.Tensor, places: torch.Tensor, source: torch.Tensor, reduce: str = "") -> torch.Tensor:
    """A matrix with rows of the source at places, one after another: in their place, or combined with what is there."""
    if data.dtype == torch.bool:
        return write_rows(data.to(torch.int32), places, source.to(torch.int32), reduce) != 0
    (_, width), count = data.shape, places.shape[0]
    whole, part, numbers = (get_type(tensor.shape, tensor.dtype) for tensor in (data, source, places))
    combined = _combine(reduce, data.dtype) if reduce else ""
    body = f"""%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%count = arith.constant {count} : index
%width = arith.constant {width} : index
%all = scf.for %row = %zero to %count step %one iter_args(%before = %0) -> ({whole}) {{
  %number = tensor.extract %1[%row] : {numbers}
  %place = arith.index_cast %number : i64 to index
  %after = scf.for %column = %zero to %width step %one iter_args(%so_far = %before) -> ({whole}) {{
    %element = tensor.extract %2[%row, %column] : {part}
    {f"%old = tensor.extract %so_far[%place, %column] : {whole}" if reduce else ""}
    {combined}
    %next = tensor.insert {"%new" if reduce else "%element"} into %so_far[%place, %column] : {whole}
    scf.yield %next : {whole}
  }}
  scf.yield %after : {whole}
}}
return %all"""
    found: torch.Tensor = compute([data, places, source], [Result(data.shape, data.dtype)], body)
    return found


# ---- Along one dimension: index_select, index_add, index_copy, index_fill, index_reduce


def _to_rows(data: torch.Tensor, dim: int) -> torch.Tensor:
    moved = data.movedim(dim, 0) if data.dim() else data.reshape(1)
    return moved.reshape(moved.shape[0], -1)


def _from_rows(rows: torch.Tensor, like: torch.Tensor, dim: int) -> torch.Tensor:
    if not like.dim():
        return rows.reshape(())
    shape = list(like.shape)
    size = shape.pop(dim)
    return rows.reshape(size, *shape).movedim(0, dim).contiguous()


def _writes_nothing(data: torch.Tensor, places: torch.Tensor) -> bool:
    return not places.numel() or not data.numel()


def _is_known(*tensors: torch.Tensor) -> bool:
    """Whether the elements are of types that loops take, and there are some."""
    return all((tensor.dtype in ELEMENTS or tensor.dtype == torch.bool) and tensor.numel() for tensor in tensors)


def index_select(data: torch.Tensor, dim: int, places: torch.Tensor) -> Any:
    """`torch.index_select`."""
    if not _is_known(data, places):
        return NotImplemented
    places = check_indices(places.reshape(-1), data.shape[dim] if data.dim() else 1)
    rows = read_rows(_to_rows(data, dim), places)
    if not data.dim():
        return rows.reshape(())
    shape = list(data.shape)
    shape.pop(dim)
    return rows.reshape(places.shape[0], *shape).movedim(0, dim).contiguous()


def _write_along(
    data: torch.Tensor, dim: int, places: torch.Tensor, source: torch.Tensor, reduce: str = "", wraps: bool = False
) -> torch.Tensor:
    places = check_indices(places.reshape(-1), data.shape[dim] if data.dim() else 1, wraps)
    rows = write_rows(_to_rows(data, dim), places, _to_rows(source, dim if source.dim() else 0), reduce)
    return _from_rows(rows, data, dim)


def index_add(data: torch.Tensor, dim: int, places: torch.Tensor, source: torch.Tensor, *, alpha: Any = 1) -> Any:
    """`torch.index_add`."""
    if _writes_nothing(data, places):
        return data.clone()
    if not _is_known(data, places, source) or data.dtype == torch.bool or source.dtype != data.dtype:
        return NotImplemented
    source = source if alpha == 1 else source * alpha
    return _write_along(data, dim, places, source.to(data.dtype), "sum")


def index_copy(data: torch.Tensor, dim: int, places: torch.Tensor, source: torch.Tensor) -> Any:
    """`torch.index_copy`."""
    if _writes_nothing(data, places):
        return data.clone()
    if not _is_known(data, places, source) or source.dtype != data.dtype:
        return NotImplemented
    return _write_along(data, dim, places, source)


def index_fill(data: torch.Tensor, dim: int, places: torch.Tensor, value: Any) -> Any:
    """`torch.index_fill`."""
    if _writes_nothing(data, places):
        return data.clone()
    if not _is_known(data, places):
        return NotImplemented
    shape = list(data.shape)
    if data.dim():
        shape[dim] = places.numel()
    if isinstance(value, torch.Tensor):
        source = value.to(data.dtype).expand(shape)
    else:
        source = torch.full(shape, value, dtype=data.dtype)
    return _write_along(data, dim, places, source, wraps=True)


def index_reduce(
    data: torch.Tensor,
    dim: int,
    places: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """`torch.index_reduce`."""
    if _writes_nothing(data, places):
        return data.clone()
    if not _is_known(data, places, source) or data.dtype == torch.bool or source.dtype != data.dtype:
        return NotImplemented
    places = check_indices(places.reshape(-1), data.shape[dim] if data.dim() else 1)
    rows = _reduce_rows(_to_rows(data, dim), places, _to_rows(source, dim if source.dim() else 0), reduce, include_self)
    return _from_rows(rows, data, dim)


def _reduce_rows(
    data: torch.Tensor, places: torch.Tensor, source: torch.Tensor, reduce: str, include_self: bool
) -> torch.Tensor:
    """`write_rows` with means, and of places that are written without what was there."""
    how = "sum" if reduce == "mean" else reduce
    if not include_self:
        data = write_rows(data, places, torch.full_like(source, _get_neutral(how, data.dtype)))
    found = write_rows(data, places, source, how)
    if reduce != "mean":
        return found
    count = torch.full_like(data, int(include_self))
    count = write_rows(count, places, torch.ones_like(source), "sum")
    count = torch.where(count == 0, torch.ones_like(count), count)
    return found / count if data.dtype.is_floating_point else torch.div(found, count, rounding_mode="floor")


def _get_neutral(reduce: str, dtype: torch.dtype) -> Any:
    if reduce in ("sum", "prod"):
        return int(reduce == "prod")
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    info = torch.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


# ---- A place of its own for each element: gather, scatter, take, put


def _get_offset(shape: Sequence[int], strides: Sequence[int], without: int | None = None) -> torch.Tensor:
    """Of each place of a shape the sum of its numbers, each times a stride."""
    total = torch.zeros((), dtype=torch.int64)
    for dim, (size, stride) in enumerate(zip(shape, strides)):
        if dim != without:
            row = torch.arange(size, dtype=torch.int64) * stride
            total = total + row.view([-1] + [1] * (len(shape) - dim - 1))
    return total


def _get_strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


def _find_elements(data: torch.Tensor, dim: int, places: torch.Tensor) -> torch.Tensor:
    """The number of the element of `data` for each of the places along a dimension."""
    if not data.dim():
        return check_indices(places.reshape(-1), 1)
    places = places.reshape(1) if not places.dim() else places
    dim, strides = dim % data.dim(), _get_strides(data.shape)
    found = check_indices(places, data.shape[dim]) * strides[dim]
    return (found + _get_offset(places.shape, strides, dim)).reshape(-1)


def gather(data: torch.Tensor, dim: int, places: torch.Tensor, *, sparse_grad: bool = False) -> Any:
    """`torch.gather`."""
    if not _is_known(data, places):
        return NotImplemented
    return read_rows(data.reshape(-1, 1), _find_elements(data, dim, places)).reshape(places.shape)


def _scatter(
    data: torch.Tensor, dim: int, places: torch.Tensor, source: Any, reduce: str = "", include_self: bool = True
) -> Any:
    if _writes_nothing(data, places):
        return data.clone()
    if not _is_known(data, places) or (reduce and data.dtype == torch.bool):
        return NotImplemented
    if isinstance(source, torch.Tensor):
        if source.dtype != data.dtype:
            return NotImplemented
        source = source[tuple(slice(size) for size in places.shape)] if source.dim() else source.expand(places.shape)
    else:
        source = torch.full(places.shape, source, dtype=data.dtype)
    rows, source = data.reshape(-1, 1), source.reshape(-1, 1)
    elements = _find_elements(data, dim, places)
    if reduce:
        return _reduce_rows(rows, elements, source, reduce, include_self).reshape(data.shape)
    return write_rows(rows, elements, source).reshape(data.shape)


def scatter(data: torch.Tensor, dim: int, places: torch.Tensor, source: Any) -> Any:
    """`torch.scatter` of a tensor or a number."""
    return _scatter(data, dim, places, source)


def scatter_combined(data: torch.Tensor, dim: int, places: torch.Tensor, source: Any, *, reduce: str) -> Any:
    """`torch.scatter` with the older names of sums and products."""
    return _scatter(data, dim, places, source, {"add": "sum", "multiply": "prod"}[reduce])


def scatter_add(data: torch.Tensor, dim: int, places: torch.Tensor, source: torch.Tensor) -> Any:
    """`torch.scatter_add`."""
    return _scatter(data, dim, places, source, "sum")


def scatter_reduce(
    data: torch.Tensor,
    dim: int,
    places: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """`torch.scatter_reduce`."""
    return _scatter(data, dim, places, source, reduce, include_self)


def take(data: torch.Tensor, places: torch.Tensor) -> Any:
    """`torch.take`."""
    if not _is_known(data, places):
        return NotImplemented
    elements = check_indices(places.reshape(-1), data.numel(), wraps=True)
    return read_rows(data.reshape(-1, 1), elements).reshape(places.shape)


def put(data: torch.Tensor, places: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> Any:
    """`torch.put`."""
    if _writes_nothing(data, places):
        return data.clone()
    if not _is_known(data, places, source) or (accumulate and data.dtype == torch.bool):
        return NotImplemented
    elements = check_indices(places.reshape(-1), data.numel(), wraps=True)
    rows = write_rows(data.reshape(-1, 1), elements, source.reshape(-1, 1), "sum" if accumulate else "")
    return rows.reshape(data.shape)


# ---- Along several dimensions: index, index_put


class _Places:
    """The places of an advanced index: along some dimensions, which come first in the rows that are read or written."""

    def __init__(self, data: torch.Tensor, indices: Sequence[torch.Tensor | None]):
        dims = [dim for dim, index in enumerate(indices) if index is not None]
        found = broadcast(*(index for index in indices if index is not None))
        self.shape = found[0].shape
        self.order = [*dims, *(dim for dim in range(data.dim()) if dim not in dims)]
        self.rest = [data.shape[dim] for dim in self.order[len(dims) :]]
        # The dimensions of places are where those were that they index, if these are side by side, else first.
        self.first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
        sizes = [data.shape[dim] for dim in dims]
        self.sizes = [*sizes, *self.rest]
        self.rows = math.prod(sizes)
        number = torch.zeros((), dtype=torch.int64)
        for index, size, stride in zip(found, sizes, _get_strides(sizes)):
            number = number + check_indices(index, size, wraps=True) * stride
        self.numbers = number.reshape(-1)

    def to_rows(self, data: torch.Tensor) -> torch.Tensor:
        return data.permute(self.order).reshape(self.rows, -1)

    def from_rows(self, rows: torch.Tensor) -> torch.Tensor:
        back = [self.order.index(dim) for dim in range(len(self.order))]
        return rows.reshape(self.sizes).permute(back).contiguous()

    def from_values(self, values: torch.Tensor) -> torch.Tensor:
        """Rows of what is written, which is broadcast."""
        count = len(self.shape)
        shape = [*self.rest[: self.first], *self.shape, *self.rest[self.first :]]
        values = values.expand(shape).movedim(list(range(self.first, self.first + count)), list(range(count)))
        return values.reshape(self.numbers.shape[0], -1)

    def to_values(self, rows: torch.Tensor) -> torch.Tensor:
        count = len(self.shape)
        values = rows.reshape(*self.shape, *self.rest)
        return values.movedim(list(range(count)), list(range(self.first, self.first + count))).contiguous()


def _can_index(data: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> bool:
    given = [index for index in indices if index is not None]
    return (
        bool(given)
        and all(index.dtype in INTEGERS and index.numel() for index in given)
        and _is_known(data)
        and data.dim() > 0
    )


def index(data: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> Any:
    """What several tensors of integers name, as `data[i, :, j]`."""
    if not _can_index(data, indices):
        return NotImplemented
    places = _Places(data, indices)
    return places.to_values(read_rows(places.to_rows(data), places.numbers))


def index_put(
    data: torch.Tensor, indices: Sequence[torch.Tensor | None], values: torch.Tensor, accumulate: bool = False
) -> Any:
    """The same with new values there. Of flags, a number where they are true."""
    given = [index for index in indices if index is not None]
    if len(given) == 1 and given[0].dtype == torch.bool and values.numel() == 1 and indices[0] is not None:
        mask = given[0].reshape([*given[0].shape, *[1] * (data.dim() - given[0].dim())])
        values = values.reshape(()).to(data.dtype)
        return torch.where(mask, data + values if accumulate else values, data)
    if not _can_index(data, indices) or values.dtype != data.dtype or not values.numel():
        return NotImplemented
    if accumulate and data.dtype == torch.bool:
        return NotImplemented
    places = _Places(data, indices)
    rows = write_rows(places.to_rows(data), places.numbers, places.from_values(values), "sum" if accumulate else "")
    return places.from_rows(rows)


def unsafe_masked_index(
    data: torch.Tensor, mask: torch.Tensor, indices: Sequence[torch.Tensor | None], fill: Any
) -> Any:
    """What is at places where the mask is, and a number elsewhere."""
    return torch.where(mask, index(data, _clamp(data, indices)), fill)


def unsafe_masked_index_put_accumulate(
    data: torch.Tensor, mask: torch.Tensor, indices: Sequence[torch.Tensor | None], values: torch.Tensor
) -> Any:
    """The same, with values added there."""
    values = torch.where(mask, values, torch.zeros_like(values))
    return index_put(data, _clamp(data, indices), values, accumulate=True)


def _clamp(data: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    pairs = zip(indices, data.shape)
    return [index if index is None else index.clamp(-size, size - 1) for index, size in pairs]


# ---- Counts that follow from the data


def masked_scatter(data: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> Any:
    """`torch.masked_scatter`: what is masked takes the next element of the source."""
    if not _is_known(data, mask, source) or data.dtype == torch.bool:
        return NotImplemented
    data, mask = broadcast(data, mask)
    rows, flags, elements = data.reshape(-1), mask.reshape(-1).to(torch.int32), source.reshape(-1)
    whole, part, bits = (get_type(tensor.shape, tensor.dtype) for tensor in (rows, elements, flags))
    body = f"""%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%count = arith.constant {rows.shape[0]} : index
%available = arith.constant {elements.shape[0]} : index
%clear = arith.constant 0 : i32
%last = arith.constant {elements.shape[0] - 1} : index
%all:2 = scf.for %i = %zero to %count step %one iter_args(%so_far = %0, %next = %zero) -> ({whole}, index) {{
  %bit = tensor.extract %1[%i] : {bits}
  %set = arith.cmpi ne, %bit, %clear : i32
  %there = arith.cmpi slt, %next, %available : index
  %unset = arith.cmpi eq, %bit, %clear : i32
  %fine = arith.ori %there, %unset : i1
  cf.assert %fine, "mask requires as many elements of the source as it has flags, got {elements.shape[0]}"
  %place = arith.minsi %next, %last : index
  %new = tensor.extract %2[%place] : {part}
  %old = tensor.extract %so_far[%i] : {whole}
  %chosen = arith.select %set, %new, %old : {ELEMENTS[data.dtype]}
  %written = tensor.insert %chosen into %so_far[%i] : {whole}
  %step = arith.index_cast %set : i1 to index
  %more = arith.select %set, %one, %zero : index
  %following = arith.addi %next, %more : index
  scf.yield %written, %following : {whole}, index
}}
return %all#0"""
    body = body.replace("  %step = arith.index_cast %set : i1 to index\n", "")
    return compute([rows, flags, elements], [Result(rows.shape, rows.dtype)], body).reshape(data.shape)


def masked_scatter_backward(gradient: torch.Tensor, mask: torch.Tensor, sizes: Sequence[int]) -> Any:
    """Of the source of `masked_scatter`: what is masked, one after another, and zeros."""
    count = math.prod(sizes)
    if not _is_known(gradient, mask) or not count:
        return NotImplemented
    gradient, mask = broadcast(gradient, mask)
    rows, flags = gradient.reshape(-1), mask.reshape(-1)
    # What is not masked is put past the end.
    numbers = flags.to(torch.int64).cumsum(0) - 1
    places = torch.where(flags & (numbers < count), numbers, torch.full_like(numbers, count))
    zeros = gradient.new_zeros((count + 1, 1))
    return write_rows(zeros, places, rows.reshape(-1, 1))[:count].reshape(sizes)


def embedding_dense_backward(
    gradient: torch.Tensor, places: torch.Tensor, count: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """The gradient of the rows of an embedding."""
    if not _is_known(gradient, places):
        return NotImplemented
    numbers = check_indices(places.reshape(-1), count)
    rows = gradient.reshape(numbers.shape[0], -1)
    if scale_grad_by_freq:
        ones = torch.ones((numbers.shape[0], 1), dtype=rows.dtype)
        rows = rows / read_rows(write_rows(rows.new_zeros((count, 1)), numbers, ones, "sum"), numbers)
    if padding_idx >= 0:
        rows = torch.where((numbers == padding_idx).unsqueeze(-1), torch.zeros_like(rows), rows)
    return write_rows(rows.new_zeros((count, rows.shape[1])), numbers, rows, "sum")


def embedding_renorm(weight: torch.Tensor, places: torch.Tensor, max_norm: float, norm_type: float) -> Any:
    """The rows that an embedding reads, none longer than a norm."""
    if weight.dtype != torch.float32 or not _is_known(weight, places):
        return NotImplemented
    numbers = check_indices(places.reshape(-1), weight.shape[0])
    ones = torch.ones((numbers.shape[0], 1), dtype=torch.int32)
    is_read = write_rows(torch.zeros((weight.shape[0], 1), dtype=torch.int32), numbers, ones) != 0
    norm = torch.linalg.vector_norm(weight, norm_type, 1, True)
    return torch.where(is_read & (norm > max_norm), weight * (max_norm / (norm + 1e-7)), weight)


def get_indexing_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file."""
    return {
        aten._unsafe_masked_index.default: unsafe_masked_index,
        aten._unsafe_masked_index_put_accumulate.default: unsafe_masked_index_put_accumulate,
        aten.embedding_dense_backward.default: embedding_dense_backward,
        aten.embedding_renorm.default: embedding_renorm,
        aten.gather.default: gather,
        aten.index.Tensor: index,
        aten.index_add.default: index_add,
        aten.index_copy.default: index_copy,
        aten.index_fill.int_Scalar: index_fill,
        aten.index_fill.int_Tensor: index_fill,
        aten.index_put.default: index_put,
        aten.index_reduce.default: index_reduce,
        aten.index_select.default: index_select,
        aten.masked_scatter.default: masked_scatter,
        aten.masked_scatter_backward.default: masked_scatter_backward,
        aten.put.default: put,
        aten.scatter.reduce: scatter_combined,
        aten.scatter.src: scatter,
        aten.scatter.value: scatter,
        aten.scatter.value_reduce: scatter_combined,
        aten.scatter_add.default: scatter_add,
        aten.scatter_reduce.two: scatter_reduce,
        aten.take.default: take,
    }
