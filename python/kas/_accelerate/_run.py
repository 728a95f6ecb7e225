# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas.accelerate`: from a trained network and its data to a faster network that is as accurate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from torch import nn

from .._errors import Error
from ..evaluate import Data, Task, TaskData
from ..evaluate._data_sets import load_any_data
from ..evaluate._training import CLASSIFICATION
from ._baselines import make_baselines
from ._contest import Contender, Result, Trainings, measure_times, rank, rank_for_time, report
from ._knapsack import Choice, find_front, thin_out
from ._library import KEEP, Library
from ._outcome import Accelerated, FrontPoint
from ._problem import Options, Problem, check_inputs, repeat_to
from ._progress import Clock, Reporter
from ._statistics import Drop, is_share, summarize
from ._store import Store, digest_model
from ._times import UntraceableError, compile_network, time_calls

FIRST, SECOND, KEPT = 4, 4, 3
"""How many choices of the front training begins with, how many are added, and how many are trained further."""
MOST_LOSS = {"classes": 2.0, "others": 1.0}
"""The largest predicted loss that training can make good: nats, or the square of errors over the variance."""
SEEDS = 2
"""Fresh seeds for the network that is taken."""
SHORT, LONG = 0.25, 0.5
"""The shares of the epochs of a whole training that the two rungs have."""
MOST_EPOCHS = 24
PATIENCE = 0.5, 0.8
"""What drops are taken to shrink to after each rung."""
RESERVE = 0.12
"""The share of the time for what comes after trainings: precisions, times and files."""


def accelerate(
    model: nn.Module,
    data: str | Data | TaskData,
    *,
    max_drop: float = 0.5,
    confidence: float = 0.5,
    target: float | str | None = None,
    minutes: float = 15.0,
    threads: int = 1,
    batch: int = 1,
    precision: str = "auto",
    task: Task = CLASSIFICATION,
    seed: int = 0,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    command: str | None = None,
    progress: bool = True,
) -> Accelerated:
    """Makes a trained network faster on this machine, at an accuracy that is given, or more accurate at a given time.

    `model` is the trained torch.nn.Module, `data` a `kas.evaluate.Data`, a `kas.evaluate.TaskData` with its `task`, or
    the name of a data set: its training part teaches, its validation part chooses, its test part is measured at the
    end, once for each network.

    `max_drop` is how much the metric of the task may lose: points (hundredths) of accuracy, percent of any other
    metric. It is compared with what was measured on the validation data, or, with a `confidence` of more than 0.5, with
    the (one-sided) bound that has this confidence. With a `target`, milliseconds (`"0.5ms"`) or how many times as fast
    (`"3x"`), the most accurate network that is fast enough is taken instead. Times are those of a call with `batch`
    examples on `threads` threads. `minutes` is the time for all of it, in which `workers` (as many as cores) trainings
    run at once. `precision` is what the network may compute in: f32, bf16, int8, or auto, the fastest that is within
    `max_drop`.

    `out` is a folder for the result: the network as PyTorch module, ONNX and object file with C header, a page, tables;
    it also keeps what was done, so that the same call goes on after Ctrl-C. `command` is what the page says to make it
    again.

    The result says what is best, also where that is not a network of kas. Raises `ValueError` and `TypeError` for data
    that do not fit, a metric that is no number, and a model that cannot be compiled, with the layer that is the reason.
    """
    options = Options(
        max_drop, confidence, target, minutes, threads, batch, precision, seed, workers or len(os.sched_getaffinity(0))
    )
    clock = Clock(minutes)
    reporter = Reporter(clock, not progress)
    if isinstance(data, str):
        data = load_any_data(data)
    check_inputs(model, data, task)
    settings = {
        "model": digest_model(model),
        "data": data.describe(),
        "task": task.describe(),
        "options": f"threads={threads} batch={batch} seed={seed}",
    }
    store = Store(out, settings)
    try:
        problem = Problem(model, data, task, options, store, clock, reporter)
        return _Run(problem, command).execute(out)
    finally:
        store.close()


class _Run:
    def __init__(self, problem: Problem, command: str | None):
        self.problem, self.options, self.command = problem, problem.options, command
        problem.dense_ms = self._time_dense()
        self.target_ms = self.options.get_target(problem.dense_ms)
        self.contenders: list[Contender] = []
        self.baselines: list[Contender] = []
        self.front: list[FrontPoint] = []
        self.results: list[Result] = []
        self.winner: Contender | None = None
        self.final: list[tuple[nn.Module, Drop]] = []
        self.library: Library | None = None
        self.useful: list[Choice] = []

    def _time_dense(self) -> float:
        ms: float = self.problem.store.remember("dense ms", lambda: time_calls([self.problem.program.run], 10)[0])
        metric = self.problem.task.metric
        self.problem.reporter.message(
            f"the model: {metric} {self.problem.metrics[0][metric]:.4f} on validation, {ms:.4g} ms for "
            f"{self.options.batch} example{'s' * (self.options.batch > 1)} on {self.options.threads} "
            f"thread{'s' * (self.options.threads > 1)}"
        )
        return ms

    def execute(self, out: Any) -> Accelerated:
        complete = False
        try:
            self._search()
            complete = True
        except KeyboardInterrupt:
            where = (
                "the same call with a folder (out=) goes on"
                if self.problem.store.is_temporary
                else (f"the same call with '{out}' goes on")
            )
            self.problem.reporter.message(f"interrupted: {where}")
        if complete or self.results:
            self._finish()
        outcome = Accelerated(
            self.problem, self.results, self.front, complete, self.target_ms, self.command, self._get_reached()
        )
        if complete and out is not None:
            outcome.save(out)
        self.problem.reporter.message(outcome.verdict)
        return outcome

    # The search

    def _search(self) -> None:
        problem = self.problem
        self.library = Library(problem)
        self.library.build()
        front = find_front(self.library.get_place())
        limit = MOST_LOSS["classes" if is_share(problem.task) else "others"]
        self.useful = [
            one for one in front if one.loss <= limit and self.library.predict_ms(one) <= 0.8 * problem.dense_ms
        ]
        problem.reporter.message(f"the front has {len(front)} networks, {len(self.useful)} of use")
        self.baselines = make_baselines(problem, self.library)
        measure_times(problem, self.baselines)
        trainings = Trainings(problem)
        self._add(trainings, thin_out(self.useful, FIRST))
        trainings.prepare(self.baselines)
        self._train(trainings)

    def _add(self, trainings: Trainings, choices: Sequence[Choice]) -> list[Contender]:
        """Networks for choices of the front, compiled and timed."""
        assert self.library is not None
        added: list[Contender] = []
        for choice in choices:
            contender = Contender(
                f"front-{len(self.contenders) + len(added)}", "ours", self.library.put(choice.options)
            )
            contender.layers = {option.place: option.name for option in choice.options if option.name != KEEP}
            contender.predicted_ms, contender.predicted_loss = self.library.predict_ms(choice), choice.loss
            added.append(contender)
        measure_times(self.problem, added)
        trainings.prepare(added)
        for one in added:
            self.front.append(
                FrontPoint(one.name, one.predicted_ms or 0.0, one.predicted_loss or 0.0, one.layers, one.ms)
            )
        self.contenders += added
        return added

    def _choose_next(self, patience: float) -> list[Choice]:
        """Choices between the fastest network that may come to the limit and the slowest faster one that does not."""
        assert self.library is not None
        known = {(one.predicted_ms, one.predicted_loss) for one in self.contenders}
        times = [self.library.predict_ms(one) for one in self.useful]
        low, high = 0.0, float("inf")
        if self.target_ms is not None:
            low, high = 0.7 * self.target_ms, 1.1 * self.target_ms
        else:
            good = [one for one in self.contenders if self._may_come(one, patience)]
            high = min((one.predicted_ms or 0.0 for one in good), default=high)
            bad = [one for one in self.contenders if not self._may_come(one, patience)]
            low = max((one.predicted_ms or 0.0 for one in bad if (one.predicted_ms or 0.0) < high), default=low)
        between = [one for one, ms in zip(self.useful, times) if low <= ms <= high and (ms, one.loss) not in known]
        return thin_out(between, SECOND)

    def _may_come(self, one: Contender, patience: float) -> bool:
        return one.drop is not None and one.failure is None and patience * one.drop.value <= self.options.max_drop

    # Trainings

    def _train(self, trainings: Trainings) -> None:
        problem = self.problem
        epochs: int = problem.store.remember("epochs", lambda: self._plan(trainings))
        problem.reporter.message(f"whole trainings have {epochs:g} epochs")
        short, long = (max(1, round(share * epochs)) for share in (SHORT, LONG))
        trainings.advance(self.contenders, short, "training the first networks")
        self._say(self.contenders)
        added = self._add(trainings, self._choose_next(PATIENCE[0]))
        trainings.advance(added, short, "training networks near the limit")
        self._say(added)
        alive = self._rank(self.contenders, PATIENCE[0])[:KEPT]
        trainings.advance(alive, long, "training the best further")
        self._say(alive)
        order = self._rank(alive, PATIENCE[1]) or alive
        self._train_final(trainings, order, epochs)
        trainings.advance(self.baselines, epochs, "training the baselines")
        self._say(self.baselines)

    def _rank(self, contenders: Sequence[Contender], patience: float) -> list[Contender]:
        if self.target_ms is not None:
            return rank_for_time(contenders, self.target_ms)
        return rank(contenders, self.options.max_drop, self.options.confidence, patience)

    def _say(self, contenders: Sequence[Contender]) -> None:
        for one in contenders:
            if one.drop is not None and one.failure is None:
                self.problem.reporter.message(
                    f"  {one.name}: {self.problem.dense_ms / one.ms:.2f} times as fast, drop {one.drop.value:+.2f} on "
                    f"validation after {one.epochs:g} epochs"
                )

    def _plan(self, trainings: Trainings) -> int:
        """The epochs of a whole training for which all trainings fit into the time that is left."""
        usable = self.problem.clock.left - RESERVE * self.problem.clock.total
        seconds = 0.0
        for epochs in range(MOST_EPOCHS, 0, -1):
            slowest = sorted(self.contenders, key=lambda one: one.step_seconds, reverse=True)
            short, long = (max(1, round(share * epochs)) for share in (SHORT, LONG))
            seconds = trainings.predict_seconds([*slowest, *slowest[:SECOND]], short)
            seconds += trainings.predict_seconds(slowest[:KEPT], long)
            seconds += trainings.predict_seconds(slowest[:1] * SEEDS, epochs)
            seconds += trainings.predict_seconds(self.baselines, epochs)
            if seconds <= usable:
                return epochs
        self.problem.reporter.message(
            f"the time is short: trainings of one epoch take some {seconds:.0f} s, and {max(usable, 0):.0f} s are left"
        )
        return 1

    def _train_final(self, trainings: Trainings, order: Sequence[Contender], epochs: float) -> None:
        """The first in the order whose drop holds with fresh seeds; else the one that comes nearest."""
        tried: list[tuple[Contender, list[tuple[nn.Module, Drop]]]] = []
        for one in order[:2]:
            jobs = [(one, 1000 + self.options.seed * SEEDS + number) for number in range(SEEDS)]
            found = [each for each in trainings.run(jobs, epochs, f"training {one.name} with fresh seeds") if each]
            if not found:
                continue
            tried.append((one, found))
            drop = summarize([each[1] for each in found])
            one.drop = drop
            self._say([one])
            if self.target_ms is not None or drop.get_bound(self.options.confidence) <= self.options.max_drop:
                break
            if self.problem.clock.left < RESERVE * self.problem.clock.total:
                break
        if not tried:
            return
        within = [pair for pair in tried if summarize([each[1] for each in pair[1]]).value <= self.options.max_drop]
        self.winner, self.final = (
            (within or tried)[0]
            if self.target_ms is not None or within
            else min(tried, key=lambda pair: summarize([each[1] for each in pair[1]]).value)
        )

    def _get_reached(self) -> bool:
        ours = [one for one in self.results if one.kind == "ours"]
        if self.target_ms is not None:
            return any(one.ms <= self.target_ms for one in ours)
        limit, confidence = self.options.max_drop, self.options.confidence
        return any(one.validation.get_bound(confidence) <= limit and one.ms < self.problem.dense_ms for one in ours)

    # What is reported

    def _finish(self) -> None:
        problem = self.problem
        dense = report(problem, "the model", "dense", problem.model, {}, "f32", problem.program)
        results = [dense]
        for one in self.baselines:
            if one.failure is None and one.drop is not None:
                results.append(self._report(one, one.network, "f32"))
        if self.winner is not None:
            results += self._report_winner()
        results += self._report_precisions(dense)
        times = time_calls([one.program.run for one in results if one.program is not None], 8)
        for result, ms in zip(results, times):
            result.ms = ms
        problem.dense_ms = dense.ms
        self.results = results

    def _report(self, one: Contender, network: nn.Module, precision: str) -> Result:
        program = compile_network(network, self.problem.batch, self.options.threads)
        return report(self.problem, one.name, one.kind, network, one.layers, precision, program)

    def _report_winner(self) -> list[Result]:
        """The network of the fresh seed that is best on validation data; its metric is the mean of the seeds."""
        assert self.winner is not None
        results = [self._report(self.winner, network, "f32") for network, _ in self.final]
        best = max(results, key=lambda one: -one.validation.value)
        best.drop = summarize([one.drop for one in results])
        best.metric = sum(one.metric for one in results) / len(results)
        best.name = "ours"
        best.note = f"mean of {len(results)} fresh seeds" if len(results) > 1 else ""
        return [best]

    def _report_precisions(self, dense: Result) -> list[Result]:
        """The model and the network that was taken in int8 and bf16, as far as requested."""
        problem, results = self.problem, []
        wanted = {"auto": ("bf16", "int8")}.get(self.options.precision, (self.options.precision,))
        sources: list[tuple[str, str, nn.Module, dict[str, str]]] = [("the model", "dense", problem.model, {})]
        if self.winner is not None and self.final:
            best = min(self.final, key=lambda pair: pair[1].value)[0]
            sources.append(("ours", "ours", best, self.winner.layers))
        for name, kind, network, layers in sources:
            for precision in wanted:
                if precision == "f32":
                    continue
                try:
                    program = compile_network(
                        network, problem.batch, self.options.threads, precision, self._get_calibration()
                    )
                except (Error, UntraceableError, ValueError) as error:
                    problem.reporter.message(f"{name} has no {precision}: {' '.join(str(error).split())[:200]}")
                    continue
                results.append(report(problem, f"{name}, {precision}", kind, network, layers, precision, program))
        return results

    def _get_calibration(self, examples: int = 64) -> list[Any]:
        found: list[Any] = []
        size = self.options.batch
        for inputs, _ in self.problem.data.in_order(self.problem.data.validation, size):
            found.append(repeat_to(inputs, size))
            if len(found) * size >= examples:
                break
        return found
