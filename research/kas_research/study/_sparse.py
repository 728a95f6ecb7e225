# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers with sparse weights, as tensors of MLIR's sparse_tensor, which upstream's sparsifier compiles.

Weights are matrices in compressed sparse rows: one for all windows (im2col), or one for each place of the filter
(direct). For these the image is packed as for dot products (_dot_tiles.py): lines with their border are one long line,
so that each place reads the same pixels a little shifted. An image that is indexed by both the line of the output and
that of the filter would not do: the sparsifier makes the latter the inner loop, and nothing could be vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from ._dot_tiles import get_pitch
from ._models import Layer
from ._programs import Body, function, image_type, maps, output_shape, tensor

SPARSE_PASSES = (
    "sparse-assembler,sparsification-and-bufferization{{vl={lanes} "
    "enable-simd-index32}},sparse-storage-specifier-to-llvm,"
    "canonicalize,cse,buffer-results-to-out-params{{hoist-static-allocs=true modify-public-functions=true}}"
)
"""Upstream's sparsifier, without its runtime library, up to buffers that the caller passes."""

ROWS = "#sparse_tensor.encoding<{map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32}>"
"""Compressed sparse rows."""

LANES = 16
"""Pixels of a line are a multiple of so many, so that vectors need no masks."""


def count_phases(layer: Layer) -> int:
    """Of lines, and of columns, that filters read separately."""
    return min(layer.stride, layer.kernel)


def write_sparse(layer: Layer, algorithm: str, counts: Sequence[int]) -> str:
    """`@forward` of the image and, for each matrix, of its positions, coordinates and values.

    im2col: of [outputs, inputs * places] one with `counts[0]` values. direct: for each place of the filter one of
    [outputs, phases * inputs].
    """
    body = Body()
    if algorithm == "im2col" or layer.kernel == layer.stride == 1:
        shape = (layer.outputs, layer.inputs * layer.kernel**2)
        columns = body.gather("%x", layer, "f32", as_copy=True)
        count = layer.output_size**2
        sums = body.zeros((layer.outputs, count), "f32")
        sums = _multiply(body, 0, counts[0], shape, columns, count, count, 0, sums)
        result = body.reshape(sums, (layer.outputs, count), output_shape(layer), "[[0, 1], [2, 3]]", "f32")
    else:
        result = _write_places(body, layer, counts)
        shape = (layer.outputs, count_phases(layer) ** 2 * layer.inputs)
    arguments = [("x", image_type(layer, "f32"))]
    for number, count in enumerate(counts):
        arguments += [
            (f"positions{number}", tensor((layer.outputs + 1,), "i32")),
            (f"coordinates{number}", tensor((count,), "i32")),
            (f"values{number}", tensor((count,), "f32")),
        ]
    # So that what is read may stay in registers while sums are written.
    return function(body, arguments, result, tensor(output_shape(layer), "f32"), " {llvm.noalias}")


def _multiply(
    body: Body,
    number: int,
    values: int,
    shape: tuple[int, int],
    image: str,
    length: int,
    pixels: int,
    shift: int,
    sums: str,
) -> str:
    """Adds the products of one matrix with what is `shift` after each pixel."""
    array, out = tensor((values,), "i32"), tensor((shape[0], pixels), "f32")
    weights = body.emit(
        f"sparse_tensor.assemble (%positions{number}, %coordinates{number}), %values{number} : "
        f"({tensor((shape[0] + 1,), 'i32')}, {array}), {tensor((values,), 'f32')} to {tensor(shape, 'f32', ROWS)}"
    )
    return body.emit(
        f"linalg.generic {{indexing_maps = [{maps('i, k, n', 'i, k', f'k, n + {shift}', 'i, n')}], "
        f'iterator_types = ["parallel", "reduction", "parallel"]}} '
        f"ins({weights}, {image} : {tensor(shape, 'f32', ROWS)}, {tensor((shape[1], length), 'f32')}) outs({sums} : "
        f"{out}) {{\n"
        "    ^bb0(%a: f32, %b: f32, %o: f32):\n      %p = arith.mulf %a, %b : f32\n      %s = arith.addf %o, %p : f32\n"
        f"      linalg.yield %s : f32\n  }} -> {out}"
    )


def _write_places(body: Body, layer: Layer, counts: Sequence[int]) -> str:
    size, pitch, kernel, stride = layer.output_size, get_pitch(layer), layer.kernel, layer.stride
    pixels = -(-size * pitch // LANES) * LANES
    reach = (kernel - 1) // stride
    # One more line before the image: linalg takes an index without a constant for the whole extent.
    lines = 1 + max(-(-(pixels + reach * (pitch + 1)) // pitch), -(-(layer.size + layer.padding) // stride))
    phases = count_phases(layer)
    shape = (layer.outputs, phases**2 * layer.inputs)
    image = _pack(body, layer, lines, pitch)
    sums = body.zeros((layer.outputs, pixels), "f32")
    for place, values in enumerate(counts):
        i, j = divmod(place, kernel)
        if values:
            shift = pitch + i // stride * pitch + j // stride
            sums = _multiply(body, place, values, shape, image, lines * pitch, pixels, shift, sums)
    flat, rows, inner = (layer.outputs, size * pitch), (layer.outputs, size, pitch), (layer.outputs, size, size)
    if flat[1] != pixels:
        sums = body.emit(
            f"tensor.extract_slice {sums}[0, 0] {list(flat)} [1, 1] : {tensor((layer.outputs, pixels), 'f32')} to "
            f"{tensor(flat, 'f32')}"
        )
    sums = body.reshape(sums, flat, rows, "[[0], [1, 2]]", "f32")
    if pitch != size:
        sums = body.emit(
            f"tensor.extract_slice {sums}[0, 0, 0] {list(inner)} [1, 1, 1] : {tensor(rows, 'f32')} to "
            f"{tensor(inner, 'f32')}"
        )
    if flat[1] != pixels or pitch != size:
        type_ = tensor(inner, "f32")
        room = body.emit(f"tensor.empty() : {type_}")
        sums = body.emit(f"linalg.copy ins({sums} : {type_}) outs({room} : {type_}) -> {type_}")
    return body.reshape(sums, inner, output_shape(layer), "[[0, 1], [2], [3]]", "f32")


def _pack(body: Body, layer: Layer, lines: int, pitch: int) -> str:
    """The image to [phase, channel, pixel], with zeros around it and a line before it."""
    stride, pad, phases = layer.stride, layer.padding, count_phases(layer)
    height, width = lines * stride, max(pitch * stride, layer.size + pad)
    source, target = (1, layer.inputs, layer.size, layer.size), (1, layer.inputs, height, width)
    zeros = body.zeros(target, "f32")
    place = f"[0, 0, {stride + pad}, {pad}] {list(source)} [1, 1, 1, 1]"
    middle = body.emit(f"tensor.extract_slice {zeros}{place} : {tensor(target, 'f32')} to {tensor(source, 'f32')}")
    copy = body.emit(
        f"linalg.copy ins(%x : {tensor(source, 'f32')}) outs({middle} : {tensor(source, 'f32')}) -> "
        f"{tensor(source, 'f32')}"
    )
    padded = body.emit(
        f"tensor.insert_slice {copy} into {zeros}{place} : {tensor(source, 'f32')} into {tensor(target, 'f32')}"
    )
    if stride == 1:
        return body.reshape(padded, target, (layer.inputs, lines * pitch), "[[0, 1], [2, 3]]", "f32")
    shape = (phases, phases, layer.inputs, lines, pitch)
    room = body.emit(f"tensor.empty() : {tensor(shape, 'f32')}")
    kinds = ", ".join(['"parallel"'] * 5)
    packed = body.emit(
        f"linalg.generic {{indexing_maps = "
        f"[{maps('a, b, c, h, w', f'0, c, h * {stride} + a, w * {stride} + b', 'a, b, c, h, w')}], "
        f"iterator_types = [{kinds}]}} ins({padded} : {tensor(target, 'f32')}) outs({room} : {tensor(shape, 'f32')}) "
        f"{{\n"
        f"    ^bb0(%a: f32, %o: f32):\n      linalg.yield %a : f32\n  }} -> {tensor(shape, 'f32')}"
    )
    return body.reshape(packed, shape, (phases**2 * layer.inputs, lines * pitch), "[[0, 1, 2], [3, 4]]", "f32")
