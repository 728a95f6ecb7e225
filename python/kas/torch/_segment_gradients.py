# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of what is summed over parts of rows whose sizes are data: bags and segments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ._indexing import check_indices, embedding_dense_backward, read_rows, write_rows
from ._segments import get_ends, get_sizes, pool_bags

aten = torch.ops.aten


def _find_bags(offsets: torch.Tensor, bags: int, count: int) -> torch.Tensor:
    """The bag of each place."""
    begins = offsets[:bags].to(torch.int64).unsqueeze(-1)
    return ((begins <= torch.arange(count)).sum(0) - 1).clamp(min=0)


def _find_maxima(
    weight: torch.Tensor, places: torch.Tensor, bags: torch.Tensor, is_kept: torch.Tensor, result: torch.Tensor
) -> torch.Tensor:
    """The row of the first element of each bag that is the maximum; 0 where a bag has none."""
    count = places.shape[0]
    is_largest = (read_rows(weight, places) == read_rows(result, bags)) & is_kept.unsqueeze(-1)
    numbers = torch.where(is_largest, torch.arange(count).unsqueeze(-1), torch.full((), count))
    first = write_rows(torch.full(result.shape, count), bags, numbers, "amin")
    rows = torch.cat([places, places.new_zeros(1)]).unsqueeze(-1)
    return read_rows(rows, first.reshape(-1)).reshape(result.shape)


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
    """`torch.nn.functional.embedding_bag` with what its gradient needs: bags of places, their sizes, rows of maxima."""
    result = pool_bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
    if result is NotImplemented or sparse:
        return NotImplemented
    count, (bags, _) = indices.shape[0], result.shape
    places, is_kept = check_indices(indices, weight.shape[0]), indices != padding_idx
    numbers = _find_bags(offsets, bags, count)
    # PyTorch has no bags of places, nor sizes, where it needs none.
    scales_are_rows = per_sample_weights is None or per_sample_weights.stride(0) == 1
    is_plain = mode == 0 and padding_idx < 0 and weight.stride(1) == 1 and scales_are_rows
    zeros = torch.zeros((bags, 1), dtype=torch.int64)
    sizes = (write_rows(zeros, numbers, is_kept.to(torch.int64).unsqueeze(-1), "sum") if mode else zeros).reshape(-1)
    maxima = _find_maxima(weight, places, numbers, is_kept, result) if mode == 2 else sizes
    others = (numbers[:0] if is_plain else numbers, sizes, maxima)
    return result, *(tensor.to(offsets.dtype).clone() for tensor in others)


def embedding_bag_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    bags: torch.Tensor,
    sizes: torch.Tensor,
    maxima: torch.Tensor,
    count: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: torch.Tensor | None,
    padding_idx: int = -1,
) -> Any:
    """The gradient of the rows that bags are of."""
    if gradient.dtype != torch.float32 or not gradient.numel() or not indices.numel():
        return NotImplemented
    width = gradient.shape[1]
    if mode == 2:
        changes = torch.where((sizes > 0).unsqueeze(-1), gradient, torch.zeros_like(gradient))
        elements = check_indices(maxima, count) * width + torch.arange(width)
        zeros = gradient.new_zeros((count * width, 1))
        return write_rows(zeros, elements.reshape(-1), changes.reshape(-1, 1), "sum").reshape(count, width)
    # Of rows that are there several times PyTorch takes the number of others.
    if bags.shape != indices.shape or scale_grad_by_freq:
        return NotImplemented
    if mode == 1:
        gradient = gradient / sizes.clamp(min=1).to(gradient.dtype).unsqueeze(-1)
    rows = read_rows(gradient, check_indices(bags, gradient.shape[0]))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    return embedding_dense_backward(rows, indices, count, padding_idx, False)


def embedding_bag_whole_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    bags: torch.Tensor,
    sizes: torch.Tensor,
    maxima: torch.Tensor,
    count: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: torch.Tensor | None,
    padding_idx: int = -1,
) -> Any:
    """The same where PyTorch may have no bags of places."""
    if sparse:
        return NotImplemented
    if indices.numel() and bags.shape != indices.shape:
        bags = _find_bags(offsets, gradient.shape[0], indices.shape[0])
    rest = (count, scale_grad_by_freq, mode, per_sample_weights, padding_idx)
    return embedding_bag_backward(gradient, indices, bags, sizes, maxima, *rest)


def embedding_bag_scales_backward(
    gradient: torch.Tensor,
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    bags: torch.Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Any:
    """The gradient of the weights per sample."""
    if gradient.dtype != torch.float32 or not gradient.numel() or not indices.numel():
        return NotImplemented
    if bags.shape != indices.shape:
        bags = _find_bags(offsets, gradient.shape[0], indices.shape[0])
    rows = read_rows(weight, check_indices(indices, weight.shape[0]))
    found = (rows * read_rows(gradient, check_indices(bags, gradient.shape[0]))).sum(-1)
    return torch.where(indices == padding_idx, torch.zeros_like(found), found)


def segment_reduce_backward(
    gradient: torch.Tensor,
    output: torch.Tensor,
    data: torch.Tensor,
    reduce: str,
    *,
    lengths: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    axis: int = 0,
    initial: Any = None,
) -> Any:
    """The gradient of `torch.segment_reduce`."""
    given = lengths if offsets is None else offsets
    if data.dtype != torch.float32 or not data.numel() or not gradient.numel() or given is None:
        return NotImplemented
    outer, size, inner = get_sizes(data, axis)
    ends = get_ends(given, outer, offsets is None)
    segments, places = ends.shape[1] - 1, torch.arange(size)
    segment = (ends[:, 1:].unsqueeze(-1) <= places).sum(1)
    is_any = ((places >= ends[:, :1]) & (segment < segments)).unsqueeze(-1)
    index = segment.clamp(max=segments - 1).unsqueeze(-1).expand(outer, size, inner)

    def spread(values: torch.Tensor) -> torch.Tensor:
        return values.reshape(outer, segments, -1).expand(outer, segments, inner).gather(1, index)

    def count(flags: torch.Tensor) -> torch.Tensor:
        zeros = data.new_zeros((outer, segments, inner))
        return spread(zeros.scatter_add(1, index, (flags & is_any).to(data.dtype)))

    rows, change = data.reshape(outer, size, inner), spread(gradient)
    if reduce == "mean":
        change = change / spread((ends[:, 1:] - ends[:, :-1]).to(data.dtype))
    elif reduce in ("max", "min"):
        is_chosen = (rows == spread(output)) | (rows != rows)
        number = count(is_chosen)
        # PyTorch divides no gradients below zero.
        change = torch.where((change > 0) & (number > 1), change / number.clamp(min=1), change)
        change = torch.where(is_chosen, change, torch.zeros_like(change))
    elif reduce == "prod":
        is_zero, is_none = rows == 0, rows != rows
        ones = torch.ones_like(rows)
        start = torch.full((outer, segments, inner), 1.0 if initial is None else float(initial))
        factors = torch.where(is_zero | is_none | ~is_any, ones, rows)
        product = spread(start.scatter_reduce(1, index, factors, "prod"))
        # Of the others: a quotient says nothing.
        product = product * torch.where(count(is_zero) - is_zero.to(rows.dtype) > 0, torch.zeros_like(rows), ones)
        has_none = count(is_none) - is_none.to(rows.dtype) > 0
        product = torch.where(has_none, torch.full_like(rows, math.nan), product)
        change = change * torch.where(is_zero | is_none, product, spread(output) / torch.where(is_zero, ones, rows))
    return torch.where(is_any, change, torch.zeros_like(change)).reshape(data.shape)


def get_segment_gradients_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file."""
    return {
        aten._embedding_bag.default: embedding_bag,
        aten._embedding_bag_backward.default: embedding_bag_whole_backward,
        aten._embedding_bag_dense_backward.default: embedding_bag_backward,
        aten._embedding_bag_per_sample_weights_backward.default: embedding_bag_scales_backward,
        aten._segment_reduce_backward.default: segment_reduce_backward,
    }
