# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that torch-mlir does not know, or only for tensors of some ranks, by those that it knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

aten = torch.ops.aten


def _copy(view: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """What makes a view, as a copy."""

    def decompose(*arguments: Any, **options: Any) -> torch.Tensor:
        return view(*arguments, **options).clone(memory_format=torch.contiguous_format)

    return decompose


def unbind_copy(x: torch.Tensor, dim: int = 0) -> list[torch.Tensor]:
    """`torch.unbind_copy`."""
    return [part.clone() for part in x.unbind(dim)]


def diagonal_scatter(
    data: torch.Tensor, source: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> torch.Tensor:
    """`torch.diagonal_scatter`."""
    moved = data.movedim((dim1, dim2), (-2, -1))
    rows, columns = moved.shape[-2:]
    is_diagonal = torch.arange(columns) - torch.arange(rows).unsqueeze(-1) == offset
    # Each column of the diagonal has one row.
    first = max(offset, 0)
    spread = aten.constant_pad_nd(source, [first, columns - first - source.shape[-1]]).unsqueeze(-2)
    return torch.where(is_diagonal, spread, moved).movedim((-2, -1), (dim1, dim2))


def block_diag(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """`torch.block_diag`."""
    dtype = tensors[0].dtype
    for tensor in tensors:
        dtype = torch.promote_types(dtype, tensor.dtype)
    blocks = [tensor.to(dtype).reshape([1] * (2 - tensor.dim()) + list(tensor.shape)) for tensor in tensors]
    width, column, rows = sum(block.shape[1] for block in blocks), 0, []
    for block in blocks:
        rows.append(aten.constant_pad_nd(block, [column, width - column - block.shape[1]]))
        column += block.shape[1]
    return torch.cat(rows)


def addmv(x: torch.Tensor, matrix: torch.Tensor, vector: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`torch.addmv`."""
    if not matrix.dtype.is_floating_point:
        return NotImplemented
    product = (matrix @ vector.unsqueeze(-1)).squeeze(-1)
    product = product if alpha == 1 else product * alpha
    return (product if beta == 0 else x * beta + product).expand(product.shape).clone()


def aminmax(x: torch.Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """`torch.aminmax`."""
    dims = [] if dim is None or not x.dim() else [dim]
    return aten.amin.default(x, dims, keepdim), aten.amax.default(x, dims, keepdim)


def _find_extreme(reduce: Any) -> Callable[..., Any]:
    """The first place of an extreme along a dimension, or of a NaN: torch-mlir's finds none of these."""

    def decompose(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            found = decompose(x.reshape(-1), 0)
            return found.reshape([1] * x.dim()) if keepdim else found
        if not x.dtype.is_floating_point:
            return NotImplemented
        shape = [1] * x.dim()
        shape[dim] = size = x.shape[dim]
        places = torch.arange(size).view(shape)
        is_found = (x == reduce(x, [dim], True)) | (x != x)
        return torch.where(is_found, places, places.new_full((), size)).amin([dim], keepdim)

    return decompose


def _take_extreme(reduce: Any) -> Callable[..., Any]:
    """`torch.max` and `torch.min` along a dimension."""
    find = _find_extreme(reduce)

    def decompose(x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
        if not x.dtype.is_floating_point:
            return NotImplemented
        return reduce(x, [dim], keepdim), find(x, dim, keepdim)

    return decompose


def prod(x: torch.Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """`torch.prod` along a dimension: halves are multiplied, until one element is left."""
    if dtype is None:
        dtype = x.dtype if x.dtype.is_floating_point else torch.int64
    x = x.to(dtype)
    if not x.dim():
        return x.clone()
    if not x.shape[dim]:
        return torch.ones_like(x.sum(dim, keepdim))
    while (size := x.shape[dim]) > 1:
        half = size // 2
        product = x.narrow(dim, 0, half) * x.narrow(dim, half, half)
        x = torch.cat([product, x.narrow(dim, size - 1, 1)], dim) if size % 2 else product
    return x.clone() if keepdim else x.squeeze(dim).clone()


def prod_all(x: torch.Tensor, *, dtype: torch.dtype | None = None) -> Any:
    """`torch.prod` of all elements."""
    return prod(x.reshape(-1), 0, dtype=dtype)


def dist(x: torch.Tensor, y: torch.Tensor, p: Any = 2) -> torch.Tensor:
    """`torch.dist`."""
    norm: torch.Tensor = torch.linalg.vector_norm(x - y, p)
    return norm


def vector_norm(
    x: torch.Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Any:
    """`torch.linalg.vector_norm` of a single number, which has no dimension."""
    if x.dim() or not x.dtype.is_floating_point:
        return NotImplemented
    x = x if dtype is None else x.to(dtype)
    return (x != 0).to(x.dtype) if ord == 0 else x.abs()


def hypot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`torch.hypot`, without overflow of squares."""
    x, y = x.abs(), y.abs()
    largest, least = torch.maximum(x, y), torch.minimum(x, y)
    ratio = torch.where((largest == 0) | (largest == math.inf), torch.zeros_like(x + y), least / largest)
    found = largest * torch.sqrt(1 + ratio * ratio)
    is_infinite = (x == math.inf) | (y == math.inf)
    return torch.where(is_infinite, torch.full_like(found, math.inf), found)


def angle(x: torch.Tensor) -> Any:
    """`torch.angle` of real numbers."""
    if x.dtype.is_complex:
        return NotImplemented
    x = x if x.dtype.is_floating_point else x.to(torch.get_default_dtype())
    found = torch.where(x < 0, torch.full_like(x, math.pi), torch.zeros_like(x))
    return torch.where(x != x, x, found)


def var_mean(
    x: torch.Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """`torch.var_mean`, whose mean is that of infinities, too."""
    mean = x.mean(list(dim or range(x.dim())), keepdim)
    return aten.var.correction(x, dim, correction=correction, keepdim=keepdim), mean


def softmax_backward(gradient: torch.Tensor, output: torch.Tensor, dim: int, input_dtype: torch.dtype) -> torch.Tensor:
    """The gradient of a softmax, which is NaN where PyTorch's is."""
    total = (gradient * output).sum(dim, keepdim=True)
    return ((gradient - total) * output).to(input_dtype)


def add(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    """`torch.add` of flags, which has no carry."""
    if alpha != 1 or torch.result_type(x, y) != torch.bool:
        return NotImplemented
    return torch.logical_or(x, y) if isinstance(y, torch.Tensor) else torch.logical_or(x, torch.full_like(x, y))


def arange(start: Any, end: Any, step: Any = 1, *, dtype: torch.dtype | None = None, **options: Any) -> Any:
    """`torch.arange` of integers from numbers that are none."""
    if dtype is None or dtype.is_floating_point or all(isinstance(n, int) for n in (start, end, step)):
        return NotImplemented
    # PyTorch counts int64 in whole numbers, others in doubles.
    begin, last, width = (int(n) if dtype == torch.int64 else n for n in (start, end, step))
    size = max(0, math.ceil((last - begin) / width))
    return aten.arange.start_step(0, size, 1, dtype=dtype, **options) * int(step) + int(start)


def sum_flags(x: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """`torch.sum` that gives flags: whether there is one."""
    if dtype != torch.bool:
        return NotImplemented
    return aten.sum.dim_IntList((x != 0).to(torch.int64), dim, keepdim) != 0


def neg(x: torch.Tensor) -> Any:
    """`torch.neg` of integers, which torch-mlir rounds to doubles."""
    return NotImplemented if x.dtype.is_floating_point else x.new_zeros(()) - x


def pow(x: torch.Tensor, exponent: Any) -> Any:
    """`torch.pow` of integers and a small number; roots as PyTorch takes them, whose zeros keep their signs."""
    if exponent in (0.5, -0.5) and x.dtype.is_floating_point:
        return x.sqrt() if exponent > 0 else x.rsqrt()
    if x.dtype.is_floating_point or x.dtype == torch.bool or type(exponent) is not int or not 0 <= exponent <= 64:
        return NotImplemented
    result, square = None, x
    while exponent:
        if exponent % 2:
            result = square if result is None else result * square
        square, exponent = square * square, exponent // 2
    return torch.ones_like(x) if result is None else result.clone()


def batch_norm_with_update(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    momentum: float,
    eps: float,
) -> Any:
    """A batch norm in training, with the memory that only other devices use."""
    norm = aten._native_batch_norm_legit_functional.default
    _, saved_mean, saved_factor, *running = norm(x, weight, bias, mean, variance, True, momentum, eps)
    # In the order of PyTorch's kernel, where something is infinite.
    factor = saved_factor if weight is None else saved_factor * weight
    shift = -saved_mean * factor if bias is None else bias - saved_mean * factor
    factor, shift = (part.view([-1] + [1] * (x.dim() - 2)) for part in (factor, shift))
    result = x * factor + shift
    return result, saved_mean, saved_factor, torch.zeros((0,), dtype=torch.uint8), *running


def pow_of_number(x: Any, exponent: torch.Tensor) -> torch.Tensor:
    """`torch.pow` of a number."""
    return torch.pow(torch.full((), x, dtype=torch.result_type(x, exponent)), exponent)


def all_dims(x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False) -> torch.Tensor:
    """`torch.all` along several dimensions."""
    dims = range(x.dim()) if dim is None else [axis % x.dim() for axis in dim] if x.dim() else []
    result = x != 0 if x.dtype != torch.bool else x.clone()
    for axis in sorted(dims, reverse=True):
        result = result.all(axis, keepdim)
    return result


def _add_dimension(operation: Any, rank: int, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """An operation on tensors of one dimension more than `rank`, for those that have as many."""

    def decompose(data: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        if data.dim() != rank:
            return otherwise(data, *arguments, **options)
        found = operation(data.unsqueeze(0), *arguments, **options)
        # Where that is the only dimension, it may have been reduced.
        parts = [found] if isinstance(found, torch.Tensor) else found
        parts = tuple(part.squeeze(0) if part.dim() > rank else part for part in parts)
        return parts[0] if isinstance(found, torch.Tensor) else parts

    return decompose


def _keep(*_: Any, **__: Any) -> Any:
    return NotImplemented


_NUMBERS = (
    aten._log_softmax.default,
    aten._softmax.default,
    aten.all.dim,
    aten.any.dim,
    aten.amax.default,
    aten.amin.default,
    aten.argmax.default,
    aten.argmin.default,
    aten.logsumexp.default,
    aten.max.dim,
    aten.min.dim,
    aten.var.correction,
)
"""With a dimension that a single number does not have; some of these torch-mlir tries to lower without an end."""
_IMAGES = {
    aten.avg_pool3d.default: 4,
    aten.max_pool2d.default: 3,
    aten.max_pool2d_with_indices.default: 3,
    aten.max_pool3d.default: 4,
    aten.max_pool3d_with_indices.default: 4,
}
"""That torch-mlir knows of batches of images alone, with the rank of an image."""


def _sample_grid(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def decompose(data: torch.Tensor, grid: torch.Tensor, mode: int, padding: int, align_corners: bool) -> Any:
        """`torch.nn.functional.grid_sample`: the nearest pixel is another one where anything is rounded otherwise."""
        return NotImplemented if mode == 1 else otherwise(data, grid, mode, padding, align_corners)

    return decompose


def get_operations_table(others: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file; of batches of images those of `others`."""
    table: dict[Any, Any] = {
        aten._batch_norm_with_update_functional.default: batch_norm_with_update,
        aten._softmax_backward_data.default: softmax_backward,
        aten.add.Tensor: add,
        aten.addmv.default: addmv,
        aten.all.dims: all_dims,
        aten.aminmax.default: aminmax,
        aten.angle.default: angle,
        aten.arange.start_step: arange,
        aten.argmax.default: _find_extreme(aten.amax),
        aten.argmin.default: _find_extreme(aten.amin),
        aten.block_diag.default: block_diag,
        aten.diagonal_scatter.default: diagonal_scatter,
        aten.dist.default: dist,
        aten.grid_sampler_2d.default: _sample_grid(others[aten.grid_sampler_2d.default]),
        aten.hypot.default: hypot,
        aten.linalg_vector_norm.default: vector_norm,
        aten.max.dim: _take_extreme(aten.amax),
        aten.min.dim: _take_extreme(aten.amin),
        aten.narrow_copy.default: _copy(torch.narrow),
        aten.neg.default: neg,
        aten.permute_copy.default: _copy(torch.permute),
        aten.pow.Scalar: pow_of_number,
        aten.pow.Tensor_Scalar: pow,
        aten.prod.default: prod_all,
        aten.prod.dim_int: prod,
        aten.sum.dim_IntList: sum_flags,
        aten.var_mean.correction: var_mean,
        aten.unbind_copy.int: unbind_copy,
        aten.view_copy.default: _copy(torch.reshape),
    }
    for operation, rank in [*((operation, 0) for operation in _NUMBERS), *_IMAGES.items()]:
        table[operation] = _add_dimension(operation, rank, table.get(operation) or others.get(operation, _keep))
    return table
