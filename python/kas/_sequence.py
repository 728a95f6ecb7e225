# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators one after the other, with normalizations and rectifiers between them."""

from __future__ import annotations

import json

from ._module import Binding, Module, Operator, Shapes, Sizes, parse_binding

COMBINATIONS = ("add", "multiply", "join")
"""Steps between operators that have the same data."""


class OperatorSequence:
    """A `kas.sequence` of a module: what each operator gives, after its step, is the data of the next one.

    `steps` has the step after each operator but the last: `none`, `relu`, `normalize` (batch normalization of
    dimension 1) or `normalize_relu`; or `add`, `multiply` or `join` (along dimension 1), after which the next operator
    is parallel: it has the same data, and what both give becomes one tensor. A symbol has the same value in all
    operators.
    """

    def __init__(self, module: Module, name: str):
        entry = next((one for one in json.loads(module._handle.list_symbols()) if one["name"] == name), None)
        if entry is None or entry["kind"] != "kas.sequence":
            found = "none" if entry is None else f"a {entry['kind']}"
            raise KeyError(f"requires a kas.sequence '{name}' in the module, got {found}")
        self.module = module
        self.name = name
        self.operators: list[Operator] = [Operator(module, stage) for stage in entry["stages"]]
        self.steps: list[str] = entry["between"]
        self._output_sizes: list[str] = entry["output"]

    def __repr__(self) -> str:
        return f"<kas.OperatorSequence {self.name}>"

    def __str__(self) -> str:
        texts = {operator.name: str(operator) for operator in self.operators}
        return "\n".join([*texts.values(), self.module.text_of(self.name)])

    def alone(self) -> OperatorSequence:
        """The same sequence in a module of its own."""
        return OperatorSequence(Module(str(self)), self.name)

    @property
    def symbols(self) -> tuple[list[str], list[str]]:
        """The primary symbols and the coefficients of all operators."""
        kinds = zip(*(operator.symbols for operator in self.operators))
        primaries, coefficients = (list(dict.fromkeys(name for part in names for name in part)) for names in kinds)
        return primaries, coefficients

    @property
    def sizes(self) -> Sizes:
        """The symbolic sizes of the data, the operators' weights and the output."""
        parts = [operator.sizes for operator in self.operators]
        weights = [sizes for part in parts for sizes in part["weights"]]
        return {"data": parts[0]["data"], "weights": weights, "output": list(self._output_sizes)}

    def bindings(self, binding: Binding = None) -> list[dict[str, int]]:
        """The binding of each operator: the values of its symbols."""
        known = parse_binding(binding)
        found = []
        for operator in self.operators:
            primaries, coefficients = operator.symbols
            names = [*primaries, *coefficients]
            if missing := [name for name in names if name not in known]:
                raise ValueError(f"requires values for {', '.join(missing)} in the binding of '{self.name}', got none")
            found.append({name: known[name] for name in names})
        return found

    def shapes(self, binding: Binding = None) -> Shapes:
        """The shapes of the data, the operators' weights and the output at a binding."""
        shapes = [operator.shapes(values) for operator, values in zip(self.operators, self.bindings(binding))]
        weights = tuple(weight for shape in shapes for weight in shape.weights)
        return Shapes(shapes[0].data, weights, self.output_shapes(binding)[-1])

    def is_parallel(self, number: int) -> bool:
        """Whether operator `number` has the data of the one before it."""
        return number > 0 and self.steps[number - 1] in COMBINATIONS

    def output_shapes(self, binding: Binding = None) -> list[tuple[int, ...]]:
        """The shapes of what there is after each operator; of parallel ones what they give together so far."""
        found: list[tuple[int, ...]] = []
        for number, (operator, values) in enumerate(zip(self.operators, self.bindings(binding))):
            output = operator.shapes(values).output
            if number > 0 and self.steps[number - 1] == "join":
                output = (output[0], found[-1][1] + output[1], *output[2:])
            found.append(output)
        return found
