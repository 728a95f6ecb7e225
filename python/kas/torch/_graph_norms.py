# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batch norms that infer become part of the convolutions before them."""

from __future__ import annotations

from collections.abc import Collection
from operator import getitem
from typing import Any

import torch
from torch import fx

from ._element_types import WIDE

_aten = torch.ops.aten
_NORM = _aten._native_batch_norm_legit_no_training.default


def fold_batch_norms(graph: fx.GraphModule, static: Collection[int]) -> fx.GraphModule | None:
    """The graph with scaled weights and other biases, computed from weights alone, in the place of batch norms.

    Where a convolution that nothing else looks at comes before; `static` are the places of weights. None where there
    are no such. It pays where what depends on weights alone is computed ahead. Results differ by rounding.
    """
    copy = fx.Graph()
    copy.output(copy.graph_copy(graph.graph, {}))
    arguments = copy.find_nodes(op="placeholder")
    weights = {None, *(arguments[place] for place in static)}
    norms = [node for node in copy.find_nodes(op="call_function", target=_NORM) if _can_fold(node, weights)]
    for node in norms:
        _fold(copy, node)
    if not norms:
        return None
    copy.eliminate_dead_code()
    return fx.GraphModule(graph, copy)


def _can_fold(norm: fx.Node, weights: Collection[Any]) -> bool:
    convolution = norm.args[0]
    if not isinstance(convolution, fx.Node) or convolution.target is not _aten.convolution.default:
        return False
    _, weight, bias, *_ = convolution.args
    transposed = convolution.args[6]
    return (
        not transposed
        # Halves are rounded between the two.
        and norm.meta["val"][0].dtype not in WIDE
        and len(convolution.users) == 1
        and all(user.target is getitem and user.args[1] == 0 for user in norm.users)
        and all(tensor in weights for tensor in (weight, bias, *norm.args[1:5]))
    )


def _fold(graph: fx.Graph, norm: fx.Node) -> None:
    convolution, gamma, beta, mean, variance, _, epsilon = norm.args
    assert isinstance(convolution, fx.Node)
    data, weight, bias, *rest = convolution.args
    assert isinstance(weight, fx.Node)
    rank = weight.meta["val"].dim()
    with graph.inserting_before(convolution):

        def call(target: Any, *arguments: Any) -> fx.Node:
            return graph.call_function(target, arguments)

        scale = call(_aten.rsqrt.default, call(_aten.add.Scalar, variance, epsilon))
        if gamma is not None:
            scale = call(_aten.mul.Tensor, scale, gamma)
        middle = mean if bias is None else call(_aten.sub.Tensor, mean, bias)
        shift = call(_aten.neg.default, call(_aten.mul.Tensor, middle, scale))
        if beta is not None:
            shift = call(_aten.add.Tensor, shift, beta)
        rows = call(_aten.view.default, scale, [-1] + [1] * (rank - 1))
        folded = call(_aten.convolution.default, data, call(_aten.mul.Tensor, weight, rows), shift, *rest)
    for user in list(norm.users):
        user.replace_all_uses_with(folded)
