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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._errors import need

need("torch", "torch")

import torch
from torch import nn
from torch.nn import functional

from ._data import Data, Split

EVALUATION_BATCH = 256


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
    """After so many epochs the validation accuracy must be at least so high, or the training stops there."""
    mixed_precision: bool = True
    """On GPUs only: bfloat16 where the device has it, else float16 with scaled losses."""
    recalibrate: bool = True
    """Before each evaluation, normalizations take their statistics from the whole training set anew. After few steps
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
    """Draws the weights of the modules (all, or those named) anew.

    Each has a stream of its own by its name: those that two networks have in common start equal.
    """
    chosen = None if modules is None else set(modules)
    with torch.random.fork_rng(devices=[]):
        for name, module in network.named_modules():
            if callable(reset := getattr(module, "reset_parameters", None)) and (chosen is None or name in chosen):
                torch.manual_seed(seed_of(seed, name))
                reset()


@torch.no_grad()
def _recalibrate(network: nn.Module, inputs: torch.Tensor) -> None:
    kind = nn.modules.batchnorm._BatchNorm
    norms = [module for module in network.modules() if isinstance(module, kind) and module.track_running_stats]
    if not norms:
        return
    momenta = [module.momentum for module in norms]
    for module in norms:
        module.reset_running_stats()
        module.momentum = None  # The average of all batches.
    network.train()
    for start in range(0, len(inputs) - 1, EVALUATION_BATCH):
        network(inputs[start : start + EVALUATION_BATCH])
    for module, momentum in zip(norms, momenta):
        module.momentum = momentum


class Training:
    """A network on its way through a recipe.

    >>> training = Training(network, data, Recipe(), seed=0)
    >>> training.advance(3)                             # to the end of epoch 3
    >>> training.evaluate()["accuracy"]
    >>> training.save(path)                             # and go on by load(path), with the same result
    """

    def __init__(self, network: nn.Module, data: Data, recipe: Recipe, seed: int = 0, device: str = "cpu"):
        self.network = network.to(device)
        self.data = data.to(device)
        self.recipe = recipe
        self.seed = seed
        self.device = torch.device(device)
        self.epoch = 0
        self.step = 0
        self.seconds = 0.0
        """Of training alone."""
        self.curve: list[tuple[int, str, float]] = []
        """Epoch, name and value of what was seen on the way: `train_loss` of each epoch, and all evaluations."""
        parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        if not parameters:
            raise TrainingFailure("the network has no parameters to train")
        if recipe.optimizer == "adamw":
            fused = self.device.type in ("cpu", "cuda") and all(p.dtype == torch.float32 for p in parameters)
            self.optimizer: torch.optim.Optimizer = torch.optim.AdamW(
                parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=fused
            )
        else:
            self.optimizer = torch.optim.SGD(
                parameters,
                lr=recipe.learning_rate,
                momentum=recipe.momentum,
                weight_decay=recipe.weight_decay,
                nesterov=recipe.momentum > 0,
            )
        self._precision: torch.dtype | None = None
        if recipe.mixed_precision and self.device.type == "cuda":
            self._precision = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
        self._scaler = torch.amp.GradScaler(self.device.type, enabled=self._precision == torch.float16)
        size = min(recipe.batch_size, len(data.train[0]))
        self._steps_per_epoch = len(data.train[0]) // size

    @property
    def is_done(self) -> bool:
        """All epochs of the recipe are done."""
        return self.epoch >= self.recipe.epochs

    def advance(self, epochs: int, deadline: float | None = None) -> None:
        """Trains to the end of epoch `epochs`.

        Raises `TrainingFailure` where the loss is no finite number, where memory is not enough, where a milestone is
        missed, or after `deadline` (of `time.monotonic`).
        """
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
                accuracy = self.evaluate()["accuracy"]
                if accuracy < least:
                    raise TrainingFailure(
                        f"missed a milestone: the accuracy after {self.epoch} epochs must be at least {least}, got "
                        f"{accuracy:.4f}"
                    )

    def _train_epoch(self, deadline: float | None) -> float:
        recipe, total = self.recipe, 0.0
        total_steps = self._steps_per_epoch * recipe.epochs
        self.network.train()
        shuffle = torch.Generator().manual_seed(seed_of(self.seed, "order", self.epoch))
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed_of(self.seed, "epoch", self.epoch))
            for inputs, classes in self.data.batches(recipe.batch_size, shuffle):
                rate = recipe.learning_rate * min(1.0, (self.step + 1) / max(1, recipe.warmup_steps))
                rate *= 0.5 * (1 + math.cos(math.pi * self.step / total_steps))
                value = self._step(inputs, classes, rate)
                if not math.isfinite(value):
                    raise TrainingFailure(f"the loss is {value} in step {self.step} of epoch {self.epoch}")
                total += value
                self.step += 1
                if deadline is not None and time.monotonic() > deadline:
                    raise TrainingFailure(f"the time was up in epoch {self.epoch + 1} of {recipe.epochs}")
        return total / self._steps_per_epoch

    def _step(self, inputs: torch.Tensor, classes: torch.Tensor, rate: float) -> float:
        """One step; its loss. Where that is no finite number, what the parameters are then does not matter."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with self._autocast():
            outputs = self.network(inputs)
            loss = functional.cross_entropy(outputs, classes, label_smoothing=self.recipe.label_smoothing)
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

    def _outputs(self, inputs: torch.Tensor) -> torch.Tensor:
        """What the network gives, in evaluation mode."""
        output: torch.Tensor = self.network(inputs).float()
        return output

    def _recalibrate(self) -> None:
        _recalibrate(self.network, self.data.train[0])

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if self._precision is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self._precision)

    def evaluate(self, split: str = "validation") -> dict[str, float]:
        """`accuracy` (0 to 1) and `loss` (cross entropy in nats) on a split."""
        return self.evaluate_on(getattr(self.data, split), split)

    def evaluate_on(self, part: Split, split: str) -> dict[str, float]:
        """`evaluate` of examples that are no part of the data, with a name for the curve."""
        if self.recipe.recalibrate:
            self._recalibrate()
        self.network.eval()
        correct, loss = 0, 0.0
        with torch.no_grad(), self._autocast():
            for start in range(0, len(part[0]), EVALUATION_BATCH):
                inputs, classes = part[0][start : start + EVALUATION_BATCH], part[1][start : start + EVALUATION_BATCH]
                outputs = self._outputs(inputs)
                correct += int((outputs.argmax(1) == classes).sum())
                loss += functional.cross_entropy(outputs, classes, reduction="sum").item()
        self.network.train()
        result = {"accuracy": correct / len(part[0]), "loss": loss / len(part[0])}
        if not math.isfinite(result["loss"]):
            raise TrainingFailure(f"the {split} loss is {result['loss']} after {self.epoch} epochs")
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
        found = {name: value for at, name, value in self.curve if at == epoch and name in ("accuracy", "loss")}
        return {**found, "epochs": epoch, "train_seconds": self.seconds * epoch / self.epoch} if len(found) == 2 else {}

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
