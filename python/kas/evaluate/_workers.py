# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that train: a candidate that takes too long, too much memory, or its process with it, is a failure."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from .._errors import Error
from .._processes import Ended, ProcessPool
from ._probe import check_pickling
from ._trainer import Trainer
from ._training import TrainingFailure

_Answer: TypeAlias = tuple[dict[str, float] | None, list[tuple[int, str, float]], str | None]
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


def _limit_memory(mebibytes: int | None) -> None:
    if mebibytes:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))


def _make_answer(trainer: Trainer, threads: int, memory_limit: int | None) -> Callable[[Job], _Answer]:
    """The function of a worker."""
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    _limit_memory(memory_limit)

    def answer(job: Job) -> _Answer:
        try:
            metrics, curve = trainer.train_once(job.text, job.seed, job.epochs, job.checkpoint, job.test)
            return metrics, curve, None
        except (TrainingFailure, Error, MemoryError) as failure:
            return None, [], " ".join(str(failure).split()) or type(failure).__name__
        except Exception as error:
            # An error of the network itself: the candidate failed, and the reason says where.
            place = traceback.extract_tb(error.__traceback__)[-1]
            return None, [], f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"

    return answer


class Pool:
    """`workers` processes with the trainer in each. One thread at a time may use it.

    `time_limit` is in seconds for one job, `memory_limit` in MiB of address space of a worker. A worker that is late or
    dies is started again; its job has failed, after a second try where it died by itself. `start_method` is that of
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
        self.trainer, self.time_limit = trainer, time_limit
        # A fork needs nothing of the caller's script; CUDA does not survive one.
        start_method = start_method or ("fork" if trainer.device == "cpu" else "spawn")
        if start_method != "fork":
            check_pickling(trainer)
        make = functools.partial(_make_answer, trainer, threads, memory_limit)
        self._pool = ProcessPool(make, workers, method=start_method)
        self._jobs: dict[int, Job] = {}
        self._next_task = 0
        self._retried: set[Job] = set()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return self._pool.pids

    @property
    def idle(self) -> int:
        """How many workers have nothing to do."""
        return self._pool.capacity - self.busy

    @property
    def busy(self) -> int:
        return len(self._jobs)

    def submit(self, job: Job) -> None:
        """Gives a job to a worker that is idle."""
        task, self._next_task = self._next_task, self._next_task + 1
        self._jobs[task] = job
        self._pool.submit(task, job)

    def wait(self, timeout: float) -> list[Done]:
        """The jobs that ended, after `timeout` seconds at most."""
        done = [self._collect(ended) for ended in self._pool.wait(timeout)]
        return [one for one in done if one is not None] + self._end_late()

    def _collect(self, ended: Ended) -> Done | None:
        job = self._jobs.pop(ended.task)
        if ended.code is None:
            # What the function of a worker raises, it answers.
            metrics, curve, failure = (None, [], ended.error) if ended.error is not None else ended.answer
            return Done(job, metrics, curve, failure, ended.seconds, ended.cpu_seconds)
        if job not in self._retried:
            self._retried.add(job)
            self.submit(job)
            return None
        how = f"signal {-ended.code}" if ended.code < 0 else f"code {ended.code}"
        return Done(job, None, [], f"the process that trained it ended twice, last with {how}", ended.seconds)

    def _end_late(self) -> list[Done]:
        """Ends the jobs that are over their time."""
        done = []
        for task, (seconds, cpu_seconds) in self._pool.get_times().items():
            job = self._jobs[task]
            limit = self.time_limit if job.time_limit is None else job.time_limit
            if limit is not None and seconds > limit:
                most = f"{limit:.3g} s"
            elif job.cpu_limit is not None and cpu_seconds is not None and cpu_seconds > job.cpu_limit:
                most = f"{job.cpu_limit:.3g} CPU s"
            else:
                continue
            what = "the training" if job.epochs is None else f"training to the end of epoch {job.epochs}"
            self._pool.cancel(task, kill=True)
            del self._jobs[task]
            done.append(Done(job, None, [], f"{what} needs more than {most}", seconds, cpu_seconds))
        return done

    def cancel(self) -> list[Job]:
        """Stops what the workers are at, and gives back these jobs."""
        jobs = list(self._jobs.values())
        for task in self._jobs:
            self._pool.cancel(task, kill=True)
        self._jobs.clear()
        return jobs

    def close(self) -> None:
        """Ends the workers; what they are at is lost."""
        self._pool.close()
