# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workers that are processes of this machine."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import pickle
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeAlias

from ._driver import Outcome, Pool, RequestT

Evaluator: TypeAlias = Callable[[RequestT], Mapping[str, Any]]
"""From a request, a `kas.Request` for `run`, to metrics."""


def describe(error: BaseException) -> str:
    """The reason of a failure, in one line."""
    return f"{type(error).__name__}: {error}".strip(": ")


def _work(evaluator: Evaluator[RequestT], connection: Any) -> None:
    while (message := connection.recv()) is not None:
        task, request = message
        try:
            connection.send(Outcome(task, metrics=dict(evaluator(request))))
        except Exception as error:
            connection.send(Outcome(task, error=describe(error)))


class _Worker(Generic[RequestT]):
    """A process, and the tasks that it was given."""

    def __init__(self, context: Any, evaluator: Evaluator[RequestT]):
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(evaluator, other), daemon=True)
        self.process.start()
        other.close()
        self.tasks: deque[int] = deque()


class LocalPool(Pool[RequestT]):
    """`workers` processes; each has one further task queued, so that it does not wait for the driver."""

    def __init__(self, evaluator: Evaluator[RequestT], workers: int, *, prefetch: int = 1):
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise ValueError(f"the number of workers must be a positive integer, got {workers!r}")
        try:
            pickle.dumps(evaluator)
        except Exception as error:
            raise TypeError(
                f"processes of their own require an evaluator that can be pickled, with all that it has, got "
                f"{type(evaluator).__name__}: {error}"
            ) from error
        # A process with threads must not fork.
        self._context = multiprocessing.get_context("spawn")
        self._evaluator = evaluator
        self._depth = 1 + prefetch
        self._workers = [self._make() for _ in range(workers)]
        self._cancelled: set[int] = set()
        self._outcomes: list[Outcome] = []

    def _make(self) -> _Worker[RequestT]:
        return _Worker(self._context, self._evaluator)

    def get_capacity(self) -> int:
        return len(self._workers) * self._depth

    def submit(self, task: int, request: RequestT) -> None:
        worker = min(self._workers, key=lambda worker: len(worker.tasks))
        worker.tasks.append(task)
        try:
            worker.connection.send((task, request))
        except OSError:
            self._replace(worker)

    def wait(self, seconds: float) -> list[Outcome]:
        owners = {worker.connection: worker for worker in self._workers}
        for connection in multiprocessing.connection.wait(list(owners), 0 if self._outcomes else seconds):
            worker = owners[connection]
            try:
                outcome: Outcome = worker.connection.recv()
            except (EOFError, OSError):
                self._replace(worker)
                continue
            worker.tasks.remove(outcome.task)
            self._outcomes.append(outcome)
        outcomes = [outcome for outcome in self._outcomes if outcome.task not in self._cancelled]
        self._cancelled -= {outcome.task for outcome in self._outcomes}
        self._outcomes = []
        return outcomes

    def cancel(self, task: int, *, kill: bool) -> None:
        self._cancelled.add(task)
        for worker in self._workers:
            if kill and worker.tasks and worker.tasks[0] == task:
                self._replace(worker)
                return

    def _replace(self, worker: _Worker[RequestT]) -> None:
        worker.process.kill()
        worker.process.join()
        worker.connection.close()
        reason = f"the worker ended with code {worker.process.exitcode}"
        self._outcomes += [Outcome(task, lost=reason, begun=index == 0) for index, task in enumerate(worker.tasks)]
        self._workers[self._workers.index(worker)] = self._make()

    def close(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers = []
