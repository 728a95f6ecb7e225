# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a search divides a budget of time, by measured times: brackets that still fit, and the final round."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from .evaluate._halving import Bracket, Halving


@dataclass
class TimePlan:
    """Predicts when trainings end. All times are seconds.

    A job of `n` epochs is taken to need `fixed + n * epoch`, fitted to the jobs that ended.
    """

    policy: Halving
    epochs: int
    """Of a whole training."""
    workers: int
    final: int
    """How many candidates at most are trained again in the end, `final_seeds` times each."""
    final_seeds: int
    prior: list[tuple[int, float]] = field(default_factory=list)
    """Epochs and seconds of the network itself: what counts until the first job of a candidate has ended."""
    _jobs: list[tuple[int, float]] = field(default_factory=list)

    def observe(self, epochs: int, seconds: float) -> None:
        """A job of so many epochs took so long."""
        if epochs > 0:
            self._jobs.append((epochs, seconds))

    def predict(self, epochs: int) -> float:
        """The seconds of a job of so many epochs; 0 as long as nothing is known."""
        jobs = self._jobs or [job for job in self.prior if job[0] > 0]
        if epochs <= 0 or not jobs:
            return 0.0
        count = len(jobs)
        mean_epochs = sum(n for n, _ in jobs) / count
        mean_seconds = sum(seconds for _, seconds in jobs) / count
        spread = sum((n - mean_epochs) ** 2 for n, _ in jobs)
        slope = mean_seconds / mean_epochs
        if spread > 0:
            fitted = sum((n - mean_epochs) * (seconds - mean_seconds) for n, seconds in jobs) / spread
            # Neither an epoch nor what comes with a job takes less than nothing.
            slope = min(max(fitted, 0.0), slope)
        return mean_seconds + slope * (epochs - mean_epochs)

    def predict_final(self, candidates: int) -> float:
        """The final round of so many candidates."""
        rounds = math.ceil(min(candidates, self.final) * self.final_seeds / self.workers)
        return rounds * self.predict(self.epochs)

    def predict_brackets(self, brackets: Iterable[Bracket], size: int = 0) -> float:
        """Until all of them, and a new one of `size`, are done."""
        work = longest = 0.0
        ends = [self.epochs if rung is None else rung for rung in self.policy.rungs]
        for rung, left, alive in [*map(_get_progress, brackets), *([(0, size, size)] if size else [])]:
            chain = 0.0
            for index in range(rung, len(ends)):
                seconds = self.predict(ends[index] - (ends[index - 1] if index else 0))
                work += left * seconds
                chain += seconds
                alive = left = max(1, math.floor(alive * self.policy.keep + 1e-9))
            longest = max(longest, chain)
        return max(work / self.workers, longest)

    def choose_size(self, left: float, brackets: list[Bracket], whole: int) -> int:
        """How many candidates a new bracket may have, so that all ends in `left` seconds; 0: none.

        `whole` candidates were trained to the end already.
        """
        for size in range(self.policy.size, 0, -1):
            needed = self.predict_brackets(brackets, size) + self.predict_final(whole + len(brackets) + 1)
            if needed <= left:
                return size
        return 0


def _get_progress(bracket: Bracket) -> tuple[int, int, int]:
    """The rung of a bracket, how many are to be trained in it, and how many are in."""
    return bracket.rung, len(bracket.waiting) + len(bracket.running), len(bracket.candidates)
