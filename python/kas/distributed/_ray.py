# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workers that are actors of a Ray cluster."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Generic

from .._errors import need
from .._processes import describe
from ._driver import Outcome, Pool, RequestT
from ._local import Evaluator

ray = need("ray", "ray")


class _Evaluation(Generic[RequestT]):
    """The actor: evaluates one request after the other."""

    def __init__(self, evaluator: Evaluator[RequestT]):
        self.evaluator = evaluator

    def ready(self) -> None:
        """Answers as soon as the actor has a place."""

    def evaluate(self, request: RequestT) -> tuple[dict[str, float] | None, str | None]:
        # What the evaluator raises may not be picklable.
        try:
            return dict(self.evaluator(request)), None
        except Exception as error:
            return None, describe(error)


class _Worker:
    def __init__(self, actor: Any):
        self.actor = actor
        self.ready = actor.ready.remote()
        self.is_ready = False
        self.tasks: deque[int] = deque()


class RayPool(Pool[RequestT]):
    """`workers` actors, each with `num_cpus` and `num_gpus` (also fractions) and further `resources`.

    Connects to the cluster at `address` ("auto": the one that this machine is in; None: the one that this process is
    connected to, or else one on this machine). Actors that have no place yet wait for one: Ray's autoscaler sees that.
    One that is gone, with its node or alone, is made again wherever there is room. Each worker has `prefetch` further
    queued tasks. Actors end with this process.
    """

    def __init__(
        self,
        evaluator: Evaluator[RequestT],
        workers: int,
        *,
        num_cpus: float = 1,
        num_gpus: float = 0,
        resources: Mapping[str, float] | None = None,
        address: str | None = None,
        prefetch: int = 1,
    ):
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise ValueError(f"the number of workers must be a positive integer, got {workers!r}")
        if not ray.is_initialized():
            ray.init(address=address, logging_level=logging.WARNING, log_to_driver=False)
        options = {"num_cpus": num_cpus, "num_gpus": num_gpus, "resources": dict(resources or {}), "max_restarts": 0}
        self._class = ray.remote(**options)(_Evaluation)
        # Once for all actors, however large it is.
        self._evaluator = ray.put(evaluator)
        self._depth = 1 + prefetch
        self._workers = [self._make() for _ in range(workers)]
        self._pending: dict[Any, tuple[int, _Worker]] = {}
        self._references: dict[int, Any] = {}
        self._outcomes: list[Outcome] = []

    def _make(self) -> _Worker:
        return _Worker(self._class.remote(self._evaluator))

    def get_capacity(self) -> int:
        return self._depth * sum(worker.is_ready for worker in self._workers)

    def submit(self, task: int, request: RequestT) -> None:
        ready = [worker for worker in self._workers if worker.is_ready]
        # The last one may have gone since the driver read the capacity.
        worker = min(ready or self._workers, key=lambda worker: len(worker.tasks))
        worker.tasks.append(task)
        reference = worker.actor.evaluate.remote(request)
        self._pending[reference] = (task, worker)
        self._references[task] = reference

    def wait(self, seconds: float) -> list[Outcome]:
        starting = {worker.ready: worker for worker in self._workers if not worker.is_ready}
        waiting = [*self._pending, *starting]
        if waiting:
            timeout = 0 if self._outcomes else seconds
            done, _ = ray.wait(waiting, num_returns=1, timeout=timeout, fetch_local=True)
            if done:
                # Whatever else is there, too.
                done, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0, fetch_local=True)
            for reference in done:
                if reference in starting:
                    self._take_ready(starting[reference])
                else:
                    self._take(reference)
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def _take_ready(self, worker: _Worker) -> None:
        try:
            ray.get(worker.ready)
            worker.is_ready = True
        except ray.exceptions.RayError as error:
            if "creation task" in str(error):
                raise RuntimeError(
                    "the evaluator cannot be loaded on the workers: its modules must be importable on every node, as "
                    f"must kas ({str(error).strip().splitlines()[-1]})"
                ) from error
            self._replace(worker, error)

    def _take(self, reference: Any) -> None:
        if reference not in self._pending:
            return
        task, worker = self._pending[reference]
        try:
            metrics, error = ray.get(reference)
        except ray.exceptions.RayError as gone:
            # The actor has all its tasks with it.
            self._replace(worker, gone)
            return
        self._forget(task)
        self._outcomes.append(Outcome(task, metrics=metrics, error=error))

    def _forget(self, task: int) -> None:
        reference = self._references.pop(task, None)
        if reference is not None:
            _, worker = self._pending.pop(reference)
            worker.tasks.remove(task)

    def _replace(self, worker: _Worker, reason: Exception | None = None) -> None:
        if worker not in self._workers:
            return
        text = f"{type(reason).__name__}: {str(reason).splitlines()[0]}" if reason else "the worker was ended"
        for index, task in enumerate(list(worker.tasks)):
            self._forget(task)
            self._outcomes.append(Outcome(task, lost=text, begun=worker.is_ready and index == 0))
        ray.kill(worker.actor)
        self._workers[self._workers.index(worker)] = self._make()

    def cancel(self, task: int, *, kill: bool) -> None:
        reference = self._references.get(task)
        if reference is None:
            return
        _, worker = self._pending[reference]
        running = worker.tasks[0] == task
        self._forget(task)
        if running and kill:
            self._replace(worker)
        else:
            # A task that has not begun does not begin; one that runs is waited for.
            ray.cancel(reference)

    def close(self) -> None:
        for worker in self._workers:
            ray.kill(worker.actor)
        self._workers = []
