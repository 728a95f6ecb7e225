# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs for batches of any size: where the size of the batch is a symbol, and says nothing but shapes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import fx

BATCHES = (8, 1)
"""The sizes of the parts that batches are computed in, the largest first."""

_aten = torch.ops.aten
_SIZES = {
    _aten.view.default,
    _aten._unsafe_view.default,
    _aten.reshape.default,
    _aten.expand.default,
    _aten.full.default,
    _aten.empty.memory_format,
    _aten.zeros.default,
    _aten.ones.default,
    _aten.new_zeros.default,
    _aten.new_ones.default,
    _aten.new_full.default,
    _aten.new_empty.default,
}
"""Operations that have a list of sizes as an argument."""
_ARITHMETIC = {operator.add, operator.sub, operator.mul, operator.floordiv, _aten.sym_size.int}


def _is_symbol(value: Any) -> bool:
    return isinstance(value, torch.SymInt)


def _get_symbols(nodes: Iterable[fx.Node]) -> list[fx.Node]:
    return [node for node in nodes if _is_symbol(node.meta.get("val"))]


def _has_batch_first(value: torch.Tensor, symbol: torch.SymInt) -> bool:
    """Whether the first dimension is the symbol, and no other one has any."""
    sizes: list[Any] = list(value.shape)
    return (
        bool(sizes)
        and _is_symbol(sizes[0])
        and sizes[0].node.expr == symbol.node.expr
        and not any(map(_is_symbol, sizes[1:]))
    )


def _uses_for_sizes(node: fx.Node) -> bool:
    """Whether the symbols that the node takes are sizes of what it makes."""
    symbols = set(_get_symbols(node.all_input_nodes))
    if not symbols or node.op == "output":
        return True
    if node.target in _ARITHMETIC:
        return True
    return node.target in _SIZES and not any(
        isinstance(a, fx.Node) and a in symbols for a in (*node.args, *node.kwargs.values())
    )


def find_shared(graph: fx.GraphModule) -> set[int] | None:
    """The arguments that all samples share, of a graph for batches of any size; None where it is another one.

    The size of the batch is the only symbol, first in all data and results, and used for shapes alone. Whether samples
    are computed one by one is another question.
    """
    nodes = list(graph.graph.nodes)
    arguments = [node for node in nodes if node.op == "placeholder"]
    symbols = _get_symbols(arguments)
    if len(symbols) != 1:
        return None
    symbol = symbols[0].meta["val"]
    shared = set()
    for place, node in enumerate(arguments):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            continue
        if not any(map(_is_symbol, value.shape)):
            shared.add(place)
        elif not _has_batch_first(value, symbol):
            return None
    (output,) = (node for node in nodes if node.op == "output")
    results: Sequence[Any] = output.args[0]
    for result in results:
        is_computed = isinstance(result, fx.Node) and result.op != "placeholder"
        value = result.meta.get("val") if is_computed else None
        if not isinstance(value, torch.Tensor) or not _has_batch_first(value, symbol):
            return None
    return shared if all(map(_uses_for_sizes, nodes)) else None


def get_batch_key(threads: int, arguments: Sequence[Any], shared: set[int]) -> Any:
    """What a program for batches of any size depends on; None for layouts for which there is none."""
    tensors = [(place, a) for place, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
    if not all(a.is_contiguous() for place, a in tensors if place not in shared):
        return None
    return ("batch", threads, *(tuple(a.shape[place not in shared :]) for place, a in tensors))


def set_batch(arguments: Sequence[Any], shared: set[int], size: int) -> list[Any]:
    """Arguments of another batch."""
    return [
        a.new_empty((size, *a.shape[1:]))
        if isinstance(a, torch.Tensor) and place not in shared
        else size
        if isinstance(a, int) and not isinstance(a, bool)
        else a
        for place, a in enumerate(arguments)
    ]
