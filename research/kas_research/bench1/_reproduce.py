# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random rows measured again, and compared with the tables."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..protocol import Store
from ._space import LAYERS
from ._table import Row, Table
from ._time import Batch, Place, Probe, describe_processor
from ._train import read_training, train

DEVIATIONS = 3.0
"""An accuracy may be so many deviations of a seed away."""
SHARE = 0.15
"""A ratio of latencies may differ by so much."""
TRIES = 3
"""What differs is timed again, so often in all: what else runs on a processor slows some operators for minutes."""


@dataclass(frozen=True)
class Check:
    """A value of the tables beside the same measured again."""

    number: int
    what: str
    """Such as `accuracy on fashion-mnist`, `time in 64x56 on 1 thread`."""
    known: float
    found: float
    tolerance: float
    """How far they may be apart."""

    @property
    def holds(self) -> bool:
        """They are no farther apart."""
        return abs(self.found - self.known) <= self.tolerance

    def __str__(self) -> str:
        mark = "ok" if self.holds else "differs"
        return (
            f"operator {self.number}: {self.what}: {self.found:.4g}, in the table {self.known:.4g} "
            f"± {self.tolerance:.2g}: {mark}"
        )


def get_deviation(table: Table, task: str, part: str = "test") -> float:
    """The deviation of a seed, pooled over all operators with two or more trainings; a `ValueError` without any."""
    squares, freedom = 0.0, 0
    for row in table:
        values = [getattr(one, part) for one in row.get_trainings(task)]
        if len(values) > 1:
            squares += statistics.variance(values) * (len(values) - 1)
            freedom += len(values) - 1
    if not freedom:
        raise ValueError(f"requires operators with two trainings on '{task}' in the table, got none")
    return math.sqrt(squares / freedom)


def draw(table: Table, count: int, seed: int, has: Callable[[Row], bool]) -> list[Row]:
    """So many rows (or as many as there are) with what `has` asks for, by the seed."""
    rows = [row for row in table if has(row)]
    return random.Random(seed).sample(rows, min(count, len(rows)))


def check_accuracies(table: Table, rows: Sequence[Row], processes: int = 1) -> Iterator[Check]:
    """Trains each operator once on each task, with its first seed, and compares with the mean of its seeds.

    On the machine that made the tables the training gives the same; elsewhere rounding makes it one of another seed.
    """
    for task in table.tasks:
        trained = [row for row in rows if row.get_trainings(task)]
        if not trained:
            continue
        deviation = get_deviation(table, task)
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder) / "trainings.jsonl")
            untrained = [replace(row, trainings=()) for row in trained]
            train(untrained, store, tasks=[task], seeds=[0], references={}, processes=processes, niceness=0)
            records = {record["contender"]: record for record in store.read_trainings().values()}
        for row in trained:
            values = [one.test for one in row.get_trainings(task) if one.test is not None]
            again = read_training(records[f"operator-{row.number}"], task)
            # The mean of the table has an error, too.
            tolerance = DEVIATIONS * deviation * math.sqrt(1 + 1 / len(values))
            found = math.nan if again.test is None else again.test
            yield Check(row.number, f"accuracy on {task}", statistics.fmean(values), found, tolerance)


def check_latencies(rows: Sequence[Row]) -> Iterator[Check]:
    """Times each operator in each layer and compares its ratio to the dense layer: with that of this machine if any.

    Values come when they hold, or after the last try; the least time of all tries counts.
    """
    machine, probe = describe_processor(), Probe()
    left = [(row, place) for row in rows for place in _list_places(row)]
    least: dict[tuple[int, Place], tuple[float, float]] = {}
    for attempt in range(TRIES):
        differing = []
        for row, pairs in itertools.groupby(left, lambda pair: pair[0]):
            for place, times, dense in Batch({place: [row.operator] for _, place in pairs}).measure(probe):
                time = math.inf if isinstance(times[0], str) else times[0]
                known = least.get((row.number, place), (math.inf, math.inf))
                least[row.number, place] = time, dense = min(time, known[0]), min(dense, known[1])
                check = _compare(row, place, machine, time / dense)
                if check.holds or attempt == TRIES - 1:
                    yield check
                else:
                    differing.append((row, place))
        left = differing


def _list_places(row: Row) -> list[Place]:
    measured = {(one.layer, one.threads) for one in row.latencies}
    return [place for place in itertools.product(LAYERS, (1, 2)) if place in measured]


def _compare(row: Row, place: Place, machine: str, found: float) -> Check:
    layer, threads = place
    own = row.get_ratio(layer, threads, machine)
    known = row.get_ratio(layer, threads) if own is None else own
    assert known is not None, "only places with a latency are timed"
    what = f"time in {layer} on {threads} thread{'s' if threads > 1 else ''} over that of the dense layer"
    what += " (table: another machine)" if own is None else ""
    return Check(row.number, what, known, found, SHARE * known)


def reproduce(table: Table, count: int = 20, seed: int = 0, processes: int = 1) -> Iterator[Check]:
    """Measures random rows again: accuracies of so many operators, latencies of so many."""
    trained = draw(table, count, seed, lambda row: any(one.failure is None for one in row.trainings))
    yield from check_accuracies(table, trained, processes)
    yield from check_latencies(draw(table, count, seed, lambda row: bool(row.latencies)))
