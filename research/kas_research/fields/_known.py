# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a candidate is a layer that has a name: the verdict "new" of research/guide/fields.md.

Two forms are the same layer where their stages compute the same function of the data for all weights, at sizes of data
at which both exist. Weights are matched in any order, with their dimensions in any order, joined or split. That is
decided on small integers, for which sums are exact, after `-kas-canonicalize`; a form with another number of weights is
another one.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from kas import Error
from kas._kernel import Kernel
from kas._module import Operator, named_operators, parse
from kas._sequence import OperatorSequence
from kas.zoo._contenders import Contender, get_form

from ._candidates import Candidate

PLACES = ((12, 10), (8, 9), (12, 12), (16, 16), (24, 8), (8, 8), (4, 8), (32, 32))
"""Channels and points along both axes, at which forms are compared: at the first two at which a candidate exists. They
differ, and so do most sizes that are made of them."""

_MIXING = """
kas.operator @along_rows<N, C, H, W | g>(%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %r = kas.reduce sum : W
  %r_d, %r_w = kas.share %r : W
  %group, %i = kas.merge %c by C/g : C
  %group_d, %group_w = kas.share %group : g
  %channel = kas.split %group_d, %i : g, C/g
  kas.yield data(%n, %channel, %h, %r_d) weight(%group_w, %w, %r_w)
}
kas.operator @along_columns<N, C, H, W | g>(%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %r = kas.reduce sum : H
  %r_d, %r_w = kas.share %r : H
  %group, %i = kas.merge %c by C/g : C
  %group_d, %group_w = kas.share %group : g
  %channel = kas.split %group_d, %i : g, C/g
  kas.yield data(%n, %channel, %r_d, %w) weight(%group_w, %h, %r_w)
}
"""
_FAMILIES: Mapping[str, Sequence[str]] = {
    "dense": ("conv2d",),
    "dilated": ("conv2d_dilated",),
    "pointwise": ("conv1x1",),
    "depthwise": ("conv2d_depthwise", "conv1x1"),
    "depthwise-dilated": ("conv2d_depthwise_dilated", "conv1x1"),
    "axial": ("along_rows", "along_columns", "conv1x1"),
}
"""The families that are operators one after the other, of any window, dilation and number of groups. The others have
nonlinearities between their products, fixed weights or several grids, so no candidate is like them."""


_COMBINE: Mapping[str, Callable[[numpy.ndarray, numpy.ndarray], numpy.ndarray]] = {
    "add": numpy.add,
    "multiply": numpy.multiply,
    "join": lambda one, other: numpy.concatenate([one, other], 1),
}
"""What becomes of the outputs of parallel operators, by step."""


@dataclass(frozen=True)
class _Layer:
    """A form with the values of its symbols: operators, and what is between two of them."""

    operators: Sequence[Operator]
    steps: Sequence[str]
    bindings: Sequence[Mapping[str, int]]

    @property
    def weights(self) -> list[tuple[int, ...]]:
        """The shapes of all weights."""
        pairs = zip(self.operators, self.bindings)
        return [shape for operator, binding in pairs for shape in operator.shapes(binding).weights]

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of what it gets and what it gives."""
        first, last = (self.operators[place].shapes(self.bindings[place]) for place in (0, -1))
        return first.data, last.output

    def evaluate(self, data: numpy.ndarray, weights: Sequence[numpy.ndarray]) -> numpy.ndarray:
        """The output; steps are `none` and combinations of parallel operators."""
        rest = iter(weights)
        shared, output = data, data
        for place, (operator, binding) in enumerate(zip(self.operators, self.bindings)):
            step = self.steps[place - 1] if place else "none"
            if step == "none":
                shared = output
            own = [next(rest) for _ in range(operator.num_weights)]
            result = operator.evaluate(binding, shared, *own)
            output = _COMBINE[step](output, result) if step in _COMBINE else result
        return output


def find_name(candidate: Candidate) -> str | None:
    """The named operator or the family that a candidate is at some binding; None where it is none of them.

    ValueError for a candidate without a canonical form: a module of PyTorch, a kernel.
    """
    if candidate.module is not None:
        raise ValueError(f"requires an operator or a sequence, got the module '{candidate.module}'")
    form = get_form(Contender(candidate.name, candidate.get_text(), candidate.binding))
    if form is None or isinstance(form, Kernel):
        raise ValueError(f"requires an operator or a sequence, got the kernel '{candidate.name}'")
    operators = form.operators if isinstance(form, OperatorSequence) else [form]
    steps = form.steps if isinstance(form, OperatorSequence) else []
    if any(step not in ("none", *_COMBINE) for step in steps):
        # Nothing that has a name has a nonlinearity between two operators.
        return None
    canonical = [operator.canonical() for operator in operators]
    layers = [layer for place in PLACES if (layer := _bind(canonical, steps, candidate.binding, *place))][:2]
    if not layers:
        raise ValueError(f"requires sizes at which '{candidate.name}' exists, got none of {PLACES}")
    for name, parts in _make_known().items():
        found = [_find_binding(layer, parts) for layer in layers]
        if all(one is not None for one in found):
            values = ", ".join(f"{symbol}={value}" for symbol, value in (found[0] or {}).items())
            return name + (f" with {values}" if values else "")
    return None


@functools.cache
def _make_known() -> Mapping[str, Sequence[Operator]]:
    """The families and the named operators, in canonical form."""
    operators = {name: parse(entry.text)[name].canonical() for name, entry in named_operators().items()}
    parts = {**operators, **{operator.name: operator.canonical() for operator in parse(_MIXING)}}
    # Others are special cases of those with more coefficients.
    simple = sorted(operators.items(), key=lambda entry: len(entry[1].symbols[1]))
    return {
        **{f"the family '{name}'": [parts[part] for part in family] for name, family in _FAMILIES.items()},
        **{f"the named operator '{name}'": [operator] for name, operator in simple},
    }


def _bind(
    operators: Sequence[Operator], steps: Sequence[str], binding: Mapping[str, int], channels: int, size: int
) -> _Layer | None:
    """The layer at these sizes; None where it does not exist."""
    values = {"N": 1, "C": channels, "Cin": channels, "Cout": channels, "H": size, "W": size, **binding}
    return _make(operators, steps, values)


def _make(operators: Sequence[Operator], steps: Sequence[str], values: Mapping[str, int]) -> _Layer | None:
    layer = _Layer(
        operators, steps, [{name: values[name] for part in one.symbols for name in part} for one in operators]
    )
    try:
        layer.weights  # noqa: B018 - the sizes of all operators
    except Error:
        return None
    return layer


def _find_binding(layer: _Layer, operators: Sequence[Operator]) -> dict[str, int] | None:
    """The values of the coefficients with which operators one after the other are the layer; None: there are none."""
    data, output = layer.shapes
    wanted = sorted(math.prod(shape) for shape in layer.weights)
    primaries: dict[str, int] = {}
    for operator in operators:
        for sizes, shape in ((operator.sizes["data"], data), (operator.sizes["output"], output)):
            if len(sizes) != len(shape):
                return None
            primaries |= {size: value for size, value in zip(sizes, shape) if size in operator.symbols[0]}
    coefficients = list(dict.fromkeys(name for operator in operators for name in operator.symbols[1]))
    for values in _list_values(operators, primaries, coefficients, sum(wanted), max(data)):
        other = _make(operators, ["none"] * (len(operators) - 1), values)
        if (
            other
            and other.shapes == layer.shapes
            and sorted(math.prod(shape) for shape in other.weights) == wanted
            and _is_same(layer, other)
        ):
            return {name: values[name] for name in coefficients}
    return None


def _list_values(
    operators: Sequence[Operator], primaries: Mapping[str, int], coefficients: Sequence[str], elements: int, most: int
) -> Iterator[dict[str, int]]:
    """Values of all symbols with which there are so many elements of weights; coefficients are at most `most`."""
    codes = []
    for operator in operators:
        if any(name not in primaries for name in operator.symbols[0]) or operator.symbolic_cost.parameters is None:
            return
        codes.append(compile(operator.symbolic_cost.parameters, "<parameters>", "eval"))
    for chosen in itertools.product(range(1, most + 1), repeat=len(coefficients)):
        values = {**primaries, **dict(zip(coefficients, chosen))}
        if sum(eval(code, {"__builtins__": {}}, values) for code in codes) == elements:
            yield values


def _is_same(one: _Layer, other: _Layer) -> bool:
    """Whether both are the same function, with the weights of one in some arrangement those of the other."""
    generator = numpy.random.default_rng(1)

    def draw(shape: tuple[int, ...]) -> numpy.ndarray:
        return generator.integers(-3, 4, shape).astype(numpy.float32)

    data = draw(one.shapes[0])
    weights = [draw(shape) for shape in one.weights]
    ones = [numpy.ones(shape, numpy.float32) for shape in one.weights]
    others = [numpy.ones(shape, numpy.float32) for shape in other.weights]
    if not numpy.array_equal(one.evaluate(data, ones), other.evaluate(data, others)):
        return False
    wanted = one.evaluate(data, weights)

    def find(place: int, target: int) -> list[numpy.ndarray]:
        """Arrangements of a weight with which it does the same as the other one, where all others are 1."""
        result = one.evaluate(data, [*ones[:place], weights[place], *ones[place + 1 :]])
        return [
            arranged
            for arranged in _arrange(weights[place], other.weights[target])
            if numpy.array_equal(other.evaluate(data, [*others[:target], arranged, *others[target + 1 :]]), result)
        ]

    for order in itertools.permutations(range(len(weights))):
        if any(weights[place].size != math.prod(other.weights[target]) for target, place in enumerate(order)):
            continue
        choices = [find(place, target) for target, place in enumerate(order)]
        if any(
            numpy.array_equal(other.evaluate(data, chosen), wanted)
            for chosen in itertools.islice(itertools.product(*choices), 1000)
        ):
            return True
    return False


def _arrange(weight: numpy.ndarray, shape: tuple[int, ...]) -> Iterator[numpy.ndarray]:
    """The weight in another shape: with its dimensions, or those of the shape, in any order; each once."""
    seen: set[bytes] = set()

    def is_new(arranged: numpy.ndarray) -> bool:
        key = arranged.tobytes()
        known = key in seen
        seen.add(key)
        return not known

    places: Any = range(weight.ndim)
    for order in itertools.permutations(places):
        arranged = numpy.ascontiguousarray(weight.transpose(order).reshape(shape))
        if is_new(arranged):
            yield arranged
    for order in itertools.permutations(range(len(shape))):
        inverse = numpy.argsort(order)
        turned = weight.reshape([shape[place] for place in order]).transpose(inverse)
        if is_new(arranged := numpy.ascontiguousarray(turned)):
            yield arranged
