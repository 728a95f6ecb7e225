# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workers that are processes of this machine: the pool of searches, of trainings and of benchmarks.

A worker makes its function once and then answers tasks with it, one after another. Whatever happens to it ends as an
`Ended`: an answer, an error that the function raised, or the exit code of a process that is gone.
"""

from __future__ import annotations

import functools
import multiprocessing
import multiprocessing.connection
import pickle
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")

# How long a process that has closed its connection may take to end with the exit code of its own.
_GRACE = 5


def describe(error: BaseException) -> str:
    """The reason of a failure, in one line."""
    return f"{type(error).__name__}: {error}".strip(": ")


class Ended(NamedTuple):
    """What became of a task: an answer, or else an error or an exit code."""

    task: int
    answer: Any = None
    error: str | None = None
    """The worker's function raised this."""
    code: int | None = None
    """The worker ended with this exit code, -N for signal N, before it answered."""
    begun: bool = True
    """The lost worker was at this task; otherwise the task only waited there, and has no part in the loss."""
    seconds: float = 0.0
    """Since the task was submitted."""
    cpu_seconds: float | None = None
    """Of the worker since then; None where that is not known."""


def _get_cpu_seconds(process: Any) -> float | None:
    """What a running process has used of all cores, in all its life."""
    try:
        # The clock of another process, as clock_getcpuclockid(3) gives it.
        return time.clock_gettime((~process.pid << 3) | 2)
    except (OSError, OverflowError, TypeError):
        return None


def _work(connection: Any, inherited: list[Any], make: Callable[[], Callable[[Any], Any]]) -> None:
    """The life of a worker."""
    # While a worker holds the parent's ends, nobody sees that the parent is gone.
    for other in inherited:
        other.close()
    # The one who started the workers decides when they end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer = make()
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        try:
            message = pickle.dumps((answer(request), None))
        except Exception as error:
            message = pickle.dumps((None, describe(error)))
        try:
            connection.send_bytes(message)
        except OSError:
            return


class _Worker:
    """A process, and the tasks that it was given, with the times at which it was."""

    def __init__(self, context: Any, make: Callable[[], Callable[[Any], Any]], others: Iterable[_Worker]):
        self.connection, theirs = context.Pipe()
        is_forked = context.get_start_method() == "fork"
        inherited = [self.connection, *(other.connection for other in others)] if is_forked else []
        self.process = context.Process(target=_work, args=(theirs, inherited, make), daemon=True)
        self.process.start()
        theirs.close()
        self.tasks: dict[int, tuple[float, float | None]] = {}

    def get_times(self, task: int) -> tuple[float, float | None]:
        """Seconds and CPU seconds since a task was submitted."""
        started, cpu_started = self.tasks[task]
        cpu_now = _get_cpu_seconds(self.process)
        cpu_seconds = None if cpu_started is None or cpu_now is None else cpu_now - cpu_started
        return time.monotonic() - started, cpu_seconds

    def end(self, *, patience: float = 0) -> None:
        """Ends the process, after so many seconds for its own end."""
        self.process.join(patience)
        self.process.kill()
        self.process.join(_GRACE)
        self.connection.close()


class ProcessPool:
    """`workers` processes, each with up to `depth` tasks, so that it does not wait for the next. For one thread.

    `make` is called in each process and gives the function that answers; with another `method` of `multiprocessing`
    than "fork" it has to be picklable. A process that is lost is replaced. With `is_lazy` no process is started before
    there is a task for it.
    """

    def __init__(
        self,
        make: Callable[[], Callable[[Any], Any]],
        workers: int,
        *,
        depth: int = 1,
        method: str = "spawn",
        is_lazy: bool = False,
    ):
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise ValueError(f"the number of workers must be a positive integer, got {workers!r}")
        self._make, self._size, self._depth, self._is_lazy = make, workers, depth, is_lazy
        self._context: Any = multiprocessing.get_context(method)
        self._workers: list[_Worker] = []
        self._cancelled: set[int] = set()
        self._ended: list[Ended] = []
        while not is_lazy and len(self._workers) < workers:
            self._start()

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def capacity(self) -> int:
        """How many tasks keep all workers busy, those included that are queued for a worker."""
        return self._size * self._depth

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes that there are."""
        return [worker.process.pid for worker in self._workers]

    def _start(self) -> _Worker:
        self._workers.append(_Worker(self._context, self._make, self._workers))
        return self._workers[-1]

    def submit(self, task: int, request: Any) -> None:
        """Gives a task to the worker with the least to do; numbers of tasks are not used twice."""
        worker = min(self._workers, key=lambda worker: len(worker.tasks), default=None)
        if worker is None or (worker.tasks and len(self._workers) < self._size):
            worker = self._start()
        worker.tasks[task] = (time.monotonic(), _get_cpu_seconds(worker.process))
        try:
            worker.connection.send(request)
        except OSError:
            # It died while it was idle.
            self._lose(worker, patience=_GRACE)

    def wait(self, seconds: float | None) -> list[Ended]:
        """What has ended; waits up to so long, or without a limit, for something to end."""
        owners = {worker.connection: worker for worker in self._workers}
        for connection in multiprocessing.connection.wait(list(owners), 0 if self._ended else seconds):
            self._take(owners[connection])
        ended = [one for one in self._ended if one.task not in self._cancelled]
        self._cancelled -= {one.task for one in self._ended}
        self._ended = []
        return ended

    def _take(self, worker: _Worker) -> None:
        """An answer of a worker, or its end."""
        try:
            answer, error = worker.connection.recv()
        except (EOFError, OSError):
            self._lose(worker, patience=_GRACE)
            return
        task = next(iter(worker.tasks))
        times = worker.get_times(task)
        del worker.tasks[task]
        self._ended.append(Ended(task, answer, error, None, True, *times))

    def _lose(self, worker: _Worker, *, patience: float = 0) -> None:
        """Ends a worker, tells about its tasks, and starts another one."""
        times = {task: worker.get_times(task) for task in worker.tasks}
        worker.end(patience=patience)
        self._workers.remove(worker)
        for index, task in enumerate(worker.tasks):
            self._ended.append(Ended(task, None, None, worker.process.exitcode, index == 0, *times[task]))
        if not self._is_lazy:
            self._start()

    def get_times(self) -> dict[int, tuple[float, float | None]]:
        """Seconds and CPU seconds, where these are known, since each task was submitted that has not ended."""
        return {task: worker.get_times(task) for worker in self._workers for task in worker.tasks}

    def cancel(self, task: int, *, kill: bool) -> None:
        """Drops a task, which never ends for `wait`. With `kill` the worker that is at it is ended."""
        self._cancelled.add(task)
        for worker in self._workers:
            if kill and next(iter(worker.tasks), None) == task:
                self._lose(worker)
                return

    def close(self) -> None:
        """Ends the workers; what they are at is lost."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.end()
        self._workers = []


def map_unordered(
    function: Callable[[RequestT], AnswerT], requests: Iterable[RequestT], workers: int
) -> Iterator[AnswerT]:
    """The answers of a function in processes, as they end.

    Raises `RuntimeError` with what the function raised, or where a process is lost.
    """
    waiting = enumerate(requests)
    running: set[int] = set()
    with ProcessPool(functools.partial(_get_itself, function), workers, depth=2, is_lazy=True) as pool:
        while True:
            while len(running) < pool.capacity and (entry := next(waiting, None)) is not None:
                running.add(entry[0])
                pool.submit(*entry)
            if not running:
                return
            for ended in pool.wait(None):
                running.remove(ended.task)
                if ended.error is not None or ended.code is not None:
                    raise RuntimeError(ended.error or f"a process ended with code {ended.code}")
                yield ended.answer


def _get_itself(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return function
