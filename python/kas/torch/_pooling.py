# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pooling with windows that reach over the borders, by pooling without, and the gradients of averages.

torch-mlir is wrong about some of the former, and has none of most of the latter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

aten = torch.ops.aten


class _Axis(NamedTuple):
    """The windows along one axis."""

    size: int
    """Of the data."""
    kernel: int
    stride: int
    padding: int
    dilation: int
    windows: int
    """How many there are."""

    @property
    def after(self) -> int:
        """What the last window reads after the data; less than 0 where it ends before."""
        return (self.windows - 1) * self.stride + self.dilation * (self.kernel - 1) + 1 - self.padding - self.size


def get_axes(
    data: torch.Tensor,
    rank: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> list[_Axis]:
    """The windows of a pooling of images of this rank."""
    kernel, padding, dilation = ([*size] * (rank if len(size) == 1 else 1) for size in (kernel, padding, dilation))
    stride = [*(stride or kernel)] * (rank if len(stride) == 1 else 1)
    axes = []
    for size, taps, step, before, distance in zip(data.shape[-rank:], kernel, stride, padding, dilation):
        rest = size + 2 * before - distance * (taps - 1) - 1
        count = (-(-rest // step) if ceil_mode else rest // step) + 1
        # The last window begins within the data or the padding before it.
        if ceil_mode and (count - 1) * step >= size + before:
            count -= 1
        axes.append(_Axis(size, taps, step, before, distance, count))
    return axes


def _pad(data: torch.Tensor, axes: Sequence[_Axis], value: float) -> torch.Tensor:
    """With all that the windows read, and no more."""
    sizes = [size for axis in reversed(axes) for size in (axis.padding, axis.after)]
    if not any(sizes):
        return data
    padded: torch.Tensor = aten.constant_pad_nd(data, sizes, value)
    return padded


def _count(axes: Sequence[_Axis], include_padding: bool, dtype: torch.dtype) -> torch.Tensor:
    """How many elements each window has, as PyTorch counts them."""
    total = torch.ones((), dtype=dtype)
    for number, axis in enumerate(axes):
        first = torch.arange(axis.windows, dtype=dtype) * axis.stride - axis.padding
        reach, end = first + axis.kernel, axis.size + (axis.padding if include_padding else 0)
        last = torch.where(reach > end, torch.full_like(reach, end), reach)
        if not include_padding:
            first = torch.where(first < 0, torch.zeros_like(first), first)
        total = total * (last - first).view([-1] + [1] * (len(axes) - 1 - number))
    return total


def _average(rank: int) -> Callable[..., Any]:
    pool = getattr(aten, f"avg_pool{rank}d").default

    def decompose(
        data: torch.Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        """`torch.nn.functional.avg_pool1d` to `avg_pool3d`."""
        axes = get_axes(data, rank, kernel, stride, padding, [1], ceil_mode)
        is_known = data.dim() == rank + 2 and not ceil_mode and divisor_override is None
        if not data.dtype.is_floating_point or is_known:
            return NotImplemented
        batch = data if data.dim() == rank + 2 else data.unsqueeze(0)
        sizes = [axis.kernel for axis in axes]
        result: torch.Tensor = pool(_pad(batch, axes, 0), sizes, [axis.stride for axis in axes])
        if divisor_override is not None:
            result = result * (math.prod(sizes) / divisor_override)
        elif any(axis.padding or axis.after > 0 for axis in axes):
            result = result * (math.prod(sizes) / _count(axes, count_include_pad, data.dtype))
        return result if data.dim() == rank + 2 else result.squeeze(0)

    return decompose


# ---- Gradients of averages


def _add_neighbours(data: torch.Tensor, dim: int, count: int) -> torch.Tensor:
    """The sums of `count` elements side by side: of halves of them, and so few sums for many elements."""
    if count == 1:
        return data
    half = count // 2
    sums, size = _add_neighbours(data, dim, half), data.shape[dim] - 2 * half + 1
    found = sums.narrow(dim, 0, size) + sums.narrow(dim, half, size)
    return found.narrow(dim, 0, size - 1) + data.narrow(dim, count - 1, size - 1) if count % 2 else found


def pad_dim(data: torch.Tensor, dim: int, before: int, after: int) -> torch.Tensor:
    """Zeros before and after; less than none: a part."""
    if not before and not after:
        return data
    padded: torch.Tensor = aten.constant_pad_nd(data, [0] * (2 * (data.dim() - 1 - dim)) + [before, after])
    return padded


def _repeat(data: torch.Tensor, dim: int, times: int) -> torch.Tensor:
    """Each element `times` times, in a dimension of their own."""
    shape = list(data.shape)
    return data.unsqueeze(dim + 1).expand(*shape[: dim + 1], times, *shape[dim + 1 :])


def _add_windows(gradient: torch.Tensor, dim: int, axis: _Axis) -> torch.Tensor:
    """For each element along a dimension the sum of what all windows have in which it is.

    The elements of one stride are in `whole` windows, and the first `rest` of them in one more.
    """
    whole, rest = divmod(axis.kernel, axis.stride)
    if whole:
        sums = _add_neighbours(pad_dim(gradient, dim, whole - 1, whole - (not rest)), dim, whole)
    else:
        sums = torch.zeros_like(gradient)
    spread = _repeat(sums, dim, axis.stride - rest)
    if rest:
        spread = torch.cat([_repeat(sums + pad_dim(gradient, dim, whole, 0), dim, rest), spread], dim + 1)
    spread = spread.flatten(dim, dim + 1)
    return pad_dim(spread, dim, -axis.padding, axis.size + axis.padding - spread.shape[dim])


def _average_backward(rank: int) -> Callable[..., Any]:
    def decompose(
        gradient: torch.Tensor,
        data: torch.Tensor,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:
        """The gradient of `torch.nn.functional.avg_pool2d` or `avg_pool3d`, dimension by dimension."""
        axes = get_axes(data, rank, kernel, stride, padding, [1], ceil_mode)
        if divisor_override is not None:
            gradient = gradient * (1 / divisor_override)
        elif any(axis.padding or axis.after > 0 for axis in axes):
            gradient = gradient / _count(axes, count_include_pad, data.dtype)
        else:
            gradient = gradient * (1 / math.prod(axis.kernel for axis in axes))
        for dim, axis in enumerate(axes, start=data.dim() - rank):
            gradient = _add_windows(gradient, dim, axis)
        return gradient.clone(memory_format=torch.contiguous_format)

    return decompose


def _add_adaptive(gradient: torch.Tensor, dim: int, size: int) -> torch.Tensor:
    """As `_add_windows` of averages, where window `o` of `windows` is from `o` to `o + 1`, times `size / windows`."""
    windows = gradient.shape[dim]
    if size % windows == 0:
        return _repeat(gradient * (windows / size), dim, size // windows).flatten(dim, dim + 1)
    if windows % size == 0:
        return gradient.reshape(*gradient.shape[:dim], size, windows // size, *gradient.shape[dim + 1 :]).sum(dim + 1)
    shape = [1] * gradient.dim()
    shape[dim] = -1

    def get_bounds(count: int, total: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Of parts of a total, rounded outwards."""
        first = torch.arange(count, dtype=torch.int64) * total
        return first // count, (first + (total + count - 1)) // count

    first, end = get_bounds(windows, size)
    gradient = gradient / (end - first).to(gradient.dtype).view(shape)
    # The windows in which an element is are those of which it would be the window.
    first, end = get_bounds(size, windows)
    found = gradient.index_select(dim, first)
    for number in range(1, -(-windows // size) + 1):
        is_one = (first + number < end).view(shape)
        more = gradient.index_select(dim, (first + number).clamp(max=windows - 1))
        found = found + torch.where(is_one, more, torch.zeros_like(more))
    return found


def _adaptive_backward(rank: int) -> Callable[..., Any]:
    def decompose(gradient: torch.Tensor, data: torch.Tensor) -> Any:
        """The gradient of `adaptive_avg_pool2d` or `adaptive_avg_pool3d`, dimension by dimension."""
        if not gradient.numel():
            return NotImplemented
        for dim in range(data.dim() - rank, data.dim()):
            gradient = _add_adaptive(gradient, dim, data.shape[dim])
        return gradient.clone(memory_format=torch.contiguous_format)

    return decompose


# ---- Maxima


def _maximum(rank: int) -> Callable[..., Any]:
    pool = getattr(aten, f"max_pool{rank}d").default

    def decompose(
        data: torch.Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        """`torch.nn.functional.max_pool1d` to `max_pool3d`, without places."""
        if not ceil_mode or not data.dtype.is_floating_point:
            return NotImplemented
        axes = get_axes(data, rank, kernel, stride, padding, dilation, ceil_mode)
        sizes = ([getattr(axis, name) for axis in axes] for name in ("kernel", "stride", "dilation"))
        kernel, stride, dilation = sizes
        return pool(_pad(data, axes, -math.inf), kernel, stride, [0] * rank, dilation)

    return decompose


def get_pooling_gradients_table() -> dict[Any, Callable[..., Any]]:
    """Of averages."""
    return {
        aten._adaptive_avg_pool2d_backward.default: _adaptive_backward(2),
        aten._adaptive_avg_pool3d_backward.default: _adaptive_backward(3),
        aten.avg_pool2d_backward.default: _average_backward(2),
        aten.avg_pool3d_backward.default: _average_backward(3),
    }


def get_pooling_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file but for gradients."""
    table = {getattr(aten, f"avg_pool{rank}d").default: _average(rank) for rank in (1, 2, 3)}
    return table | {getattr(aten, f"max_pool{rank}d").default: _maximum(rank) for rank in (1, 2, 3)}
