# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ONNX that move elements: shapes, slices, gathers, paddings."""

from __future__ import annotations

import math
from typing import Any

import numpy
import torch

from .._kinds import KINDS
from .._node import Node, broadcast, check_kind, constant, define

Tensor = torch.Tensor


@define("Constant", moves=True)
def _constant(node: Node) -> Any:
    (entry,) = node.proto.attribute
    if entry.name == "value":
        check_kind(entry.t.data_type, "the constant")
        node.result_kinds[0] = entry.t.data_type
        return node.reader.read_tensor(entry.t)
    if entry.name in ("value_float", "value_floats"):
        return numpy.array(node.get(entry.name), numpy.float32)
    if entry.name in ("value_int", "value_ints"):
        return numpy.array(node.get(entry.name), numpy.int64)
    raise node.refuse(f"requires a tensor of numbers, got {entry.name}")


@define("ConstantOfShape", moves=True)
def _constant_of_shape(node: Node, shape: Tensor) -> Tensor:
    value = node.get("value")
    sizes = node.read_ints(0)
    if value is None:
        return torch.zeros(sizes)
    check_kind(value.data_type, "the value")
    node.result_kinds[0] = value.data_type
    return node.reader.read_tensor(value).reshape(()).expand(sizes).clone()


@define("Shape", moves=True)
def _shape(node: Node, x: Tensor) -> Any:
    sizes = list(x.shape)
    return numpy.array(sizes[slice(node.get("start", 0), node.get("end", None))], numpy.int64)


@define("Size", moves=True)
def _size(node: Node, x: Tensor) -> Any:
    return numpy.array(x.numel(), numpy.int64)


@define("Range")
def _range(node: Node, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    first, last, step = (node.read(place).reshape(()) for place in range(3))
    count = max(math.ceil((last.item() - first.item()) / step.item()), 0)
    return torch.arange(count).to(start.dtype) * delta + start


@define("EyeLike", moves=True)
def _eye_like(node: Node, x: Tensor) -> Any:
    kind = int(node.get("dtype", node.kind(0)))
    check_kind(kind, "dtype")
    node.result_kinds[0] = kind
    rows, columns = x.shape
    return torch.from_numpy(numpy.eye(rows, columns, int(node.get("k", 0)))).to(KINDS[kind].stored)


@define("Reshape", moves=True)
def _reshape(node: Node, x: Tensor, shape: Tensor | None = None) -> Tensor:
    sizes = node.read_ints(1) if node.is_given(1) else list(node.get("shape"))
    if not node.get("allowzero", 0):
        sizes = [x.shape[place] if size == 0 else size for place, size in enumerate(sizes)]
    rest = math.prod(size for size in sizes if size != -1)
    sizes = [x.numel() // max(rest, 1) if size == -1 else size for size in sizes]
    if math.prod(sizes) != x.numel():
        raise node.refuse(f"requires a shape of {x.numel()} elements, got {tuple(sizes)}")
    return x.reshape(sizes)


@define("Flatten", moves=True)
def _flatten(node: Node, x: Tensor) -> Tensor:
    axis = node.get("axis", 1)
    axis = axis if axis == x.dim() else node.wrap(axis, x.dim())
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@define("Squeeze", moves=True)
def _squeeze(node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    dims = node.read_axes(1, x.dim())
    dims = [dim for dim in range(x.dim()) if x.shape[dim] == 1] if dims is None else dims
    if any(x.shape[dim] != 1 for dim in dims):
        raise node.refuse(f"requires dimensions of size 1, got {dims} of {tuple(x.shape)}")
    return x.reshape([size for dim, size in enumerate(x.shape) if dim not in dims])


@define("Unsqueeze", moves=True)
def _unsqueeze(node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    given = node.read_ints(1) if node.is_given(1) else list(node.get("axes"))
    dims = [node.wrap(axis, x.dim() + len(given)) for axis in given]
    sizes = list(x.shape)
    for dim in sorted(dims):
        sizes.insert(dim, 1)
    return x.reshape(sizes)


@define("Transpose", moves=True)
def _transpose(node: Node, x: Tensor) -> Tensor:
    return x.permute(node.get("perm", list(reversed(range(x.dim())))))


@define("Concat", moves=True)
def _concat(node: Node, *inputs: Tensor) -> Tensor:
    axis = node.wrap(node.get("axis", 1), inputs[0].dim())
    whole = [x for x in inputs if x.numel()] or list(inputs[:1])
    return torch.cat(whole, axis) if len(whole) > 1 else whole[0]


@define("Split", moves=True)
def _split(node: Node, x: Tensor, split: Tensor | None = None) -> list[Tensor]:
    axis = node.wrap(node.get("axis", 0), x.dim())
    size = x.shape[axis]
    if node.is_given(1) or node.has("split"):
        sizes = node.read_ints(1) if node.is_given(1) else list(node.get("split"))
    else:
        count = node.get("num_outputs", node.num_results)
        part = -(-size // count)
        sizes = [min(part, max(size - part * place, 0)) for place in range(count)]
    if sum(sizes) != size:
        raise node.refuse(f"requires parts of {size} elements, got {sizes}")
    results, begin = [], 0
    for part in sizes:
        results.append(x.narrow(axis, begin, part))
        begin += part
    return results


@define("Slice", moves=True)
def _slice(node: Node, x: Tensor, *_: Tensor) -> Tensor:
    if node.opset < 10:
        starts, ends = list(node.get("starts")), list(node.get("ends"))
        axes = list(node.get("axes", range(len(starts))))
        steps = [1] * len(starts)
    else:
        starts, ends = node.read_ints(1), node.read_ints(2)
        axes = node.read_ints(3) if node.is_given(3) else list(range(len(starts)))
        steps = node.read_ints(4) if node.is_given(4) else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        dim = node.wrap(axis, x.dim())
        if step == 0:
            raise node.refuse("requires steps other than 0, got 0")
        x = slice_one(x, dim, start, end, step)
    return x


def slice_one(x: Tensor, dim: int, start: int, end: int, step: int) -> Tensor:
    """What ONNX takes of one dimension: starts and ends are clamped, steps may be negative."""
    size = x.shape[dim]
    start, end = (place + size if place < 0 else place for place in (start, end))
    if step > 0:
        start, end = min(max(start, 0), size), min(max(end, 0), size)
    else:
        start, end = min(max(start, -1), size - 1), min(max(end, -1), size - 1)
    count = max(-(-(end - start) // step), 0)
    if count == 0:
        return x.narrow(dim, 0, 0)
    if step < 0:
        x = torch.flip(x.narrow(dim, start + step * (count - 1), 1 - step * (count - 1)), [dim])
        start, step = 0, -step
    # Ends are exact: nothing is left to what a lowering makes of one that is far out.
    if step == 1:
        return x.narrow(dim, start, count)
    part: Tensor = torch.ops.aten.slice.Tensor(x, dim, start, start + step * (count - 1) + 1, step)
    return part


def wrap_indices(places: Tensor, size: int) -> Tensor:
    """Indices from the first element on."""
    places = places.to(torch.int64)
    return torch.where(places < 0, places + size, places)


def take_rows(rows: Tensor, places: Tensor) -> Tensor:
    """Rows of a matrix by indices that are 0 at least; what is compiled checks that they exist."""
    taken: Tensor = torch.ops.aten.embedding(rows, places)
    return taken


@define("Gather", moves=True)
def _gather(node: Node, x: Tensor, places: Tensor) -> Tensor:
    axis = node.wrap(node.get("axis", 0), x.dim())
    if node.is_given(1) and node.inputs[1].real is not None:
        numbers = node.read(1)
        if numbers.ndim == 0:
            return _at(node, x, axis, int(numbers))
    moved = x.movedim(axis, 0)
    rest = moved.shape[1:]
    if x.dim() == 1:
        moved = moved.unsqueeze(1)
    rows = take_rows(moved.reshape(moved.shape[0], -1), wrap_indices(places, x.shape[axis]).reshape(-1))
    rows = rows.reshape(*places.shape, *rest)
    return (
        rows.movedim(list(range(places.dim())), list(range(axis, axis + places.dim())))
        if places.dim()
        else rows.reshape(rest)
    )


def _at(node: Node, x: Tensor, axis: int, place: int) -> Tensor:
    size = x.shape[axis]
    if not -size <= place < size:
        raise node.refuse(f"requires indices of {-size} to {size - 1}, got {place}")
    return x.narrow(axis, place % size, 1).reshape([s for dim, s in enumerate(x.shape) if dim != axis])


@define("GatherElements", moves=True)
def _gather_elements(node: Node, x: Tensor, places: Tensor) -> Tensor:
    axis = node.wrap(node.get("axis", 0), x.dim())
    return gather_flat(x, _spread(places, x.shape, axis))


def _spread(places: Tensor, shape: Any, axis: int) -> Tensor:
    """The elements of a tensor of a shape, in rows, that indices along one dimension name."""
    flat: Tensor = wrap_indices(places, shape[axis]) * math.prod(shape[axis + 1 :])
    offsets = numpy.zeros(tuple(places.shape), numpy.int64)
    for dim, size in enumerate(places.shape):
        if dim != axis:
            steps = numpy.arange(size).reshape([-1 if other == dim else 1 for other in range(len(shape))])
            offsets = offsets + steps * math.prod(shape[dim + 1 :])
    spread: Tensor = flat + constant(offsets, torch.int64)
    return spread


def gather_flat(x: Tensor, places: Tensor) -> Tensor:
    """The elements of a tensor, in rows, at these places."""
    return take_rows(x.reshape(-1, 1), places.reshape(-1)).reshape(places.shape)


def _find_entries(node: Node, x: Tensor, places: Tensor, batch: int) -> tuple[Tensor, int]:
    """The rows that the last dimension of indices names, and how long a row is."""
    count = places.shape[-1]
    sizes = x.shape[batch : batch + count]
    flat: Any = 0
    for dim, size in enumerate(sizes):
        flat = flat * size + wrap_indices(places[..., dim], size)
    if not count:
        flat = torch.zeros(places.shape[:-1], dtype=torch.int64)
    if batch:
        total, inner = math.prod(x.shape[:batch]), math.prod(sizes)
        offsets = numpy.arange(total).reshape(*x.shape[:batch], *[1] * (flat.dim() - batch)) * inner
        flat = flat + constant(offsets, torch.int64)
    return flat, math.prod(x.shape[batch + count :])


@define("GatherND", moves=True)
def _gather_nd(node: Node, x: Tensor, places: Tensor) -> Tensor:
    batch = node.get("batch_dims", 0)
    flat, length = _find_entries(node, x, places, batch)
    rest = x.shape[batch + places.shape[-1] :]
    return take_rows(x.reshape(-1, length), flat.reshape(-1)).reshape(*places.shape[:-1], *rest)


@define("Expand", moves=True)
def _expand(node: Node, x: Tensor, shape: Tensor) -> Tensor:
    return x.expand(broadcast(x.shape, node.read_ints(1)))


@define("Tile", moves=True)
def _tile(node: Node, x: Tensor, repeats: Tensor, *axis: Tensor) -> Tensor:
    if node.opset < 6:
        counts = [1] * x.dim()
        counts[node.read_ints(2)[0]] = node.read_ints(1)[0]
    else:
        counts = node.read_ints(1)
    for dim, count in enumerate(counts):
        if count != 1:
            x = (
                x.unsqueeze(dim)
                .expand(*x.shape[:dim], count, *x.shape[dim:])
                .reshape(*x.shape[:dim], count * x.shape[dim], *x.shape[dim + 1 :])
            )
    return x


@define("Pad", moves=True)
def _pad(node: Node, x: Tensor, *_: Tensor) -> Tensor:
    pads = node.read_ints(1) if node.is_given(1) else list(node.get("pads", node.get("paddings", [])))
    dims = node.read_axes(3, x.dim()) if node.is_given(3) else list(range(x.dim()))
    assert dims is not None
    value = node.read(2).reshape(-1)[0].item() if node.is_given(2) else node.get("value", 0.0)
    mode = node.get("mode", "constant")
    for number, dim in enumerate(dims):
        x = pad_one(node, x, dim, pads[number], pads[number + len(dims)], mode, value)
    return x


def pad_one(node: Node, x: Tensor, dim: int, before: int, after: int, mode: str, value: Any) -> Tensor:
    """Pads one dimension; by less than nothing is a slice."""
    cut = max(-before, 0), max(-after, 0)
    size = x.shape[dim] - sum(cut)
    x = x.narrow(dim, cut[0], size) if any(cut) else x
    before, after = max(before, 0), max(after, 0)
    if not before and not after:
        return x
    if mode == "constant":
        parts = []
        for count in (before, after):
            shape = list(x.shape)
            shape[dim] = count
            parts.append(torch.full(shape, value, dtype=x.dtype) if count else None)
        return torch.cat([part for part in (parts[0], x, parts[1]) if part is not None and part.numel()], dim)
    places = numpy.arange(-before, size + after)
    if mode == "edge":
        places = places.clip(0, size - 1)
    elif mode == "wrap":
        places = places % size
    elif mode == "reflect":
        period = max(2 * (size - 1), 1)
        places = places % period
        places = numpy.where(places >= size, period - places, places) if size > 1 else places * 0
    else:
        raise node.refuse(f"requires mode constant, reflect, edge or wrap, got {mode}")
    return take_indices(x, dim, places)


def take_indices(x: Tensor, dim: int, places: numpy.ndarray) -> Tensor:
    """Elements of one dimension at places that are known, as slices where few of them do."""
    runs: list[list[int]] = []
    for place in map(int, places):
        if (runs and len(runs[-1]) == 1 and abs(place - runs[-1][0]) == 1) or (
            runs and len(runs[-1]) > 1 and place - runs[-1][-1] == runs[-1][1] - runs[-1][0]
        ):
            runs[-1].append(place)
        else:
            runs.append([place])
    parts = []
    for run in runs:
        part = x.narrow(dim, min(run), len(run))
        parts.append(torch.flip(part, [dim]) if run[0] > run[-1] else part)
    return torch.cat(parts, dim) if len(parts) > 1 else parts[0]


@define("DepthToSpace", moves=True)
def _depth_to_space(node: Node, x: Tensor) -> Tensor:
    size = node.get("blocksize")
    batch, channels, height, width = x.shape
    channels //= size**2
    if node.get("mode", "DCR") == "CRD":
        moved = x.reshape(batch, channels, size, size, height, width).permute(0, 1, 4, 2, 5, 3)
    else:
        moved = x.reshape(batch, size, size, channels, height, width).permute(0, 3, 4, 1, 5, 2)
    return moved.reshape(batch, channels, height * size, width * size)


@define("SpaceToDepth", moves=True)
def _space_to_depth(node: Node, x: Tensor) -> Tensor:
    size = node.get("blocksize")
    batch, channels, height, width = x.shape
    moved = x.reshape(batch, channels, height // size, size, width // size, size).permute(0, 3, 5, 1, 2, 4)
    return moved.reshape(batch, channels * size**2, height // size, width // size)


@define("Trilu", moves=True)
def _trilu(node: Node, x: Tensor, k: Tensor | None = None) -> Tensor:
    diagonal = node.read_ints(1)[0] if node.is_given(1) else 0
    rows, columns = x.shape[-2:]
    places = numpy.arange(columns)[None, :] - numpy.arange(rows)[:, None]
    keeps = places >= diagonal if node.get("upper", 1) else places <= diagonal
    return torch.where(constant(keeps, torch.bool), x, torch.zeros((), dtype=x.dtype))


@define("OneHot", moves=True)
def _one_hot(node: Node, places: Tensor, depth: Tensor, values: Tensor) -> Tensor:
    count = node.read_ints(1)[0]
    axis = node.wrap(node.get("axis", -1), places.dim() + 1)
    places = wrap_indices(places, count).unsqueeze(axis)
    shape = [1] * places.dim()
    shape[axis] = count
    return torch.where(places == torch.arange(count).reshape(shape), values[1], values[0])


@define("ReverseSequence", moves=True)
def _reverse_sequence(node: Node, x: Tensor, lengths: Tensor) -> Tensor:
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    rows = x.movedim((batch, time), (0, 1))
    steps = torch.arange(rows.shape[1]).reshape(1, -1)
    ends = lengths.to(torch.int64).reshape(-1, 1)
    places = torch.where(steps < ends, ends - 1 - steps, steps)
    offsets = torch.arange(rows.shape[0]).reshape(-1, 1) * rows.shape[1]
    flat = rows.reshape(rows.shape[0] * rows.shape[1], -1)
    return take_rows(flat, (places + offsets).reshape(-1)).reshape(rows.shape).movedim((0, 1), (batch, time))


@define("CenterCropPad", moves=True)
def _center_crop_pad(node: Node, x: Tensor, shape: Tensor) -> Tensor:
    sizes = node.read_ints(1)
    axes = [node.wrap(axis, x.dim()) for axis in node.get("axes", range(x.dim()))]
    for dim, size in zip(axes, sizes):
        have = x.shape[dim]
        if have > size:
            x = x.narrow(dim, (have - size) // 2, size)
        elif have < size:
            before = (size - have) // 2
            x = pad_one(node, x, dim, before, size - have - before, "constant", 0)
    return x


@define("Compress", moves=True)
def _compress(node: Node, x: Tensor, condition: Tensor) -> Tensor:
    if node.inputs[1].real is None:
        raise node.refuse("requires a condition that is known when the model is read: the size of the result is its")
    (places,) = numpy.nonzero(node.read(1).reshape(-1))
    axis = node.get("axis")
    if axis is None:
        return take_rows(x.reshape(-1, 1), constant(places, torch.int64)).reshape(-1)
    dim = node.wrap(axis, x.dim())
    moved = x.movedim(dim, 0)
    rest = moved.shape[1:]
    rows = take_rows(moved.reshape(moved.shape[0], -1), constant(places, torch.int64))
    return rows.reshape(len(places), *rest).movedim(0, dim)


def _need_known(node: Node) -> None:
    for place, value in enumerate(node.inputs):
        if value is not None and value.real is None:
            raise node.refuse(
                f"requires input {place} ('{node.proto.input[place]}') to be known when the model is read: "
                "the size of the result depends on its elements"
            )


@define("NonZero", moves=True)
def _non_zero(node: Node, x: Tensor) -> Any:
    _need_known(node)
    return numpy.array(numpy.nonzero(node.read(0)), numpy.int64).reshape(x.dim(), -1)


@define("Unique", moves=True)
def _unique(node: Node, x: Tensor) -> list[Any]:
    _need_known(node)
    axis = node.get("axis")
    values, first, inverse, counts = numpy.unique(
        node.read(0), return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not node.get("sorted", 1):
        order = numpy.argsort(first)
        values = numpy.take(values, order, axis or 0)
        places = numpy.empty_like(order)
        places[order] = numpy.arange(len(order))
        first, counts, inverse = first[order], counts[order], places[inverse]
    return [values, *(numpy.array(entry, numpy.int64) for entry in (first, inverse, counts))]
