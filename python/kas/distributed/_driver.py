# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loop between a searcher and a pool of workers, for any kind of pool."""

from __future__ import annotations

import abc
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from .._request import Request
from .._search import Candidate, Searcher, SearchResult

# Seconds after which it is worth while to start an evaluation once more.
_LEAST_LATE = 1.0


RequestT = TypeVar("RequestT")


class Outcome(NamedTuple):
    """The outcome of a task of a pool: one of the three."""

    task: int
    metrics: Mapping[str, Any] | None = None
    error: str | None = None
    """The evaluator raised this: the candidate has failed."""
    lost: str | None = None
    """The worker is gone: the candidate is to be evaluated elsewhere."""
    begun: bool = True
    """The lost worker was at this task; otherwise it only waited there, and has no part in the loss."""


class Pool(abc.ABC, Generic[RequestT]):
    """Workers that evaluate what `submit` gives them: a `kas.Request`, for `run`. Used by one thread."""

    @abc.abstractmethod
    def get_capacity(self) -> int:
        """How many tasks keep all workers busy now, some of them queued for a worker."""

    @abc.abstractmethod
    def submit(self, task: int, request: RequestT) -> None:
        """Starts a task; numbers of tasks are not used twice."""

    @abc.abstractmethod
    def wait(self, seconds: float) -> list[Outcome]:
        """What has ended; waits up to so long for something to end."""

    @abc.abstractmethod
    def cancel(self, task: int, *, kill: bool) -> None:
        """Drops the task: it gets no outcome. With `kill` its worker is ended, too, and another takes its place."""

    def get_time(self) -> float:
        """Seconds from some moment on."""
        return time.monotonic()

    def close(self) -> None:
        """Ends the workers."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


class Summary(NamedTuple):
    """The summary of a run."""

    evaluated: int
    failed: int
    seconds: float
    lost: int
    """Tasks whose worker was gone, and which were started again."""
    repeated: int
    """Tasks that took so long that another worker was given the same."""
    asking_seconds: float
    """Time in the tree: the driver does nothing else then."""
    telling_seconds: float


class _Task(NamedTuple):
    candidate: Candidate
    started: float


class _Run:
    """The state of one run."""

    def __init__(
        self, searcher: Searcher, pool: Pool[Request], retries: int, time_limit: float | None, straggler_factor: float
    ):
        self.searcher, self.pool = searcher, pool
        self.retries, self.time_limit, self.straggler_factor = retries, time_limit, straggler_factor
        self.tasks: dict[int, _Task] = {}
        self.tasks_of: dict[int, list[int]] = {}
        self.losses: dict[int, int] = {}
        self.again: deque[Candidate] = deque()
        self.durations: deque[float] = deque(maxlen=200)
        self.counts = dict.fromkeys(("evaluated", "failed", "lost", "repeated"), 0)
        self.next_task = 0
        self.asking = self.telling = 0.0
        self.is_dry = False

    def start(self, candidate: Candidate) -> None:
        space = self.searcher.space
        task, self.next_task = self.next_task, self.next_task + 1
        self.tasks[task] = _Task(candidate, self.pool.get_time())
        self.tasks_of.setdefault(candidate.id, []).append(task)
        self.pool.submit(task, Request(candidate.id, candidate.text, space.bindings, space.multiplicities))

    def fill(self, remaining: int) -> None:
        """Keeps the workers busy, and asks for no more than that: each answer makes the next proposals better."""
        while self.again and len(self.tasks) < self.pool.get_capacity():
            self.start(self.again.popleft())
        free = min(self.pool.get_capacity() - len(self.tasks), remaining - len(self.tasks_of) - len(self.again))
        while free > 0 and not self.is_dry:
            begin = time.perf_counter()
            # Few at a time, so that workers do not wait while many are thought of.
            candidates = self.searcher.ask(min(free, 8))
            self.asking += time.perf_counter() - begin
            for candidate in candidates:
                self.start(candidate)
            free -= len(candidates)
            # A call that gives less than it might is tried again after the next outcome.
            self.is_dry = not candidates

    def finish(
        self, candidate: Candidate, metrics: Mapping[str, float] | None, error: str | None, keep: int = -1
    ) -> SearchResult:
        for task in self.tasks_of.pop(candidate.id):
            del self.tasks[task]
            if task != keep:
                # It had its chance: whatever it is at, its worker is not well.
                self.pool.cancel(task, kill=True)
        begin = time.perf_counter()
        try:
            result = self.searcher.tell(candidate.id, metrics, error=error)
        except TypeError as wrong:
            # The evaluator's fault, not that of the search.
            result = self.searcher.tell(candidate.id, error=str(wrong))
        self.telling += time.perf_counter() - begin
        self.counts["evaluated" if result.failure is None else "failed"] += 1
        self.losses.pop(candidate.id, None)
        self.is_dry = False
        return result

    def take(self, outcome: Outcome) -> SearchResult | None:
        """Whatever ended; a result when that decides about a candidate."""
        task = self.tasks.get(outcome.task)
        if task is None:
            return None
        if outcome.lost is None:
            self.durations.append(self.pool.get_time() - task.started)
            return self.finish(task.candidate, outcome.metrics, outcome.error, outcome.task)
        candidate = task.candidate
        del self.tasks[outcome.task]
        others = self.tasks_of[candidate.id]
        others.remove(outcome.task)
        self.counts["lost"] += 1
        self.losses[candidate.id] = self.losses.get(candidate.id, 0) + outcome.begun
        if others:
            return None
        if self.losses[candidate.id] > self.retries:
            return self.finish(
                candidate, None, f"lost {self.losses[candidate.id]} workers, the last one: {outcome.lost}"
            )
        del self.tasks_of[candidate.id]
        self.again.append(candidate)
        return None

    def watch(self) -> list[SearchResult]:
        """Ends what is over its time, and gives what is late to another worker as well."""
        now, results = self.pool.get_time(), []
        if self.time_limit is not None:
            late = [task for task, (_, started) in self.tasks.items() if now - started > self.time_limit]
            for number in late:
                if number in self.tasks:
                    self.pool.cancel(number, kill=True)
                    candidate = self.tasks[number].candidate
                    results.append(self.finish(candidate, None, f"took more than {self.time_limit:g} s", number))
                    # What only waited for the same worker is lost with it, and is not late by itself.
                    ended = [self.take(outcome) for outcome in self.pool.wait(0)]
                    results += [result for result in ended if result is not None]
        if len(self.durations) >= 10 and self.straggler_factor > 0:
            bound = max(self.straggler_factor * statistics.median(self.durations), _LEAST_LATE)
            for _, (candidate, started) in list(self.tasks.items()):
                if len(self.tasks) >= self.pool.get_capacity():
                    break
                if now - started > bound and len(self.tasks_of[candidate.id]) == 1:
                    self.counts["repeated"] += 1
                    self.start(candidate)
        return results


def run(
    searcher: Searcher,
    pool: Pool[Request],
    *,
    evaluations: int,
    seconds: float | None = None,
    time_limit: float | None = None,
    retries: int = 2,
    straggler_factor: float = 4.0,
    on_result: Callable[[SearchResult], object] | None = None,
) -> Summary:
    """Evaluates candidates of the searcher on the workers of the pool, until it has `evaluations` outcomes in all.

    As many candidates are in flight as the pool has room for, no more: the searcher counts those as visited (virtual
    loss), and waits with further ones. A candidate whose worker is gone is evaluated again elsewhere, `retries` times
    at most; one that takes longer than `straggler_factor` times the median (0: any time) is given to a second worker
    once there is a free one, and the first answer counts; one that takes more than `time_limit` seconds has failed. No
    new candidates are requested after `seconds`. `on_result` is called after each outcome, in this thread.

    Outcomes that the searcher's database has count. Whatever ends this call leaves the database such that
    the same call goes on: nothing with an outcome is evaluated again, what was in flight is.
    """
    for name, value in (("evaluations", evaluations), ("retries", retries)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name} must be a non-negative integer, got {value!r}")
    for name, limit in (("seconds", seconds), ("time_limit", time_limit)):
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, float)) or limit <= 0):
            raise ValueError(f"{name} must be a positive number, got {limit!r}")
    state = _Run(searcher, pool, retries, time_limit, straggler_factor)
    begin, done = pool.get_time(), searcher.num_results

    def report(result: SearchResult | None) -> None:
        if result is not None and on_result is not None:
            on_result(result)

    while True:
        remaining = evaluations - done - state.counts["evaluated"] - state.counts["failed"]
        if seconds is not None and pool.get_time() - begin >= seconds:
            remaining = 0
        state.fill(remaining)
        # A pool may have no worker yet, or none left.
        if not state.tasks and not state.again and (remaining <= 0 or pool.get_capacity() > 0):
            break
        for outcome in pool.wait(0.1):
            report(state.take(outcome))
        for result in state.watch():
            report(result)
    return Summary(
        seconds=pool.get_time() - begin, asking_seconds=state.asking, telling_seconds=state.telling, **state.counts
    )
