# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas.search`: from a network and its data to operators that take the place of its layers.

The engine proposes operators, processes train the network with them by successive halving, and one SQLite file keeps
everything: the same call goes on where it was interrupted.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict

from . import _kas
from ._errors import Error, need

need("torch", "torch")

from torch import nn

from ._module import Binding
from ._progress import Progress, make_progress
from ._search import Candidate, Searcher, SearchSpace
from ._search_baselines import GivenBaselines, SearchBaseline, number_baselines
from ._search_outcome import Budget, SearchCallback, SearchOutcome, Trained
from ._search_setup import check_objective, fit_limits, get_names, make_trainer
from .evaluate import Data, Recipe, Task, TaskData, Trainer
from .evaluate._halving import Halving
from .evaluate._latency import measure_latency, measure_own_latency
from .evaluate._task import NetworkFactory
from .evaluate._trainer import summarize
from .evaluate._workers import Done, Job, Pool
from .torch._sites import LayerChoice

if TYPE_CHECKING:
    from .distributed import TrainingPool


def search(
    model: nn.Module | NetworkFactory,
    data: str | Data | TaskData = "digits",
    budget: Any = "15m",
    *,
    task: Task | None = None,
    space: str | SearchSpace | None = None,
    sites: LayerChoice | None = None,
    limits: Mapping[str, float | Sequence[str | int] | None] = {},
    binding: Binding = None,
    recipe: Recipe = Recipe(),
    algorithm: str = "surrogate",
    parameters: Mapping[str, float] = {},
    objective: str | None = None,
    halving: Halving = Halving(),
    translation_equivariant: bool = False,
    flops_ratio: float = 0.5,
    min_flops_ratio: float = 0.1,
    seed: int = 0,
    final: int = 5,
    final_seeds: int = 3,
    latency: bool = False,
    baselines: GivenBaselines = (),
    database: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    inherit: bool = False,
    backend: str = "pytorch",
    device: str = "cpu",
    progress: bool | str = True,
    callbacks: Sequence[SearchCallback] = (),
    pool: Pool | TrainingPool | None = None,
    settings: Mapping[str, str] = {},
) -> SearchOutcome:
    """Looks for operators that make a network as accurate at a lower cost.

    `model` is a torch.nn.Module, `data` a `kas.evaluate.Data` or the name of one, `budget` a `kas.Budget`, a number of
    seconds, or text such as `15m`. The layers of `space` are replaced (a name of `kas.torch.extract`, or a
    `kas.SearchSpace` for these layers, such as one with other limits; without it, the kind with the most FLOPs), all
    of them by one operator, with at most `flops_ratio` and at least `min_flops_ratio` of their FLOPs. `sites` are those
    that may be replaced (all): names of modules, patterns such as `blocks.*.mlp*`, or a predicate of the name and the
    module. `limits` are limits of the space in place of those that extraction wrote, e.g. `{"shift": 0}`;
    `{"sees": None}` takes one away (docs/reference/dialect.md, `kas.space`). `translation_equivariant` leaves out
    operators whose weights depend on a position, and those that move data by position.

    `task` is what networks are trained for (docs/guide/own-tasks.md), by default that of the data, else classification.
    Another one has its loss, metrics, optimizer, steps and data (a `kas.evaluate.TaskData`), and its metric takes the
    place of the accuracy. `model` may be a function that makes the network: see `kas.evaluate.Trainer`.

    Candidates come from the engine (`algorithm`, `parameters`, `seed`; docs/guide/searching.md), which minimizes
    `objective`, a weighted sum of metrics (accuracy, loss, flops, params, flops_ratio, latency_ms; by default the
    metric of the task: `-accuracy`). They are trained by `recipe` under `halving`, each with seed 0, by `workers`
    processes (as many as cores, or those of `pool`). Afterwards the `final` most accurate are trained whole with
    `final_seeds` seeds, as is the network itself; `test_accuracy` is measured there only. With `latency` those are also
    compiled and timed; an objective with `latency_ms` has that done with every candidate. Trainings that need more than
    `time_limit` seconds (by default ten times as many CPU seconds as the network itself) or `memory_limit` MiB, or
    whose loss is NaN, are failures. A budget of time includes everything, the trainings of the network itself and
    the final round, too: what is about to pass it is stopped, and what it is too short for is said. ValueError where it
    does not do for one training of the network itself.

    `baselines` are what candidates are compared with beside the network itself: names of operators of the library,
    operators and sequences, in a list or by name. They are trained as the network itself is, kept in the database, and
    never among the candidates; sequences are not timed.

    All layers of candidates begin as `seed` draws them, as the network itself does where it is compared with, also
    where `model` has been trained. With `inherit` the layers that stay keep the weights of `model`, and only those that
    take the place of others are new: for a network that was trained, or with `kas.accelerate`, which always does so.

    `database` is a file that keeps everything. Ctrl-C ends the search with the outcome so far, and the same call goes
    on (with a larger budget also one that is complete). With one worker and no limit of time, equal calls give equal
    results. `settings` are further texts that must be the same to go on, such as the version of a loss.

    Raises `ValueError` and `TypeError` for a model without such layers, data that do not fit it, and wrong options;
    `kas.Error` for a space without operators and a database of another search.
    """
    budget = Budget.of(budget)
    for name, value, low in (("final", final, 0), ("final_seeds", final_seeds, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise ValueError(f"'{name}' must be an integer of at least {low}, got {value!r}")
    if not isinstance(halving, Halving):
        raise TypeError(f"'halving' must be a kas.Halving, got {type(halving).__name__}")
    if workers is not None and workers < 1:
        raise ValueError(f"'workers' must be at least 1, got {workers}")
    if not 0 <= min_flops_ratio <= flops_ratio:
        raise ValueError(f"requires 0 <= min_flops_ratio <= flops_ratio, got {min_flops_ratio} and {flops_ratio}")
    trainer = make_trainer(
        model, data, recipe, task, space, sites, binding, flops_ratio, min_flops_ratio, inherit, backend, device
    )
    objective = trainer.task.objective if objective is None else objective
    check_objective(objective, trainer.metrics)
    if translation_equivariant:
        limits = {**limits, "weights_by_position": 0, "equivariant": 1}
    problem = space if isinstance(space, SearchSpace) else fit_limits(trainer.sites.spaces[trainer.space], limits)
    decisive = {**trainer.describe(), "halving": repr(halving), **settings}
    if sites is not None:
        decisive["sites"] = ", ".join(sorted(site.name for site in trainer.replaced))
    if translation_equivariant:
        decisive["translation_equivariant"] = "True"
    if workers is None:
        workers = len(os.sched_getaffinity(0)) if device == "cpu" else 1
    with contextlib.ExitStack() as stack:
        searcher = stack.enter_context(
            Searcher(
                problem,
                algorithm,
                seed=seed,
                database=database,
                objective=objective,
                parameters=parameters,
                settings=decisive,
            )
        )
        if pool is None:
            pool = stack.enter_context(Pool(trainer, workers, memory_limit=memory_limit))
        count = pool.idle + pool.busy
        most = None if budget.candidates is None else math.ceil(budget.candidates)
        plan = halving.make_plan(recipe.epochs, count, final, final_seeds, most, budget.epochs)
        run = _Run(trainer, problem, searcher, pool, budget, plan, halving.size, objective, callbacks)
        run.baselines = number_baselines(baselines, problem, dict(trainer.binding or {}), searcher)
        run.translation_equivariant, run.time_limit = translation_equivariant, time_limit
        run.final, run.final_seeds, run.latency = final, final_seeds, latency
        run.progress = stack.enter_context(make_progress(progress))
        return run.execute()


class _Limits(TypedDict, total=False):
    """Of a `Job`."""

    time_limit: float
    cpu_limit: float


_OVER = "the budget of time is over"
"""Why a training was not begun."""


class _Run:
    """One call of `search`."""

    progress: Progress
    translation_equivariant = False
    final, final_seeds, latency = 5, 3, False
    time_limit: float | None = None

    def __init__(
        self,
        trainer: Trainer,
        problem: SearchSpace,
        searcher: Searcher,
        pool: Pool | TrainingPool,
        budget: Budget,
        plan: _kas.TrainingPlan,
        bracket_size: int,
        objective: str,
        callbacks: Sequence[SearchCallback],
    ):
        self.trainer, self.problem, self.searcher, self.pool = trainer, problem, searcher, pool
        self.budget, self.plan, self.bracket_size = budget, plan, bracket_size
        self.objective = objective
        self.callbacks = callbacks
        self.start = time.monotonic()
        # Those in training, and their metrics at the last rung.
        self.training: dict[int, Candidate] = {}
        self.reached: dict[int, dict[str, float]] = {}
        self.exhausted = False
        self.final_metrics: dict[int, dict[str, float]] = {}
        self.baselines: list[SearchBaseline] = []
        # Of the network itself (-1) and of the baselines by number, the trainings by seed.
        self.baseline_runs: dict[int, dict[int, dict[str, float]]] = {-1: {}}
        self.baseline_failures: dict[int, str] = {}
        self.baseline_metrics: dict[int, dict[str, float]] = {}
        self._dense_seconds: list[float] = []
        self._has_cpu_seconds = trainer.device == "cpu"
        # Candidates below were proposed by an earlier call.
        self.first_new = searcher.statistics["asked"]
        self.baseline_flops = float(sum(site.flops for site in trainer.replaced))
        # Trainings that pause; next to the database they survive the process.
        self.own_folder = searcher.database is None
        self.folder = tempfile.mkdtemp(prefix="kas-search-") if self.own_folder else f"{searcher.database}.trainings"
        os.makedirs(self.folder, exist_ok=True)

    # Running

    def execute(self) -> SearchOutcome:
        complete = False
        try:
            self._restore()
            self._train_baselines()
            self._search()
            self._explain_nothing()
            self._train_finalists()
            complete = True
        except KeyboardInterrupt:
            self.progress.message("interrupted: the same call with a database goes on")
        finally:
            if self.own_folder or (complete and not self.searcher.in_flight):
                shutil.rmtree(self.folder, ignore_errors=True)
        outcome = self.outcome(complete)
        self.progress.finish(outcome)
        return outcome

    def _restore(self) -> None:
        if self.searcher.database is None:
            return
        for id, result in self.searcher.finals.items():
            self.final_metrics[id] = dict(result.metrics)
        last: dict[tuple[int, int], dict[str, tuple[int, float]]] = {}
        for candidate, seed, epoch, name, value in self.searcher.training:
            if candidate < 0:
                last.setdefault((candidate, seed), {})[name] = (epoch, value)
        for (number, seed), values in last.items():
            if f"test_{self.trainer.task.metric}" not in values:
                continue
            run = {name: value for name, (_, value) in values.items()}
            self.baseline_runs.setdefault(number, {})[seed] = run
            if "latency_ms" in run:
                self.baseline_metrics.setdefault(number, {})["latency_ms"] = run["latency_ms"]
            if number == -1:
                epochs, seconds = values.get("train_seconds", (0, 0.0))
                self._dense_seconds.append(seconds)
                self.plan.learn(epochs, seconds)

    def _record(self, done: Done) -> None:
        if done.metrics is not None:
            if self.searcher.database is not None:
                # CPU seconds where they are known.
                seconds = (
                    int(done.metrics["epochs"]),
                    "train_seconds",
                    done.seconds if done.cpu_seconds is None else done.cpu_seconds,
                )
                self.searcher.record_training(done.job.candidate, done.job.seed, [*done.curve, seconds])
            for callback in self.callbacks:
                callback.epoch(done.job.candidate, done.job.seed, int(done.metrics["epochs"]), done.metrics)

    def _run_jobs(self, jobs: list[Job], what: str, ended: Callable[[Done], None]) -> None:
        """All of them, as long as the budget of time is not over; nothing else runs meanwhile."""
        count = 0
        waiting = list(jobs)
        while waiting or self.pool.busy:
            while waiting and self.pool.idle and self._get_time_left() > 0:
                self.pool.submit(self._within_budget(waiting.pop(0)))
            if waiting and self._get_time_left() <= 0:
                for job in waiting:
                    ended(Done(job, None, [], _OVER, 0.0))
                waiting.clear()
            for done in self.pool.wait(0.2) if self.pool.busy else ():
                ended(done)
                count += 1
            self._show(f"{what} {count}/{len(jobs)}")

    def _is_cut(self, done: Done) -> bool:
        """Whether the end of the budget is why a training failed."""
        limit = math.inf if done.job.time_limit is None else done.job.time_limit
        return self._get_time_left() <= 0 and (done.failure == _OVER or done.seconds >= limit)

    def _check_budget(self) -> None:
        """Says what a training of the network itself takes; ValueError where the budget of time does not do for one."""
        if self.budget.seconds is None or self.plan.has_learned():
            return
        epochs = self.trainer.recipe.epochs
        self._run_jobs([Job(-1, None, epochs=1)], "the first epoch", self._learn_cost)
        predicted, left = self.plan.predict(epochs), self._get_time_left()
        # It may end as it can where it may be in time.
        if predicted > 1.5 * left:
            self._refuse_budget(predicted)
        self.progress.message(
            f"a training of the network itself, {epochs} epochs, takes about {predicted:.3g} s; the budget has "
            f"{left:.3g} s left"
        )

    def _learn_cost(self, done: Done) -> None:
        """What whole trainings take, from one epoch: the same, but for what comes with each job."""
        if done.metrics is None:
            if self._is_cut(done):
                self._refuse_budget(None)
            raise ValueError(f"the network itself cannot be trained: {done.failure}")
        epochs, epoch = self.trainer.recipe.epochs, done.metrics["train_seconds"]
        self.plan.learn(1, done.seconds)
        self.plan.learn(epochs, done.seconds + (epochs - 1) * epoch)

    def _refuse_budget(self, predicted: float | None) -> NoReturn:
        takes = "an epoch takes longer" if predicted is None else f"some {predicted:.3g} s"
        raise ValueError(
            f"requires a budget of time for a training of the network itself ({takes}) and for those of candidates, "
            f"got {self.budget.seconds:.3g} s"
        )

    def _get_time_left(self) -> float:
        """Of the budget, in seconds."""
        return math.inf if self.budget.seconds is None else self.budget.seconds - (time.monotonic() - self.start)

    def _within_budget(self, job: Job) -> Job:
        """The job with a limit of what is left."""
        left = self._get_time_left()
        if math.isinf(left):
            return job
        limits = [limit for limit in (job.time_limit, self.time_limit, max(0.0, left)) if limit is not None]
        return replace(job, time_limit=min(limits))

    def _count_baseline_seeds(self, others: int) -> int:
        """How many trainings of each baseline there is a third of the budget of time for; at least one."""
        number = self.plan.count_baseline_seeds(1 + others, self._get_time_left())
        if number < self.final_seeds:
            self.progress.message(
                f"the network itself is trained {number} and not {self.final_seeds} times: the budget is short"
            )
        return number

    def _train_baselines(self) -> None:
        """The network itself, then the other baselines; what fails of these is said and left out."""
        self._check_budget()
        texts: dict[int, str | None] = {-1: None, **{one.number: one.text for one in self.baselines}}
        names = {one.number: one.name for one in self.baselines}
        jobs = [
            Job(number, text, seed, test=True)
            for number, text in texts.items()
            for seed in range(self._count_baseline_seeds(len(names)))
            if seed not in self.baseline_runs.get(number, {})
        ]

        def ended(done: Done) -> None:
            self._record(done)
            number = done.job.candidate
            if done.metrics is None and number == -1:
                is_cut = self._is_cut(done)
                if is_cut and not self.baseline_runs[-1]:
                    self._refuse_budget(self.plan.predict(self.trainer.recipe.epochs))
                if not is_cut:
                    raise ValueError(f"the network itself cannot be trained: {done.failure}")
                return
            if done.metrics is None:
                if number not in self.baseline_failures:
                    self.progress.message(f"the baseline '{names[number]}' cannot be trained: {done.failure}")
                self.baseline_failures[number] = done.failure or ""
                return
            self.baseline_runs.setdefault(number, {})[done.job.seed] = done.metrics
            if number == -1:
                self._has_cpu_seconds = done.cpu_seconds is not None
                self._dense_seconds.append(done.seconds if done.cpu_seconds is None else done.cpu_seconds)
                self.plan.learn(int(done.metrics["epochs"]), done.seconds)

        self._run_jobs(jobs, "training the baselines" if names else "training the network itself", ended)
        self._measure_baselines()

    def _measure_baselines(self) -> None:
        """Their costs, and their latency where that of candidates is measured."""
        problem, extra = self.problem, dict(self.trainer.binding or {})
        is_timed = self.latency or "latency_ms" in get_names(self.objective)
        for one in self.baselines:
            costs = one.count_costs(problem, extra)
            costs["flops_ratio"] = costs["flops"] / self.baseline_flops
            self.baseline_metrics.setdefault(one.number, {}).update(costs)
        every: dict[int, SearchBaseline | None] = {-1: None, **{one.number: one for one in self.baselines}}
        for number, baseline in every.items():
            metrics = self.baseline_metrics.setdefault(number, {})
            if is_timed and "latency_ms" not in metrics:
                latency = baseline.measure_latency(problem, extra) if baseline else measure_own_latency(problem)
                metrics.update({} if latency is None else {"latency_ms": latency})
            if self.searcher.database is not None and metrics:
                curve = [(self.trainer.recipe.epochs, name, value) for name, value in metrics.items()]
                self.searcher.record_training(number, 0, curve)

    def _summarize_baseline(self, number: int) -> dict[str, float]:
        """Means over the seeds."""
        return self._summarize(list(self.baseline_runs.get(number, {}).values()))

    def _summarize(self, runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """The means of the metrics of the task."""
        names = (*self.trainer.metrics, *(f"test_{name}" for name in self.trainer.test_metrics))
        chosen = [{name: run[name] for name in names} for run in runs]
        return summarize(chosen, self.trainer.deviating) if chosen else {}

    # The search

    def _get_seconds_left(self) -> float:
        """Of the budget, without what the final round takes of those that were trained to the end so far."""
        return self._get_time_left() - self.plan.predict_final(self._num_whole())

    def _num_whole(self) -> int:
        return sum(r.metrics.get("epochs") == self.trainer.recipe.epochs for r in self.searcher.results)

    def _open_bracket(self) -> None:
        """As many candidates as the budget has room for."""
        state = self._get_time_left(), self.searcher.num_results, self._num_whole()
        chosen: list[int] = []
        known: list[tuple[int, int, float]] = []
        while not self.exhausted and len(chosen) < self.plan.get_room(*state, len(known)):
            candidates = self.searcher.ask(1)
            if not candidates:
                self.exhausted = True
                break
            candidate = candidates[0]
            if self.translation_equivariant and candidate.weights_indexed_by_position:
                # Only a space that the caller made may have such candidates.
                self._tell(candidate, None, "its weights are indexed by a position")
                continue
            if not chosen:
                known = self._outcomes_before(candidate.id)
            chosen.append(candidate.id)
            self.training[candidate.id] = candidate
        if chosen:
            self.plan.open(chosen, known)

    def _outcomes_before(self, id: int) -> list[tuple[int, int, float]]:
        """Of the bracket that an interruption left with `id` as its first without an outcome, those that have one."""
        first = id - id % self.bracket_size
        if id >= self.first_new:
            return []
        score = self.trainer.task.score
        return [
            (r.id, int(r.metrics.get("epochs", 0)), score(r.metrics) if r.metrics else -math.inf)
            for r in self.searcher.results
            if first <= r.id < first + self.bracket_size
        ]

    def _checkpoint(self, candidate: Candidate) -> str:
        return os.path.join(self.folder, f"{candidate.id}-{candidate.key}.pt")

    def _next_job(self) -> Job | None:
        work = self.plan.take()
        if work is None:
            self._open_bracket()
            work = self.plan.take()
        if work is None:
            return None
        candidate = self.training[work[0]]
        epochs = None if work[1] == self.trainer.recipe.epochs else work[1]
        return Job(candidate.id, candidate.text, 0, epochs, self._checkpoint(candidate), **self._limits(epochs))

    def _limits(self, epochs: int | None) -> _Limits:
        """Limits of a job to the end of an epoch. Two CPU seconds are always allowed, for the start."""
        if self.time_limit is not None:
            return {"time_limit": self.time_limit}
        if not self._dense_seconds:
            return {}
        share = (epochs or self.trainer.recipe.epochs) / self.trainer.recipe.epochs
        seconds = 2 + 10 * share * statistics.fmean(self._dense_seconds)
        if not self._has_cpu_seconds:
            return {"time_limit": seconds}
        # What hangs uses no CPU.
        return {"cpu_limit": seconds, "time_limit": 60 + 20 * seconds}

    def _search(self) -> None:
        while True:
            late = self._get_seconds_left() <= 0
            while self.pool.idle and not late:
                job = self._next_job()
                if job is None:
                    break
                self.pool.submit(job)
            if late:
                # Nobody is to wait for what takes long; with a database the next call takes it up.
                self.pool.cancel()
            if not self.pool.busy:
                break
            for done in self.pool.wait(0.2):
                self._finish_job(done)
            self._show("searching")

    def _explain_nothing(self) -> None:
        """Says how much time candidates need where the budget had none for them."""
        if self.searcher.results or self.exhausted or self.budget.seconds is None:
            return
        needed = self.plan.predict_brackets(1) + self.plan.predict_final(1)
        self.progress.message(
            f"no candidate was trained: one and its final trainings take about {needed:.3g} s beside the network "
            f"itself, and of the budget of {self.budget.seconds:.3g} s were too few left"
        )

    def _finish_job(self, done: Done) -> None:
        self._record(done)
        id = done.job.candidate
        if done.metrics is None:
            self.reached.pop(id, None)
            self._tell(self.training.pop(id), None, done.failure)
            out = self.plan.fail(id)
        else:
            self.reached[id] = done.metrics
            score = self.trainer.task.score(done.metrics)
            out = self.plan.finish(id, int(done.metrics["epochs"]), score, done.seconds)
        for one in out:
            self._tell(self.training.pop(one), self.reached.pop(one), None)

    def _tell(self, candidate: Candidate, metrics: dict[str, float] | None, failure: str | None) -> None:
        if metrics is not None and "latency_ms" in get_names(self.objective):
            try:
                metrics = {**metrics, "latency_ms": measure_latency(candidate.operator, self.problem)}
            except Error as error:
                metrics, failure = None, f"its latency cannot be measured: {error}"
        if metrics is None:
            result = self.searcher.tell(candidate.id, error=failure)
        else:
            result = self.searcher.tell(candidate.id, {**metrics, "flops_ratio": candidate.flops / self.baseline_flops})
        path = self._checkpoint(candidate)
        if os.path.exists(path):
            os.remove(path)
        for callback in self.callbacks:
            callback.candidate(Trained(candidate, result.metrics, result.failure))

    # The final round

    def _train_finalists(self) -> None:
        whole = [r for r in self.searcher.results if r.metrics.get("epochs") == self.trainer.recipe.epochs]
        whole.sort(key=lambda r: (-self.trainer.task.score(r.metrics), r.id))
        chosen = [r for r in whole[: self.final] if r.id not in self.final_metrics]
        limits = self._limits(None)
        jobs = [
            Job(r.id, r.candidate.text, seed, test=True, **limits) for r in chosen for seed in range(self.final_seeds)
        ]
        runs: dict[int, list[Done]] = {result.id: [] for result in chosen}
        candidates = {result.id: result.candidate for result in chosen}
        start = time.monotonic()

        def ended(done: Done) -> None:
            self._record(done)
            own = runs[done.job.candidate]
            own.append(done)
            if len(own) == self.final_seeds:
                self._finish_finalist(candidates[done.job.candidate], own, start)

        self._run_jobs(jobs, "final trainings", ended)

    def _finish_finalist(self, candidate: Candidate, runs: list[Done], start: float) -> None:
        metrics = [run.metrics for run in runs if run.metrics is not None]
        # What the end of the budget has stopped says nothing about the candidate: fewer trainings are reported.
        if any(run.metrics is None and not self._is_cut(run) for run in runs):
            self._record_final(candidate.id, None, "a training failed", start)
            return
        if not metrics:
            return
        summary = self._summarize(metrics)
        if self.latency:
            summary["latency_ms"] = measure_latency(candidate.operator, self.problem)
        self._record_final(candidate.id, {f"final_{name}": value for name, value in summary.items()}, None, start)

    def _record_final(self, id: int, metrics: dict[str, float] | None, failure: str | None, start: float) -> None:
        self.final_metrics[id] = metrics or {}
        if self.searcher.database is not None:
            self.searcher.record_final(id, metrics, error=failure, seconds=time.monotonic() - start)

    # What is said

    def outcome(self, complete: bool) -> SearchOutcome:
        trained = [
            Trained(r.candidate, {**r.metrics, **self.final_metrics.get(r.id, {})}, r.failure)
            for r in self.searcher.results
        ]
        baselines = {
            one.name: {**self._summarize_baseline(one.number), **self.baseline_metrics.get(one.number, {})}
            for one in self.baselines
            if one.number not in self.baseline_failures
        }
        dense = self._summarize_baseline(-1)
        return SearchOutcome(self.trainer, self.searcher.database, trained, dense, complete, baselines)

    def _show(self, phase: str) -> None:
        if self.progress.is_due():
            seconds = time.monotonic() - self.start
            self.progress.show(phase, self.outcome(False), seconds, self.budget, self.plan.get_effort())
