# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of PyTorch in linalg on tensors, by torch-mlir."""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Callable, Collection, Sequence
from importlib.metadata import version
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from .. import _cache
from .._module import Module
from ._comparisons import replace_comparisons
from ._decompositions import get_inference_table
from ._element_types import keep_doubles, narrow_types, replace_unsigned
from ._gradient_decompositions import get_training_table
from ._graph_constants import fold_constants
from ._layouts import LayoutRecorder, lay_out_outputs
from ._loops import cut_loops, insert_loops
from ._max_pooling import get_indices_table, uses_indices
from ._options import Options
from ._shifts import guard_shifts


class UnsupportedGraphError(Exception):
    """Why a graph is not compiled by kas."""

    def __init__(self, reason: str, operations: Sequence[str] = ()):
        super().__init__(reason)
        self.operations = tuple(operations)
        """The operations that are the reason, such as `aten.i0`, where it is known."""


def _check_known(graph: fx.GraphModule) -> None:
    """UnsupportedGraphError where numbers or sizes are data, such as those of `item` and `nonzero`."""
    for node in graph.graph.nodes:
        for value in _as_list(node.meta.get("val")):
            sizes = value.shape if isinstance(value, torch.Tensor) else [value]
            if any(isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)) for size in sizes):
                raise UnsupportedGraphError(
                    f"requires sizes and numbers that are known before the call, got those of {node.target}"
                )


def trace(graph: Callable[..., Any], arguments: Sequence[Any], with_gradients: bool) -> fx.GraphModule:
    """The graph, or function, for tensors of these shapes alone, by simpler operations; what is no tensor is inside.

    `with_gradients`: it is the forward or backward graph of a training. UnsupportedGraphError where that is impossible.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    for node in graph.graph.nodes if isinstance(graph, fx.GraphModule) else ():
        if node.target is torch.ops.higher_order.with_effects:
            raise UnsupportedGraphError(f"requires a graph without checks that raise errors, got {node.args[1]}")
    places = [place for place, argument in enumerate(arguments) if isinstance(argument, torch.Tensor)]

    def call(*tensors: torch.Tensor) -> Any:
        values = list(arguments)
        for place, tensor in zip(places, tensors):
            values[place] = tensor
        with narrow_types(graph):
            return LayoutRecorder(graph).run(*values) if isinstance(graph, fx.GraphModule) else graph(*values)

    tensors = [arguments[place] for place in places]
    # Those of torch.func are part of any graph.
    nodes = graph.graph.nodes if isinstance(graph, fx.GraphModule) else ()
    with_gradients = with_gradients or any("_backward" in str(node.target) for node in nodes)
    table = get_training_table() if with_gradients else get_inference_table()

    def decompose() -> fx.GraphModule:
        try:
            with torch.no_grad():
                traced: fx.GraphModule = make_fx(call, decomposition_table=table, tracing_mode="fake")(*tensors)
        except Exception as error:
            # Whatever a graph has that cannot be traced, PyTorch can run it.
            raise UnsupportedGraphError(f"cannot be traced: {_describe_failure(error)}") from error
        _check_known(traced)
        fold_constants(traced)
        # Decompositions compute all results, such as the places of maxima, wanted or not.
        lay_out_outputs(traced)
        traced.graph.eliminate_dead_code()
        traced.recompile()
        return traced

    traced = decompose()
    if uses_indices(traced):
        table |= get_indices_table()
        traced = decompose()
    return traced


def _describe_failure(error: Exception) -> str:
    """What an operation of a graph raised, and which one it was, without the stack that PyTorch adds."""
    reason, _, place = " ".join(str(error).split()).partition(" While executing ")
    target = re.search(r"target=([\w.]+)", place)
    return f"{reason}, got {target[1].removeprefix('torch.ops.')}" if target else reason


def _describe(graph: fx.GraphModule) -> str | None:
    """What the graph computes, as text with digests of constants; None where it has other graphs or modules inside."""
    lines: list[str] = []
    names: dict[fx.Node, str] = {}
    for number, node in enumerate(graph.graph.nodes):
        names[node] = f"%{number}"
        if node.op == "call_module":
            return None
        if node.op == "get_attr":
            constant = getattr(graph, str(node.target), None)
            if not isinstance(constant, torch.Tensor) or isinstance(constant, FakeTensor):
                return None
            content = constant.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data
            digest = hashlib.blake2b(content, digest_size=20).hexdigest()
            lines.append(f"{names[node]} {constant.dtype} {tuple(constant.shape)} {digest}")
            continue
        arguments, options = fx.node.map_arg((node.args, node.kwargs), lambda node: _Name(names[node]))
        value = node.meta.get("val")
        types = [(str(v.dtype), tuple(v.shape)) if isinstance(v, torch.Tensor) else repr(v) for v in _as_list(value)]
        target = "" if node.op == "placeholder" else node.target
        lines.append(f"{names[node]} {node.op} {target} {arguments!r} {options!r} {types}")
    return "\n".join(lines)


class _Name(str):
    """Printed without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def make_key(
    graph: fx.GraphModule,
    arguments: Sequence[Any],
    kind: str,
    static: Collection[int] = (),
    options: Options | None = None,
    batched: Collection[int] = (),
) -> str | None:
    """The key of what is made of a graph for these arguments; None where it has none.

    `kind`: what traces it; `static` are the places of weights, `batched` of what has samples.
    """
    text = _describe(graph)
    # Functions that are no operations of PyTorch may have changed.
    if text is None or " at 0x" in text:
        return None
    types = [
        (tuple(a.shape), a.stride(), a.dtype) if isinstance(a, torch.Tensor) else (type(a).__name__, repr(a))
        for a in arguments
    ]
    # What does not change the code.
    options = (options or Options())._replace(bind_calls=False, strict=False)
    defaults = (torch.get_default_dtype(), torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu"))
    state = (kind, sorted(static), sorted(batched), options, defaults)
    return _cache.make_key(torch.__version__, version("torch-mlir"), repr(state), repr(types), text)


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else [value]


def _keep_literals() -> Any:
    """Hooks of torch-mlir's importer by which all constants live as long as it does.

    It knows a constant by its address. Booleans are constants of bytes that it makes and drops, so that the next one
    may take the address, and with it the values, of one before.
    """
    from torch_mlir.extras.fx_importer import FxImporterHooks

    class KeepLiterals(FxImporterHooks):  # type: ignore[misc]
        def __init__(self) -> None:
            self.kept: list[Any] = []

        def resolve_literal(self, importer: Any, literal: Any, info: Any) -> None:
            self.kept.append(literal)

    return KeepLiterals()


def import_graph(graph: fx.GraphModule, is_narrowed: bool = True) -> Module:
    """The graph in linalg on tensors; UnsupportedGraphError where torch-mlir cannot express it.

    `is_narrowed`: it was traced by `trace`, and so computes nothing but moves and conversions of unsigned elements.
    """
    replace_comparisons(graph)
    if is_narrowed:
        replace_unsigned(graph)
    keep_doubles(graph)
    guard_shifts(graph)
    loops = cut_loops(graph)
    graph.recompile()
    diagnostics: list[str] = []
    try:
        return _lower(graph, loops, diagnostics)
    except Exception as error:
        text = "\n".join([*diagnostics, str(error)])
        # Operations of others are calls of their names.
        names = re.findall(r'torch\.aten\.[\w.]+|(?<=name = ")torch\.[\w.]+(?=")', text)
        unknown = sorted({name.rstrip(".") for name in names})
        # What has graphs of its own inside; of some the importer says nothing but a number.
        nodes = [node for node in graph.graph.nodes if isinstance(node.target, torch._ops.HigherOrderOperator)]
        if nodes and not unknown:
            diagnostics = [", ".join(dict.fromkeys(str(node.target) for node in nodes))]
        elif not unknown and not loops and (name := _find_failing(graph)):
            reason = " ".join((diagnostics or [str(error)])[0].split())
            raise UnsupportedGraphError(f"torch-mlir cannot express {name}: {reason}", [name]) from error
        reason = ", ".join(unknown) if unknown else " ".join((diagnostics or [str(error)])[0].split())
        operations = [name.removeprefix("torch.") for name in unknown]
        raise UnsupportedGraphError(f"torch-mlir cannot express {reason}", operations) from error


def _lower(graph: fx.GraphModule, loops: Any, diagnostics: list[str]) -> Module:
    """The graph by torch-mlir, whose diagnostics are added to the list where it fails."""
    from torch_mlir import fx as importer
    from torch_mlir import ir
    from torch_mlir.dialects import torch as dialect
    from torch_mlir.extras.fx_importer import FxImporter

    context = ir.Context()
    dialect.register_dialect(context)

    def collect(diagnostic: Any) -> bool:
        diagnostics.append(str(diagnostic))
        return True

    with context.attach_diagnostic_handler(collect):
        module = importer.stateless_fx_import(
            graph,
            output_type="linalg-on-tensors",
            fx_importer=FxImporter(context=context, hooks=_keep_literals()),
            model_name="forward",
        )
        if loops:
            insert_loops(module, loops)
        return Module(str(module), "<graph>")


def _find_failing(graph: fx.GraphModule) -> str | None:
    """The first operation that torch-mlir cannot lower, where it does not say which: its passes are many.

    By halves: a graph up to an operation fails where one of these does.
    """
    nodes = [node for node in graph.graph.nodes if node.op == "call_function"]
    first, last = 0, len(nodes)
    while first < last:
        middle = (first + last) // 2
        try:
            _lower(_cut_after(graph, nodes[middle]), None, [])
            first = middle + 1
        except Exception:
            last = middle
    if first == len(nodes):
        return None
    node = nodes[first]
    # Of several results the first one that is taken.
    return str((node.args[0] if node.target is operator.getitem else node).target)


def _cut_after(graph: fx.GraphModule, last: fx.Node) -> fx.GraphModule:
    """The graph up to a node, with all that nothing there uses as results."""
    part = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in graph.graph.nodes:
        copies[node] = part.node_copy(node, lambda used: copies[used])
        if node is last:
            break
    results = [copy for node, copy in copies.items() if node.op == "call_function" and not copy.users]
    part.output(tuple(copy for copy in results if isinstance(copy.meta.get("val"), torch.Tensor)))
    return fx.GraphModule(graph, part)
