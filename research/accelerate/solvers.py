#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exact choice of `kas accelerate` beside a greedy one and evolution, by predicted losses at equal effort.

    solvers.py FOLDER/places.json

The file is one that `choices.py -o FOLDER` or `operators.py -o FOLDER` wrote. Budgets are spread evenly, by ratio,
between the fastest network and the model. Evolution has as long as the exact solver, then as many times longer as
`--efforts` says; greedy takes as long as it takes. Losses of evolution are means over `--seeds` seeds; a seed that
found no network within the budget has the loss of the fastest one.
"""

import argparse
import math
import pathlib
import random
import sys
import time
from typing import NamedTuple

from libraries import read_places

from kas._accelerate._knapsack import Choice, Place, choose, find_front
from kas._accelerate._library import KEEP

POPULATION, SAMPLE = 48, 12
"""Of regularized evolution: the networks that are alive, and those of which the best has a child."""


def add_up(options) -> Choice:
    """The choice of these options."""
    return Choice(math.fsum(one.ms for one in options), math.fsum(one.loss for one in options), tuple(options))


# ---- Greedy


def _list_steps(place: Place, current: list) -> list[list]:
    """For all places inside, the choices that differ from `current` there alone; `current` has options in order."""
    steps = []
    alone = [[option] for option in place.options if [option] != current]
    if not place.parts:
        return alone
    if len(current) == 1 and current[0] in place.options:
        # From one for all to those for each part: each at its least loss.
        return [*alone, [option for part in place.parts for option in _get_least_loss(part)]]
    start = 0
    for part in place.parts:
        count = _count(part, current[start:])
        for step in _list_steps(part, current[start : start + count]):
            steps.append([*current[:start], *step, *current[start + count :]])
        start += count
    return [*alone, *steps]


def _count(place: Place, options: list) -> int:
    """How many of the options are for the place."""
    if options[0] in place.options:
        return 1
    total = 0
    for part in place.parts:
        total += _count(part, options[total:])
    return total


def _get_least_loss(place: Place) -> list:
    """The network as it is, or what is nearest to it."""
    found = [[option] for option in place.options]
    if place.parts:
        found.append([option for part in place.parts for option in _get_least_loss(part)])
    return min(found, key=lambda options: (add_up(options).loss, add_up(options).ms))


def choose_greedily(place: Place, limit: float) -> Choice | None:
    """From the model on, the step that costs least for the time that it saves, until the limit holds.

    Then those steps that make the loss smaller within the limit, the largest first. None where no step saves time any
    more before the limit holds.
    """
    current = add_up(_get_least_loss(place))
    while current.ms > limit:
        steps = [step for step in map(add_up, _list_steps(place, list(current.options))) if step.ms < current.ms]
        if not steps:
            return None
        now = current
        current = min(steps, key=lambda one: ((one.loss - now.loss) / (now.ms - one.ms), one.ms))
    while True:
        steps = [one for one in map(add_up, _list_steps(place, list(current.options))) if one.ms <= limit]
        best = min(steps, key=lambda one: one.loss, default=current)
        if best.loss >= current.loss:
            return current
        current = best


# ---- Evolution


def _draw(place: Place, generator: random.Random) -> list:
    """Each option as likely as what its parts have instead."""
    count = len(place.options) + (1 if place.parts else 0)
    number = generator.randrange(count)
    if number < len(place.options):
        return [place.options[number]]
    return [option for part in place.parts for option in _draw(part, generator)]


def _mutate(place: Place, options: list, generator: random.Random) -> list:
    """Another option at one place."""
    if not place.parts or (place.options and generator.random() < 0.1):
        return _draw(place, generator)
    if len(options) == 1 and options[0] in place.options:
        return _draw(place, generator)
    chosen, start = generator.randrange(len(place.parts)), 0
    for number, part in enumerate(place.parts):
        count = _count(part, options[start:])
        if number == chosen:
            return [
                *options[:start],
                *_mutate(part, options[start : start + count], generator),
                *options[start + count :],
            ]
        start += count
    raise AssertionError("one of the parts is chosen")


def evolve(place: Place, limit: float, seconds: float, seed: int) -> tuple[Choice | None, int]:
    """Regularized evolution (Real et al., AAAI 2019) for so long; the best choice and how many were looked at.

    Half of the first networks are the model with a few changes: at large budgets random ones are far from it.
    """
    generator, start = random.Random(seed), time.perf_counter()
    kept = _get_least_loss(place)
    best: Choice | None = None
    alive: list[tuple[float, float, list]] = []
    count = 0

    def add(options: list) -> None:
        nonlocal best, count
        choice = add_up(options)
        count += 1
        if choice.ms <= limit and (best is None or choice.loss < best.loss):
            best = choice
        alive.append((max(choice.ms - limit, 0.0), choice.loss, options))

    while time.perf_counter() - start < seconds or not count:
        if count < POPULATION:
            options = _draw(place, generator) if count % 2 else kept
            add(options if count % 2 else _mutate(place, options, generator))
            continue
        sample = [alive[generator.randrange(len(alive))] for _ in range(SAMPLE)]
        add(_mutate(place, min(sample, key=lambda one: one[:2])[2], generator))
        del alive[0]
    return best, count


# ---- The comparison


class Row(NamedTuple):
    """Losses at a budget."""

    limit: float
    exact: float
    greedy: float
    evolution: list[float]


def compare(place: Place, count: int, efforts: list[float], seeds: int) -> tuple[list[Row], str]:
    """Losses at `count` budgets, and what it took."""
    start = time.perf_counter()
    front = find_front(place)
    seconds = time.perf_counter() - start
    fastest, model = front[0], add_up(_get_least_loss(place))
    low, high = fastest.ms, max(model.ms, 1.001 * fastest.ms)
    rows, looked, spent = [], [0] * len(efforts), [0.0, 0.0]
    for number in range(count):
        limit = low * (high / low) ** ((number + 0.5) / count)
        start = time.perf_counter()
        exact = choose(place, limit)
        took = time.perf_counter() - start
        assert exact is not None, "the fastest network is within all budgets"
        start = time.perf_counter()
        greedy = choose_greedily(place, limit)
        spent = [spent[0] + took, spent[1] + time.perf_counter() - start]
        losses = []
        for place_of, effort in enumerate(efforts):
            found = [evolve(place, limit, effort * took, seed) for seed in range(seeds)]
            looked[place_of] += sum(one[1] for one in found) // seeds
            losses.append(math.fsum((one[0] or fastest).loss for one in found) / seeds)
        rows.append(Row(limit, exact.loss, (greedy or fastest).loss, losses))
    tried = ", ".join(f"{effort:g}x: {one // count}" for effort, one in zip(efforts, looked))
    return rows, (
        f"the front of {len(front)} networks takes {1e3 * seconds:.2g} ms; of one budget: exact "
        f"{1e3 * spent[0] / count:.2g} ms, greedy {1e3 * spent[1] / count:.2g} ms; networks that evolution looked at: "
        f"{tried}"
    )


def make_table(rows: list[Row], efforts: list[float], what: str) -> str:
    """Losses by budget, and by how much others are worse, as the mean of logarithms where both are above 0."""
    heads = "".join(f"{f'evolution {effort:g}x':>16}" for effort in efforts)
    lines = [f"{'ms':>10}{'exact':>12}{'greedy':>12}{heads}"]
    for row in rows:
        others = "".join(f"{loss:16.4g}" for loss in row.evolution)
        lines.append(f"{row.limit:10.4g}{row.exact:12.4g}{row.greedy:12.4g}{others}")

    def get_ratio(pairs: list[tuple[float, float]]) -> float:
        logs = [math.log(other / exact) for exact, other in pairs if exact > 0 and other > 0]
        return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan

    ratios = [get_ratio([(row.exact, row.evolution[number]) for row in rows]) for number in range(len(efforts))]
    lines += [
        "losses over the exact ones, geometric means: greedy "
        f"{get_ratio([(row.exact, row.greedy) for row in rows]):.3f}, evolution "
        + ", ".join(f"{ratio:.3f}" for ratio in ratios),
        f"greedy finds the exact choice at {sum(row.greedy <= row.exact * (1 + 1e-9) for row in rows)} of "
        f"{len(rows)} budgets",
        what,
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", type=pathlib.Path, help="a file places.json")
    parser.add_argument("--budgets", type=int, default=10, help="how many (default: %(default)s)")
    parser.add_argument("--efforts", default="1,10,100", help="times of the exact solver (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="of evolution (default: %(default)s)")
    options = parser.parse_args(arguments)
    efforts = [float(one) for one in options.efforts.split(",")]
    place = read_places(options.places)
    if not find_front(place) or KEEP not in str(place):
        print(f"error: requires places with what the network has, got none in '{options.places}'", file=sys.stderr)
        return 1
    rows, what = compare(place, options.budgets, efforts, options.seeds)
    print(make_table(rows, efforts, what))
    return 0


if __name__ == "__main__":
    sys.exit(main())
