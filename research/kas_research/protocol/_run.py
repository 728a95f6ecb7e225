# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All trainings of a protocol that the store does not have."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from ._protocol import Job, Protocol, identify
from ._store import Store
from ._train import Worker


def _work(connection: Any, protocol: Protocol, niceness: int, make: Callable[[Protocol], Worker]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(niceness)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    worker = make(protocol)
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(worker.train(connection.recv()))


class _Process:
    """A process that trains, and what it is at."""

    def __init__(self, context: Any, protocol: Protocol, niceness: int, make: Callable[[Protocol], Worker]):
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, protocol, niceness, make), daemon=True)
        self.process.start()
        theirs.close()
        self.job: Job | None = None

    def give(self, job: Job) -> None:
        self.job = job
        with contextlib.suppress(OSError):
            self.connection.send(job)

    def take(self) -> dict[str, Any] | None:
        """The record of the job that ended; None where the process ended with it."""
        try:
            record: dict[str, Any] = self.connection.recv()
        except (EOFError, OSError):
            return None
        self.job = None
        return record

    def close(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


class Team:
    """Processes that train jobs, each at most as many as cores (or `processes`); each makes a worker of its own."""

    def __init__(
        self,
        protocol: Protocol,
        processes: int | None = None,
        niceness: int = 19,
        make_worker: Callable[[Protocol], Worker] = Worker,
    ):
        self.protocol, self.niceness, self.make_worker = protocol, niceness, make_worker
        self.identity = identify(protocol.load_data())
        self.size = processes or len(os.sched_getaffinity(0))
        self._context = multiprocessing.get_context("spawn")
        self._processes: list[_Process] = []

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.close()
        self._processes.clear()

    def train(self, jobs: Iterable[Job]) -> Iterator[dict[str, Any]]:
        """The records of the jobs, in the order in which they end. A job is taken when a process is free for it."""
        waiting = iter(jobs)
        while True:
            while sum(process.job is not None for process in self._processes) < self.size:
                if (job := next(waiting, None)) is None:
                    break
                self._find_idle().give(job)
            busy = [process for process in self._processes if process.job is not None]
            if not busy:
                return
            multiprocessing.connection.wait([process.connection for process in busy])
            for process in busy:
                if process.connection.poll():
                    yield self._take(process)

    def _find_idle(self) -> _Process:
        for process in self._processes:
            if process.job is None:
                return process
        self._processes.append(_Process(self._context, self.protocol, self.niceness, self.make_worker))
        return self._processes[-1]

    def _take(self, process: _Process) -> dict[str, Any]:
        job = process.job
        assert job is not None
        record = process.take()
        if record is None:
            record = _bury(process, self.protocol, job, self.identity)
            self._processes.remove(process)
        return record


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


def _bury(worker: _Process, protocol: Protocol, job: Job, identity: str) -> dict[str, Any]:
    """The record of a job whose process ended."""
    worker.close()
    return {
        "kind": "training",
        "key": protocol.key(job, identity),
        "settings": protocol.settings(job, identity),
        **job.point._asdict(),
        "seed": job.seed,
        "reported": job.is_reported,
        "time": round(time.time()),
        "failure": f"the process that trained it ended with code {worker.process.exitcode}",
        "cpu_seconds": 0.0,
    }
