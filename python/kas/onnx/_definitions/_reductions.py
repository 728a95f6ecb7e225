# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ONNX that reduce dimensions, and those along one: sums, extrema, sorting, losses."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy
import torch
from onnx import TensorProto

from .._kinds import KINDS
from .._node import Node, constant, define
from ._elements import flip

Tensor = torch.Tensor


def _find_dims(node: Node, x: Tensor) -> list[int] | None:
    """The dimensions that are reduced; None where nothing is."""
    dims = node.read_axes(1, x.dim())
    if dims:
        return dims
    return None if node.get("noop_with_empty_axes", 0) else list(range(x.dim()))


def sum_of(x: Tensor, dims: list[int], keep: bool) -> Tensor:
    """Of no dimensions it is the tensor itself."""
    if not dims:
        return x
    # What it sums to in integers is of the same type.
    return torch.sum(x, dims, keep, dtype=x.dtype)


def extreme(x: Tensor, dims: list[int], keep: bool, is_largest: bool, nothing: Any) -> Tensor:
    """The largest or smallest element of dimensions; `nothing` where they have none."""
    shape = [1 if dim in dims else size for dim, size in enumerate(x.shape)]
    if any(x.shape[dim] == 0 for dim in dims):
        y = torch.full(shape, nothing, dtype=x.dtype)
    else:
        y = x
        for dim in dims:
            y = (torch.amax if is_largest else torch.amin)(y, dim, keepdim=True)
        if x.is_floating_point() and dims:
            bad = torch.sum(torch.isnan(x).to(torch.int32), dims, True) > 0
            y = torch.where(bad, math.nan, y)
    return y if keep else y.reshape([size for dim, size in enumerate(y.shape) if dim not in dims])


Reduction = Callable[[Node, Tensor, list[int], bool], Tensor]


def _reduce(name: str, function: Reduction) -> None:
    def call(node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
        dims = _find_dims(node, x)
        # Where nothing is reduced, what is summed is still computed.
        return function(node, x, dims or [], bool(node.get("keepdims", 1)))

    define(name)(call)


def _mean(node: Node, x: Tensor, dims: list[int], keep: bool) -> Tensor:
    count = math.prod(x.shape[dim] for dim in dims)
    total = sum_of(x, dims, keep)
    if not x.is_floating_point():
        return torch.div(total, max(count, 1), rounding_mode="trunc")
    return total / count if count else torch.full_like(total, math.nan)


def _prod(node: Node, x: Tensor, dims: list[int], keep: bool) -> Tensor:
    for dim in dims:
        size = x.shape[dim]
        if size == 0:
            shape = list(x.shape)
            shape[dim] = 1
            x = torch.ones(shape, dtype=x.dtype)
            continue
        # By halves: that is exact for integers, and has no long chains.
        while size > 1:
            half = size // 2
            y = x.narrow(dim, 0, half) * x.narrow(dim, half, half)
            x = torch.cat([y, x.narrow(dim, size - 1, 1)], dim) if size % 2 else y
            size = x.shape[dim]
    return x if keep else x.reshape([size for dim, size in enumerate(x.shape) if dim not in dims])


def _extreme(is_largest: bool, node: Node, x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if x.dtype == torch.bool:
        return extreme(x.to(torch.int32), dims, keep, is_largest, 0 if is_largest else 1) != 0
    if node.kind(0) == TensorProto.UINT64:
        x = flip(x)
    entry = KINDS[node.kind(0)]
    if entry.stored.is_floating_point:
        nothing: Any = -math.inf if is_largest else math.inf
    else:
        limits = torch.iinfo(entry.stored)
        nothing = limits.min if is_largest else limits.max
        if entry.mask is not None:
            nothing = 0 if is_largest else entry.mask
    y = extreme(x, dims, keep, is_largest, nothing)
    return flip(y) if node.kind(0) == TensorProto.UINT64 else y


def _log_sum_exp(node: Node, x: Tensor, dims: list[int], keep: bool) -> Tensor:
    if not dims:
        return x
    top = extreme(x, dims, True, True, -math.inf)
    shift = torch.where(top.abs() == math.inf, 0.0, top)
    total = torch.log(sum_of(torch.exp(x - shift), dims, True)) + shift
    return total if keep else total.reshape([size for dim, size in enumerate(x.shape) if dim not in dims])


_reduce("ReduceSum", lambda node, x, dims, keep: sum_of(x, dims, keep))
_reduce("ReduceMean", _mean)
_reduce("ReduceProd", _prod)
_reduce("ReduceMax", functools.partial(_extreme, True))
_reduce("ReduceMin", functools.partial(_extreme, False))
_reduce("ReduceL1", lambda node, x, dims, keep: sum_of(x.abs(), dims, keep))
_reduce("ReduceL2", lambda node, x, dims, keep: _root(sum_of(x * x, dims, keep)))
_reduce("ReduceSumSquare", lambda node, x, dims, keep: sum_of(x * x, dims, keep))
_reduce("ReduceLogSum", lambda node, x, dims, keep: torch.log(sum_of(x, dims, keep)))
_reduce("ReduceLogSumExp", _log_sum_exp)


def _root(x: Tensor) -> Tensor:
    return torch.sqrt(x if x.is_floating_point() else x.to(torch.float64))


def _find_place(is_largest: bool, node: Node, x: Tensor) -> Tensor:
    dim = node.wrap(node.get("axis", 0), x.dim())
    size = x.shape[dim]
    if size == 0:
        raise node.refuse("requires a dimension with elements, got none")
    if node.kind(0) == TensorProto.UINT64:
        x = flip(x)
    shape = [1] * x.dim()
    shape[dim] = size
    best = extreme(x, [dim], True, is_largest, 0)
    is_best = x == best
    if x.is_floating_point():
        is_best = is_best | torch.isnan(x)
    steps = torch.arange(size).reshape(shape)
    if node.get("select_last_index", 0):
        found = torch.amax(torch.where(is_best, steps, -1), dim, keepdim=True)
    else:
        found = torch.amin(torch.where(is_best, steps, size), dim, keepdim=True)
    return found if node.get("keepdims", 1) else found.reshape([s for d, s in enumerate(x.shape) if d != dim])


define("ArgMax")(functools.partial(_find_place, True))
define("ArgMin")(functools.partial(_find_place, False))


def _scan(node: Node, x: Tensor, combine: Callable[[Tensor, Tensor], Tensor], neutral: Any) -> Tensor:
    """Of a sequence what all its beginnings combine to, by doubling the length that is combined."""
    dim = node.wrap(node.read_ints(1)[0], x.dim())
    size = x.shape[dim]
    if node.get("reverse", 0):
        x = torch.flip(x, [dim])

    def shift(y: Tensor, count: int) -> Tensor:
        shape = list(y.shape)
        shape[dim] = count
        return torch.cat([torch.full(shape, neutral, dtype=y.dtype), y.narrow(dim, 0, size - count)], dim)

    if node.get("exclusive", 0) and size:
        x = shift(x, 1) if size > 1 else torch.full_like(x, neutral)
    step = 1
    while step < size:
        x = combine(x, shift(x, step))
        step *= 2
    return torch.flip(x, [dim]) if node.get("reverse", 0) else x


@define("CumSum")
def _cum_sum(node: Node, x: Tensor, axis: Tensor) -> Tensor:
    return _scan(node, x, torch.add, 0)


@define("CumProd")
def _cum_prod(node: Node, x: Tensor, axis: Tensor) -> Tensor:
    return _scan(node, x, torch.mul, 1)


MOST_SORTED = 2048
"""The elements that are sorted by comparing each with each."""


@define("TopK")
def _top_k(node: Node, x: Tensor, k: Tensor | None = None) -> list[Tensor]:
    count = node.read_ints(1)[0] if node.is_given(1) else int(node.get("k"))
    dim = node.wrap(node.get("axis", -1), x.dim())
    size = x.shape[dim]
    if not 0 <= count <= size:
        raise node.refuse(f"requires k of at most {size}, got {count}")
    if size > MOST_SORTED:
        raise node.refuse(f"requires at most {MOST_SORTED} elements to sort, got {size}")
    rows = x.movedim(dim, -1)
    keys = flip(rows) if node.kind(0) == TensorProto.UINT64 else rows
    places = find_order(keys, bool(node.get("largest", 1)))[..., :count]
    # The rows are gathered by their places.
    flat = rows.reshape(-1, size)
    offsets = torch.arange(flat.shape[0]).reshape(-1, 1) * size
    found = torch.ops.aten.embedding(flat.reshape(-1, 1), (places.reshape(flat.shape[0], count) + offsets).reshape(-1))
    return [found.reshape(*rows.shape[:-1], count).movedim(-1, dim), places.movedim(-1, dim)]


def find_order(rows: Tensor, is_descending: bool) -> Tensor:
    """The places of the elements of the last dimension in order, equal ones as they are; NaN counts as largest."""
    size = rows.shape[-1]
    a, b = rows.unsqueeze(-1), rows.unsqueeze(-2)
    steps = torch.arange(size)
    is_before = steps.reshape(1, size) < steps.reshape(size, 1)
    comes_first = b > a if is_descending else b < a
    is_equal = a == b
    if rows.is_floating_point():
        is_nan, other_is_nan = torch.isnan(a), torch.isnan(b)
        both = is_nan & other_is_nan
        only = other_is_nan if is_descending else is_nan
        comes_first = comes_first | (only & torch.logical_not(both))
        is_equal = is_equal | both
    rank = torch.sum((comes_first | (is_equal & is_before)).to(torch.int64), -1)
    # The place whose rank is 0, 1, ...
    is_at = rank.unsqueeze(-2) == steps.reshape(size, 1)
    return torch.sum(torch.where(is_at, steps, 0), -1)


# Losses.


def _loss(node: Node, scores: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """The negative log likelihood of log probabilities (samples, classes, ...)."""
    classes = scores.shape[1]
    ignored = node.get("ignore_index")
    target = target.to(torch.int64)
    shape = [1, classes] + [1] * (scores.dim() - 2)
    is_it = torch.arange(classes).reshape(shape) == target.unsqueeze(1)
    losses = -torch.sum(torch.where(is_it, scores, 0.0), 1)
    shares = torch.ones_like(losses)
    if weight is not None:
        shares = torch.sum(torch.where(is_it, weight.reshape(shape), 0.0), 1)
    if ignored is not None:
        shares = torch.where(target == ignored, 0.0, shares)
    losses = losses * shares
    # Ignored values may be NaN.
    losses = torch.where(shares == 0, 0.0, losses)
    reduction = node.get("reduction", "mean")
    if reduction == "none":
        return losses
    if reduction == "sum":
        return torch.sum(losses)
    return torch.sum(losses) / torch.sum(shares)


@define("NegativeLogLikelihoodLoss")
def _negative_log_likelihood(node: Node, scores: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    return _loss(node, scores, target, weight)


@define("SoftmaxCrossEntropyLoss")
def _softmax_cross_entropy(node: Node, scores: Tensor, target: Tensor, weight: Tensor | None = None) -> list[Tensor]:
    logs = torch.log_softmax(scores, 1)
    return [_loss(node, logs, target, weight), logs]


# Windows of signals, and what they are multiplied by.


def _window(name: str, factors: tuple[float, float, float]) -> None:
    def call(node: Node, size: Tensor) -> Any:
        count = node.read_ints(0)[0]
        period = count if node.get("periodic", 1) else count - 1
        angle = 2 * math.pi * numpy.arange(count, dtype=numpy.float64) / max(period, 1)
        values = factors[0] - factors[1] * numpy.cos(angle) + factors[2] * numpy.cos(2 * angle)
        kind = int(node.get("output_datatype", TensorProto.FLOAT))
        node.result_kinds[0] = kind
        return torch.from_numpy(values).to(KINDS[kind].stored)

    define(name)(call)


_window("HannWindow", (0.5, 0.5, 0))
_window("HammingWindow", (25 / 46, 21 / 46, 0))
_window("BlackmanWindow", (0.42, 0.5, 0.08))


@define("MelWeightMatrix")
def _mel_weights(node: Node, *_: Tensor) -> Tensor:
    bins, length, rate = (node.read_ints(place)[0] for place in range(3))
    low, high = (float(node.read(place).reshape(())) for place in (3, 4))

    def to_mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    points = numpy.arange(bins + 2) * ((to_mel(high) - to_mel(low)) / (bins + 2)) + to_mel(low)
    places = ((length + 1) * (700 * (numpy.power(10, points / 2595) - 1)) // rate).astype(int)
    weights = numpy.zeros((length // 2 + 1, bins))
    for column in range(bins):
        first, middle, last = places[column : column + 3]
        if middle == first:
            weights[middle, column] = 1
        for row in range(first, middle + 1):
            if middle > first:
                weights[row, column] = (row - first) / (middle - first)
        for row in range(middle, last):
            if last > middle:
                weights[row, column] = (last - row) / (last - middle)
    kind = int(node.get("output_datatype", TensorProto.FLOAT))
    node.result_kinds[0] = kind
    return torch.from_numpy(weights).to(KINDS[kind].stored)


def _transform(x: Tensor, length: int, inverse: bool, onesided: bool) -> Tensor:
    """The Fourier transform along the dimension before the last, of real or complex numbers in the last one."""
    have = x.shape[-2]
    if have > length:
        x = x.narrow(-2, 0, length)
    count = length // 2 + 1 if onesided and not inverse else length
    angle = 2 * math.pi * ((numpy.arange(length)[:, None] * numpy.arange(count)[None, :]) % length) / length
    real = constant(numpy.cos(angle)[: x.shape[-2]], x.dtype)
    imaginary = constant((numpy.sin(angle) if inverse else -numpy.sin(angle))[: x.shape[-2]], x.dtype)
    values = x.movedim(-2, -1)
    a = values[..., 0, :]
    re, im = torch.matmul(a, real), torch.matmul(a, imaginary)
    if x.shape[-1] == 2:
        b = values[..., 1, :]
        re, im = re - torch.matmul(b, imaginary), im + torch.matmul(b, real)
    both = torch.stack([re, im], -1)
    return both / length if inverse else both


@define("DFT")
def _dft(node: Node, x: Tensor, length: Tensor | None = None, axis: Tensor | None = None) -> Tensor:
    given = node.read_ints(2)[0] if node.is_given(2) else node.get("axis", 1 if node.opset < 20 else -2)
    dim = node.wrap(given, x.dim())
    inverse, onesided = bool(node.get("inverse", 0)), bool(node.get("onesided", 0))
    moved = x.movedim(dim, -2)
    if onesided and inverse:
        return _inverse_real(
            node, moved, node.read_ints(1)[0] if node.is_given(1) else 2 * (moved.shape[-2] - 1)
        ).movedim(-2, dim)
    size = node.read_ints(1)[0] if node.is_given(1) else moved.shape[-2]
    return _transform(moved, size, inverse, onesided).movedim(-2, dim)


def _inverse_real(node: Node, x: Tensor, length: int) -> Tensor:
    """Real numbers from the first half of their transform."""
    count = min(x.shape[-2], length // 2 + 1)
    angle = 2 * math.pi * ((numpy.arange(count)[:, None] * numpy.arange(length)[None, :]) % length) / length
    share = numpy.where((numpy.arange(count) == 0) | (2 * numpy.arange(count) == length), 1, 2)[:, None] / length
    values = x.narrow(-2, 0, count).movedim(-2, -1)
    re = torch.matmul(values[..., 0, :], constant(share * numpy.cos(angle), x.dtype))
    im = torch.matmul(values[..., 1, :], constant(share * numpy.sin(angle), x.dtype))
    return (re - im).unsqueeze(-1)


@define("STFT")
def _stft(
    node: Node, signal: Tensor, step: Tensor, window: Tensor | None = None, length: Tensor | None = None
) -> Tensor:
    hop = node.read_ints(1)[0]
    size = node.read_ints(3)[0] if window is None else window.shape[0]
    if signal.dim() == 2:
        signal = signal.unsqueeze(-1)
    count = 1 + (signal.shape[1] - size) // hop
    frames = torch.stack([signal.narrow(1, hop * place, size) for place in range(count)], 1)
    if window is not None:
        frames = frames * window.reshape(-1, 1)
    return _transform(frames, size, False, bool(node.get("onesided", 1)))
