# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models as MLIR, by torch-mlir."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy
import onnx
import onnx.inliner
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import helper, numpy_helper

from .._arguments import set_attributes
from .._errors import need
from .._module import Module
from ._export import OPSETS

_PIPELINE = "builtin.module(torch-onnx-to-torch-backend-pipeline,torch-backend-to-linalg-on-tensors-backend-pipeline)"

# What these operations read after their data are settings, which have to be known.
_WITH_SETTINGS = frozenset({"DequantizeLinear", "OneHot", "QuantizeLinear", "Range", "Resize", "Upsample"})

_WEIGHT_TYPES = (onnx.TensorProto.FLOAT, onnx.TensorProto.INT8, onnx.TensorProto.UINT8)

# torch-mlir gives other values for the first, and ends the process at the second.
_REFUSED = frozenset({"GridSample", "Unique"})


class Loaded(NamedTuple):
    """An ONNX model as MLIR."""

    module: Module
    """A module with one function, `@forward`, in linalg on tensors: of the inputs and all weights."""
    tensors: dict[str, numpy.ndarray]
    """The arguments after the inputs, in their order, by their names (`kas.name`): the weights."""


def _read(path: str) -> onnx.ModelProto:
    try:
        return onnx.load(path)
    except DecodeError as error:
        raise ValueError(f"requires an ONNX model in '{path}', got another file") from error


def load(model: str | os.PathLike[str] | onnx.ModelProto, shapes: Mapping[str, Sequence[int]] | None = None) -> Loaded:
    """An ONNX model, or the file of one, as MLIR (linalg on tensors), by torch-mlir.

    No weights are inside: tensors of f32 or bytes with one dimension at least are arguments that say their names, so
    that `kas-extract` finds the layers: `loaded.module.run("kas-extract")`. `loaded.module.compile("forward")` compiles
    it; the function takes the inputs and `loaded.tensors`. Other constants stay constants.

    `shapes`: those of inputs with symbolic sizes, by name. Functions of the model are inlined; versions 17 to 22 of the
    standard operations are read. Layers whose data and weights are dequantized (QDQ), as quantizers write them,
    multiply the bytes ([`-kas-fuse-dequantize`](../reference/passes.md#-kas-fuse-dequantize)).

    Raises `kas.MissingExtraError` without torch-mlir, `OSError` without the file, `ValueError` for a file that is no
    model, and for a model that has sizes that are not known, or operations that torch-mlir does not lower: the message
    names these and their nodes.
    """
    need("torch_mlir", "torch-mlir")
    proto = model if isinstance(model, onnx.ModelProto) else _read(os.fspath(model))
    version = max((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), default=0)
    if version not in OPSETS:
        raise ValueError(
            f"requires a model of opset {OPSETS[0]} to {OPSETS[-1]}, got {version}; onnx.version_converter converts it"
        )
    proto = onnx.inliner.inline_local_functions(proto)
    inputs = _set_shapes(proto.graph, shapes or {})
    tensors = _lift(proto.graph)
    proto.graph.name = "forward"
    del proto.graph.value_info[:]
    proto = _infer_shapes(proto)
    if _rewrite(proto.graph, tensors):
        proto = _infer_shapes(proto)
    text = _lower(proto)
    if isinstance(text, Exception):
        text = _lower_with_definitions(proto, text)
    names = [*inputs, *tensors]
    module = Module(set_attributes(text, [{"kas.name": name} for name in names]), "<network>")
    if any(node.op_type == "DequantizeLinear" for node in proto.graph.node):
        module.run("kas-fuse-dequantize")
    return Loaded(module, tensors)


def _infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        raise ValueError(f"requires a model whose shapes can be inferred: {error}") from error


def _set_shapes(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Gives the inputs their shapes, and forgets those of outputs; the names of the inputs."""
    initialized = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in initialized]
    names = [value.name for value in inputs]
    if unknown := [name for name in shapes if name not in names]:
        raise ValueError(f"requires shapes of inputs ({', '.join(names)}), got one of '{unknown[0]}'")
    for value in inputs:
        kind = value.type.tensor_type
        known = [size.dim_value if size.HasField("dim_value") else size.dim_param or "?" for size in kind.shape.dim]
        shape = list(shapes.get(value.name, known))
        fits = len(shape) == len(known) and all(isinstance(old, str) or old == new for old, new in zip(known, shape))
        if not fits or any(isinstance(size, str) for size in shape):
            got = f"of shape {tuple(shape)}" if value.name in shapes else "none"
            raise ValueError(f"requires a shape for input '{value.name}' of sizes {tuple(known)}, got {got}")
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind.elem_type, shape))
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    del graph.input[:]
    graph.input.extend(inputs)
    return names


def _lift(graph: onnx.GraphProto) -> dict[str, numpy.ndarray]:
    """Makes weights inputs of the graph; their values by name."""
    settings = {name for node in graph.node if node.op_type in _WITH_SETTINGS for name in node.input[1:]}
    tensors, constants = {}, []
    for tensor in graph.initializer:
        if tensor.data_type not in _WEIGHT_TYPES or not tensor.dims or tensor.name in settings:
            constants.append(tensor)
            continue
        tensors[tensor.name] = numpy.array(numpy_helper.to_array(tensor))
        graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    del graph.initializer[:]
    graph.initializer.extend(constants)
    return tensors


def _rewrite(graph: onnx.GraphProto, tensors: Mapping[str, numpy.ndarray]) -> bool:
    """Puts other nodes in the place of some; whether there were such."""
    known = {
        value.name: [size.dim_value for size in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.value_info)
    }
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        shape = known.get(node.input[0], []) if node.input and not node.domain else []
        if node.op_type == "MatMul" and len(shape) > 2 and 0 not in shape and node.input[1] in tensors:
            nodes += _flatten_product(graph, node, shape, tensors[node.input[1]].shape)
        elif node.op_type == "DepthToSpace" and len(shape) == 4 and 0 not in shape:
            nodes += _shuffle(graph, node, shape)
        else:
            nodes.append(node)
    is_changed = len(nodes) != len(graph.node)
    del graph.node[:]
    graph.node.extend(nodes)
    return is_changed


def _reshape(graph: onnx.GraphProto, node: onnx.NodeProto, data: str, result: str, shape: Sequence[int]) -> Any:
    graph.initializer.append(numpy_helper.from_array(numpy.array(shape, numpy.int64), f"{result}:shape"))
    return helper.make_node("Reshape", [data, f"{result}:shape"], [result], name=node.name)


def _flatten_product(
    graph: onnx.GraphProto, node: onnx.NodeProto, shape: Sequence[int], weight: Sequence[int]
) -> list[onnx.NodeProto]:
    """A product of several matrices and one weight as one of two matrices: a layer, which `kas-extract` finds."""
    if len(weight) != 2:
        return [node]
    output = node.output[0]
    return [
        _reshape(graph, node, node.input[0], f"{output}:data", [-1, shape[-1]]),
        helper.make_node("MatMul", [f"{output}:data", node.input[1]], [f"{output}:product"], name=node.name),
        _reshape(graph, node, f"{output}:product", output, [*shape[:-1], weight[1]]),
    ]


def _shuffle(graph: onnx.GraphProto, node: onnx.NodeProto, shape: Sequence[int]) -> list[onnx.NodeProto]:
    """What DepthToSpace is defined as: torch-mlir takes the order CRD for the other one."""
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    size, output = attributes["blocksize"], node.output[0]
    batch, channels, height, width = shape
    channels //= size**2
    is_crd = attributes.get("mode") == b"CRD"
    split = [batch, channels, size, size, height, width] if is_crd else [batch, size, size, channels, height, width]
    order = [0, 1, 4, 2, 5, 3] if is_crd else [0, 3, 4, 1, 5, 2]
    return [
        _reshape(graph, node, node.input[0], f"{output}:data", split),
        helper.make_node("Transpose", [f"{output}:data"], [f"{output}:moved"], perm=order, name=node.name),
        _reshape(graph, node, f"{output}:moved", output, [batch, channels, height * size, width * size]),
    ]


def _lower(model: onnx.ModelProto) -> str | Exception:
    """The text of the function in linalg, or why there is none."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras import onnx_importer
    from torch_mlir.passmanager import PassManager

    if any(node.op_type in _REFUSED for node in model.graph.node):
        return ValueError(f"requires a model without {' and '.join(sorted(_REFUSED))}")
    with ir.Context() as context:
        torch_dialect.register_dialect(context)
        # Failures become part of the exception.
        context.emit_error_diagnostics = False
        try:
            info = onnx_importer.ModelInfo(model)
            module = info.create_module(context=context)
            onnx_importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
            PassManager.parse(_PIPELINE).run(module.operation)
        except Exception as error:
            return error
        function, *others = module.body.operations
        if others:
            return ValueError("torch-mlir keeps a state of random numbers")
        for name in [name for name in function.attributes if name.startswith("torch.")]:
            del function.attributes[name]
        text = str(module)
        return ValueError("torch-mlir uses its dialect tm_tensor") if " tm_tensor." in text else text


def _lower_with_definitions(model: onnx.ModelProto, error: Exception) -> str:
    """What is not lowered as it is by its definition in the standard, where it has one by other operations."""
    missing: dict[str, list[str]] = {}
    defined = set()
    for index, node in enumerate(model.graph.node):
        single = _take_node(model, node)
        if node.op_type == "Constant" or not isinstance(_lower(single), Exception):
            continue
        if not isinstance(_define(single, {node.op_type}), Exception):
            defined.add(node.op_type)
            continue
        kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        missing.setdefault(kind, []).append(node.name or f"number {index}")
    if missing:
        found = "; ".join(f"{kind} (node {', '.join(names)})" for kind, names in missing.items())
        raise ValueError(f"requires operations that torch-mlir lowers, got {found}") from error
    text = _define(model, defined) if defined else error
    if isinstance(text, Exception):
        said = " ".join(str(text).split())[:1000]
        raise ValueError(f"torch-mlir cannot express this model: {type(text).__name__}: {said}") from error
    return text


def _define(model: onnx.ModelProto, kinds: Collection[str]) -> str | Exception:
    """The text with definitions in the place of operations, or why there is none."""
    try:
        functions = [("", kind) for kind in sorted(kinds)]
        inlined = onnx.inliner.inline_selected_functions(model, functions, inline_schema_functions=True)
        return _lower(_infer_shapes(inlined))
    except (RuntimeError, ValueError) as error:
        return error


def _take_node(model: onnx.ModelProto, node: onnx.NodeProto) -> onnx.ModelProto:
    """A model of one node, with the constants that it reads."""
    graph = model.graph
    known = {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    made = {name: other for other in graph.node if other.op_type == "Constant" for name in other.output}
    # Bodies of control flow read what is around them.
    bodies = [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]
    read = [*node.input, *(name for body in bodies for inner in body.node for name in inner.input)]
    names = list(dict.fromkeys(name for name in read if name))
    nodes = [made[name] for name in names if name in made]
    inputs = [known[name] for name in names if name in known and name not in constants and name not in made]
    outputs = [known.get(name, onnx.ValueInfoProto(name=name)) for name in node.output if name]
    taken: Any = helper.make_graph(
        [*nodes, node], "forward", inputs, outputs, [constants[name] for name in names if name in constants]
    )
    single = onnx.ModelProto()
    single.CopyFrom(model)
    single.graph.CopyFrom(taken)
    return single
