# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators one after the other, with normalizations and rectifiers between them."""

from __future__ import annotations

import json

from ._module import Binding, Module, Operator, Shapes, Sizes, parse_binding


class OperatorSequence:
    """A `kas.sequence` of a module: what each operator gives, after its step, is the data of the next one.

    `steps` has the step after each operator but the last: `none`, `relu`, `normalize` (batch normalization of
    dimension 1) or `normalize_relu`. A symbol has the same value in all operators.
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
        return {"data": parts[0]["data"], "weights": weights, "output": parts[-1]["output"]}

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
        return Shapes(shapes[0].data, weights, shapes[-1].output)
