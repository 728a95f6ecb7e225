# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX graphs as functions of PyTorch's tensors: node after node, by the definitions of their operations.

What depends on constants alone is computed at once, with the same definitions; only the rest is traced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy
import onnx
import torch
from onnx import TensorProto, numpy_helper
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils._python_dispatch import _disable_current_modes

from ._kinds import narrow, widen
from ._node import DEFINITIONS, Node, RefusedNodeError, check_kind, find_result_kind


class Value(NamedTuple):
    """A tensor of a graph."""

    tensor: torch.Tensor
    """As it is stored; may be one that is traced."""
    kind: int
    """Its type in ONNX."""
    real: torch.Tensor | None = None
    """Its elements, where they are known."""
    is_weight: bool = False
    """An argument of what is traced, although its elements are known."""


class Values(list[Any]):
    """A sequence of tensors, whose length is known."""


Scope: TypeAlias = dict[str, Any]
"""Values and sequences by name; None for an optional one that is empty."""

_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, KeyError, AttributeError)


def to_tensor(array: numpy.ndarray) -> torch.Tensor:
    """As elements are stored, which have no unsigned types of more than 8 bits."""
    array = numpy.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(numpy.int16).copy()).view(torch.bfloat16)
    signed = {"uint16": numpy.int16, "uint32": numpy.int32, "uint64": numpy.int64}.get(array.dtype.name)
    return torch.from_numpy(array.view(signed).copy() if signed else array.copy())


def make_known(tensor: torch.Tensor, kind: int) -> Value:
    """A constant."""
    return Value(tensor, kind, tensor)


def _is_constant(value: Any) -> bool:
    return value is None or (isinstance(value, Value) and value.real is not None and not value.is_weight)


class Reader:
    """Computes the graphs of a model."""

    def __init__(self, opsets: Mapping[str, int], folder: str = ""):
        self.opsets = dict(opsets)
        self.folder = folder
        """Where the files of external data are."""
        self.graphs: list[onnx.GraphProto] = []
        """Those that are being computed, the innermost last."""

    def read_tensor(self, proto: TensorProto) -> torch.Tensor:
        """A constant as it is stored."""
        check_kind(proto.data_type, f"the tensor '{proto.name}'")
        try:
            with _disable_current_modes():
                return to_tensor(numpy_helper.to_array(proto, self.folder))
        except (OSError, ValueError, onnx.checker.ValidationError) as error:
            raise ValueError(f"cannot read the data of the tensor '{proto.name}': {error}") from error

    def run(self, graph: onnx.GraphProto, scope: Scope) -> list[Any]:
        """The results of a graph; `scope` has its inputs and what is around it, and what it computes afterwards."""
        self.graphs.append(graph)
        for tensor in graph.initializer:
            if tensor.name not in scope:
                scope[tensor.name] = make_known(self.read_tensor(tensor), tensor.data_type)
        for index, node in enumerate(graph.node):
            self.run_node(node, index, scope)
        self.graphs.pop()
        return [self._find(scope, value.name, "the graph") for value in graph.output]

    @staticmethod
    def _find(scope: Scope, name: str, where: str) -> Any:
        if name not in scope:
            raise ValueError(f"{where} requires '{name}', which nothing computes before it")
        return scope[name]

    def run_node(self, proto: onnx.NodeProto, index: int, scope: Scope) -> None:
        """Computes one node, whose inputs the scope has."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        where = f"{proto.op_type} (node {proto.name or f'number {index}'})"
        inputs = [self._find(scope, name, where) if name else None for name in proto.input]
        node = Node(proto, index, self.opsets.get(domain, 1), inputs, self, scope)
        entry = DEFINITIONS.get((domain, proto.op_type))
        if entry is None:
            raise node.refuse("requires an operation that is read, got one without a definition")
        mode = get_proxy_mode()
        before = len(mode.tracer.graph.nodes) if mode else 0
        try:
            results = self._call(node, entry.function, entry.moves)
        except RefusedNodeError:
            raise
        except _ERRORS as error:
            said = " ".join(str(error).split())[:300]
            raise node.refuse(
                f"requires inputs and attributes that agree, got {type(error).__name__}: {said}"
            ) from error
        if mode:
            # For messages about what the definition consists of.
            made = len(mode.tracer.graph.nodes) - before
            for entry_, _ in zip(reversed(mode.tracer.graph.nodes), range(made)):
                entry_.meta.setdefault("onnx", f"{node.operation} (node {node.label})")
        for name, result in zip(proto.output, results):
            if name:
                scope[name] = result

    def _call(self, node: Node, function: Any, moves: bool) -> list[Any]:
        if not node.has_bodies and all(map(_is_constant, node.inputs)):
            with _disable_current_modes():
                return self._compute(node, function, moves)
        return self._compute(node, function, moves)

    def _compute(self, node: Node, function: Any, moves: bool) -> list[Any]:
        def enter(value: Any) -> Any:
            if not isinstance(value, Value):
                return value
            check_kind(value.kind, f"an input of {node.operation} (node {node.label})")
            if moves:
                return value.tensor
            if _is_constant(value):
                # Not a part of what is traced.
                with _disable_current_modes():
                    return widen(value.tensor, value.kind)
            return widen(value.tensor, value.kind)

        results = function(node, *map(enter, node.inputs))
        if not isinstance(results, (list, tuple)) or isinstance(results, (Value, Values)):
            results = [results]
        return [self._leave(node, number, result) for number, result in enumerate(results)]

    @staticmethod
    def _leave(node: Node, number: int, result: Any) -> Any:
        if result is None or isinstance(result, (Value, Values)):
            return result
        if isinstance(result, (numpy.ndarray, numpy.generic)):
            with _disable_current_modes():
                tensor = to_tensor(numpy.asarray(result))
                kind = find_result_kind(node, number, tensor)
                return make_known(narrow(tensor, kind), kind)
        kind = find_result_kind(node, number, result)
        check_kind(kind, f"result {number} of {node.operation} (node {node.label})")
        tensor = narrow(result, kind)
        return Value(tensor, kind, tensor if type(tensor) is torch.Tensor else None)
