# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of the accuracy of networks whose stages have operators of their own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from kas._errors import need

Numbers = NDArray[numpy.float64]
Choices = NDArray[numpy.int64]
"""A row for each network: the number of its width, then that of the operator of each stage."""

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


class Mixture:
    """A Gaussian process: a sum of what the width, each stage, pairs of these and the whole network add.

    Each of them is a normal variable of its own for each choice; their deviations, and that of a seed, are chosen by
    the likelihood of the observations (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, 2.2
    and 5.4.1). So an operator that did well at a stage is expected to do so beside others, the more the less there is
    of pairs. Accuracies are in percent.
    """

    def __init__(self) -> None:
        # Deviations in points of accuracy; where there is little to learn from they stay what they are.
        self.deviations = {"width": 0.8, "stage": 0.8, "pair": 0.2, "network": 0.1, "seed": 0.26}
        self._choices: Choices = numpy.zeros((0, 1), numpy.int64)
        self._offset = 0.0
        self._weights: Numbers = numpy.zeros(0)
        self._factor: Any = None

    def _covariance(self, left: Choices, right: Choices, deviations: dict[str, float]) -> Numbers:
        same = [left[:, None, column] == right[None, :, column] for column in range(left.shape[1])]
        result: Numbers = deviations["width"] ** 2 * same[0].astype(numpy.float64)
        for stage in same[1:]:
            result += deviations["stage"] ** 2 * stage
        for one, other in itertools.combinations(same, 2):
            result += deviations["pair"] ** 2 * (one & other)
        result += deviations["network"] ** 2 * numpy.logical_and.reduce(same)
        return result

    def _solve(self, values: Numbers, deviations: dict[str, float]) -> tuple[Any, Numbers, float]:
        """The factor of the covariance, the weights of the observations, and the logarithm of the likelihood."""
        linalg = need("scipy.linalg", "torch")
        matrix = self._covariance(self._choices, self._choices, deviations)
        matrix[numpy.diag_indices_from(matrix)] += deviations["seed"] ** 2
        factor = linalg.cho_factor(matrix, lower=True)
        weights: Numbers = linalg.cho_solve(factor, values)
        likelihood = -0.5 * float(values @ weights) - float(numpy.log(numpy.diag(factor[0])).sum())
        return factor, weights, likelihood

    def fit(self, choices: Choices, accuracies: Sequence[float]) -> None:
        """Takes observations in place of all before; one network may be there with several seeds."""
        if len(choices) != len(accuracies) or not len(accuracies):
            raise ValueError(f"requires an accuracy for each network, got {len(accuracies)} for {len(choices)}")
        values = numpy.asarray(accuracies, numpy.float64)
        self._choices, self._offset = choices, float(values.mean())
        values = values - self._offset
        best = self._solve(values, self.deviations)
        for name, factor in itertools.product(self.deviations, _FACTORS) if len(values) >= 3 * choices.shape[1] else ():
            tried = {**self.deviations, name: Mixture().deviations[name] * factor}
            solved = self._solve(values, tried)
            if solved[2] > best[2]:
                best, self.deviations = solved, tried
        self._factor, self._weights = best[:2]

    def believe(self, choices: Choices) -> None:
        """Takes what it expects of these for observed: so requests that are made at once differ."""
        means, _ = self.predict(choices)
        values = self._covariance(self._choices, self._choices, self.deviations) @ self._weights
        values += self.deviations["seed"] ** 2 * self._weights
        self._choices = numpy.concatenate([self._choices, choices])
        values = numpy.concatenate([values, means - self._offset])
        self._factor, self._weights, _ = self._solve(values, self.deviations)

    def predict(self, choices: Choices) -> tuple[Numbers, Numbers]:
        """The means of the accuracies, over seeds, and their deviations."""
        linalg = need("scipy.linalg", "torch")
        across = self._covariance(self._choices, choices, self.deviations)
        solved = linalg.solve_triangular(self._factor[0], across, lower=True)
        pairs = choices.shape[1] * (choices.shape[1] - 1) / 2
        d = self.deviations
        prior = d["width"] ** 2 + (choices.shape[1] - 1) * d["stage"] ** 2 + pairs * d["pair"] ** 2 + d["network"] ** 2
        variances = numpy.maximum(prior - (solved**2).sum(0), 0.0)
        return self._offset + across.T @ self._weights, numpy.sqrt(variances)
