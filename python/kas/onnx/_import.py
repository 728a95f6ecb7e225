# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models as MLIR: traced as functions of PyTorch, which torch-mlir lowers as it does for `torch.compile`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy
import onnx
import onnx.inliner
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import helper

from .._arguments import set_attributes
from .._errors import need
from .._module import Module

OLDEST = 1
"""The first version of the standard operations that is read."""


class Loaded(NamedTuple):
    """An ONNX model as MLIR."""

    module: Module
    """A module with one function, `@forward`, in linalg on tensors: of the inputs and all weights."""
    tensors: dict[str, numpy.ndarray]
    """The arguments after the inputs, in their order, by their names (`kas.name`): the weights."""


def _read(path: str) -> onnx.ModelProto:
    try:
        return onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise ValueError(f"requires an ONNX model in '{path}', got another file") from error


def read_model(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> tuple[onnx.ModelProto, str]:
    """A model, and the folder of the files with its data: that of its own file."""
    if isinstance(model, onnx.ModelProto):
        return model, ""
    if isinstance(model, (bytes, bytearray, memoryview)):
        try:
            return onnx.load_model_from_string(bytes(model)), ""
        except DecodeError as error:
            raise ValueError(f"requires an ONNX model, got {len(model)} other bytes") from error
    path = os.fspath(model)
    return _read(path), os.path.dirname(os.path.abspath(path))


def load(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    *,
    folder: str = "",
) -> Loaded:
    """An ONNX model, its bytes, or the file of one, as MLIR (linalg on tensors).

    Each node is what the standard defines, as a function of PyTorch's tensors; the whole is traced and lowered by
    torch-mlir, as graphs of `torch.compile` are. No weights are inside: tensors of f32 or int8 with one dimension at
    least are arguments that say their names, so that `kas-extract` finds the layers:
    `loaded.module.run("kas-extract")`. `loaded.module.compile("forward")` compiles it; the function takes the inputs
    and `loaded.tensors`. Other constants stay constants, and what depends on constants alone is computed.

    `shapes`: those of inputs with symbolic sizes, by name. `constants`: values of inputs, by name, that are known:
    shapes, axes and other settings, which a compiled function cannot take; these are arguments no longer. `folder`: of
    the files with data outside of the model; by default that of its own file. Versions 1 and later of the standard
    operations are read. Layers whose data and weights are dequantized (QDQ), as quantizers write them, compute in
    int8 ([`-kas-fuse-dequantize`](../reference/passes.md#-kas-fuse-dequantize)).

    Raises `kas.MissingExtraError` without PyTorch and torch-mlir, `OSError` without the file, `ValueError` for a file
    that is no model, and for a model with what is not read: the message names operation, node, and what of it.
    """
    need("torch", "torch-mlir")
    need("torch_mlir", "torch-mlir")
    from ._lower import lower

    proto, own_folder = read_model(model)
    _check_version(proto)
    if proto.functions:
        proto = onnx.inliner.inline_local_functions(proto)
    known = dict(constants or {})
    proto = _copy_without_shapes(proto)
    inputs = _set_shapes(proto.graph, shapes or {}, known)
    proto = _expand_functions(proto)
    _check_operations(proto)
    text, tensors, arguments, results = lower(proto, inputs, known, folder or own_folder)
    module = Module(set_attributes(text, arguments, results), "<network>")
    if any(node.op_type == "DequantizeLinear" for node in proto.graph.node):
        module.run("kas-fuse-dequantize")
    return Loaded(module, tensors)


def _check_version(model: onnx.ModelProto) -> None:
    newest = onnx.defs.onnx_opset_version()
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    # Models of other operations alone need none.
    if not versions and model.opset_import:
        return
    if not OLDEST <= max(versions, default=0) <= newest:
        raise ValueError(f"requires a model of opset {OLDEST} to {newest}, got {max(versions, default=0)}")


def _copy_without_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model that may be changed, without what is known of its values."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    return copy


def _set_shapes(
    graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]], constants: Mapping[str, Any]
) -> list[onnx.ValueInfoProto]:
    """Gives the inputs their shapes, and forgets those of outputs; the inputs that are arguments."""
    initialized = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in initialized]
    names = [value.name for value in inputs]
    for what, given in (("shapes", shapes), ("constants", constants)):
        if unknown := [name for name in given if name not in names]:
            raise ValueError(f"requires {what} of inputs ({', '.join(names)}), got one of '{unknown[0]}'")
    taken = []
    for value in inputs:
        if value.name in constants:
            continue
        if not value.type.HasField("tensor_type"):
            raise ValueError(f"requires tensors as inputs, got '{value.name}' of {value.type.WhichOneof('value')}")
        kind = value.type.tensor_type
        if kind.HasField("shape"):
            known = [size.dim_value if size.HasField("dim_value") else size.dim_param or "?" for size in kind.shape.dim]
            shape = list(shapes.get(value.name, known))
            fits = len(shape) == len(known) and all(
                isinstance(old, str) or old == new for old, new in zip(known, shape)
            )
        else:
            known, shape, fits = ["..."], list(shapes.get(value.name, ["..."])), True
        if not fits or any(isinstance(size, str) for size in shape):
            got = f"of shape {tuple(shape)}" if value.name in shapes else "none"
            raise ValueError(f"requires a shape for input '{value.name}' of sizes {tuple(known)}, got {got}")
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind.elem_type, shape))
        taken.append(value)
    return taken


def _expand_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Puts the definitions of the standard in the place of operations that have none here."""
    unknown = _find_unknown(model)
    wanted = []
    for domain, kind in sorted(unknown):
        try:
            schema = onnx.defs.get_schema(kind, _find_version(model, domain), domain)
        except onnx.defs.SchemaError:
            continue
        # The stubs of onnx do not have these.
        if getattr(schema, "has_function", False) or getattr(schema, "has_context_dependent_function", False):
            wanted.append((domain, kind))
    if not wanted:
        return model
    try:
        typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
        # A definition by operations that are not read would hide the name of the operation that the model has.
        wanted = [name for name in wanted if _find_unknown(_inline(typed, [name])) <= unknown]
        return _inline(typed, wanted) if wanted else model
    except (RuntimeError, ValueError):
        # What is left has no definition, which the message says.
        return model


def _inline(model: onnx.ModelProto, kinds: list[tuple[str, str]]) -> onnx.ModelProto:
    return onnx.inliner.inline_selected_functions(model, kinds, inline_schema_functions=True)


def _find_unknown(model: onnx.ModelProto) -> set[tuple[str, str]]:
    """The domains and operations of the model that have no definition here."""
    from ._node import DEFINITIONS

    return {
        (node.domain, node.op_type)
        for node in model.graph.node
        if (_get_domain(node), node.op_type) not in DEFINITIONS and not node.domain.startswith("kas")
    }


def _get_domain(node: onnx.NodeProto) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _find_version(model: onnx.ModelProto, domain: str) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain == domain), default=1)


def _check_operations(model: onnx.ModelProto) -> None:
    """ValueError that names all operations that have no definition, with their nodes."""
    from ._node import DEFINITIONS

    missing: dict[str, list[str]] = {}

    def visit(graph: onnx.GraphProto) -> None:
        for index, node in enumerate(graph.node):
            if (_get_domain(node), node.op_type) not in DEFINITIONS:
                kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
                missing.setdefault(kind, []).append(node.name or f"number {index}")
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    visit(attribute.g)

    visit(model.graph)
    if missing:
        found = "; ".join(f"{kind} (node {', '.join(names)})" for kind, names in missing.items())
        raise ValueError(f"requires operations that are read, got {found}")
