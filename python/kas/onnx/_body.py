# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes of an ONNX function on tensors of known shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
import onnx
from onnx import helper, numpy_helper


class Value(NamedTuple):
    """A tensor of a function: its name and its shape."""

    name: str
    shape: tuple[int, ...]


class Body:
    """The nodes of a function, one after the other; equal nodes are one, and what does nothing has none."""

    def __init__(self, opset: int):
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self._known: dict[bytes, str] = {}
        self._reshaped: dict[str, Value] = {}

    def add(self, kind: str, inputs: Sequence[Value], shape: Sequence[int], **attributes: Any) -> Value:
        """The result of a new node; None among the attributes stands for none."""
        attributes = {name: value for name, value in sorted(attributes.items()) if value is not None}
        node = helper.make_node(kind, [value.name for value in inputs], [], **attributes)
        key = node.SerializeToString(deterministic=True)
        if key not in self._known:
            self._known[key] = f"v{len(self._known)}"
            node.output.append(self._known[key])
            self.nodes.append(node)
        return Value(self._known[key], tuple(shape))

    def constant(self, array: Any) -> Value:
        """A constant; floats are f32, integers i64."""
        array = numpy.asarray(array)
        if array.dtype.kind != "b":
            array = array.astype(numpy.int64 if array.dtype.kind in "iu" else numpy.float32)
        return self.add("Constant", [], array.shape, value=numpy_helper.from_array(array))

    def finish(self, result: Value, name: str) -> list[onnx.NodeProto]:
        """The nodes that the result needs, which gets another name."""
        needed: set[str] = {result.name}
        kept = []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(node)
        kept.reverse()
        if not kept or result.name not in kept[-1].output:
            return [*kept, helper.make_node("Identity", [result.name], [name])]
        kept[-1].output[0] = name
        return kept

    # What rearranges.

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The elements in another shape; -1 stands for what is left."""
        shape = tuple(shape)
        if -1 in shape:
            rest = math.prod(value.shape) // max(1, math.prod(size for size in shape if size != -1))
            shape = tuple(rest if size == -1 else size for size in shape)
        value = self._reshaped.get(value.name, value)
        if shape == value.shape:
            return value
        if shape:
            result = self.add("Reshape", [value, self.constant(numpy.array(shape, numpy.int64))], shape)
        else:
            # OpenVINO ends the process at a Reshape by a shape without numbers.
            result = self.add("Squeeze", [value, self.constant(list(range(len(value.shape))))], shape)
        self._reshaped[result.name] = value
        return result

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Dimension i of the result is dimension order[i] of the tensor."""
        order = list(order)
        if order == list(range(len(value.shape))):
            return value
        shape = [value.shape[dim] for dim in order]
        # Where only dimensions of size 1 move, the elements stay in their order.
        if [dim for dim in order if value.shape[dim] != 1] == [d for d, size in enumerate(value.shape) if size != 1]:
            return self.reshape(value, shape)
        return self.add("Transpose", [value], shape, perm=order)

    def pad(self, value: Value, low: Sequence[int], high: Sequence[int], fill: float = 0) -> Value:
        """With so many elements of `fill` before and after each dimension; fewer of its own where that is negative."""
        for dim, size in enumerate(value.shape):
            value = self.slice(value, dim, max(0, -low[dim]), size + min(0, high[dim]))
        low, high = ([max(0, amount) for amount in amounts] for amounts in (low, high))
        if not any(low) and not any(high):
            return value
        shape = [first + size + last for first, size, last in zip(low, value.shape, high)]
        return self.add("Pad", [value, self.constant([*low, *high]), self.constant(float(fill))], shape)

    def slice(self, value: Value, dim: int, start: int, stop: int, step: int = 1) -> Value:
        """The elements start, start + step, ... below stop of a dimension."""
        if (start, step) == (0, 1) and stop >= value.shape[dim]:
            return value
        shape = list(value.shape)
        shape[dim] = len(range(*slice(start, stop, step).indices(shape[dim])))
        return self.add("Slice", [value, *(self.constant([number]) for number in (start, stop, dim, step))], shape)

    def roll(self, value: Value, amount: int, dim: int) -> Value:
        """Element i of a dimension becomes element (i + amount) mod size."""
        size = value.shape[dim]
        amount %= size
        if amount == 0:
            return value
        parts = [self.slice(value, dim, size - amount, size), self.slice(value, dim, 0, size - amount)]
        return self.add("Concat", parts, value.shape, axis=dim)

    def expand(self, value: Value, shape: Sequence[int]) -> Value:
        """Repeated along dimensions of size 1."""
        if tuple(shape) == value.shape:
            return value
        return self.add("Expand", [value, self.constant(numpy.array(shape, numpy.int64))], shape)

    def take(self, value: Value, indices: numpy.ndarray, dim: int) -> Value:
        """The elements of a dimension at the indices, whose dimensions take its place."""
        shape = value.shape[:dim] + indices.shape + value.shape[dim + 1 :]
        return self.add("Gather", [value, self.constant(indices.astype(numpy.int64))], shape, axis=dim)

    # What computes.

    def reduce(self, kind: str, value: Value, dims: Sequence[int], keep: bool = False) -> Value:
        """ReduceSum or ReduceMax over dimensions, which stay with size 1 where `keep`."""
        dims = sorted(dim % len(value.shape) for dim in dims)
        if not dims:
            return value
        shape = [1 if dim in dims else size for dim, size in enumerate(value.shape) if keep or dim not in dims]
        if kind == "ReduceSum" or self.opset >= 18:
            return self.add(kind, [value, self.constant(dims)], shape, keepdims=int(keep))
        return self.add(kind, [value], shape, axes=dims, keepdims=int(keep))

    def elementwise(self, kind: str, *values: Value) -> Value:
        """A function of each element, or of those that meet by NumPy's rules."""
        return self.add(kind, values, numpy.broadcast_shapes(*(value.shape for value in values)))

    def scale(self, value: Value, factor: float) -> Value:
        """Times a number."""
        return value if factor == 1 else self.elementwise("Mul", value, self.constant(float(factor)))
