# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imitations and trainings of a run on workers anywhere: what is sent, what a worker does, and the loop between.

A worker does what the process of the run would do, and the run keeps its answers in its store, in which it then finds
them: with workers and without, equal calls decide the same.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
from torch import nn

from ..evaluate._probe import choose_task
from ..evaluate._training import TrainingFailure
from ._distill import Schedule, Teacher, draw_inputs, train
from ._imitation import Seen, imitate, observe_units
from ._problem import compile_model, get_batch
from ._units import Unit

if TYPE_CHECKING:
    from ..distributed import Pool
    from ._progress import Reporter

T = TypeVar("T")
RETRIES = 2
"""How many workers a job may lose."""


class Worker:
    """The model and its data at a worker, with what jobs have in common."""

    def __init__(self, model: nn.Module, data: Any, task: Any, threads: int, batch: int):
        torch.set_num_threads(1)
        self.model = copy.deepcopy(model).eval().cpu().requires_grad_(False)
        self.data, self.task, self.threads, self.batch = data, choose_task(task, data), threads, batch
        self._seen: tuple[Any, Seen] | None = None

    @cached_property
    def teacher(self) -> Teacher:
        """The compiled model."""
        program = compile_model(self.model, get_batch(self.data, self.batch), self.threads)
        return Teacher(self.model, self.data, program.predict)

    def observe(self, unit: Unit, examples: int) -> Seen:
        """What a layer sees; that of the last one is kept, since jobs come by layers."""
        if self._seen is None or self._seen[0] != (unit, examples):
            inputs = draw_inputs(self.data, examples, min(64, examples))
            self._seen = (unit, examples), observe_units(self.model, [unit], inputs)[unit.name]
        return self._seen[1]


class Job(Protocol):
    """What a worker is to do."""

    def run(self, worker: Worker) -> dict[str, Any]:
        """The answer."""


@dataclass
class Imitation:
    """An alternative that learns what the layer does: its tensors, and the error that is left."""

    module: nn.Module
    unit: Unit
    examples: int
    steps: int
    seed: int

    def run(self, worker: Worker) -> dict[str, Any]:
        """`state`, `error`, and the `seconds` that it took."""
        seen, start = worker.observe(self.unit, self.examples), time.monotonic()
        error = imitate(self.module, seen, self.steps, self.seed)
        return {"state": self.module.state_dict(), "error": error, "seconds": time.monotonic() - start}


@dataclass
class Distillation:
    """A network that learns the outputs of the model."""

    network: nn.Module
    schedule: Schedule
    seed: int
    seconds: float

    def run(self, worker: Worker) -> dict[str, Any]:
        """`state` and `steps`, or the reason of a failure."""
        try:
            found = train(self.network, worker.teacher, worker.task, self.schedule, self.seed, None, self.seconds)
        except TrainingFailure as failure:
            return {"failure": str(failure)}
        return {"state": found.network.state_dict(), "steps": found.steps}


class Remote:
    """The workers of a run."""

    def __init__(self, pool: Pool[Job], reporter: Reporter):
        self.pool, self.reporter = pool, reporter
        self._next = 0

    @property
    def count(self) -> int:
        """How many jobs run at once."""
        return max(1, self.pool.get_capacity())

    def map(
        self,
        items: Sequence[T],
        phase: str,
        prepare: Callable[[T], Job | None],
        finish: Callable[[T, dict[str, Any]], None],
    ) -> None:
        """Lets workers do the jobs of items, those that `prepare` gives one for when there is a worker for it.

        A job whose worker is gone is given to another one. What a worker raises is a `RuntimeError`.
        """
        waiting: deque[tuple[T, Job | None, int]] = deque((item, None, 0) for item in items)
        running: dict[int, tuple[T, Job, int]] = {}
        done = 0
        try:
            while waiting or running:
                while waiting and len(running) < self.pool.get_capacity():
                    item, job, losses = waiting.popleft()
                    job = job or prepare(item)
                    if job is None:
                        done += 1
                        continue
                    task, self._next = self._next, self._next + 1
                    running[task] = item, job, losses
                    self.pool.submit(task, job)
                self.reporter.show(phase, done, len(items))
                for outcome in self.pool.wait(0.2) if waiting or running else []:
                    if outcome.task not in running:
                        continue
                    item, job, losses = running.pop(outcome.task)
                    losses += outcome.lost is not None and outcome.begun
                    if outcome.lost is not None and losses <= RETRIES:
                        waiting.appendleft((item, job, losses))
                        continue
                    if outcome.metrics is None:
                        raise RuntimeError(f"a worker could not go on: {outcome.error or outcome.lost}")
                    finish(item, dict(outcome.metrics))
                    done += 1
        finally:
            for task in running:
                self.pool.cancel(task, kill=True)
