# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers as MLIR: `@forward` takes the image and the weights and gives the sums."""

from __future__ import annotations

from collections.abc import Sequence

from ._models import Layer


def tensor(shape: Sequence[int], element: str, encoding: str = "") -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}{', ' + encoding if encoding else ''}>"


def maps(dims: str, *results: str) -> str:
    return ", ".join(f"affine_map<({dims}) -> ({result})>" for result in results)


class Body:
    """The operations of a function, one after another."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def emit(self, operation: str) -> str:
        self.lines.append(f"  %{len(self.lines)} = {operation}")
        return f"%{len(self.lines) - 1}"

    def constant(self, element: str) -> str:
        return self.emit(f"arith.constant {'0' if element.startswith('i') else '0.0'} : {element}")

    def zeros(self, shape: Sequence[int], element: str) -> str:
        zero = self.constant(element)
        type_ = tensor(shape, element)
        empty = self.emit(f"tensor.empty() : {type_}")
        return self.emit(f"linalg.fill ins({zero} : {element}) outs({empty} : {type_}) -> {type_}")

    def elementwise(self, value: str, shape: Sequence[int], source: str, target: str, operation: str) -> str:
        dims = ", ".join(f"d{i}" for i in range(len(shape)))
        empty = self.emit(f"tensor.empty() : {tensor(shape, target)}")
        kinds = ", ".join(['"parallel"'] * len(shape))
        return self.emit(
            f"linalg.generic {{indexing_maps = [{maps(dims, dims, dims)}], iterator_types = [{kinds}]}} "
            f"ins({value} : {tensor(shape, source)}) outs({empty} : {tensor(shape, target)}) {{\n"
            f"    ^bb0(%a: {source}, %o: {target}):\n      %r = {operation} %a : {source} to {target}\n"
            f"      linalg.yield %r : {target}\n  }} -> {tensor(shape, target)}"
        )

    def reshape(self, value: str, source: Sequence[int], target: Sequence[int], groups: str, element: str) -> str:
        if len(source) > len(target):
            return self.emit(
                f"tensor.collapse_shape {value} {groups} : {tensor(source, element)} into {tensor(target, element)}"
            )
        return self.emit(
            f"tensor.expand_shape {value} {groups} output_shape {list(target)} : {tensor(source, element)} into "
            f"{tensor(target, element)}"
        )

    def pad(self, value: str, layer: Layer, element: str, as_copy: bool = False) -> tuple[str, int]:
        """The image with zeros around it, and its size.

        `as_copy` for upstream's bufferization, which makes of tensor.pad a strided copy that calls its runtime library.
        """
        pad, size = layer.padding, layer.size
        if not pad:
            return value, size
        if as_copy:
            image = tensor((1, layer.inputs, size, size), element)
            shape = (1, layer.inputs, size + 2 * pad, size + 2 * pad)
            zeros = self.zeros(shape, element)
            place = f"[0, 0, {pad}, {pad}] [1, {layer.inputs}, {size}, {size}] [1, 1, 1, 1]"
            middle = self.emit(f"tensor.extract_slice {zeros}{place} : {tensor(shape, element)} to {image}")
            copy = self.emit(f"linalg.copy ins({value} : {image}) outs({middle} : {image}) -> {image}")
            return self.emit(
                f"tensor.insert_slice {copy} into {zeros}{place} : {image} into {tensor(shape, element)}"
            ), size + 2 * pad
        zero = self.constant(element)
        width = f"[0, 0, {pad}, {pad}]"
        source, target = (1, layer.inputs, size, size), (1, layer.inputs, size + 2 * pad, size + 2 * pad)
        padded = self.emit(
            f"tensor.pad {value} low{width} high{width} {{\n    ^bb0(%a: index, %b: index, %c: index, %d: index):\n"
            f"      tensor.yield {zero} : {element}\n  }} : {tensor(source, element)} to {tensor(target, element)}"
        )
        return padded, size + 2 * pad

    def gather(self, value: str, layer: Layer, element: str, as_copy: bool = False) -> str:
        """The matrix whose columns are the windows of the image."""
        kernel, size = layer.kernel, layer.output_size
        length, count = layer.inputs * kernel**2, size**2
        padded, padded_size = self.pad(value, layer, element, as_copy)
        image = (1, layer.inputs, padded_size, padded_size)
        if kernel == 1 and layer.stride == 1:
            return self.reshape(padded, image, (length, count), "[[0, 1], [2, 3]]", element)
        shape = (layer.inputs, kernel, kernel, size, size)
        dims = "c, i, j, h, w"
        source = f"0, c, h * {layer.stride} + i, w * {layer.stride} + j"
        empty = self.emit(f"tensor.empty() : {tensor(shape, element)}")
        kinds = ", ".join(['"parallel"'] * 5)
        copy = self.emit(
            f"linalg.generic {{indexing_maps = [{maps(dims, source, dims)}], iterator_types = [{kinds}]}} "
            f"ins({padded} : {tensor(image, element)}) outs({empty} : {tensor(shape, element)}) {{\n"
            f"    ^bb0(%a: {element}, %o: {element}):\n      linalg.yield %a : {element}\n"
            f"  }} -> {tensor(shape, element)}"
        )
        return self.reshape(copy, shape, (length, count), "[[0, 1, 2], [3, 4]]", element)

    def convolution(self, value: str, weights: str, layer: Layer, element: str, sums: str) -> str:
        padded, size = self.pad(value, layer, element)
        image, out = (1, layer.inputs, size, size), output_shape(layer)
        shape: tuple[int, ...] = layer.weight_shape
        name = "conv_2d_nchw_fchw"
        if layer.depthwise:
            name = "depthwise_conv_2d_nchw_chw"
            weights = self.reshape(weights, shape, (shape[0], *shape[2:]), "[[0, 1], [2], [3]]", element)
            shape = (shape[0], *shape[2:])
        zeros = self.zeros(out, sums)
        return self.emit(
            f"linalg.{name} {{dilations = dense<1> : vector<2xi64>, strides = dense<{layer.stride}> : vector<2xi64>}} "
            f"ins({padded}, {weights} : {tensor(image, element)}, {tensor(shape, element)}) "
            f"outs({zeros} : {tensor(out, sums)}) -> {tensor(out, sums)}"
        )

    def product(self, weights: str, columns: str, layer: Layer, element: str, sums: str) -> str:
        """Weights as a matrix times the matrix of windows, as an image."""
        length, count = layer.inputs * layer.kernel**2, layer.output_size**2
        zeros = self.zeros((layer.outputs, count), sums)
        types = f"{tensor((layer.outputs, length), element)}, {tensor((length, count), element)}"
        out = tensor((layer.outputs, count), sums)
        matrix = self.emit(f"linalg.matmul ins({weights}, {columns} : {types}) outs({zeros} : {out}) -> {out}")
        return self.reshape(matrix, (layer.outputs, count), output_shape(layer), "[[0, 1], [2, 3]]", sums)


def output_shape(layer: Layer) -> tuple[int, int, int, int]:
    return (1, layer.outputs, layer.output_size, layer.output_size)


def function(body: Body, arguments: Sequence[tuple[str, str]], result: str, type_: str, attributes: str = "") -> str:
    parameters = ", ".join(f"%{name}: {type_}{attributes}" for name, type_ in arguments)
    return (
        f"func.func @forward({parameters}) -> {type_} {{\n"
        + "\n".join(body.lines)
        + f"\n  return {result} : {type_}\n}}\n"
    )


def image_type(layer: Layer, element: str) -> str:
    return tensor((1, layer.inputs, layer.size, layer.size), element)


def write_dense(layer: Layer, algorithm: str, element: str = "f32") -> str:
    """A layer with dense weights.

    f16 and bf16: images are kept so, weights were extended to f32 ahead, sums are in f32; i8: sums are in i32.
    With `algorithm` im2col the windows are copied to a matrix first; depthwise layers have no such form.
    """
    body = Body()
    image, weights = "%x", "%w"
    source, sums = element, "i32" if element == "i8" else "f32"
    if element in ("f16", "bf16"):
        image = body.elementwise(image, (1, layer.inputs, layer.size, layer.size), element, "f32", "arith.extf")
        source = "f32"
    if algorithm == "im2col" and not layer.depthwise:
        columns = body.gather(image, layer, source)
        length = layer.inputs * layer.kernel**2
        matrix = body.reshape(weights, layer.weight_shape, (layer.outputs, length), "[[0], [1, 2, 3]]", source)
        result = body.product(matrix, columns, layer, source, sums)
    else:
        result = body.convolution(image, weights, layer, source, sums)
    if element in ("f16", "bf16"):
        result, sums = body.elementwise(result, output_shape(layer), "f32", element, "arith.truncf"), element
    arguments = [("x", image_type(layer, element)), ("w", tensor(layer.weight_shape, source))]
    return function(body, arguments, result, tensor(output_shape(layer), sums))
