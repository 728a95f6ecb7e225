# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The result of `kas.accelerate`: the networks, what they are worth, and a folder with them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from ._contest import Result
from ._precision import GAIN
from ._problem import Problem
from ._statistics import get_unit


@dataclass
class FrontPoint:
    """A choice of the exact solver, as predicted, and its time as measured."""

    name: str
    predicted_ms: float
    predicted_loss: float
    layers: dict[str, str]
    ms: float | None = None


class Accelerated:
    """The outcome of `kas.accelerate`."""

    def __init__(
        self,
        problem: Problem,
        results: Sequence[Result],
        front: Sequence[FrontPoint],
        is_complete: bool,
        target_ms: float | None,
        command: str | None,
        operators: Mapping[str, dict[str, Any]] = {},
    ):
        self._problem = problem
        self.results = list(results)
        """The model first, then the baselines and what was found, with what was measured."""
        self.front = list(front)
        """Choices between which training decided."""
        self.is_complete = is_complete
        """Whether it was not interrupted."""
        self.target_ms, self.command = target_ms, command
        self.operators = dict(operators)
        """Layers that are operators of the search, by what tables call them: their text, formula, and name if any."""

    @property
    def dense(self) -> Result | None:
        """The model itself."""
        return self.results[0] if self.results else None

    @property
    def best(self) -> Result | None:
        """The fastest network that loses no more than is allowed, or with a target the most accurate that is so fast.

        Chosen by validation data among all, baselines too; the model itself where nothing is better.
        """
        options = self._problem.options
        allowed = [
            one
            for one in self.results
            if one.kind != "peer" and (options.precision in ("auto", one.precision) or one.kind == "dense")
        ]
        if self.target_ms is not None:
            fast = [one for one in allowed if one.ms <= (self.target_ms or 0)]
            return min(fast, key=lambda one: (one.validation.value, one.ms)) if fast else None
        good = [one for one in allowed if one is self.dense or self._is_within(one)]
        # What is hardly faster is not worth other numbers.
        return min(good, key=lambda one: one.ms * (1.0 if one.precision == "f32" else GAIN)) if good else None

    @property
    def is_reached(self) -> bool:
        """Whether a network is as fast as requested, or faster than the model and as accurate as requested."""
        return self.best is not None and (self.target_ms is not None or self.best is not self.dense)

    @property
    def model(self) -> nn.Module:
        """The network that was taken, in evaluation mode."""
        best = self.best
        found = None if best is None else best.network
        return self._problem.model if found is None else found

    @property
    def speedup(self) -> float:
        """How many times as fast as the model the network is."""
        best, dense = self.best, self.dense
        return 1.0 if best is None or dense is None else dense.ms / best.ms

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        best, dense, unit = self.best, self.dense, get_unit(self._problem.task)
        if dense is None:
            return "nothing was measured before the end"
        if best is None:
            fastest = min(self.results, key=lambda one: one.ms)
            return (
                f"no network takes {self.target_ms:.4g} ms: the fastest, '{fastest.name}', takes {fastest.ms:.4g} ms "
                f"with a drop of {fastest.drop.value:+.2f} {unit}"
            )
        if best is dense:
            return (
                f"no faster network loses at most {self._problem.options.max_drop:g} {unit}: the model stays as it is"
            )
        drop = best.drop
        goal = "at" if self.target_ms is not None else "at the same accuracy:"
        text = (
            f"{self.speedup:.2f} times as fast ({best.ms:.4g} instead of {dense.ms:.4g} ms) {goal} a drop of "
            f"{drop.value:+.2f} {unit} (95 % interval {drop.low:+.2f} to {drop.high:+.2f}) on test data: {best.name}"
        )
        if best.kind != "ours":
            text += ", a network that nothing was searched for"
        faster = [one for one in self.results if one.kind == "peer" and one.ms < best.ms and self._is_within(one)]
        return text + "".join(f"; '{one.name}' takes {one.ms:.4g} ms" for one in faster)

    def _is_within(self, one: Result) -> bool:
        options = self._problem.options
        return one.validation.get_bound(options.confidence) <= options.max_drop

    def table(self) -> str:
        """All networks as a table of text."""
        unit, metric = get_unit(self._problem.task), self._problem.task.metric
        heads = f"{'':42}{metric:>10}{'drop ' + unit:>12}{'95 % interval':>18}{'ms':>10}{'times':>7}"
        lines = [f"{heads}{'MB':>8}{'parameters':>12}"]
        dense = self.dense
        for one in self.results:
            interval = "" if one is dense else f"{one.drop.low:+.2f} to {one.drop.high:+.2f}"
            times = dense.ms / one.ms if dense is not None else 1.0
            lines.append(
                f"{one.name + ('  <- best' if one is self.best else ''):42}{one.metric:10.4f}{one.drop.value:+12.2f}"
                f"{interval:>18}{one.ms:10.4g}{times:7.2f}{one.megabytes:8.2f}{one.parameters:12,}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<kas.Accelerated: {self.verdict}>"

    def to_json(self) -> dict[str, Any]:
        """What was measured."""
        best = self.best
        return {
            "verdict": self.verdict,
            "complete": self.is_complete,
            "reached": self.is_reached,
            "best": None if best is None else best.name,
            "speedup": self.speedup,
            "metric": self._problem.task.metric,
            "unit": get_unit(self._problem.task),
            "networks": [one.to_json() for one in self.results],
            "front": [asdict(point) for point in self.front],
            "operators": self.operators,
            "command": self.command,
        }

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the network, the page and the tables to a folder."""
        from ._files import write_files

        os.makedirs(folder, exist_ok=True)
        write_files(self, self._problem, os.fspath(folder))
        with open(os.path.join(folder, "results.json.new"), "w", encoding="utf-8") as file:
            json.dump(self.to_json(), file, indent=2)
            file.write("\n")
        os.replace(os.path.join(folder, "results.json.new"), os.path.join(folder, "results.json"))
