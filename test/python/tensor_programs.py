# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs on tensors, as other compilers hand them over, and what NumPy computes for them.

A program is a function of linalg, tensor, arith, math and scf whose steps read what earlier ones made. Floats are small
integers, so that no order of a sum rounds: results are equal bit by bit or wrong.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

Array = NDArray

INTEGERS = {"i8": numpy.int8, "i16": numpy.int16, "i32": numpy.int32, "i64": numpy.int64}
FLOATS = {"f32": numpy.float32, "f64": numpy.float64}
KINDS = {**INTEGERS, **FLOATS, "i1": numpy.bool_}
LARGEST = 1e6
"""Of f32 and f64 in a program: far below where they lose integers."""
MOST_ELEMENTS = 4000


class Value(NamedTuple):
    """An SSA value and the array that it stands for."""

    name: str
    array: Array

    @property
    def kind(self) -> str:
        return next(name for name, kind in KINDS.items() if numpy.dtype(kind) == self.array.dtype)

    @property
    def type(self) -> str:
        return type_of(self.array)


class Example(NamedTuple):
    """A program, arguments, and the results for these."""

    text: str
    arguments: list[Array]
    results: list[Array]


def type_of(array: Array) -> str:
    sizes = "".join(f"{size}x" for size in array.shape)
    return f"tensor<{sizes}{Value('', array).kind}>"


def is_number(array: Array) -> bool:
    return array.dtype != numpy.bool_


def is_integer(array: Array) -> bool:
    return array.dtype.kind == "i"


def as_unsigned(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


class Program:
    """Text and values so far."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.numbers = numpy.random.default_rng(seed)
        self.lines: list[str] = []
        self.arguments: list[Value] = []
        self.values: list[Value] = []
        self._names = itertools.count()

    def name(self) -> str:
        return f"%v{next(self._names)}"

    def add_argument(self, shape: Sequence[int], kind: str) -> Value:
        low, high = (0, 2) if kind == "i1" else (-4, 5)
        value = Value(f"%a{len(self.arguments)}", self.numbers.integers(low, high, shape).astype(KINDS[kind]))
        self.arguments.append(value)
        self.values.append(value)
        return value

    def pick(self, holds: Callable[[Array], bool] = lambda array: True) -> Value:
        """One of the last values for which something holds; IndexError where there is none."""
        return self.random.choice([value for value in self.values if holds(value.array)][-6:])

    def pick_like(self, like: Value) -> Value:
        return self.pick(lambda array: array.shape == like.array.shape and array.dtype == like.array.dtype)

    def write(self, text: str, array: Array, before: Sequence[str] = ()) -> Value | None:
        """Adds `NAME = text`, whose value is `array`, unless that is too large."""
        array = numpy.array(array, order="C")
        if array.dtype.kind == "f" and numpy.abs(array).max(initial=0) > LARGEST:
            return None
        value = Value(self.name(), array)
        self.lines += [*before, f"{value.name} = {text}"]
        self.values.append(value)
        return value

    def define(self, text: str) -> str:
        """Adds what is no tensor of its own: constants, and where results go."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, value: float | bool, kind: str) -> str:
        if kind == "i1":
            return self.define(f"arith.constant {str(bool(value)).lower()}")
        return self.define(f"arith.constant {float(value) if kind in FLOATS else int(value)} : {kind}")

    def empty(self, array: Array) -> str:
        return self.define(f"tensor.empty() : {type_of(array)}")

    def filled(self, array: Array, value: float) -> str:
        """A tensor like `array` that is `value` everywhere."""
        kind, type = Value("", array).kind, type_of(array)
        constant, empty = self.constant(value, kind), self.empty(array)
        return self.define(f"linalg.fill ins({constant} : {kind}) outs({empty} : {type}) -> {type}")


def affine_map(num_loops: int, results: Sequence[str]) -> str:
    loops = ", ".join(f"d{i}" for i in range(num_loops))
    return f"affine_map<({loops}) -> ({', '.join(results)})>"


def generic(
    maps: Sequence[str],
    iterators: Sequence[str],
    inputs: Sequence[tuple[str, str]],
    outputs: Sequence[tuple[str, str]],
    body: str,
) -> str:
    """A `linalg.generic` on pairs of a value and its type; in `body` inputs are `%x0`, ... and outputs `%y0`, ..."""
    scalars = [
        f"%{letter}{i}: {type[type.rindex('x') + 1 : -1] if 'x' in type else type[7:-1]}"
        for letter, pairs in (("x", inputs), ("y", outputs))
        for i, (_, type) in enumerate(pairs)
    ]
    ins = f"ins({', '.join(name for name, _ in inputs)} : {', '.join(type for _, type in inputs)}) " if inputs else ""
    outs = f"outs({', '.join(name for name, _ in outputs)} : {', '.join(type for _, type in outputs)})"
    results = ", ".join(type for _, type in outputs)
    kinds = ", ".join(f'"{iterator}"' for iterator in iterators)
    return (
        f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} {ins}{outs} "
        f"{{\n^bb0({', '.join(scalars)}):\n{body}\n}} -> {f'({results})' if len(outputs) > 1 else results}"
    )


# ---- Steps: each adds one operation, or nothing


BINARY = {
    "f": {
        "addf": numpy.add,
        "subf": numpy.subtract,
        "mulf": numpy.multiply,
        "maximumf": numpy.maximum,
        "minimumf": numpy.minimum,
    },
    "i": {
        "addi": numpy.add,
        "subi": numpy.subtract,
        "muli": numpy.multiply,
        "andi": numpy.bitwise_and,
        "ori": numpy.bitwise_or,
        "xori": numpy.bitwise_xor,
        "maxsi": numpy.maximum,
        "minsi": numpy.minimum,
        "maxui": lambda x, y: numpy.maximum(as_unsigned(x), as_unsigned(y)).view(x.dtype),
        "minui": lambda x, y: numpy.minimum(as_unsigned(x), as_unsigned(y)).view(x.dtype),
    },
}


def binary(program: Program) -> None:
    a = program.pick(is_number)
    b = program.pick_like(a)
    name, compute = program.random.choice(list(BINARY[a.array.dtype.kind].items()))
    program.write(f"arith.{name} {a.name}, {b.name} : {a.type}", compute(a.array, b.array))


UNARY = {
    "math.absf": numpy.abs,
    "math.floor": numpy.floor,
    "math.ceil": numpy.ceil,
    "math.roundeven": numpy.rint,
    "math.trunc": numpy.trunc,
    "arith.negf": numpy.negative,
}


def unary(program: Program) -> None:
    a = program.pick(lambda array: array.dtype.kind == "f")
    name, compute = program.random.choice(list(UNARY.items()))
    program.write(f"{name} {a.name} : {a.type}", compute(a.array))


def compare(program: Program) -> None:
    a = program.pick(is_number)
    b = program.pick_like(a)
    if is_integer(a.array):
        predicates = {"slt": numpy.less, "sge": numpy.greater_equal, "eq": numpy.equal, "ne": numpy.not_equal}
        predicates["ult"] = lambda x, y: as_unsigned(x) < as_unsigned(y)
    else:
        predicates = {"olt": numpy.less, "oge": numpy.greater_equal, "oeq": numpy.equal, "une": numpy.not_equal}
    name, compute = program.random.choice(list(predicates.items()))
    which = "cmpi" if is_integer(a.array) else "cmpf"
    program.write(f"arith.{which} {name}, {a.name}, {b.name} : {a.type}", compute(a.array, b.array))


def select(program: Program) -> None:
    condition = program.pick(lambda array: not is_number(array))
    a = program.pick(lambda array: is_number(array) and array.shape == condition.array.shape)
    b = program.pick_like(a)
    program.write(
        f"arith.select {condition.name}, {a.name}, {b.name} : {condition.type}, {a.type}",
        numpy.where(condition.array, a.array, b.array),
    )


def cast(program: Program) -> None:
    a = program.pick()
    kind = program.random.choice([kind for kind in KINDS if kind != a.kind])
    found = convert(program, a, kind)
    if found is not None:
        name, array = found
        program.write(f"arith.{name} {a.name} : {a.type} to {type_of(array)}", array)


def convert(program: Program, a: Value, kind: str) -> tuple[str, Array] | None:
    """The operation that converts to `kind`, and what it gives; None where the result is not defined."""
    array, to = a.array, KINDS[kind]
    if a.kind in FLOATS:
        if kind in FLOATS:
            return "extf" if kind == "f64" else "truncf", array.astype(to)
        if kind == "i1" or numpy.abs(array).max(initial=0) > 120:
            return None
        return "fptosi", array.astype(to)
    if kind in FLOATS:
        return "uitofp" if a.kind == "i1" else "sitofp", array.astype(to)
    is_signed = program.random.random() < 0.5
    if a.kind == "i1":
        return ("extsi", -array.astype(to)) if is_signed else ("extui", array.astype(to))
    if kind == "i1":
        return "trunci", (array & 1).astype(bool)
    if numpy.dtype(to).itemsize < array.itemsize:
        return "trunci", array.astype(to)
    return ("extsi", array.astype(to)) if is_signed else ("extui", as_unsigned(array).astype(to))


def shift(program: Program) -> None:
    a = program.pick(is_integer)
    count = program.random.randrange(a.array.itemsize * 8)
    by = program.define(f"arith.constant dense<{count}> : {a.type}")
    name = program.random.choice(["shli", "shrsi", "shrui"])
    array = as_unsigned(a.array) if name == "shrui" else a.array
    by_array = numpy.asarray(count, array.dtype)
    shifted = array << by_array if name == "shli" else array >> by_array
    program.write(
        f"arith.{name} {a.name}, {by} : {a.type}", numpy.asarray(shifted).astype(array.dtype).view(a.array.dtype)
    )


def divide(program: Program) -> None:
    a = program.pick(is_integer)
    divisor = program.random.choice([-3, -2, 1, 2, 3, 7, 16])
    by = program.define(f"arith.constant dense<{divisor}> : {a.type}")
    name = program.random.choice(["divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui"])
    bits = a.array.itemsize * 8
    quotients = [quotient(int(number), divisor, name, bits) for number in a.array.flat]
    wrapped = [(number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)) for number in quotients]
    program.write(f"arith.{name} {a.name}, {by} : {a.type}", numpy.array(wrapped, a.array.dtype).reshape(a.array.shape))


def quotient(number: int, divisor: int, name: str, bits: int) -> int:
    if name.endswith("ui"):
        number, divisor = number % (1 << bits), divisor % (1 << bits)
    if name.startswith("floor"):
        return number // divisor
    if name.startswith("ceil"):
        return -(-number // divisor)
    truncated = abs(number) // abs(divisor) * (1 if (number < 0) == (divisor < 0) else -1)
    return truncated if name.startswith("div") else number - truncated * divisor


def transpose(program: Program) -> None:
    a = program.pick(lambda array: array.ndim >= 2)
    permutation = program.random.sample(range(a.array.ndim), a.array.ndim)
    array = numpy.transpose(a.array, permutation)
    into = program.empty(array)
    program.write(
        f"linalg.transpose ins({a.name} : {a.type}) outs({into} : {type_of(array)}) permutation = {permutation}", array
    )


def broadcast(program: Program) -> None:
    a = program.pick(lambda array: array.ndim <= 2 and array.size < 600)
    rank = a.array.ndim + program.random.randint(1, 2)
    added = sorted(program.random.sample(range(rank), rank - a.array.ndim))
    sizes = iter(a.array.shape)
    shape = [program.random.choice([1, 2, 3, 5]) if dim in added else next(sizes) for dim in range(rank)]
    array = numpy.broadcast_to(numpy.expand_dims(a.array, tuple(added)), shape)
    into = program.empty(array)
    program.write(
        f"linalg.broadcast ins({a.name} : {a.type}) outs({into} : {type_of(array)}) dimensions = {added}", array
    )


def extract_slice(program: Program) -> None:
    a = program.pick(lambda array: array.ndim >= 1 and array.size > 0)
    offsets, sizes, strides = [], [], []
    for size in a.array.shape:
        offsets.append(program.random.randrange(size))
        strides.append(program.random.choice([1, 1, 2, 3]))
        sizes.append(program.random.randint(1, (size - 1 - offsets[-1]) // strides[-1] + 1))
    array = a.array[slices(offsets, sizes, strides)]
    if program.random.random() < 0.3:
        # Some dimensions of size 1 are dropped.
        array = array.reshape([size for size in sizes if size != 1 or program.random.random() < 0.5])
    program.write(f"tensor.extract_slice {a.name}{offsets} {sizes} {strides} : {a.type} to {type_of(array)}", array)


def insert_slice(program: Program) -> None:
    a = program.pick(lambda array: array.ndim >= 1 and array.size > 0)

    def fits(array: Array) -> bool:
        is_alike = array.ndim == a.array.ndim and array.dtype == a.array.dtype and array.size > 0
        return is_alike and all(map(int.__le__, array.shape, a.array.shape))

    b = program.pick(fits)
    offsets, strides = [], []
    for size, taken in zip(a.array.shape, b.array.shape):
        stride = program.random.choice([1, 1, 2])
        strides.append(stride if stride * (taken - 1) < size else 1)
        offsets.append(program.random.randint(0, size - strides[-1] * (taken - 1) - 1))
    sizes = list(b.array.shape)
    array = a.array.copy()
    array[slices(offsets, sizes, strides)] = b.array
    source, shape = b, sizes
    if 1 in sizes and program.random.random() < 0.3:
        shape = [size for size in sizes if size != 1 or program.random.random() < 0.5]
        groups = groups_of(sizes, shape)
        if groups is None:
            return
        flat = b.array.reshape(shape)
        found = program.write(f"tensor.collapse_shape {b.name} {groups} : {b.type} into {type_of(flat)}", flat)
        assert found is not None
        source = found
    program.write(
        f"tensor.insert_slice {source.name} into {a.name}{offsets} {sizes} {strides} : {source.type} into {a.type}",
        array,
    )


def groups_of(sizes: Sequence[int], kept: Sequence[int]) -> list[list[int]] | None:
    """The dimensions of `sizes` that each of `kept` stands for; None where that has none."""
    if not kept:
        return []
    groups: list[list[int]] = [[]]
    left = list(kept)
    for dim in range(len(sizes)):
        if groups[-1] and math.prod(sizes[i] for i in groups[-1]) == left[0] and len(left) > 1:
            left.pop(0)
            groups.append([])
        groups[-1].append(dim)
    return groups if [math.prod(sizes[i] for i in group) for group in groups] == list(kept) else None


def slices(offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> tuple[slice, ...]:
    return tuple(
        slice(offset, offset + stride * (size - 1) + 1, stride) for offset, size, stride in zip(offsets, sizes, strides)
    )


def pad(program: Program) -> None:
    a = program.pick(lambda array: array.ndim >= 1 and array.size < MOST_ELEMENTS)
    low, high = ([program.random.randint(0, 2) for _ in a.array.shape] for _ in range(2))
    value = 1 if a.kind == "i1" else program.random.choice([0, 1, 3])
    constant = program.constant(value, a.kind)
    array = numpy.pad(a.array, list(zip(low, high)), constant_values=value)
    places = ", ".join(f"%i{dim}: index" for dim in range(a.array.ndim))
    program.write(
        f"tensor.pad {a.name} low{low} high{high} {{\n^bb0({places}):\n  tensor.yield {constant} : {a.kind}\n}} : "
        f"{a.type} to {type_of(array)}",
        array,
    )


def collapse_shape(program: Program) -> None:
    a = program.pick(lambda array: array.ndim >= 2)
    groups: list[list[int]] = []
    rank, dim = a.array.ndim, 0
    while dim < rank:
        size = program.random.randint(1, rank - dim)
        groups.append(list(range(dim, dim + size)))
        dim += size
    array = a.array.reshape([math.prod(a.array.shape[i] for i in group) for group in groups])
    program.write(f"tensor.collapse_shape {a.name} {groups} : {a.type} into {type_of(array)}", array)


def expand_shape(program: Program) -> None:
    a = program.pick(lambda array: 1 <= array.ndim <= 3 and array.size > 0)
    groups: list[list[int]] = []
    shape: list[int] = []
    for size in a.array.shape:
        factor = program.random.choice([factor for factor in range(1, size + 1) if size % factor == 0])
        parts = [factor, size // factor] if program.random.random() < 0.7 else [size]
        groups.append(list(range(len(shape), len(shape) + len(parts))))
        shape += parts
    array = a.array.reshape(shape)
    program.write(f"tensor.expand_shape {a.name} {groups} output_shape {shape} : {a.type} into {type_of(array)}", array)


def concat(program: Program) -> None:
    a = program.pick(lambda array: array.ndim >= 1 and array.size < MOST_ELEMENTS)
    dim = program.random.randrange(a.array.ndim)

    def fits(array: Array) -> bool:
        is_alike = array.ndim == a.array.ndim and array.dtype == a.array.dtype and array.size < MOST_ELEMENTS
        return is_alike and numpy.delete(array.shape, dim).tolist() == numpy.delete(a.array.shape, dim).tolist()

    b = program.pick(fits)
    array = numpy.concatenate([a.array, b.array], dim)
    program.write(f"tensor.concat dim({dim}) {a.name}, {b.name} : ({a.type}, {b.type}) -> {type_of(array)}", array)


REDUCTIONS = {
    "f": [("addf", numpy.add, 0), ("maximumf", numpy.maximum, -100), ("minimumf", numpy.minimum, 7)],
    "i": [
        ("addi", numpy.add, 1),
        ("muli", numpy.multiply, 3),
        ("maxsi", numpy.maximum, -128),
        ("minsi", numpy.minimum, 3),
        ("xori", numpy.bitwise_xor, 5),
        ("andi", numpy.bitwise_and, -1),
    ],
}


def reduce(program: Program) -> None:
    a = program.pick(lambda array: array.ndim >= 1 and is_number(array))
    dims = sorted(program.random.sample(range(a.array.ndim), program.random.randint(1, a.array.ndim)))
    name, compute, start = program.random.choice(REDUCTIONS[a.array.dtype.kind])
    array = numpy.asarray(compute.reduce(a.array, tuple(dims), initial=start, dtype=a.array.dtype))
    into = program.filled(array, start)
    program.write(
        f"linalg.reduce {{ arith.{name} }} ins({a.name} : {a.type}) outs({into} : {type_of(array)}) "
        f"dimensions = {dims}",
        array,
    )


def multiply_add(kind: str) -> str:
    letter = "f" if kind in FLOATS else "i"
    return (
        f"  %p = arith.mul{letter} %x0, %x1 : {kind}\n  %s = arith.add{letter} %y0, %p : {kind}\n"
        f"  linalg.yield %s : {kind}"
    )


def contraction(program: Program) -> None:
    """A product of two tensors whose dimensions are paired at random, summed over some."""
    a = program.pick(lambda array: array.ndim >= 1 and is_number(array) and array.size > 0)
    b = program.pick(lambda array: array.ndim >= 1 and array.dtype == a.array.dtype and array.size > 0)
    sizes, of_b = list(a.array.shape), []
    for size in b.array.shape:
        same = [loop for loop, other in enumerate(sizes) if other == size and loop not in of_b]
        if same and program.random.random() < 0.7:
            of_b.append(program.random.choice(same))
        else:
            of_b.append(len(sizes))
            sizes.append(size)
    if len(sizes) > 6 or math.prod(sizes) > 200_000:
        return
    of_a = list(range(a.array.ndim))
    kept = program.random.sample(range(len(sizes)), program.random.randint(0, min(4, len(sizes))))
    letters = ["".join("abcdef"[loop] for loop in loops) for loops in (of_a, of_b, kept)]
    start = program.random.choice([0, 0, 2])
    product = numpy.einsum(
        f"{letters[0]},{letters[1]}->{letters[2]}", a.array, b.array, dtype=a.array.dtype, casting="unsafe"
    )
    array = numpy.asarray(product + numpy.asarray(start, a.array.dtype), a.array.dtype)
    into = program.filled(array, start)
    maps = [affine_map(len(sizes), [f"d{loop}" for loop in loops]) for loops in (of_a, of_b, kept)]
    iterators = ["parallel" if loop in kept else "reduction" for loop in range(len(sizes))]
    inputs = [(a.name, a.type), (b.name, b.type)]
    program.write(generic(maps, iterators, inputs, [(into, type_of(array))], multiply_add(a.kind)), array)


def window(program: Program) -> None:
    """Sums, maxima or products over a window of the last dimension."""
    a = program.pick(lambda array: array.ndim >= 1 and is_number(array) and array.shape[-1] >= 3)
    size, stride, dilation = (program.random.randint(1, most) for most in (3, 2, 2))
    count = (a.array.shape[-1] - (size - 1) * dilation - 1) // stride + 1
    if count < 1:
        return
    ends = [tap * dilation + stride * (count - 1) + 1 for tap in range(size)]
    taps = numpy.stack([a.array[..., tap * dilation : ends[tap] : stride] for tap in range(size)], -1)
    letter, kind = "f" if a.kind in FLOATS else "i", a.kind
    what = program.random.choice(["sum", "max", "product"])
    if what == "product":
        weight = program.add_argument((size,), kind)
        array, start, body = (taps * weight.array).sum(-1, dtype=a.array.dtype), 0, multiply_add(kind)
        read = weight.name
    else:
        read = program.empty(taps.reshape(-1, size)[0])
        if what == "sum":
            array, start, combine = taps.sum(-1, dtype=a.array.dtype), 0, f"add{letter}"
        else:
            start, combine = -100, "maximumf" if letter == "f" else "maxsi"
            array = numpy.maximum(taps.max(-1), numpy.asarray(start, a.array.dtype))
        body = f"  %s = arith.{combine} %y0, %x0 : {kind}\n  linalg.yield %s : {kind}"
    rank = a.array.ndim
    lead = [f"d{dim}" for dim in range(rank - 1)]
    maps = [
        affine_map(rank + 1, [*lead, f"d{rank - 1} * {stride} + d{rank} * {dilation}"]),
        affine_map(rank + 1, [f"d{rank}"]),
        affine_map(rank + 1, [*lead, f"d{rank - 1}"]),
    ]
    array = numpy.asarray(array, a.array.dtype)
    into = program.filled(array, start)
    inputs = [(a.name, a.type), (read, f"tensor<{size}x{kind}>")]
    program.write(generic(maps, ["parallel"] * rank + ["reduction"], inputs, [(into, type_of(array))], body), array)


def add_index(program: Program) -> None:
    a = program.pick(lambda array: array.ndim >= 1 and is_number(array))
    rank = a.array.ndim
    dim = program.random.randrange(rank)
    places = numpy.arange(a.array.shape[dim]).reshape([-1 if i == dim else 1 for i in range(rank)])
    array = numpy.asarray(a.array + numpy.broadcast_to(places, a.array.shape).astype(a.array.dtype), a.array.dtype)
    into = program.empty(array)
    if a.kind in FLOATS:
        body = f"  %j = arith.index_cast %k : index to i64\n  %q = arith.sitofp %j : i64 to {a.kind}\n"
        body += f"  %s = arith.addf %x0, %q : {a.kind}\n"
    else:
        body = f"  %q = arith.index_cast %k : index to {a.kind}\n  %s = arith.addi %x0, %q : {a.kind}\n"
    body = f"  %k = linalg.index {dim} : index\n{body}  linalg.yield %s : {a.kind}"
    same = affine_map(rank, [f"d{i}" for i in range(rank)])
    program.write(generic([same] * 2, ["parallel"] * rank, [(a.name, a.type)], [(into, a.type)], body), array)


def gather(program: Program) -> None:
    """Rows by numbers that are computed, brought into the range."""
    a = program.pick(lambda array: array.ndim == 2 and array.size > 0)
    b = program.pick(lambda array: array.ndim == 1 and array.dtype in (numpy.int32, numpy.int64))
    last = a.array.shape[0] - 1
    array = a.array[numpy.clip(b.array.astype(numpy.int64), 0, last)]
    into, low, high = program.empty(array), program.constant(0, b.kind), program.constant(last, b.kind)
    body = (
        f"  %l = arith.maxsi %x0, {low} : {b.kind}\n  %h = arith.minsi %l, {high} : {b.kind}\n"
        f"  %r = arith.index_cast %h : {b.kind} to index\n  %c = linalg.index 1 : index\n"
        f"  %s = tensor.extract {a.name}[%r, %c] : {a.type}\n  linalg.yield %s : {a.kind}"
    )
    maps = [affine_map(2, ["d0"]), affine_map(2, ["d0", "d1"])]
    program.write(generic(maps, ["parallel"] * 2, [(b.name, b.type)], [(into, type_of(array))], body), array)


def argmax(program: Program) -> None:
    """Two results of one operation: the largest, and where it is."""
    start = -1000
    a = program.pick(
        lambda array: (
            array.ndim >= 1 and array.dtype in (numpy.float32, numpy.int32) and array.size > 0 and array.min() > start
        )
    )
    rank = a.array.ndim
    dim = program.random.randrange(rank)
    largest, place = numpy.asarray(a.array.max(dim)), numpy.asarray(a.array.argmax(dim), numpy.int64)
    outputs = [(program.filled(largest, start), type_of(largest)), (program.filled(place, 0), type_of(place))]
    loops = [f"d{i}" for i in range(rank)]
    reduced = affine_map(rank, [loop for i, loop in enumerate(loops) if i != dim])
    greater = "arith.cmpf ogt" if a.kind in FLOATS else "arith.cmpi sgt"
    body = (
        f"  %k = linalg.index {dim} : index\n  %j = arith.index_cast %k : index to i64\n"
        f"  %c = {greater}, %x0, %y0 : {a.kind}\n  %s = arith.select %c, %x0, %y0 : {a.kind}\n"
        f"  %q = arith.select %c, %j, %y1 : i64\n  linalg.yield %s, %q : {a.kind}, i64"
    )
    iterators = ["reduction" if i == dim else "parallel" for i in range(rank)]
    maps = [affine_map(rank, loops), reduced, reduced]
    name = program.name()
    program.lines.append(f"{name}:2 = {generic(maps, iterators, [(a.name, a.type)], outputs, body)}")
    program.values += [Value(f"{name}#0", largest), Value(f"{name}#1", place)]


def matmul(program: Program) -> None:
    a = program.pick(lambda array: array.ndim == 2 and is_number(array))
    b = program.add_argument((a.array.shape[1], program.random.choice([1, 3, 8, 17])), a.kind)
    array = numpy.einsum("ij,jk->ik", a.array, b.array, dtype=a.array.dtype)
    into, type = program.filled(array, 0), type_of(array)
    program.write(f"linalg.matmul ins({a.name}, {b.name} : {a.type}, {b.type}) outs({into} : {type}) -> {type}", array)


def convolution(program: Program) -> None:
    def fits(array: Array) -> bool:
        return array.ndim == 4 and is_number(array) and 0 < array.size < 5000 and min(array.shape[2:]) >= 2

    a = program.pick(fits)
    _, channels, *sizes = a.array.shape
    taps = [program.random.randint(1, min(3, size)) for size in sizes]
    stride, outputs = program.random.randint(1, 2), program.random.choice([1, 2, 8])
    b = program.add_argument((outputs, channels, *taps), a.kind)
    counts = [(size - tap) // stride + 1 for size, tap in zip(sizes, taps)]
    array = numpy.zeros((a.array.shape[0], outputs, *counts), a.array.dtype)
    for h, w in itertools.product(*map(range, taps)):
        seen = a.array[(..., *slices((h, w), counts, (stride, stride)))]
        array += numpy.einsum("nchw,fc->nfhw", seen, b.array[:, :, h, w], dtype=a.array.dtype)
    into, type = program.filled(array, 0), type_of(array)
    program.write(
        f"linalg.conv_2d_nchw_fchw {{strides = dense<{stride}> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}} "
        f"ins({a.name}, {b.name} : {a.type}, {b.type}) outs({into} : {type}) -> {type}",
        array,
    )


def loop(program: Program) -> None:
    """A loop that carries a tensor."""
    a = program.pick(lambda array: array.dtype in (numpy.float32, numpy.int32))
    count = program.random.randint(0, 3)
    array = a.array.copy()
    for _ in range(count):
        array = numpy.asarray(array + a.array, a.array.dtype)
    low, step, high = (program.define(f"arith.constant {number} : index") for number in (0, 1, count))
    add = "arith.addf" if a.kind in FLOATS else "arith.addi"
    program.write(
        f"scf.for %i = {low} to {high} step {step} iter_args(%c = {a.name}) -> ({a.type}) {{\n"
        f"  %t = {add} %c, {a.name} : {a.type}\n  scf.yield %t : {a.type}\n}}",
        array,
    )


def running_sum(program: Program) -> None:
    """A loop over rows that writes each into a tensor and carries another one."""
    a = program.pick(lambda array: array.ndim == 2 and array.dtype in (numpy.float32, numpy.int32) and array.size > 0)
    rows, columns = a.array.shape
    sums = numpy.cumsum(a.array, 0, dtype=a.array.dtype)
    row = f"tensor<{columns}x{a.kind}>"
    zeros, into = program.filled(sums[0], 0), program.empty(sums)
    low, step, high = (program.define(f"arith.constant {number} : index") for number in (0, 1, rows))
    add, name = "arith.addf" if a.kind in FLOATS else "arith.addi", program.name()
    program.lines.append(
        f"{name}:2 = scf.for %i = {low} to {high} step {step} iter_args(%c = {into}, %r = {zeros}) -> "
        f"({a.type}, {row}) {{\n"
        f"  %t = tensor.extract_slice {a.name}[%i, 0] [1, {columns}] [1, 1] : {a.type} to {row}\n"
        f"  %q = {add} %r, %t : {row}\n"
        f"  %p = tensor.insert_slice %q into %c[%i, 0] [1, {columns}] [1, 1] : {row} into {a.type}\n"
        f"  scf.yield %p, %q : {a.type}, {row}\n}}"
    )
    program.values += [Value(f"{name}#0", sums), Value(f"{name}#1", sums[-1].copy())]


def condition(program: Program) -> None:
    """One of two tensors, by an element of a third."""
    a = program.pick(lambda array: array.dtype in (numpy.float32, numpy.int32))
    b = program.pick_like(a)
    c = program.pick(lambda array: not is_number(array) and array.size > 0)
    place = [program.random.randrange(size) for size in c.array.shape]
    indices = [program.define(f"arith.constant {index} : index") for index in place]
    chosen = program.define(f"tensor.extract {c.name}[{', '.join(indices)}] : {c.type}")
    name, compute = ("addf", numpy.add) if a.kind in FLOATS else ("xori", numpy.bitwise_xor)
    array = compute(a.array, b.array) if c.array[tuple(place)] else a.array
    program.write(
        f"scf.if {chosen} -> ({a.type}) {{\n  %t = arith.{name} {a.name}, {b.name} : {a.type}\n"
        f"  scf.yield %t : {a.type}\n}} else {{\n  scf.yield {a.name} : {a.type}\n}}",
        array,
    )


STEPS: tuple[Callable[[Program], None], ...] = (
    binary,
    unary,
    compare,
    select,
    cast,
    shift,
    divide,
    transpose,
    broadcast,
    extract_slice,
    insert_slice,
    pad,
    collapse_shape,
    expand_shape,
    concat,
    reduce,
    contraction,
    window,
    add_index,
    gather,
    argmax,
    matmul,
    convolution,
    loop,
    running_sum,
    condition,
)


def make_example(seed: int) -> Example:
    """The program of a seed: `@f` of one to three arguments and some weights, with one to three results."""
    program = Program(seed)
    for _ in range(program.random.randint(1, 3)):
        shape = [program.random.choice([1, 2, 3, 4, 5, 8, 16, 17]) for _ in range(program.random.randint(0, 4))]
        program.add_argument(shape, program.random.choice(list(KINDS)))
    wanted = program.random.randint(2, 14)
    made: list[Value] = []
    with numpy.errstate(all="ignore"):
        while len(made) < wanted:
            try:
                program.random.choice(STEPS)(program)
            except IndexError:
                continue  # no value that the step takes
            made = [value for value in program.values if value.name.startswith("%v")]
    results = list(
        dict.fromkeys([len(made) - 1, *program.random.choices(range(len(made)), k=program.random.randint(0, 2))])
    )
    returned = [made[i] for i in results]
    arguments = ", ".join(f"{value.name}: {value.type}" for value in program.arguments)
    types = ", ".join(value.type for value in returned)
    body = "\n".join(program.lines)
    text = (
        f"func.func @f({arguments}) -> ({types}) {{\n{body}\n"
        f"return {', '.join(value.name for value in returned)} : {types}\n}}\n"
    )
    return Example(text, [value.array for value in program.arguments], [value.array for value in returned])
