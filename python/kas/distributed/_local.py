# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workers that are processes of this machine."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from .._processes import Ended, ProcessPool
from ._driver import Outcome, Pool, RequestT

Evaluator: TypeAlias = Callable[[RequestT], Mapping[str, Any]]
"""From a request, a `kas.Request` for `run`, to metrics."""


def _make_answer(evaluator: Evaluator[RequestT]) -> Callable[[RequestT], dict[str, Any]]:
    """The function of a worker."""
    return lambda request: dict(evaluator(request))


def _describe(ended: Ended) -> Outcome:
    if ended.code is not None:
        return Outcome(ended.task, lost=f"the worker ended with code {ended.code}", begun=ended.begun)
    return Outcome(ended.task, metrics=ended.answer, error=ended.error)


class LocalPool(Pool[RequestT]):
    """`workers` processes; each has one further task queued, so that it does not wait for the driver."""

    def __init__(self, evaluator: Evaluator[RequestT], workers: int, *, prefetch: int = 1):
        try:
            pickle.dumps(evaluator)
        except Exception as error:
            raise TypeError(
                f"processes of their own require an evaluator that can be pickled, with all that it has, got "
                f"{type(evaluator).__name__}: {error}"
            ) from error
        # A process with threads must not fork.
        make = functools.partial(_make_answer, evaluator)
        self._processes = ProcessPool(make, workers, depth=1 + prefetch, method="spawn")

    def get_capacity(self) -> int:
        return self._processes.capacity

    def submit(self, task: int, request: RequestT) -> None:
        self._processes.submit(task, request)

    def wait(self, seconds: float) -> list[Outcome]:
        return [_describe(ended) for ended in self._processes.wait(seconds)]

    def cancel(self, task: int, *, kill: bool) -> None:
        self._processes.cancel(task, kill=kill)

    def close(self) -> None:
        self._processes.close()
