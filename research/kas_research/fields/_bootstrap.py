# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bootstrap over seeds and test fields together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy


class Ratio(NamedTuple):
    """Of two errors, with the interval of 95 %."""

    value: float
    low: float
    high: float
    probability: float
    """Of draws with a ratio of at least 1: that there is no improvement."""


class Bootstrap:
    """Draws for networks that were tested on the same fields.

    Fields are drawn once for all networks; seeds once for all that have the same ones: these are paired.
    """

    def __init__(self, fields: int, draws: int, seed: int = 0):
        self._draws, self._seed = draws, seed
        generator = numpy.random.default_rng(seed)
        self._weights = generator.multinomial(fields, numpy.full(fields, 1 / fields), draws).T / fields

    def draw(self, errors: Mapping[int, numpy.ndarray]) -> numpy.ndarray:
        """Y of a network, the mean over seeds of the logarithm of the mean error of fields.

        First that of all seeds and fields, then that of each draw. `errors` are those of each field by seed.
        """
        seeds = sorted(errors)
        values = numpy.stack([errors[seed] for seed in seeds])
        generator = numpy.random.default_rng([self._seed, *seeds])
        places = generator.integers(0, len(seeds), (len(seeds), self._draws))
        drawn = numpy.take_along_axis(numpy.log(values @ self._weights), places, 0).mean(0)
        return numpy.concatenate([[numpy.log(values.mean(1)).mean()], drawn])


def summarize(differences: numpy.ndarray) -> Ratio:
    """The ratio of errors of a difference of y's, drawn by one `Bootstrap`."""
    low, high = numpy.exp(numpy.quantile(differences[1:], [0.025, 0.975]))
    probability = (1 + numpy.count_nonzero(differences[1:] >= 0)) / len(differences)
    return Ratio(float(numpy.exp(differences[0])), float(low), float(high), float(probability))
