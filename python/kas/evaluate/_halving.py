# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Successive halving: many candidates are trained a bit, the best of them longer.

Jamieson, Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016, section 3.
A rung waits for all of its candidates, so that they are compared with each other, whichever of them ends first. The
evaluator `training` of `kas-opt` sees one candidate after the other and halves without waiting
(`lib/Search/Evaluators/Halving.cpp`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


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
        if not 0 < self.keep <= 1:
            raise ValueError(f"the share to keep must be above 0 and at most 1, got {self.keep!r}")
        known = [rung for rung in self.rungs if rung is not None]
        if (
            not self.rungs
            or self.rungs[-1] is not None
            or len(known) != len(self.rungs) - 1
            or known != sorted(set(known))
        ):
            raise ValueError(
                f"the rungs must be rising epochs and then None, such as (1, 3, 6, None), got {self.rungs!r}"
            )

    @staticmethod
    def off() -> Halving:
        """Without halving: every candidate is trained by the whole recipe."""
        return Halving(1, (None,), 1.0)

    def for_epochs(self, epochs: int) -> Halving:
        """Without the rungs that a recipe of so many epochs does not have."""
        return Halving(self.size, tuple(rung for rung in self.rungs if rung is None or rung < epochs), self.keep)


@dataclass
class Bracket:
    """Candidates that are compared with each other."""

    policy: Halving
    candidates: dict[int, Any]
    rung: int = 0
    waiting: list[int] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    scores: dict[int, float] = field(default_factory=dict)
    """Of this rung; more is better."""
    outcomes: dict[int, Any] = field(default_factory=dict)
    """The last outcome of each that is still in."""
    gone: dict[int, tuple[int, float]] = field(default_factory=dict)
    """Those with an outcome from before an interruption: epochs and score. The others are compared with them again."""

    def __post_init__(self) -> None:
        self.waiting = sorted(self.candidates)

    @property
    def is_done(self) -> bool:
        return not self.candidates

    @property
    def epochs(self) -> int | None:
        return self.policy.rungs[self.rung]

    def take(self) -> int | None:
        """The next candidate to train to the end of this rung."""
        if not self.waiting:
            return None
        self.running.add(self.waiting[0])
        return self.waiting.pop(0)

    def fail(self, id: int) -> None:
        self.running.discard(id)
        del self.candidates[id]

    def score(self, id: int, score: float, outcome: Any) -> None:
        self.running.discard(id)
        self.scores[id], self.outcomes[id] = score, outcome

    def advance(self, tell: Callable[[int, Any], None]) -> None:
        """Once all of a rung are trained, reports those that are out and starts the next rung with the others.

        Equal scores are ordered by identifier: the older is better.
        """
        if self.waiting or self.running or self.is_done:
            return
        is_last = self.rung == len(self.policy.rungs) - 1
        scores = dict(self.scores)
        for id, (epochs, score) in self.gone.items():
            if self.epochs is not None and epochs >= self.epochs:
                scores[id] = score if epochs == self.epochs else math.inf
        order = sorted(scores, key=lambda id: (-scores[id], id))
        kept = 0 if is_last else max(1, math.floor(len(order) * self.policy.keep + 1e-9))
        for id in order[kept:]:
            if id in self.candidates:
                del self.candidates[id]
                tell(id, self.outcomes.pop(id))
        if self.candidates:
            self.rung += 1
            self.scores.clear()
            self.waiting = sorted(self.candidates)


def expected_epochs(policy: Halving, epochs: int) -> float:
    """Epochs that a bracket trains, in units of the whole recipe."""
    total, count, before = 0.0, policy.size, 0
    for rung in policy.rungs:
        end = epochs if rung is None else min(rung, epochs)
        total += count * (end - before)
        before, count = end, max(1, math.floor(count * policy.keep + 1e-9))
    return total / epochs


def front(points: Sequence[Sequence[float]]) -> list[int]:
    """The indices of the points that no other dominates; less is better in each coordinate."""

    def dominates(a: Sequence[float], b: Sequence[float]) -> bool:
        return all(x <= y for x, y in zip(a, b)) and any(x < y for x, y in zip(a, b))

    return [index for index, point in enumerate(points) if not any(dominates(other, point) for other in points)]
