# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pooling with windows that reach over the borders, by pooling without: torch-mlir is wrong about some of these."""

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


def get_pooling_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file."""
    table = {getattr(aten, f"avg_pool{rank}d").default: _average(rank) for rank in (1, 2, 3)}
    return table | {getattr(aten, f"max_pool{rank}d").default: _maximum(rank) for rank in (1, 2, 3)}
