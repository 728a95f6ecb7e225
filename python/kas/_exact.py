# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exact comparisons of compiled functions with the reference."""

from __future__ import annotations

import json
from typing import NamedTuple

from . import _kas
from ._errors import Error


class ExactCheck(NamedTuple):
    """The inputs on which a compiled function was compared: random integers for which no sum rounds, in any order."""

    summary: str
    """All of it in one line."""
    degree: int
    """The degree of the results, as polynomials in the elements of all tensors."""
    magnitudes: tuple[int, ...]
    """The largest value of each tensor."""
    density: float
    """The share of values that are not zero; 1: those are drawn like the others."""
    draws: int
    """How many times the tensors were drawn."""
    bitwise: bool
    """Whether all bits were compared; else results are rounded first, since means divide by no power of two."""
    miss_probability: float | None
    """An upper bound of the probability that a wrong function passes; None where a maximum is taken."""


def check_function(
    module: _kas.Module,
    name: str,
    binding: str | None,
    check: str | None,
    *,
    threads: int,
    opt_level: int,
    seed: int,
    draws: int,
) -> ExactCheck | None:
    """Checks the operator `name` at `binding`, or a function if that is None; nothing for a `check` of None."""
    if check is None:
        return None
    if check != "exact":
        raise ValueError(f"the check must be 'exact' or None, got {check!r}")
    if seed < 0 or draws < 0:
        raise ValueError(f"the seed and the number of draws must not be negative, got {min(seed, draws)}")
    fields = json.loads(module.check_exactly(name, binding, threads, opt_level, seed, draws))
    difference = fields.pop("difference")
    if difference is not None:
        raise Error(f"'{name}' is not computed as the reference defines it: {difference} ({fields['summary']})")
    fields["magnitudes"] = tuple(fields["magnitudes"])
    return ExactCheck(**fields)
