# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What candidates are compared by, so that like is compared with like: rungs, baselines, units, warnings."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Columns: TypeAlias = dict[str, list[float | None]]
Curve: TypeAlias = tuple[int, int, str, float]
"""Seed, epoch, name and value of a number that a training gave."""

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


def split_rungs(columns: Columns, curves: Mapping[int, Iterable[Curve]], rungs: Sequence[int]) -> Columns:
    """Of each metric of a training a column for each rung, with all that were evaluated after so many epochs.

    `curves` has the numbers of the trainings of a position. Metrics `accuracy_3` are those that the evaluator
    `training` gives for candidates that went on.
    """
    result: Columns = {}
    epochs = columns.get("epochs", [])
    for name in TRAINED:
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


def find_baseline(space: str, curves: Iterable[Curve], rungs: Sequence[int]) -> dict[str, float]:
    """The metrics of what candidates are compared with: costs by the space, means over the seeds of its trainings."""
    result: dict[str, float] = {}
    for name in ("flops", "params"):
        if match := re.search(rf"\bbaseline_{name} = (\d+)", space):
            result[name] = int(match[1])
    if "flops" in result:
        result["flops_ratio"] = 1.0
    values: dict[tuple[str, int], dict[int, float]] = {}
    for seed, epoch, name, value in curves:
        values.setdefault((name, epoch), {})[seed] = value
    last = {name: max(epoch for one, epoch in values if one == name) for name, _ in values}
    for name, end in last.items():
        if name == "train_loss":
            continue
        mean = statistics.fmean(values[name, end].values())
        result[name] = mean
        if name in ("accuracy", "loss", "test_accuracy", "latency_ms"):
            result[f"final_{name}"] = mean
        if name in ("accuracy", "test_accuracy") and len(values[name, end]) > 1:
            result[f"final_{name}_deviation"] = statistics.stdev(values[name, end].values())
        for rung in rungs:
            found = values.get((name, rung)) or values.get((f"{name}_{rung}", end))
            if name in TRAINED and found:
                result[name_rung(name, rung)] = statistics.fmean(found.values())
    return {name: value for name, value in result.items() if math.isfinite(value)}


def find_warnings(text: str, by_position: bool) -> list[str]:
    """What makes an operator suspect: keys of `WARNINGS`."""
    return [NO_WINDOW] * ("kas.unfold" not in text) + [BY_POSITION] * by_position


def choose_candidate(objective: str, columns: Columns, y: str | None, maximized: Sequence[str]) -> int | None:
    """The position of the best: by the final round, by the objective where it is a sum of metrics, else by `y`."""
    terms = _parse_sum(objective)
    if "final_accuracy" in columns:
        terms = [(-1.0, "final_accuracy")]
    elif not terms or any(name not in columns for _, name in terms):
        terms = [(-1.0 if y in maximized else 1.0, y)] if y in columns else []
    if not terms:
        return None
    best: tuple[float, int] | None = None
    for position in range(len(columns[terms[0][1]])):
        values = [value for _, name in terms if (value := columns[name][position]) is not None]
        if len(values) == len(terms):
            total = sum(factor * value for (factor, _), value in zip(terms, values))
            best = min(best, (total, position)) if best else (total, position)
    return best[1] if best else None


def _parse_sum(objective: str) -> list[tuple[float, str]]:
    """The terms of `2*flops - accuracy`; none where it is no such sum."""
    text = re.sub(r"\s+", "", objective)
    term = r"([+-]?)(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\*)?([A-Za-z_]\w*)"
    if not re.fullmatch(rf"(?:{term})+", text):
        return []
    return [(float(factor or 1) * (-1 if sign == "-" else 1), name) for sign, factor, name in re.findall(term, text)]
