# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operator of the list an operator is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kas._module import Module, Operator
from kas._search import SearchSpace

if TYPE_CHECKING:
    from ._table import Row


class Found(NamedTuple):
    """Where an operator is in the list, or why it is not there."""

    number: int | None
    """Its place; None where it is not in the list."""
    reason: str | None = None
    """Which bound of the space it is not within, as far as that is known, or `not listed`."""

    def __str__(self) -> str:
        return f"number {self.number}" if self.number is not None else f"not in the space: {self.reason}"


def _parse(operator: Operator | str, symbols: Mapping[str, str]) -> Operator:
    text = operator if isinstance(operator, str) else str(operator)
    for old, new in symbols.items():
        # Not names of values and operators.
        text = re.sub(rf"(?<![%@\w]){re.escape(old)}(?!\w)", new, text)
    module = Module(text, "<operator>")
    names = module.operators
    if len(names) != 1:
        raise ValueError(f"requires one operator, got {len(names)}")
    return module[names[0]]


def find(
    operator: Operator | str, space: SearchSpace, rows: Mapping[str, Row], symbols: Mapping[str, str] = {}
) -> Found:
    """The place of an operator in the list of a space, by the key of its canonical form."""
    parsed = _parse(operator, symbols)
    coefficients = space.symbols[1]
    if unknown := [name for name in parsed.symbols[1] if name not in coefficients]:
        return Found(
            None,
            f"requires the coefficients {', '.join(coefficients)}, got '{unknown[0]}': say which it is by symbols=",
        )
    reasons: list[str] = []
    # What is written may be the form of the search where the simpler one is not.
    for form in (parsed, parsed.canonical()):
        key, reasons = space.find(form)
        if key is not None and key in rows:
            return Found(rows[key].number)
    return Found(None, "; ".join(reasons) or "not listed")
