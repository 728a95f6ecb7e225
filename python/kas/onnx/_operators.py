# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators, sequences and kernels as nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .._kernel import Kernel
from .._module import Binding, Module, Operator, binding_to_text, parse_binding
from . import _code
from ._body import Body, Value
from ._convolution import find_convolution

_MOST_MACS = 4
"""A stage is a convolution of up to so many times its multiply-adds: with 3, the first one of @syno_operator1 takes a
third of the time that it takes where windows are gathered and multiplied."""

_APPLY = re.compile(r"(%\S+) = kas\.apply @([^\s(<]+)\(([^)]*)\)")


class _Stage(NamedTuple):
    """One of the operators, without symbols, that an operator is computed by."""

    operator: Operator
    operands: list[str]
    result: str


def write_operator(body: Body, operator: Operator, binding: Binding, data: Value, weights: Sequence[Value]) -> Value:
    """The output of an operator: as one convolution, or by its best stages, each a convolution where it is one."""
    whole, stages, names = _find_stages(operator, binding)
    convolution = find_convolution(whole)
    if convolution is not None and (convolution.is_average or convolution.macs <= whole.cost().macs):
        return convolution.write(body, data, weights)
    found = [find_convolution(stage.operator) for stage in stages]
    values = dict(zip(names, [data, *weights]))
    for stage, part in zip(stages, found):
        first, *others = (values[name] for name in stage.operands)
        if part is not None and part.macs <= max(1, stage.operator.cost().macs) * _MOST_MACS:
            values[stage.result] = part.write(body, first, others)
        else:
            values[stage.result] = _code.run(stage.operator.to_pytorch(), stage.operator.name, [first], others, body)
    return values[stages[-1].result]


def write_kernel(
    body: Body, kernel: Kernel, binding: Binding, data: Sequence[Value], weights: Sequence[Value]
) -> Value:
    """The output of a kernel for inputs with a batch."""
    return _code.run(kernel.to_pytorch(binding), kernel.name, data, weights, body)


def _find_stages(operator: Operator, binding: Binding) -> tuple[Operator, list[_Stage], list[str]]:
    """The operator at the binding, the stages, and the names of its arguments in these."""
    operator = operator.alone()
    shapes = operator.shapes(binding)
    names = [f"%arg{index}" for index in range(1 + len(shapes.weights))]
    types = [
        "x".join(["tensor<" + "x".join(map(str, shape)), "f32>"]) if shape else "tensor<f32>"
        for shape in (shapes.data, *shapes.weights, shapes.output)
    ]
    values = ", ".join(f"{name} = {value}" for name, value in parse_binding(binding_to_text(binding)).items())
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(names, types))
    function = (
        f"func.func @kas_onnx_main({arguments}) -> {types[-1]} {{\n"
        f"  %y = kas.apply @{operator.name}{f'<{values}>' if values else ''}({', '.join(names)})"
        f" : ({', '.join(types[:-1])}) -> {types[-1]}\n"
        f"  return %y : {types[-1]}\n}}\n"
    )
    module = Module(f"{operator}\n{function}").run("kas-specialize")
    (whole,) = _find_applications(module)
    module = module.clone().run("kas-rfactor{traffic=8}")
    return whole.operator, _find_applications(module), names


def _find_applications(module: Module) -> list[_Stage]:
    return [
        _Stage(module[name], [operand.strip() for operand in operands.split(",")], result)
        for result, name, operands in _APPLY.findall(module.text_of("kas_onnx_main"))
    ]
