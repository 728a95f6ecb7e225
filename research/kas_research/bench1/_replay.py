# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches whose evaluations are looked up: the algorithms are those of `kas.Searcher`, and none is written again."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kas._search import ALGORITHMS, Candidate, Searcher, SearchSpace
from kas.evaluate._halving import Halving

from ._space import DEFAULT, make_space
from ._table import Row, Table, Training


@dataclass(frozen=True)
class Step:
    """The state of a search after an evaluation."""

    trainings: float
    """The cost so far, in whole trainings."""
    best: int | None
    """The number of the operator with the best validation accuracy of those trained to the end, at the last rung."""
    regret: float
    """Points of mean test accuracy below the best operator of the searched space; infinite without `best`."""


@dataclass(frozen=True)
class Replay:
    """A search in the tables."""

    algorithm: str
    seed: int
    steps: Sequence[Step] = ()
    numbers: Sequence[int] = ()
    """The operators, in the order in which they were proposed."""
    failures: int = 0
    """Of these, those without a training that came to an end."""

    def regret(self, trainings: float) -> float:
        """After so much effort."""
        known = [step.regret for step in self.steps if step.trainings <= trainings + 1e-9]
        return known[-1] if known else math.inf


@dataclass
class _Evaluator:
    """Looks trainings up and keeps the best: one seed, drawn for each operator, is what a search sees."""

    table: Table
    task: str
    generator: random.Random
    target: float
    steps: list[Step] = field(default_factory=list)
    spent: float = 0.0
    best: Row | None = None
    accuracy: float = -math.inf
    chosen: dict[int, Training | None] = field(default_factory=dict)

    def get_training(self, row: Row) -> Training | None:
        if row.number not in self.chosen:
            known = row.get_trainings(self.task)
            self.chosen[row.number] = self.generator.choice(known) if known else None
        return self.chosen[row.number]

    def spend(self, row: Row, training: Training, share: float, is_whole: bool) -> None:
        self.spent += share
        assert training.validation is not None
        if is_whole and training.validation > self.accuracy:
            self.best, self.accuracy = row, training.validation
        test = None if self.best is None else self.best.get_accuracy(self.task)
        regret = math.inf if test is None else self.target - test
        self.steps.append(Step(self.spent, None if self.best is None else self.best.number, regret))


def _metrics(row: Row, training: Training, epoch: int) -> dict[str, float]:
    accuracy = training.validation if epoch == len(training.curve) else training.curve[epoch - 1]
    assert accuracy is not None
    return {"accuracy": accuracy / 100, "epochs": epoch}


def get_best(table: Table, task: str, properties: Sequence[str] = DEFAULT) -> Row:
    """The operator with the highest mean test accuracy among those with the properties; a `ValueError` without any."""
    rows = [row for row in table if set(properties) <= row.properties]
    known = [(accuracy, row) for row in rows if (accuracy := row.get_accuracy(task)) is not None]
    if not known:
        raise ValueError(
            f"requires trainings on '{task}' of operators with {', '.join(properties) or 'any properties'}, got none"
        )
    return max(known, key=lambda entry: (entry[0], -entry[1].number))[1]


def replay(
    table: Table,
    algorithm: str = "surrogate",
    seed: int = 0,
    budget: float = 100,
    *,
    task: str | None = None,
    properties: Sequence[str] = DEFAULT,
    halving: Halving | None = None,
    objective: str = "-accuracy",
    parameters: Mapping[str, float] = {},
    space: SearchSpace | None = None,
) -> Replay:
    """See `Table.replay`; `space` is searched in place of that of the properties."""
    if algorithm == "halving":
        algorithm, name, halving = "random", algorithm, halving or Halving()
    else:
        name = algorithm
    if algorithm not in ALGORITHMS:
        raise ValueError(f"the algorithm must be one of {', '.join([*ALGORITHMS, 'halving'])}, got '{algorithm}'")
    task = table.tasks[0] if task is None else task
    if task not in table.tasks:
        raise ValueError(f"the task must be one of {', '.join(table.tasks)}, got '{task}'")
    target = get_best(table, task, properties).get_accuracy(task)
    assert target is not None
    evaluator = _Evaluator(table, task, random.Random(seed), target)
    with Searcher(
        space or make_space(*properties), algorithm, seed=seed, objective=objective, parameters=parameters
    ) as searcher:
        search = _Search(table, searcher, evaluator, budget)
        search.run(halving or Halving.off())
    return Replay(name, seed, evaluator.steps, search.numbers, search.failures)


@dataclass(frozen=True)
class Regret:
    """Of an algorithm after some effort, over several seeds."""

    algorithm: str
    trainings: float
    median: float
    """In points of test accuracy; see `Step.regret`."""
    lower: float
    upper: float
    """The quartiles."""


def get_regrets(
    table: Table,
    algorithms: Iterable[str] = ("uniform", "evolution", "mcts", "surrogate", "halving"),
    seeds: Iterable[int] = range(50),
    efforts: Sequence[float] = (5, 10, 20, 50, 100),
    *,
    task: str | None = None,
    properties: Sequence[str] = DEFAULT,
) -> list[Regret]:
    """Regret curves: what each algorithm comes to after each effort, in whole trainings."""
    found = []
    known = list(seeds)
    for algorithm in algorithms:
        runs = [replay(table, algorithm, seed, max(efforts), task=task, properties=properties) for seed in known]
        for effort in efforts:
            values = sorted(run.regret(effort) for run in runs)
            lower, median, upper = (values[round(share * (len(values) - 1))] for share in (0.25, 0.5, 0.75))
            found.append(Regret(algorithm, effort, median, lower, upper))
    return found


class _Search:
    """Asks, looks up and tells until the budget is spent or the space is."""

    def __init__(self, table: Table, searcher: Searcher, evaluator: _Evaluator, budget: float):
        self.table, self.searcher, self.evaluator, self.budget = table, searcher, evaluator, budget
        self.numbers: list[int] = []
        self.failures = 0
        self.rows: dict[int, tuple[Row, Training]] = {}

    def ask(self) -> Candidate | None:
        """The next candidate that has a training."""
        while candidates := self.searcher.ask(1):
            candidate = candidates[0]
            row = self.table.by_key.get(candidate.key)
            if row is None:
                raise ValueError(f"requires operators of the table, got one with the key {candidate.key}")
            self.numbers.append(row.number)
            training = self.evaluator.get_training(row)
            if training is not None:
                self.rows[candidate.id] = row, training
                return candidate
            self.failures += 1
            self.searcher.tell(candidate.id, error="it has no training")
        return None

    def run(self, halving: Halving) -> None:
        while self.evaluator.spent < self.budget:
            chosen: dict[int, Candidate] = {}
            while len(chosen) < halving.size and (candidate := self.ask()) is not None:
                chosen[candidate.id] = candidate
            if not chosen or not self.train(chosen, halving):
                return

    def train(self, chosen: dict[int, Candidate], halving: Halving) -> bool:
        """One bracket; false when the budget ends in it."""
        epochs = max(len(self.rows[id][1].curve) for id in chosen)
        reached: dict[int, dict[str, float]] = {}
        plan = halving.make_plan(epochs)
        plan.open(list(chosen), [])
        before = dict.fromkeys(chosen, 0)
        while (job := plan.take()) is not None:
            id, end = job
            row, training = self.rows[id]
            share = (end - before[id]) / epochs
            if self.evaluator.spent + share > self.budget + 1e-9:
                return False
            before[id] = end
            self.evaluator.spend(row, training, share, end == epochs)
            reached[id] = _metrics(row, training, end)
            for out in plan.finish(id, end, reached[id]["accuracy"], 0.0):
                self.tell(out, reached[out])
        return True

    def tell(self, id: int, metrics: dict[str, float]) -> None:
        """The outcome of a candidate that is trained no further."""
        self.searcher.tell(id, metrics)
