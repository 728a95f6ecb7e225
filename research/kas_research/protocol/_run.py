# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All trainings of a protocol that the store does not have."""

from __future__ import annotations

import functools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from kas._processes import Ended, ProcessPool

from ._protocol import Job, Protocol, identify
from ._store import Store
from ._train import Worker


def _make_answer(
    protocol: Protocol, niceness: int, make: Callable[[Protocol], Worker]
) -> Callable[[Job], dict[str, Any]]:
    """The function of a process."""
    os.nice(niceness)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    return make(protocol).train


class Team:
    """Processes that train jobs, each at most as many as cores (or `processes`); each makes a worker of its own."""

    def __init__(
        self,
        protocol: Protocol,
        processes: int | None = None,
        niceness: int = 19,
        make_worker: Callable[[Protocol], Worker] = Worker,
    ):
        self.protocol, self.identity = protocol, identify(protocol.load_data())
        self.size = processes or len(os.sched_getaffinity(0))
        self._pool = ProcessPool(
            functools.partial(_make_answer, protocol, niceness, make_worker), self.size, is_lazy=True
        )
        self._jobs: dict[int, Job] = {}
        self._ended: deque[Ended] = deque()
        self._next_task = 0

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def train(self, jobs: Iterable[Job]) -> Iterator[dict[str, Any]]:
        """The records of the jobs, in the order in which they end. A job is taken when a process is free for it."""
        waiting = iter(jobs)
        while True:
            while len(self._jobs) < self.size and (job := next(waiting, None)) is not None:
                self._submit(job)
            if not self._jobs:
                return
            # Whoever leaves this loop before its end finds what ended meanwhile in the next call.
            self._ended.extend(self._pool.wait(None))
            while self._ended:
                yield self._take(self._ended.popleft())

    def _submit(self, job: Job) -> None:
        task, self._next_task = self._next_task, self._next_task + 1
        self._jobs[task] = job
        self._pool.submit(task, job)

    def _take(self, ended: Ended) -> dict[str, Any]:
        """The record of a job that ended."""
        job = self._jobs.pop(ended.task)
        if ended.error is None and ended.code is None:
            record: dict[str, Any] = ended.answer
            return record
        return {
            "kind": "training",
            "key": self.protocol.key(job, self.identity),
            "settings": self.protocol.settings(job, self.identity),
            **job.point._asdict(),
            "seed": job.seed,
            "reported": job.is_reported,
            "time": round(time.time()),
            "failure": ended.error or f"the process that trained it ended with code {ended.code}",
            "cpu_seconds": 0.0,
        }


def plan(protocol: Protocol, store: Store, chosen: Sequence[str] = (), retry: bool = False) -> list[Job]:
    """The jobs that the store does not have; with `retry` also those that failed."""
    identity = identify(protocol.load_data())
    known = {key for key, record in store.read_trainings().items() if not (retry and record["failure"])}
    return [job for job in protocol.jobs(chosen) if protocol.key(job, identity) not in known]


def run(
    protocol: Protocol,
    store: Store,
    *,
    chosen: Sequence[str] = (),
    processes: int | None = None,
    retry: bool = False,
    niceness: int = 19,
    progress: Callable[[dict[str, Any], int], None] | None = None,
) -> None:
    """Trains what is missing, one process for each core (or `processes`), by default at the lowest priority.

    Another run with the same store may be stopped at any time: what ended is kept. `progress` gets each record and the
    number of jobs that are left. Ends without an error when the hours of the protocol are used up.
    """
    jobs = plan(protocol, store, chosen, retry)
    spent = sum(record["cpu_seconds"] for record in store.read_trainings().values())
    left = len(jobs)

    def affordable() -> Iterator[Job]:
        nonlocal left
        for job in jobs:
            if protocol.hours is not None and spent >= 3600 * protocol.hours:
                return
            left -= 1
            yield job

    with Team(protocol, processes, niceness) as team:
        for record in team.train(affordable()):
            spent += record["cpu_seconds"]
            store.add(record)
            if progress is not None:
                progress(record, left)
