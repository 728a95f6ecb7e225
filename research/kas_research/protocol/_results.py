# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a store has on a protocol: accuracies and latencies of its points, and what follows from them."""

from __future__ import annotations

import math
import statistics as numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy

from kas.zoo._contenders import Contender

from . import statistics
from ._protocol import VERSION, Point, Protocol, make_latency_key, settings_of
from ._store import Store
from .bootstrap import Bootstrap, Difference, get_difference, unpack_bits

METRICS = ("validation", "test", "shifted", "rotated")


class Condition(NamedTuple):
    """Under which a latency was measured."""

    batch: int = 1
    threads: int = 1


USUAL = Condition()


@dataclass
class Result:
    """A point: accuracies by metric and seed, and its latency."""

    point: Point
    accuracies: dict[str, dict[int, float]] = field(default_factory=dict)
    correct: dict[int, numpy.ndarray] = field(default_factory=dict)
    """Which test images are classified right, by seed; nothing of trainings that did not keep it."""
    parameters: int = 0
    cpu_seconds: list[float] = field(default_factory=list)
    microseconds: Mapping[str, float] = field(default_factory=dict)
    """By implementation: one image, one thread."""
    others: dict[Condition, Mapping[str, float]] = field(default_factory=dict)
    """The same under other conditions."""
    run: tuple[str, int] | None = None
    """The machine and the time of the run that measured them."""
    failures: list[str] = field(default_factory=list)

    @property
    def latency(self) -> tuple[float, str] | None:
        """The least microseconds, and whose they are."""
        return self.latency_under(USUAL)

    def latency_under(self, condition: Condition) -> tuple[float, str] | None:
        """`latency` under other conditions."""
        found = self.microseconds if condition == USUAL else self.others.get(condition, {})
        return min(((value, name) for name, value in found.items()), default=None)

    def values(self, metric: str) -> list[float]:
        """Of the seeds, in their order."""
        return [value for _, value in sorted(self.accuracies.get(metric, {}).items())]

    def measured(self, metric: str, condition: Condition = USUAL) -> statistics.Measured | None:
        """For the statistics; nothing without a latency or an accuracy."""
        values, latency = self.values(metric), self.latency_under(condition)
        if not values or latency is None:
            return None
        return statistics.Measured(latency[0], numbers.fmean(values), len(values), self.point.width)


class ImageComparison(NamedTuple):
    """A candidate beside a baseline, in points of accuracy on test images."""

    point: Point
    baseline: Point
    difference: Difference
    """Its standard error contains the seeds and the images."""


def _get_time(result: Result) -> float:
    return result.latency[0] if result.latency else math.inf


@dataclass
class NetworkResults:
    """The points of one network."""

    network: str
    protocol: Protocol
    results: dict[Point, Result]

    def deviation(self, metric: str) -> statistics.Deviation:
        """Of one seed, pooled over all points."""
        return statistics.pool(result.values(metric) for result in self.results.values())

    @property
    def conditions(self) -> list[Condition]:
        """Those of latencies, the usual one first."""
        others = {condition for result in self.results.values() for condition in result.others}
        return [USUAL, *sorted(others)]

    def curve(self, contender: str, metric: str, condition: Condition = USUAL) -> list[statistics.Measured]:
        """The widths of a contender that have an accuracy and a latency."""
        found = [r.measured(metric, condition) for point, r in self.results.items() if point.contender == contender]
        return [point for point in found if point is not None]

    def curves(self, contenders: Sequence[Contender], metric: str) -> dict[str, list[statistics.Measured]]:
        """`curve` of several, without those that have nothing."""
        found = {contender.name: self.curve(contender.name, metric) for contender in contenders}
        return {name: points for name, points in found.items() if points}

    @property
    def baselines(self) -> list[Contender]:
        return [contender for contender in self.protocol.contenders if not contender.is_candidate]

    @property
    def candidates(self) -> list[Contender]:
        return [contender for contender in self.protocol.contenders if contender.is_candidate]

    def decide(self, metric: str, afterthoughts: bool = True) -> dict[str, statistics.Verdict]:
        """The verdicts on the candidates, against the envelope of all baselines, or of all but afterthoughts."""
        baselines = [baseline for baseline in self.baselines if afterthoughts or not baseline.is_afterthought]
        return statistics.decide(
            self.curves(self.candidates, metric), self.curves(baselines, metric), self.deviation(metric)
        )

    def equal_accuracy(self, candidate: str, condition: Condition) -> list[tuple[statistics.Measured, float]]:
        """The widths of a candidate, and by how much the dense curve takes longer where it is as accurate."""
        dense = self.curve(self.protocol.dense, "test", condition)
        found = []
        for point in self.curve(candidate, "test", condition):
            if (latency := statistics.find_latency(dense, point.mean)) is not None:
                found.append((point, latency / point.latency))
        return found

    def compare_images(self, draws: int = 2000) -> list[ImageComparison]:
        """Candidates beside the best baseline that takes no longer, where both have kept the images and two seeds."""

        def has_images(point: Point, result: Result) -> bool:
            return len(result.correct) > 1 and result.latency is not None

        known = {point: result for point, result in self.results.items() if has_images(point, result)}
        if not known:
            return []
        bootstrap = Bootstrap(len(next(iter(next(iter(known.values())).correct.values()))), draws)
        drawn = {point: 100 * bootstrap.draw(result.correct) for point, result in known.items()}
        found = []
        for point, result in known.items():
            faster = [
                other
                for other, baseline in known.items()
                if not self.protocol[other.contender].is_candidate and _get_time(baseline) <= _get_time(result)
            ]
            if self.protocol[point.contender].is_candidate and faster:
                best = max(faster, key=lambda other: float(drawn[other][0]))
                found.append(ImageComparison(point, best, get_difference(drawn[point] - drawn[best])))
        return found

    def measures_operators(self, metric: str) -> tuple[bool, list[statistics.Difference]] | None:
        """Whether the control is clearly below the dense curve; nothing where that is not known yet."""
        control, dense = (self.curve(name, metric) for name in (self.protocol.control, self.protocol.dense))
        return statistics.measures_operators(control, dense, self.deviation(metric))


def read_results(protocol: Protocol, store: Store) -> list[NetworkResults]:
    """For each network of the protocol.

    Entries of other protocols in the store, of other recipes or data, are not in them; of times the last of each
    point counts. Whether a training is of the protocol is seen by its settings but for the seed: seeds for reporting
    count where there are any, those for choosing else.
    """
    found = {point: Result(point) for point in protocol.points()}
    chosen: dict[Point, Result] = {point: Result(point) for point in found}
    # Contenders by what they are: of a name the store may have had others.
    points = _sort(found, partial(_make_latency_key, protocol, USUAL))
    by_condition: dict[Condition, dict[str, list[Point]]] = {USUAL: points}
    for record in store:
        if record["kind"] == "training":
            seed = record["seed"]
            results = found if seed in protocol.reporting else chosen if seed in protocol.choosing else None
            if results is not None and _has_conditions(protocol, record):
                for point in points.get(_find_key(record), ()):
                    _add(results[point], record)
        elif record["kind"] == "latency":
            condition = Condition(record["batch"], record["threads"])
            if condition not in by_condition:
                by_condition[condition] = _sort(found, partial(_make_latency_key, protocol, condition))
            for point in by_condition[condition].get(record["key"], ()):
                for result in (found[point], chosen[point]):
                    if condition == USUAL:
                        result.microseconds, result.run = record["microseconds"], (record["machine"], record["time"])
                    else:
                        result.others[condition] = record["microseconds"]
    for point, result in found.items():
        if not result.accuracies:
            found[point] = chosen[point]
    return [
        NetworkResults(name, protocol, {point: result for point, result in found.items() if point.network == name})
        for name in protocol.networks
    ]


def _make_latency_key(protocol: Protocol, condition: Condition, point: Point) -> str:
    return protocol.latency_key(point, *condition)


def _sort(points: Iterable[Point], key: Callable[[Point], str]) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(key(point), []).append(point)
    return found


def _find_key(record: Mapping[str, Any]) -> str:
    """The `Protocol.latency_key` of what was trained."""
    settings = record["settings"]
    return make_latency_key(settings["contender"], settings["network"], settings["width"])


def _has_conditions(protocol: Protocol, record: Mapping[str, Any]) -> bool:
    settings = record["settings"]
    data = settings["data"].split()
    return bool(
        settings["version"] == VERSION
        and settings["recipe"] == settings_of(protocol.recipe)
        and data[0] == protocol.data
        and protocol.checksum in (None, data[1])
    )


def _add(result: Result, record: Mapping[str, Any]) -> None:
    if record["failure"]:
        result.failures.append(record["failure"])
        return
    result.parameters = record["parameters"]
    result.cpu_seconds.append(record["cpu_seconds"])
    if "test_correct" in record:
        result.correct[record["seed"]] = unpack_bits(record["test_correct"])
    for metric in METRICS:
        if metric in record and math.isfinite(record[metric]):
            result.accuracies.setdefault(metric, {})[record["seed"]] = record[metric]
