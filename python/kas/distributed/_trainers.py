# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The trainings of `kas.search` on the workers of any pool."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ._driver import Pool

if TYPE_CHECKING:
    from ..evaluate._workers import Done, Job


class TrainJob:
    """The evaluator for the workers of a `TrainingPool`: trains with a `kas.evaluate.Trainer`."""

    def __init__(self, trainer: Any):
        self.trainer = trainer

    def __call__(self, job: Job) -> dict[str, Any]:
        """One training: `metrics` and `curve`."""
        metrics, curve = self.trainer.train_once(job.text, job.seed, job.epochs, job.checkpoint, job.test)
        return {"metrics": metrics, "curve": curve}


class TrainingPool:
    """A pool for `kas.search(pool=...)`, made of a pool of this module whose evaluator is a `TrainJob`.

    >>> workers = kas.distributed.RayPool(kas.distributed.TrainJob(trainer), 16, num_gpus=0.5, prefetch=0)
    >>> kas.search(network, "digits", pool=kas.distributed.TrainingPool(workers))

    A job whose worker is gone is given to another one, `retries` times at most. Checkpoints are files: with several
    machines their folder must be on all of them.
    """

    def __init__(self, pool: Pool[Job], *, retries: int = 2):
        self._pool, self._retries = pool, retries
        self._jobs: dict[int, tuple[Job, float, int]] = {}
        self._next = 0

    def __enter__(self) -> TrainingPool:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    @property
    def busy(self) -> int:
        """How many jobs are being trained."""
        return len(self._jobs)

    @property
    def idle(self) -> int:
        """How many workers have nothing to do; waits for the first one to be there."""
        while not self._jobs and self._pool.get_capacity() == 0:
            self._pool.wait(0.2)
        return max(0, self._pool.get_capacity() - len(self._jobs))

    def submit(self, job: Job) -> None:
        """Gives a job to a worker."""
        self._start(job, 0)

    def _start(self, job: Job, losses: int) -> None:
        task, self._next = self._next, self._next + 1
        self._jobs[task] = (job, time.monotonic(), losses)
        self._pool.submit(task, job)

    def wait(self, timeout: float) -> list[Done]:
        """The jobs that ended, after `timeout` seconds at most."""
        from ..evaluate._workers import Done

        done = []
        for outcome in self._pool.wait(timeout):
            if outcome.task not in self._jobs:
                continue
            job, started, losses = self._jobs.pop(outcome.task)
            losses += outcome.lost is not None and outcome.begun
            if outcome.lost is not None and losses <= self._retries:
                self._start(job, losses)
                continue
            seconds = time.monotonic() - started
            failure = outcome.error or outcome.lost
            answer: Any = outcome.metrics or {"metrics": None, "curve": []}
            done.append(Done(job, answer["metrics"], answer["curve"], failure, seconds))
        return done

    def cancel(self) -> list[Job]:
        """Stops what the workers are at, and gives back these jobs."""
        jobs = [job for job, _, _ in self._jobs.values()]
        for task in self._jobs:
            self._pool.cancel(task, kill=True)
        self._jobs.clear()
        return jobs

    def close(self) -> None:
        """Ends the workers."""
        self._pool.close()
