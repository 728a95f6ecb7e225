# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions as MatMul, Mul and ReduceSum: runtimes have these everywhere, and Einsum in few places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy

from ._body import Body, Value


class _Factor(NamedTuple):
    """A tensor with a letter for each dimension."""

    value: Value
    letters: str

    def size(self, letter: str) -> int:
        return self.value.shape[self.letters.index(letter)]


def contract(body: Body, subscripts: str, values: Sequence[Value]) -> Value:
    """What `einsum` gives for one or two tensors."""
    inputs, _, result = subscripts.partition("->")
    factors = [_take_diagonals(body, _Factor(value, letters)) for value, letters in zip(values, inputs.split(","))]
    for index, factor in enumerate(factors):
        needed = set(result).union(*(other.letters for other in factors if other is not factor))
        factors[index] = _sum(body, factor, [letter for letter in factor.letters if letter not in needed])
    if len(factors) == 1:
        return _arrange(body, factors[0], result)
    if len(factors) != 2:
        raise ValueError(f"requires one or two tensors to multiply, got {len(factors)}")
    left, right = factors
    if set(left.letters + right.letters) == set(result):
        return body.elementwise("Mul", *(_spread(body, factor, result) for factor in factors))
    return min(_find_plans(left, right, result), key=lambda plan: plan.moved).write(body)


def _arrange(body: Body, factor: _Factor, letters: str) -> Value:
    return body.transpose(factor.value, [factor.letters.index(letter) for letter in letters])


def _spread(body: Body, factor: _Factor, letters: str) -> Value:
    """With a dimension for each letter, of size 1 for those that it does not have."""
    value = _arrange(body, factor, "".join(letter for letter in letters if letter in factor.letters))
    return body.reshape(value, [factor.size(letter) if letter in factor.letters else 1 for letter in letters])


def _sum(body: Body, factor: _Factor, letters: Sequence[str]) -> _Factor:
    value = body.reduce("ReduceSum", factor.value, [factor.letters.index(letter) for letter in letters])
    return _Factor(value, "".join(letter for letter in factor.letters if letter not in letters))


def _take_diagonals(body: Body, factor: _Factor) -> _Factor:
    """With each letter once."""
    for letter in factor.letters:
        while factor.letters.count(letter) > 1:
            first = factor.letters.index(letter)
            second = factor.letters.index(letter, first + 1)
            value = diagonal(body, factor.value, first, second)
            letters = factor.letters[:first] + factor.letters[first + 1 : second] + factor.letters[second + 1 :]
            factor = _Factor(value, letters + letter)
    return factor


def diagonal(body: Body, value: Value, first: int, second: int) -> Value:
    """The elements with equal indices of two dimensions; theirs is the last one."""
    others = [dim for dim in range(len(value.shape)) if dim not in (first, second)]
    height, width = value.shape[first], value.shape[second]
    value = body.transpose(value, [*others, first, second])
    value = body.reshape(value, [*value.shape[:-2], height * width])
    return body.take(value, numpy.arange(min(height, width)) * (width + 1), len(others))


class _Plan(NamedTuple):
    """A product of matrices: the first `outer` letters of the result number them, in both factors or in one."""

    left: _Factor
    right: _Factor
    result: str
    outer: str
    inner: str
    moved: int
    """The elements that are moved to be multiplied so, and of the product to be the result."""

    @property
    def rows(self) -> str:
        return "".join(letter for letter in self.left.letters if letter not in self.outer + self.inner)

    @property
    def columns(self) -> str:
        return "".join(letter for letter in self.right.letters if letter not in self.outer + self.inner)

    def _matrix(self, body: Body, factor: _Factor, first: str, second: str) -> Value:
        outer = "".join(letter for letter in self.outer if letter in factor.letters)
        value = _arrange(body, factor, outer + first + second)
        ends = [math.prod(factor.size(letter) for letter in part) for part in (first, second)]
        if not outer:
            return body.reshape(value, ends)
        return body.reshape(value, [factor.size(x) if x in factor.letters else 1 for x in self.outer] + ends)

    def write(self, body: Body) -> Value:
        rows, columns = self.rows, self.columns
        left = self._matrix(body, self.left, rows, self.inner)
        right = self._matrix(body, self.right, self.inner, columns)
        sizes = {letter: factor.size(letter) for factor in (self.left, self.right) for letter in factor.letters}
        outer = [sizes[letter] for letter in self.outer]
        product = body.add("MatMul", [left, right], [*outer, left.shape[-2], right.shape[-1]])
        order = self.outer + rows + columns
        product = body.reshape(product, [sizes[letter] for letter in order])
        return _arrange(body, _Factor(product, order), self.result)


def _find_plans(left: _Factor, right: _Factor, result: str) -> list[_Plan]:
    """Either factor on the left, and any number of outer letters that has those of both factors."""
    shared = set(left.letters).intersection(right.letters)
    least = max((result.index(letter) + 1 for letter in shared.intersection(result)), default=0)
    plans = []
    for first, second in ((left, right), (right, left)):
        inner = "".join(letter for letter in first.letters if letter in shared and letter not in result)
        for count in range(least, len(result) + 1):
            plan = _Plan(first, second, result, result[:count], inner, 0)
            plans.append(plan._replace(moved=_count_moved(plan)))
    return plans


def _count_moved(plan: _Plan) -> int:
    moved = 0
    for factor, ends in ((plan.left, plan.rows + plan.inner), (plan.right, plan.inner + plan.columns)):
        wanted = "".join(letter for letter in plan.outer if letter in factor.letters) + ends
        moved += math.prod(factor.value.shape) if factor.letters != wanted else 0
    sizes = {letter: factor.size(letter) for factor in (plan.left, plan.right) for letter in factor.letters}
    product = math.prod(sizes[letter] for letter in plan.result)
    # Matrices of one row or column are products of no use: as many as there are.
    outer = math.prod(sizes[letter] for letter in plan.outer)
    thin = outer if not plan.rows or not plan.columns else 0
    return moved + thin + (product if plan.outer + plan.rows + plan.columns != plan.result else 0)
