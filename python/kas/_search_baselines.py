# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The baselines of `kas.search` next to the network itself: operators that people made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ._errors import as_value_error
from ._module import Operator, named_operators
from ._module import operator as named_operator
from ._search import Searcher, SearchSpace
from ._sequence import OperatorSequence
from .evaluate._latency import measure_latency

GivenBaseline: TypeAlias = str | Operator | OperatorSequence
"""The name of an operator of the library, an operator, or a sequence of operators."""
GivenBaselines: TypeAlias = Sequence[GivenBaseline] | Mapping[str, GivenBaseline]


@dataclass(frozen=True)
class SearchBaseline:
    """A baseline with its number in the database, which is -2 or less."""

    number: int
    name: str
    form: Operator | OperatorSequence

    @property
    def text(self) -> str:
        """Its IR, a whole file."""
        return str(self.form)

    def count_costs(self, space: SearchSpace, extra: Mapping[str, int]) -> dict[str, float]:
        """`flops` and `params`, summed over the layers of the space; those of steps in sequences are not counted.

        `extra` has sizes before those of the layers.
        """
        operators = self.form.operators if isinstance(self.form, OperatorSequence) else [self.form]
        total = {"flops": 0.0, "params": 0.0}
        for binding, count in zip(space.bindings, space.multiplicities):
            for operator in operators:
                primaries, coefficients = operator.symbols
                sizes = {**binding, **extra}
                cost = operator.cost({name: sizes[name] for name in (*primaries, *coefficients)})
                total["flops"] += count * cost.flops
                total["params"] += count * cost.parameters
        return total

    def measure_latency(self, space: SearchSpace, extra: Mapping[str, int]) -> float | None:
        """That of the compiled operator, in milliseconds over the layers of the space; None for sequences."""
        return measure_latency(self.form, space, extra=extra) if isinstance(self.form, Operator) else None


def number_baselines(
    given: GivenBaselines, space: SearchSpace, extra: Mapping[str, int], searcher: Searcher
) -> list[SearchBaseline]:
    """The baselines with the numbers that the searcher has for their names.

    `extra` has sizes beside those of the space. Raises `ValueError` and `TypeError` for names of nothing, names that
    come twice, and what does not fit the layers.
    """
    found: dict[str, Operator | OperatorSequence] = {}
    for name, form in _name_all(given):
        if name in found:
            raise ValueError(f"requires baselines of different names, got '{name}' twice")
        _check_symbols(name, form, space, extra)
        found[name] = form
    with as_value_error():
        return [SearchBaseline(searcher.add_baseline(name, str(form)), name, form) for name, form in found.items()]


def _name_all(given: GivenBaselines) -> list[tuple[str, Operator | OperatorSequence]]:
    entries = given.items() if isinstance(given, Mapping) else [(None, one) for one in _check_sequence(given)]
    result: list[tuple[str, Operator | OperatorSequence]] = []
    for name, one in entries:
        if isinstance(one, str):
            bare = one.removeprefix("kas.")
            if bare not in named_operators():
                raise ValueError(
                    f"requires the name of an operator of the library (kas.named_operators()), got '{one}'"
                )
            result.append((name or f"kas.{bare}", named_operator(bare)))
        elif isinstance(one, (Operator, OperatorSequence)):
            result.append((name or one.name, one))
        else:
            raise TypeError(
                "a baseline must be the name of an operator of the library, a kas.Operator or a kas.OperatorSequence, "
                f"got {type(one).__name__}"
            )
    return result


def _check_sequence(given: object) -> Sequence[GivenBaseline]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"'baselines' must be a list or a dictionary by name, got {type(given).__name__}")
    return given


def _check_symbols(name: str, form: Operator | OperatorSequence, space: SearchSpace, extra: Mapping[str, int]) -> None:
    primaries, coefficients = form.symbols
    wanted = {*primaries, *coefficients}
    for binding in space.bindings:
        if missing := sorted(wanted - binding.keys() - extra.keys()):
            raise ValueError(
                f"the baseline '{name}' does not fit the layers: the space has no value for {', '.join(missing)} "
                "('binding' gives one)"
            )
