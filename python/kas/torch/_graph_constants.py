# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values that a graph computes from nothing, which are known before it is run.

Two kinds are replaced. Tensors without elements, and sums, products and means over these: compiled code for them is
wrong about means, and torch-mlir ends the process. Tensors of one value, such as `torch.ones(3) * -1`, or of few
elements: torch-mlir folds them itself, and takes negative integers for large ones and zeros of both signs for one.
What overwrites a whole tensor by such values is one of them.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten
MOST_ELEMENTS = 1 << 26
"""Of what is computed here: larger tensors are left to compiled code."""
FEW_ELEMENTS = 64
"""Of tensors of several values that are written out; torch-mlir folds those of at most 16."""
FROM_SHAPES = (
    *(aten.full_like.default, aten.zeros_like.default, aten.ones_like.default),
    *(aten.new_full.default, aten.new_zeros.default, aten.new_ones.default),
)
"""Operations that read nothing of a tensor but its shape and type."""
UNINITIALIZED = (aten.empty.memory_format, aten.empty_like.default, aten.new_empty.default, aten.empty_strided.default)


def _is_empty(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 0 and value.layout == torch.strided


def _make_empty(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


def _get_uniform(value: Any) -> float | int | bool | None:
    """The value of all elements, of a type that torch-mlir has constants of; None where they differ or are NaN."""
    if not isinstance(value, torch.Tensor) or value.numel() == 0 or not _is_plain(value):
        return None
    first = value.reshape(-1)[0]
    # 0 and -0 are equal, and not the same.
    is_same = (value == first) & (value.signbit() == first.signbit()) if value.is_floating_point() else value == first
    return first.item() if bool(is_same.all()) else None


def _is_plain(value: torch.Tensor) -> bool:
    is_unsigned = value.dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
    return value.layout == torch.strided and not value.is_complex() and not is_unsigned and value.device.type == "cpu"


class _Folder:
    def __init__(self, graph: fx.GraphModule):
        self.graph = graph
        self.known: dict[fx.Node, Any] = {}
        """Tensors, or tuples of these."""

    def fold(self) -> None:
        for node in list(self.graph.graph.nodes):
            if node.op == "call_function":
                self._visit(node)
            elif node.op == "get_attr":
                self._read(node)
        for node, value in self.known.items():
            # The elements of tuples are nodes of their own.
            if node.op != "call_function" or not isinstance(value, torch.Tensor) or not node.users:
                continue
            if _is_empty(value):
                self._replace(node, self._make_constant(value, node))
            elif node.all_input_nodes and (number := _get_uniform(value)) is not None:
                self._replace(node, self._make_full(value, number, node))
            elif node.all_input_nodes and value.numel() <= FEW_ELEMENTS and _is_plain(value):
                self._replace(node, self._make_constant(value.contiguous(), node))
        self.graph.recompile()

    def _visit(self, node: fx.Node) -> None:
        value, schema = node.meta.get("val"), getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            return
        if isinstance(value, torch.Tensor) and _is_empty(value):
            self.known[node] = _make_empty(value)
            return
        if node.target is aten.cat.default:
            self._leave_out_empty(node)
        if schema is not None or node.target is operator.getitem:
            self._evaluate(node)

    def _is_known(self, node: fx.Node) -> bool:
        return node in self.known or _is_empty(node.meta.get("val"))

    def _get(self, node: fx.Node) -> Any:
        """The value; where it is not known, or nobody reads it, one of its shape."""
        return self.known[node] if node in self.known else _make_empty(node.meta["val"])

    def _read(self, node: fx.Node) -> None:
        value = getattr(self.graph, str(node.target), None)
        if _is_small(value) and not isinstance(value, (FakeTensor, torch.nn.Parameter)):
            self.known[node] = value

    def _evaluate(self, node: fx.Node) -> None:
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if is_random or node.target in UNINITIALIZED:
            return
        if not all(map(self._is_known, self._find_read(node))):
            return
        values = node.meta.get("val")
        if any(not _is_small(value) for value in (values if isinstance(values, (tuple, list)) else [values])):
            return
        arguments, options = fx.node.map_arg((node.args, node.kwargs), self._get)
        try:
            result = node.target(*arguments, **options)  # type: ignore[operator]
        except RuntimeError:
            # What needs the memory of a tensor of one value.
            return
        if isinstance(result, torch.Tensor):
            number = _get_uniform(result)
            # Not its memory: there may be many.
            self.known[node] = result if number is None else result.new_full((), number).expand(result.shape)
        elif isinstance(result, (tuple, list)) and all(isinstance(entry, torch.Tensor) for entry in result):
            self.known[node] = result

    def _find_read(self, node: fx.Node) -> list[fx.Node]:
        """The arguments on which the values depend: torch-mlir finds a constant past `where` and `copy`, too."""
        if node.target in FROM_SHAPES:
            return []
        if node.target is aten.copy.default:
            return [value for value in node.args[1:2] if isinstance(value, fx.Node)]
        if node.target is aten.where.self:
            condition, *choices = node.args
            is_first = _get_uniform(self.known.get(condition))  # type: ignore[arg-type]
            if is_first is not None:
                return [value for value in (condition, choices[not is_first]) if isinstance(value, fx.Node)]
        return node.all_input_nodes

    def _leave_out_empty(self, node: fx.Node) -> None:
        tensors, *dim = node.args
        assert isinstance(tensors, (tuple, list))
        values = [tensor.meta["val"] for tensor in tensors if isinstance(tensor, fx.Node)]
        kept = [tensor for tensor, value in zip(tensors, values) if value.numel()]
        if len({value.dtype for value in values}) == 1 and 0 < len(kept) < len(tensors):
            node.args = (kept, *dim)

    def _replace(self, node: fx.Node, constant: fx.Node) -> None:
        constant.meta = {"val": node.meta["val"]}
        node.replace_all_uses_with(constant)
        self.graph.graph.erase_node(node)

    def _make_constant(self, value: torch.Tensor, node: fx.Node) -> fx.Node:
        name = next(n for number in range(10**6) if not hasattr(self.graph, n := f"_known{number}"))
        is_rounded = value.dtype == torch.bfloat16  # of which torch-mlir has no constants
        self.graph.register_buffer(name, value.float() if is_rounded else value, persistent=False)
        with self.graph.graph.inserting_before(node):
            constant = self.graph.graph.get_attr(name)
            constant.meta = {"val": node.meta["val"].float() if is_rounded else node.meta["val"]}
            if is_rounded:
                return self.graph.graph.call_function(aten._to_copy.default, (constant,), {"dtype": value.dtype})
            # torch-mlir takes an attribute for two where lists of tensors have it, too.
            return constant if _is_empty(value) else self.graph.graph.call_function(aten.clone.default, (constant,))

    def _make_full(self, value: torch.Tensor, number: float | int | bool, node: fx.Node) -> fx.Node:
        options: dict[str, Any] = {"dtype": value.dtype, "device": value.device, "pin_memory": False}
        with self.graph.graph.inserting_before(node):
            return self.graph.graph.call_function(aten.full.default, (list(value.shape), number), options)


def _is_small(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() <= MOST_ELEMENTS and value.device.type == "cpu"


def fold_constants(graph: fx.GraphModule) -> None:
    """Replaces what follows from tensors without elements, tensors of one value and short ones by constants."""
    _Folder(graph).fold()
