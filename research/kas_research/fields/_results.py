# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the trainings of an experiment say: errors, their ratios with intervals, and the rules to stop.

Errors are compared by y, the logarithm of the mean over the test fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy

from ..protocol import statistics
from ..protocol._store import Store
from ..protocol.bootstrap import Bootstrap, Ratio, get_ratio
from ._families import EXPRESSIBLE
from ._protocol import Experiment, Protocol, Rules
from ._stages import get_jobs, resolve
from ._time import Widths
from ._train import unpack


@dataclass
class Point:
    """A family at a budget."""

    equation: str
    family: str
    budget: float
    width: int
    ms: float
    compiler: str
    parameters: int | None = None
    errors: dict[int, numpy.ndarray] = field(default_factory=dict)
    """By seed: percent of each test field."""
    failures: dict[int, str] = field(default_factory=dict)
    """By seed."""
    cpu_seconds: list[float] = field(default_factory=list)

    def get_logs(self) -> list[float]:
        """Y of each seed."""
        return [math.log(errors.mean()) for _, errors in sorted(self.errors.items())]

    @property
    def error(self) -> float:
        """The geometric mean over seeds, in percent."""
        logs = self.get_logs()
        return math.exp(sum(logs) / len(logs))


class Finding(NamedTuple):
    """A rule to stop, at a budget."""

    text: str
    stops: bool | None
    """None where trainings that it needs are missing."""


def read_points(protocol: Protocol, experiment: Experiment, store: Store) -> list[Point]:
    """The points of an experiment that have a width, with the trainings of its last round that are there."""
    experiment = resolve(protocol, experiment, store)
    widths = Widths(protocol, experiment, store)
    trainings = store.read_trainings()
    jobs = get_jobs(protocol, experiment, store)
    points = []
    for (equation, family, budget), width in widths.get_all().items():
        if width is None:
            continue
        compiler, ms = widths.get_best(equation, family, width)
        point = Point(equation, family, budget, width, ms, compiler)
        for job in jobs:
            if (job.equation, job.family, job.width, job.epochs) == (equation, family, width, experiment.epochs):
                _add(point, job.seed, trainings.get(protocol.key(job)))
        points.append(point)
    return points


def _add(point: Point, seed: int, record: Mapping[str, Any] | None) -> None:
    if record is None:
        return
    if record["failure"]:
        point.failures[seed] = record["failure"]
        return
    point.parameters = record["parameters"]
    point.errors[seed] = unpack(record["errors"])
    point.cpu_seconds.append(record["cpu_seconds"])


def compare(points: Sequence[Point], baseline: Point, draws: int, seed: int = 0) -> list[Ratio | None]:
    """The ratios of errors of points to a baseline, by a bootstrap; None where a point has no training."""
    bootstrap = Bootstrap(len(next(iter(baseline.errors.values()))), draws, seed)
    own = bootstrap.draw(baseline.errors, numpy.log)
    return [get_ratio(bootstrap.draw(point.errors, numpy.log) - own) if point.errors else None for point in points]


def get_deviation(points: Iterable[Point]) -> statistics.Deviation:
    """That of y over seeds, one for all points; a width that two budgets have in common counts once."""
    distinct = {(point.equation, point.family, point.width): point for point in points}
    return statistics.pool(point.get_logs() for point in distinct.values() if point.errors)


def get_best(points: Iterable[Point]) -> Point | None:
    """The one of the least error."""
    return min((point for point in points if point.errors), key=lambda point: point.error, default=None)


def check_rules(points: Sequence[Point], rules: Rules, seeds: int) -> list[Finding]:
    """The rules to stop, each for each equation and budget, and the deviation; open until all trainings are there."""
    found = []
    for equation, budget in dict.fromkeys((point.equation, point.budget) for point in points):
        here = [point for point in points if (point.equation, point.budget) == (equation, budget)]
        found += _check_errors(f"{equation}, {budget:g} ms: ", here, rules, _is_complete(here, seeds))
    deviation = get_deviation(points)
    if not math.isfinite(deviation.value):
        return [*found, Finding("the deviation over seeds: trainings are missing", None)]
    text = f"the deviation over seeds is {deviation.value:.3f} ({deviation.freedom} degrees of freedom), at most "
    stops = deviation.value > rules.deviation if _is_complete(points, seeds) else None
    return [*found, Finding(f"{text}{rules.deviation:g} required", stops)]


def _is_complete(points: Iterable[Point], seeds: int) -> bool:
    return all(len(point.errors) + len(point.failures) >= seeds for point in points)


def _check_errors(place: str, points: Sequence[Point], rules: Rules, is_complete: bool) -> list[Finding]:
    """The two rules of the errors at a budget."""
    best = get_best(points)
    expressed = get_best(point for point in points if point.family in EXPRESSIBLE)
    pointwise = get_best(point for point in points if point.family == "pointwise")
    if best is None or expressed is None or pointwise is None:
        return [Finding(f"{place}trainings are missing", None)]
    ratio = pointwise.error / best.error
    text = f"{place}pointwise has {ratio:.2f} times the error of {best.family}, at least {rules.pointwise:g} required"
    found = [Finding(text, ratio < rules.pointwise if is_complete else None)]
    ratio = expressed.error / best.error
    text = f"{place}{expressed.family}, the best that kas expresses, has {ratio:.2f} times the error of {best.family}, "
    return [*found, Finding(f"{text}at most {rules.ahead:g} required", ratio > rules.ahead if is_complete else None)]
