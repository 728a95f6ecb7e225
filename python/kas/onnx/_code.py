# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PyTorch code of operators and kernels, run on tensors that write nodes.

`lib/Target/PyTorch*.cpp` write that code. What it uses of PyTorch is here under the same names, and nothing else.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from ._body import Body, Value
from ._contraction import contract, diagonal
from ._windows import Padding, Windows


class Index(numpy.ndarray):
    """A tensor of indices or of conditions, which is known."""

    def clamp(self, low: int, high: int) -> Index:
        return self.clip(low, high).view(Index)

    def expand(self, shape: Sequence[int]) -> Index:
        return numpy.broadcast_to(self, shape).view(Index)


class Tensor:
    """A value of a function with the methods of PyTorch's tensors."""

    device = None

    def __init__(self, body: Body, value: Value, windows: Windows | None = None, padding: Padding | None = None):
        self.body = body
        self.value = value
        self.windows = windows
        self.padding = padding

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def _make(self, value: Value, windows: Windows | None = None) -> Tensor:
        return Tensor(self.body, value, windows)

    # Rearrangement

    def reshape(self, *shape: Any) -> Tensor:
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        value = self.body.reshape(self.value, sizes)
        return self._make(value, self.windows.reshape(self.body, value.shape) if self.windows else None)

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Tensor:
        return self.reshape(*self.shape[:dim], *sizes, *self.shape[dim + 1 :])

    def flatten(self, first: int, last: int) -> Tensor:
        return self.reshape(*self.shape[:first], math.prod(self.shape[first : last + 1]), *self.shape[last + 1 :])

    def unsqueeze(self, dim: int) -> Tensor:
        return self.reshape(*self.shape[:dim], 1, *self.shape[dim:])

    def permute(self, *order: int) -> Tensor:
        value = self.body.transpose(self.value, order)
        return self._make(value, self.windows.transpose(order) if self.windows else None)

    def transpose(self, first: int, second: int) -> Tensor:
        order = list(range(len(self.shape)))
        order[first], order[second] = order[second], order[first]
        return self.permute(*order)

    def movedim(self, source: Any, target: Any) -> Tensor:
        rank = len(self.shape)
        sources, targets = (
            [dim % rank for dim in (dims if isinstance(dims, tuple) else (dims,))] for dims in (source, target)
        )
        order = [dim for dim in range(rank) if dim not in sources]
        for place, dim in sorted(zip(targets, sources)):
            order.insert(place, dim)
        return self.permute(*order)

    def expand(self, *shape: Any) -> Tensor:
        return self._make(self.body.expand(self.value, shape[0] if isinstance(shape[0], tuple) else shape))

    def repeat(self, *times: int) -> Tensor:
        shape = [size * count for size, count in zip(self.shape, times)]
        return self._make(self.body.add("Tile", [self.value, self.body.constant(list(times))], shape))

    def roll(self, amount: int, dim: int) -> Tensor:
        return self._make(self.body.roll(self.value, amount, dim))

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        return self._make(self.body.slice(self.value, dim, start, start + length))

    def diagonal(self, offset: int, first: int, second: int) -> Tensor:
        assert offset == 0
        return self._make(diagonal(self.body, self.value, first, second))

    def unfold(self, dim: int, size: int, step: int) -> Tensor:
        padding = self.padding or Padding(self.value, (0,) * len(self.shape), (0,) * len(self.shape), 0)
        windows = (self.windows or Windows.of(padding, self.shape)).unfold(dim, size, step)
        count = (self.shape[dim] - size) // step + 1
        value = self.body.take(self.value, step * numpy.arange(count)[:, None] + numpy.arange(size), dim)
        order = [other for other in range(len(value.shape)) if other != dim + 1] + [dim + 1]
        return self._make(self.body.transpose(value, order), windows)

    def __iter__(self) -> Iterator[Tensor]:
        for index in range(self.shape[0]):
            yield self._make(self.body.slice(self.value, 0, index, index + 1)).reshape(*self.shape[1:])

    def __getitem__(self, key: Any) -> Tensor:
        entries = list(key) if isinstance(key, tuple) else [key]
        if all(isinstance(entry, (int, Index)) for entry in entries):
            return self._take(entries)
        if Ellipsis in entries:
            place = entries.index(Ellipsis)
            entries[place : place + 1] = [slice(None)] * (len(self.shape) - len(entries) + 1)
        result = self
        for dim, entry in enumerate(entries):
            if isinstance(entry, list):
                result = self._make(self.body.take(result.value, numpy.array(entry), dim))
                continue
            start, stop, step = entry.indices(self.shape[dim])
            if (start, stop, step) == (0, self.shape[dim], 1):
                continue
            windows = result.windows.dilate(dim, step) if result.windows and start == 0 else None
            result = self._make(self.body.slice(result.value, dim, start, stop, step), windows)
        return result

    def _take(self, indices: Sequence[Any]) -> Tensor:
        flat = numpy.zeros((), numpy.int64)
        for index, size in zip(indices, self.shape):
            flat = flat * size + numpy.asarray(index)
        value = self.body.reshape(self.value, [-1])
        return self._make(self.body.take(value, flat, 0))

    # Reductions

    def sum(self, dims: Any) -> Tensor:
        return self._reduce("ReduceSum", dims)

    def mean(self, dims: Any) -> Tensor:
        total = self.sum(dims)
        return total / (math.prod(self.shape) // math.prod(total.shape))

    def amax(self, dims: Any) -> Tensor:
        every = [dim % len(self.shape) for dim in (dims if isinstance(dims, tuple) else (dims,))]
        pooled = self.windows.maximum(self.body, every) if self.windows else None
        return self._make(pooled) if pooled else self._reduce("ReduceMax", dims)

    def _reduce(self, kind: str, dims: Any, keep: bool = False) -> Tensor:
        return self._make(self.body.reduce(kind, self.value, dims if isinstance(dims, tuple) else (dims,), keep))

    # Arithmetic

    def apply(self, kind: str, *others: Any) -> Tensor:
        """A function of the elements of this tensor and of others, or of numbers."""
        values = [other.value if isinstance(other, Tensor) else self.body.constant(float(other)) for other in others]
        return self._make(self.body.elementwise(kind, self.value, *values))

    def __add__(self, other: Any) -> Tensor:
        return self.apply("Add", other)

    def __sub__(self, other: Any) -> Tensor:
        return self.apply("Sub", other)

    def __mul__(self, other: Any) -> Tensor:
        return self.apply("Mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Tensor:
        return self.apply("Div", other)

    def __neg__(self) -> Tensor:
        return self.apply("Neg")

    def new_ones(self, size: int) -> Tensor:
        return self._make(self.body.constant(numpy.ones(size)))


class _Torch:
    """The module `torch`."""

    @staticmethod
    def arange(size: int, device: None = None) -> Index:
        return numpy.arange(size).view(Index)

    @staticmethod
    def where(condition: Index, values: Tensor, other: float) -> Tensor:
        body = values.body
        if condition.all():
            return values
        inputs = [body.constant(numpy.asarray(condition)), values.value, body.constant(float(other))]
        return Tensor(body, body.add("Where", inputs, values.shape))

    @staticmethod
    def einsum(subscripts: str, *tensors: Tensor) -> Tensor:
        body, values = tensors[0].body, [tensor.value for tensor in tensors]
        inputs, _, result = subscripts.partition("->")
        letters = inputs.split(",")
        if len(tensors) == 2:
            for first, second in ((0, 1), (1, 0)):
                windows = tensors[first].windows
                if windows is None:
                    continue
                value = windows.convolve(body, letters[first], values[second], letters[second], result)
                if value is not None:
                    return Tensor(body, value)
        return Tensor(body, contract(body, subscripts, values))

    @staticmethod
    def roll(tensor: Tensor, amount: int, dim: int) -> Tensor:
        return tensor.roll(amount, dim)

    @staticmethod
    def cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
        body, shape = tensors[0].body, list(tensors[0].shape)
        shape[dim] = sum(tensor.shape[dim] for tensor in tensors)
        return Tensor(body, body.add("Concat", [tensor.value for tensor in tensors], shape, axis=dim))

    @classmethod
    def stack(cls, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
        return cls.cat([tensor.unsqueeze(dim) for tensor in tensors], dim)

    @staticmethod
    def matmul(left: Tensor, right: Tensor) -> Tensor:
        outer = numpy.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        shape = [*outer, left.shape[-2], right.shape[-1]]
        return Tensor(left.body, left.body.add("MatMul", [left.value, right.value], shape))

    @staticmethod
    def softmax(tensor: Tensor, dim: int) -> Tensor:
        return Tensor(tensor.body, tensor.body.add("Softmax", [tensor.value], tensor.shape, axis=dim))

    @staticmethod
    def cumsum(tensor: Tensor, dim: int) -> Tensor:
        axis = tensor.body.constant(dim)
        return Tensor(tensor.body, tensor.body.add("CumSum", [tensor.value, axis], tensor.shape))

    @classmethod
    def logsumexp(cls, tensor: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
        most = tensor._reduce("ReduceMax", dims, keepdim)
        return cls.exp(tensor - most)._reduce("ReduceSum", dims, keepdim).apply("Log") + most

    @staticmethod
    def minimum(left: Tensor, right: Tensor) -> Tensor:
        return left.apply("Min", right)

    @staticmethod
    def maximum(left: Tensor, right: Tensor) -> Tensor:
        return left.apply("Max", right)

    @staticmethod
    def exp(tensor: Tensor) -> Tensor:
        return tensor.apply("Exp")

    @staticmethod
    def relu(tensor: Tensor) -> Tensor:
        return tensor.apply("Relu")

    @staticmethod
    def sigmoid(tensor: Tensor) -> Tensor:
        return tensor.apply("Sigmoid")

    @staticmethod
    def tanh(tensor: Tensor) -> Tensor:
        return tensor.apply("Tanh")

    @staticmethod
    def abs(tensor: Tensor) -> Tensor:
        return tensor.apply("Abs")

    @staticmethod
    def sin(tensor: Tensor) -> Tensor:
        return tensor.apply("Sin")

    @staticmethod
    def sqrt(tensor: Tensor) -> Tensor:
        return tensor.apply("Sqrt")


class _Functional:
    """The module `torch.nn.functional`."""

    @staticmethod
    def pad(tensor: Tensor, amounts: Sequence[int], value: float = 0) -> Tensor:
        low, high = [0] * len(tensor.shape), [0] * len(tensor.shape)
        for index in range(len(amounts) // 2):
            low[-1 - index], high[-1 - index] = amounts[2 * index : 2 * index + 2]
        padded = tensor.body.pad(tensor.value, low, high, value)
        return Tensor(tensor.body, padded, None, Padding(tensor.value, tuple(low), tuple(high), value))

    @staticmethod
    def gelu(tensor: Tensor) -> Tensor:
        # Gelu is an operation since opset 20.
        return (tensor * math.sqrt(0.5)).apply("Erf").apply("Add", 1) * tensor * 0.5

    @staticmethod
    def _convolve(data: Tensor, weight: Tensor, dilation: tuple[int, ...], groups: int) -> Tensor:
        rank = len(dilation)
        low, high, value = (0,) * rank, (0,) * rank, data.value
        if data.padding and not any((*data.padding.low[:-rank], *data.padding.high[:-rank])):
            low, high, value = data.padding.low[-rank:], data.padding.high[-rank:], data.padding.source
        places = [size - step * (window - 1) for size, window, step in zip(data.shape[2:], weight.shape[2:], dilation)]
        result = data.body.add(
            "Conv",
            [value, weight.value],
            [data.shape[0], weight.shape[0], *places],
            kernel_shape=weight.shape[2:],
            dilations=dilation,
            pads=[*low, *high],
            group=groups,
        )
        return Tensor(data.body, result)

    conv1d = conv2d = conv3d = _convolve


def run(code: str, name: str, data: Sequence[Value], weights: Sequence[Value], body: Body) -> Value:
    """The result of the function `name` of exported PyTorch code, as nodes of the body."""
    tree = ast.parse(code)
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names: dict[str, Any] = {"torch": _Torch, "F": _Functional}
    exec(compile(tree, f"<PyTorch code of {name}>", "exec"), names)
    # The last function is the one of the operator or kernel; a kernel's operators are before it.
    function = names[[node.name for node in tree.body if isinstance(node, ast.FunctionDef)][-1]]
    result: Tensor = function(*(Tensor(body, value) for value in (*data, *weights)))
    return result.value
