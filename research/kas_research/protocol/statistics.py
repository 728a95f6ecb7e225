# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When a point of accuracy over latency is above what baselines reach.

Accuracies are in percent, latencies in any unit. A mean that is not finite, or of no seeds, is an error.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kas._errors import need

__all__ = [
    "Deviation",
    "Difference",
    "Level",
    "Measured",
    "Verdict",
    "combine",
    "compare",
    "compare_all",
    "correct",
    "decide",
    "find_latency",
    "get_envelope",
    "get_frontier",
    "interpolate",
    "measures_operators",
    "pool",
]

CONTROL = 5.0
"""By so many standard errors the control must be below the dense curve."""
ABOVE = 2.0
"""By so many standard errors a candidate must be above the envelope, at `WIDTHS` widths."""
WIDTHS = 2
LEVEL = 0.05
"""Of Holm's test."""


class Deviation(NamedTuple):
    """Of one seed."""

    value: float
    """NaN where no group has two seeds."""
    freedom: int
    """Degrees of freedom."""


def pool(groups: Iterable[Sequence[float]]) -> Deviation:
    """The deviation over seeds, one for all points: the root of the mean variance, by degrees of freedom."""
    squares, freedom = 0.0, 0
    for group in groups:
        if any(not math.isfinite(value) for value in group):
            raise ValueError(f"requires finite accuracies, got {list(group)}")
        if len(group) > 1:
            squares += (len(group) - 1) * statistics.variance(group)
            freedom += len(group) - 1
    return Deviation(math.sqrt(squares / freedom) if freedom else math.nan, freedom)


@dataclass(frozen=True)
class Measured:
    """A contender at a width."""

    latency: float
    mean: float
    """Accuracy over seeds."""
    seeds: int
    width: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.latency) and self.latency > 0):
            raise ValueError(f"requires a latency above 0, got {self.latency}")
        if not math.isfinite(self.mean):
            raise ValueError(f"requires a finite accuracy, got {self.mean}")
        if self.seeds < 1:
            raise ValueError(f"requires at least one seed, got {self.seeds}")


class Level(NamedTuple):
    """The value of a curve at a latency."""

    mean: float
    share: float
    """The variance of the mean, in those of one seed: 1/n at a point of n seeds."""


def get_frontier(points: Iterable[Measured]) -> list[Measured]:
    """The points by latency, without those that a faster one is as good as."""
    kept: list[Measured] = []
    for point in sorted(points, key=lambda p: (p.latency, -p.mean)):
        if not kept or point.mean > kept[-1].mean:
            kept.append(point)
    return kept


def interpolate(points: Iterable[Measured], latency: float) -> Level | None:
    """The curve of one contender's widths: linear in the logarithm of the latency between points of the frontier.

    Right of the last point its mean: what takes less time can be used there as well. Left of the first one there is
    nothing.
    """
    frontier = get_frontier(points)
    if not frontier or latency < frontier[0].latency:
        return None
    for left, right in itertools.pairwise(frontier):
        if latency < right.latency:
            t = math.log(latency / left.latency) / math.log(right.latency / left.latency)
            share = (1 - t) ** 2 / left.seeds + t**2 / right.seeds
            return Level((1 - t) * left.mean + t * right.mean, share)
    return Level(frontier[-1].mean, 1 / frontier[-1].seeds)


def find_latency(points: Iterable[Measured], mean: float) -> float | None:
    """The latency at which the curve of one contender's widths reaches an accuracy.

    Nothing where none does, or where the narrowest one is better: how fast a narrower one would be is not known.
    """
    frontier = get_frontier(points)
    if not frontier or not frontier[0].mean <= mean <= frontier[-1].mean:
        return None
    for left, right in itertools.pairwise(frontier):
        if mean <= right.mean:
            t = (mean - left.mean) / (right.mean - left.mean)
            return math.exp((1 - t) * math.log(left.latency) + t * math.log(right.latency))
    return frontier[-1].latency


def get_envelope(curves: Mapping[str, Sequence[Measured]], latency: float) -> tuple[str, Level] | None:
    """The best curve at a latency, with its name.

    Nothing where all begin further right, or all end further left: there no baseline is as slow, and wider ones have to
    be measured first.
    """
    levels = [(name, level) for name, points in curves.items() if (level := interpolate(points, latency)) is not None]
    if not levels or latency > max(point.latency for points in curves.values() for point in points):
        return None
    return max(levels, key=lambda entry: entry[1].mean)


@dataclass(frozen=True)
class Difference:
    """A point against a curve or an envelope."""

    point: Measured
    baseline: str
    difference: float
    """In points of accuracy."""
    error: float
    """Its standard error."""
    probability: float
    """One-sided, by Student's distribution: of at least so much if there were none."""

    @property
    def ratio(self) -> float:
        """In standard errors."""
        return self.difference / self.error


def compare(point: Measured, baseline: str, level: Level, deviation: Deviation) -> Difference | None:
    """A point against a level; nothing without a deviation (a single seed everywhere, or seeds that all agree)."""
    if not deviation.value > 0:
        return None
    error = deviation.value * math.sqrt(1 / point.seeds + level.share)
    difference = point.mean - level.mean
    probability = float(need("scipy.stats", "torch").t.sf(difference / error, deviation.freedom))
    return Difference(point, baseline, difference, error, probability)


def compare_all(
    points: Iterable[Measured], curves: Mapping[str, Sequence[Measured]], deviation: Deviation
) -> list[Difference]:
    """The points against the envelope, in their order, without those that nothing is known about."""
    found = []
    for point in points:
        envelope = get_envelope(curves, point.latency)
        if envelope is not None and (difference := compare(point, *envelope, deviation)) is not None:
            found.append(difference)
    return found


def combine(differences: Sequence[Difference]) -> float:
    """The probability of what is seen if fewer than two widths were above the envelope.

    (k - 1) times the second-smallest of k: Bonferroni's partial conjunction (Benjamini and Heller, "Screening for
    Partial Conjunction Hypotheses", Biometrics 2008). 1 where there are fewer than two widths.
    """
    if len(differences) < WIDTHS:
        return 1.0
    ordered = sorted(difference.probability for difference in differences)
    return min(1.0, (len(ordered) - WIDTHS + 1) * ordered[WIDTHS - 1])


def correct(probabilities: Sequence[float]) -> list[float]:
    """Holm's correction ("A Simple Sequentially Rejective Multiple Test Procedure", 1979), in the order given."""
    if any(not 0 <= p <= 1 for p in probabilities):
        raise ValueError(f"requires probabilities from 0 to 1, got {list(probabilities)}")
    order = sorted(range(len(probabilities)), key=lambda index: probabilities[index])
    result, largest = [1.0] * len(probabilities), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(probabilities) - rank) * probabilities[index]))
        result[index] = largest
    return result


@dataclass(frozen=True)
class Verdict:
    """The result of the test for a candidate."""

    differences: tuple[Difference, ...]
    probability: float
    """Of `combine`, corrected for the number of candidates."""

    @property
    def is_above(self) -> bool:
        """By two standard errors at two widths or more, and by the corrected test."""
        count = sum(difference.ratio >= ABOVE for difference in self.differences)
        return count >= WIDTHS and self.probability <= LEVEL


def decide(
    candidates: Mapping[str, Sequence[Measured]], baselines: Mapping[str, Sequence[Measured]], deviation: Deviation
) -> dict[str, Verdict]:
    """The verdict on each candidate; all of them count for the correction."""
    differences = {name: compare_all(points, baselines, deviation) for name, points in candidates.items()}
    corrected = correct([combine(entries) for entries in differences.values()])
    return {
        name: Verdict(tuple(entries), probability)
        for (name, entries), probability in zip(differences.items(), corrected)
    }


def measures_operators(
    control: Sequence[Measured], dense: Sequence[Measured], deviation: Deviation
) -> tuple[bool, list[Difference]] | None:
    """Whether the network sees operators: the control is five standard errors below the dense curve, wherever both are.

    Nothing where they are nowhere, or without a deviation.
    """
    found = []
    for point in control:
        level = interpolate(dense, point.latency)
        if level is not None and (difference := compare(point, "dense", level, deviation)) is not None:
            found.append(difference)
    return (all(difference.ratio <= -CONTROL for difference in found), found) if found else None
