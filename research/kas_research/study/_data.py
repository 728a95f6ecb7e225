# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The data of layers: images, weights that are pruned or rounded, and what should come out."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy
import numpy.typing

from ._dot_tiles import DotProduct, Tile, count_groups, count_outputs
from ._models import Layer
from ._sparse import count_phases

Array: TypeAlias = "numpy.typing.NDArray[Any]"


def allocate(shape: Sequence[int], dtype: Any) -> Array:
    """Zeros that begin with a cache line."""
    size = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
    memory = numpy.zeros(size + 64, dtype=numpy.uint8)
    start = -memory.ctypes.data % 64
    array: Array = memory[start : start + size].view(dtype).reshape(shape)
    return array


def align(array: Array) -> Array:
    copy = allocate(array.shape, array.dtype)
    copy[...] = array
    return copy


def to_bf16(array: Array) -> Array:
    """The bits of the nearest bf16, ties to even."""
    bits = numpy.ascontiguousarray(array, dtype=numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def from_bf16(bits: Array) -> Array:
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


@dataclass
class Data:
    """The image, the weights, and the output in f64."""

    image: Array
    weights: Array
    expected: Array


def convolve(layer: Layer, image: Array, weights: Array) -> Array:
    """The convolution in f64, by a matrix product."""
    pad, kernel = layer.padding, layer.kernel
    padded = numpy.pad(image[0].astype(numpy.float64), ((0, 0), (pad, pad), (pad, pad)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(1, 2))[
        :, :: layer.stride, :: layer.stride
    ]
    if layer.depthwise:
        result: Array = numpy.einsum("chwij,cij->chw", windows, weights[:, 0].astype(numpy.float64))
        return result[None]
    return numpy.tensordot(weights.astype(numpy.float64), windows, axes=((1, 2, 3), (0, 3, 4)))[None]


def make_data(layer: Layer, element: str, sparsity: float, seed: int) -> Data:
    """Data of a layer.

    Weights are normal as He et al. initialize them; of those `sparsity` is the share of the smallest that becomes zero.
    int8: uniform over all numbers but -128 for weights.
    """
    generator = numpy.random.default_rng([seed, zlib.crc32(layer.name.encode())])
    image_shape = (1, layer.inputs, layer.size, layer.size)
    if element == "i8":
        image = align(generator.integers(-128, 128, image_shape, dtype=numpy.int8))
        weights = align(generator.integers(-127, 128, layer.weight_shape, dtype=numpy.int8))
        return Data(image, weights, convolve(layer, image, weights))
    image = generator.standard_normal(image_shape, dtype=numpy.float32)
    weights = generator.standard_normal(layer.weight_shape, dtype=numpy.float32)
    weights *= numpy.float32(numpy.sqrt(2 / numpy.prod(layer.weight_shape[1:])))
    if sparsity:
        dropped = min(round(weights.size * sparsity), weights.size - 1)
        weights.flat[numpy.argsort(numpy.abs(weights), axis=None, kind="stable")[:dropped]] = 0
    if element == "bf16":
        image, weights = to_bf16(image), to_bf16(weights)
        return Data(align(image), align(weights), convolve(layer, from_bf16(image), from_bf16(weights)))
    image, weights = (align(array.astype(element.replace("f", "float"))) for array in (image, weights))
    return Data(image, weights, convolve(layer, image, weights))


def get_error(actual: Array, data: Data, element: str) -> float:
    """The largest difference, relative to the largest magnitude."""
    values = from_bf16(actual) if element == "bf16" else actual
    return float(numpy.abs(values - data.expected).max() / max(numpy.abs(data.expected).max(), 1e-30))


def compress_rows(matrix: Array) -> tuple[list[int], list[Array]]:
    """Compressed sparse rows: how many there are; positions, coordinates and values."""
    rows, columns = numpy.nonzero(matrix)
    positions = numpy.searchsorted(rows, numpy.arange(matrix.shape[0] + 1)).astype(numpy.int32)
    return [len(rows)], [align(positions), align(columns.astype(numpy.int32)), align(matrix[rows, columns])]


def compress_places(layer: Layer, weights: Array) -> tuple[list[int], list[Array]]:
    """A matrix in compressed sparse rows for each place of the filter: outputs times the inputs of each phase."""
    counts, arrays = [], []
    phases = count_phases(layer)
    for i, j in numpy.ndindex(layer.kernel, layer.kernel):
        (count,), (positions, coordinates, values) = compress_rows(weights[:, :, i, j])
        coordinates += layer.inputs * ((i % layer.stride) * phases + j % layer.stride)
        counts.append(count)
        arrays += [positions, coordinates, values]
    return counts, arrays


def pack_dot_products(layer: Layer, instruction: DotProduct, tile: Tile, weights: Array) -> list[Array]:
    """Weights as `write_dot_tiles` takes them, and the first sums."""
    groups, size, outputs = count_groups(layer, instruction), instruction.group, count_outputs(layer, tile)
    padded = numpy.zeros((outputs, groups * size, *layer.weight_shape[2:]), dtype=weights.dtype)
    padded[: layer.outputs, : layer.inputs] = weights
    packed: Array = padded.reshape(outputs, groups, size, -1).transpose(0, 1, 3, 2)
    packed = numpy.ascontiguousarray(packed).view(numpy.int32).reshape(outputs, -1)
    start: Array = numpy.zeros(outputs, dtype=numpy.int32 if instruction.sums == "i32" else numpy.float32)
    if instruction.element == "i8":
        start = -128 * padded.astype(numpy.int32).reshape(outputs, -1).sum(axis=1, dtype=numpy.int32)
    return [align(packed.T if tile.swapped else packed), align(start)]
