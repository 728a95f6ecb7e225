# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas.search_in_turn`: operators for several kinds of layers of one network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ._errors import need

need("torch", "torch")

from torch import nn

import kas.torch

from ._model_search import search
from ._search import SearchSpace
from ._search_outcome import SearchOutcome
from .evaluate import Data, TaskData
from .evaluate._probe import make_network
from .evaluate._task import NetworkFactory


class _Found:
    """Makes a network with the best operator of a search in it."""

    def __init__(self, outcome: SearchOutcome):
        assert outcome.best is not None
        self.trainer, self.operator = outcome.trainer, outcome.best.operator

    def __call__(self) -> nn.Module:
        trainer = self.trainer
        network = trainer.model if trainer.factory is None else trainer.factory()
        backend = "pytorch" if trainer.backend == "native" else trainer.backend
        return kas.torch.substitute(
            network, self.operator, trainer.sites, space=trainer.space, binding=trainer.binding, backend=backend
        )


def search_in_turn(
    model: nn.Module | NetworkFactory,
    data: str | Data | TaskData = "digits",
    budget: Any = "15m",
    *,
    spaces: Sequence[str | SearchSpace],
    database: str | os.PathLike[str] | None = None,
    **options: Any,
) -> list[SearchOutcome]:
    """Looks for an operator for each of several kinds of layers, one kind after the other.

    The first search is `kas.search` with the first of `spaces` (at least one); each further one has the best operators
    of those before in place, also in the network itself that its candidates are compared with. So kinds have operators
    of their own, but no two are chosen together. The network of the last outcome has all of them. Where a search finds
    none, its layers stay.

    `budget`, `options` and what is raised are those of `kas.search`, for each of the searches. Each has a file of its
    own beside `database`: `found.db` gives `found-conv2d.db`. After Ctrl-C the outcomes so far are given.
    """
    if isinstance(spaces, (str, SearchSpace)) or not isinstance(spaces, Sequence) or not spaces:
        raise TypeError(f"requires a list of at least one space, got {spaces!r}")
    names = [space.name if isinstance(space, SearchSpace) else space for space in spaces]
    if len(set(names)) < len(names):
        raise ValueError(f"requires each space once, got {', '.join(names)}")
    for name in ("space", "pool"):
        if name in options:
            raise TypeError(f"'{name}' is of one search: requires 'spaces', and no pool, for searches in turn")
    outcomes: list[SearchOutcome] = []
    before: list[str] = []
    settings = options.pop("settings", {})
    for name, space in zip(names, spaces):
        file = None if database is None else "{0}-{2}{1}".format(*os.path.splitext(os.fspath(database)), name)
        decisive = {**settings, "found before": ", ".join(before)} if before else settings
        outcome = search(model, data, budget, space=space, database=file, settings=decisive, **options)
        outcomes.append(outcome)
        if not outcome.is_complete:
            break
        if outcome.best is not None:
            found = _Found(outcome)
            model = make_network(found, 0) if outcome.trainer.factory is None else found
            before.append(f"{name}: {outcome.best.candidate.key}")
    return outcomes
