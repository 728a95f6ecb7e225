# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear layers with structured weights as sums of products, and how they grow.

An operator without windows, shifts and strides is one sum of products: each index is in the data, in the output and in
some weights, and that is all there is to know. `Structure` has these indices, and from them

* a form that is the same for two operators just when they differ in names, in the order of weights, or in the order
  of the factors of a dimension;
* three exponents, with Potapczynski et al., Searching for Efficient Linear Layers over a Continuous Space of
  Structured Matrices, NeurIPS 2024: for a layer of d inputs and d outputs whose factors are powers of d, with N
  elements of the weights, F operations for one input vector and rank r,

      F ~ N^(1 + sharing),   r ~ d^rank,   F ~ d^(1 + compute).

  Dense layers have sharing 0, rank 1 and compute 1; a Kronecker product of two equal factors 1/2, 1 and 1/2.

>>> import kas
>>> from kas_research.structured import Structure
>>> monarch = Structure.of(kas.operator("linear_monarch"))
>>> monarch.exponents({"Cin": 1, "Cout": 1, "g": "1/2", "p": "1/2"})  # sharing=0, rank=1, compute=1/2
>>> monarch.rank({"Cin": 16, "Cout": 16, "g": 4, "p": 4})             # 16
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy

from kas._module import Operator

__all__ = ["Exponents", "Index", "Structure"]

Power: TypeAlias = "Fraction | int | str"

_PRIME = 2**31 - 1


@dataclass(frozen=True, order=True)
class _Monomial:
    """A number times powers of symbols, which are in the order of their names."""

    powers: tuple[tuple[str, int], ...] = ()
    number: Fraction = Fraction(1)

    @classmethod
    def parse(cls, text: str) -> _Monomial:
        result = cls()
        above, _, below = text.replace(" ", "").partition("/")
        for part, sign in ((above, 1), (below.strip("()"), -1)):
            for factor in filter(None, re.split(r"(?<!\*)\*(?!\*)", part)):
                base, _, exponent = factor.partition("**")
                power = sign * int(exponent or 1)
                if base.isdigit():
                    result *= cls((), Fraction(int(base)) ** power)
                else:
                    result *= cls(((base, power),))
        return result

    def __mul__(self, other: _Monomial) -> _Monomial:
        powers = dict(self.powers)
        for symbol, power in other.powers:
            powers[symbol] = powers.get(symbol, 0) + power
        return _Monomial(
            tuple(sorted((symbol, power) for symbol, power in powers.items() if power)), self.number * other.number
        )

    def __truediv__(self, other: _Monomial) -> _Monomial:
        return self * _Monomial(tuple((symbol, -power) for symbol, power in other.powers), 1 / other.number)

    def __str__(self) -> str:
        above, below = [], []
        if self.number.numerator != 1:
            above.append(str(self.number.numerator))
        if self.number.denominator != 1:
            below.append(str(self.number.denominator))
        for symbol, power in self.powers:
            (above if power > 0 else below).append(symbol if abs(power) == 1 else f"{symbol}**{abs(power)}")
        text = "*".join(above) or "1"
        if below:
            text += "/" + (below[0] if len(below) == 1 else f"({'*'.join(below)})")
        return text

    def at(self, binding: Mapping[str, int]) -> int:
        value = self.number
        for symbol, power in self.powers:
            value *= Fraction(binding[symbol]) ** power
        if value.denominator != 1:
            raise ValueError(f"requires a binding at which {self} is an integer, got {value}")
        return value.numerator

    def exponent(self, powers: Mapping[str, Fraction]) -> Fraction:
        return sum((power * powers[symbol] for symbol, power in self.powers), Fraction(0))


@dataclass(frozen=True)
class Exponents:
    """How a layer grows with its number d of inputs and outputs; see `kas_research.structured`."""

    sharing: Fraction
    """Operations are N^(1 + sharing), N being the number of elements of all weights."""
    rank: Fraction
    """The rank of the matrix, for weights in general, is at most d^rank."""
    compute: Fraction
    """Operations for one input vector are d^(1 + compute)."""

    def __repr__(self) -> str:
        return f"Exponents(sharing={self.sharing}, rank={self.rank}, compute={self.compute})"


@dataclass(frozen=True)
class Index:
    """An index of a sum of products."""

    size: str
    """Its number of values, in the symbols of the operator."""
    in_data: bool
    """The data has it."""
    in_output: bool
    """The output has it; otherwise it is summed over."""
    weights: frozenset[int]
    """The weights that have it, counted from 0."""


_Type: TypeAlias = tuple[bool, bool, frozenset[int]]


@dataclass(frozen=True)
class Structure:
    """An operator as one sum of products of the data and its weights.

    Indices in the same tensors are one index: there is one at most for each set of tensors.
    """

    indices: tuple[Index, ...]
    """In a fixed order that does not depend on names."""
    num_weights: int
    """How many weights there are."""
    batch: tuple[str, ...] = ()
    """Sizes of the dimensions that every weight treats alike and that are as they were: batch and tokens."""

    @classmethod
    def of(cls, operator: Operator) -> Structure:
        """The structure of an operator; a ValueError where it is none: it has windows, maxima, or the like."""
        return _Reader(str(operator)).read()

    def _sizes(self) -> list[tuple[_Type, _Monomial]]:
        return [((i.in_data, i.in_output, i.weights), _Monomial.parse(i.size)) for i in self.indices]

    @functools.cached_property
    def key(self) -> str:
        """A text that two structures share just when they differ in the order of their weights."""
        return min(self._renamed(order) for order in itertools.permutations(range(self.num_weights)))

    @functools.cached_property
    def pattern(self) -> str:
        """The key without sizes: which tensors have an index together."""
        bare = Structure(tuple(Index("", i.in_data, i.in_output, i.weights) for i in self.indices), self.num_weights)
        return bare.key.replace(":1", "")

    def _renamed(self, order: tuple[int, ...]) -> str:
        texts = []
        for (in_data, in_output, weights), size in self._sizes():
            tensors = "X" * in_data + "".join(str(n) for n in sorted(order[w] + 1 for w in weights)) + "Y" * in_output
            texts.append(f"{tensors}:{size}")
        return " ".join(sorted(texts))

    @property
    def reaches(self) -> bool:
        """Each output depends on each input, for weights in general: no index is in both."""
        return not any(index.in_data and index.in_output for index in self.indices)

    def parameters(self, binding: Mapping[str, int]) -> int:
        """Elements of all weights."""
        sizes = [(weights, size.at(binding)) for (_, _, weights), size in self._sizes()]
        return sum(
            math.prod(points for weights, points in sizes if number in weights) for number in range(self.num_weights)
        )

    def _plans(self) -> Iterator[tuple[list[frozenset[int]], list[_Monomial]]]:
        """All ways to compute the layer: the weights of each step, and its points.

        Weights, or products of weights that are prepared, meet the data one after the other; what nothing later has is
        summed up at once.
        """
        sizes = self._sizes()
        for groups in _ordered_partitions(range(self.num_weights)):
            steps = []
            live = {kind for kind, _ in sizes if kind[0]}
            for number, group in enumerate(groups):
                later = frozenset().union(*groups[number + 1 :])
                met = {
                    kind
                    for kind, _ in sizes
                    # Ranks within a group are summed up before.
                    if kind[2] & group and (kind[0] or kind[1] or not kind[2] <= group)
                }
                live |= met
                steps.append(math.prod((size for kind, size in sizes if kind in live), start=_Monomial()))
                live = {kind for kind in live if kind[1] or kind[2] & later}
            yield groups, steps

    def flops(self, binding: Mapping[str, int]) -> int:
        """Two per multiply-add for one input vector, in the best order, products of weights being prepared."""
        return min(2 * sum(step.at(binding) for step in steps) for _, steps in self._plans())

    def order(self, binding: Mapping[str, int]) -> list[frozenset[int]]:
        """The numbers of the weights that each step of the best order takes; products of several are prepared."""
        plans = [(sum(step.at(binding) for step in steps), groups) for groups, steps in self._plans()]
        return min(plans, key=lambda plan: plan[0])[1]

    def exponents(self, powers: Mapping[str, Power]) -> Exponents:
        """The exponents when each symbol is such a power of d: 1 for the inputs and outputs.

        The rank is bounded by the numbers of values that pass between the data with some weights and the output with
        the others; `rank` says what it is at a binding.
        """
        given = {symbol: Fraction(power) for symbol, power in powers.items()}
        sizes = self._sizes()
        exponents = {kind: size.exponent(given) for kind, size in sizes}
        if not self.num_weights:
            raise ValueError("requires an operator with weights, got none")
        parameters = max(
            sum((exponents[kind] for kind in exponents if number in kind[2]), Fraction(0))
            for number in range(self.num_weights)
        )
        flops = min(max(step.exponent(given) for step in steps) for _, steps in self._plans())
        if not parameters:
            raise ValueError("requires weights that grow, got a number of elements that does not depend on d")
        rank = min(
            sum((exponents[kind] for kind in exponents if _crosses(kind, chosen)), Fraction(0))
            for chosen in _subsets(range(self.num_weights))
        )
        return Exponents(flops / parameters - 1, rank, flops - 1)

    def rank(self, binding: Mapping[str, int], seed: int = 0) -> int:
        """The rank of the matrix at a binding, for random weights modulo a prime.

        It is the largest one that any weights have, or, with a probability of the order of its number of rows over
        2^31, less.
        """
        matrix = self._matrix(binding, random.Random(seed))
        rank = 0
        for column in range(matrix.shape[1]):
            rows = numpy.nonzero(matrix[rank:, column])[0]
            if len(rows) == 0:
                continue
            matrix[[rank, rank + rows[0]]] = matrix[[rank + rows[0], rank]]
            pivot = matrix[rank] * pow(int(matrix[rank, column]), -1, _PRIME) % _PRIME
            below = matrix[rank + 1 :]
            below -= below[:, column, None] * pivot % _PRIME
            below %= _PRIME
            rank += 1
            if rank == matrix.shape[0]:
                break
        return rank

    def _matrix(self, binding: Mapping[str, int], generator: random.Random) -> numpy.ndarray:
        """Of the inputs by the outputs."""
        sizes = [(kind, size.at(binding)) for kind, size in self._sizes()]
        product = numpy.ones([1] * len(sizes), dtype=numpy.int64)
        for number in range(self.num_weights):
            shape = [points if number in kind[2] else 1 for kind, points in sizes]
            values = [generator.randrange(1, _PRIME) for _ in range(math.prod(shape))]
            product = product * numpy.array(values, dtype=numpy.int64).reshape(shape) % _PRIME
            # Sum up what only these weights have.
            for axis, (kind, _) in enumerate(sizes):
                if not kind[0] and not kind[1] and max(kind[2]) == number:
                    product = product.sum(axis=axis, keepdims=True) % _PRIME
        product = numpy.broadcast_to(product, [points if kind[0] or kind[1] else 1 for kind, points in sizes])
        # Inputs, then outputs; what is in both comes first, and is on the diagonal.
        groups = [
            [axis for axis, (kind, _) in enumerate(sizes) if kind[:2] == wanted]
            for wanted in ((True, True), (True, False), (False, True), (False, False))
        ]
        both, rows, columns = (math.prod(sizes[axis][1] for axis in group) for group in groups[:3])
        blocks = product.transpose([axis for group in groups for axis in group]).reshape(both, rows, columns)
        matrix = numpy.zeros((both, rows, both, columns), dtype=numpy.int64)
        for block in range(both):
            matrix[block, :, block, :] = blocks[block]
        return matrix.reshape(both * rows, both * columns)

    def __str__(self) -> str:
        """As a sum of products, such as `Y[i,j] = X[k] W1[i,k], i=a, j=b, k=c`."""
        names = dict(zip(self.indices, "ijklmnopqrstuvwxyz"))

        def write(tensor: str, chosen: Iterable[Index]) -> str:
            return f"{tensor}[{','.join(names[index] for index in chosen)}]"

        factors = [write("X", (index for index in self.indices if index.in_data))]
        factors += [
            write(f"W{number + 1}", (index for index in self.indices if number in index.weights))
            for number in range(self.num_weights)
        ]
        output = write("Y", (index for index in self.indices if index.in_output))
        sizes = ", ".join(f"{name}={index.size}" for index, name in names.items())
        return f"{output} = {' '.join(factors)}, {sizes}"


def _crosses(kind: _Type, chosen: frozenset[int]) -> bool:
    """The index is on the side of the data, with the chosen weights, and on that of the output."""
    in_data, in_output, weights = kind
    return (in_data or bool(weights & chosen)) and (in_output or bool(weights - chosen))


def _subsets(items: Iterable[int]) -> Iterator[frozenset[int]]:
    chosen = list(items)
    for size in range(len(chosen) + 1):
        yield from map(frozenset, itertools.combinations(chosen, size))


def _ordered_partitions(items: Iterable[int]) -> Iterator[list[frozenset[int]]]:
    left = frozenset(items)
    if not left:
        yield []
    for first in _subsets(sorted(left)):
        if first:
            for rest in _ordered_partitions(left - first):
                yield [first, *rest]


class _Reader:
    """Reads the text of an operator; what a coordinate is made of is a list of numbers of indices."""

    def __init__(self, text: str):
        self.text = text
        self.sizes: list[_Monomial] = []
        self.halves: dict[int, tuple[_Monomial, list[int]]] = {}
        self.values: dict[str, list[int]] = {}

    def make(self, size: _Monomial) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def expand(self, value: str) -> list[int]:
        """The indices that a value is made of, with merged ones taken apart."""
        return [half for index in self.values[value] for half in self.expand_index(index)]

    def expand_index(self, index: int) -> list[int]:
        if index not in self.halves:
            return [index]
        return [half for part in self.halves[index][1] for half in self.expand_index(part)]

    def merge(self, value: str, block: _Monomial) -> tuple[int, int]:
        if len(self.values[value]) != 1:
            raise ValueError("requires merges of outputs, reductions or halves of merges, got one of a split")
        (index,) = self.values[value]
        known = self.halves.get(index)
        if known is None:
            self.halves[index] = (block, [self.make(self.sizes[index] / block), self.make(block)])
        elif known[0] != block:
            raise ValueError(f"requires a coordinate that is merged one way, got {known[0]} and {block}")
        outer, inner = self.halves[index][1]
        return outer, inner

    def read(self) -> Structure:
        head = re.search(r"kas\.operator @[^<(]*(?:<[^>]*>)?\(([^)]*)\)", self.text)
        if head is None:
            raise ValueError("requires the text of an operator, got none")
        outputs = []
        for output in head[1].split(", %"):
            name, size = output.split(":")
            outputs.append("%" + name.strip().lstrip("%"))
            self.values[outputs[-1]] = [self.make(_Monomial.parse(size.replace("unordered", "")))]
        tensors: list[list[str]] = []
        for line in self.text[head.end() :].splitlines():
            tensors += self.read_line(line.strip())
        return self.finish(outputs, tensors)

    def read_line(self, line: str) -> list[list[str]]:
        if match := re.match(r"(%\w+) = kas\.reduce sum : (.*)$", line):
            self.values[match[1]] = [self.make(_Monomial.parse(match[2]))]
        elif match := re.match(r"(%\w+), (%\w+) = kas\.share (%\w+) :", line):
            self.values[match[1]] = self.values[match[2]] = self.values[match[3]]
        elif match := re.match(r"(%\w+), (%\w+) = kas\.merge (%\w+) by (.*) :", line):
            outer, inner = self.merge(match[3], _Monomial.parse(match[4]))
            self.values[match[1]], self.values[match[2]] = [outer], [inner]
        elif match := re.match(r"(%\w+) = kas\.split (%\w+), (%\w+) :", line):
            self.values[match[1]] = self.values[match[2]] + self.values[match[3]]
        elif line.startswith("kas.yield"):
            return [
                [name.strip() for name in found.split(",")] if found else []
                for found in re.findall(r"(?:data|weight)\(([^)]*)\)", line)
            ]
        elif match := re.search(r"kas\.(?!operator)[\w.]+(?: \w+)?", line):
            raise ValueError(f"requires sums, shares, merges and splits only, got {match[0]}")
        return []

    def finish(self, outputs: list[str], tensors: list[list[str]]) -> Structure:
        # Whole dimensions that no weight has are the batch.
        of_weights = {index for values in tensors[1:] for value in values for index in self.expand(value)}
        passed = {tuple(self.expand(value)) for value in tensors[0]}
        batch = [
            name
            for name in outputs
            if len(self.expand(name)) == 1
            and tuple(self.expand(name)) in passed
            and self.expand(name)[0] not in of_weights
        ]
        skipped = {index for name in batch for index in self.expand(name)}
        kinds: dict[int, tuple[bool, bool, set[int]]] = {}

        def see(index: int, in_data: bool = False, in_output: bool = False, weight: int | None = None) -> None:
            seen_data, seen_output, weights = kinds.get(index, (False, False, set()))
            kinds[index] = (
                seen_data or in_data,
                seen_output or in_output,
                weights if weight is None else weights | {weight},
            )

        for name in outputs:
            for index in self.expand(name):
                see(index, in_output=True)
        for number, values in enumerate(tensors):
            for value in values:
                for index in self.expand(value):
                    see(index, in_data=number == 0, weight=number - 1 if number else None)
        joined: dict[_Type, _Monomial] = {}
        for index, (in_data, in_output, weights) in kinds.items():
            if index not in skipped:
                kind = (in_data, in_output, frozenset(weights))
                joined[kind] = joined.get(kind, _Monomial()) * self.sizes[index]
        ordered = sorted(joined.items(), key=lambda entry: (not entry[0][0], entry[0][1], sorted(entry[0][2])))
        return Structure(
            tuple(Index(str(size), *kind) for kind, size in ordered),
            len(tensors) - 1,
            tuple(str(self.sizes[self.values[name][0]]) for name in batch),
        )
