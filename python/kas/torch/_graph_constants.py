# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values that a graph computes from nothing: tensors without elements, and sums, products and means over these.

Compiled code for them is wrong about means, and torch-mlir ends the process; they are known before the graph is run.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten


def _is_empty(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 0 and value.layout == torch.strided


def _make_empty(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


class _Folder:
    def __init__(self, graph: fx.GraphModule):
        self.graph = graph
        self.known: dict[fx.Node, Any] = {}
        """Tensors, or tuples of these."""

    def fold(self) -> None:
        for node in list(self.graph.graph.nodes):
            if node.op == "call_function":
                self._visit(node)
        for node, value in self.known.items():
            # The elements of tuples are nodes of their own.
            if node.op == "call_function" and isinstance(value, torch.Tensor):
                self._replace(node, value)
        self.graph.recompile()

    def _visit(self, node: fx.Node) -> None:
        value, schema = node.meta.get("val"), getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            return
        if isinstance(value, torch.Tensor) and _is_empty(value):
            self.known[node] = _make_empty(value)
        elif node.target is aten.cat.default:
            self._leave_out_empty(node)
        elif schema is not None or node.target is operator.getitem:
            self._evaluate(node)

    def _is_known(self, node: fx.Node) -> bool:
        return node in self.known or _is_empty(node.meta.get("val"))

    def _get(self, node: fx.Node) -> Any:
        return self.known[node] if node in self.known else _make_empty(node.meta["val"])

    def _evaluate(self, node: fx.Node) -> None:
        sources = node.all_input_nodes
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if is_random or not sources or not all(self._is_known(source) for source in sources):
            return
        arguments, options = fx.node.map_arg((node.args, node.kwargs), self._get)
        result = node.target(*arguments, **options)  # type: ignore[operator]
        if all(
            isinstance(entry, torch.Tensor) for entry in (result if isinstance(result, (tuple, list)) else [result])
        ):
            self.known[node] = result

    def _leave_out_empty(self, node: fx.Node) -> None:
        tensors, *dim = node.args
        assert isinstance(tensors, (tuple, list))
        values = [tensor.meta["val"] for tensor in tensors if isinstance(tensor, fx.Node)]
        kept = [tensor for tensor, value in zip(tensors, values) if value.numel()]
        if len({value.dtype for value in values}) == 1 and 0 < len(kept) < len(tensors):
            node.args = (kept, *dim)

    def _replace(self, node: fx.Node, value: torch.Tensor) -> None:
        if not node.users:
            return
        name = next(n for number in range(10**6) if not hasattr(self.graph, n := f"_known{number}"))
        self.graph.register_buffer(name, value, persistent=False)
        with self.graph.graph.inserting_before(node):
            constant = self.graph.graph.get_attr(name)
        constant.meta = {"val": node.meta["val"]}
        node.replace_all_uses_with(constant)
        self.graph.graph.erase_node(node)


def fold_empty(graph: fx.GraphModule) -> None:
    """Replaces what follows from tensors without elements by constants."""
    _Folder(graph).fold()
