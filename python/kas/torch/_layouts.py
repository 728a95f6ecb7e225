# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts of tensors as PyTorch's own operations would give them.

Decompositions keep values, not layouts: the gradient of a weight may be the transpose of a tensor in rows. Some of
PyTorch's kernels, and operations of users, read memory in the order that they expect, whatever the strides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import getitem
from typing import Any

import torch
from torch import fx

from ._views import find_chain

LAYOUT = "layout"
"""In the `meta` of a node of a traced graph: the dimensions of its tensor in PyTorch's order, outermost first."""

aten = torch.ops.aten


def _get_number(size: Any) -> int | None:
    """The size, or what a symbol stood for when the graph was made."""
    number = size.node.hint if isinstance(size, torch.SymInt) else size
    return number if isinstance(number, int) else None


def find_order(value: torch.Tensor) -> tuple[int, ...] | None:
    """All dimensions, outermost first; None where elements are no dense block, have no place, or there are none."""
    if value.layout != torch.strided:
        return None
    sizes, strides = [_get_number(size) for size in value.shape], [_get_number(stride) for stride in value.stride()]
    if None in sizes or None in strides or 0 in sizes:
        return None
    order = sorted(range(len(sizes)), key=lambda dim: (-strides[dim], dim))  # type: ignore[operator]
    expected = 1
    for dim in reversed(order):
        if sizes[dim] == 1:
            continue
        if strides[dim] != expected:
            return None
        expected *= sizes[dim]  # type: ignore[operator]
    return tuple(order) if expected == math.prod(sizes) else None  # type: ignore[arg-type]


def _get_tensors(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


class LayoutRecorder(fx.Interpreter):
    """Runs a graph of PyTorch within `make_fx`, and writes the layouts of its tensors to the graph that is traced."""

    def run_node(self, node: fx.Node) -> Any:
        """See `torch.fx.Interpreter`."""
        result = super().run_node(node)
        if node.op == "call_function":
            for expected, tensor in zip(_get_tensors(node.meta.get("val")), _get_tensors(result)):
                if isinstance(expected, torch.Tensor) and isinstance(tensor, torch.Tensor):
                    _record(tensor, find_order(expected))
        return result


def _record(tensor: torch.Tensor, order: tuple[int, ...] | None) -> None:
    from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot

    mode = get_proxy_mode()
    slot = get_proxy_slot(tensor, mode.tracer, None) if mode and order and len(order) == tensor.dim() else None
    if slot is not None:
        # Operations that do nothing give what they got, which the first one has made.
        slot.proxy.node.meta.setdefault(LAYOUT, order)


def _has_layout(node: fx.Node) -> bool:
    """Whether the traced graph gives the tensor the layout that PyTorch would, or none is known."""
    wanted, value = node.meta.get(LAYOUT), node.meta["val"]
    order = find_order(value) if wanted else None
    if not wanted or not order:
        return True
    return [dim for dim in wanted if value.shape[dim] != 1] == [dim for dim in order if value.shape[dim] != 1]


def _call(graph: fx.Graph, target: Any, *arguments: Any, **options: Any) -> fx.Node:
    node = graph.call_function(target, arguments, options)
    values = [argument.meta["val"] if isinstance(argument, fx.Node) else argument for argument in arguments]
    node.meta["val"] = target(*values, **options)
    return node


def _lay_out(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """The same tensor in PyTorch's layout."""
    if node.op != "call_function" or _has_layout(node):
        return node
    order = node.meta[LAYOUT]
    with graph.inserting_after(node):
        rows = _call(graph, aten.permute.default, node, list(order))
    with graph.inserting_after(rows):
        copy = _call(graph, aten.clone.default, rows, memory_format=torch.contiguous_format)
    with graph.inserting_after(copy):
        result = _call(graph, aten.permute.default, copy, [order.index(dim) for dim in range(len(order))])
    result.meta[LAYOUT] = order
    return result


def lay_out_arguments(graph: fx.GraphModule, nodes: Iterable[fx.Node]) -> None:
    """Gives tensors that these operations of a traced graph read the layouts that they would have in PyTorch."""
    done: dict[fx.Node, fx.Node] = {}
    for node in nodes:
        for source in node.all_input_nodes if node.target is not getitem else ():
            if not isinstance(source.meta.get("val"), torch.Tensor):
                continue
            if source not in done:
                done[source] = _lay_out(graph.graph, source)
            node.replace_input_with(source, done[source])


def _replay(graph: fx.Graph, chain: Sequence[fx.Node], base: fx.Node) -> fx.Node:
    """The last view of a chain, of another base; that of the chain where it needs the layout of the old one."""
    value = base
    for view in chain[1:]:
        with graph.inserting_after(value):
            try:
                value = _call(graph, view.target, value, *view.args[1:])
            except RuntimeError:
                return chain[-1]
    return value


def lay_out_outputs(graph: fx.GraphModule) -> None:
    """Gives the outputs of a traced graph the layouts that they would have in PyTorch.

    Views stay views: those of arguments have the layouts of these, those of what PyTorch computes as well follow it.
    """
    output = graph.graph.output_node()
    done: dict[fx.Node, fx.Node] = {}

    def find(node: fx.Node) -> fx.Node:
        if not isinstance(node.meta.get("val"), torch.Tensor):
            return node
        chain = find_chain(node)
        # Bases that decompositions have made are known to nobody.
        key = chain[0] if LAYOUT in chain[0].meta else node
        if chain[0].op != "call_function":
            return node
        if key not in done:
            done[key] = _lay_out(graph.graph, key)
        if key is node or done[key] is key:
            return done[key] if key is node else node
        return _replay(graph.graph, chain, done[key])

    output.args = (fx.node.map_arg(output.args[0], find),)
