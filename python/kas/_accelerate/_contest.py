# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks that contend: their times, their trainings by successive halving, and which one is taken."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import nn

from .._errors import Error
from ..evaluate._training import TrainingFailure
from ._distill import Schedule, Steps, Teacher, choose_rate, compile_steps, train
from ._peer import PeerProgram
from ._problem import Measured, Problem
from ._remote import Distillation
from ._statistics import Drop, Outputs, compare, measure, predict, summarize
from ._times import Program, UntraceableError, time_calls


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
    """Compiles all networks that are not, in the precision of the run, and times them with the model, interleaved."""

    def work(one: Contender) -> None:
        try:
            if one.program is None:
                one.program = problem.compile(one.network, problem.precision)
        except (Error, UntraceableError) as error:
            one.failure = f"cannot be compiled: {' '.join(str(error).split())}"

    problem.map(work, list(contenders), "compiling networks")
    there = [one for one in contenders if one.program is not None]
    calls = [one.program.run for one in there if one.program is not None]
    step = f"times of {', '.join(f'{one.name} {one.layers}' for one in there)}"
    times = problem.store.remember(step, lambda: time_calls([problem.program.run, *calls])[1:])
    for one, ms in zip(there, times):
        one.ms = ms


class Job(NamedTuple):
    """A training that goes on from the weights that a contender has."""

    one: Contender
    seed: int
    epochs: float


class Trainings:
    """All trainings of a run, with the time that they take."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.teacher = Teacher(problem.model, problem.data, problem.program.predict)
        self.schedule = Schedule(1.0)
        data = problem.data
        size = min(self.schedule.batch_size, data.count(data.train))
        self.steps_of_epoch = data.num_batches(size)
        self.pace = 1.3
        """How long trainings took, over what single steps say: several at once, and what else there is to do."""
        self.drop_seconds = 0.0
        """How long it took for each network, on all workers, to compile it and to measure its drop."""

    def prepare(self, contenders: Sequence[Contender]) -> None:
        """Compiles the steps of each, and measures how long one takes."""

        def work(one: Contender) -> None:
            if one.steps is None and one.failure is None:
                one.steps = compile_steps(one.network, self.problem.data, self.problem.task, self.schedule)
                one.step_seconds = one.steps.measure(self.teacher)

        self.problem.map(work, list(contenders), "compiling trainings")

    def predict_seconds(self, jobs: Sequence[Job]) -> float:
        """Of trainings on all workers."""
        work = [self._get_work(job) for job in jobs]
        return self.pace * max(sum(work) / self.problem.num_learners, max(work, default=0.0))

    def _get_work(self, job: Job) -> float:
        return 0.0 if job.one.failure else job.one.step_seconds * self.steps_of_epoch * job.epochs

    def run(self, jobs: Sequence[Job], phase: str, seconds: float) -> list[tuple[nn.Module, Drop] | None]:
        """Networks that were trained, and their drops on validation data in the precision of the run.

        Trainings take `seconds` at most: where they are slower than expected, each ends a little earlier.
        """
        problem, start = self.problem, time.monotonic()
        problem.measured.clear()
        expected = self.predict_seconds(jobs)
        slack = seconds / expected * self.pace if expected > 0 else math.inf
        trained: list[float] = []

        def work(job: Job) -> nn.Module | None:
            one, step = job.one, self._get_step(job)
            if one.failure is not None:
                return None
            network = copy.deepcopy(one.network)
            if step in problem.store and problem.store.get_state(step, network):
                return network.eval()
            schedule = Schedule(job.epochs, learning_rate=choose_rate(one.predicted_loss))
            allowed = max(1.0, slack * self._get_work(job))
            try:
                found = train(
                    network, self.teacher, problem.task, schedule, job.seed, one.steps, allowed, problem.ending
                )
            except TrainingFailure as failure:
                one.failure = str(failure)
                return None
            trained.append(self._get_work(job))
            problem.store.put_state(step, found.network)
            problem.store.put(step, found.steps)
            return found.network

        def prepare(job: Job) -> Distillation | None:
            if job.one.failure is not None or self._get_step(job) in problem.store:
                return None
            schedule = Schedule(job.epochs, learning_rate=choose_rate(job.one.predicted_loss))
            return Distillation(job.one.network, schedule, job.seed, max(1.0, slack * self._get_work(job)))

        def finish(job: Job, answer: dict[str, Any]) -> None:
            if "failure" in answer:
                job.one.failure = answer["failure"]
                return
            network = copy.deepcopy(job.one.network)
            network.load_state_dict(answer["state"])
            trained.append(self._get_work(job))
            problem.store.put_state(self._get_step(job), network)
            problem.store.put(self._get_step(job), answer["steps"])

        if problem.remote is not None:
            problem.remote.map(jobs, phase, prepare, finish)
        networks = problem.map(work, list(jobs), phase)
        # What is compiled is traced: no module may be called meanwhile (`TRACING`), as trainings do.
        pairs = list(zip(jobs, networks))
        if len(trained) == len(jobs) and sum(trained) > 0:
            self.pace *= (time.monotonic() - start) / max(self.predict_seconds(jobs), 1e-9)
        start = time.monotonic()
        drops = problem.map(lambda pair: self._get_drop(*pair), pairs, "measuring drops")
        if trained:
            self.drop_seconds = (time.monotonic() - start) / len(pairs)
        return [None if drop is None else (network, drop) for network, drop in zip(networks, drops)]

    def _get_step(self, job: Job) -> str:
        return f"training {job.one.name}, {job.epochs:.4g} epochs from {job.one.epochs:.4g}, seed {job.seed}"

    def _get_drop(self, job: Job, network: nn.Module | None) -> Drop | None:
        """On validation data, in the precision of the run; None of what was not trained, or cannot be compiled."""
        if network is None:
            return None
        step = f"drop after {self._get_step(job)}"
        try:
            return Drop(*self.problem.store.remember(step, lambda: list(self._measure_drop(network))))
        except (Error, UntraceableError) as error:
            job.one.failure = f"cannot be compiled: {' '.join(str(error).split())}"
            return None

    def _measure_drop(self, network: nn.Module) -> Drop:
        problem = self.problem
        if problem.precision == "f32":
            return compare(problem.task, problem.validation, predict(network, problem.data, problem.data.validation))
        program = problem.compile(network, problem.precision)
        outputs = predict(program.predict, problem.data, problem.data.validation)
        problem.measured[id(network)] = Measured(network, program, outputs)
        return compare(problem.task, problem.validation, outputs)

    def advance(self, contenders: Sequence[Contender], epochs: float, phase: str, seconds: float) -> None:
        """Trains each contender further, with the seed of the choice."""
        jobs = [Job(one, self.problem.options.seed, epochs) for one in contenders]
        self.take(jobs, self.run(jobs, phase, seconds))

    def take(self, jobs: Sequence[Job], results: Sequence[tuple[nn.Module, Drop] | None]) -> None:
        """Gives contenders what came out of trainings, one for each."""
        for job, result in zip(jobs, results):
            if result is not None:
                job.one.network, job.one.drop = result
                job.one.epochs += job.epochs


def foresee(drop: Drop, confidence: float, patience: float) -> float:
    """The bound of a drop that shrinks to `patience` of it."""
    return patience * max(drop.value, 0.0) + drop.get_bound(confidence) - drop.value


def rank(contenders: Sequence[Contender], limit: float, confidence: float, patience: float) -> list[Contender]:
    """The most promising first: the fastest of those whose drop may still come to `limit`, then those that are nearest.

    A drop is taken to shrink to `patience` of it until the end of all trainings.
    """

    def get_key(one: Contender) -> tuple[float, float]:
        if one.failure is not None or one.drop is None:
            return math.inf, math.inf
        reached = foresee(one.drop, confidence, patience)
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
    program: Program | PeerProgram | None = None

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


@dataclass
class Row:
    """A network in one precision that is to be reported; of several ones, which differ in their seeds, the mean."""

    name: str
    kind: str
    networks: Sequence[nn.Module]
    layers: dict[str, str] = field(default_factory=dict)
    precision: str = "f32"
    program: Program | PeerProgram | None = None
    """Where there is one already."""


def report(problem: Problem, rows: Sequence[Row]) -> list[Result]:
    """Rows on validation and test data; one that cannot be compiled is left out. Times are measured later."""
    jobs = [(row, network) for row in rows for network in row.networks]

    def work(job: tuple[Row, nn.Module]) -> Result | None:
        row, network = job
        known = problem.measured.get(id(network)) if row.precision == problem.precision else None
        if known is not None:
            return _report(problem, row, network, known.program, known.outputs)
        try:
            program = row.program or problem.compile(network, row.precision)
        except (Error, UntraceableError, ValueError) as error:
            problem.reporter.message(f"{row.name} has no {row.precision}: {' '.join(str(error).split())[:200]}")
            return None
        return _report(problem, row, network, program)

    found = list(zip(jobs, problem.map(work, jobs, "measuring what is reported")))
    results = []
    for row in rows:
        own = [result for (one, _), result in found if one is row and result is not None]
        if own:
            results.append(_join(own))
    return results


def _report(
    problem: Problem,
    row: Row,
    network: nn.Module,
    program: Program | PeerProgram,
    validation: Outputs | None = None,
) -> Result:
    data, task = problem.data, problem.task
    outputs: tuple[Outputs, Outputs] = problem.validation, problem.test
    if program is not problem.program:
        validation = validation or predict(program.predict, data, data.validation)
        outputs = validation, predict(program.predict, data, data.test)
    parameters = count_parameters(network)
    return Result(
        row.name if row.precision == "f32" else f"{row.name}, {row.precision}",
        row.kind,
        row.precision,
        network,
        measure(task, outputs[1])[task.metric],
        compare(task, problem.test, outputs[1]),
        compare(task, problem.validation, outputs[0]),
        math.inf,
        parameters,
        parameters * {"f32": 4, "bf16": 2, "int8": 1}[row.precision] / 1e6,
        row.layers,
        program=program,
    )


def _join(results: Sequence[Result]) -> Result:
    """The mean of seeds; the network is the one that is best on validation data."""
    best = min(results, key=lambda one: one.validation.value)
    if len(results) > 1:
        drop, validation = (summarize([getattr(one, name) for one in results]) for name in ("drop", "validation"))
        best.metric = math.fsum(one.metric for one in results) / len(results)
        best.drop, best.validation, best.note = drop, validation, f"mean of {len(results)} seeds"
    return best
