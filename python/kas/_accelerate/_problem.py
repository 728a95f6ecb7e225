# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model, its data and what is wanted: what all parts of a run share."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch import nn

from .._errors import Error
from ..evaluate import Data, Task, TaskData
from ..evaluate._probe import check_task, probe
from ..evaluate._task import call, describe_shapes, map_tensors
from ..torch._layers import observing
from ._progress import Clock, Ending, Reporter
from ._statistics import Outputs, measure, predict
from ._store import Store
from ._times import PRECISIONS, Program, UntraceableError, compile_network, export

if TYPE_CHECKING:
    from ._remote import Remote

T = TypeVar("T")


class Measured(NamedTuple):
    """A network that was compiled in the precision of the run, and what it gives for the validation data."""

    network: nn.Module
    program: Program
    outputs: Outputs


@dataclass(frozen=True)
class Options:
    """What `kas.accelerate` was called with."""

    max_drop: float = 0.5
    confidence: float = 0.5
    target: float | str | None = None
    minutes: float = 15.0
    threads: int = 1
    batch: int = 1
    precision: str = "auto"
    seed: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        for name, low in (("max_drop", 0.0), ("minutes", 0.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= low:
                raise ValueError(f"'{name}' must be a number of at least {low:g}, got {value!r}")
            if not math.isfinite(value):
                raise ValueError(f"'{name}' must be a finite number, got {value!r}")
        if self.minutes == 0:
            raise ValueError("'minutes' must be more than 0, got 0")
        if not 0.5 <= self.confidence < 1:
            raise ValueError(f"'confidence' must be at least 0.5 and less than 1, got {self.confidence!r}")
        for name in ("threads", "batch", "workers"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"'{name}' must be an integer of at least 1, got {value!r}")
        if self.precision not in ("auto", *PRECISIONS):
            raise ValueError(f"'precision' must be auto, {', '.join(PRECISIONS)}, got {self.precision!r}")
        self.get_target(1.0)

    def get_target(self, dense_ms: float) -> float | None:
        """The milliseconds that are wanted; None where the accuracy is given and the time is to be small."""
        if self.target is None:
            return None
        text = str(self.target).strip().lower()
        try:
            value = dense_ms / float(text[:-1]) if text.endswith("x") else float(text.removesuffix("ms"))
        except (ValueError, ZeroDivisionError):
            value = math.nan
        if not value > 0 or not math.isfinite(value):
            raise ValueError(
                f"'target' must be milliseconds such as '0.5ms' or a factor such as '3x', got {self.target!r}"
            )
        return value


class Problem:
    """A model and its data, with the outputs of the model."""

    def __init__(
        self,
        model: nn.Module,
        data: Data | TaskData,
        task: Task,
        options: Options,
        store: Store,
        clock: Clock,
        reporter: Reporter,
    ):
        self.model = copy.deepcopy(model).eval().cpu()
        self.model.requires_grad_(False)
        self.data, self.task, self.options = data, task, options
        self.store, self.clock, self.reporter, self.ending = store, clock, reporter, Ending()
        self.remote: Remote | None = None
        """Workers of others for what learns."""
        self.example = data.example
        self.batch = get_batch(data, options.batch)
        """The inputs of a call that is timed."""
        self.program = compile_model(self.model, self.batch, options.threads)
        self.validation = predict(self.program.predict, data, data.validation)
        self.test = predict(self.program.predict, data, data.test)
        self.dense_ms = 0.0
        """The milliseconds of a call of the model, when it has been timed."""
        self.precision, self.base_ms = "f32", 0.0
        """What networks are chosen in, and the milliseconds of the model in it."""
        self.metrics = check_metrics(task, self.validation), check_metrics(task, self.test)
        """Of the model on validation and test data."""
        self.measured: dict[int, Measured] = {}
        """Networks of the last trainings by their identity, so that what is reported is not compiled twice."""

    @property
    def num_learners(self) -> int:
        """How many trainings run at once."""
        return self.options.workers if self.remote is None else self.remote.count

    def get_calibration(self, examples: int = 64) -> list[Any]:
        """Batches of training data, which ranges of bytes are measured on."""
        found: list[Any] = []
        size = self.options.batch
        for inputs, _ in self.data.in_order(self.data.train, size):
            found.append(repeat_to(inputs, size))
            if len(found) * size >= examples:
                break
        return found

    def compile(self, network: nn.Module, precision: str) -> Program:
        """A network as the program that is timed."""
        calibration = self.get_calibration() if precision == "int8" else ()
        return compile_network(network, self.batch, self.options.threads, precision, calibration)

    def map(self, function: Callable[[T], Any], items: Sequence[T], phase: str) -> list[Any]:
        """The function of each item, by threads; kernels of PyTorch and kas run without Python's lock."""
        results: list[Any] = []
        torch.set_num_threads(1)
        with ThreadPoolExecutor(self.options.workers) as pool:
            futures = [pool.submit(function, item) for item in items]
            try:
                for number, future in enumerate(futures):
                    self.reporter.show(phase, number, len(items))
                    results.append(future.result())
            except BaseException:
                for future in futures:
                    future.cancel()
                self.ending.set()
                raise
        if items:
            self.reporter.show(phase, len(items), len(items))
        return results


def get_batch(data: Any, size: int) -> Any:
    """The inputs of a call with so many examples."""
    return repeat_to(next(iter(data.in_order(data.validation, size)))[0], size)


def repeat_to(inputs: Any, size: int) -> Any:
    """The inputs, repeated until there are as many examples."""

    def repeat(tensor: torch.Tensor) -> torch.Tensor:
        times = -(-size // len(tensor))
        return tensor.repeat(times, *[1] * (tensor.ndim - 1))[:size].contiguous()

    return map_tensors(repeat, inputs)


def check_metrics(task: Task, outputs: Outputs) -> dict[str, float]:
    """The metrics of the model. Raises `ValueError` for one that is no finite number."""
    metrics = measure(task, outputs)
    value = metrics.get(task.metric)
    if value is None or not math.isfinite(value):
        raise ValueError(f"requires a finite number for the metric '{task.metric}' of the model, got {value}")
    return metrics


def check_inputs(model: nn.Module, data: Any, task: Task) -> None:
    """Raises `TypeError` and `ValueError` for a model and data that nothing can be done with."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"the model must be a torch.nn.Module, got {type(model).__name__}")
    if not isinstance(data, (Data, TaskData)):
        what = type(data).__name__
        raise TypeError(
            "the data must be a kas.evaluate.Data, a kas.evaluate.TaskData or the name of a data set, with parts for "
            f"training, validation and test, got {what}"
        )
    check_task(task, data, "pytorch")
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    example = map_tensors(lambda tensor: tensor.to(device), data.example)
    _check_outputs(model, example)
    probe(model, data, task, example, 64)


def _check_outputs(model: nn.Module, example: Any) -> None:
    modes = {module: module.training for module in model.modules()}
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            outputs = call(model.eval(), example)
    except RuntimeError as error:
        # What PyTorch's operations raise for types and shapes.
        what = describe_shapes(example)
        raise ValueError(f"requires data that the network takes, got {what}: {error}") from error
    finally:
        for module, mode in modes.items():
            module.training = mode
    parts = outputs if type(outputs) in (tuple, list) else [outputs]
    for part in parts:
        if not isinstance(part, torch.Tensor):
            raise ValueError(
                f"requires a model that gives a tensor or a tuple of tensors, got {type(part).__name__}: write a "
                "module around it whose 'forward' returns what the task takes, such as 'self.model(x).logits'"
            )


def compile_model(model: nn.Module, batch: Any, threads: int) -> Program:
    """The model as a program. Raises `ValueError` with the layer that is the reason where that is impossible."""
    try:
        return compile_network(model, batch, threads)
    except (UntraceableError, Error) as error:
        found = _find_untraceable(model, batch)
        reason = " ".join(str(error).split())
        if found is None:
            raise ValueError(f"the model cannot be compiled: {reason}") from error
        name, module, why = found
        raise ValueError(
            f"the model cannot be compiled because of '{name}' ({type(module).__name__}): {why}\n"
            "write that module by other operations of PyTorch, or give kas.accelerate the part of the model before or "
            "after it"
        ) from error


def _find_untraceable(model: nn.Module, batch: Any) -> tuple[str, nn.Module, str] | None:
    """The innermost module that cannot be exported, and why."""
    inputs: dict[str, Any] = {}
    names = {module: name for name, module in model.named_modules() if name}

    def record(module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        inputs.setdefault(names[module], given)

    with observing(model, {module: record for module in names}):
        call(model, batch)
    found: tuple[str, nn.Module, str] | None = None
    while True:
        prefix = "" if found is None else found[0] + "."
        children = [
            (name, module)
            for name, module in model.named_modules()
            if name.startswith(prefix) and name != prefix[:-1] and "." not in name[len(prefix) :] and name in inputs
        ]
        for name, module in children:
            if all(isinstance(one, torch.Tensor) for one in inputs[name]) and (
                why := _get_failure(module, inputs[name])
            ):
                found = (name, module, why)
                break
        else:
            return found


def _get_failure(module: nn.Module, inputs: Any) -> str | None:
    try:
        export(module, inputs)
    except UntraceableError as error:
        return " ".join(str(error).split())
    return None
