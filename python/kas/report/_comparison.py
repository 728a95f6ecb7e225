# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The terms that candidates are compared by, so that like is compared with like: rungs, baselines, units, warnings."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from .._errors import Error
from .._search import read_objective

Columns: TypeAlias = dict[str, list[float | None]]
Curve: TypeAlias = tuple[int, int, str, float]
"""Seed, epoch, name and value of a number that a training gave."""

NETWORK = "network itself"
"""The name of the baseline that the layers as they are make."""

TRAINED = ("accuracy", "loss")
"""Metrics that change with the epochs."""

UNITS = {
    "accuracy": "share of correct answers",
    "accuracy_deviation": "share of correct answers",
    "bytes": "bytes",
    "epochs": "epochs",
    "existing_flops": "floating-point operations",
    "flops": "floating-point operations",
    "flops_ratio": "share of the network's own",
    "flops_unprepared": "floating-point operations",
    "latency_ms": "milliseconds",
    "loss": "nats",
    "params": "elements of weights",
    "predicted_least_ms": "milliseconds",
    "predicted_ms": "milliseconds",
    "seconds": "seconds",
    "test_accuracy": "share of correct answers",
    "test_accuracy_deviation": "share of correct answers",
    "train_seconds": "CPU seconds",
    "training_flops": "floating-point operations",
}

NO_WINDOW = "no window"
BY_POSITION = "weights by position"
WARNINGS = {
    NO_WINDOW: "It has no kas.unfold: no output sees the neighbours of its place by a window.",
    BY_POSITION: "Weights differ from place to place: such operators win on centred images and lose on moved ones.",
}


def get_unit(name: str) -> str:
    """The unit of a metric, or of one after some epochs or of the final round; empty where none is known."""
    base = re.sub(r"^final_| after \d+ epochs?$", "", name)
    return UNITS.get(base, "")


def name_rung(name: str, epochs: int) -> str:
    """The name of a metric after so many epochs."""
    return f"{name} after {epochs} epoch{'' if epochs == 1 else 's'}"


def find_rungs(columns: Columns) -> list[int]:
    """The numbers of epochs that candidates were trained for, if they differ; else none."""
    rungs = sorted({int(value) for value in columns.get("epochs", []) if value is not None})
    return rungs if len(rungs) > 1 else []


def find_trained(
    settings: Mapping[str, str], columns: Columns, curves: Mapping[int, Iterable[Curve]]
) -> tuple[str, ...]:
    """The metrics that change with the epochs: `TRAINED`, or those of a task of the caller's own."""
    if "task" not in settings:
        return TRAINED
    seen = {name for curve in curves.values() for _, _, name, _ in curve}
    return tuple(name for name in columns if name in seen and name != "train_seconds")


def split_rungs(
    columns: Columns,
    curves: Mapping[int, Iterable[Curve]],
    rungs: Sequence[int],
    trained: Sequence[str] = TRAINED,
) -> Columns:
    """Of each metric of a training a column for each rung, with all that were evaluated after so many epochs.

    `curves` has the numbers of the trainings of a position. Metrics `accuracy_3` are those that the evaluator
    `training` gives for candidates that went on.
    """
    result: Columns = {}
    epochs = columns.get("epochs", [])
    for name in trained:
        if name not in columns:
            continue
        for rung in rungs:
            values = list(columns.get(f"{name}_{rung}", [None] * len(epochs)))
            for position, curve in curves.items():
                found = [value for seed, epoch, one, value in curve if (seed, epoch, one) == (0, rung, name)]
                if found and values[position] is None:
                    values[position] = found[-1]
            for position, end in enumerate(epochs):
                if end == rung:
                    values[position] = columns[name][position]
            result[name_rung(name, rung)] = values
    return result


def find_costs(space: str) -> dict[str, float]:
    """What the text of a space states for the layers that candidates replace."""
    return {
        name: int(match[1])
        for name in ("flops", "params")
        if (match := re.search(rf"\bbaseline_{name} = (\d+)", space))
    }


def find_baseline(
    costs: Mapping[str, float],
    curves: Iterable[Curve],
    rungs: Sequence[int],
    trained: Sequence[str] = TRAINED,
) -> dict[str, float]:
    """The metrics of what candidates are compared with: costs that are known otherwise, means over its trainings."""
    result: dict[str, float] = dict(costs)
    values: dict[tuple[str, int], dict[int, float]] = {}
    for seed, epoch, name, value in curves:
        values.setdefault((name, epoch), {})[seed] = value
    last = {name: max(epoch for one, epoch in values if one == name) for name, _ in values}
    for name, end in last.items():
        if name == "train_loss":
            continue
        mean = statistics.fmean(values[name, end].values())
        result[name] = mean
        if name in (*trained, *(f"test_{one}" for one in trained), "latency_ms"):
            result[f"final_{name}"] = mean
        if name.removeprefix("test_") in trained and name not in ("loss", "test_loss") and len(values[name, end]) > 1:
            result[f"final_{name}_deviation"] = statistics.stdev(values[name, end].values())
        for rung in rungs:
            found = values.get((name, rung)) or values.get((f"{name}_{rung}", end))
            if name in trained and found:
                result[name_rung(name, rung)] = statistics.fmean(found.values())
    return {name: value for name, value in result.items() if math.isfinite(value)}


def find_warnings(text: str, by_position: bool) -> list[str]:
    """What makes an operator suspect: keys of `WARNINGS`."""
    return [NO_WINDOW] * ("kas.unfold" not in text) + [BY_POSITION] * by_position


Terms: TypeAlias = list[tuple[float, str]]
"""A weighted sum of columns; less is better."""


def choose_candidate(objective: str, columns: Columns, y: str | None, maximized: Sequence[str]) -> int | None:
    """The position of the best: by the objective where it is a sum of metrics, else by accuracy or by `y`.

    Metrics of a final round take the place of those of the search.
    """
    totals = _add_up(_choose_terms(objective, columns, y, maximized), columns)
    return min(totals, key=lambda position: (totals[position], position)) if totals else None


def _choose_terms(objective: str, columns: Columns, y: str | None, maximized: Sequence[str]) -> Terms:
    """What the best candidate is chosen by; none where there is nothing."""
    axes = _read_axes(objective)
    terms = [(factor, _find_column(name, columns)) for factor, name in axes[0]] if len(axes) == 1 else []
    if terms and all(name in columns for _, name in terms):
        return terms
    if "final_accuracy" in columns:
        return [(-1.0, "final_accuracy")]
    return [(-1.0 if y in maximized else 1.0, y)] if y is not None and y in columns else []


def _find_column(name: str, columns: Columns) -> str:
    """Where a metric that an objective names is: of the final round, else of what was trained longest."""
    if f"final_{name}" in columns:
        return f"final_{name}"
    if name in columns:
        return name
    rungs = [int(match[1]) for column in columns if (match := re.fullmatch(rf"{name} after (\d+) epochs?", column))]
    return name_rung(name, max(rungs)) if rungs else name


def _add_up(terms: Terms, columns: Columns) -> dict[int, float]:
    """The sums of the positions that have all values."""
    totals = {}
    for position in range(len(columns[terms[0][1]]) if terms else 0):
        values = [value for _, name in terms if (value := columns[name][position]) is not None]
        if len(values) == len(terms):
            totals[position] = sum(factor * value for (factor, _), value in zip(terms, values))
    return totals


def compare_with_baselines(
    objective: str,
    columns: Columns,
    baselines: Mapping[str, Mapping[str, float]],
    best: tuple[int, int] | None,
    y: str | None,
    maximized: Sequence[str],
    trained: Sequence[str] = TRAINED,
) -> dict[str, Any] | None:
    """Whether what was found is better than all baselines: `better`, and `text`, which says so.

    By a sum the best candidate is compared, of which `best` has the identifier and the position; by a front all
    candidates are. None where there is nothing to compare.
    """
    if best is None:
        return None
    axes = _read_axes(objective)
    if len(axes) > 1:
        found = [[(factor, _find_column(name, columns)) for factor, name in axis] for axis in axes]
        return _compare_front(found, columns, baselines)
    return _compare_best(_choose_terms(objective, columns, y, maximized), columns, baselines, best, trained)


def _read_axes(objective: str) -> list[Terms]:
    """None of a text that is no objective, which a file may have."""
    try:
        return read_objective(objective)
    except Error:
        return []


def _evaluate(terms: Terms, metrics: Mapping[str, float]) -> float | None:
    if any(name not in metrics for _, name in terms):
        return None
    return sum(factor * metrics[name] for factor, name in terms)


def _list(names: Sequence[str]) -> str:
    names = [f"the {name}" if name == NETWORK else name for name in names]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _describe_terms(terms: Terms) -> str:
    """`accuracy` where it alone counts, else the sum."""
    if len(terms) == 1:
        return terms[0][1]
    texts = [
        (" - " if factor < 0 else " + ") + ("" if abs(factor) == 1 else f"{abs(factor):g}*") + name
        for factor, name in terms
    ]
    return "".join(texts).removeprefix(" + ").removeprefix(" ")


def _describe_missing(missing: Sequence[str], what: str) -> str:
    return f" Not compared with {_list(missing)}, which has no {what}." if missing else ""


def _compare_best(
    terms: Terms,
    columns: Columns,
    baselines: Mapping[str, Mapping[str, float]],
    best: tuple[int, int],
    trained: Sequence[str],
) -> dict[str, Any] | None:
    totals = _add_up(terms, columns)
    values = {name: _evaluate(terms, metrics) for name, metrics in baselines.items()} if terms else {}
    known = {name: value for name, value in values.items() if value is not None}
    if best[1] not in totals or not known:
        return None
    what = _describe_terms(terms)
    sign = -1 if len(terms) == 1 and terms[0][0] < 0 else 1

    def show(value: float) -> str:
        return f"{sign * value / (abs(terms[0][0]) if len(terms) == 1 else 1):.5g}"

    own = totals[best[1]]
    better = [name for name, value in known.items() if own < value]
    worse = [name for name, value in known.items() if own >= value]
    by = f"by {what}" + (" (less is better)" if len(terms) > 1 else "")
    numbers = f"{show(own)}, against " + ", ".join(f"{show(known[name])} ({name})" for name in known)
    if worse:
        text = f"Nothing better than {_list(worse)} was found {by}: candidate {best[0]} has {numbers}."
    else:
        text = f"Candidate {best[0]} is better than {_list(better)} {by}: {numbers}."
        # Of the trainings that candidates are chosen by, not of a final round.
        if any(name.startswith(tuple(trained)) for _, name in terms):
            text += (
                " It was chosen by this number among all candidates: train it with other seeds before you rely on it."
            )
    missing = [name for name in baselines if name not in known]
    return {"better": not worse, "text": text + _describe_missing(missing, what)}


def _compare_front(
    axes: Sequence[Terms], columns: Columns, baselines: Mapping[str, Mapping[str, float]]
) -> dict[str, Any] | None:
    if any(name not in columns for axis in axes for _, name in axis):
        return None
    sums = [_add_up(axis, columns) for axis in axes]
    points = [[one[position] for one in sums] for position in sums[0] if all(position in one for one in sums)]
    what = " and ".join(_describe_terms(axis) for axis in axes)
    counts: dict[str, int] = {}
    missing = []
    for name, metrics in baselines.items():
        known = [value for axis in axes if (value := _evaluate(axis, metrics)) is not None]
        if len(known) < len(axes):
            missing.append(name)
            continue
        counts[name] = sum(point != known and all(one <= other for one, other in zip(point, known)) for point in points)
    if not counts or not points:
        return None
    better = [name for name, count in counts.items() if count]
    worse = [name for name, count in counts.items() if not count]
    parts = [f"No candidate is at least as good as {_list([name])} in {what}." for name in worse]
    for name in better:
        verb = "candidate is" if counts[name] == 1 else "candidates are"
        parts.append(f"{counts[name]} {verb} at least as good as {_list([name])} in {what}, and better in one.")
    text = " ".join(parts)
    return {"better": not worse, "text": text + _describe_missing(missing, what)}
