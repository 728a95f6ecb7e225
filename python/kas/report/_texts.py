# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of the IR of a candidate, or of a baseline: an operator, or operators one after the other."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._errors import Error
from .._module import Module, Operator, parse
from .._sequence import OperatorSequence
from . import _comparison as comparison

_SEQUENCE = re.compile(r"^\s*kas\.sequence @([\w$.-]+)", re.MULTILINE)


@dataclass(frozen=True)
class Parsed:
    """The operators of a text in their order, and the steps between them."""

    operators: Sequence[Operator]
    steps: Sequence[str] = ()

    @property
    def formula(self) -> str:
        """Those of the operators, with the steps between them."""
        parts = [self.operators[0].formula]
        for step, operator in zip(self.steps, self.operators[1:]):
            parts.append(f"then {step.replace('_', ', ')}: {operator.formula}" if step != "none" else operator.formula)
        return "; ".join(parts)

    @property
    def weights_indexed_by_position(self) -> bool:
        """Of one of the operators."""
        return any(operator.weights_indexed_by_position for operator in self.operators)

    def find_warnings(self, text: str) -> list[str]:
        """What makes it suspect; `text` is what it was read from."""
        return comparison.find_warnings(text, self.weights_indexed_by_position)

    def describe(self, layers: Sequence[tuple[Mapping[str, int], int]]) -> dict[str, Any]:
        """What the page shows of it, at the bindings of `layers` with their multiplicities."""
        result: dict[str, Any] = {"formula": self.formula, "graph": "\n".join(one.graph for one in self.operators)}
        with contextlib.suppress(AttributeError, Error):
            result["by_position"] = self.weights_indexed_by_position
        rows, bindings = [], []
        for binding, count in layers:
            with contextlib.suppress(Error, KeyError):
                costs = [one.cost(_restrict(binding, one)) for one in self.operators]
                rows.append([binding, count, *(sum(numbers) for numbers in zip(*costs))])
                bindings.append(binding)
        result["layers"] = rows
        with contextlib.suppress(Error):
            if bindings:
                nests = [one.loop_nest(_restrict(bindings[0], one)).strip() for one in self.operators]
                result["nest"] = "\n\n".join(nests)
        return result


def _restrict(binding: Mapping[str, int], operator: Operator) -> dict[str, int]:
    primaries, coefficients = operator.symbols
    return {name: binding[name] for name in (*primaries, *coefficients)}


def parse_texts(texts: Mapping[int, str]) -> dict[int, Parsed]:
    """Those that can be read; kernels of the tensor level and damaged texts are left out."""
    renamed = {id: new for id, text in texts.items() if (new := _rename(id, text))}
    try:
        # Operators in one module are parsed many times faster than alone.
        module = parse("\n".join(renamed.values()), "<candidates>")
        return {id: _get(module, id, text) for id, text in renamed.items()}
    except (Error, KeyError):
        pass
    result = {}
    for id, text in renamed.items():
        with contextlib.suppress(Error, KeyError):
            result[id] = _get(parse(text, f"<candidate {id}>"), id, text)
    return result


def _name(id: int) -> str:
    """Of what is parsed; numbers of baselines are negative."""
    return f"c{id}" if id >= 0 else f"b{-id}"


def _rename(id: int, text: str) -> str | None:
    """The text with names of its own; None where it has no operator."""
    if match := _SEQUENCE.search(text):
        return re.sub(rf"@{re.escape(match[1])}(?=\b|_)", f"@{_name(id)}", text)
    pattern = r"^(\s*kas\.operator @)(?:[\w$.-]+|\"[^\"]*\")"
    new, count = re.subn(pattern, rf"\g<1>{_name(id)}", text, count=1)
    return new if count else None


def _get(module: Module, id: int, text: str) -> Parsed:
    if _SEQUENCE.search(text):
        sequence = OperatorSequence(module, _name(id))
        return Parsed(sequence.operators, sequence.steps)
    return Parsed([module[_name(id)]])
