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
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._protocol import Job, Protocol, identify
from ._store import Store
from ._train import Worker


def _work(connection: Any, protocol: Protocol, niceness: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(niceness)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    worker = Worker(protocol)
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(worker.train(connection.recv()))


class _Process:
    """A process that trains, and what it is at."""

    def __init__(self, context: Any, protocol: Protocol, niceness: int):
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, protocol, niceness), daemon=True)
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
    identity = identify(protocol.load_data())
    spent = sum(record["cpu_seconds"] for record in store.read_trainings().values())
    context = multiprocessing.get_context("spawn")
    count = min(processes or len(os.sched_getaffinity(0)), max(1, len(jobs)))
    workers = [_Process(context, protocol, niceness) for _ in range(count)]
    jobs.reverse()
    try:
        while jobs or any(worker.job for worker in workers):
            for worker in workers:
                is_paid = protocol.hours is None or spent < 3600 * protocol.hours
                if worker.job is None and jobs and is_paid:
                    worker.give(jobs.pop())
            busy = [worker for worker in workers if worker.job is not None]
            if not busy:
                return
            multiprocessing.connection.wait([worker.connection for worker in busy])
            for worker in busy:
                if not worker.connection.poll():
                    continue
                job = worker.job
                assert job is not None
                record = worker.take()
                if record is None:
                    record = _bury(worker, protocol, job, identity)
                    workers[workers.index(worker)] = _Process(context, protocol, niceness)
                spent += record["cpu_seconds"]
                store.add(record)
                if progress is not None:
                    progress(record, len(jobs))
    finally:
        for worker in workers:
            worker.close()


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
