# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The queue of trainings: each is one line of the store, and goes on after its last whole epoch when it was killed."""

from __future__ import annotations

import base64
import fcntl
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from torch import nn

import kas.torch  # noqa: F401 - registers the backend
from kas.evaluate import Recipe, RelativeError, Training, TrainingFailure
from kas.evaluate._fields import get_relative_errors
from kas.evaluate._task_data import TaskData
from kas.evaluate._training import seed_of

from ..protocol._store import Store
from ._families import Network, set_by_matrix, set_statistics
from ._protocol import Job, Protocol


class _CompiledRelativeError(RelativeError):
    """The task, with steps that kas compiles. Evaluations are PyTorch's: they have batches of other sizes."""

    def __init__(self, network: nn.Module):
        # Graphs of other networks count as other inputs of the same code, of which there may be few.
        torch._dynamo.reset()
        self._compiled = torch.compile(network, backend="kas", dynamic=False)

    def training_step(self, training: Training, inputs: Any, targets: Any) -> float:
        """One step; see `Task.training_step`."""
        return training.descend(self.loss(self._compiled(inputs), targets))


class Trainer:
    """Trains jobs one after another; the data of an equation are loaded once.

    Checkpoints lie in `folder`, each until its training is in the store.
    """

    def __init__(self, protocol: Protocol, store: Store, folder: str | os.PathLike[str]):
        self.protocol, self.store = protocol, store
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._data: dict[str, TaskData] = {}

    def get_data(self, equation: str) -> TaskData:
        """The data of an equation."""
        if equation not in self._data:
            self._data[equation] = self.protocol.equations[equation].load()
        return self._data[equation]

    def start(self, job: Job) -> Training:
        """A training that has not begun."""
        data = self.get_data(job.equation)
        network = self.protocol.make_network(job.equation, job.family, job.width, seed_of(job.seed, "weights"))
        set_statistics(network, data.train[1])
        set_by_matrix(network, True)
        steps = job.epochs * data.num_batches(self.protocol.batch_size)
        recipe = Recipe(
            epochs=job.epochs,
            batch_size=self.protocol.batch_size,
            learning_rate=job.learning_rate,
            weight_decay=self.protocol.weight_decay,
            warmup_steps=round(self.protocol.warmup * steps),
        )
        return Training(network, data, recipe, job.seed, task=_CompiledRelativeError(network))

    def run(self, jobs: Iterable[Job], progress: Callable[[dict[str, Any], int], None] | None = None) -> None:
        """Trains what the store does not have; several processes may do so at once with one folder.

        `progress` gets each record, and how many jobs are left.
        """
        known = set(self.store.read_trainings())
        waiting = [job for job in jobs if self.protocol.key(job) not in known]
        for left, job in zip(range(len(waiting) - 1, -1, -1), waiting):
            with self._lock(job) as is_mine:
                if not is_mine or self.protocol.key(job) in self.store.read_trainings():
                    continue
                record = self.train(job)
                self.store.add(record)
                self.forget(job)
            if progress is not None:
                progress(record, left)

    def train(self, job: Job) -> dict[str, Any]:
        """The record of a training: settings, `failure`, or errors in percent."""
        record: dict[str, Any] = {
            "kind": "training",
            "key": self.protocol.key(job),
            "settings": self.protocol.settings(job),
            "time": round(time.time()),
            "failure": None,
        }
        try:
            record.update(self.train_network(job)[1])
        except (TrainingFailure, MemoryError) as failure:
            record["failure"] = " ".join(str(failure).split()) or type(failure).__name__
        return record

    def train_network(self, job: Job) -> tuple[Network, dict[str, Any]]:
        """A trained network, and its errors in percent."""
        training = self.start(job)
        self._advance(training, job)
        record = self._evaluate(training)
        network = training.network
        assert isinstance(network, Network)
        return network, record

    def _advance(self, training: Training, job: Job) -> None:
        """To the end, with a checkpoint after each epoch."""
        path = self._get_checkpoint(job)
        if path.exists():
            training.load(path)
        while not training.is_done:
            start = time.process_time()
            training.advance(training.epoch + 1)
            training.curve.append((training.epoch, "cpu_seconds", time.process_time() - start))
            training.save(path)

    def _evaluate(self, training: Training) -> dict[str, Any]:
        curves: dict[str, list[float]] = {"train_loss": [], "cpu_seconds": []}
        for _, name, value in training.curve:
            curves[name].append(value)
        validation = training.evaluate()["relative_error"]
        training.network.eval()
        errors = []
        with torch.no_grad():
            for inputs, targets in training.data.in_order(training.data.test, 50):
                errors.append(get_relative_errors(training.network(inputs), targets))
        percent = 100 * torch.cat(errors).double()
        return {
            "parameters": sum(parameter.numel() for parameter in training.network.parameters()),
            "cpu_seconds": round(sum(curves["cpu_seconds"]), 1),
            "curve": [round(100 * value, 3) for value in curves["train_loss"]],
            "validation": round(100 * validation, 5),
            "error": round(float(percent.mean()), 5),
            "errors": pack(percent.numpy()),
        }

    def forget(self, job: Job) -> None:
        """Drops the checkpoint of a training whose result is kept."""
        self._get_checkpoint(job).unlink(missing_ok=True)

    def _get_checkpoint(self, job: Job) -> pathlib.Path:
        return self.folder / f"{self.protocol.key(job)}.pt"

    @contextmanager
    def _lock(self, job: Job) -> Iterator[bool]:
        """Whether no other process has the job."""
        path = self._get_checkpoint(job).with_suffix(".lock")
        with open(path, "w", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
            path.unlink(missing_ok=True)


def pack(values: numpy.ndarray) -> str:
    """Numbers of three digits as text: the bytes of float16, little-endian, in base 64."""
    return base64.b64encode(values.astype("<f2").tobytes()).decode()


def unpack(text: str) -> numpy.ndarray:
    """The numbers of `pack`."""
    return numpy.frombuffer(base64.b64decode(text), "<f2").astype(numpy.float64)
