# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tasks that networks are trained for: loss, metrics, steps and optimizer."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from .._errors import need

need("torch", "torch")

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from ._training import Recipe, Training

NetworkFactory: TypeAlias = Callable[[], nn.Module]
"""A function without arguments that makes a network."""
RESERVED = ("epochs", "train_seconds", "train_loss", "flops", "params", "flops_ratio", "latency_ms", "pareto")
"""Names that metrics of a task cannot have."""


class InvalidMetricError(TypeError):
    """What a task gives as its metrics is no dictionary of numbers."""


class Task:
    """The task that a network is trained for; derive from it. Only `loss` has to be there.

    >>> class Angle(kas.evaluate.Task):
    ...     metric = "degrees"
    ...     def loss(self, outputs, targets):
    ...         return torch.nn.functional.mse_loss(outputs, targets)
    ...     def metrics(self, outputs, targets):
    ...         return {"degrees": (outputs - targets).abs().mean()}
    >>> kas.search(network, data, task=Angle())

    `metric` is the number on the validation set by which candidates are compared, one of `metrics` or "loss": the least
    is the best, with `maximize` the largest. `inputs` and `targets` are what batches of the data have, `outputs` is
    what the network gives for `inputs` (for those that are a tuple: called with so many arguments).

    A task whose class is in a module, and not in a function, can be sent to other processes.
    """

    metric: str = "loss"
    maximize: bool = False

    def describe(self) -> str:
        """What results follow from, for the settings of a search database: the name of the class.

        For a dataclass, its fields, too.
        """
        if dataclasses.is_dataclass(self):
            return repr(self)
        return type(self).__name__

    def loss(self, outputs: Any, targets: Any) -> torch.Tensor:
        """The mean loss of a batch: a tensor with one number."""
        raise NotImplementedError(f"requires a method 'loss' of the task {type(self).__name__}, got none")

    def metrics(self, outputs: Any, targets: Any) -> Mapping[str, float | torch.Tensor]:
        """Further numbers by name, means over the examples of a batch."""
        return {}

    def make_optimizer(self, network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
        """The optimizer of the parameters of the network that require gradients: by default that of the recipe.

        Learning rates of its groups are the largest ones of the schedule of the recipe.
        """
        parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        if recipe.optimizer == "adamw":
            fused = all(p.device.type in ("cpu", "cuda") and p.dtype == torch.float32 for p in parameters)
            return torch.optim.AdamW(parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=fused)
        return torch.optim.SGD(
            parameters,
            lr=recipe.learning_rate,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
            nesterov=recipe.momentum > 0,
        )

    def check(self, network: nn.Module, inputs: Any) -> None:
        """Raises `TrainingFailure` for a network that is not to be trained, such as one that sees what it predicts.

        `inputs` is a batch of the validation set.
        """

    def training_step(self, training: Training, inputs: Any, targets: Any) -> float:
        """One step with a batch; gives its loss.

        By default `training.descend` of the loss of `training.network`.
        """
        with training.autocast():
            loss = self.loss(call(training.network, inputs), targets)
        return training.descend(loss)

    def evaluate(self, predict: Callable[[Any], Any], batches: Iterable[tuple[Any, Any]]) -> dict[str, float]:
        """All metrics and the loss on some data: by default the means over the examples.

        `predict` gives the outputs for inputs. Override it for a metric that is no mean, such as a correlation.
        """
        sums: dict[str, float] = {}
        total = 0
        for inputs, targets in batches:
            outputs = predict(inputs)
            size = count_examples(inputs)
            for name, value in self._measure(outputs, targets).items():
                sums[name] = sums.get(name, 0.0) + size * value
            total += size
        return {name: value / total for name, value in sums.items()}

    def _measure(self, outputs: Any, targets: Any) -> dict[str, float]:
        found = self.metrics(outputs, targets)
        if not isinstance(found, Mapping):
            raise InvalidMetricError(
                f"the metrics of a task must be a dictionary of numbers, got {type(found).__name__}"
            )
        if "loss" in found:
            raise InvalidMetricError("the metrics of a task must have other names than its loss, got 'loss'")
        return {
            name: read_number(name, value) for name, value in {**found, "loss": self.loss(outputs, targets)}.items()
        }

    def is_better(self, one: float, other: float) -> bool:
        """Whether a value of `metric` is better than another."""
        return one > other if self.maximize else one < other

    @property
    def objective(self) -> str:
        """What is small where candidates are good, as the option of `kas.search`."""
        return f"-{self.metric}" if self.maximize else self.metric

    def score(self, metrics: Mapping[str, float], prefix: str = "") -> float:
        """The value of `metric`, or of that with a prefix to its name, with a sign by which more is better."""
        value = metrics[prefix + self.metric]
        return value if self.maximize else -value


class Classification(Task):
    """Classes `[examples]`, of which the network gives logits `[examples, classes]`: the task without another one.

    `accuracy` is from 0 to 1, `loss` the cross entropy in nats; steps have the label smoothing of the recipe.
    """

    metric = "accuracy"
    maximize = True

    def loss(self, outputs: Any, targets: Any) -> torch.Tensor:
        """The cross entropy."""
        return functional.cross_entropy(outputs, targets)

    def training_step(self, training: Training, inputs: Any, targets: Any) -> float:
        """One step; see `Task.training_step`."""
        with training.autocast():
            outputs = call(training.network, inputs)
            loss = functional.cross_entropy(outputs, targets, label_smoothing=training.recipe.label_smoothing)
        return training.descend(loss)

    def evaluate(self, predict: Callable[[Any], Any], batches: Iterable[tuple[Any, Any]]) -> dict[str, float]:
        """`accuracy` and `loss`."""
        correct, loss, total = 0, 0.0, 0
        for inputs, classes in batches:
            outputs = predict(inputs)
            correct += int((outputs.argmax(1) == classes).sum())
            loss += functional.cross_entropy(outputs, classes, reduction="sum").item()
            total += len(classes)
        return {"accuracy": correct / total, "loss": loss / total}


def call(network: nn.Module, inputs: Any) -> Any:
    """What the network gives for inputs; a tuple has its arguments."""
    return network(*inputs) if isinstance(inputs, (tuple, list)) else network(inputs)


def map_tensors(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """A tensor, or a tuple, list or dictionary with tensors, with the function of each."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, Mapping):
        return {name: map_tensors(function, one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(map_tensors(function, one) for one in value)
    return value


def describe_shapes(value: Any) -> str:
    """The shapes of the tensors, for messages."""
    if isinstance(value, torch.Tensor):
        return f"{tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return " and ".join(map(describe_shapes, value))
    return type(value).__name__


def count_examples(inputs: Any) -> int:
    """How many examples a batch has."""
    return len(inputs[0] if isinstance(inputs, (tuple, list)) else inputs)


def read_number(name: str, value: Any) -> float:
    """A metric as a number. Raises `TypeError` for what is none."""
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return float(value.item())
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        what = describe_shapes(value) if isinstance(value, torch.Tensor) else repr(value)
        raise InvalidMetricError(f"the metric '{name}' must be a number, got {what}") from error


def check_names(task: Task, metrics: Any) -> dict[str, float]:
    """What `Task.evaluate` gave, checked. Raises `TypeError` and `ValueError`."""
    if not isinstance(metrics, Mapping):
        raise InvalidMetricError(f"the metrics of a task must be a dictionary of numbers, got {type(metrics).__name__}")
    for name in metrics:
        if (
            not isinstance(name, str)
            or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
            or name in RESERVED
            or name.startswith(("test_", "final_"))
            or name.endswith("_deviation")
        ):
            raise ValueError(
                "the name of a metric must be an identifier without the prefixes test_ and final_, without _deviation, "
                f"and none of {', '.join(RESERVED)}; got {name!r}"
            )
    for name in ("loss", task.metric):
        if name not in metrics:
            raise ValueError(
                f"requires the metric '{name}' among those of the task {type(task).__name__}, got {', '.join(metrics)}"
            )
    return {name: read_number(name, value) for name, value in metrics.items()}
