# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bootstrap over seeds and test examples together."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy

__all__ = ["Bootstrap", "Difference", "Ratio", "get_difference", "get_ratio", "pack_bits", "unpack_bits"]


def pack_bits(values: numpy.ndarray) -> str:
    """Truth values as text: how many, and eight in a byte, in base 64."""
    return f"{len(values)}:{base64.b64encode(numpy.packbits(values).tobytes()).decode()}"


def unpack_bits(text: str) -> numpy.ndarray:
    """The values of `pack_bits`, as 0 and 1."""
    count, _, packed = text.partition(":")
    return numpy.unpackbits(numpy.frombuffer(base64.b64decode(packed), numpy.uint8), count=int(count))


class Ratio(NamedTuple):
    """Of two errors, with the interval of 95 %."""

    value: float
    low: float
    high: float
    probability: float
    """Of draws with a ratio of at least 1: that there is no improvement."""


class Difference(NamedTuple):
    """Of two means, with its standard error and the interval of 95 %."""

    value: float
    error: float
    low: float
    high: float


class Bootstrap:
    """Draws for networks that were tested on the same examples.

    Examples are drawn once for all networks; seeds once for all that have the same ones: these are paired.
    """

    def __init__(self, examples: int, draws: int, seed: int = 0):
        self._draws, self._seed = draws, seed
        generator = numpy.random.default_rng(seed)
        # Single numbers are exact: counts are small.
        counts = generator.multinomial(examples, numpy.full(examples, 1 / examples), draws)
        self._counts, self._examples = counts.T.astype(numpy.float32), examples

    def draw(
        self, values: Mapping[int, numpy.ndarray], transform: Callable[[numpy.ndarray], numpy.ndarray] = numpy.array
    ) -> numpy.ndarray:
        """The mean over seeds of the transformed mean over examples: first that of all, then that of each draw.

        `values` are those of each example by seed.
        """
        seeds = sorted(values)
        stacked = numpy.stack([values[seed] for seed in seeds])
        generator = numpy.random.default_rng([self._seed, *seeds])
        places = generator.integers(0, len(seeds), (len(seeds), self._draws))
        means = transform(stacked.astype(numpy.float32) @ self._counts / self._examples)
        drawn = numpy.take_along_axis(means, places, 0).mean(0)
        return numpy.concatenate([[transform(stacked.mean(1)).mean()], drawn])


def get_ratio(differences: numpy.ndarray) -> Ratio:
    """The ratio of two errors from the difference of their logarithms, drawn by one `Bootstrap`."""
    low, high = numpy.exp(numpy.quantile(differences[1:], [0.025, 0.975]))
    probability = (1 + numpy.count_nonzero(differences[1:] >= 0)) / len(differences)
    return Ratio(float(numpy.exp(differences[0])), float(low), float(high), float(probability))


def get_difference(differences: numpy.ndarray) -> Difference:
    """The difference of two means, drawn by one `Bootstrap`."""
    low, high = numpy.quantile(differences[1:], [0.025, 0.975])
    return Difference(float(differences[0]), float(differences[1:].std()), float(low), float(high))
