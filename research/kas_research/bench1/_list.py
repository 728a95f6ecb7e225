# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The list of all operators of the space, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, replace

from kas._module import Operator
from kas._processes import map_unordered
from kas._search import SearchSpace

from ._space import LAYERS, NETWORK, PROPERTIES, make_space, read_space
from ._table import Costs, Row


def list_operators(make: Callable[..., SearchSpace] = make_space) -> list[Row]:
    """All operators of the space with their properties, without costs; those with the fewest FLOPs come first.

    A property is had by what the space lists that asks for it: the search decides it exactly. `make` makes the space
    with the limits of some properties.
    """
    having = {name: {candidate.key for candidate in make(name).list()} for name in PROPERTIES}
    return [
        Row(
            number,
            candidate.key,
            candidate.text,
            frozenset(name for name, keys in having.items() if candidate.key in keys),
        )
        for number, candidate in enumerate(make().list())
    ]


def compute_costs(operator: Operator, space: SearchSpace) -> dict[str, Costs]:
    """The costs of an operator in each of `LAYERS`, and their sums over the layers of the space."""
    names = [*operator.symbols[0], *operator.symbols[1]]
    known: dict[tuple[int, ...], Costs] = {}

    def compute(binding: Mapping[str, int]) -> Costs:
        own = {name: binding[name] for name in names}
        values = tuple(own.values())
        if values not in known:
            cost = operator.cost(own)
            known[values] = Costs(
                cost.flops,
                cost.flops_unprepared,
                cost.training_flops,
                operator.existing_flops(own),
                cost.parameters,
                cost.bytes,
            )
        return known[values]

    total = [0] * 6
    for binding, count in zip(space.bindings, space.multiplicities):
        total = [before + count * value for before, value in zip(total, astuple(compute(binding)))]
    return {NETWORK: Costs(*total), **{name: compute(binding) for name, binding in LAYERS.items()}}


def _compute(row: Row) -> tuple[int, dict[str, Costs]]:
    return row.number, compute_costs(row.operator, read_space())


def add_costs(rows: Iterable[Row], processes: int = 1) -> tuple[list[Row], bool]:
    """The rows with the costs that they do not have yet, and whether these are all: Ctrl-C ends it before."""
    known = list(rows)
    found: dict[int, dict[str, Costs]] = {}
    is_complete = True
    try:
        for number, costs in map_unordered(_compute, [row for row in known if not row.costs], processes):
            found[number] = costs
    except KeyboardInterrupt:
        is_complete = False
    return [replace(row, costs=found[row.number]) if row.number in found else row for row in known], is_complete
