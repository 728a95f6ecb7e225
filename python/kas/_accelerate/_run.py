# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas.accelerate`: from a trained network and its data to a faster network that is as accurate."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from ..evaluate import Data, Task, TaskData
from ..evaluate._data_sets import load_any_data
from ..evaluate._probe import choose_task
from ..evaluate._task import Classification
from ._baselines import make_baselines
from ._contest import Contender, Job, Result, Row, Trainings, foresee, measure_times, rank, rank_for_time, report
from ._knapsack import Choice, find_front, thin_out
from ._learnt import add as add_learnt
from ._library import KEEP, Library
from ._outcome import Accelerated, FrontPoint
from ._peer import NAME as PEER
from ._peer import make_peer
from ._precision import ModelInPrecision, choose_precision, list_precisions, measure_precisions
from ._problem import Options, Problem, check_inputs
from ._progress import Clock, Reporter
from ._remote import Remote
from ._statistics import Drop, get_unit, summarize
from ._store import Store, digest_model
from ._times import time_calls

if TYPE_CHECKING:
    from ..distributed import Pool

FIRST, SECOND, KEPT = 4, 3, 2
"""How many choices of the front training begins with, how many are added, and how many are trained to the end."""
MOST_LOSS = {"classes": 0.5, "others": 1.0}
"""The largest predicted loss that training can make good: nats, or the square of errors over the variance."""
SEEDS = 2
"""Fresh seeds for the networks that are trained to the end."""
FEW = 0.25
"""Where less than this share of the time is left, fewer networks are trained, one of them to the end, with one seed."""
SHORT = 0.2
"""The share of a whole training that a network has before it is chosen."""
LEAST_STEPS, MOST_EPOCHS = 8, 24.0
"""Of a training: the steps that the shortest has, and the epochs of the longest."""
PATIENCE, CAUTION = 0.8, 1.3
"""What the drop after a short training is taken to shrink to; what it may grow to of a choice that is to hold."""
FILES, RESERVE = 6.0, 0.03
"""What is left for files, seconds, and against what is not foreseen, a share of the time."""


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
    task: Task | None = None,
    seed: int = 0,
    workers: int | None = None,
    pool: Pool[Any] | None = None,
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
    run at once, or those of a `pool` of `kas.distributed` with its `AccelerateJob`, on any number of machines;
    `precision` is what the network may compute in: f32, bf16, int8, or auto, the fastest that is within
    `max_drop`.

    `out` is a folder for the result: the network as PyTorch module, ONNX and object file with C header, a page, tables;
    it also keeps what was done, so that the same call goes on after Ctrl-C. `command` is what the page says to make it
    again.

    The result says what is best, also where that is not a network of kas. Raises `ValueError` and `TypeError` for data
    that do not fit, a non-numeric metric, and a model that cannot be compiled, with the layer that is the reason.
    """
    options = Options(
        max_drop, confidence, target, minutes, threads, batch, precision, seed, workers or len(os.sched_getaffinity(0))
    )
    clock = Clock(minutes)
    reporter = Reporter(clock, not progress)
    if isinstance(data, str):
        data = load_any_data(data)
    task = choose_task(task, data)
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
        problem.remote = None if pool is None else Remote(pool, reporter)
        return _Run(problem, command).execute(out)
    finally:
        store.close()


class _Run:
    def __init__(self, problem: Problem, command: str | None):
        self.problem, self.options, self.command = problem, problem.options, command
        self.model_in: dict[str, ModelInPrecision] = {}
        self.target_ms: float | None = None
        self.report_seconds = 0.0
        """What it takes to compile and to measure a network in one precision."""
        self.add_seconds = 0.0
        """What it takes to compile the first networks, and their trainings."""
        self.contenders: list[Contender] = []
        self.baselines: list[Contender] = []
        self.front: list[FrontPoint] = []
        self.results: list[Result] = []
        self.winner: Contender | None = None
        self.final: list[tuple[nn.Module, Drop]] = []
        self.first, self.second, self.kept, self.seeds = FIRST, SECOND, KEPT, SEEDS
        self.library: Library | None = None
        self.useful: list[Choice] = []

    def _measure_model(self) -> None:
        """The model in all precisions, and which of them networks are chosen in."""
        problem, start = self.problem, time.monotonic()
        self.model_in = found = measure_precisions(problem)
        self.report_seconds = (time.monotonic() - start) / max(1, len(found) - 1)
        problem.dense_ms = found["f32"].ms
        self.target_ms = self.options.get_target(problem.dense_ms)
        problem.precision = problem.store.remember("precision", lambda: choose_precision(problem, found))
        problem.base_ms = found[problem.precision].ms
        metric, unit = problem.task.metric, get_unit(problem.task)
        problem.reporter.message(
            f"the model: {metric} {problem.metrics[0][metric]:.4f} on validation, {problem.dense_ms:.4g} ms for "
            f"{self.options.batch} example{'s' * (self.options.batch > 1)} on {self.options.threads} "
            f"thread{'s' * (self.options.threads > 1)}"
        )
        for name, one in list(found.items())[1:]:
            problem.reporter.message(f"  with {name}: {one.ms:.4g} ms, drop {one.drop.value:+.2f} {unit}")
        problem.reporter.message(f"networks are chosen by their times in {problem.precision}")

    def execute(self, out: Any) -> Accelerated:
        complete = False
        try:
            self._measure_model()
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
            self.problem, self.results, self.front, complete, self.target_ms, self.command, self._get_operators()
        )
        if complete:
            self._keep_learnt(outcome)
        if complete and out is not None:
            outcome.save(out)
        self.problem.reporter.message(outcome.verdict)
        return outcome

    def _get_operators(self) -> dict[str, dict[str, Any]]:
        """Operators of the search in the networks that are shown."""
        shown = [*(one.layers for one in self.results), *(point.layers for point in self.front)]
        forms = {form for layers in shown for form in layers.values()}
        return {} if self.library is None else self.library.finder.describe(forms)

    def _keep_learnt(self, outcome: Accelerated) -> None:
        """Keeps the layers of what was taken for later runs, once."""
        best, step = outcome.best, "learnt layers are kept"
        if best is None or best.kind != "ours" or self.library is None or step in self.problem.store:
            return
        try:
            # The same in each call that goes on with the folder: a kill after the first of these lines keeps them once.
            run = self.problem.store.remember("run", lambda: uuid.uuid4().hex)
            add_learnt(self.library.list_learnt(best.layers, run))
            self.problem.store.put(step, True)
        except OSError as error:
            self.problem.reporter.message(f"the layers that won are not kept for other runs: {error}")

    # The search

    def _search(self) -> None:
        problem = self.problem
        self.library = Library(problem)
        self.library.build()
        front = find_front(self.library.get_place())
        limit = MOST_LOSS["classes" if isinstance(problem.task, Classification) else "others"]
        self.useful = [
            one for one in front if one.loss <= limit and self.library.predict_ms(one) <= 0.9 * problem.base_ms
        ]
        text = "of use" if self.useful else f"a tenth faster with a predicted loss of at most {limit:g}"
        problem.reporter.message(f"the front has {len(front)} networks, {len(self.useful)} {text}")
        if self._is_short("few networks"):
            self.first = min(2, FIRST)
        self.baselines = make_baselines(problem, self.library)
        measure_times(problem, self.baselines)
        trainings = Trainings(problem)
        start = time.monotonic()
        self._add(trainings, thin_out(self.useful, self.first))
        self.add_seconds = time.monotonic() - start
        trainings.prepare(self.baselines)
        if self._is_short("few trainings"):
            problem.reporter.message("the time is short: fewer networks are trained, with one seed (minutes=)")
            self.second, self.kept, self.seeds = 0, 1, 1
        self._train(trainings)

    def _is_short(self, step: str) -> bool:
        clock = self.problem.clock
        return bool(self.problem.store.remember(step, lambda: clock.left < FEW * clock.total))

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

    def _choose_next(self) -> list[Choice]:
        """Choices between the fastest network that may come to the limit and the slowest faster one that does not.

        Where none may, the slowest is taken for it: drops after a short training are not the last word.
        """
        assert self.library is not None
        known = {(one.predicted_ms, one.predicted_loss) for one in self.contenders}
        times = [self.library.predict_ms(one) for one in self.useful]
        low, high = 0.0, float("inf")
        if self.target_ms is not None:
            low, high = 0.7 * self.target_ms, 1.1 * self.target_ms
        else:
            good = [one for one in self.contenders if self._may_come(one, PATIENCE)]
            high = min((one.predicted_ms or 0.0 for one in good or self.contenders[-1:]), default=high)
            bad = [one for one in self.contenders if not self._may_come(one, PATIENCE)]
            low = max((one.predicted_ms or 0.0 for one in bad if (one.predicted_ms or 0.0) < high), default=low)
        between = [one for one, ms in zip(self.useful, times) if low <= ms <= high and (ms, one.loss) not in known]
        return thin_out(between, self.second)

    def _may_come(self, one: Contender, patience: float) -> bool:
        if one.drop is None or one.failure is not None:
            return False
        return foresee(one.drop, self.options.confidence, patience) <= self.options.max_drop

    # Trainings

    def _train(self, trainings: Trainings) -> None:
        store = self.problem.store
        whole = store.remember("epochs", lambda: self._plan(trainings))
        short = SHORT * whole
        self.problem.reporter.message(f"whole trainings have some {whole:.2g} epochs, the first ones {short:.2g}")
        self._advance(trainings, self.contenders, short, "training the first networks")
        added = self._add(trainings, self._choose_next())
        self._advance(trainings, added, short, "training networks near the limit")
        finalists = self._choose_finalists()
        jobs = [
            Job(one, 1000 + self.options.seed * SEEDS + number, 1.0)
            for one in finalists
            for number in range(self.seeds)
        ]
        # Baselines learn as long as what is taken has learnt in all.
        others = [Job(one, self.options.seed, 1.0) for one in self.baselines if one.failure is None]
        rest = store.remember("more epochs", lambda: self._plan_rest(trainings, [*jobs, *others], short))
        jobs = [job._replace(epochs=rest) for job in jobs]
        others = [job._replace(epochs=short + rest) for job in others]
        names = [f"{one.name} with {self.seeds} seed{'s' * (self.seeds > 1)}" for one in finalists]
        phase = f"training {', '.join([*names, 'the baselines'])}"
        left = self._left - self._predict_drops(trainings, len(jobs) + len(others))
        results = trainings.run([*jobs, *others], phase, max(left, trainings.predict_seconds([*jobs, *others])))
        trainings.take(others, results[len(jobs) :])
        self._take_final(jobs, results[: len(jobs)])
        self._say(self.baselines)

    def _advance(self, trainings: Trainings, contenders: list[Contender], epochs: float, phase: str) -> None:
        expected = trainings.predict_seconds([Job(one, 0, epochs) for one in contenders])
        trainings.advance(contenders, epochs, phase, 1.3 * expected)
        self._say(contenders)

    def _choose_finalists(self) -> list[Contender]:
        """The fastest that may come to the limit, then the fastest whose drop may grow."""
        order = self._rank(self.contenders, PATIENCE)
        finalists = order[:1]
        safe = [one for one in self._rank(self.contenders, CAUTION) if self._may_come(one, CAUTION)]
        return [*finalists, *(one for one in [*safe, *order] if one not in finalists)][: self.kept]

    def _rank(self, contenders: Sequence[Contender], patience: float) -> list[Contender]:
        if self.target_ms is not None:
            return rank_for_time(contenders, self.target_ms)
        return rank(contenders, self.options.max_drop, self.options.confidence, patience)

    def _say(self, contenders: Sequence[Contender]) -> None:
        for one in contenders:
            if one.drop is not None and one.failure is None:
                self.problem.reporter.message(
                    f"  {one.name}: {self.problem.dense_ms / one.ms:.2f} times as fast, drop {one.drop.value:+.2f} "
                    f"{get_unit(self.problem.task)} on validation after {one.epochs:.2g} epochs"
                )

    @property
    def _left(self) -> float:
        """The seconds for trainings."""
        return max(0.0, self.problem.clock.left - RESERVE * self.problem.clock.total - FILES - self._predict_report())

    def _predict_drops(self, trainings: Trainings, count: int) -> float:
        """The seconds for the drops of so many networks."""
        return count * (trainings.drop_seconds or 0.7 * self.report_seconds / self.options.workers)

    def _predict_report(self) -> float:
        """The seconds for what is reported."""
        # Ours with all seeds in one precision and with one in the others, the model in all precisions and by ONNX
        # Runtime, and baselines in two.
        count: float = self.seeds + 2 * len(self.model_in) + 2 * len(self.baselines)
        if self.problem.precision != "f32":
            # In the precision of the run all are compiled, and half of their data was seen, when drops were measured.
            count -= 0.6 * (self.seeds + len(self.baselines))
        return count * self.report_seconds / max(1, min(self.options.workers, len(self.model_in) - 1))

    def _plan(self, trainings: Trainings) -> float:
        """The epochs of a whole training for which all trainings fit into the time that is left."""
        slowest = sorted(self.contenders, key=lambda one: one.step_seconds, reverse=True)
        first = [Job(one, 0, SHORT) for one in slowest]
        last = [Job(one, 0, 1 - SHORT) for one in slowest[: self.kept] for _ in range(self.seeds)]
        last += [Job(one, 0, 1.0) for one in self.baselines]
        each = sum(map(trainings.predict_seconds, (first, first[: self.second], last)))
        # What is added is compiled, too.
        drops = self._predict_drops(trainings, len(first) + self.second + len(last))
        usable = self._left - self.add_seconds - drops
        epochs = min(MOST_EPOCHS, usable / each if each > 0 else MOST_EPOCHS)
        if epochs < 0.5:
            self.problem.reporter.message(
                f"the time is short: {each:.0f} s would do for trainings of one epoch, and {max(usable, 0):.0f} s are "
                "left (minutes=)"
            )
        return max(epochs, LEAST_STEPS / trainings.steps_of_epoch / SHORT)

    def _plan_rest(self, trainings: Trainings, jobs: Sequence[Job], short: float) -> float:
        """How many epochs more there is the time for."""
        each = trainings.predict_seconds(jobs)
        before = trainings.predict_seconds([job._replace(epochs=short) for job in jobs if job.one.kind != "ours"])
        usable = self._left - before - self._predict_drops(trainings, len(jobs))
        epochs = min((1 - SHORT) * MOST_EPOCHS, usable / each if each > 0 else MOST_EPOCHS)
        return max(epochs, LEAST_STEPS / trainings.steps_of_epoch)

    def _take_final(self, jobs: Sequence[Job], results: Sequence[tuple[nn.Module, Drop] | None]) -> None:
        """The first finalist whose drop holds with fresh seeds; else the one that comes nearest."""
        found: dict[str, tuple[Contender, list[tuple[nn.Module, Drop]]]] = {}
        for job, result in zip(jobs, results):
            if result is not None:
                found.setdefault(job.one.name, (job.one, []))[1].append(result)
        for one, networks in found.values():
            one.drop = summarize([drop for _, drop in networks])
            one.epochs += jobs[0].epochs
        self._say([one for one, _ in found.values()])
        if not found:
            return
        order = self._rank([one for one, _ in found.values()], 1.0)
        self.winner, self.final = found[order[0].name]

    # What is reported

    def _is_late(self) -> bool:
        """Whether the time does not do for a report of all."""
        return self.problem.clock.left < 0.5 * self._predict_report()

    def _list_rows(self, is_late: bool) -> list[Row]:
        """All networks: the model and ours in all precisions, others in f32 and ours.

        Where it is late, those that may be taken alone.
        """
        problem = self.problem
        short, every = dict.fromkeys(("f32", problem.precision)), list_precisions(self.options.precision)
        rows = [Row("the model", "dense", [problem.model], program=problem.program)]
        for one in self.baselines:
            if one.failure is None and one.drop is not None:
                for precision in [problem.precision] if is_late else short:
                    rows.append(Row(one.name, one.kind, [one.network], one.layers, precision))
        for name, model in self.model_in.items():
            if name != "f32":
                rows.append(Row("the model", "dense", [problem.model], {}, name, model.program))
        if "int8" in every and not is_late and (peer := make_peer(problem)) is not None:
            rows.append(Row(PEER, "peer", [problem.model], {}, "int8", peer))
        if self.winner is not None:
            # All seeds in the precision that they were chosen in; the best of them shows what others are like.
            networks = [network for network, _ in self.final]
            best = min(self.final, key=lambda one: one[1].value)[0]
            for precision in short if is_late else every:
                taken = networks if precision == problem.precision else [best]
                rows.append(Row("ours", "ours", taken, self.winner.layers, precision))
        return rows

    def _finish(self) -> None:
        """Measures all networks on validation and test data."""
        problem, rows = self.problem, self._list_rows(self._is_late())
        self.results = report(problem, rows)
        times = time_calls([one.program.run for one in self.results if one.program is not None], 8)
        for result, ms in zip(self.results, times):
            result.ms = ms
        problem.dense_ms = self.results[0].ms
