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
    """A network that was trained: two costs of it, and its test accuracy by seed."""

    name: str
    width: int
    parameters: int
    flops: int
    accuracies: Mapping[int, float]


AXES: Mapping[str, Callable[[Point], int]] = {
    "parameters": lambda point: point.parameters,
    "FLOPs": lambda point: point.flops,
}
"""Costs of the network that was trained: its parameters, and the FLOPs of the layers that are replaced."""


def _make_point(name: str, width: int, flops: int, trainings: Sequence[Training]) -> Point | None:
    accuracies = {one.seed: one.test for one in trainings if one.test is not None}
    if set(accuracies) < set(SEEDS):
        return None
    return Point(name, width, trainings[0].parameters or 0, flops, accuracies)


def get_references(table: Table, task: str, widths: Iterable[int] = WIDTHS) -> list[Point]:
    """The layers made by hand that were trained with all seeds, by name and width."""
    found = []
    for name, width in itertools.product(REFERENCES, widths):
        trainings = table.references[name].get_trainings(task, width) if name in table.references else []
        point = _make_point(name, width, get_reference_costs(name, width).flops, trainings)
        found += [point] if point else []
    return found


def get_operators(rows: Iterable[Row], task: str) -> list[Point]:
    """The operators that were trained with all seeds, by their numbers."""
    points = (
        _make_point(str(row.number), WIDTH, row.costs[TRAINED].flops, row.get_trainings(task))
        for row in rows
        if row.trainings
    )
    return [point for point in points if point]


# Differences


def interpolate(curve: Sequence[Point], cost: Callable[[Point], int], x: float) -> dict[int, float] | None:
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


def subtract_envelope(
    points: Iterable[Point], references: Sequence[Point], cost: Callable[[Point], int]
) -> dict[str, list[float]]:
    """By name the differences of each seed to the best layer made by hand of the same cost, where there is one.

    The best one is chosen by its mean, not by seed. Nothing for what costs more than all of them.
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


def compare_operators(
    points: Sequence[Point], references: Sequence[Point], cost: Callable[[Point], int], image_error: float
) -> Tested:
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
    return missing


def write_findings(table: Table) -> str:
    """Tables of the layers made by hand, of the operators beside them, and of what explains accuracies."""
    parts = [_write_references(table)]
    missing = list_missing(table)
    if len(missing) < len(table.tasks):
        tasks = [task for task in table.tasks if not any(task in text for text in missing)]
        parts += [_write_tests(table, tasks), _write_explanations(table, tasks), _write_claims(table, tasks)]
    parts += [f"**Open: {', '.join(missing)} are missing.**"] if missing else []
    return "\n\n".join(parts)


def _write_references(table: Table) -> str:
    head = "| layer made by hand | width | FLOPs of the layers over dense 16 | parameters |"
    lines = [
        f"{head} {' | '.join(f'{task} %' for task in table.tasks)} |",
        "|" + "---|" * (4 + len(table.tasks)),
    ]
    dense = get_reference_costs("dense", WIDTH).flops
    found = {task: {(p.name, p.width): p for p in get_references(table, task)} for task in table.tasks}
    for name, width in itertools.product(REFERENCES, WIDTHS):
        points = [found[task].get((name, width)) for task in table.tasks]
        if any(points):
            parameters = next(point.parameters for point in points if point)
            flops = get_reference_costs(name, width).flops / dense
            cells = [f"{get_mean(point):.2f}" if point else "" for point in points]
            lines.append(f"| {name} | {width} | {flops:.3f} | {parameters} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _get_groups(table: Table) -> dict[str, list[Row]]:
    trained = [row for row in table if row.trainings]
    return {"all": trained, "convolutions": [row for row in trained if is_convolution(row)]}


def _write_claims(table: Table, tasks: Sequence[str]) -> str:
    """What the tables support, task by task, and what they do not."""
    lines = []
    for task in tasks:
        image_error, references = get_image_error(table, task), get_references(table, task)
        for group, rows in _get_groups(table).items():
            points, texts = get_operators(rows, task), []
            names: set[str] = set()
            for axis, cost in AXES.items():
                tested = compare_operators(points, references, cost, image_error)
                texts.append(f"{tested.num_above} of {len(tested.differences)} with as many {axis}")
                names |= tested.get_significant()
            shown = f"shown are {', '.join(sorted(names, key=int))}" if names else "none is shown to be (Holm, 5 %)"
            what = "operators" if group == "all" else group
            lines.append(f"- `{task}`, {what}: above the best layer made by hand are {' and '.join(texts)}; {shown}.")
    return "\n".join(lines)


def _write_tests(table: Table, tasks: Sequence[str]) -> str:
    groups = _get_groups(table)
    lines = [
        "| operators | cost | task | in range | above | best (points) | by 2 standard errors | Benjamini-Hochberg, 5 % "
        "| Holm, 5 % |",
        "|" + "---|" * 9,
    ]
    for (group, rows), (axis, cost) in itertools.product(groups.items(), AXES.items()):
        above = []
        for task in tasks:
            points, references = get_operators(rows, task), get_references(table, task)
            tested = compare_operators(points, references, cost, get_image_error(table, task))
            above.append(tested.get_names())
            cells = [group, axis, task, len(tested.differences), tested.num_above]
            cells += [f"{max(tested.differences.values()):+.2f}", len(above[-1])]
            cells += [tested.num_discovered, len(tested.get_significant())]
            lines.append(f"| {' | '.join(map(str, cells))} |")
        if len(tasks) > 1:
            count = len(set.intersection(*above))
            lines.append(f"| {group} | {axis} | all of these | | | | {count} | | |")
    return "\n".join(lines)


def _write_explanations(table: Table, tasks: Sequence[str]) -> str:
    rows = [row for row in table if row.trainings and is_convolution(row)]
    lines = [
        "| task | convolutions | not noise of seeds | rank correlation with parameters | with FLOPs "
        "| deviation of a seed, paired | standard error of a difference by images |",
        "|" + "---|" * 7,
    ]
    means = []
    for task in tasks:
        points, references = get_operators(rows, task), get_references(table, task)
        accuracies = [get_mean(point) for point in points]
        image_error = get_image_error(table, task)
        means.append({point.name: get_mean(point) for point in points})
        tested = compare_operators(points, references, AXES["parameters"], image_error)
        cells = [task, str(len(points)), f"{get_reliability(points):.2f}"]
        cells += [f"{correlate([cost(point) for point in points], accuracies):.2f}" for cost in AXES.values()]
        cells += [f"{tested.deviation:.2f}", f"{image_error:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    if len(means) > 1:
        both = [name for name in means[0] if name in means[1]]
        value = correlate(*([mean[name] for name in both] for mean in means[:2]))
        lines += [
            "",
            f"The rank correlation of the convolutions' accuracies on {tasks[0]} and {tasks[1]} is {value:.2f}.",
        ]
    return "\n".join(lines)


def update_page(page: str, findings: str) -> str:
    """The page with the findings between their marks."""
    begin, end = page.find(BEGIN), page.find(END)
    if begin < 0 or end < begin:
        raise ValueError(f"requires a page with the lines '{BEGIN}' and '{END}', got none")
    return f"{page[: begin + len(BEGIN)]}\n{findings}\n{page[end:]}"
