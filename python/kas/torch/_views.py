# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outputs of graphs that share memory with their arguments or with other outputs, as PyTorch's views do.

PyTorch makes the views of a caller's tensor again from the strides and the place of what a graph returns, so that a
copy there is more than a waste: of a part of a tensor it would give another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import Any

import torch
from torch import fx

Views = Sequence[tuple[str, Sequence[Any]]]
"""Operations, such as `aten.slice.Tensor`, with what follows the tensor among their arguments."""

ITEM = "getitem"
"""In place of an operation: the choice of one of several results."""

OF_STORAGE = (torch.ops.aten.as_strided.default, torch.ops.aten._reshape_alias.default)
"""Views by strides: of a tensor of another layout they are other elements."""


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or type(value) in (int, bool, float)


def _is_view(node: Any) -> bool:
    """Whether all of what the node says beside its first argument are plain numbers, and it is a view of that."""
    return (
        isinstance(node, fx.Node)
        and isinstance(node.target, torch._ops.OpOverload)
        and node.target.is_view
        and node.target not in OF_STORAGE
        and not node.kwargs
        and isinstance(node.args[0], fx.Node)
        and _is_plain(node.args[1:])
    )


def find_chain(node: fx.Node) -> list[fx.Node]:
    """The node and what it is a view of, from a tensor on that is a view of no other."""
    chain = [node]
    while True:
        source = chain[0].args[0] if chain[0].target is getitem else chain[0]
        if not _is_view(source):
            return chain
        assert isinstance(source, fx.Node) and isinstance(source.args[0], fx.Node)
        chain = [source.args[0], *([] if source is chain[0] else [source]), *chain]


def _follow(node: fx.Node) -> tuple[fx.Node, Views]:
    """The tensor that this one is a view of, which is a view of no other, and the views that lead from there."""
    base, *views = find_chain(node)
    return base, [(ITEM if view.target is getitem else str(view.target), view.args[1:]) for view in views]


def _is_for(base: torch.Tensor, views: Sequence[torch.Tensor]) -> bool:
    """Whether to compute the base takes no more than to compute its views, also where these have the order of rows."""
    is_smaller = base.numel() <= sum(view.numel() for view in views)
    return is_smaller and (base.is_contiguous() or not all(view.is_contiguous() for view in views))


def find_bases(outputs: Sequence[fx.Node]) -> list[tuple[fx.Node, Views]]:
    """For each output the tensor that is to be computed or passed on for it, and the views that lead from it.

    Views of arguments share their memory always, views of what is computed do where that is an output, too, or where
    it costs nothing to compute it instead.
    """
    found = [_follow(output) for output in outputs]
    views: dict[fx.Node, list[torch.Tensor]] = {}
    for output, (base, _) in zip(outputs, found):
        views.setdefault(base, []).append(output.meta["val"])
    shared = {base for base in views if base.op == "placeholder"}.union(outputs)
    shared.update(base for base in views if base.op == "call_function" and _is_for(base.meta["val"], views[base]))
    return [entry if entry[0] in shared else (output, ()) for output, entry in zip(outputs, found)]


def make_views(tensor: torch.Tensor, views: Views) -> torch.Tensor:
    """The view of a tensor, whatever its layout."""
    value: Any = tensor
    for name, arguments in views:
        if name == ITEM:
            value = value[arguments[0]]
        elif name == "aten.view.default":
            value = value.reshape(arguments[0])
        else:
            library, operation, overload = name.split(".")
            value = getattr(getattr(getattr(torch.ops, library), operation), overload)(value, *arguments)
    return value  # type: ignore[no-any-return]
