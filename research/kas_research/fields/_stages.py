# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an experiment trains after others: learning rates, rounds of successive halving, the best families.

All is chosen by validation. A failed training counts as worse than any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..protocol._store import Store
from ._protocol import Best, Experiment, Job, Protocol
from ._time import Widths

KEPT = 3
"""One of so many goes on after each round."""


class StageError(ValueError):
    """An experiment that others must precede."""


def resolve(protocol: Protocol, experiment: Experiment, store: Store) -> Experiment:
    """The experiment with the names of its families; a `StageError` where an experiment that it needs has not ended."""
    families: list[str] = []
    for one in experiment.families:
        found = [one] if isinstance(one, str) else _find_best(protocol, one, store, experiment.name)
        families += [name for name in found if name not in families]
    return replace(experiment, families=tuple(families))


def _find_best(protocol: Protocol, best: Best, store: Store, needed_by: str) -> list[str]:
    source = resolve(protocol, protocol.experiments[best.experiment], store)
    if not source.families:
        return []
    jobs = get_jobs(protocol, source, store)
    last = [job for job in jobs if job.epochs == source.epochs]
    known = store.read_trainings()
    missing = sum(protocol.key(job) not in known for job in jobs)
    if missing or not last:
        raise StageError(f"requires all trainings of '{best.experiment}' before '{needed_by}', got {missing} missing")
    return rank(protocol, source, last, store)[: best.most]


def get_jobs(protocol: Protocol, experiment: Experiment, store: Store) -> list[Job]:
    """The trainings of an experiment, as far as widths, learning rates and what goes on are known."""
    experiment = resolve(protocol, experiment, store)
    widths = Widths(protocol, experiment, store).get_all()
    rates = get_rates(protocol, experiment, store) if experiment.rates_of else {}
    jobs: list[Job] = []
    for epochs in experiment.rounds:
        part = replace(experiment, epochs=epochs, seeds=experiment.seeds[:1])
        found = list(part.get_jobs(widths, rates))
        jobs += found
        known = store.read_trainings()
        if not found or any(protocol.key(job) not in known for job in found):
            return jobs
        best = rank(protocol, experiment, found, store)
        experiment = replace(experiment, families=tuple(best[: math.ceil(len(best) / KEPT)]))
    return jobs + list(experiment.get_jobs(widths, rates))


def get_rates(protocol: Protocol, experiment: Experiment, store: Store) -> dict[tuple[str, str], float]:
    """The learning rate by equation and family: the best of others, that of the equation or the family it is like."""
    errors: dict[tuple[str, str], list[tuple[float, float]]] = {}
    trainings = store.read_trainings()
    for name in experiment.rates_of:
        for job in get_jobs(protocol, protocol.experiments[name], store):
            record = trainings.get(protocol.key(job))
            if record and not record["failure"]:
                errors.setdefault((job.equation, job.family), []).append((record["validation"], job.learning_rate))
    found = {}
    for equation in experiment.equations:
        source = protocol.equations[equation].like or equation
        for family in experiment.families:
            assert isinstance(family, str), "the experiment is resolved"
            candidate = protocol.candidates.get(family)
            nearest = candidate.nearest if candidate else family
            if own := errors.get((source, family)) or errors.get((source, nearest)):
                found[equation, family] = min(own)[1]
    return found


def rank(protocol: Protocol, experiment: Experiment, jobs: Iterable[Job], store: Store) -> list[str]:
    """The families by their mean rank over equations and budgets, the best first; those that are as good by name."""
    trainings = store.read_trainings()
    widths = Widths(protocol, experiment, store).get_all()
    values: dict[tuple[str, str, int], list[float]] = {}
    for job in jobs:
        record = trainings[protocol.key(job)]
        y = math.inf if record["failure"] else math.log(record["validation"])
        values.setdefault((job.equation, job.family, job.width), []).append(y)
    families = sorted({family for _, family, _ in values})
    ranks = dict.fromkeys(families, 0.0)
    for equation in experiment.equations:
        for budget in experiment.budgets:
            # What is too slow for a budget is as a failure.
            found = [values.get((equation, family, widths[equation, family, budget] or 0)) for family in families]
            for family, place in zip(families, _rank([math.inf if not y else sum(y) / len(y) for y in found])):
                ranks[family] += place
    return sorted(families, key=lambda family: (ranks[family], family))


def _rank(values: Sequence[float]) -> list[float]:
    """The place of each, from 0 on; equal ones share the mean of theirs."""
    return [sum(other < value for other in values) + (values.count(value) - 1) / 2 for value in values]
