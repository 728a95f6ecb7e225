# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes of ONNX graphs, as the definitions of operations see them, and the table of these definitions.

A definition is a function of PyTorch's tensors: it is traced for the nodes that depend on what the model is given, and
called for those that do not. It takes the node and its inputs (None for one that is left out) in the form `wide` of
`_kinds.py`, or `stored` where it only moves elements, and gives one result or a list of them. NumPy arrays as results
are constants, whatever the inputs are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import onnx
import torch
from onnx import helper
from torch.utils._python_dispatch import _disable_current_modes

from ._kinds import KINDS, find_kind, get_name, parse_kind, widen

if TYPE_CHECKING:
    from ._graph import Reader, Value


class RefusedNodeError(ValueError):
    """Why a node is not read; says its operation."""


class Node:
    """A node whose inputs are at hand."""

    def __init__(
        self,
        proto: onnx.NodeProto,
        index: int,
        opset: int,
        inputs: Sequence[Any],
        reader: Reader,
        scope: dict[str, Any],
    ):
        self.proto, self.opset, self.inputs, self.reader, self.scope = proto, opset, inputs, reader, scope
        self.operation = f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type
        self.label = proto.name or f"number {index}"
        self._attributes = {entry.name: entry for entry in proto.attribute}
        self.has_bodies = any(entry.type == onnx.AttributeProto.GRAPH for entry in proto.attribute)
        self.num_results = len(proto.output)
        self.result_kinds: dict[int, int] = {}
        """The types of results that no input and no standard says, where they are not those of the tensors."""

    def refuse(self, what: str) -> RefusedNodeError:
        """The error that says what of this node is not supported."""
        return RefusedNodeError(f"{self.operation} (node {self.label}): {what}")

    def has(self, name: str) -> bool:
        """Whether the attribute is given."""
        return name in self._attributes

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute; bytes as text."""
        if name not in self._attributes:
            return default
        value = helper.get_attribute_value(self._attributes[name])
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, list) and value and isinstance(value[0], bytes):
            return [entry.decode() for entry in value]
        return list(value) if not isinstance(value, (str, int, float)) and hasattr(value, "__len__") else value

    def kind(self, number: int) -> int:
        """The type of an input that is given."""
        value: Value = self.inputs[number]
        return value.kind

    def widen(self, number: int, tensor: torch.Tensor) -> torch.Tensor:
        """An input in the form that is computed with, for definitions that get it as it is stored."""
        return widen(tensor, self.kind(number))

    def is_given(self, number: int) -> bool:
        """Whether there is such an input."""
        return number < len(self.inputs) and self.inputs[number] is not None

    def wants(self, number: int) -> bool:
        """Whether there is such a result."""
        return number < self.num_results and bool(self.proto.output[number])

    def read(self, number: int) -> numpy.ndarray:
        """The elements of an input, which have to be known."""
        value: Value = self.inputs[number]
        if value.real is None:
            raise self.refuse(
                f"requires input {number} ('{self.proto.input[number]}') to be known when the model is read, "
                "got one that is computed; `constants` gives the values of inputs of the model"
            )
        with _disable_current_modes():
            real = value.real.detach()
            return real.to(torch.float32).numpy() if real.dtype == torch.bfloat16 else real.numpy()

    def read_ints(self, number: int) -> list[int]:
        """Integers, of a scalar as well."""
        return [int(entry) for entry in self.read(number).reshape(-1)]

    def read_axes(self, number: int, rank: int, name: str = "axes") -> list[int] | None:
        """Dimensions, from an input or, in older versions, an attribute; None where there are none."""
        if self.is_given(number):
            axes = self.read_ints(number)
        elif self.has(name):
            axes = list(self.get(name))
        else:
            return None
        return [self.wrap(axis, rank) for axis in axes]

    def wrap(self, axis: int, rank: int) -> int:
        """A dimension from the first one on."""
        if not -rank <= axis < max(rank, 1):
            raise self.refuse(f"requires dimensions of {-rank} to {rank - 1}, got {axis}")
        return axis % rank if rank else 0


Definition = Callable[..., Any]


class Entry(NamedTuple):
    """What defines an operation."""

    function: Definition
    moves: bool
    """Whether elements are moved and not computed with: they stay as they are stored."""


DEFINITIONS: dict[tuple[str, str], Entry] = {}
"""By domain and name."""


def define(*names: str, moves: bool = False, domain: str = "") -> Callable[[Definition], Definition]:
    """Makes a function the definition of these operations."""

    def enter(function: Definition) -> Definition:
        for name in names:
            DEFINITIONS[domain, name] = Entry(function, moves)
        return function

    return enter


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that tensors of these shapes are broadcast to."""
    return tuple(numpy.broadcast_shapes(*map(tuple, shapes)))


def constant(values: Any, dtype: torch.dtype) -> torch.Tensor:
    """A tensor that is known."""
    with _disable_current_modes():
        return torch.from_numpy(numpy.array(values)).to(dtype)


def find_result_kind(node: Node, number: int, result: torch.Tensor) -> int:
    """The type of a result: as the node says, as the standard has it, or as it is computed."""
    if number in node.result_kinds:
        return node.result_kinds[number]
    try:
        schema = onnx.defs.get_schema(node.proto.op_type, node.opset, node.proto.domain)
    except onnx.defs.SchemaError:
        return find_kind(result.dtype)
    output = schema.outputs[min(number, len(schema.outputs) - 1)]
    if not any(entry.type_param_str == output.type_str for entry in schema.type_constraints):
        return parse_kind(output.type_str)
    for place, value in enumerate(node.inputs):
        formal = schema.inputs[min(place, len(schema.inputs) - 1)]
        if formal.type_str == output.type_str and value is not None and hasattr(value, "kind"):
            return int(value.kind)
    allowed = [entry for entry in schema.type_constraints if entry.type_param_str == output.type_str]
    (names,) = [entry.allowed_type_strs for entry in allowed]
    if len(names) == 1:
        return parse_kind(names[0])
    return find_kind(result.dtype)


def check_kind(kind: int, what: str) -> None:
    """ValueError for types that are not read."""
    if kind not in KINDS:
        raise RefusedNodeError(f"{what} has elements of {get_name(kind)}, which are not read")
