# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workers that take virtual time: how many a driver can keep busy, without a cluster.

`python -m kas.distributed` prints the table of research/reports/distributed-search.md.
"""

from __future__ import annotations

import heapq
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Mapping

from .._request import Request
from .._search import Searcher, SearchSpace
from ._driver import Outcome, Pool, run


class SimulatedPool(Pool[Request]):
    """`workers` workers whose evaluations take `seconds(request, random)` of virtual time, and give `metrics(request)`.

    The driver is real, and the processor's time that it takes counts in full: the clock moves on by that, and jumps to
    the next end of an evaluation when the driver waits. A worker is lost with probability `loss` per evaluation.
    Seeded.
    """

    def __init__(
        self,
        metrics: Callable[[Request], Mapping[str, float]],
        workers: int,
        seconds: Callable[[Request, random.Random], float],
        *,
        loss: float = 0,
        seed: int = 0,
        prefetch: int = 0,
    ):
        self._metrics, self._seconds, self._loss = metrics, seconds, loss
        self._random = random.Random(seed)
        self._num_workers, self._depth = workers, 1 + prefetch
        self._jumped = 0.0
        # When each worker is free, and what ends when.
        self._free = [0.0] * workers
        self._events: list[tuple[float, int, Outcome]] = []
        self._cancelled: set[int] = set()
        self.busy_seconds = 0.0
        """Sum over the workers."""
        self._start = time.process_time()

    def get_time(self) -> float:
        return time.process_time() - self._start + self._jumped

    def get_capacity(self) -> int:
        return self._num_workers * self._depth

    def submit(self, task: int, request: Request) -> None:
        duration = self._seconds(request, self._random)
        begin = max(heapq.heappop(self._free), self.get_time())
        lost = self._random.random() < self._loss
        outcome = Outcome(task, lost="simulated") if lost else Outcome(task, metrics=self._metrics(request))
        end = begin + (duration * self._random.random() if lost else duration)
        self.busy_seconds += end - begin
        heapq.heappush(self._free, end)
        heapq.heappush(self._events, (end, task, outcome))

    def wait(self, seconds: float) -> list[Outcome]:
        if self._events:
            self._jumped += max(0.0, min(self._events[0][0] - self.get_time(), seconds))
        now, outcomes = self.get_time(), []
        while self._events and self._events[0][0] <= now:
            outcome = heapq.heappop(self._events)[2]
            if outcome.task not in self._cancelled:
                outcomes.append(outcome)
        return outcomes

    def cancel(self, task: int, *, kill: bool) -> None:
        self._cancelled.add(task)


def simulate(
    space: SearchSpace,
    workers: int,
    seconds: float,
    evaluations: int,
    *,
    algorithm: str = "mcts",
    database: str | None = None,
    loss: float = 0.001,
) -> dict[str, float]:
    """One row of the table: evaluations take `seconds` on average, from a half to twice as long."""

    def evaluate(request: Request) -> dict[str, float]:
        return {"loss": len(request.operator) + request.id % 17}

    with Searcher(space, algorithm, seed=1, database=database, objective="loss") as searcher:
        pool = SimulatedPool(evaluate, workers, lambda _, r: seconds * r.uniform(0.5, 1.5), loss=loss, seed=1)
        begin = time.process_time()
        summary = run(searcher, pool, evaluations=evaluations, straggler_factor=0)
        processor = time.process_time() - begin
    finished = summary.evaluated + summary.failed
    return {
        "workers": workers,
        "evaluation_s": seconds,
        "candidates": finished,
        "candidates_per_s": finished / summary.seconds,
        "busy": pool.busy_seconds / (workers * summary.seconds),
        "ask_ms": 1e3 * summary.asking_seconds / finished,
        "tell_ms": 1e3 * summary.telling_seconds / finished,
        "driver_ms": 1e3 * processor / finished,
        "memory_MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


RESNET_SPACE = """
kas.space @conv2d<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 64, Cout = 64, H = 56, W = 56, g = 4, k = 3> x 4,
              <N = 1, Cin = 128, Cout = 128, H = 28, W = 28, g = 4, k = 3> x 3,
              <N = 1, Cin = 256, Cout = 256, H = 14, W = 14, g = 4, k = 3> x 3,
              <N = 1, Cin = 512, Cout = 512, H = 7, W = 7, g = 4, k = 3> x 3]
    limits {depth = 10, reduce = 4, split = 2, merge = 2, shift = 1, expand = 0, unfold = 2, stride = 0, weights = 2}
    budget {baseline_flops = 3005743104, flops_ratio = 0.5, min_flops_ratio = 0.1}
"""


def main() -> None:
    """Prints the table, as lines of Markdown."""
    space = SearchSpace(RESNET_SPACE)
    with tempfile.TemporaryDirectory() as directory:
        first = True
        for workers, seconds in ((10, 60), (100, 60), (1000, 60), (1000, 6), (1000, 1)):
            path = os.path.join(directory, f"{workers}-{seconds}.db")
            row = simulate(space, workers, seconds, 500 + 2 * workers, database=path)
            if first:
                print("| " + " | ".join(row) + " |\n" + "|---" * len(row) + "|")
            first = False
            print(
                "| " + " | ".join(f"{value:.3g}" if value < 1000 else f"{value:.0f}" for value in row.values()) + " |",
                flush=True,
            )
