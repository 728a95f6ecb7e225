# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that are one convolution or one average pooling, as Conv and AveragePool."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from .._errors import Error
from .._module import Operator
from ._body import Body, Value

LIMIT = 1 << 22
"""The most products of weights that are listed."""

_MOST_SPATIAL = 3
"""Runtimes have convolutions over so many dimensions."""


class _Spatial(NamedTuple):
    """A dimension of the data that a window moves over; a window of one element for one that stays as it is."""

    data: int
    output: int
    size: int
    places: int
    window: int = 1
    stride: int = 1
    dilation: int = 1
    first: int = 0
    number: int | None = None
    """Which of the windows of the operator it is."""

    @property
    def padding(self) -> tuple[int, int]:
        """Zeros before and after; negative where elements are left out."""
        last = (self.places - 1) * self.stride + (self.window - 1) * self.dilation + self.first
        high = last - (self.size - 1)
        # What no window reaches needs not be cut off, unless a window would have a place there.
        return -self.first, max(high, 0) if high > -self.stride else high


class Convolution:
    """The convolution that an operator is, exactly, without symbols.

    See `include/kas/Dialect/Kas/Analysis/EffectiveConvolution.h`.
    """

    def __init__(self, operator: Operator, form: dict[str, Any]):
        shapes = operator.shapes()
        self.form = form
        self.data_shape, self.output_shape = shapes.data, shapes.output
        channels = max(form["data_channels"], default=-1), max(form["output_channels"], default=-1)
        windows = [
            _Spatial(
                entry["data"],
                entry["output"],
                shapes.data[entry["data"]],
                shapes.output[entry["output"]],
                entry["size"],
                entry["stride"],
                entry["dilation"],
                entry["first"],
                number,
            )
            for number, entry in enumerate(form["windows"])
        ]
        # What comes after the channels stays there: runtimes have the channels before the places.
        beside = [
            _Spatial(data, output, shapes.data[data], shapes.output[output])
            for data, output in form["batch"]
            if form["data_channels"] and data > channels[0] and output > channels[1]
        ]
        if len(windows) + len(beside) > _MOST_SPATIAL:
            beside = []
        self.spatial = sorted([*windows, *beside], key=lambda one: one.data)
        kept = {one.data for one in beside}
        self.batch: list[tuple[int, int]] = [(data, output) for data, output in form["batch"] if data not in kept]
        self.groups: int = form["groups"]
        self.filters: list[int] = [
            form["outputs"],
            form["inputs"] // self.groups,
            *(one.window for one in self.spatial),
        ]
        self.data_order = [*(data for data, _ in self.batch), *form["data_channels"], *(s.data for s in self.spatial)]
        self.output_order = [*(output for _, output in self.batch), *form["output_channels"]]
        self.output_order += [one.output for one in self.spatial]

    @property
    def is_convenient(self) -> bool:
        """Whether runtimes have it, and a product of matrices is not better."""
        if not 1 <= len(self.spatial) <= _MOST_SPATIAL:
            return False
        is_moved = self.data_order != sorted(self.data_order) or self.output_order != sorted(self.output_order)
        return bool(self.form["windows"]) or not is_moved

    @property
    def is_average(self) -> bool:
        """Whether it is a sum or a mean over the places of windows, of each channel alone."""
        form = self.form
        return (
            not form["elements"]
            and not form["data_channels"]
            and not form["output_channels"]
            and form["exists"] is None
            # Poolings of runtimes have no windows in padding alone.
            and all(one.dilation == 1 and max(one.padding) < one.window for one in self.spatial)
        )

    @property
    def macs(self) -> int:
        """The multiply-adds of the convolution."""
        examples = math.prod(self.data_shape[data] for data, _ in self.batch)
        return examples * math.prod(self.filters) * math.prod(one.places for one in self.spatial)

    def write(self, body: Body, data: Value, weights: Sequence[Value]) -> Value:
        """The output for the data and the weights."""
        for dim, roll in enumerate(self.form["rolls"]):
            data = body.roll(data, -roll, dim)
        low, high = [0] * len(data.shape), [0] * len(data.shape)
        pads = [one.padding for one in self.spatial]
        for one, (before, after) in zip(self.spatial, pads):
            low[one.data], high[one.data] = min(0, before), min(0, after)
        data = body.transpose(body.pad(data, low, high), self.data_order)
        pads = [(max(0, before), max(0, after)) for before, after in pads]
        value = self._average(body, data, pads) if self.is_average else self._convolve(body, data, weights, pads)
        value = body.reshape(value, [self.output_shape[dim] for dim in self.output_order])
        return body.transpose(value, [self.output_order.index(dim) for dim in range(len(self.output_order))])

    def _windows(self, pads: Sequence[tuple[int, int]]) -> dict[str, Any]:
        return {
            "kernel_shape": [one.window for one in self.spatial],
            "strides": [one.stride for one in self.spatial],
            "pads": [*(before for before, _ in pads), *(after for _, after in pads)],
        }

    def _average(self, body: Body, data: Value, pads: Sequence[tuple[int, int]]) -> Value:
        rank = len(self.spatial)
        data = body.reshape(data, [*([1] * (2 - len(self.batch))), *data.shape])
        data = body.reshape(data, [data.shape[0], -1, *data.shape[len(data.shape) - rank :]])
        shape = [*data.shape[:2], *(one.places for one in self.spatial)]
        value = body.add("AveragePool", [data], shape, count_include_pad=1, **self._windows(pads))
        return body.scale(value, math.prod(one.window for one in self.spatial) / self.form["divisor"])

    def _convolve(self, body: Body, data: Value, weights: Sequence[Value], pads: Sequence[tuple[int, int]]) -> Value:
        places = data.shape[len(data.shape) - len(self.spatial) :]
        examples = math.prod(self.data_shape[dim] for dim, _ in self.batch)
        data = body.reshape(data, [examples, self.form["inputs"], *places])
        return body.add(
            "Conv",
            [data, self._filters(body, weights)],
            [data.shape[0], self.filters[0], *(one.places for one in self.spatial)],
            dilations=[one.dilation for one in self.spatial],
            group=self.groups,
            **self._windows(pads),
        )

    def _filters(self, body: Body, weights: Sequence[Value]) -> Value:
        """The weight of Conv: contractions of elements of the weights."""
        form, terms = self.form, self.form["terms"]
        product: Value | None = None
        for elements, weight in zip(form["elements"], weights):
            factor = _select(body, weight, self._order(numpy.array(elements)))
            product = factor if product is None else body.elementwise("Mul", product, factor)
        if form["exists"] is not None:
            mask = body.constant(self._order(numpy.array(form["exists"])).astype(numpy.float32))
            product = mask if product is None else body.elementwise("Mul", product, mask)
        if product is None:
            product = body.constant(numpy.full(self.filters, terms))
        product = body.scale(product, 1 / form["divisor"])
        return product if product.shape == tuple(self.filters) else body.reduce("ReduceSum", product, [0])

    def _order(self, elements: numpy.ndarray) -> numpy.ndarray:
        """What is listed for the windows of the form, for those of Conv; without the dimension of a single term."""
        numbers = [one.number for one in self.spatial if one.number is not None]
        sizes = [entry["size"] for entry in self.form["windows"]]
        shaped = elements.reshape([self.form["terms"], *self.filters[:2], *sizes])
        order = [0, 1, 2, *(3 + number for number in numbers)]
        terms = [self.form["terms"]] if self.form["terms"] > 1 else []
        return shaped.transpose(order).reshape([*terms, *self.filters])


def _select(body: Body, weight: Value, elements: numpy.ndarray) -> Value:
    """The elements of a weight by their row-major indices: in another order where that is all, else gathered."""
    count = math.prod(weight.shape)
    if elements.size == count:
        numbers, flat = numpy.arange(count).reshape(weight.shape), elements.reshape(-1)
        for order in itertools.permutations(range(len(weight.shape))):
            if numpy.array_equal(numbers.transpose(order).reshape(-1), flat):
                return body.reshape(body.transpose(weight, order), elements.shape)
    return body.take(body.reshape(weight, [count]), elements, 0)


def find_convolution(operator: Operator) -> Convolution | None:
    """The convolution or average that an operator without symbols is; None where it is none that runtimes have."""
    try:
        text = operator.module._handle.get_effective_convolution(operator.name, "", LIMIT)
    except Error:
        return None
    found = Convolution(operator, json.loads(text))
    if not found.is_convenient:
        return None
    # Without weights there is nothing to multiply by: other operators of these only rearrange and add.
    return found if found.form["elements"] or found.is_average else None
