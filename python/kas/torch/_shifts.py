# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shifts by less than nothing and by all bits or more, as PyTorch has them: all bits are lost, or all are the sign.

In LLVM the result of such a shift is any number.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

aten = torch.ops.aten

_LEFT = (
    *(aten.__lshift__.Scalar, aten.__lshift__.Tensor),
    *(aten.bitwise_left_shift.Tensor, aten.bitwise_left_shift.Tensor_Scalar, aten.bitwise_left_shift.Scalar_Tensor),
)
_RIGHT = (
    *(aten.__rshift__.Scalar, aten.__rshift__.Tensor),
    *(aten.bitwise_right_shift.Tensor, aten.bitwise_right_shift.Tensor_Scalar, aten.bitwise_right_shift.Scalar_Tensor),
)


def guard_shifts(graph: fx.GraphModule) -> None:
    """Gives each shift a count that is within the bits, and a left one beyond them zeros."""
    for node in list(graph.graph.nodes):
        if node.op != "call_function" or node.target not in (*_LEFT, *_RIGHT):
            continue
        with graph.graph.inserting_before(node):
            if isinstance(node.args[1], fx.Node):
                _guard_tensor(graph.graph, node)
            else:
                _guard_number(graph.graph, node)


def _count_bits(node: fx.Node) -> int:
    return torch.iinfo(node.meta["val"].dtype).bits


def _guard_number(graph: fx.Graph, node: fx.Node) -> None:
    """The count is a number, which is brought to the type first."""
    data, count = node.args
    bits = _count_bits(node)
    assert isinstance(data, fx.Node) and isinstance(count, int)
    count = (count + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    is_left = node.target in _LEFT
    if not 0 <= count < bits:
        count = 0 if is_left else bits - 1
        if is_left:
            node.replace_all_uses_with(_call(graph, node.meta["val"], aten.zeros_like.default, data))
    node.args = (data, count)


def _guard_tensor(graph: fx.Graph, node: fx.Node) -> None:
    data, count = node.args
    bits = _count_bits(node)
    assert isinstance(count, fx.Node)
    places = torch.empty_like(count.meta["val"], dtype=torch.bool)
    low = _call(graph, places, aten.lt.Scalar, count, 0)
    high = _call(graph, places, aten.ge.Scalar, count, bits)
    outside = _call(graph, places, aten.logical_or.default, low, high)
    is_left = node.target in _LEFT
    within = _call(graph, count.meta["val"], aten.masked_fill.Scalar, count, outside, 0 if is_left else bits - 1)
    node.args = (data, within)
    if is_left:
        with graph.inserting_after(node):
            found = _call(graph, node.meta["val"], aten.masked_fill.Scalar, node, outside, 0)
        node.replace_all_uses_with(found, delete_user_cb=lambda user: user is not found)


def _call(graph: fx.Graph, value: Any, target: Any, *arguments: Any) -> fx.Node:
    made = graph.call_function(target, arguments)
    made.meta = {"val": value}
    return made
