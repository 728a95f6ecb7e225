# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much worse one network is than another on the same examples, with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from ..evaluate._task import Classification, Task, call, count_examples, map_tensors
from ..evaluate._task_data import Part
from ..evaluate._training import EVALUATION_BATCH

GROUPS = 20
"""Parts of the examples that are left out one by one where a metric is no mean over examples."""
NORMAL_95 = 1.96


class Outputs(NamedTuple):
    """What a network gives for all examples of a part, in batches, with their targets."""

    batches: list[tuple[Any, Any]]
    """Outputs and targets."""


class Drop(NamedTuple):
    """How much worse a network is than the model: points of accuracy, percent of any other metric."""

    value: float
    error: float
    """The standard error of the examples."""

    @property
    def low(self) -> float:
        """The lower 95 % bound."""
        return self.value - NORMAL_95 * self.error

    @property
    def high(self) -> float:
        """The upper 95 % bound."""
        return self.value + NORMAL_95 * self.error

    def get_bound(self, confidence: float) -> float:
        """What the loss is at most, with this (one-sided) confidence."""
        return self.value + float(torch.special.ndtri(torch.tensor(confidence, dtype=torch.float64))) * self.error


def predict(run: nn.Module | Callable[[Any], Any], data: Any, part: Part, limit: int | None = None) -> Outputs:
    """The outputs for the first `limit` examples (all) of a part, without gradients; modules in evaluation mode."""
    if isinstance(run, nn.Module):
        run.eval()
    batches, count = [], 0
    with torch.no_grad():
        for inputs, targets in data.in_order(part, min(EVALUATION_BATCH, limit or EVALUATION_BATCH)):
            outputs = call(run, inputs) if isinstance(run, nn.Module) else run(inputs)
            batches.append((map_tensors(torch.Tensor.detach, outputs), targets))
            count += count_examples(inputs)
            if limit is not None and count >= limit:
                break
    return Outputs(batches)


def measure(task: Task, outputs: Outputs) -> dict[str, float]:
    """The metrics of the task."""
    kept = iter([one for one, _ in outputs.batches])
    return task.evaluate(lambda _: next(kept), [(one, targets) for one, targets in outputs.batches])


def get_unit(task: Task) -> str:
    """What drops are measured in."""
    return "points" if is_share(task) else "%"


def is_share(task: Task) -> bool:
    """Whether the metric is an accuracy, of whatever task, whose hundredths are points."""
    return task.metric == "accuracy" and task.maximize


def compare(task: Task, model: Outputs, other: Outputs) -> Drop:
    """How much worse `other` is than `model`."""
    if isinstance(task, Classification) and task.metric == "accuracy":
        return _compare_classes(model, other)
    return _compare_groups(task, model, other)


def _compare_classes(model: Outputs, other: Outputs) -> Drop:
    differences = torch.cat(
        [
            (one.argmax(1) == classes).double() - (two.argmax(1) == classes).double()
            for (one, classes), (two, _) in zip(model.batches, other.batches)
        ]
    )
    count = len(differences)
    error = float(differences.std()) / math.sqrt(count) if count > 1 else math.inf
    return Drop(100 * float(differences.mean()), 100 * error)


def _get_drop(task: Task, model: Outputs, other: Outputs) -> float:
    one, two = measure(task, model)[task.metric], measure(task, other)[task.metric]
    worse = one - two if task.maximize else two - one
    return 100 * worse / (1.0 if is_share(task) else max(abs(one), 1e-12))


def _compare_groups(task: Task, model: Outputs, other: Outputs) -> Drop:
    """The jackknife over groups of examples."""
    value = _get_drop(task, model, other)
    models, others = _regroup(model), _regroup(other)
    if len(models) < 3:
        return Drop(value, math.inf)
    left: list[float] = []
    for number in range(len(models)):
        parts = [Outputs([*rest[:number], *rest[number + 1 :]]) for rest in (models, others)]
        left.append(_get_drop(task, *parts))
    mean = math.fsum(left) / len(left)
    variance = (len(left) - 1) / len(left) * math.fsum((one - mean) ** 2 for one in left)
    return Drop(value, math.sqrt(variance))


def _regroup(outputs: Outputs) -> list[tuple[Any, Any]]:
    """The batches in about `GROUPS` parts."""
    total = sum(count_examples(one) for one, _ in outputs.batches)
    size = max(1, math.ceil(total / GROUPS))
    parts: list[tuple[Any, Any]] = []
    for pair in outputs.batches:
        for start in range(0, count_examples(pair[0]), size):
            parts.append(_cut(pair, start, start + size))
    return parts


def _cut(pair: tuple[Any, Any], start: int, end: int) -> tuple[Any, Any]:
    outputs, targets = map_tensors(lambda tensor: tensor[start:end], pair)
    return outputs, targets


def get_divergence(task: Task, model: Outputs, other: Outputs) -> float:
    """How far the outputs are from those of the model: nats of classes, else the square over the variance."""
    total, variance, count = 0.0, 0.0, 0
    for (one, _), (two, _) in zip(model.batches, other.batches):
        first, second = _get_tensor(one), _get_tensor(two)
        if isinstance(task, Classification):
            logs = torch.log_softmax(first.double(), 1), torch.log_softmax(second.double(), 1)
            total += float((logs[0].exp() * (logs[0] - logs[1])).sum())
            count += len(first)
        else:
            total += float((first.double() - second.double()).square().sum())
            variance += float((first.double() - first.double().mean()).square().sum())
    if isinstance(task, Classification):
        return total / max(count, 1)
    return total / max(variance, 1e-30)


def _get_tensor(outputs: Any) -> torch.Tensor:
    found: list[torch.Tensor] = []
    map_tensors(lambda tensor: found.append(tensor) or tensor, outputs)  # type: ignore[func-returns-value]
    return torch.cat([one.flatten(1) for one in found], 1) if len(found) > 1 else found[0]


def summarize(drops: Sequence[Drop]) -> Drop:
    """Of networks of several seeds on the same examples: their mean; errors of seeds and of examples add up."""
    mean = math.fsum(drop.value for drop in drops) / len(drops)
    examples = math.fsum(drop.error for drop in drops) / len(drops)
    if len(drops) == 1:
        return Drop(mean, examples)
    seeds = math.fsum((drop.value - mean) ** 2 for drop in drops) / (len(drops) - 1) / len(drops)
    return Drop(mean, math.sqrt(examples**2 + seeds))
