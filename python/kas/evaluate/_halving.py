# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of successive halving: many candidates are trained a bit, the best of them longer.

What is trained by them is planned by the library (`lib/Search/Core/Halving.cpp`, `TrainingPlan.cpp`).
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import _kas
from .._errors import as_value_error


@dataclass(frozen=True)
class Halving:
    """The policy of successive halving.

    `size` candidates at a time are trained to the end of each epoch of `rungs`, and after each the share `keep` of the
    best of them (at least one) goes on; None in `rungs` is the whole recipe.

    A few epochs on the real task rank operators well on different tasks, as no score at initialization does
    (research/reports/proxies.md): hence the default, 1-3-6-all with a third kept.
    `Halving.off()` trains all to the end.
    """

    size: int = 9
    rungs: tuple[int | None, ...] = (1, 3, 6, None)
    keep: float = 1 / 3

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ValueError(f"the size of halving must be a positive integer, got {self.size!r}")
        if self.rungs[-1:] != (None,) or not all(isinstance(rung, int) for rung in self.rungs[:-1]):
            raise ValueError(
                f"the rungs must be rising epochs and then None, such as (1, 3, 6, None), got {self.rungs!r}"
            )
        self.make_plan(1)

    @staticmethod
    def off() -> Halving:
        """Without halving: every candidate is trained by the whole recipe."""
        return Halving(1, (None,), 1.0)

    def make_plan(
        self,
        epochs: int,
        workers: int = 1,
        final: int = 0,
        final_seeds: int = 1,
        candidates: int | None = None,
        trainings: float | None = None,
    ) -> _kas.TrainingPlan:
        """The plan of trainings of so many epochs by this policy, see `TrainingPlan` of the library."""
        rungs = [rung for rung in self.rungs if rung is not None]
        with as_value_error():
            return _kas.TrainingPlan(
                self.size, rungs, self.keep, epochs, workers, final, final_seeds, candidates, trainings
            )
