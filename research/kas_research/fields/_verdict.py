# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a finalist is better than all baselines: the section "Statistics" of research/guide/fields.md."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy

from ..protocol import statistics
from ..protocol._store import Store
from ..protocol.bootstrap import Bootstrap, Ratio, get_ratio
from ._candidates import Candidate
from ._known import find_name
from ._protocol import Protocol, Rules
from ._results import Point, read_points
from ._stages import StageError, resolve
from ._time import Widths

WIN, NO, NEITHER, OPEN = "win", "no", "neither", "open"
NEW = "new"
REPLICATIONS = 2
"""So many of the replications must have the same sign."""


class Comparison(NamedTuple):
    """A finalist beside the envelope of the baselines at its time."""

    equation: str
    budget: float
    baseline: str
    """The one of the least error at that time."""
    ratio: Ratio


@dataclass
class Outcome:
    """A finalist."""

    name: str
    comparisons: list[Comparison] = field(default_factory=list)
    second_best: dict[str, Ratio] = field(default_factory=dict)
    """By equation: of the budgets, or the only one."""
    replications: dict[str, Ratio] = field(default_factory=dict)
    """The same of the equations that nothing was chosen by."""
    probability: float = 1.0
    """On both equations, corrected for the number of finalists."""
    verdict: str = OPEN
    reason: str = ""
    form: str = ""
    """What it is: `new`, a named operator or a family, or why that is not known."""


def fill_failures(points: Sequence[Point]) -> list[Point]:
    """The points with the errors of the worst training of the equation in the place of those that failed."""
    filled = []
    for point in points:
        others = [errors for other in points if other.equation == point.equation for errors in other.errors.values()]
        if point.failures and others:
            worst = max(others, key=lambda errors: float(errors.mean()))
            point = replace(point, errors={**point.errors, **dict.fromkeys(point.failures, worst)})
        if not point.errors:
            raise ValueError(f"requires a training on {point.equation} that did not fail, got none")
        filled.append(point)
    return filled


def compare_with_envelope(
    finalists: Sequence[Point], baselines: Sequence[Point], draws: int
) -> dict[str, tuple[list[Comparison], Ratio]]:
    """By finalist the comparison at each budget, and the second-best of them. All are points of one equation.

    At each time a baseline has the least error of what takes no longer, interpolated in the logarithms between its
    widths; its first and its last value go on beyond them.
    """
    bootstrap = Bootstrap(len(next(iter(baselines[0].errors.values()))), draws)
    curves = _draw_curves(baselines, bootstrap)
    found: dict[str, tuple[list[Comparison], Ratio]] = {}
    for name in dict.fromkeys(point.family for point in finalists):
        comparisons, differences = [], []
        for point in sorted((one for one in finalists if one.family == name), key=lambda one: one.budget):
            levels = {family: _interpolate(*curve, point.ms) for family, curve in curves.items()}
            difference = bootstrap.draw(point.errors, numpy.log) - numpy.min(list(levels.values()), axis=0)
            best = min(levels, key=lambda family: float(levels[family][0]))
            comparisons.append(Comparison(point.equation, point.budget, best, get_ratio(difference)))
            differences.append(difference)
        ordered = numpy.sort(differences, axis=0)
        found[name] = comparisons, get_ratio(ordered[min(1, len(ordered) - 1)])
    return found


def _draw_curves(points: Iterable[Point], bootstrap: Bootstrap) -> dict[str, tuple[numpy.ndarray, numpy.ndarray]]:
    """By family the times of its widths and the least y's of what takes no longer."""
    families: dict[str, dict[float, numpy.ndarray]] = {}
    for point in sorted(points, key=lambda point: point.ms):
        families.setdefault(point.family, {})[point.ms] = bootstrap.draw(point.errors, numpy.log)
    return {
        family: (numpy.array(list(curve)), numpy.minimum.accumulate(list(curve.values()), axis=0))
        for family, curve in families.items()
    }


def _interpolate(times: numpy.ndarray, values: numpy.ndarray, ms: float) -> numpy.ndarray:
    place = int(numpy.searchsorted(times, ms))
    if place == 0 or place == len(times):
        end: numpy.ndarray = values[min(place, len(times) - 1)]
        return end
    low, high = numpy.log(times[place - 1 : place + 1])
    share = (numpy.log(ms) - low) / (high - low)
    between: numpy.ndarray = (1 - share) * values[place - 1] + share * values[place]
    return between


def decide(
    finalists: Sequence[Point],
    baselines: Sequence[Point],
    replications: Mapping[str, tuple[Sequence[Point], Sequence[Point]]],
    rules: Rules,
    budgets: Sequence[float],
    num_replications: int,
) -> list[Outcome]:
    """The finalists in their order, from complete trainings.

    `replications` has those of finalists and of baselines of each equation whose trainings have all ended; there are
    `num_replications` in all.
    """
    found = {name: Outcome(name) for name in dict.fromkeys(point.family for point in finalists)}
    finalists, baselines = _split(fill_failures([*finalists, *baselines]), len(finalists))
    for equation in dict.fromkeys(point.equation for point in finalists):
        for name, (comparisons, second) in _compare_at(equation, finalists, baselines, rules).items():
            found[name].comparisons += comparisons
            found[name].second_best[equation] = second
    for equation, (ours, theirs) in replications.items():
        parts = _split(fill_failures([*ours, *theirs]), len(ours))
        for name, (_, second) in _compare_at(equation, *parts, rules).items():
            found[name].replications[equation] = second
    raw = [max(ratio.probability for ratio in one.second_best.values()) for one in found.values()]
    places = len(budgets) * len({point.equation for point in baselines})
    for one, probability in zip(found.values(), statistics.correct(raw)):
        one.probability = probability
        one.verdict, one.reason = _decide(one, rules, places, num_replications)
    return list(found.values())


def _split(points: Sequence[Point], count: int) -> tuple[Sequence[Point], Sequence[Point]]:
    return points[:count], points[count:]


def _compare_at(
    equation: str, finalists: Iterable[Point], baselines: Iterable[Point], rules: Rules
) -> dict[str, tuple[list[Comparison], Ratio]]:
    ours, theirs = ([point for point in part if point.equation == equation] for part in (finalists, baselines))
    if not theirs:
        raise ValueError(f"requires baselines on {equation}, got none")
    return compare_with_envelope(ours, theirs, rules.draws)


def _decide(one: Outcome, rules: Rules, places: int, num_replications: int) -> tuple[str, str]:
    """The verdict on a finalist with the first rule that is not met."""
    if len(one.comparisons) < places:
        return _say_no(one, rules, "it is too slow for a budget")
    for comparison in one.comparisons:
        where = f"{comparison.equation}, {comparison.budget:g} ms: "
        if comparison.ratio.value > rules.win:
            return _say_no(
                one, rules, f"{where}the ratio is {comparison.ratio.value:.3f}, at most {rules.win:g} required"
            )
        if comparison.ratio.high >= 1:
            return _say_no(one, rules, f"{where}the ratio may be {comparison.ratio.high:.3f}, below 1 required")
    if one.probability >= rules.level:
        return _say_no(one, rules, f"p = {one.probability:.3g} for all finalists, below {rules.level:g} required")
    held = sum(ratio.value < 1 and ratio.probability < rules.level for ratio in one.replications.values())
    waiting = num_replications - len(one.replications)
    if held >= REPLICATIONS:
        return WIN, f"{held} of {num_replications} replications hold"
    reason = f"{held} of {num_replications} replications hold, {REPLICATIONS} required"
    return (OPEN, f"{reason}; {waiting} have not ended") if held + waiting >= REPLICATIONS else (NEITHER, reason)


def _say_no(one: Outcome, rules: Rules, reason: str) -> tuple[str, str]:
    """No where nothing is better by as much as matters on any equation; else neither."""
    is_level = all(ratio.low > rules.none for ratio in one.second_best.values())
    return (NO if is_level else NEITHER), reason


def describe_form(candidate: Candidate) -> str:
    """The verdict "new": whether a candidate is anything that has a name."""
    try:
        return find_name(candidate) or NEW
    except ValueError as error:
        return f"not known: {error}"


def combine(outcomes: Sequence[Outcome]) -> str:
    """The verdict on all finalists."""
    verdicts = {one.verdict for one in outcomes}
    for verdict in (WIN, OPEN, NEITHER):
        if verdict in verdicts:
            return verdict
    return NO if outcomes else OPEN


@dataclass(frozen=True)
class Verdict:
    """What the store says so far."""

    verdict: str
    outcomes: Sequence[Outcome]
    missing: Sequence[str]
    """What it waits for."""


def read_verdict(protocol: Protocol, store: Store) -> Verdict:
    """The verdict from raw data: from times and trainings of a store."""
    if protocol.verdict is None:
        raise ValueError("requires the key 'verdict' in the protocol, got none")
    roles = protocol.verdict
    missing: list[str] = []
    baselines, finalists = (
        _read_complete(protocol, name, store, missing) for name in (roles.baselines, roles.finalists)
    )
    if missing:
        return Verdict(OPEN, [], missing)
    names = {point.family for point in finalists}
    replicated = _read_complete(protocol, roles.replications, store, missing)
    ended = {
        equation: ([p for p in points if p.family in names], [p for p in points if p.family not in names])
        for equation in dict.fromkeys(point.equation for point in replicated)
        if (points := [point for point in replicated if point.equation == equation])
    }
    budgets = protocol.experiments[roles.finalists].budgets
    count = len(protocol.experiments[roles.replications].equations)
    outcomes = decide(finalists, baselines, ended, protocol.rules, budgets, count)
    for one in outcomes:
        one.form = describe_form(protocol.candidates[one.name]) if one.name in protocol.candidates else ""
    return Verdict(combine(outcomes), outcomes, missing)


def _read_complete(protocol: Protocol, name: str, store: Store, missing: list[str]) -> list[Point]:
    """The points on those equations of an experiment where nothing is missing; what is, is added to a list."""
    try:
        experiment = resolve(protocol, protocol.experiments[name], store)
    except StageError as error:
        missing.append(str(error))
        return []
    seeds = len(experiment.seeds)
    if seeds < 2:
        raise ValueError(f"requires two seeds of '{name}' at least, as one says nothing about others, got {seeds}")
    points = read_points(protocol, experiment, store)
    widths = Widths(protocol, experiment, store)
    if not experiment.families:
        missing.append(f"{name}: no candidates")
    complete = []
    for equation in experiment.equations:
        here = [point for point in points if point.equation == equation]
        pairs = itertools.product(experiment.families, experiment.budgets)
        unknown = sum(not widths.is_known(equation, str(family), budget) for family, budget in pairs)
        untrained = sum(seeds - len(point.errors) - len(point.failures) for point in here)
        if unknown or untrained:
            missing.append(f"{name}, {equation}: {unknown} widths and {untrained} trainings")
        elif here:
            complete += here
    return complete
