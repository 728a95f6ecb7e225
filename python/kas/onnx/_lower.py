# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models in linalg on tensors: traced by the definitions of their operations, and lowered as PyTorch's graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import onnx
import torch
from onnx import TensorProto
from torch import fx

from . import _definitions  # noqa: F401
from ._graph import Reader, Value, make_known, to_tensor
from ._kinds import KINDS
from ._node import RefusedNodeError, check_kind

_WEIGHT_TYPES = (TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8)
_QUANTIZING = frozenset({"DequantizeLinear", "QuantizeLinear"})
"""What these read after their data are no weights, but how bytes are understood."""
_LARGE = 1024
"""The elements of a constant that is an argument."""


def _make_scope(
    proto: onnx.ModelProto, reader: Reader, constants: Mapping[str, Any]
) -> tuple[dict[str, Value], dict[str, Value]]:
    """The constants and the weights of a model."""
    scope, weights = {}, {}
    steps = {name for node in proto.graph.node if node.op_type in _QUANTIZING for name in node.input[1:]}
    for name, array in constants.items():
        kind = next(value.type.tensor_type.elem_type for value in proto.graph.input if value.name == name)
        check_kind(kind, f"the input '{name}'")
        tensor = array.detach() if isinstance(array, torch.Tensor) else to_tensor(numpy.asarray(array))
        scope[name] = make_known(tensor.to(KINDS[kind].stored), kind)
    for tensor in proto.graph.initializer:
        check_kind(tensor.data_type, f"the tensor '{tensor.name}'")
        value = make_known(reader.read_tensor(tensor), tensor.data_type)
        if tensor.data_type in _WEIGHT_TYPES and tensor.dims and tensor.name not in steps:
            weights[tensor.name] = value
        else:
            scope[tensor.name] = value
    return scope, weights


def lower(
    proto: onnx.ModelProto,
    inputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, Any],
    folder: str,
) -> tuple[str, dict[str, numpy.ndarray], list[dict[str, Any]], list[dict[str, Any]]]:
    """The text of `@forward`, its weights, and the attributes of its arguments and its results."""
    reader = Reader({"" if o.domain == "ai.onnx" else o.domain: o.version for o in proto.opset_import}, folder)
    scope, weights = _make_scope(proto, reader, constants)
    kinds = [value.type.tensor_type.elem_type for value in inputs]
    names = [value.name for value in inputs]
    samples = []
    for value, kind in zip(inputs, kinds):
        check_kind(kind, f"the input '{value.name}'")
        sizes = [size.dim_value for size in value.type.tensor_type.shape.dim]
        if 0 in sizes[1:]:
            raise RefusedNodeError(
                f"requires inputs with elements, got '{value.name}' of shape {tuple(sizes)}, "
                f"which {_find_reader(proto.graph, value.name)} reads"
            )
        samples.append(torch.empty(sizes, dtype=KINDS[kind].stored))
    result_kinds: list[int] = []

    def call(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        inside: dict[str, Any] = dict(scope)
        given = zip(names, kinds, tensors)
        inside.update({name: Value(tensor, kind) for name, kind, tensor in given})
        for (name, weight), tensor in zip(weights.items(), tensors[len(names) :]):
            inside[name] = Value(tensor, weight.kind, weight.real, True)
        results = reader.run(proto.graph, inside)
        for value, result in zip(proto.graph.output, results):
            if not isinstance(result, Value):
                raise RefusedNodeError(f"requires tensors as results, got '{value.name}' of another type")
            if 0 in result.tensor.shape[1:]:
                raise RefusedNodeError(
                    f"requires results with elements, got '{value.name}' of shape {tuple(result.tensor.shape)}, "
                    f"which {_find_producer(proto.graph, value.name)} makes"
                )
        result_kinds[:] = [result.kind for result in results]
        # A result is neither an argument nor another result.
        return tuple(map(_return, results))

    graph = _trace(call, [*samples, *(weight.tensor for weight in weights.values())])
    tensors = _take_weights(graph, len(names), weights)
    text = _import(graph)
    arguments: list[dict[str, Any]] = [{"kas.name": name, **_mark(kind)} for name, kind in zip(names, kinds)]
    for argument in arguments[1:]:
        argument["kas.data"] = None
    for name, array in tensors.items():
        arguments.append({"kas.name": name, **({"kas.unsigned": None} if array.dtype == numpy.uint8 else {})})
    return text, tensors, arguments, [_mark(kind) for kind in result_kinds]


def _find_reader(graph: onnx.GraphProto, name: str) -> str:
    for index, node in enumerate(graph.node):
        if name in node.input:
            return f"{node.op_type} (node {node.name or f'number {index}'})"
    return "nothing"


def _return(result: Value) -> torch.Tensor:
    if not result.tensor.numel():
        return torch.zeros(result.tensor.shape, dtype=result.tensor.dtype)
    copy: torch.Tensor = torch.ops.aten.clone(result.tensor)
    return copy


def _find_producer(graph: onnx.GraphProto, name: str) -> str:
    for index, node in enumerate(graph.node):
        if name in node.output:
            return f"{node.op_type} (node {node.name or f'number {index}'})"
    return "the model"


def _mark(kind: int) -> dict[str, Any]:
    return {"kas.unsigned": None} if KINDS[kind].is_unsigned else {}


def _trace(call: Any, samples: Sequence[torch.Tensor]) -> fx.GraphModule:
    from torch.fx.experimental.proxy_tensor import make_fx

    from ..torch._decompositions import get_inference_table
    from ..torch._graph_constants import fold_constants
    from ..torch._tracing import trace_alone

    trace = make_fx(call, decomposition_table=get_inference_table(), tracing_mode="fake", _allow_non_fake_inputs=True)
    with trace_alone(), torch.no_grad():
        graph: fx.GraphModule = trace(*samples)
    fold_constants(graph)
    return graph


def _take_weights(graph: fx.GraphModule, num_inputs: int, weights: Mapping[str, Value]) -> dict[str, numpy.ndarray]:
    """Leaves the weights that are used as arguments, and makes large constants such; the values of both, in order."""
    placeholders = graph.graph.find_nodes(op="placeholder")
    tensors: dict[str, numpy.ndarray] = {}
    for node, (name, value) in zip(placeholders[num_inputs:], weights.items()):
        if node.users:
            tensors[name] = value.tensor.numpy()
        else:
            graph.graph.erase_node(node)
    last = [*graph.graph.find_nodes(op="placeholder")][-1:]
    for node in graph.graph.find_nodes(op="get_attr"):
        tensor = getattr(graph, str(node.target))
        if tensor.dtype == torch.bfloat16:
            _widen_constant(graph, node, tensor)
            continue
        if tensor.dtype not in (torch.float32, torch.int8, torch.uint8) or tensor.numel() < _LARGE:
            continue
        name = f"constant{len(tensors)}"
        while name in tensors or name in weights:
            name += "_"
        first = next(iter(graph.graph.nodes))
        with graph.graph.inserting_after(last[0]) if last else graph.graph.inserting_before(first):
            argument = graph.graph.placeholder(f"large_{len(tensors)}")
        argument.meta = dict(node.meta)
        last = [argument]
        node.replace_all_uses_with(argument)
        graph.graph.erase_node(node)
        tensors[name] = tensor.contiguous().numpy()
    graph.recompile()
    return tensors


def _widen_constant(graph: fx.GraphModule, node: fx.Node, tensor: torch.Tensor) -> None:
    """torch-mlir has no constants of bf16: they are rounded from f32, which is exact."""
    setattr(graph, str(node.target), tensor.to(torch.float32))
    with graph.graph.inserting_after(node):
        rounded = graph.graph.call_function(torch.ops.aten._to_copy.default, (node,), {"dtype": torch.bfloat16})
    rounded.meta = dict(node.meta)
    node.replace_all_uses_with(rounded)
    rounded.args = (node,)
    if isinstance(node.meta.get("val"), torch.Tensor):
        node.meta["val"] = node.meta["val"].to(torch.float32)


def _import(graph: fx.GraphModule) -> str:
    from ..torch._graph_import import UnsupportedGraphError, import_graph

    try:
        return str(import_graph(graph, is_narrowed=False))
    except UnsupportedGraphError as error:
        found = {
            str(node.meta.get("onnx"))
            for node in graph.graph.nodes
            if node.op == "call_function"
            and node.meta.get("onnx")
            and any(operation.startswith(str(node.target).rpartition(".")[0]) for operation in error.operations)
        }
        found = found or set(_find_failing(graph))
        where = f"{', '.join(sorted(found))}: " if found else ""
        raise ValueError(f"{where}{error}") from error


def _find_failing(graph: fx.GraphModule) -> list[str]:
    """The node of ONNX with the first operation that cannot be lowered alone."""
    from ..torch._graph_import import UnsupportedGraphError, import_graph

    for node in graph.graph.nodes:
        if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
            continue
        alone = fx.Graph()
        copies = {}
        for given in node.all_input_nodes:
            copies[given] = alone.placeholder(given.name)
            copies[given].meta = dict(given.meta)
            value = getattr(graph, str(given.target)) if given.op == "get_attr" else given.meta.get("val")
            copies[given].meta["val"] = value
        alone.output((alone.node_copy(node, copies.__getitem__),))
        try:
            import_graph(fx.GraphModule(graph, alone), is_narrowed=False)
        except UnsupportedGraphError:
            return [str(node.meta["onnx"])] if "onnx" in node.meta else []
    return []
