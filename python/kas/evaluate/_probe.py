# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a network, its data and its task fit each other: before anything is trained."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._errors import need

need("torch", "torch")

import torch
from torch import nn

from ._data import Data
from ._task import (
    Classification,
    InvalidMetricError,
    NetworkFactory,
    Task,
    call,
    check_names,
    describe_shapes,
    map_tensors,
)
from ._task_data import TaskData, is_pair
from ._training import CLASSIFICATION, seed_of

if TYPE_CHECKING:
    from ._trainer import Trainer


def choose_task(task: Task | None, data: Data | TaskData) -> Task:
    """The task that is given, else that of the data, else classification."""
    own = getattr(data, "task", None) if task is None else task
    return CLASSIFICATION if own is None else own


def check_task(task: Task, data: Data | TaskData, backend: str) -> None:
    """Raises `TypeError` for what is no task, `ValueError` where it cannot be trained for.

    Classification requires targets that are classes, and compiled steps require classification.
    """
    if not isinstance(task, Task):
        what = f"the class {task.__name__}" if isinstance(task, type) else type(task).__name__
        raise TypeError(f"the task must be an object of a class that derives from kas.evaluate.Task, got {what}")
    if not isinstance(task.metric, str) or not isinstance(task.maximize, bool):
        raise TypeError(
            f"requires the name of a metric and a bool as 'metric' and 'maximize' of a task, got {task.metric!r} and "
            f"{task.maximize!r}"
        )
    if type(task) is Classification and isinstance(data, TaskData) and is_pair(data.train):
        targets = data.train[1]
        if not isinstance(targets, torch.Tensor) or targets.dim() != 1 or targets.dtype.is_floating_point:
            raise ValueError(
                "classification requires classes as targets, integers of shape [examples], got "
                f"{describe_shapes(targets)}; 'task' says what networks are trained for with others"
            )
    if backend == "native" and (type(task) is not Classification or not isinstance(data, Data)):
        raise ValueError(
            "the backend 'native' requires classification of a kas.evaluate.Data, got the task "
            f"'{task.describe()}' and a {type(data).__name__}; backend='pytorch' trains for any task"
        )


def make_network(
    factory: NetworkFactory, seed: int, change: Callable[[nn.Module], nn.Module] = lambda network: network
) -> nn.Module:
    """What the function makes, and `change` makes of it, with random numbers of the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(seed, "network"))
        network = factory()
        if not isinstance(network, nn.Module):
            raise TypeError(f"the function must make a torch.nn.Module, got {type(network).__name__}")
        return change(network)


def probe(model: nn.Module, data: Data | TaskData, task: Task, example: Any, batch_size: int) -> list[str]:
    """Runs the network and the task on a few examples; gives the names of the metrics.

    Raises `ValueError` where they do not fit each other, `TypeError` for metrics that are no numbers.
    """
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            if type(task) is Classification and isinstance(data, Data):
                _check_logits(model, data, example)
                return ["accuracy", "loss"]
            return _probe_task(model, data, task, example, batch_size)
    finally:
        for module, mode in modes.items():
            module.training = mode


def _check_logits(model: nn.Module, data: Data, example: torch.Tensor) -> None:
    try:
        shape = tuple(model(example).shape)
    except RuntimeError as error:
        raise ValueError(
            f"the network does not take data of shape {tuple(example.shape[1:])} (without the batch): {error}"
        ) from error
    if len(shape) != 2 or shape[1] != data.num_classes:
        raise ValueError(f"the network must give {data.num_classes} numbers for each input, got the shape {shape[1:]}")


def _probe_task(model: nn.Module, data: Data | TaskData, task: Task, example: Any, batch_size: int) -> list[str]:
    device = (example[0] if isinstance(example, tuple) else example).device
    batch = next(iter(data.in_order(data.validation, batch_size)))
    inputs, targets = (map_tensors(lambda tensor: tensor.to(device), one) for one in batch)
    try:
        outputs = call(model, inputs)
    except Exception as error:
        raise ValueError(
            f"the network does not take a batch of shape {describe_shapes(inputs)}: {type(error).__name__}: {error}"
        ) from error
    try:
        loss = task.loss(outputs, targets)
        found = task.evaluate(lambda inputs: call(model, inputs), [(inputs, targets)])
    except (NotImplementedError, InvalidMetricError):
        raise
    except Exception as error:
        raise _describe_misfit(task, outputs, targets, error) from error
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.is_floating_point():
        raise TypeError(f"requires a loss that is a tensor with one number, got {describe_shapes(loss)}")
    return list(check_names(task, found))


def _describe_misfit(task: Task, outputs: Any, targets: Any, error: Exception) -> ValueError:
    return ValueError(
        f"the task '{task.describe()}' does not take outputs of shape {describe_shapes(outputs)} for targets of shape "
        f"{describe_shapes(targets)}: {type(error).__name__}: {error}"
    )


def check_pickling(trainer: Trainer) -> None:
    """Raises `TypeError` where a trainer cannot be sent to another process; the message names the part."""
    parts = {
        "the task": trainer.task,
        "the data": trainer.data,
        "the function that makes the network": trainer.factory,
        "the network": trainer.model,
    }
    for name, part in parts.items():
        try:
            pickle.dumps(part)
        except Exception as error:
            raise TypeError(
                f"workers of other processes require {name} to be picklable, such as by a class or function of a "
                f"module, got {type(part).__name__}: {error}"
            ) from error
