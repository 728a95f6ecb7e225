# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The list of all operators of the space, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, fields, replace

from kas._module import Operator
from kas._processes import map_unordered
from kas._search import SearchSpace

from ._space import LAYERS, NETWORK, PROPERTIES, TRAINED, make_space, make_trained_layers, read_space
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
    """The costs of an operator in each of `LAYERS`, and sums over the layers of the space and of what is trained."""
    names = [*operator.symbols[0], *operator.symbols[1]]
    known: dict[tuple[int, ...], Costs] = {}

    def compute(binding: Mapping[str, int]) -> Costs:
        own = {name: binding[name] for name in names}
        values = tuple(own.values())
        if values not in known:
            known[values] = compute_layer_costs(operator, own)
        return known[values]

    return {
        NETWORK: add((count, compute(binding)) for binding, count in zip(space.bindings, space.multiplicities)),
        TRAINED: add((count, compute(binding)) for count, binding in make_trained_layers()),
        **{name: compute(binding) for name, binding in LAYERS.items()},
    }


def compute_layer_costs(operator: Operator, binding: Mapping[str, int]) -> Costs:
    """Those of a layer."""
    cost = operator.cost(dict(binding))
    return Costs(
        cost.flops,
        cost.flops_unprepared,
        cost.training_flops,
        operator.existing_flops(dict(binding)),
        cost.parameters,
        cost.bytes,
    )


def add(parts: Iterable[tuple[int, Costs]]) -> Costs:
    """The costs of several layers, so many of each."""
    total = [0] * len(fields(Costs))
    for count, costs in parts:
        total = [before + count * value for before, value in zip(total, astuple(costs))]
    return Costs(*total)


def _compute(row: Row) -> tuple[int, dict[str, Costs]]:
    return row.number, compute_costs(row.operator, read_space())


def add_costs(rows: Iterable[Row], processes: int = 1) -> tuple[list[Row], bool]:
    """The rows with the costs that they do not have yet, and whether these are all: Ctrl-C ends it before."""
    known = list(rows)
    found: dict[int, dict[str, Costs]] = {}
    is_complete = True
    try:
        for number, costs in map_unordered(_compute, [row for row in known if TRAINED not in row.costs], processes):
            found[number] = costs
    except KeyboardInterrupt:
        is_complete = False
    return [replace(row, costs=found[row.number]) if row.number in found else row for row in known], is_complete
