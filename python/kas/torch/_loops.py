# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops in MLIR that are in a graph for what torch-mlir does not lower, or lowers with another meaning.

A decomposition calls `compute` with the text of a function on tensors. torch-mlir never sees it: before a graph is
imported, what the function takes becomes results of the graph, and what it makes arguments; afterwards the function is
called between the two, and inlined.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from .._module import Module
from .._pipelines import CPUPipeline

ELEMENTS = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
}
"""Of the tensors that loops take and make."""
_DTYPES = {element: dtype for dtype, element in ELEMENTS.items()}


def get_type(shape: Sequence[int], dtype: torch.dtype) -> str:
    """A tensor in MLIR."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{ELEMENTS[dtype]}>"


def _read_types(types: str) -> list[tuple[list[int], torch.dtype]]:
    found = []
    for text in re.findall(r"tensor<([^>]*)>", types):
        *shape, element = text.split("x")
        found.append(([int(size) for size in shape], _DTYPES[element]))
    return found


@torch.library.custom_op("kas::loops", mutates_args=(), device_types="cpu")
def _loops(tensors: Sequence[torch.Tensor], text: str, types: str) -> list[torch.Tensor]:
    """What `@loops` of the text makes of these tensors, by compiled code of its own."""
    results = [torch.empty(shape, dtype=dtype) for shape, dtype in _read_types(types)]
    rows = [tensor.contiguous() for tensor in tensors]
    _load(text).call_at("loops", [tensor.data_ptr() for tensor in (*rows, *results)])
    return results


@_loops.register_fake
def _(tensors: Sequence[torch.Tensor], text: str, types: str) -> list[torch.Tensor]:
    return [torch.empty(shape, dtype=dtype) for shape, dtype in _read_types(types)]


@functools.lru_cache(maxsize=256)
def _load(text: str) -> Any:
    module = Module(text.replace("func.func private @loops(", "func.func @loops("), "<loops>")
    return module.run(str(CPUPipeline(threads=1)))._handle.load(2, None)


class Result(NamedTuple):
    """What loops make."""

    shape: Sequence[int]
    dtype: torch.dtype


def compute(tensors: Sequence[torch.Tensor], results: Sequence[Result], body: str, before: str = "") -> Any:
    """The results of a function of these tensors, `%0`, `%1`, ...; one where there is one.

    `body` returns them in `return`, without types. `before` declares functions that it calls.
    """
    # A tensor that enters twice is one argument, and so no results of a graph are the same.
    types = ", ".join(get_type(result.shape, result.dtype) for result in results)
    arguments = ", ".join(f"%{n}: {get_type(tensor.shape, tensor.dtype)}" for n, tensor in enumerate(tensors))
    body = re.sub(r"^\s*return (.*)$", lambda match: f"return {match[1]} : {types}", body, flags=re.MULTILINE)
    text = f"{before}\nfunc.func private @loops({arguments}) -> ({types}) {{\n{body}\n}}"
    found = torch.ops.kas.loops(list(tensors), text, types)
    return found[0] if len(results) == 1 else tuple(found)


def broadcast(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """`torch.broadcast_tensors`."""
    return list(torch.broadcast_tensors(*tensors))  # type: ignore[no-untyped-call]


def pointwise(
    tensors: Sequence[torch.Tensor], results: Sequence[Result], body: str, outside: str = "", before: str = ""
) -> Any:
    """Results of one shape, of which each place is computed for itself.

    `body` yields an element of each, in `yield` without types, and finds its place by `linalg.index`; `outside` is what
    is the same at all places.
    """
    rank = len(results[0].shape)
    dims = ", ".join(f"d{dim}" for dim in range(rank))
    maps = ", ".join([f"affine_map<({dims}) -> ({dims})>"] * len(results))
    types = [get_type(result.shape, result.dtype) for result in results]
    empty = "\n".join(f"%out{n} = tensor.empty() : {type}" for n, type in enumerate(types))
    outs = ", ".join(f"%out{n}" for n in range(len(types)))
    given = ", ".join(f"%given{n}: {ELEMENTS[result.dtype]}" for n, result in enumerate(results))
    elements = ", ".join(ELEMENTS[result.dtype] for result in results)
    body = re.sub(r"^\s*yield (.*)$", lambda match: f"linalg.yield {match[1]} : {elements}", body, flags=re.MULTILINE)
    names = ", ".join(f"%made#{n}" for n in range(len(types))) if len(types) > 1 else "%made"
    text = f"""{outside}
{empty}
%made{f":{len(types)}" if len(types) > 1 else ""} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{
        ", ".join(['"parallel"'] * rank)
    }]}} outs({outs} : {", ".join(types)}) {{
^bb0({given}):
{body}
}} -> ({", ".join(types)})
return {names}"""
    return compute(tensors, results, text, before)


def elementwise(tensors: Sequence[torch.Tensor], body: str, dtype: torch.dtype | None = None, before: str = "") -> Any:
    """A tensor, each element from those, `%x0`, `%x1`, ..., at the same place of tensors that are broadcast.

    `body` yields it, in `yield` without its type.
    """
    tensors = broadcast(*tensors)
    rank = tensors[0].dim()
    dims = ", ".join(f"d{dim}" for dim in range(rank))
    result = Result(tensors[0].shape, dtype or tensors[0].dtype)
    types = [get_type(tensor.shape, tensor.dtype) for tensor in tensors]
    maps = ", ".join([f"affine_map<({dims}) -> ({dims})>"] * (len(tensors) + 1))
    given = "".join(f"%x{n}: {ELEMENTS[tensor.dtype]}, " for n, tensor in enumerate(tensors))
    element, type = ELEMENTS[result.dtype], get_type(*result)
    body = re.sub(r"^\s*yield (.*)$", lambda match: f"linalg.yield {match[1]} : {element}", body, flags=re.MULTILINE)
    text = f"""%out = tensor.empty() : {type}
%made = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{", ".join(['"parallel"'] * rank)}]}} ins({
        ", ".join(f"%{n}" for n in range(len(tensors)))
    } : {", ".join(types)}) outs(%out : {type}) {{
^bb0({given}%given: {element}):
{body}
}} -> {type}
return %made"""
    return compute(tensors, [result], text, before)


# ---- Between torch-mlir and kas


class Cut(NamedTuple):
    """Loops that were taken out of a graph."""

    text: str
    num_tensors: int
    """That it takes: results of the graph that is left, after its own, in the order of all loops."""
    num_results: int
    """That it makes: arguments of that graph, in the same order."""


def cut_loops(graph: fx.GraphModule) -> list[Cut]:
    """Takes loops out of a graph: what they take becomes results, what they make arguments."""
    cuts: list[Cut] = []
    taken: list[Any] = []
    for node in list(graph.graph.nodes):
        if node.op != "call_function" or node.target is not torch.ops.kas.loops.default:
            continue
        tensors: Any = node.args[0]
        text = str(node.args[1])
        taken += tensors
        values = node.meta["val"]
        for number, value in enumerate(values):
            with graph.graph.inserting_before(next(node for node in graph.graph.nodes if node.op != "placeholder")):
                made = graph.graph.placeholder(f"loops_{len(cuts)}_{number}")
            made.meta = {"val": value}
            for user in list(node.users):
                if user.args[1] == number:
                    user.replace_all_uses_with(made)
                    taken = [made if tensor is user else tensor for tensor in taken]
                    graph.graph.erase_node(user)
        graph.graph.erase_node(node)
        cuts.append(Cut(text, len(tensors), len(values)))
    if cuts:
        output = graph.graph.output_node()
        results: Any = output.args[0]
        output.args = ((*results, *taken),)
    return cuts


def insert_loops(module: Any, cuts: Sequence[Cut]) -> None:
    """Calls the loops in the imported module of the graph that they were taken out of, and inlines them."""
    from torch_mlir import ir
    from torch_mlir.passmanager import PassManager

    with module.context, ir.Location.unknown():
        forward = next(op for op in module.body.operations if op.operation.attributes["sym_name"].value == "forward")
        block = forward.regions[0].blocks[0]
        end = list(block.operations)[-1]
        first_result = len(end.operands) - sum(cut.num_tensors for cut in cuts)
        first_argument = len(block.arguments) - sum(cut.num_results for cut in cuts)
        result, argument = first_result, first_argument
        names: dict[str, tuple[str, list[Any]]] = {}
        for cut in cuts:
            if cut.text not in names:
                names[cut.text] = _add_functions(module, cut.text, f"loops_{len(names)}")
            name, types = names[cut.text]
            operands = list(end.operands)[result : result + cut.num_tensors]
            call = ir.Operation.create(
                "func.call",
                results=types,
                operands=operands,
                attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
                ip=ir.InsertionPoint(end),
            )
            for number, made in enumerate(call.results):
                block.arguments[argument + number].replace_all_uses_with(made)
            result += cut.num_tensors
            argument += cut.num_results
        kept = list(end.operands)[:first_result]
        ir.Operation.create("func.return", operands=kept, ip=ir.InsertionPoint(end))
        end.erase()
        for number in reversed(range(first_argument, len(block.arguments))):
            block.erase_argument(number)
        type = ir.FunctionType.get([value.type for value in block.arguments], [value.type for value in kept])
        forward.attributes["function_type"] = ir.TypeAttr.get(type)
        # What reads a result of loops may be before what they take.
        _sort(block)
        PassManager.parse("builtin.module(inline{default-pipeline=},symbol-dce)").run(module.operation)


def _sort(block: Any) -> None:
    """Puts operations right before the first that reads their results where they come after it, else leaves them.

    An order by readiness would move all that depends on weights alone to the front, far from what it is fused into.
    """
    from torch_mlir import ir

    operations = list(block.operations)
    producers = {value: number for number, operation in enumerate(operations) for value in operation.results}
    needs: list[list[int]] = []
    for number, operation in enumerate(operations):
        found: set[int] = set()

        def visit(inner: Any, found: set[int] = found) -> Any:
            found.update(producers[value] for value in inner.operands if value in producers)
            return ir.WalkResult.ADVANCE

        operation.operation.walk(visit)
        needs.append(sorted(found - {number}))
    placed = [False] * len(operations)
    for first in range(len(operations) - 1):
        path = [first]
        while path:
            missing = next((producer for producer in needs[path[-1]] if not placed[producer]), None)
            if missing is not None:
                path.append(missing)
                continue
            number = path.pop()
            if not placed[number]:
                placed[number] = True
                operations[number].operation.move_before(operations[-1])


def _add_functions(module: Any, text: str, name: str) -> tuple[str, list[Any]]:
    """Adds the functions of the text; the new name of `@loops`, and the types of its results."""
    from torch_mlir import ir

    known = {op.operation.attributes["sym_name"].value for op in module.body.operations if "sym_name" in op.attributes}
    types: list[Any] = []
    for function in ir.Module.parse(text).body.operations:
        symbol = function.operation.attributes["sym_name"].value
        if symbol in known:
            continue
        copy = function.operation.clone(ip=ir.InsertionPoint.at_block_begin(module.body))
        if symbol == "loops":
            copy.attributes["sym_name"] = ir.StringAttr.get(name)
            types = list(ir.FunctionType(copy.attributes["function_type"].value).results)
    return name, types
