# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks that contend: their times, their trainings by successive halving, and which one is taken."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from .._errors import Error
from ..evaluate._training import TrainingFailure
from ._distill import Schedule, Steps, Teacher, compile_steps, train
from ._problem import Problem
from ._statistics import Drop, Outputs, compare, measure, predict
from ._times import Program, UntraceableError, compile_network, time_calls

KEEP = 0.5
"""The share of the contenders that a rung keeps."""


@dataclass
class Contender:
    """One network on its way."""

    name: str
    kind: str
    """`ours`, or the baseline that it is."""
    network: nn.Module
    layers: dict[str, str] = field(default_factory=dict)
    """What took the place of which layer."""
    predicted_loss: float | None = None
    predicted_ms: float | None = None
    ms: float = math.inf
    program: Program | None = None
    steps: Steps | None = None
    step_seconds: float = 0.0
    drop: Drop | None = None
    """On the validation data, after the last training."""
    failure: str | None = None
    epochs: float = 0.0

    def is_within(self, limit: float, confidence: float) -> bool:
        """Whether the drop is at most `limit`."""
        return self.drop is not None and self.drop.get_bound(confidence) <= limit


def measure_times(problem: Problem, contenders: Sequence[Contender]) -> None:
    """Compiles all networks that are not, and times them in turn, beside the model."""
    for number, one in enumerate(contenders):
        problem.reporter.show("compiling networks", number, len(contenders))
        try:
            if one.program is None:
                one.program = compile_network(one.network, problem.batch, problem.options.threads)
        except (Error, UntraceableError) as error:
            one.failure = f"cannot be compiled: {' '.join(str(error).split())}"
    there = [one for one in contenders if one.program is not None]
    calls = [one.program.run for one in there if one.program is not None]
    step = f"times of {', '.join(f'{one.name} {one.layers}' for one in there)}"
    times = problem.store.remember(step, lambda: time_calls([problem.program.run, *calls])[1:])
    for one, ms in zip(there, times):
        one.ms = ms


class Trainings:
    """All trainings of a run, with the time that they take."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.teacher = Teacher(problem.model, problem.data, problem.program.predict)
        self.schedule = Schedule(1.0)
        data = problem.data
        size = min(self.schedule.batch_size, data.count(data.train))
        self.steps_of_epoch = data.num_batches(size)

    def prepare(self, contenders: Sequence[Contender]) -> None:
        """Compiles the steps of each, and measures how long one takes."""
        self.teacher.prepare()

        def work(one: Contender) -> None:
            if one.steps is None and one.failure is None:
                one.steps = compile_steps(one.network, self.problem.data, self.problem.task, self.schedule)
                one.step_seconds = one.steps.measure(self.teacher)

        self.problem.map(work, list(contenders), "compiling trainings")

    def predict_seconds(self, contenders: Sequence[Contender], epochs: float) -> float:
        """Of trainings of all of them, on all workers."""
        work = [one.step_seconds * self.steps_of_epoch * epochs for one in contenders if one.failure is None]
        return max(sum(work) / self.problem.options.workers, max(work, default=0.0))

    def run(
        self, jobs: Sequence[tuple[Contender, int]], epochs: float, phase: str
    ) -> list[tuple[nn.Module, Drop] | None]:
        """A training of so many epochs for each contender and seed: networks, and their drops on validation data."""
        problem = self.problem
        schedule = Schedule(epochs)

        def work(job: tuple[Contender, int]) -> tuple[nn.Module, Drop] | None:
            one, seed = job
            if one.failure is not None:
                return None
            step = f"training {one.name}, {epochs:g} epochs from {one.epochs:g}, seed {seed}"
            network = copy.deepcopy(one.network)
            if step in problem.store and problem.store.get_state(step, network):
                return network.eval(), Drop(*problem.store[step])
            try:
                network = train(one.network, self.teacher, problem.task, schedule, seed, one.steps).network
            except TrainingFailure as failure:
                one.failure = str(failure)
                return None
            drop = compare(problem.task, problem.validation, predict(network, problem.data, problem.data.validation))
            problem.store.put_state(step, network)
            problem.store.put(step, list(drop))
            return network, drop

        return problem.map(work, list(jobs), phase)

    def advance(self, contenders: Sequence[Contender], epochs: float, phase: str) -> None:
        """Trains each contender further, with the seed of the choice."""
        results = self.run([(one, self.problem.options.seed) for one in contenders], epochs, phase)
        for one, result in zip(contenders, results):
            if result is not None:
                one.network, one.drop = result
                one.epochs += epochs


def rank(contenders: Sequence[Contender], limit: float, confidence: float, patience: float) -> list[Contender]:
    """The most promising first: the fastest of those whose drop may still come to `limit`, then those that are nearest.

    A drop is taken to shrink to `patience` of it until the end of all trainings.
    """

    def get_key(one: Contender) -> tuple[float, float]:
        if one.failure is not None or one.drop is None:
            return math.inf, math.inf
        reached = max(one.drop.value, 0.0) * patience
        return (0.0, one.ms) if reached <= limit else (reached, one.ms)

    return sorted((one for one in contenders if one.failure is None), key=get_key)


def rank_for_time(contenders: Sequence[Contender], target_ms: float) -> list[Contender]:
    """The most accurate of those that are fast enough first, then the fastest."""

    def get_key(one: Contender) -> tuple[int, float]:
        if one.ms <= target_ms:
            return 0, math.inf if one.drop is None else one.drop.value
        return 1, one.ms

    return sorted((one for one in contenders if one.failure is None), key=get_key)


@dataclass
class Result:
    """A network as it is reported, on data that nothing was chosen by."""

    name: str
    kind: str
    precision: str
    network: nn.Module | None
    metric: float
    """Of the task, on the test data; of several seeds the mean."""
    drop: Drop
    """On the test data."""
    validation: Drop
    ms: float
    parameters: int
    megabytes: float
    layers: dict[str, str] = field(default_factory=dict)
    note: str = ""
    program: Program | None = None

    def to_json(self) -> dict[str, Any]:
        """All but the network."""
        return {
            "name": self.name,
            "kind": self.kind,
            "precision": self.precision,
            "metric": self.metric,
            "drop": self.drop.value,
            "drop_low": self.drop.low,
            "drop_high": self.drop.high,
            "validation_drop": self.validation.value,
            "ms": self.ms,
            "parameters": self.parameters,
            "megabytes": self.megabytes,
            "layers": self.layers,
            "note": self.note,
        }


def count_parameters(network: nn.Module) -> int:
    """The elements of the parameters."""
    return sum(parameter.numel() for parameter in network.parameters())


def report(
    problem: Problem, name: str, kind: str, network: nn.Module, layers: dict[str, str], precision: str, program: Program
) -> Result:
    """A program of a network on validation and test data; its time is measured later."""
    data, task = problem.data, problem.task
    outputs: list[Outputs] = [predict(program.predict, data, part) for part in (data.validation, data.test)]
    parameters = count_parameters(network)
    return Result(
        name,
        kind,
        precision,
        network,
        measure(task, outputs[1])[task.metric],
        compare(task, problem.test, outputs[1]),
        compare(task, problem.validation, outputs[0]),
        math.inf,
        parameters,
        parameters * {"f32": 4, "bf16": 2, "int8": 1}[precision] / 1e6,
        layers,
        program=program,
    )
