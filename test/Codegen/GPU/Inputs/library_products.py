#!/usr/bin/env python3
"""Writes random products of matrices, and checks the descriptions of them in a manifest.

    python library_products.py write SEED COUNT > module.mlir
    python library_products.py check SEED COUNT < manifest.json

Each function is a sum of products of two tensors whose dimensions, in random
orders, are batches, rows, columns and steps, with or without a bias along a
dimension, a residual and a rectifier. `check` computes each product that has a
description for a library from that description alone (sizes, strides and
positions of arguments) on small integers, and compares all elements with what
the function computes. It prints how many it has compared. All draws come from
SEED.
"""

import json
import random
import sys
from dataclasses import dataclass

import numpy as np


@dataclass
class Case:
    """A function; axes are letters with `sizes`, tensors strings of them."""

    sizes: dict[str, int]
    left: str
    right: str
    result: str
    bias: str = ""
    has_residual: bool = False
    is_rectified: bool = False

    def shape(self, axes: str) -> list[int]:
        return [self.sizes[axis] for axis in axes]

    @property
    def inputs(self) -> list[str]:
        return [
            self.left,
            self.right,
            *([self.bias] if self.bias else []),
            *([self.result] if self.has_residual else []),
        ]


def draw(generator: random.Random) -> Case:
    letters = iter("abcdefghijkl")

    def take(most: int, least: int = 0) -> list[str]:
        return [next(letters) for _ in range(generator.randint(least, most))]

    batches, rows, columns, steps = take(2), take(2, 1), take(2, 1), take(2, 1)
    sizes = {axis: generator.randint(1, 5) for axis in batches + rows + columns + steps}
    # Half of the tensors have their groups of axes one after another, as layers do; in others all are mixed.
    is_mixed = generator.random() < 0.4

    def order(*groups: list[str]) -> str:
        picked = [list(group) for group in groups if group]
        generator.shuffle(picked)
        axes = [axis for group in picked for axis in group]
        if is_mixed:
            generator.shuffle(axes)
        return "".join(axes)

    # A factor may be the same for all batches, which are rows or columns then.
    left = order(batches if generator.random() < 0.8 else [], rows, steps)
    case = Case(sizes, left, order(batches, columns, steps), order(batches, rows, columns))
    if generator.random() < 0.5:
        case.bias = generator.choice(case.result)
    case.has_residual = generator.random() < 0.3
    case.is_rectified = generator.random() < 0.3
    return case


def get_cases(seed: int, count: int) -> list[Case]:
    generator = random.Random(seed)
    return [draw(generator) for _ in range(count)]


def tensor(shape: list[int]) -> str:
    return "tensor<" + "x".join(map(str, [*shape, "f32"])) + ">"


def get_map(axes: str, loops: str) -> str:
    dims = ", ".join(f"d{i}" for i in range(len(loops)))
    return f"affine_map<({dims}) -> ({', '.join(f'd{loops.index(axis)}' for axis in axes)})>"


def write(case: Case, name: str) -> str:
    types = [tensor(case.shape(axes)) for axes in case.inputs]
    result = tensor(case.shape(case.result))
    loops = case.result + "".join(axis for axis in case.sizes if axis not in case.result)
    parallel = ", ".join(['"parallel"'] * len(case.result))
    kinds = ", ".join([parallel, *(['"reduction"'] * (len(loops) - len(case.result)))])
    maps = ", ".join(get_map(axes, loops) for axes in (case.left, case.right, case.result))
    lines = [
        f"func.func @{name}({', '.join(f'%a{i}: {type}' for i, type in enumerate(types))}) -> {result} {{",
        "  %zero = arith.constant 0.0 : f32",
        f"  %empty = tensor.empty() : {result}",
        f"  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}",
        f"  %sum = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}",
        f"      ins(%a0, %a1 : {types[0]}, {types[1]}) outs(%zeros : {result}) {{",
        "    ^bb0(%x: f32, %y: f32, %z: f32):",
        "      %product = arith.mulf %x, %y : f32",
        "      %next = arith.addf %z, %product : f32",
        "      linalg.yield %next : f32",
        f"  }} -> {result}",
    ]
    value = "%sum"
    if len(types) > 2 or case.is_rectified:
        inputs = ["%sum", *(f"%a{i}" for i in range(2, len(types)))]
        maps = ", ".join(get_map(axes, case.result) for axes in [case.result, *case.inputs[2:], case.result])
        lines += [
            f"  %all = linalg.generic {{indexing_maps = [{maps}],",
            f"      iterator_types = [{parallel}]}}",
            f"      ins({', '.join(inputs)} : {', '.join([result, *types[2:]])}) outs(%empty : {result}) {{",
            f"    ^bb0({', '.join(f'%x{i}: f32' for i in range(len(inputs)))}, %out: f32):",
        ]
        term = "%x0"
        for i in range(1, len(inputs)):
            lines.append(f"      %s{i} = arith.addf %x{i}, {term} : f32")
            term = f"%s{i}"
        if case.is_rectified:
            lines.append(f"      %rectified = arith.maximumf {term}, %zero : f32")
            term = "%rectified"
        lines += [f"      linalg.yield {term} : f32", f"  }} -> {result}"]
        value = "%all"
    return "\n".join([*lines, f"  return {value} : {result}", "}"])


def evaluate(matmul: dict, arguments: list[np.ndarray], count: int) -> np.ndarray:
    """What the description says, of flat arguments; elements that it does not write are NaN."""
    batches, rows, columns, steps = (np.arange(size) for size in matmul["sizes"])

    def get(name: str, lines: np.ndarray, inner: np.ndarray) -> np.ndarray:
        batch, line, step = matmul[name]["strides"]
        return batches[:, None, None] * batch + lines[:, None] * line + inner * step

    left = arguments[matmul["left"]["argument"]][get("left", rows, steps)]
    right = arguments[matmul["right"]["argument"]][get("right", columns, steps)]
    places = get("result", rows, columns)
    values = left @ right.transpose(0, 2, 1)
    if "bias" in matmul:
        values += arguments[matmul["bias"]]
    if "residual" in matmul:
        values += arguments[matmul["residual"]][places]
    if matmul["rectified"]:
        values = np.maximum(values, 0)
    result = np.full(count, np.nan)
    result[places] = values
    return result


def compute(case: Case, inputs: list[np.ndarray]) -> np.ndarray:
    value = np.einsum(f"{case.left},{case.right}->{case.result}", *inputs[:2])
    others = inputs[2:]
    if case.bias:
        value = value + np.einsum(
            f"{case.bias},{case.result}->{case.result}", others.pop(0), np.ones(case.shape(case.result))
        )
    if case.has_residual:
        value = value + others.pop(0)
    return np.maximum(value, 0) if case.is_rectified else value


def check(cases: list[Case], manifest: dict) -> int:
    compared = 0
    functions = {function["name"]: function for function in manifest["functions"]}
    generator = np.random.default_rng(0)
    for i, case in enumerate(cases):
        function = functions[f"f{i}"]
        launch = function["launches"][0]
        matmul = manifest["kernels"][launch["kernel"]].get("matmul")
        # What first copies weights, or has no such form.
        if matmul is None or len(function["launches"]) != 1:
            continue
        inputs = [generator.integers(-4, 5, case.shape(axes)).astype(float) for axes in case.inputs]
        # Buffers of the function are its arguments in order, then its result.
        assert launch["arguments"][-1] == len(inputs), launch
        arguments = [inputs[position].reshape(-1) for position in launch["arguments"][:-1]]
        expected = compute(case, inputs).reshape(-1)
        result = evaluate(matmul, arguments, expected.size)
        if not np.array_equal(result, expected):
            sys.exit(f"error: expected {expected} for function f{i} ({case}), got {result} from {matmul}")
        compared += 1
    return compared


def main() -> None:
    mode, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    cases = get_cases(seed, count)
    if mode == "write":
        print("\n".join(write(case, f"f{i}") for i, case in enumerate(cases)))
    else:
        print(f"compared {check(cases, json.load(sys.stdin))} of {count}")


if __name__ == "__main__":
    main()
