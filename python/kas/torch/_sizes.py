# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators by their text, and the sizes of their tensors for data of any shape, also a symbolic one."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from .._module import Module, Operator, Shapes, binding_to_text, parse_binding

Extent: TypeAlias = Any
"""An int, or a torch.SymInt while PyTorch traces."""


# Custom ops know operators by their text, so that an exported graph holds all it needs; here it is parsed once.


@functools.lru_cache(maxsize=256)
def find_operator(text: str) -> Operator:
    """The one operator of a text."""
    module = Module(text, "<operator>")
    return module[module.operators[0]]


@functools.lru_cache(maxsize=1024)
def find_shapes(text: str, binding: str) -> Shapes:
    """Its shapes at a binding."""
    return find_operator(text).shapes(binding)


def _fraction(node: ast.expr, values: Mapping[str, Extent]) -> tuple[Extent, Extent]:
    """Numerator and denominator of a monomial."""
    if isinstance(node, ast.Constant):
        return node.value, 1
    if isinstance(node, ast.Name):
        return values[node.id], 1
    assert isinstance(node, ast.BinOp)
    high, low = _fraction(node.left, values)
    if isinstance(node.op, ast.Pow):
        exponent = ast.literal_eval(node.right)
        return (high**exponent, low**exponent) if exponent >= 0 else (low**-exponent, high**-exponent)
    other_high, other_low = _fraction(node.right, values)
    if isinstance(node.op, ast.Div):
        other_high, other_low = other_low, other_high
    return high * other_high, low * other_low


def evaluate_size(size: str, values: Mapping[str, Extent]) -> Extent:
    """The value of a symbolic size such as `C**2*H/g`, which must be a whole number."""
    high, low = _fraction(ast.parse(size, mode="eval").body, values)
    return high if isinstance(low, int) and low == 1 else high // low


def bind(text: str, binding: str, shape: Sequence[Extent]) -> dict[str, Extent]:
    """The binding with the values that the shape of the data gives the primary symbols."""
    operator = find_operator(text)
    values: dict[str, Extent] = parse_binding(binding)
    primaries = operator.symbols[0]
    values.update((size, extent) for size, extent in zip(operator.sizes["data"], shape) if size in primaries)
    return values


def output_shape(text: str, binding: str, shape: Sequence[Extent]) -> list[Extent]:
    """The shape of the output for data of a shape."""
    values = bind(text, binding, shape)
    return [evaluate_size(size, values) for size in find_operator(text).sizes["output"]]


@functools.lru_cache(maxsize=1024)
def fit(text: str, binding: str, shape: tuple[int, ...]) -> str:
    """The binding at the shape of the data.

    Raises `ValueError` when the weights do not keep their shapes, or the data is no such tensor at all.
    """
    made_for = find_shapes(text, binding)
    if shape == made_for.data:
        return binding
    if len(shape) != len(made_for.data):
        raise ValueError(f"expected data with {len(made_for.data)} dimensions, as {made_for.data}, got {shape}")
    result = binding_to_text(bind(text, binding, shape))
    shapes = find_shapes(text, result)
    if shapes.data != shape or shapes.weights != made_for.weights:
        raise ValueError(
            f"data of shape {shape} does not fit this module, which was made for {made_for.data}; "
            "make a KasModule with a binding of that shape"
        )
    return result
