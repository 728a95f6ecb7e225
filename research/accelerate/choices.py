#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How good the predictions of `kas accelerate` are: random choices of alternatives, predicted and measured.

    choices.py net.py:make_network --weights=net.pt --data=fashion-mnist --count=100

The library of the network is built as in a run. Each choice replaces a random part of the layers by random
alternatives; its predicted loss and time are sums. Measured are the loss of the whole network before it is trained, on
the examples that losses of single alternatives are measured on, and the time of the compiled network.
"""

import argparse
import random
import sys
from typing import NamedTuple

import numpy
from libraries import add_arguments, open_library

from kas._accelerate._distill import recalibrate
from kas._accelerate._knapsack import Choice, Option, Place
from kas._accelerate._library import EVALUATED, KEEP, RECALIBRATED, Library
from kas._accelerate._problem import Problem
from kas._accelerate._statistics import get_divergence, predict
from kas._accelerate._times import time_calls


class Row(NamedTuple):
    """A choice, as predicted and as measured."""

    replaced: int
    predicted_loss: float
    loss: float
    predicted_ms: float
    ms: float


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--count", type=int, default=100, help="how many choices (default: %(default)s)")
    return parser.parse_args(arguments)


def draw(place: Place, share: float, generator: random.Random) -> list[Option]:
    """One option for a place, or one for each of its parts: with the probability `share` another than what is there."""
    kept = [option for option in place.options if option.name == KEEP]
    others = [option for option in place.options if option.name != KEEP]
    if place.parts and not (others and generator.random() < share / (1 + len(place.parts))):
        return [option for part in place.parts for option in draw(part, share, generator)]
    return [generator.choice(others if others and (not kept or generator.random() < share) else kept)]


def correlate_ranks(one, other) -> float:
    """Spearman's rank correlation; equal values have the mean of their ranks."""

    def rank(values):
        values = numpy.asarray(values, dtype=float)
        return (values[:, None] > values).sum(1) + 0.5 * ((values[:, None] == values).sum(1) - 1)

    return float(numpy.corrcoef(rank(one), rank(other))[0, 1])


def measure(problem: Problem, library: Library, count: int, seed: int) -> list[Row]:
    """Random choices, each once."""
    generator, place = random.Random(seed), library.get_place()
    examples = problem.store.values.get("examples of losses", EVALUATED)
    reference = predict(problem.model, problem.data, problem.data.validation, examples)
    rows, seen = [], set()
    for _ in range(20 * count):
        if len(rows) == count:
            break
        options = tuple(draw(place, generator.random(), generator))
        replaced = sum(option.name != KEEP for option in options)
        if not replaced or options in seen:
            continue
        seen.add(options)
        choice = Choice(sum(one.ms for one in options), sum(one.loss for one in options), options)
        network = library.put(options)
        recalibrate(network, problem.data, RECALIBRATED)
        outputs = predict(network, problem.data, problem.data.validation, examples)
        program = problem.compile(network, problem.precision)
        loss = get_divergence(problem.task, reference, outputs)
        rows.append(Row(replaced, choice.loss, loss, library.predict_ms(choice), time_calls([program.run])[0]))
        print(f"choice {len(rows)}: {rows[-1]}", file=sys.stderr, flush=True)
    return rows


def _correlate(rows: list[Row], what: str) -> str:
    _, loss, measured_loss, ms, measured_ms = zip(*rows)
    return (
        f"rank correlation of the loss: {correlate_ranks(loss, measured_loss):.3f}, of the time: "
        f"{correlate_ranks(ms, measured_ms):.3f}, over {len(rows)} {what}"
    )


def make_table(rows: list[Row], problem: Problem) -> str:
    """All choices by their predicted loss, and how predictions and measurements go together."""
    lines = [f"{'replaced':>8}{'predicted loss':>16}{'loss':>10}{'predicted ms':>14}{'ms':>10}"]
    for row in sorted(rows, key=lambda one: one.predicted_loss):
        lines.append(
            f"{row.replaced:8}{row.predicted_loss:16.4g}{row.loss:10.4g}{row.predicted_ms:14.4g}{row.ms:10.4g}"
        )
    # What replaces one thing is what its own loss was measured on.
    several = [row for row in rows if row.replaced > 1]
    ratios = [row.predicted_ms / row.ms for row in rows]
    lines += [
        f"the model: {problem.base_ms:.4g} ms in {problem.precision}",
        _correlate(rows, "choices"),
        *([_correlate(several, "choices that replace more than one thing")] if len(several) > 1 else []),
        f"predicted over measured time: {min(ratios):.2f} to {max(ratios):.2f}, median {numpy.median(ratios):.2f}",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    options = parse(arguments)
    if options.count < 2:
        print(f"error: --count must be at least 2, got {options.count}", file=sys.stderr)
        return 2
    with open_library(options) as (problem, library):
        rows = measure(problem, library, options.count, options.seed)
        if len(rows) < 2:
            print(f"error: requires a network with at least 2 choices, got {len(rows)}", file=sys.stderr)
            return 1
        print(make_table(rows, problem))
    return 0


if __name__ == "__main__":
    sys.exit(main())
