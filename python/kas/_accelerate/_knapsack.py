# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exact choice of one alternative for each layer: the least loss at each time.

A multiple-choice knapsack problem, solved for all budgets at once by dynamic programming over the front of partial sums
(Nemhauser and Ullmann, "Discrete Dynamic Programming and Capital Allocation", Management Science 1969): a partial
choice that another one beats in time and in loss is in no best choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy


class Option(NamedTuple):
    """One thing that can be at a place, with what it adds to the time and to the loss of the network."""

    place: str
    name: str
    ms: float
    loss: float


@dataclass(frozen=True)
class Place:
    """What is chosen: one of `options`, or one choice for each of the `parts`, of which each option is a whole.

    A layer has options alone, a block of layers has both, the network has parts alone.
    """

    options: Sequence[Option] = ()
    parts: Sequence[Place] = field(default_factory=tuple)


class Choice(NamedTuple):
    """A choice for all places, and its sums."""

    ms: float
    loss: float
    options: tuple[Option, ...]


class _Front:
    """Choices that no other one beats, by time; what they consist of is read back from the end."""

    def __init__(self, ms: numpy.ndarray, loss: numpy.ndarray, origins: Sequence[Sequence[Option]]):
        self.ms, self.loss, self.origins = ms, loss, origins


def _select(ms: numpy.ndarray, loss: numpy.ndarray, limit: float) -> numpy.ndarray:
    """The numbers of those that no other one beats, by time, at most `limit`; of equal ones the first."""
    order = numpy.lexsort((loss, ms))
    order = order[ms[order] <= limit]
    if len(order) == 0:
        return order
    best = numpy.minimum.accumulate(loss[order])
    keep = numpy.ones(len(order), dtype=bool)
    keep[1:] = loss[order][1:] < best[:-1]
    chosen: numpy.ndarray = order[keep]
    return chosen


def _join(left: _Front, right: _Front, limit: float) -> _Front:
    ms = (left.ms[:, None] + right.ms[None, :]).reshape(-1)
    loss = (left.loss[:, None] + right.loss[None, :]).reshape(-1)
    kept = _select(ms, loss, limit)
    pairs = [divmod(int(number), len(right.ms)) for number in kept]
    origins = [(*left.origins[a], *right.origins[b]) for a, b in pairs]
    return _Front(ms[kept], loss[kept], origins)


def _get_least(place: Place) -> float:
    """The least time of a place."""
    times = [option.ms for option in place.options]
    if place.parts:
        times.append(math.fsum(_get_least(part) for part in place.parts))
    if not times:
        raise ValueError("requires at least one option for each place, got none")
    return min(times)


def _solve(place: Place, limit: float) -> _Front:
    options = sorted(place.options, key=lambda option: (option.ms, option.loss))
    ms, loss = (numpy.array([getattr(option, name) for option in options]) for name in ("ms", "loss"))
    origins: list[Sequence[Option]] = [(option,) for option in options]
    if place.parts:
        rest = [_get_least(part) for part in place.parts]
        front = _Front(numpy.zeros(1), numpy.zeros(1), [()])
        for number, part in enumerate(place.parts):
            # What is left for this part and those before it.
            after = math.fsum(rest[number + 1 :])
            front = _join(front, _solve(part, limit - after), limit - after)
        ms, loss = numpy.concatenate([ms, front.ms]), numpy.concatenate([loss, front.loss])
        origins += front.origins
    kept = _select(ms, loss, limit)
    return _Front(ms[kept], loss[kept], [origins[number] for number in kept])


def find_front(place: Place, limit: float = math.inf) -> list[Choice]:
    """All choices of at most `limit` milliseconds that no other one beats in time and in loss, the fastest first.

    Times and losses add up. Raises `ValueError` for numbers that are not finite and for a place without options.
    """
    _check(place)
    _get_least(place)
    # Sums that are taken in another order may differ in their last digits.
    front = _solve(place, limit * (1 + 1e-12) if limit > 0 else limit)
    return [Choice(float(m), float(x), tuple(own)) for m, x, own in zip(front.ms, front.loss, front.origins)]


def choose(place: Place, limit: float) -> Choice | None:
    """The choice of at most `limit` milliseconds with the least loss; None where the fastest one takes longer."""
    front = find_front(place, limit)
    return front[-1] if front else None


def _check(place: Place) -> None:
    for option in place.options:
        if not (math.isfinite(option.ms) and math.isfinite(option.loss)):
            raise ValueError(
                f"requires finite times and losses, got {option.ms} ms and {option.loss} of '{option.name}' "
                f"at '{option.place}'"
            )
    for part in place.parts:
        _check(part)


def thin_out(front: Sequence[Choice], count: int) -> list[Choice]:
    """At most `count` choices of a front: both ends, and between them those nearest to equal ratios of time."""
    if len(front) <= count:
        return list(front)
    if count == 1:
        return [front[0]]
    low, high = math.log(max(front[0].ms, 1e-9)), math.log(max(front[-1].ms, 1e-9))
    chosen: list[int] = []
    for number in range(count):
        wanted = low + (high - low) * number / (count - 1)
        near = min(range(len(front)), key=lambda at: (abs(math.log(max(front[at].ms, 1e-9)) - wanted), at))
        if near not in chosen:
            chosen.append(near)
    return [front[number] for number in sorted(chosen)]
