# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs for batches of any size: where the size of the batch is a symbol, and says nothing but shapes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

BATCHES = (8, 2)
"""The sizes of the parts that batches are computed in, the largest first.

Not 1: a graph was traced for at least two samples, and of one sample operations may mean something else (`squeeze`).
"""

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


class Batch(NamedTuple):
    """The arguments of a graph for batches of any size."""

    symbol: int
    """The place of the number of samples."""
    batched: frozenset[int]
    """The places of tensors that have samples; all samples share the others."""


def find_batch(graph: fx.GraphModule) -> Batch | None:
    """What has samples, of a graph for batches of any size; None where it is another one.

    The size of the batch is the only symbol, first in all results and wherever it is in data, and used for shapes
    alone. Whether samples are computed one by one is another question.
    """
    nodes = list(graph.graph.nodes)
    arguments = [node for node in nodes if node.op == "placeholder"]
    symbols = _get_symbols(arguments)
    if len(symbols) != 1:
        return None
    symbol = symbols[0].meta["val"]
    batched = set()
    for place, node in enumerate(arguments):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or not any(map(_is_symbol, value.shape)):
            continue
        if not _has_batch_first(value, symbol):
            return None
        batched.add(place)
    (output,) = (node for node in nodes if node.op == "output")
    results: Sequence[Any] = output.args[0]
    for result in results:
        is_computed = isinstance(result, fx.Node) and result.op != "placeholder"
        value = result.meta.get("val") if is_computed else None
        if not isinstance(value, torch.Tensor) or not _has_batch_first(value, symbol):
            return None
    if not batched or not all(map(_uses_for_sizes, nodes)):
        return None
    return Batch(arguments.index(symbols[0]), frozenset(batched))


def get_batch_key(threads: int, arguments: Sequence[Any], batch: Batch) -> Any:
    """What a program for batches of any size depends on; None for sizes and layouts for which there is none."""
    data = [arguments[place] for place in batch.batched]
    if arguments[batch.symbol] < min(BATCHES) or not all(a.is_contiguous() for a in data):
        return None
    tensors = [(place, a) for place, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
    return ("batch", threads, *(tuple(a.shape[place in batch.batched :]) for place, a in tensors))


def set_batch(arguments: Sequence[Any], batch: Batch, size: int) -> list[Any]:
    """Arguments of another batch."""
    others = list(arguments)
    others[batch.symbol] = size
    for place in batch.batched:
        others[place] = arguments[place].new_empty((size, *arguments[place].shape[1:]))
    return others
