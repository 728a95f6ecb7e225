# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that train: a candidate that takes too long, too much memory, or its process with it, is a failure."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import signal
import time
import traceback
from dataclasses import dataclass
from typing import Any, TypeAlias

from .._errors import Error
from ._probe import check_pickling
from ._trainer import Trainer
from ._training import TrainingFailure

Answer: TypeAlias = tuple[dict[str, float] | None, list[tuple[int, str, float]], str | None]
"""Of a worker: metrics, curve and failure."""


@dataclass(frozen=True)
class Job:
    """One training, or a part of one."""

    candidate: int
    """-1: the network itself; other baselines are below."""
    text: str | None
    """The operator, or the sequence of operators; None: the network itself."""
    seed: int = 0
    epochs: int | None = None
    """Up to the end of this epoch; None: all."""
    checkpoint: str | None = None
    test: bool = False
    """The accuracy on the test set as well."""
    time_limit: float | None = None
    """Seconds; None: that of the pool."""
    cpu_limit: float | None = None
    """CPU seconds of the worker: on a machine that others use, too, seconds say little. On the CPU only."""


@dataclass(frozen=True)
class Done:
    """What became of a job."""

    job: Job
    metrics: dict[str, float] | None
    curve: list[tuple[int, str, float]]
    failure: str | None
    seconds: float
    cpu_seconds: float | None = None
    """Of the worker; None where that is not known."""


def _get_cpu_seconds(process: Any) -> float | None:
    """What a running process has used of all cores, in all its life."""
    try:
        # The clock of another process, as clock_getcpuclockid(3) gives it.
        return time.clock_gettime((~process.pid << 3) | 2)
    except (OSError, OverflowError, TypeError):
        return None


def _limit_memory(mebibytes: int | None) -> None:
    if mebibytes:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))


def _work(connection: Any, inherited: list[Any], trainer: Trainer, threads: int, memory_limit: int | None) -> None:
    """The life of a worker."""
    import torch

    # While a worker holds the parent's ends, nobody sees that the parent is gone.
    for other in inherited:
        other.close()

    # The one who started the search decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    _limit_memory(memory_limit)
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        try:
            metrics, curve = trainer.train_once(job.text, job.seed, job.epochs, job.checkpoint, job.test)
            answer: Answer = (metrics, curve, None)
        except (TrainingFailure, Error, MemoryError) as failure:
            answer = (None, [], " ".join(str(failure).split()) or type(failure).__name__)
        except Exception as error:
            # An error of the network itself: the candidate failed, and the reason says where.
            place = traceback.extract_tb(error.__traceback__)[-1]
            answer = (None, [], f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})")
        try:
            connection.send(answer)
        except OSError:
            return


class Pool:
    """`workers` processes with the trainer in each. One thread at a time may use it.

    `time_limit` is in seconds for one job, `memory_limit` in MiB of address space of a worker. A worker that is late or
    dies is started anew; its job has failed, after a second try where it died by itself. `start_method` is that of
    `multiprocessing`; by default "fork", but "spawn" for other devices than the CPU: then a `TypeError` says what of
    the trainer cannot be pickled.
    """

    def __init__(
        self,
        trainer: Trainer,
        workers: int = 1,
        *,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        threads: int = 1,
        start_method: str | None = None,
    ):
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise ValueError(f"the number of workers must be a positive integer, got {workers!r}")
        self.trainer, self.time_limit, self.memory_limit, self.threads = trainer, time_limit, memory_limit, threads
        # A fork needs nothing of the caller's script; CUDA does not survive one.
        start_method = start_method or ("fork" if trainer.device == "cpu" else "spawn")
        if start_method != "fork":
            check_pickling(trainer)
        self._context: Any = multiprocessing.get_context(start_method)
        self._processes: list[Any] = []
        self._connections: list[Any] = []
        self._jobs: list[Job | None] = []
        self._started: list[float] = []
        self._cpu_started: list[float | None] = []
        self._retried: set[Job] = set()
        for _ in range(workers):
            self._processes.append(None)
            self._connections.append(None)
            self._jobs.append(None)
            self._started.append(0.0)
            self._cpu_started.append(None)
            self._start(len(self._jobs) - 1)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _start(self, index: int) -> None:
        ours, theirs = self._context.Pipe()
        inherited = []
        if self._context.get_start_method() == "fork":
            inherited = [ours, *(one for one in self._connections if one is not None and not one.closed)]
        process = self._context.Process(
            target=_work, args=(theirs, inherited, self.trainer, self.threads, self.memory_limit), daemon=True
        )
        process.start()
        theirs.close()
        self._processes[index], self._connections[index] = process, ours

    @property
    def idle(self) -> int:
        """How many workers have nothing to do."""
        return self._jobs.count(None)

    @property
    def busy(self) -> int:
        return len(self._jobs) - self.idle

    def submit(self, job: Job) -> None:
        """Gives a job to a worker that is idle."""
        index = self._jobs.index(None)
        self._jobs[index] = job
        self._started[index] = time.monotonic()
        self._cpu_started[index] = _get_cpu_seconds(self._processes[index])
        # Where it died while it was idle, `wait` sees that.
        with contextlib.suppress(OSError):
            self._connections[index].send(job)

    def wait(self, timeout: float) -> list[Done]:
        """The jobs that ended, after `timeout` seconds at most."""
        busy = [(index, job) for index, job in enumerate(self._jobs) if job is not None]
        multiprocessing.connection.wait([self._connections[index] for index, _ in busy], timeout)
        done = [self._collect(index, job) for index, job in busy]
        return [one for one in done if one is not None]

    def _collect(self, index: int, job: Job) -> Done | None:
        seconds = time.monotonic() - self._started[index]
        before, now = self._cpu_started[index], _get_cpu_seconds(self._processes[index])
        cpu_seconds = None if before is None or now is None else now - before
        if self._connections[index].poll():
            try:
                metrics, curve, failure = self._connections[index].recv()
            except (EOFError, OSError):
                return self._bury(index, job, seconds)
            self._jobs[index] = None
            return Done(job, metrics, curve, failure, seconds, cpu_seconds)
        limit = self.time_limit if job.time_limit is None else job.time_limit
        what = "the training" if job.epochs is None else f"training to the end of epoch {job.epochs}"
        late = None
        if limit is not None and seconds > limit:
            late = f"{what} needs more than {limit:.3g} s"
        elif job.cpu_limit is not None and cpu_seconds is not None and cpu_seconds > job.cpu_limit:
            late = f"{what} needs more than {job.cpu_limit:.3g} CPU s"
        if late is not None:
            self._processes[index].kill()
            self._restart(index)
            return Done(job, None, [], late, seconds, cpu_seconds)
        return None

    def _bury(self, index: int, job: Job, seconds: float) -> Done | None:
        self._processes[index].join(5)
        code = self._processes[index].exitcode
        self._restart(index)
        if job not in self._retried:
            self._retried.add(job)
            self.submit(job)
            return None
        how = f"signal {-code}" if code is not None and code < 0 else f"code {code}"
        return Done(job, None, [], f"the process that trained it ended twice, last with {how}", seconds)

    def _restart(self, index: int) -> None:
        self._connections[index].close()
        self._processes[index].join(5)
        self._jobs[index] = None
        self._start(index)

    def cancel(self) -> list[Job]:
        """Stops what the workers are at, and gives back these jobs."""
        jobs = []
        for index, job in enumerate(self._jobs):
            if job is not None:
                jobs.append(job)
                self._processes[index].kill()
                self._restart(index)
        return jobs

    def close(self) -> None:
        """Ends the workers; what they are at is lost."""
        for process, connection in zip(self._processes, self._connections):
            connection.close()
            process.kill()
        for process in self._processes:
            process.join(5)
