# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operators are above layers made by hand of other widths, and what explains their accuracies: from the tables.

Differences are paired by seed, and their standard errors contain the seeds and the test images.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy

from kas._errors import need
from kas._module import operator as named_operator

from ..protocol import statistics
from ..protocol.bootstrap import unpack_bits
from ._list import add, compute_layer_costs
from ._space import TRAINED, WIDTH, make_trained_layers
from ._table import Costs, Row, Table, Training
from ._tasks import REFERENCES, SEEDS, WIDTHS

BEGIN, END = "<!-- findings: written by kas-research bench1 findings -->", "<!-- end of findings -->"
OPERATORS: Mapping[str, tuple[str, ...]] = {
    "dense": ("conv2d",),
    "pointwise": ("conv1x1",),
    "depthwise-separable": ("conv2d_depthwise", "conv1x1"),
    "depthwise-separable-relu": ("conv2d_depthwise", "conv1x1"),
}
"""What layers made by hand consist of, besides norms and rectifiers."""
NEAR = 3.0
"""Networks that are so many points apart at most have about as many images that only one of them gets right."""
LEVEL = 0.05


@functools.cache
def get_reference_costs(name: str, width: int) -> Costs:
    """Those of a layer made by hand, summed over the four layers of the network."""

    def compute(binding: Mapping[str, int]) -> Costs:
        sizes = {**binding, "C": binding["Cin"], "W": binding["H"], "k": binding["k1"]}
        parts = []
        for part in map(named_operator, OPERATORS[name]):
            own = {symbol: sizes[symbol] for symbols in part.symbols for symbol in symbols}
            parts.append((1, compute_layer_costs(part, own)))
        return add(parts)

    return add((count, compute(binding)) for count, binding in make_trained_layers(width))


class Point(NamedTuple):
    """A network that was trained: its costs, and its test accuracy by seed."""

    name: str
    width: int
    parameters: int
    flops: int
    accuracies: Mapping[int, float]
    time: float = math.nan
    """Over that of the network with dense layers of `WIDTH`; NaN where it was not timed."""


Cost = Callable[[Point], float]
AXES: Mapping[str, Cost] = {
    "parameters": lambda point: point.parameters,
    "FLOPs": lambda point: point.flops,
    "time": lambda point: point.time,
}
"""Costs of the network that was trained: its parameters, the FLOPs of the layers that are replaced, and its time."""


class Timer(NamedTuple):
    """What times are of: they are compared within one only."""

    machine: str
    threads: int

    def get_ratio(self, row: Row | None, width: int = WIDTH) -> float:
        """The time of the network that is trained, over that with dense layers beside it; NaN where there is none."""
        ratio = row.get_ratio(TRAINED, self.threads, self.machine, width) if row else None
        return math.nan if ratio is None else ratio


def _count_timed(table: Table, timer: Timer) -> tuple[int, int]:
    """How many layers made by hand were timed, and how many operators."""
    by_hand = [timer.get_ratio(table.references.get(name), width) for name in REFERENCES for width in WIDTHS]
    return sum(not math.isnan(ratio) for ratio in by_hand), sum(not math.isnan(timer.get_ratio(row)) for row in table)


def find_timer(table: Table) -> tuple[Timer | None, str]:
    """What has timed all layers made by hand and the most operators, or None and what the best one has not timed."""
    rows = [*table.references.values(), *table]
    timers = {Timer(one.machine, one.threads) for row in rows for one in row.latencies if one.layer == TRAINED}
    counts = {timer: _count_timed(table, timer) for timer in sorted(timers)}
    best = max(counts, key=lambda timer: counts[timer], default=None)
    by_hand, operators = counts[best] if best else (0, 0)
    if missing := len(REFERENCES) * len(WIDTHS) - by_hand:
        return None, f"the times of {missing} layers made by hand"
    return (best, "") if operators else (None, "the times of operators")


def _make_point(name: str, width: int, flops: int, trainings: Sequence[Training], time: float) -> Point | None:
    accuracies = {one.seed: one.test for one in trainings if one.test is not None}
    if set(accuracies) < set(SEEDS):
        return None
    return Point(name, width, trainings[0].parameters or 0, flops, accuracies, time)


def get_references(table: Table, task: str, widths: Iterable[int] = WIDTHS, timer: Timer | None = None) -> list[Point]:
    """The layers made by hand that were trained with all seeds, by name and width, with times of the timer."""
    found = []
    for name, width in itertools.product(REFERENCES, widths):
        row = table.references.get(name)
        trainings = row.get_trainings(task, width) if row else []
        time = timer.get_ratio(row, width) if timer else math.nan
        point = _make_point(name, width, get_reference_costs(name, width).flops, trainings, time)
        found += [point] if point else []
    return found


def get_operators(rows: Iterable[Row], task: str, timer: Timer | None = None) -> list[Point]:
    """The operators that were trained with all seeds, by their numbers, with times of the timer."""
    points = (
        _make_point(
            str(row.number),
            WIDTH,
            row.costs[TRAINED].flops,
            row.get_trainings(task),
            timer.get_ratio(row) if timer else math.nan,
        )
        for row in rows
        if row.trainings
    )
    return [point for point in points if point]


# Differences


def interpolate(curve: Sequence[Point], cost: Cost, x: float) -> dict[int, float] | None:
    """The accuracy by seed of a layer made by hand where its network costs `x`, linear in the logarithm.

    Beyond its widest network that of the widest one; nothing where its narrowest one costs more.
    """
    points = sorted(curve, key=cost)
    if x < cost(points[0]):
        return None
    logs = [math.log(cost(point)) for point in points]
    return {
        seed: float(numpy.interp(math.log(x), logs, [point.accuracies[seed] for point in points])) for seed in SEEDS
    }


def subtract_envelope(points: Iterable[Point], references: Sequence[Point], cost: Cost) -> dict[str, list[float]]:
    """By name the differences of each seed to the best layer made by hand of the same cost, where there is one.

    The best one is chosen by its mean, not by seed. Nothing for what costs more than all of them, or has no such cost.
    """
    curves = {name: [one for one in references if one.name == name] for name in {one.name for one in references}}
    most = max(map(cost, references))
    found = {}
    for point in points:
        levels = [level for curve in curves.values() if (level := interpolate(curve, cost, cost(point)))]
        if levels and cost(point) <= most:
            best = max(levels, key=lambda level: sum(level.values()))
            found[point.name] = [point.accuracies[seed] - best[seed] for seed in SEEDS]
    return found


def get_image_error(table: Table, task: str) -> float:
    """The standard error that the test images bring to a difference of two networks with all seeds, in points.

    The median over pairs of layers made by hand that are at most `NEAR` points apart; NaN where images were not kept.
    """
    kept = []
    for name, width in itertools.product(table.references, WIDTHS):
        trainings = table.references[name].get_trainings(task, width)
        if len(trainings) == len(SEEDS) and all(one.correct for one in trainings):
            kept.append(100 * numpy.mean([unpack_bits(one.correct) for one in trainings], axis=0))
    errors = [
        float((one - other).std() / math.sqrt(len(one)))
        for one, other in itertools.combinations(kept, 2)
        if abs(one.mean() - other.mean()) <= NEAR
    ]
    return float(numpy.median(errors)) if errors else math.nan


@dataclass(frozen=True)
class Tested:
    """Operators beside the envelope of layers made by hand."""

    differences: Mapping[str, float]
    """The mean over seeds, by name."""
    ratios: Mapping[str, float]
    """The same in standard errors."""
    deviation: float
    """Of one seed, paired."""
    error: float
    """The standard error of each difference: seeds and images."""

    def get_probabilities(self) -> list[float]:
        """One-sided."""
        return [float(need("scipy.stats", "torch").norm.sf(ratio)) for ratio in self.ratios.values()]

    @property
    def num_above(self) -> int:
        """By any amount."""
        return sum(value > 0 for value in self.differences.values())

    def get_names(self, ratio: float = 2.0) -> set[str]:
        """Those above by so many standard errors."""
        return {name for name, value in self.ratios.items() if value > ratio}

    @property
    def num_discovered(self) -> int:
        """By Benjamini and Hochberg ("Controlling the False Discovery Rate", 1995), of which one in twenty is false."""
        ordered = sorted(self.get_probabilities())
        passing = [rank for rank, p in enumerate(ordered, 1) if p <= LEVEL * rank / len(ordered)]
        return max(passing, default=0)

    def get_significant(self) -> set[str]:
        """Those above by Holm's test of all."""
        corrected = statistics.correct(self.get_probabilities())
        return {name for name, p in zip(self.ratios, corrected) if p <= LEVEL}


def compare_operators(points: Sequence[Point], references: Sequence[Point], cost: Cost, image_error: float) -> Tested:
    """All points against the envelope; the deviation of a seed is one for all."""
    seeds = subtract_envelope(points, references, cost)
    deviation = statistics.pool(seeds.values()).value
    error = math.sqrt(deviation**2 / len(SEEDS) + image_error**2)
    differences = {name: sum(values) / len(values) for name, values in seeds.items()}
    return Tested(differences, {name: value / error for name, value in differences.items()}, deviation, error)


# What explains accuracies


def get_reliability(points: Sequence[Point]) -> float:
    """The share of the variance of mean accuracies that is not that of seeds, paired."""
    values = numpy.array([[point.accuracies[seed] for seed in SEEDS] for point in points])
    noise = (values - values.mean(0)) - (values - values.mean(0)).mean(1, keepdims=True)
    variance = float((noise**2).sum()) / ((len(points) - 1) * (len(SEEDS) - 1))
    return 1 - variance / len(SEEDS) / float(values.mean(1).var(ddof=1))


def correlate(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation."""
    return float(need("scipy.stats", "torch").spearmanr(first, second).statistic)


def get_mean(point: Point) -> float:
    """The accuracy over seeds."""
    return sum(point.accuracies.values()) / len(point.accuracies)


# The page


def is_convolution(row: Row) -> bool:
    """It sees a whole window, and has no weights by position."""
    return {"sees", "same_everywhere"} <= row.properties


def list_missing(table: Table) -> list[str]:
    """What the findings wait for."""
    missing = []
    for task in table.tasks:
        count = len(REFERENCES) * len(WIDTHS) - len(get_references(table, task))
        if count:
            missing.append(f"{count} layers made by hand on {task}")
        elif math.isnan(get_image_error(table, task)):
            missing.append(f"the images that are classified right on {task}")
    untimed = find_timer(table)[1]
    return [*missing, untimed] if untimed else missing


def write_findings(table: Table) -> str:
    """Tables of the layers made by hand, of the operators beside them, and of what explains accuracies."""
    timer, missing = find_timer(table)[0], list_missing(table)
    parts = [_write_references(table, timer), *([_write_times(table, timer)] if timer else [])]
    tasks = [task for task in table.tasks if not any(text.endswith(f" on {task}") for text in missing)]
    if tasks:
        sides = [Side(table, task, timer) for task in tasks]
        parts += [_write_tests(sides), _write_explanations(sides), _write_claims(sides)]
    parts += [f"**Open: {', '.join(missing)} are missing.**"] if missing else []
    return "\n\n".join(parts)


def _write_references(table: Table, timer: Timer | None) -> str:
    titles = ["layer made by hand", "width", "FLOPs of the layers over dense 16", "parameters"]
    titles += ["time over dense 16"] if timer else []
    titles += [f"{task} %" for task in table.tasks]
    lines = [_join(titles), "|" + "---|" * len(titles)]
    dense = get_reference_costs("dense", WIDTH).flops
    found = {task: {(p.name, p.width): p for p in get_references(table, task, timer=timer)} for task in table.tasks}
    for name, width in itertools.product(REFERENCES, WIDTHS):
        points = [found[task].get((name, width)) for task in table.tasks]
        if known := next((point for point in points if point), None):
            cells = [name, str(width), f"{known.flops / dense:.3f}", str(known.parameters)]
            cells += [f"{known.time:.3f}"] if timer else []
            cells += [f"{get_mean(point):.2f}" if point else "" for point in points]
            lines.append(_join(cells))
    if timer:
        threads = f"{timer.threads} thread{'s' if timer.threads > 1 else ''}"
        lines += ["", f"Times are of whole networks on the processor {timer.machine}, {threads}."]
    return "\n".join(lines)


def _write_times(table: Table, timer: Timer) -> str:
    """How long operators take, and how far costs say so."""
    titles = ["operators", "timed", "time over dense 16: median (range)", "faster than it"]
    titles += ["slower with fewer FLOPs", "rank correlation of times with parameters", "with FLOPs"]
    lines = [_join(titles), "|" + "---|" * len(titles)]
    dense = get_reference_costs("dense", WIDTH).flops
    for group, rows in _get_groups(table).items():
        times = [(ratio, row.costs[TRAINED]) for row in rows if not math.isnan(ratio := timer.get_ratio(row))]
        values = [ratio for ratio, _ in times]
        cells: list[object] = [group, f"{len(times)} of {len(rows)}"]
        cells += [f"{numpy.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else ""]
        fewer = [ratio for ratio, costs in times if costs.flops < dense]
        cells += [sum(ratio < 1 for ratio in values), f"{sum(ratio > 1 for ratio in fewer)} of {len(fewer)}"]
        for own in ([costs.parameters for _, costs in times], [costs.flops for _, costs in times]):
            cells.append(f"{correlate(own, values):.2f}" if len(values) > 1 else "")
        lines.append(_join(cells))
    return "\n".join(lines)


def _join(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _get_groups(table: Table) -> dict[str, list[Row]]:
    trained = [row for row in table if row.trainings]
    return {"all": trained, "convolutions": [row for row in trained if is_convolution(row)]}


class Side:
    """Operators beside layers made by hand on a task."""

    def __init__(self, table: Table, task: str, timer: Timer | None):
        self.task = task
        self.axes = {axis: cost for axis, cost in AXES.items() if axis != "time" or timer}
        """Those that there are costs of."""
        self.image_error = get_image_error(table, task)
        self.operators = {group: get_operators(rows, task, timer) for group, rows in _get_groups(table).items()}
        references = get_references(table, task, timer=timer)
        self.tested = {
            (group, axis): compare_operators(points, references, cost, self.image_error)
            for group, points in self.operators.items()
            for axis, cost in self.axes.items()
        }
        """By group of operators and axis."""


def _write_claims(sides: Sequence[Side]) -> str:
    """What the tables support, task by task, and what they do not."""
    lines = []
    for side in sides:
        for group in side.operators:
            tested = {axis: side.tested[group, axis] for axis in side.axes}
            above = [f"{one.num_above} of {len(one.differences)} {_AT_EQUAL[axis]}" for axis, one in tested.items()]
            names = {axis: ", ".join(sorted(one.get_significant(), key=int)) for axis, one in tested.items()}
            shown = [f"{numbers} {_AT_EQUAL[axis]}" for axis, numbers in names.items() if numbers]
            text = f"shown are {' and '.join(shown)}" if shown else "none is shown to be"
            what = "operators" if group == "all" else group
            lines.append(
                f"- `{side.task}`, {what}: above the best layer made by hand are {', '.join(above[:-1])} "
                f"and {above[-1]}; {text} (Holm, 5 %)."
            )
    return "\n".join(lines)


_AT_EQUAL = {"parameters": "with as many parameters", "FLOPs": "with as many FLOPs", "time": "in as much time"}


def _write_tests(sides: Sequence[Side]) -> str:
    titles = ["operators", "cost", "task", "in range", "above", "best (points)", "by 2 standard errors"]
    titles += ["Benjamini-Hochberg, 5 %", "Holm, 5 %"]
    lines = [_join(titles), "|" + "---|" * len(titles)]
    for group, axis in sides[0].tested:
        for side in sides:
            tested = side.tested[group, axis]
            cells: list[object] = [group, axis, side.task, len(tested.differences), tested.num_above]
            cells += [f"{max(tested.differences.values()):+.2f}" if tested.differences else ""]
            cells += [len(tested.get_names()), tested.num_discovered, len(tested.get_significant())]
            lines.append(_join(cells))
        if len(sides) > 1:
            count = len(set.intersection(*(side.tested[group, axis].get_names() for side in sides)))
            lines.append(f"| {group} | {axis} | all of these | | | | {count} | | |")
    return "\n".join(lines)


def _write_explanations(sides: Sequence[Side]) -> str:
    correlations = [f"{'rank correlation ' * (not place)}with {axis}" for place, axis in enumerate(sides[0].axes)]
    titles = ["task", "convolutions", "not noise of seeds", *correlations]
    titles += ["deviation of a seed, paired", "standard error of a difference by images"]
    lines = [_join(titles), "|" + "---|" * len(titles)]
    means = []
    for side in sides:
        points = side.operators["convolutions"]
        means.append({point.name: get_mean(point) for point in points})
        cells = [side.task, str(len(points)), f"{get_reliability(points):.2f}"]
        for cost in side.axes.values():
            known = [point for point in points if not math.isnan(cost(point))]
            cells.append(f"{correlate([cost(point) for point in known], [get_mean(point) for point in known]):.2f}")
        cells += [f"{side.tested['convolutions', 'parameters'].deviation:.2f}", f"{side.image_error:.2f}"]
        lines.append(_join(cells))
    if len(means) > 1:
        both = [name for name in means[0] if name in means[1]]
        value = correlate(*([mean[name] for name in both] for mean in means[:2]))
        tasks = " and ".join(side.task for side in sides[:2])
        lines += ["", f"The rank correlation of the convolutions' accuracies on {tasks} is {value:.2f}."]
    return "\n".join(lines)


def update_page(page: str, findings: str) -> str:
    """The page with the findings between their marks."""
    begin, end = page.find(BEGIN), page.find(END)
    if begin < 0 or end < begin:
        raise ValueError(f"requires a page with the lines '{BEGIN}' and '{END}', got none")
    return f"{page[: begin + len(BEGIN)]}\n{findings}\n{page[end:]}"
