# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ONNX that multiply and sum: products, convolutions, pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
import torch
from onnx import TensorProto
from torch.nn import functional

from .._node import Node, broadcast, constant, define

Tensor = torch.Tensor


@define("MatMul")
def _matmul(node: Node, a: Tensor, b: Tensor) -> Tensor:
    return multiply(a, b)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """`numpy.matmul`; of several matrices and one weight as one of two matrices: a layer, which `kas-extract` finds."""
    if a.dim() == 1 or b.dim() == 1:
        product = multiply(a.reshape(1, -1) if a.dim() == 1 else a, b.reshape(-1, 1) if b.dim() == 1 else b)
        shape = list(product.shape)
        if b.dim() == 1:
            shape.pop()
        if a.dim() == 1:
            shape.pop(-1 if b.dim() == 1 else -2)
        return product.reshape(shape)
    if b.dim() == 2 and a.dim() > 2:
        return torch.mm(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
    if a.dim() == 2 and b.dim() == 2:
        return torch.mm(a, b)
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    a = a.expand(*batch, *a.shape[-2:]).reshape(-1, *a.shape[-2:])
    b = b.expand(*batch, *b.shape[-2:]).reshape(-1, *b.shape[-2:])
    return torch.bmm(a, b).reshape(*batch, a.shape[-2], b.shape[-1])


@define("Gemm")
def _gemm(node: Node, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    if not a.is_floating_point():
        alpha, beta = (int(value) if value == int(value) else value for value in (alpha, beta))
    a = a.t() if node.get("transA", 0) else a
    b = b.t() if node.get("transB", 0) else b
    y = torch.mm(a, b)
    y = y if alpha == 1 else y * alpha
    if c is None or beta == 0:
        return y
    return y + (c if beta == 1 else c * beta)


@define("Einsum")
def _einsum(node: Node, *inputs: Tensor) -> Tensor:
    return torch.einsum(node.get("equation").replace(" ", ""), *inputs)


@define("Det")
def _det(node: Node, x: Tensor) -> Tensor:
    """By elimination with the largest pivot of each column."""
    size = x.shape[-1]
    sign = torch.ones(x.shape[:-2], dtype=x.dtype)
    result = sign
    for column in range(size):
        rest = size - column
        column_values = x[..., :, 0]
        steps = torch.arange(rest)
        best = torch.amax(column_values.abs(), -1, keepdim=True)
        place = torch.amin(torch.where(column_values.abs() == best, steps, rest), -1, keepdim=True)
        is_pivot = (steps == place).unsqueeze(-1)
        pivot = torch.sum(torch.where(is_pivot, x, 0.0), -2, keepdim=True)
        first = x[..., :1, :]
        # Rows change places; the sign with them.
        x = torch.where(is_pivot, first, x)
        result = result * pivot[..., 0, 0] * torch.where(place[..., 0] == 0, 1.0, -1.0)
        if rest > 1:
            below = x[..., 1:, :]
            divisor = torch.where(pivot[..., :1] == 0, 1.0, pivot[..., :1])
            x = (below - below[..., :1] / divisor * pivot)[..., 1:]
    return result


# Windows.


class Windows:
    """Where the windows of a convolution or of pooling are, in each dimension of the positions."""

    def __init__(self, node: Node, sizes: Sequence[int], kernel: Sequence[int], padded: bool = True):
        rank = len(sizes)
        self.sizes, self.kernel = list(sizes), list(kernel)
        self.strides = list(node.get("strides", [1] * rank))
        self.dilations = list(node.get("dilations", [1] * rank))
        if len(self.kernel) != rank or len(self.strides) != rank or len(self.dilations) != rank:
            raise node.refuse(f"requires strides, dilations and kernel_shape of {rank} entries, got others")
        if min([*self.kernel, *self.strides, *self.dilations], default=1) < 1:
            raise node.refuse("requires strides, dilations and kernel_shape of 1 at least")
        self.extents = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        auto = node.get("auto_pad", "NOTSET")
        pads = list(node.get("pads", [0] * (2 * rank)))
        self.before, self.after = pads[:rank], pads[rank:]
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            for dim in range(rank):
                count = -(-self.sizes[dim] // self.strides[dim])
                total = max((count - 1) * self.strides[dim] + self.extents[dim] - self.sizes[dim], 0)
                small, large = total // 2, total - total // 2
                self.before[dim], self.after[dim] = (small, large) if auto == "SAME_UPPER" else (large, small)
        elif auto == "VALID":
            self.before, self.after = [0] * rank, [0] * rank
        elif auto != "NOTSET":
            raise node.refuse(f"requires auto_pad NOTSET, SAME_UPPER, SAME_LOWER or VALID, got {auto}")
        self.counts = []
        self.overhang = []
        """How far the last window of each dimension reaches past the padding."""
        for dim in range(rank):
            whole = self.sizes[dim] + self.before[dim] + self.after[dim]
            room = whole - self.extents[dim]
            stride = self.strides[dim]
            if room < 0 and not (node.get("ceil_mode", 0) and padded):
                raise node.refuse(f"requires windows within {whole} elements, got one of {self.extents[dim]}")
            count = room // stride + 1
            if node.get("ceil_mode", 0):
                count = -(-room // stride) + 1
                # Windows begin within the data or the padding before it.
                if (count - 1) * stride >= self.sizes[dim] + self.before[dim]:
                    count -= 1
            self.counts.append(count)
            self.overhang.append(max((count - 1) * stride + self.extents[dim] - whole, 0))

    @property
    def is_inside(self) -> bool:
        """Whether all windows are within the data."""
        return not any([*self.before, *self.after, *self.overhang])

    def pad(self, x: Tensor, value: Any) -> Tensor:
        """The data with what windows see beyond it."""
        pads = []
        for dim in reversed(range(len(self.sizes))):
            # After the last window there may be padding that no window reads.
            pads += [self.before[dim], self.after[dim] + self.overhang[dim]]
        return functional.pad(x, pads, value=value) if any(pads) else x

    def take(self, x: Tensor, offsets: Sequence[int]) -> Tensor:
        """Of padded data the elements at one offset within all windows."""
        first = x.dim() - len(self.sizes)
        for dim, offset in enumerate(offsets):
            begin, stride, count = offset * self.dilations[dim], self.strides[dim], self.counts[dim]
            if stride == 1:
                x = x.narrow(first + dim, begin, count)
            else:
                x = torch.ops.aten.slice.Tensor(x, first + dim, begin, begin + (count - 1) * stride + 1, stride)
        return x

    def each(self) -> list[tuple[int, ...]]:
        """The offsets within a window."""
        return list(numpy.ndindex(*self.kernel))


@define("Conv")
def _conv(node: Node, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return convolve(node, x, weight, bias)


def convolve(node: Node, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A convolution with the attributes of the node."""
    rank = x.dim() - 2
    windows = Windows(node, x.shape[2:], weight.shape[2:])
    group = node.get("group", 1)
    if x.shape[1] != weight.shape[1] * group or weight.shape[0] % group:
        raise node.refuse(f"requires {weight.shape[1] * group} channels, got {x.shape[1]}")
    if not 1 <= rank <= 3:
        raise node.refuse(f"requires 1 to 3 dimensions of positions, got {rank}")
    call = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
    padding: Any = 0
    if windows.before == windows.after:
        padding = windows.before
    else:
        x = windows.pad(x, 0.0)
    return call(x, weight, bias, windows.strides, padding, windows.dilations, group)


@define("ConvTranspose")
def _conv_transpose(node: Node, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    rank, group = x.dim() - 2, node.get("group", 1)
    kernel = list(weight.shape[2:])
    if not 1 <= rank <= 3:
        raise node.refuse(f"requires 1 to 3 dimensions of positions, got {rank}")
    strides, dilations = list(node.get("strides", [1] * rank)), list(node.get("dilations", [1] * rank))
    extra = list(node.get("output_padding", [0] * rank))
    pads = list(node.get("pads", [0] * (2 * rank)))
    before, after = pads[:rank], pads[rank:]
    auto, wanted = node.get("auto_pad", "NOTSET"), node.get("output_shape")
    if wanted is not None:
        wanted = list(wanted)[-rank:]
    elif auto in ("SAME_UPPER", "SAME_LOWER"):
        # Strides beyond the kernel would need paddings below 0: ONNX Runtime takes 0, which the standard leaves open.
        full = [
            (size - 1) * stride + (points - 1) * dilation + 1 + more
            for size, stride, points, dilation, more in zip(x.shape[2:], strides, kernel, dilations, extra)
        ]
        wanted = [min(size * stride, most) for size, stride, most in zip(x.shape[2:], strides, full)]
    elif auto == "VALID":
        before, after = [0] * rank, [0] * rank
    for dim in range(rank):
        full = (x.shape[2 + dim] - 1) * strides[dim] + (kernel[dim] - 1) * dilations[dim] + 1
        if wanted is not None:
            total = full + extra[dim] - wanted[dim]
            small, large = total // 2, total - total // 2
            if total < 0:
                small, large = 0, total
            before[dim], after[dim] = (small, large) if auto == "SAME_UPPER" else (large, small)
            if total < 0:
                before[dim], after[dim] = 0, total
    y = transpose_convolution(x, weight, strides, dilations, group)
    crop = []
    for dim in reversed(range(rank)):
        crop += [-before[dim], extra[dim] - after[dim]]
    y = functional.pad(y, crop) if any(crop) else y
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


def transpose_convolution(x: Tensor, weight: Tensor, strides: list[int], dilations: list[int], group: int) -> Tensor:
    """The transposed convolution without paddings: zeros between the elements, and a convolution of all around them."""
    rank = x.dim() - 2
    kernel = list(weight.shape[2:])
    for dim, stride in enumerate(strides):
        if stride > 1:
            place, size = 2 + dim, x.shape[2 + dim]
            shape = list(x.shape)
            spread = functional.pad(x.unsqueeze(place + 1), [0, 0] * (x.dim() - place - 1) + [0, stride - 1])
            shape[place] = size * stride
            x = spread.reshape(shape).narrow(place, 0, (size - 1) * stride + 1)
    pads = []
    for dim in reversed(range(rank)):
        pads += [(kernel[dim] - 1) * dilations[dim]] * 2
    x = functional.pad(x, pads) if any(pads) else x
    # Inputs and outputs of the weight change their roles within each group.
    inputs, outputs = weight.shape[:2]
    weight = weight.reshape(group, inputs // group, outputs, *kernel).transpose(1, 2)
    weight = torch.flip(weight.reshape(group * outputs, inputs // group, *kernel), list(range(2, 2 + rank)))
    call = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
    return call(x, weight, None, 1, 0, dilations, group)


@define("Col2Im")
def _col2im(node: Node, x: Tensor, image: Tensor, block: Tensor) -> Tensor:
    sizes, kernel = node.read_ints(1), node.read_ints(2)
    rank = len(sizes)
    strides, dilations = list(node.get("strides", [1] * rank)), list(node.get("dilations", [1] * rank))
    pads = list(node.get("pads", [0] * (2 * rank)))
    counts = [
        (sizes[dim] + pads[dim] + pads[rank + dim] - dilations[dim] * (kernel[dim] - 1) - 1) // strides[dim] + 1
        for dim in range(rank)
    ]
    batch, channels = x.shape[0], x.shape[1] // math.prod(kernel)
    # Each place of the kernel is a channel, and moves its elements to one offset.
    weight = numpy.zeros((math.prod(kernel), 1, *kernel))
    for number, offsets in enumerate(numpy.ndindex(*kernel)):
        weight[(number, 0, *offsets)] = 1
    columns = x.reshape(batch * channels, math.prod(kernel), *counts)
    y = transpose_convolution(columns, constant(weight, x.dtype), strides, dilations, 1)
    pad = []
    for dim in reversed(range(rank)):
        pad += [-pads[dim], sizes[dim] + pads[dim] - y.shape[2 + dim]]
    return functional.pad(y, pad).reshape(batch, channels, *sizes)


# Pooling.


def _pool_rank(node: Node, x: Tensor) -> list[int]:
    kernel = list(node.get("kernel_shape"))
    if len(kernel) != x.dim() - 2:
        raise node.refuse(f"requires kernel_shape of {x.dim() - 2} entries, got {len(kernel)}")
    return kernel


@define("MaxPool")
def _max_pool(node: Node, x: Tensor) -> list[Tensor]:
    windows = Windows(node, x.shape[2:], _pool_rank(node, x))
    if node.wants(1):
        return _max_pool_with_indices(node, x, windows)
    is_plain = len(windows.kernel) == 2 and all(step == 1 for step in windows.dilations)
    if not x.is_floating_point():
        # Bytes are exact in f32.
        if is_plain and node.kind(0) in (TensorProto.INT8, TensorProto.UINT8):
            y = functional.max_pool2d(windows.pad(x.to(torch.float32), -math.inf), windows.kernel, windows.strides)
            return [y.to(x.dtype)]
        return [_reduce_windows(windows, windows.pad(x, torch.iinfo(x.dtype).min), torch.maximum)]
    if is_plain:
        return [functional.max_pool2d(windows.pad(x, -math.inf), windows.kernel, windows.strides)]
    return [_reduce_windows(windows, windows.pad(x, -math.inf), torch.maximum)]


def _reduce_windows(windows: Windows, padded: Tensor, combine: Any) -> Tensor:
    """One dimension after the other."""
    rank = len(windows.kernel)
    first = padded.dim() - rank
    y = padded
    for dim in range(rank):
        parts = []
        for offset in range(windows.kernel[dim]):
            begin, stride, count = offset * windows.dilations[dim], windows.strides[dim], windows.counts[dim]
            parts.append(torch.ops.aten.slice.Tensor(y, first + dim, begin, begin + (count - 1) * stride + 1, stride))
        y = parts[0]
        for part in parts[1:]:
            y = combine(y, part)
    return y


def _max_pool_with_indices(node: Node, x: Tensor, windows: Windows) -> list[Tensor]:
    """The maxima, and their places in the whole tensor; of equal ones the first."""
    sizes = windows.sizes
    steps = numpy.arange(math.prod(sizes))
    steps = steps.reshape(sizes) if not node.get("storage_order", 0) else steps.reshape(sizes[::-1]).transpose()
    least: Any = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    padded = windows.pad(x, least)
    pads = [(a, b + c) for a, b, c in zip(windows.before, windows.after, windows.overhang)]
    steps = numpy.pad(steps, pads)
    is_inside = numpy.pad(numpy.ones(sizes, bool), pads)
    best: Tensor | None = None
    places: Tensor | None = None
    for offsets in windows.each():
        here = windows.take(padded, offsets)
        place = windows.take(torch.from_numpy(steps), offsets)
        exists = windows.take(torch.from_numpy(is_inside), offsets)
        if best is None or places is None:
            best, places = here, torch.where(exists, place, -1).expand(here.shape)
            continue
        is_better = ((here > best) | (places < 0)) & exists
        if x.is_floating_point():
            is_better = is_better | (torch.isnan(here) & torch.logical_not(torch.isnan(best)))
        best, places = torch.where(is_better, here, best), torch.where(is_better, place, places)
    assert best is not None and places is not None
    images = torch.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * len(sizes)) * math.prod(sizes)
    return [best, places + images]


def _count_elements(windows: Windows, includes_pads: bool) -> numpy.ndarray:
    """How many elements each window of an average has."""
    total = numpy.ones([1] * len(windows.kernel))
    for dim, size in enumerate(windows.sizes):
        places = numpy.arange(windows.counts[dim])[:, None] * windows.strides[dim]
        places = places + numpy.arange(windows.kernel[dim])[None, :] * windows.dilations[dim] - windows.before[dim]
        low, high = (-windows.before[dim], size + windows.after[dim]) if includes_pads else (0, size)
        counts = ((places >= low) & (places < high)).sum(1)
        total = total * counts.reshape([-1 if other == dim else 1 for other in range(len(windows.kernel))])
    return total


@define("AveragePool")
def _average_pool(node: Node, x: Tensor) -> Tensor:
    windows = Windows(node, x.shape[2:], _pool_rank(node, x))
    counts = numpy.maximum(_count_elements(windows, bool(node.get("count_include_pad", 0))), 1)
    area = math.prod(windows.kernel)
    padded = windows.pad(x, 0.0)
    if len(windows.kernel) == 2 and all(step == 1 for step in windows.dilations):
        y = functional.avg_pool2d(padded, windows.kernel, windows.strides)
        return y if (counts == area).all() else y * constant(area / counts, x.dtype)
    total = _reduce_windows(windows, padded, torch.add)
    return total / area if (counts == area).all() else total * constant(1 / counts, x.dtype)


@define("LpPool")
def _lp_pool(node: Node, x: Tensor) -> Tensor:
    windows = Windows(node, x.shape[2:], _pool_rank(node, x))
    p = node.get("p", 2)
    total = _reduce_windows(windows, windows.pad(_raise(x.abs(), p), 0.0), torch.add)
    return _take_root(total, p)


def _raise(x: Tensor, p: float) -> Tensor:
    return x if p == 1 else x * x if p == 2 else torch.pow(x, p)


def _take_root(x: Tensor, p: float) -> Tensor:
    return x if p == 1 else torch.sqrt(x) if p == 2 else torch.pow(x, 1 / p)


def _positions(x: Tensor) -> list[int]:
    return list(range(2, x.dim()))


@define("GlobalAveragePool")
def _global_average(node: Node, x: Tensor) -> Tensor:
    return torch.mean(x, _positions(x), True) if x.dim() > 2 else x


@define("GlobalMaxPool")
def _global_max(node: Node, x: Tensor) -> Tensor:
    return torch.amax(x, _positions(x), True) if x.dim() > 2 else x


@define("GlobalLpPool")
def _global_lp(node: Node, x: Tensor) -> Tensor:
    p = node.get("p", 2)
    return _take_root(torch.sum(_raise(x.abs(), p), _positions(x), True), p)
