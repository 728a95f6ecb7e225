# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The imitations and trainings of `kas.accelerate` on the workers of any pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._accelerate._remote import Job, Worker


class AccelerateJob:
    """The evaluator for the workers of `kas.accelerate(pool=...)`, with what that is called with.

    >>> job = kas.distributed.AccelerateJob(model, data)
    >>> with kas.distributed.RayPool(job, 16, prefetch=0, address="auto") as pool:
    ...     outcome = kas.accelerate(model, data, pool=pool, out="faster")
    """

    def __init__(self, model: Any, data: Any, task: Any = None, *, threads: int = 1, batch: int = 1):
        self.model, self.data, self.task, self.threads, self.batch = model, data, task, threads, batch
        self._worker: Worker | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_worker": None}

    def __call__(self, job: Job) -> dict[str, Any]:
        """What comes of one imitation, or one training."""
        if self._worker is None:
            from .._accelerate._remote import Worker

            self._worker = Worker(self.model, self.data, self.task, self.threads, self.batch)
        return job.run(self._worker)
