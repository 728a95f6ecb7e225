# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which precision pays on this machine: the model itself in each, timed and measured before anything is searched."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._errors import Error
from ._problem import Problem
from ._statistics import Drop, compare, predict
from ._times import Program, UntraceableError, time_calls

GAIN = 1.03
"""How many times as fast as f32 another precision has to be."""
SHARE = 0.5
"""Of what may be lost, the most that the precision alone may lose where it is chosen for all."""


@dataclass
class ModelInPrecision:
    """The model in one precision."""

    program: Program
    ms: float
    drop: Drop
    """On validation data."""


def list_precisions(precision: str) -> tuple[str, ...]:
    """The precisions that results may have, f32 first, for the option."""
    return {"auto": ("f32", "bf16", "int8"), "f32": ("f32",)}.get(precision, ("f32", precision))


def measure_precisions(problem: Problem) -> dict[str, ModelInPrecision]:
    """The model in each precision that is requested and that there is, f32 first."""
    others = list_precisions(problem.options.precision)[1:]

    def work(precision: str) -> tuple[Program, Drop] | None:
        try:
            program = problem.compile(problem.model, precision)
        except (Error, UntraceableError, ValueError) as error:
            problem.reporter.message(f"the model has no {precision}: {' '.join(str(error).split())[:200]}")
            return None
        outputs = predict(program.predict, problem.data, problem.data.validation)
        return program, compare(problem.task, problem.validation, outputs)

    made = {name: one for name, one in zip(others, problem.map(work, others, "compiling the model")) if one}
    programs = [problem.program, *(program for program, _ in made.values())]
    times = problem.store.remember("model times", lambda: time_calls([one.run for one in programs], 10))
    drops = [Drop(0.0, 0.0), *(drop for _, drop in made.values())]
    found = zip(("f32", *made), zip(programs, times, drops))
    return {name: ModelInPrecision(*one) for name, one in found}


def choose_precision(problem: Problem, found: dict[str, ModelInPrecision]) -> str:
    """The one that networks are chosen in: the fastest that loses little by itself, or the one that is requested."""
    wanted, f32 = problem.options.precision, found["f32"]
    if wanted in found and wanted != "auto":
        if wanted != "f32" and found[wanted].ms * GAIN >= f32.ms:
            problem.reporter.message(
                f"{wanted} is not faster here: {found[wanted].ms:.4g} ms, with f32 {f32.ms:.4g} ms (precision=auto "
                "takes the faster one)"
            )
        return wanted
    limit = SHARE * problem.options.max_drop if problem.options.target is None else math.inf
    good = [name for name, one in found.items() if one.ms * GAIN < f32.ms and one.drop.value <= limit]
    return min(good, key=lambda name: found[name].ms, default="f32")
