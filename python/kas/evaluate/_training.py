# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training of one network: it can be stopped after any epoch and go on later, also in another process."""

from __future__ import annotations

import contextlib
import math
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._errors import need

need("torch", "torch")

import torch
from torch import nn

from ._data import Data
from ._task import Classification, Task, call, check_names, count_examples, describe_shapes, map_tensors
from ._task_data import Part, TaskData

EVALUATION_BATCH = 256
CLASSIFICATION = Classification()


class TrainingFailure(Exception):  # noqa: N818 - an outcome, as in the column `failure`
    """A training came to no result; the message is the reason that is recorded."""


@dataclass(frozen=True)
class Recipe:
    """How networks are trained. The same for all candidates and for the network that they are compared with.

    The defaults suit `DigitsNetwork` on 300 images; for CIFAR, `Recipe.cifar()`.
    """

    epochs: int = 20
    batch_size: int = 50
    optimizer: str = "adamw"
    """`adamw` or `sgd` (with Nesterov's momentum)."""
    learning_rate: float = 5e-3
    momentum: float = 0.9
    """Of `sgd`."""
    weight_decay: float = 1e-3
    warmup_steps: int = 6
    """The learning rate rises linearly for so many steps; over the whole training it falls as a cosine to 0."""
    label_smoothing: float = 0.0
    """Szegedy et al., "Rethinking the Inception Architecture", CVPR 2016, section 7."""
    clip_gradients: float = 0.0
    """The largest norm of all gradients together; 0: no limit."""
    milestones: Mapping[int, float] = field(default_factory=dict)
    """After so many epochs the validation accuracy must be at least so high, or the training stops there; of other
    tasks their metric, at most so high where less is better."""
    mixed_precision: bool = True
    """On GPUs only: bfloat16 where the device has it, else float16 with scaled losses."""
    recalibrate: bool = True
    """Before each evaluation, normalizations take their statistics from the whole training set again. After few steps
    the running averages would say more about the recipe than about the network."""

    def __post_init__(self) -> None:
        for name, low in (("epochs", 1), ("batch_size", 1), ("warmup_steps", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise ValueError(f"'{name}' of a recipe must be an integer of at least {low}, got {value!r}")
        for name in ("learning_rate", "momentum", "weight_decay", "label_smoothing", "clip_gradients"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
                raise ValueError(f"'{name}' of a recipe must be a finite number of at least 0, got {value!r}")
        if self.optimizer not in ("adamw", "sgd"):
            raise ValueError(f"the optimizer must be 'adamw' or 'sgd', got {self.optimizer!r}")

    @staticmethod
    def cifar(epochs: int = 100) -> Recipe:
        """SGD with momentum, learning rate 0.1, batches of 128: what the Syno paper trains with (section 9)."""
        return Recipe(
            epochs, 128, "sgd", 0.1, weight_decay=1e-3, warmup_steps=400, label_smoothing=0.1, recalibrate=False
        )

    def to_text(self) -> str:
        """All of it in one line: settings of a search database."""
        return repr(self)


def seed_of(*parts: Any) -> int:
    """The same number for the same parts on any machine."""
    return zlib.crc32(":".join(map(str, parts)).encode())


def initialize(network: nn.Module, seed: int, modules: Iterable[str] | None = None) -> None:
    """Draws the weights of the modules (all, or those named) again.

    Each has a stream of its own by its name: those that two networks have in common start equal.
    """
    chosen = None if modules is None else set(modules)
    with torch.random.fork_rng(devices=[]):
        for name, module in network.named_modules():
            if callable(reset := getattr(module, "reset_parameters", None)) and (chosen is None or name in chosen):
                torch.manual_seed(seed_of(seed, name))
                reset()


@torch.no_grad()
def _recalibrate(network: nn.Module, batches: Iterable[Any]) -> None:
    """Statistics of normalizations from the inputs of the batches, without those of one example."""
    kind = nn.modules.batchnorm._BatchNorm
    norms = [module for module in network.modules() if isinstance(module, kind) and module.track_running_stats]
    if not norms:
        return
    momenta = [module.momentum for module in norms]
    for module in norms:
        module.reset_running_stats()
        module.momentum = None  # The average of all batches.
    network.train()
    for inputs in batches:
        if count_examples(inputs) > 1:
            call(network, inputs)
    for module, momentum in zip(norms, momenta):
        module.momentum = momentum


class Training:
    """A network on its way through a recipe, for a `Task`.

    >>> training = Training(network, data, Recipe(), seed=0)
    >>> training.advance(3)                             # to the end of epoch 3
    >>> training.evaluate()["accuracy"]
    >>> training.save(path)                             # and go on by load(path), with the same result
    """

    def __init__(
        self,
        network: nn.Module,
        data: Data | TaskData,
        recipe: Recipe,
        seed: int = 0,
        device: str = "cpu",
        task: Task = CLASSIFICATION,
    ):
        self.network = network.to(device)
        self.data = data.to(device)
        self.recipe = recipe
        self.task = task
        self.seed = seed
        self.device = torch.device(device)
        self.epoch = 0
        self.step = 0
        self.seconds = 0.0
        """Of training alone."""
        self.curve: list[tuple[int, str, float]] = []
        """Epoch, name and value of what was seen on the way: `train_loss` of each epoch, and all evaluations."""
        if not any(parameter.requires_grad for parameter in network.parameters()):
            raise TrainingFailure("the network has no parameters to train")
        self.optimizer = task.make_optimizer(network, recipe)
        if not isinstance(self.optimizer, torch.optim.Optimizer):
            raise TypeError(
                f"requires a torch.optim.Optimizer of the task '{task.describe()}', got {type(self.optimizer).__name__}"
            )
        # Of the learning rates of groups to that of the recipe, which has the schedule.
        self._scales = [float(group["lr"]) / (recipe.learning_rate or 1.0) for group in self.optimizer.param_groups]
        self._precision: torch.dtype | None = None
        if recipe.mixed_precision and self.device.type == "cuda":
            self._precision = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
        self._scaler = torch.amp.GradScaler(self.device.type, enabled=self._precision == torch.float16)
        self._steps_per_epoch = data.num_batches(recipe.batch_size)

    @property
    def is_done(self) -> bool:
        """All epochs of the recipe are done."""
        return self.epoch >= self.recipe.epochs

    def advance(self, epochs: int, deadline: float | None = None) -> None:
        """Trains to the end of epoch `epochs`.

        Raises `TrainingFailure` where the loss is no finite number, where memory is not enough, where a milestone is
        missed, or after `deadline` (of `time.monotonic`).
        """
        if self.step == 0:
            self._check()
        while self.epoch < min(epochs, self.recipe.epochs):
            start = time.perf_counter()
            try:
                loss = self._train_epoch(deadline)
            except (torch.OutOfMemoryError, MemoryError) as error:
                raise TrainingFailure(
                    f"out of memory: {str(error).splitlines()[0] if str(error) else 'no details'}"
                ) from error
            except RuntimeError as error:
                if "alloc" in str(error) and "memory" in str(error):
                    raise TrainingFailure(f"out of memory: {str(error).splitlines()[0]}") from error
                raise
            self.epoch += 1
            self.seconds += time.perf_counter() - start
            self.curve.append((self.epoch, "train_loss", loss))
            if (least := self.recipe.milestones.get(self.epoch)) is not None:
                value = self.evaluate()[self.task.metric]
                if self.task.is_better(least, value):
                    raise TrainingFailure(
                        f"missed a milestone: the {self.task.metric} after {self.epoch} epochs must be at "
                        f"{'least' if self.task.maximize else 'most'} {least}, got {value:.4f}"
                    )

    def _check(self) -> None:
        if type(self.task).check is Task.check:
            return
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            inputs, _ = next(iter(self._move(self.data.in_order(self.data.validation, self.recipe.batch_size))))
            self.network.eval()
            self.task.check(self.network, inputs)
            self.network.train()

    def _train_epoch(self, deadline: float | None) -> float:
        recipe, total, first = self.recipe, 0.0, self.step
        total_steps = self._steps_per_epoch * recipe.epochs
        self.network.train()
        shuffle = torch.Generator().manual_seed(seed_of(self.seed, "order", self.epoch))
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed_of(self.seed, "epoch", self.epoch))
            for inputs, targets in self._move(self.data.batches(recipe.batch_size, shuffle)):
                rate = recipe.learning_rate * min(1.0, (self.step + 1) / max(1, recipe.warmup_steps))
                rate *= 0.5 * (1 + math.cos(math.pi * self.step / total_steps))
                value = self._step(inputs, targets, rate)
                if not math.isfinite(value):
                    raise TrainingFailure(f"the loss is {value} in step {self.step} of epoch {self.epoch}")
                total += value
                self.step += 1
                if deadline is not None and time.monotonic() > deadline:
                    raise TrainingFailure(f"the time was up in epoch {self.epoch + 1} of {recipe.epochs}")
        if self.step - first != self._steps_per_epoch:
            raise ValueError(
                f"requires as many batches of the loader as its length says, {self._steps_per_epoch}, got "
                f"{self.step - first}"
            )
        return total / self._steps_per_epoch

    def _step(self, inputs: Any, targets: Any, rate: float) -> float:
        """One step; its loss. Where that is no finite number, what the parameters are then does not matter."""
        for group, scale in zip(self.optimizer.param_groups, self._scales):
            group["lr"] = scale * rate
        value = self.task.training_step(self, inputs, targets)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(
                f"requires a number of the training step of the task '{self.task.describe()}', got "
                f"{type(value).__name__}"
            )
        return value

    def descend(self, loss: torch.Tensor) -> float:
        """One step of the optimizer by the gradients of a loss; gives the loss.

        Gradients are clipped as the recipe says. A loss that is no finite number is given back without a step.
        """
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise TypeError(f"requires a loss that is a tensor with one number, got {describe_shapes(loss)}")
        value = loss.item()
        if not math.isfinite(value):
            return value
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(self._scaler.scale(loss))
        if self.recipe.clip_gradients > 0:
            self._scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip_gradients)
        self._scaler.step(self.optimizer)
        self._scaler.update()
        return value

    def _move(self, batches: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """The batches on the device of the training."""
        for inputs, targets in batches:
            yield map_tensors(self._to_device, inputs), map_tensors(self._to_device, targets)

    def _to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.device)

    def _outputs(self, inputs: Any) -> Any:
        """What the network gives, in evaluation mode."""
        return map_tensors(lambda one: one.float() if one.is_floating_point() else one, call(self.network, inputs))

    def _recalibrate(self) -> None:
        if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in self.network.modules()):
            batches = self._move(self.data.in_order(self.data.train, EVALUATION_BATCH))
            _recalibrate(self.network, (inputs for inputs, _ in batches))

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        """The precision of the recipe, for what the network and the loss compute."""
        if self._precision is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self._precision)

    def evaluate(self, split: str = "validation") -> dict[str, float]:
        """The metrics of the task on a split: `accuracy` (0 to 1) and `loss` (cross entropy in nats), or its own."""
        return self.evaluate_on(getattr(self.data, split), split)

    def evaluate_on(self, part: Part, split: str) -> dict[str, float]:
        """`evaluate` of examples that are no part of the data, with a name for the curve."""
        if self.recipe.recalibrate:
            self._recalibrate()
        self.network.eval()
        with torch.no_grad(), self.autocast():
            batches = self._move(self.data.in_order(part, EVALUATION_BATCH))
            result = check_names(self.task, self.task.evaluate(self._outputs, batches))
        self.network.train()
        for name, value in result.items():
            if not math.isfinite(value):
                raise TrainingFailure(f"the {split} {name} is {value} after {self.epoch} epochs")
        self.curve += [
            (self.epoch, name if split == "validation" else f"{split}_{name}", value) for name, value in result.items()
        ]
        return result

    def _get_optimizer_state(self) -> dict[str, Any]:
        state: dict[str, Any] = self.optimizer.state_dict()
        return state

    def _set_optimizer_state(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state)

    def known(self, epoch: int) -> dict[str, float]:
        """What was evaluated after that epoch, on the way; empty where nothing was."""
        found = {
            name: value
            for at, name, value in self.curve
            if at == epoch and name != "train_loss" and not name.startswith("test_")
        }
        if not {"loss", self.task.metric} <= found.keys():
            return {}
        return {**found, "epochs": epoch, "train_seconds": self.seconds * epoch / self.epoch}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all that is needed to go on; a file that is there is replaced at once or not at all."""
        partial = f"{os.fspath(path)}.partial"
        torch.save(
            {
                "network": self.network.state_dict(),
                "optimizer": self._get_optimizer_state(),
                "scaler": self._scaler.state_dict(),
                "epoch": self.epoch,
                "step": self.step,
                "seconds": self.seconds,
                "curve": self.curve,
                "seed": self.seed,
            },
            partial,
        )
        os.replace(partial, path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Goes on where `save` was called; the network, data, recipe and seed must be the same."""
        state = torch.load(path, map_location=self.device, weights_only=True)
        if state["seed"] != self.seed:
            raise ValueError(f"'{os.fspath(path)}' is a training with seed {state['seed']}, requires {self.seed}")
        self.network.load_state_dict(state["network"])
        self._set_optimizer_state(state["optimizer"])
        self._scaler.load_state_dict(state["scaler"])
        self.epoch, self.step, self.seconds = state["epoch"], state["step"], state["seconds"]
        self.curve = [tuple(entry) for entry in state["curve"]]
