# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trainings of whole networks that have the outputs of the model for targets: distillation.

Classifiers and other networks with outputs [examples, values] learn the values themselves (the logits: Ba and Caruana,
"Do Deep Nets Really Need to be Deep?", NIPS 2014), by steps that are compiled; what these cannot express is trained by
PyTorch, by its task's loss and the difference from the outputs of the model.
"""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .._errors import Error
from .._function import BoundCall, Function
from .._module import Module
from ..evaluate._data import Data
from ..evaluate._native import _names
from ..evaluate._task import Classification, Task, call, count_examples, map_tensors
from ..evaluate._training import EVALUATION_BATCH, TrainingFailure, _recalibrate, seed_of
from ..torch._export import to_mlir
from ..torch._modules import KasModule
from ._progress import Ending
from ._times import TRACING

EVALUATED = 4096
"""The most examples that normalizations take their statistics from."""


LEAST_RATE, MOST_RATE, FAR = 3e-4, 3e-3, 0.1
"""The learning rates of networks that are near to their teacher and far from it, and the loss from which on they are
far: nats, or squares of errors over the variance.

Measured on three networks for Fashion-MNIST after 0.24 epochs and one: where the predicted loss is 0.002 and 0.02, a
tenth and a third of the largest rate leave half of the drop that it leaves; where it is 0.05, they are alike."""


def choose_rate(loss: float | None) -> float:
    """The learning rate for a network with this loss beside its teacher; None where it is not known.

    Few large steps take a network that is near further away. The size of a step follows that of the errors.
    """
    return MOST_RATE if loss is None else max(LEAST_RATE, MOST_RATE * min(1.0, math.sqrt(max(loss, 0.0) / FAR)))


@dataclass(frozen=True)
class Schedule:
    """How networks are trained."""

    epochs: float
    """Passes over the training data; a part of one, too."""
    batch_size: int = 64
    learning_rate: float = MOST_RATE
    weight_decay: float = 1e-2
    warmup: float = 0.05
    """The share of all steps in which the learning rate rises."""

    def get_rate(self, step: int, steps: int) -> float:
        """The learning rate of a step: a rise, then half a cosine."""
        rise = min(1.0, (step + 1) / max(1.0, self.warmup * steps))
        return self.learning_rate * rise * 0.5 * (1 + math.cos(math.pi * step / steps))


class Teacher:
    """The model on the training data: what it gives is computed once where the data comes back unchanged or flipped."""

    def __init__(self, model: nn.Module, data: Any, run: Any = None):
        self.model, self.data = model.eval(), data
        self.run = run or (lambda inputs: call(self.model, inputs))
        self._outputs: torch.Tensor | None = None
        """Of images as they are, then of flipped ones."""
        self._known: torch.Tensor = torch.zeros(0, dtype=torch.bool)
        self._lock = threading.Lock()

    def predict(self, inputs: Any) -> Any:
        """The outputs for a batch, without gradients."""
        with self._lock:
            return self._run(inputs)

    def _run(self, inputs: Any) -> Any:
        with torch.no_grad():
            return map_tensors(torch.Tensor.detach, self.run(inputs))

    def _recall(self, places: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        """The outputs for a batch of images of these places; those that were not requested before are computed."""
        with self._lock:
            if not len(self._known):
                self._known = torch.zeros(2 * len(self.data.train[0]), dtype=torch.bool)
            missing = ~self._known[places]
            if bool(missing.any()):
                found = self._run(batch[missing]).float()
                if self._outputs is None:
                    self._outputs = torch.zeros(len(self._known), *found.shape[1:])
                self._outputs[places[missing]] = found
                self._known[places[missing]] = True
            assert self._outputs is not None
            return self._outputs[places]

    def _is_kept(self) -> bool:
        return isinstance(self.data, Data) and self.data.augmentation in ("none", "flip")

    def batches(self, size: int, generator: torch.Generator) -> Iterator[tuple[Any, Any, Any]]:
        """An epoch in random order: inputs, targets and the outputs of the model."""
        if not self._is_kept():
            for inputs, targets in self.data.batches(size, generator):
                yield inputs, targets, self.predict(inputs)
            return
        inputs, classes = self.data.train
        size = min(size, len(inputs))
        order = torch.randperm(len(inputs), generator=generator)
        for start in range(0, len(inputs) - size + 1, size):
            chosen = places = order[start : start + size]
            batch = inputs[chosen]
            if self.data.augmentation == "flip":
                flips = torch.rand(len(batch), generator=generator) < 0.5
                batch = torch.where(flips[:, None, None, None], batch.flip(3), batch)
                places = chosen + len(inputs) * flips
            yield batch, classes[chosen], self._recall(places, batch)


class NoNativeError(ValueError):
    """Why a network is not trained by compiled steps."""


class Steps:
    """How the steps of trainings of one network are made; any number of trainings may run at once."""

    is_native = False

    def start(self, network: nn.Module) -> Stepper:
        """A training of a network of the same modules, from the weights that it has."""
        raise NotImplementedError

    def measure(self, teacher: Teacher, count: int = 3) -> float:
        """The seconds of a step: the least of some after a first one."""
        stepper = self.start(copy.deepcopy(self.network))
        inputs, targets = next(iter(teacher.data.in_order(teacher.data.train, self.size)))
        outputs = teacher.predict(inputs)
        times = []
        for _ in range(1 + count):
            with TRACING:
                start = time.perf_counter()
                stepper.step(inputs, targets, outputs, 0.0)
                times.append(time.perf_counter() - start)
        return min(times[1:])

    def __init__(self, network: nn.Module, size: int, schedule: Schedule):
        self.network, self.size, self.schedule = network, size, schedule


class Stepper:
    """A training at work."""

    def step(self, inputs: Any, targets: Any, outputs: Any, rate: float) -> float:
        """One step; its loss."""
        raise NotImplementedError

    def finish(self) -> None:
        """Gives the network the weights."""


class NativeSteps(Steps):
    """Steps of AdamW for the square of differences from given outputs, compiled for one thread."""

    is_native = True

    def __init__(self, network: nn.Module, inputs: torch.Tensor, schedule: Schedule):
        # All of it learns, normalizations too, whatever the model left out of its own training.
        network = copy.deepcopy(network).requires_grad_(True).eval()
        super().__init__(network, len(inputs), schedule)
        try:
            with TRACING:
                _check(network, inputs)
                operators = any(isinstance(one, KasModule) for one in network.modules())
                module: Module = to_mlir(network, inputs, fold_batch_norms=False, keep_operators=operators).module
            step = module.run("kas-specialize").run(
                f"kas-training-step{{loss=mse optimizer=adamw weight-decay={schedule.weight_decay}}}"
            )
            step.run("kas-attach-cpu-target,kas-winograd{threads=1}")
            self.function: Function = step.compile("train_step", threads=1)
        except NoNativeError:
            raise
        except (Error, ValueError) as error:
            raise NoNativeError(" ".join(str(error).split())) from error

    def start(self, network: nn.Module) -> Stepper:
        return _NativeStepper(self.function, network)


class _NativeStepper(Stepper):
    def __init__(self, function: Function, network: nn.Module):
        self.function, self.network = function, network
        arguments = self.function.arguments[3:]
        known = {name for name, _ in network.named_parameters()} | {name for name, _ in network.named_buffers()}
        self._names = _names(network, [name for name, _ in arguments if name in known])
        self._state = {name: torch.zeros(shape) for name, shape in arguments}
        spare = {name: torch.zeros(shape) for name, shape in arguments}
        shapes = [shape for _, shape in self.function.arguments[:2]]
        self._batch = torch.zeros(shapes[0]), torch.zeros(shapes[1]), torch.zeros(())
        self._outcome = torch.zeros(()), torch.zeros(())
        self._spare = spare
        self._steps: list[BoundCall] = [self._bind(self._state, spare), self._bind(spare, self._state)]
        for name, tensor in self._get_tensors().items():
            self._state[name].copy_(tensor.reshape(self._state[name].shape))

    def _bind(self, state: dict[str, torch.Tensor], new: dict[str, torch.Tensor]) -> BoundCall:
        return self.function.bind(*self._batch, *state.values(), out=[*self._outcome, *new.values()])

    def _get_tensors(self) -> dict[str, torch.Tensor]:
        tensors = dict(self.network.named_parameters()) | dict(self.network.named_buffers())
        return {argument: tensors[name].detach() for name, argument in self._names.items()}

    def step(self, inputs: Any, targets: Any, outputs: torch.Tensor, rate: float) -> float:
        for kept, value in zip(self._batch, (inputs, outputs, torch.tensor(rate))):
            kept.copy_(value)
        self._steps[0]()
        self._steps.reverse()
        self._state, self._spare = self._spare, self._state
        return float(self._outcome[0])

    def finish(self) -> None:
        """Gives the network the weights."""
        for name, tensor in self._get_tensors().items():
            tensor.copy_(self._state[name].reshape(tensor.shape))


def _check(network: nn.Module, inputs: Any) -> None:
    if not isinstance(inputs, torch.Tensor):
        raise NoNativeError("requires networks of one tensor, got several")
    for name, tensor in network.named_parameters():
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
            raise NoNativeError(f"requires parameters of float32 on the CPU, got {tensor.dtype} in '{name}'")
    with torch.no_grad():
        outputs = call(copy.deepcopy(network).eval(), inputs)
    if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2:
        raise NoNativeError("requires outputs [examples, values]")


class TorchSteps(Steps):
    """Steps of AdamW for the loss of the task and the difference from the outputs of the model, by PyTorch."""

    def __init__(self, network: nn.Module, size: int, task: Task, schedule: Schedule):
        super().__init__(network, size, schedule)
        self.task = task

    def start(self, network: nn.Module) -> Stepper:
        return _TorchStepper(network, self.task, self.schedule)


def compile_steps(network: nn.Module, data: Any, task: Task, schedule: Schedule) -> Steps:
    """Compiled steps where there can be some."""
    size = min(schedule.batch_size, data.count(data.train))
    try:
        return NativeSteps(network, next(iter(data.in_order(data.train, size)))[0], schedule)
    except NoNativeError:
        return TorchSteps(network, size, task, schedule)


class _TorchStepper(Stepper):
    def __init__(self, network: nn.Module, task: Task, schedule: Schedule):
        self.network, self.task = network, task
        decayed = [p.requires_grad_() for p in network.parameters() if p.ndim > 1]
        others = [p.requires_grad_() for p in network.parameters() if p.ndim <= 1]
        groups: list[dict[str, Any]] = [{"params": decayed}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
        network.train()

    def step(self, inputs: Any, targets: Any, outputs: Any, rate: float) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with torch.enable_grad():
            loss = get_loss(self.task, call(self.network, inputs), targets, outputs)
            value = float(loss.detach())
            if math.isfinite(value):
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                self.optimizer.step()
        return value

    def finish(self) -> None:
        self.network.eval()


def get_loss(task: Task, own: Any, targets: Any, wanted: Any) -> torch.Tensor:
    """The loss of a batch."""
    if isinstance(task, Classification):
        return functional.mse_loss(own, wanted)
    loss = task.loss(own, targets)
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    if isinstance(own, torch.Tensor) and isinstance(wanted, torch.Tensor):
        pairs = [(own, wanted)]
    elif isinstance(own, (tuple, list)):
        pairs = [(a, b) for a, b in zip(own, wanted) if isinstance(a, torch.Tensor) and a.is_floating_point()]
    for one, other in pairs:
        loss = loss + functional.mse_loss(one, other) / other.var().clamp_min(1e-12)
    return loss


@dataclass
class Trained:
    """What came out of a training."""

    network: nn.Module
    seconds: float
    steps: int
    loss: float
    """The mean of the last tenth of the steps."""


def train(
    network: nn.Module,
    teacher: Teacher,
    task: Task,
    schedule: Schedule,
    seed: int,
    steps: Steps | None = None,
    seconds: float = math.inf,
    ending: Ending | None = None,
) -> Trained:
    """A copy of the network that was trained; `network` stays as it is. `steps` are those of `compile_steps`.

    Where steps are so slow that `seconds` would not do, there are fewer of them, in the same schedule. Raises
    `TrainingFailure` where the loss is no finite number, `EndedError` where the run is interrupted.
    """
    start = time.perf_counter()
    network, data = copy.deepcopy(network), teacher.data
    steps = steps or compile_steps(network, data, task, schedule)
    stepper = steps.start(network)
    total = max(1, round(schedule.epochs * data.num_batches(steps.size)))
    done, epoch, losses = 0, 0, []
    while done < total:
        generator = torch.Generator().manual_seed(seed_of(seed, "distillation", epoch))
        for inputs, targets, outputs in teacher.batches(steps.size, generator):
            if ending is not None:
                ending.check()
            value = stepper.step(inputs, targets, outputs, schedule.get_rate(done, total))
            if not math.isfinite(value):
                raise TrainingFailure(f"the loss is {value} in step {done}")
            losses.append(value)
            done += 1
            if done >= total:
                break
            if done % 16 == 0:
                each = (time.perf_counter() - start) / done
                total = max(done + 1, math.floor(min(total, seconds / each)))
        epoch += 1
    stepper.finish()
    recalibrate(network, data)
    last = losses[-max(1, total // 10) :]
    return Trained(network, time.perf_counter() - start, total, math.fsum(last) / len(last))


def recalibrate(network: nn.Module, data: Any, most: int = EVALUATED) -> None:
    """Statistics of normalizations from training data in a random order that is always the same."""
    _recalibrate(network, draw_inputs(data, most))
    network.eval()


def draw_inputs(data: Any, most: int, size: int = EVALUATION_BATCH) -> Iterator[Any]:
    """Batches of at least `most` examples for training, or of all; always the same."""
    count = 0
    for inputs, _ in data.batches(min(size, most), torch.Generator().manual_seed(seed_of("draw"))):
        yield inputs
        count += count_examples(inputs)
        if count >= most:
            return
