# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that kas-search has found, each at one of the layers of its space in turn, and PyTorch code for them."""

import json
import re
import subprocess

from . import cases, torchcode


def read_spaces(text):
    """Name -> bindings of each kas.space of the text."""
    spaces = {}
    for match in re.finditer(r"kas\.space @(\w+)<.*?\bbindings \[(.*?)\]", text, re.S):
        bindings = re.findall(r"<([^<>]*=[^<>]*)>", match[2])
        spaces[match[1]] = [
            {k.strip(): int(v) for k, v in (part.split("=") for part in binding.split(","))} for binding in bindings
        ]
    return spaces


def read_found(text, count):
    """(name, text, binding) of operators: `count` spread over the list, then the others, in turn at the layers."""
    spaces, found = read_spaces(text), []
    for match in torchcode.OPERATOR.finditer(text):
        space = match["name"].rpartition("_")[0]
        if space in spaces:
            found.append((match["name"], match[0], spaces[space]))
    step = max(1.0, len(found) / count)
    places = [int(i * step) for i in range(min(count, len(found)))]
    chosen = [found[i] for i in places] + [found[i] for i in sorted(set(range(len(found))) - set(places))]
    return [(name, source, layers[i % len(layers)]) for i, (name, source, layers) in enumerate(chosen)]


def make_function(name, source, binding):
    """A module with the operator, applied at the binding."""
    operator = next(iter(torchcode.parse_operators(source, binding).values()))
    shapes = [operator.inputs, *operator.weight_shapes()]
    operands = [f"%a{i}" for i in range(len(shapes))]
    arguments = ", ".join(f"{value}: {cases.tensor(*shape)}" for value, shape in zip(operands, shapes))
    head = source.split("(", 1)[0]
    used = re.search(r"<([^>]*)>", head)[1]
    symbols = [symbol.strip() for symbol in re.split(r"[,|]", used) if symbol.strip()]
    coefficients = [symbol.strip() for symbol in used.partition("|")[2].split(",") if symbol.strip()]
    assert all(symbol in binding for symbol in symbols), name
    bound = ", ".join(f"{symbol} = {binding[symbol]}" for symbol in coefficients)
    types = ", ".join(cases.tensor(*shape) for shape in shapes)
    out = cases.tensor(*operator.shape)
    return (
        f"{source}\nfunc.func @run({arguments}) -> {out} {{\n"
        f"  %y = kas.apply @{name}{'<' + bound + '>' if bound else ''}({', '.join(operands)}) : ({types}) -> {out}\n"
        f"  return %y : {out}\n}}\n"
    )


def stage(tools, text):
    command = [str(tools / "kas-opt"), "-", "-kas-specialize", "-kas-rfactor", "-canonicalize"]
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


def make_case(name, mlir, source, macs, shape, weight_shapes, out):
    scope = {}

    def build(torch):
        if "Model" not in scope:
            import torch.nn.functional

            scope.update(torch=torch, F=torch.nn.functional)
            exec(source, scope)  # Written by torchcode.
        # Of the size that keeps the sums of order 1.
        scale = (cases.product(out) / max(1, macs)) ** (1 / max(1, 2 * len(weight_shapes)))
        return scope["Model"]([torch.randn(*s) * scale for s in weight_shapes])

    def weights(module):
        return [getattr(module, f"w{i}").numpy() for i in range(len(weight_shapes))]

    elements = cases.product(shape) + cases.product(out) + sum(map(cases.product, weight_shapes))
    return cases.Case(
        name, "searched", "searched", tuple(shape), mlir, macs, 1.0, {"written": build}, weights, elements
    )


def make_cases(tools, path, work, count):
    """Name -> case; what is read from the file once is kept in the work directory."""
    kept = work / "searched.json"
    text = path.read_text()
    mark = [len(text), count, path.stat().st_mtime]
    stored = json.loads(kept.read_text()) if kept.exists() else {}
    if stored.get("mark") != mark:
        stored = {"mark": mark, "cases": [], "unsupported": []}
        for name, source, binding in read_found(text, count):
            if len(stored["cases"]) == count:
                break
            mlir = make_function(name, source, binding)
            try:
                model, macs, shape, weight_shapes = torchcode.write_module(stage(tools, mlir))
            except torchcode.UnsupportedError as problem:
                stored["unsupported"].append([name, str(problem)])
                continue
            operator = next(iter(torchcode.parse_operators(source, binding).values()))
            size = f"{binding.get('Cin', binding.get('C', 0))}@{binding.get('H', binding.get('L', 0))}"
            stored["cases"].append([f"{name}_{size}", mlir, model, macs, shape, weight_shapes, operator.shape])
        work.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(stored))
    return {entry[0]: make_case(*entry) for entry in stored["cases"]}
