# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that stay operators in a network that torch-mlir lowers: calls of functions that apply them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .._module import Module
from ._sizes import fit

_VERIFIER = re.compile(r",\s*torch-verify-linalg-on-tensors-backend-contract")


class _Applied(NamedTuple):
    """A function that stands for an operator."""

    name: str
    text: str
    """Of the operator."""
    binding: str


def lower_with_operators(module: Any) -> str:
    """A module of the Torch dialect, as it was imported, in linalg on tensors, with `kas.apply` for `kas::apply`."""
    from torch_mlir.compiler_utils import run_pipeline_with_repro_report
    from torch_mlir.passmanager import PassManager

    applied = _call_functions(module)
    with module.context:
        expanded = str(
            PassManager.parse(
                "builtin.module(func.func(torch-match-quantized-custom-ops),"
                "torchdynamo-export-to-torch-backend-pipeline,torch-backend-to-linalg-on-tensors-backend-pipeline)"
            )
        )
    # Calls are all that the verifier would not take; what else stays of other dialects, kas does not parse.
    pipeline, count = _VERIFIER.subn("", expanded)
    assert count == 1, "the pipeline of torch-mlir ends with its verifier"
    run_pipeline_with_repro_report(module, pipeline, "Lowering TorchFX IR -> Linalg-on-Tensors IR")
    return _define(str(module), applied)


def _call_functions(module: Any) -> list[_Applied]:
    """Puts calls of declared functions in the place of `torch.operator "torch.kas.apply"`."""
    from torch_mlir import ir

    def read(value: Any) -> str:
        return str(ir.StringAttr(value.owner.attributes["value"]).value)

    applied: list[_Applied] = []
    types: list[Any] = []
    with module.context, ir.Location.unknown():
        blocks = [block for function in module.body.operations for block in function.regions[0].blocks]
        for operation in [view.operation for block in blocks for view in block.operations]:
            if operation.name != "torch.operator" or ir.StringAttr(operation.attributes["name"]).value != (
                "torch.kas.apply"
            ):
                continue
            data, weights, text, binding, _ = operation.operands
            # The batch may be another one than that of the binding.
            sizes = fit(read(text), read(binding), _read_shape(data.type))
            one = _Applied(f"kas_apply_{len(applied)}", read(text), sizes)
            operands = [data, *weights.owner.operands]
            callee = ir.FlatSymbolRefAttr.get(one.name)
            result = operation.results[0]
            with ir.InsertionPoint(operation):
                call = ir.Operation.create(
                    "func.call", results=[result.type], operands=operands, attributes={"callee": callee}
                )
            types.append(ir.FunctionType.get([operand.type for operand in operands], [result.type]))
            result.replace_all_uses_with(call.results[0])
            operation.erase()
            applied.append(one)
        with ir.InsertionPoint.at_block_begin(module.body):
            for one, type_ in zip(applied, types):
                ir.Operation.create(
                    "func.func",
                    regions=1,
                    attributes={
                        "sym_name": ir.StringAttr.get(one.name),
                        "sym_visibility": ir.StringAttr.get("private"),
                        "function_type": ir.TypeAttr.get(type_),
                    },
                )
    return applied


def _read_shape(kind: Any) -> tuple[int, ...]:
    """The sizes of a type of the Torch dialect, `!torch.vtensor<[1,16,8],f32>`."""
    sizes = re.search(r"<\[([\d,]*)\]", str(kind))
    assert sizes, "exported networks have static shapes"
    return tuple(int(size) for size in sizes[1].split(",") if size)


def _define(text: str, applied: list[_Applied]) -> str:
    """The module with what the functions do in their place."""
    names: dict[str, str] = {}
    for one in applied:
        operator = names.setdefault(one.text, f"operator{len(names)}")
        pattern = re.compile(rf"func\.func private @{one.name}\((.*)\) -> (.*)")
        match = pattern.search(text)
        assert match, "each function is declared in a line"
        arguments = [f"%a{number}" for number in range(len(match[1].split(", ")))]
        types = ", ".join(map(": ".join, zip(arguments, match[1].split(", "))))
        binding = one.binding.replace("=", " = ").replace(",", ", ")
        text = text.replace(
            match[0],
            f"func.func private @{one.name}({types}) -> {match[2]} {{\n"
            f"    %r = kas.apply @{operator}<{binding}>({', '.join(arguments)}) : "
            f"({match[1]}) -> {match[2]}\n    return %r : {match[2]}\n  }}",
        )
    renamed = [
        re.sub(r"(kas\.operator\s+(?:private\s+)?@)[\w$.]+", rf"\g<1>{name}", own) for own, name in names.items()
    ]
    start = re.search(r"^module.*\{$", text, re.MULTILINE)
    assert start, "torch-mlir writes a module with its braces"
    text = text[: start.end()] + "\n" + "\n".join(renamed) + text[start.end() :]
    return str(Module(text, "<network>").run("inline,symbol-dce"))
