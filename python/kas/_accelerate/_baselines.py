# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The baselines of a network: what anybody would try first, trained as long and in the same way."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..evaluate._task import call
from ._contest import Contender
from ._knapsack import Option
from ._library import Library
from ._narrow import NotNarrowableError, narrow
from ._problem import Problem

WIDTHS = 0.5, 0.34
"""The shares of channels of narrower networks."""
PRUNED = (0.5,)
"""The shares of channels that torch-pruning takes away."""
SWAP = "depthwise-separable-relu"


def make_baselines(problem: Problem, library: Library) -> list[Contender]:
    """Narrower networks, the swap to depthwise-separable layers, and a pruned one where torch-pruning is installed."""
    return [*make_narrower(problem, WIDTHS), *_make_swap(library), *make_pruned(problem, PRUNED)]


def make_narrower(problem: Problem, shares: Sequence[float]) -> list[Contender]:
    """The model with these shares of its channels, as far as that is possible."""
    found: list[Contender] = []
    for share in shares:
        try:
            network = narrow(problem.model, problem.batch, share)
        except NotNarrowableError as error:
            problem.reporter.message(f"no narrower network: {error}")
            break
        network.requires_grad_(False)
        found.append(Contender(f"narrower, {share:g} of the channels", "narrower", network))
    return found


def _make_swap(library: Library) -> list[Contender]:
    known = {one.unit.name: one for one in library.learnt if one.form == SWAP}
    if not known:
        return []
    options = [Option(name, SWAP, one.ms, one.loss) for name, one in known.items()]
    network = library.put(options).requires_grad_(False)
    return [Contender("depthwise-separable", "swap", network, {name: SWAP for name in known})]


def make_pruned(problem: Problem, shares: Sequence[float]) -> list[Contender]:
    """Without these shares of the channels, by the dependency graph of torch-pruning."""
    try:
        import torch_pruning  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        problem.reporter.message("torch-pruning is not installed (the extra 'pruning'): no pruned network")
        return []
    return [one for share in shares for one in _make_pruned(torch_pruning, problem, share)]


def _make_pruned(torch_pruning: Any, problem: Problem, share: float) -> list[Contender]:
    network: Any = copy.deepcopy(problem.model).requires_grad_(True)
    try:
        last = [module for module in network.modules() if isinstance(module, (nn.Linear, nn.Conv2d))][-1:]
        pruner = torch_pruning.pruner.MagnitudePruner(
            network,
            problem.batch,
            importance=torch_pruning.importance.GroupMagnitudeImportance(p=2),
            pruning_ratio=share,
            ignored_layers=last,
            round_to=8,
        )
        with torch.enable_grad():
            pruner.step()
        # Some networks do not fit together afterwards, such as those with the channels of heads in their code.
        with torch.no_grad():
            call(network.eval(), problem.batch)
    except Exception as error:
        problem.reporter.message(f"torch-pruning cannot prune the network: {type(error).__name__}: {error}")
        return []
    network.requires_grad_(False)
    return [Contender(f"pruned, {1 - share:g} of the channels", "pruned", network)]
