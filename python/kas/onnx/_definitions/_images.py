# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ONNX on images: resizing, sampling at places that are computed, regions of interest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
import torch

from .._node import Node, constant, define
from ._shapes import take_rows

Tensor = torch.Tensor
_Taps = list[tuple[numpy.ndarray, numpy.ndarray]]
_CUBIC = -0.75


def _locate(node: Node, mode: str, size: int, out: int, scale: float, region: Sequence[float]) -> numpy.ndarray:
    """Where the elements of a dimension that is resized are in the original."""
    place = numpy.arange(out, dtype=numpy.float64)
    length = scale * size
    if mode == "half_pixel":
        return (place + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - out / length) + (place + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return (place + 0.5) / scale - 0.5 if out > 1 else numpy.full(out, -0.5)
    if mode == "asymmetric":
        return place / scale
    if mode == "tf_half_pixel_for_nn":
        return (place + 0.5) / scale
    if mode == "align_corners":
        return place * (size - 1) / (length - 1) if out > 1 else numpy.zeros(out)
    if mode == "tf_crop_and_resize":
        first, last = region
        if out == 1:
            return numpy.full(1, (first + last) * (size - 1) / 2)
        return first * (size - 1) + place * (last - first) * (size - 1) / (length - 1)
    raise node.refuse(f"requires a coordinate_transformation_mode of the standard, got {mode}")


def _weigh(node: Node, mode: str, places: numpy.ndarray, scale: float) -> _Taps:
    """The elements that each place is made of, and their weights."""
    floor = numpy.floor(places)
    rest = places - floor
    first = floor.astype(numpy.int64)
    antialias = bool(node.get("antialias", 0)) and scale < 1
    if mode == "nearest":
        kind = node.get("nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor")
        up = {"round_prefer_floor": rest > 0.5, "round_prefer_ceil": rest >= 0.5, "floor": rest < 0, "ceil": rest > 0}
        if kind not in up:
            raise node.refuse(f"requires a nearest_mode of the standard, got {kind}")
        return [(first + up[kind], numpy.ones_like(places))]
    radius = 1 if mode == "linear" else 2
    if antialias:
        begin = math.floor(-radius / scale) + 1
        offsets = range(begin, radius - begin if radius == 2 else begin + 2 - 2 * begin)
    else:
        scale, offsets = 1.0, range(1 - radius, radius + 1)
    taps = []
    for offset in offsets:
        distance = numpy.abs((offset - rest) * scale)
        if radius == 1:
            weight = numpy.clip(1 - distance, 0, 1)
        else:
            a = node.get("cubic_coeff_a", -0.75)
            near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
            far = ((distance - 5) * distance + 8) * distance * a - 4 * a
            weight = numpy.where(distance <= 1, near, numpy.where(distance < 2, far, 0))
        taps.append((first + offset, weight))
    if antialias:
        total = sum(weight for _, weight in taps)
        taps = [(place, weight / total) for place, weight in taps]
    return taps


def _resize_one(node: Node, x: Tensor, dim: int, out: int, scale: float, mode: str, region: Sequence[float]) -> Tensor:
    size = x.shape[dim]
    transformation = node.get("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")
    places = _locate(node, transformation, size, out, scale, region)
    taps = _weigh(node, mode, places, scale)
    if node.get("exclude_outside", 0):
        taps = [(place, numpy.where((place >= 0) & (place < size), weight, 0)) for place, weight in taps]
        total = sum(weight for _, weight in taps)
        taps = [(place, weight / total) for place, weight in taps]
    y = _apply_taps(x, dim, [(place.clip(0, size - 1), weight) for place, weight in taps], mode == "nearest")
    if transformation == "tf_crop_and_resize":
        is_out = constant((places < 0) | (places > size - 1), torch.bool).reshape([-1] + [1] * (x.dim() - dim - 1))
        y = torch.where(is_out, constant(node.get("extrapolation_value", 0.0), y.dtype), y)
    return y


def _apply_taps(x: Tensor, dim: int, taps: _Taps, is_nearest: bool) -> Tensor:
    size, out = x.shape[dim], len(taps[0][0])
    shape = [-1] + [1] * (x.dim() - dim - 1)
    if is_nearest:
        return _take(x, dim, taps[0][0])
    if len(taps) > 4:
        # Many: a product of matrices.
        matrix = numpy.zeros((size, out))
        for place, weight in taps:
            numpy.add.at(matrix, (place, numpy.arange(out)), weight)
        return torch.matmul(x.movedim(dim, -1), constant(matrix, x.dtype)).movedim(-1, dim)
    total: Tensor | None = None
    for place, weight in taps:
        if not weight.any():
            continue
        part = _take(x, dim, place)
        part = part if (weight == 1).all() else part * constant(weight, x.dtype).reshape(shape)
        total = part if total is None else total + part
    return torch.zeros_like(x) if total is None else total


def _take(x: Tensor, dim: int, places: numpy.ndarray) -> Tensor:
    """Elements of one dimension; what is repeated evenly is no gather."""
    size = x.shape[dim]
    if len(places) == size and (places == numpy.arange(size)).all():
        return x
    times = len(places) // size
    if len(places) == times * size and (places == numpy.arange(len(places)) // times).all():
        wide = x.unsqueeze(dim + 1).expand(*x.shape[: dim + 1], times, *x.shape[dim + 1 :])
        return wide.reshape(*x.shape[:dim], times * size, *x.shape[dim + 1 :])
    moved = x.movedim(dim, 0)
    rest = moved.shape[1:]
    rows = take_rows(moved.reshape(size, -1), constant(places, torch.int64))
    return rows.reshape(len(places), *rest).movedim(0, dim)


@define("Resize")
def _resize(node: Node, x: Tensor, *_: Tensor) -> Tensor:
    first = 1 if node.opset < 11 else 2
    axes = [node.wrap(axis, x.dim()) for axis in node.get("axes", range(x.dim()))]
    have = [x.shape[dim] for dim in axes]
    has_sizes = node.is_given(3) and len(node.read_ints(3)) > 0
    if has_sizes:
        sizes = node.read_ints(3)
        scales = [size / old if old else 1.0 for size, old in zip(sizes, have)]
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            scale = min(scales) if policy == "not_larger" else max(scales)
            scales = [scale] * len(axes)
            sizes = [math.floor(scale * old + 0.5) for old in have]
    else:
        scales = [float(scale) for scale in node.read(first)]
        sizes = [math.floor(scale * old) for scale, old in zip(scales, have)]
    regions = [(0.0, 1.0)] * len(axes)
    if node.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        roi = [float(entry) for entry in node.read(1)]
        regions = list(zip(roi[: len(axes)], roi[len(axes) :]))
    return _resize_all(node, x, axes, sizes, scales, regions)


def _resize_all(
    node: Node, x: Tensor, axes: Sequence[int], sizes: Sequence[int], scales: Sequence[float], regions: Sequence[Any]
) -> Tensor:
    mode = node.get("mode", "nearest").replace("bilinear", "linear")
    if mode not in ("nearest", "linear", "cubic"):
        raise node.refuse(f"requires mode nearest, linear or cubic, got {mode}")
    y = x if mode == "nearest" or x.is_floating_point() else x.to(torch.float32)
    for dim, size, scale, region in zip(axes, sizes, scales, regions):
        crops = node.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        if crops or scale != 1 or size != x.shape[dim]:
            y = _resize_one(node, y, dim, size, scale, mode, region)
    return y if y.dtype == x.dtype else torch.round(y).to(x.dtype)


@define("Upsample")
def _upsample(node: Node, x: Tensor, *_: Tensor) -> Tensor:
    scales = [float(scale) for scale in (node.read(1) if node.is_given(1) else node.get("scales"))]
    sizes = [math.floor(scale * size) for scale, size in zip(scales, x.shape)]
    return _resize_all(node, x, range(x.dim()), sizes, scales, [(0.0, 1.0)] * x.dim())


# Sampling at places that are computed.


@define("AffineGrid")
def _affine_grid(node: Node, theta: Tensor, size: Tensor) -> Tensor:
    sizes = node.read_ints(1)[2:]
    axes = []
    for count in sizes:
        if node.get("align_corners", 0):
            axes.append(numpy.linspace(-1, 1, count) if count > 1 else numpy.zeros(1))
        else:
            axes.append((2 * numpy.arange(count) + 1) / count - 1)
    mesh = numpy.meshgrid(*axes, indexing="ij")
    points = numpy.stack([*(entry.reshape(-1) for entry in reversed(mesh)), numpy.ones(math.prod(sizes))], -1)
    grid = torch.matmul(constant(points, theta.dtype), theta.transpose(1, 2))
    return grid.reshape(theta.shape[0], *sizes, len(sizes))


def _reflect(place: Tensor, low: float, high: float) -> Tensor:
    """Mirrored at both ends, as often as needed."""
    length = high - low
    if length <= 0:
        return torch.full_like(place, low)
    distance = (place - low).abs()
    turns = torch.floor(distance / length)
    rest = distance - turns * length
    is_odd = turns - 2 * torch.floor(turns / 2) == 1
    return torch.where(is_odd, high - rest, low + rest)


class _Samples:
    """Elements of images (N, C, ...) at places (N, P)."""

    def __init__(self, x: Tensor, padding: str, align: bool):
        self.sizes, self.padding = x.shape[2:], padding
        self.batch, self.channels = x.shape[:2]
        self.rows = x.movedim(1, -1).reshape(-1, self.channels)
        self.limits = [(0.0, size - 1.0) if align else (-0.5, size - 0.5) for size in self.sizes]

    def move(self, dim: int, place: Tensor) -> Tensor:
        """A place within the image, where the padding makes it one."""
        size = self.sizes[dim]
        if self.padding == "border":
            return torch.clamp(place, 0.0, size - 1.0)
        return _reflect(place, *self.limits[dim]) if self.padding == "reflection" else place

    def take(self, places: Sequence[Tensor]) -> Tensor:
        """The elements (N, P, C) at whole places; zeros outside."""
        flat: Any = 0
        is_inside: Any = None
        for dim, (place, size) in enumerate(zip(places, self.sizes)):
            place = self.move(dim, place)
            exists = (place >= 0) & (place <= size - 1)
            is_inside = exists if is_inside is None else is_inside & exists
            # NaN is outside as well.
            flat = flat * size + torch.where(exists, place, 0.0).to(torch.int64)
        offsets = constant(numpy.arange(self.batch)[:, None] * math.prod(self.sizes), torch.int64)
        flat = torch.where(is_inside, flat, 0) + offsets
        found = take_rows(self.rows, flat.reshape(-1)).reshape(self.batch, -1, self.channels)
        return torch.where(is_inside.unsqueeze(-1), found, 0.0)


def _cubic_weights(rest: Tensor) -> list[Tensor]:
    a = _CUBIC

    def near(d: Tensor) -> Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return ((d - 5) * d + 8) * d * a - 4 * a

    return [far(rest + 1), near(rest), near(1 - rest), far(2 - rest)]


@define("GridSample")
def _grid_sample(node: Node, x: Tensor, grid: Tensor) -> Tensor:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.get("mode", "linear"), node.get("mode", "linear"))
    padding, align = node.get("padding_mode", "zeros"), bool(node.get("align_corners", 0))
    if mode not in ("linear", "nearest", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise node.refuse(f"requires a mode and a padding_mode of the standard, got {mode} and {padding}")
    samples = _Samples(x, padding, align)
    rank, positions = x.dim() - 2, grid.shape[1:-1]
    places = []
    for dim, size in enumerate(samples.sizes):
        value = grid[..., rank - 1 - dim].reshape(grid.shape[0], -1)
        places.append((value + 1) / 2 * (size - 1) if align else ((value + 1) * size - 1) / 2)
    y = interpolate(samples, places, mode)
    return y.transpose(1, 2).reshape(*x.shape[:2], *positions)


def interpolate(samples: _Samples, places: Sequence[Tensor], mode: str) -> Tensor:
    """The values (N, P, C) at any places."""
    if mode == "nearest":
        return samples.take([torch.round(place) for place in places])
    taps: list[list[tuple[Tensor, Tensor]]] = []
    for dim, place in enumerate(places):
        place = place if mode == "cubic" else samples.move(dim, place)
        first = torch.floor(place)
        rest = place - first
        weights = [1 - rest, rest] if mode == "linear" else _cubic_weights(rest)
        begin = 0 if mode == "linear" else -1
        taps.append([(first + (begin + number), weight) for number, weight in enumerate(weights)])
    total: Any = 0
    for choice in numpy.ndindex(*(len(entry) for entry in taps)):
        chosen = [taps[dim][number] for dim, number in enumerate(choice)]
        weight = chosen[0][1]
        for _, other in chosen[1:]:
            weight = weight * other
        total = total + samples.take([place for place, _ in chosen]) * weight.unsqueeze(-1)
    result: Tensor = total
    return result


@define("DeformConv")
def _deform_conv(
    node: Node, x: Tensor, weight: Tensor, offset: Tensor, bias: Tensor | None = None, mask: Tensor | None = None
) -> Tensor:
    from ._products import Windows

    windows = Windows(node, x.shape[2:], weight.shape[2:])
    rank, group, parts = x.dim() - 2, node.get("group", 1), node.get("offset_group", 1)
    batch, channels = x.shape[:2]
    area, counts = math.prod(windows.kernel), windows.counts
    per_part = channels // parts
    offsets = offset.reshape(batch, parts, area, rank, math.prod(counts))
    columns = []
    for part in range(parts):
        samples = _Samples(x.narrow(1, part * per_part, per_part), "zeros", True)
        for number, taps in enumerate(windows.each()):
            places = []
            for dim in range(rank):
                own = numpy.arange(counts[dim]) * windows.strides[dim] - windows.before[dim]
                own = own + taps[dim] * windows.dilations[dim]
                shape = [-1 if other == dim else 1 for other in range(rank)]
                base = numpy.broadcast_to(own.reshape(shape), counts).reshape(1, -1)
                places.append(offsets[:, part, number, dim] + constant(base, x.dtype))
            values = interpolate(samples, places, "linear").transpose(1, 2)
            if mask is not None:
                values = values * mask.reshape(batch, parts, area, 1, -1)[:, part, number]
            columns.append(values)
    # (N, C, taps, P), with the channels of all parts in their order.
    stacked = torch.stack(columns, 2).reshape(batch, per_part, parts, area, -1).transpose(1, 2)
    rows = stacked.reshape(batch, group, channels // group * area, -1)
    factors = weight.reshape(1, group, weight.shape[0] // group, -1)
    y = torch.matmul(factors, rows).reshape(batch, weight.shape[0], *counts)
    return y if bias is None else y + bias.reshape(-1, *[1] * rank)


# Regions.


@define("RoiAlign")
def _roi_align(node: Node, x: Tensor, regions: Tensor, images: Tensor) -> Tensor:
    height, width = node.get("output_height", 1), node.get("output_width", 1)
    ratio, scale = node.get("sampling_ratio", 0), node.get("spatial_scale", 1.0)
    half = 0.5 if node.opset >= 16 and node.get("coordinate_transformation_mode", "half_pixel") == "half_pixel" else 0.0
    mode = node.get("mode", "avg")
    boxes = regions * scale - half
    left, top, right, bottom = (boxes[:, place : place + 1] for place in range(4))
    tall, wide = bottom - top, right - left
    if not half:
        tall, wide = (torch.where(size < 1, 1.0, size) for size in (tall, wide))
    if ratio:
        counts = (ratio, ratio)
    else:
        if not (node.is_given(1) and node.inputs[1].real is not None):
            raise node.refuse("requires sampling_ratio of 1 at least, or regions that are known when the model is read")
        sizes = node.read(1) * scale
        spans = (sizes[:, 3] - sizes[:, 1]) / height, (sizes[:, 2] - sizes[:, 0]) / width
        own = [numpy.ceil(span).astype(int) for span in spans]
        if any((entry != entry[0]).any() for entry in own):
            raise node.refuse("requires sampling_ratio of 1 at least for regions of different sizes, got 0")
        counts = (max(int(own[0][0]), 1), max(int(own[1][0]), 1))
    number = regions.shape[0]

    def spread(first: Tensor, size: Tensor, out: int, count: int) -> Tensor:
        steps = (numpy.arange(out)[:, None] + (numpy.arange(count)[None, :] + 0.5) / count).reshape(1, -1)
        return first + constant(steps, x.dtype) * (size / out)

    rows, columns = spread(top, tall, height, counts[0]), spread(left, wide, width, counts[1])
    shape = (number, height * counts[0], width * counts[1])
    values = _sample_regions(x, images, rows.unsqueeze(2).expand(shape), columns.unsqueeze(1).expand(shape), mode)
    values = values.reshape(number, height, counts[0], width, counts[1], x.shape[1])
    y = torch.amax(values, (2, 4)) if mode == "max" else torch.mean(values, (2, 4))
    return y.permute(0, 3, 1, 2)


def _sample_regions(x: Tensor, images: Tensor, rows: Tensor, columns: Tensor, mode: str) -> Tensor:
    """The interpolated values (R, ..., C); the largest of the parts where the mode is max."""
    height, width = x.shape[2:]
    flat = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])
    is_out = (rows < -1) | (rows > height) | (columns < -1) | (columns > width)
    rows, columns = torch.where(rows < 0, 0.0, rows), torch.where(columns < 0, 0.0, columns)
    taps = []
    for place, size in ((rows, height), (columns, width)):
        place = torch.where(place > size - 1, float(size - 1), place)
        first = torch.floor(place)
        rest = place - first
        after = torch.where(first + 1 > size - 1, first, first + 1)
        taps.append([(first, 1 - rest), (after, rest)])
    image = images.to(torch.int64).reshape(-1, *[1] * (rows.dim() - 1)) * (height * width)
    parts = []
    for row, row_weight in taps[0]:
        for column, column_weight in taps[1]:
            places = row.to(torch.int64) * width + column.to(torch.int64) + image
            values = take_rows(flat, places.reshape(-1)).reshape(*places.shape, -1)
            parts.append(values * (row_weight * column_weight).unsqueeze(-1))
    total = parts[0]
    for part in parts[1:]:
        total = torch.maximum(total, part) if mode == "max" else total + part
    return torch.where(is_out.unsqueeze(-1), 0.0, total)


@define("MaxRoiPool")
def _max_roi_pool(node: Node, x: Tensor, regions: Tensor) -> Tensor:
    height, width = node.get("pooled_shape")
    scale = node.get("spatial_scale", 1.0)
    corners = regions[:, 1:] * scale
    # Halves away from zero, as C's `round` in "Fast R-CNN" (Girshick, ICCV 2015) and ONNX Runtime.
    boxes = torch.trunc(corners + torch.where(corners < 0, -0.5, 0.5))
    images = regions[:, 0].to(torch.int64)
    flat = x.reshape(x.shape[0], -1)
    own = take_rows(flat, images).reshape(-1, *x.shape[1:])
    masks = []
    for first, last, out, size in ((1, 3, height, x.shape[2]), (0, 2, width, x.shape[3])):
        begin, end = boxes[:, first : first + 1], boxes[:, last : last + 1]
        length = torch.where(end - begin + 1 < 1, 1.0, end - begin + 1)
        steps = constant(numpy.arange(out)[None, :], x.dtype)
        low, high = torch.floor(steps * length / out) + begin, torch.ceil((steps + 1) * length / out) + begin
        places = constant(numpy.arange(size)[None, None, :], x.dtype)
        masks.append((places >= low.unsqueeze(2)) & (places < high.unsqueeze(2)))
    rows, columns = masks
    inside = rows.unsqueeze(2).unsqueeze(4) & columns.unsqueeze(1).unsqueeze(3)
    # (R, C, out rows, out columns, rows, columns)
    values = torch.where(inside.unsqueeze(1), own.unsqueeze(2).unsqueeze(2), -math.inf)
    y = torch.amax(torch.amax(values, -1), -1)
    return torch.where(y == -math.inf, 0.0, y)
