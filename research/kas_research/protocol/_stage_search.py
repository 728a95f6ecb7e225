# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looks for operators that differ between the stages of a network, by training it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy

from kas.zoo._backbones import SIZES
from kas.zoo._contenders import Contender

from . import statistics
from ._latency import measure
from ._mixture import Choices, Mixture, Numbers
from ._protocol import Job, Point, Protocol, StageSearch, identify
from ._results import read_results
from ._run import Team
from ._store import Store

BATCH = 8
"""Trainings between two fits of the model: outcomes do not depend on which of them ends first."""


class Found(NamedTuple):
    """Operators for the stages, and what is expected of them."""

    contender: Contender
    gains: dict[int, float]
    """By width: points of validation accuracy above the envelope of the baselines."""
    deviations: dict[int, float]
    microseconds: dict[int, float]
    trainings: int


def name_mixture(stages: Sequence[Contender]) -> str:
    """Of a contender that a search makes."""
    return " + ".join(stage.name for stage in stages)


class Space:
    """All networks that a search chooses from, in one order."""

    def __init__(self, protocol: Protocol, search: StageSearch):
        self.pool, self.widths = search.pool, search.widths or protocol.widths
        self.mixtures = [
            Contender(name_mixture(stages), stages=stages, is_candidate=True)
            for stages in itertools.product(self.pool, repeat=len(SIZES))
        ]
        self._numbers = {mixture.name: number for number, mixture in enumerate(self.mixtures)}
        known = {contender.name for contender in protocol.contenders}
        self.protocol = replace(
            protocol, contenders=(*protocol.contenders, *(m for m in self.mixtures if m.name not in known))
        )
        operators = itertools.product(range(len(self.pool)), repeat=len(SIZES))
        rows = [(width, *stages) for stages in operators for width in range(len(self.widths))]
        self.choices: Choices = numpy.array(rows, numpy.int64)

    def point(self, network: str, index: int) -> Point:
        """The network of a row of `choices`."""
        mixture, width = divmod(index, len(self.widths))
        return Point(network, self.mixtures[mixture].name, self.widths[width])

    def index(self, point: Point) -> int:
        """The row of `choices` of a network."""
        return self._numbers[point.contender] * len(self.widths) + self.widths.index(point.width)

    def probes(self, network: str) -> list[Point]:
        """What is timed: each operator at each stage of each width, beside the first operator of the pool."""
        rows = self.choices
        is_probe = (rows[:, 1:] != 0).sum(1) <= 1
        return [self.point(network, int(index)) for index in numpy.flatnonzero(is_probe)]

    def predict_latencies(self, network: str, measured: Mapping[Point, float]) -> Numbers:
        """The microseconds of all rows: what each operator adds at its stage, from the times of `probes`."""
        base = numpy.array([measured[self.point(network, width)] for width in range(len(self.widths))])
        added = numpy.zeros((len(self.widths), len(SIZES), len(self.pool)))
        for point in self.probes(network):
            row = self.choices[self.index(point)]
            for stage in map(int, numpy.flatnonzero(row[1:])):
                added[row[0], stage, row[1 + stage]] = measured[point] - base[row[0]]
        rows = self.choices
        result: Numbers = base[rows[:, 0]]
        for stage in range(len(SIZES)):
            result = result + added[rows[:, 0], stage, rows[:, 1 + stage]]
        return result


def time_probes(space: Space, network: str, store: Store, progress: Callable[[str], None] | None) -> dict[Point, float]:
    """The times of the probes that the store has; all of them are measured, by kas, where one is missing."""
    points = space.probes(network)

    def read() -> dict[Point, float]:
        times = {
            r["key"]: r["microseconds"]["kas"] for r in store if r["kind"] == "latency" and "kas" in r["microseconds"]
        }
        keys = {point: space.protocol.latency_key(point) for point in points}
        return {point: times[key] for point, key in keys.items() if key in times}

    if len(found := read()) < len(points):
        for record in measure(space.protocol, points, names=("kas",), rounds=10, progress=progress):
            store.add(record)
        found = read()
    if missing := [point for point in points if point not in found]:
        raise ValueError(f"requires the time of each operator at each stage, got none of '{missing[0].contender}'")
    return found


class _Search:
    def __init__(self, space: Space, search: StageSearch, network: str, store: Store, latencies: Numbers):
        self.space, self.search, self.network, self.store = space, search, network, store
        self.latencies = latencies
        self.generator = numpy.random.default_rng(search.seed)
        self.identity = identify(space.protocol.load_data())
        self.seeds = space.protocol.choosing
        self.observed: list[tuple[int, float]] = []
        """Rows of `choices` with accuracies."""
        self.asked = numpy.zeros(len(space.choices), numpy.int64)
        results = next(r for r in read_results(space.protocol, store) if r.network == network)
        baselines = [c for c in space.protocol.contenders if not c.is_candidate]
        self.curves = results.curves(baselines, "validation")
        levels = [statistics.get_envelope(self.curves, float(latency)) for latency in latencies]
        if not any(levels):
            raise ValueError("requires accuracies and times of baselines, got none at the times of the search")
        self.envelope = numpy.array([level[1].mean if level else numpy.nan for level in levels])

    def first(self) -> list[int]:
        """Rows in which each operator is at each stage once, for a start."""
        size = len(self.space.pool)
        orders = [self.generator.permutation(size) for _ in SIZES]
        rows = []
        for number in range(size):
            mixture = 0
            for order in orders:
                mixture = mixture * size + int(order[number])
            rows.append(mixture * len(self.space.widths) + int(self.generator.integers(len(self.space.widths))))
        return [row for row in rows if numpy.isfinite(self.envelope[row])]

    def score(self, gains: Numbers) -> Numbers:
        """Of each mixture: the gain that it has at as many widths as the test asks for."""
        by_width = numpy.where(numpy.isfinite(gains), gains, -numpy.inf).reshape(-1, len(self.space.widths))
        rank = min(statistics.WIDTHS, by_width.shape[1])
        result: Numbers = numpy.sort(by_width, 1)[:, -rank]
        return result

    def fit(self) -> Mixture:
        model = Mixture()
        rows = numpy.array([row for row, _ in self.observed])
        model.fit(self.space.choices[rows], [value for _, value in self.observed])
        return model

    def propose(self, count: int) -> list[int]:
        """Rows with a high upper bound of what they gain; how high a bound is drawn again for each."""
        model, widths, found = self.fit(), len(self.space.widths), []
        for _ in range(count):
            means, deviations = model.predict(self.space.choices)
            bound = means + abs(self.generator.normal()) * deviations - self.envelope
            bound[self.asked >= len(self.seeds)] = numpy.nan
            scores = self.score(bound)
            if not numpy.isfinite(scores).any():
                break
            mixture = int(numpy.argmax(scores))
            own = slice(mixture * widths, (mixture + 1) * widths)
            row = mixture * widths + int(
                numpy.nanargmax(numpy.where(numpy.isfinite(bound[own]), deviations[own], numpy.nan))
            )
            self.asked[row] += 1
            found.append(row)
            model.believe(self.space.choices[row : row + 1])
        return found

    def train(self, team: Team, rows: Sequence[int], progress: Callable[[dict[str, Any], int], None] | None) -> None:
        """All of them; what the store has is taken from there."""
        known = self.store.read_trainings()
        counts: dict[int, int] = {}
        jobs: list[tuple[int, Job]] = []
        for row in rows:
            number = self.asked[row] - rows.count(row) + counts.get(row, 0)
            counts[row] = counts.get(row, 0) + 1
            jobs.append((row, Job(self.space.point(self.network, row), self.seeds[number], False)))
        records = {}
        missing = [job for _, job in jobs if self.space.protocol.key(job, self.identity) not in known]
        for record in team.train(missing):
            self.store.add(record)
            records[record["key"]] = record
            if progress is not None:
                progress(record, self.search.trainings - len(self.observed) - len(records))
        for row, job in jobs:
            key = self.space.protocol.key(job, self.identity)
            record = records.get(key) or known[key]
            if not record["failure"]:
                self.observed.append((row, record["validation"]))

    def recall(self) -> None:
        """Takes the outcomes that the store has: of each network those of its first seeds."""
        known = self.store.read_trainings()
        for row in range(len(self.space.choices)):
            for seed in self.seeds if numpy.isfinite(self.envelope[row]) else ():
                key = self.space.protocol.key(Job(self.space.point(self.network, row), seed, False), self.identity)
                if key not in known:
                    break
                self.asked[row] += 1
                if not known[key]["failure"]:
                    self.observed.append((row, known[key]["validation"]))

    def run(self, team: Team, progress: Callable[[dict[str, Any], int], None] | None) -> None:
        if self.search.recalls:
            self.recall()
        started = int(self.asked.sum())
        for _ in range(1 if started else 2):
            rows = [row for row in dict.fromkeys(self.first()) if not (self.search.recalls and self.asked[row])]
            rows = rows[: max(0, self.search.trainings - started)]
            self.asked[rows] += 1
            started += len(rows)
            self.train(team, rows, progress)
        while started < self.search.trainings:
            rows = self.propose(min(BATCH, self.search.trainings - started))
            if not rows:
                return
            started += len(rows)
            self.train(team, rows, progress)

    def found(self, count: int) -> list[Found]:
        """The best by what is expected less its deviation, of those that were trained at as many widths as it takes."""
        means, deviations = self.fit().predict(self.space.choices)
        gains, widths = means - self.envelope, len(self.space.widths)
        trained = numpy.zeros(len(means), numpy.int64)
        for row, _ in self.observed:
            trained[row] += 1
        by_width = trained.reshape(-1, widths)
        scores = self.score(gains - deviations)
        scores[(by_width > 0).sum(1) < min(statistics.WIDTHS, widths)] = -numpy.inf
        order = [int(m) for m in numpy.argsort(-scores, kind="stable") if numpy.isfinite(scores[m])][:count]
        result = []
        for mixture in order:
            rows = {self.space.widths[i]: mixture * widths + i for i in range(widths)}
            rows = {width: row for width, row in rows.items() if numpy.isfinite(gains[row])}
            result.append(
                Found(
                    self.space.mixtures[mixture],
                    {width: float(gains[row]) for width, row in rows.items()},
                    {width: float(deviations[row]) for width, row in rows.items()},
                    {width: float(self.latencies[row]) for width, row in rows.items()},
                    int(by_width[mixture].sum()),
                )
            )
        return result


def search_stages(
    protocol: Protocol,
    store: Store,
    *,
    network: str | None = None,
    processes: int | None = None,
    niceness: int = 19,
    progress: Callable[[dict[str, Any], int], None] | None = None,
    compiled: Callable[[str], None] | None = None,
) -> list[Found]:
    """Looks for operators of `protocol.search.pool`, one for each stage, that gain most over the baselines.

    The score is validation accuracy above the envelope of the baselines at the same latency, at the second-best
    width, as in the test of `statistics`. Baselines are read from the store, which has to have their accuracies and
    times. The times of networks are sums of what each operator takes at its stage, which are measured first, by kas:
    nothing else should run then. Accuracies are those of trainings with seeds for choosing; which networks are trained
    follows from a model of those that were (`Mixture`). Equal calls give equal results, and the same call goes on where
    another was stopped.
    """
    if protocol.search is None:
        raise ValueError("requires a search in the protocol, got none")
    space = Space(protocol, protocol.search)
    network = network or protocol.networks[0]
    latencies = space.predict_latencies(network, time_probes(space, network, store, compiled))
    search = _Search(space, protocol.search, network, store, latencies)
    with Team(space.protocol, processes, niceness) as team:
        search.run(team, progress)
    return search.found(protocol.search.finalists)
