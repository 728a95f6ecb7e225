# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks with layers in int8, by the ranges of their data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ._module import Module

Range = tuple[float, float]

# As the pipeline does where weights are known before.
_LOWER = "kas-specialize,kas-rfactor{cost=prepared traffic=8},kas-to-linalg"
"""Layers are operations of linalg: operators become such, in their stages."""


def _format(ranges: Iterable[Range]) -> str:
    return ",".join(f"{value:.9g}" for pair in ranges for value in pair)


def measure_ranges(
    module: Module, batches: Iterable[Any], weights: Sequence[Any], *, function: str = "forward"
) -> list[Range]:
    """The least and the largest value that the data of each layer takes, and zero if that is less or larger.

    As `quantize` measures them: of the layers that `-kas-quantize` quantizes to int8, in order.
    """
    name = f"{function}_ranges"
    measuring = module.clone().run(f"{_LOWER},kas-data-ranges{{function={function}}}").compile(name)
    ranges: list[Range] = []
    for batch in batches:
        here = [(float(lower), float(upper)) for lower, upper in measuring(batch, *weights)]
        if ranges:
            here = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(ranges, here)]
        ranges = here
    if not ranges:
        raise ValueError("expected at least one batch of data to calibrate with, got none")
    return ranges


def measure_layer_errors(
    module: Module,
    ranges: Sequence[Range],
    batches: Iterable[Any],
    weights: Sequence[Any],
    *,
    function: str = "forward",
) -> list[float]:
    """What bytes change in the result of each layer, over the result, if only that layer had them (root mean square).

    Of the layers that `-kas-quantize` quantizes to int8, in order; `ranges` as `measure_ranges` has them.
    """
    name = f"{function}_errors"
    passes = f"{_LOWER},kas-quantization-errors{{function={function} ranges={_format(ranges)}}}"
    measuring = module.clone().run(passes).compile(name)
    sums = [[0.0, 0.0] for _ in ranges]
    for batch in batches:
        for own, (error, size) in zip(sums, measuring(batch, *weights), strict=True):
            own[0] += float(error)
            own[1] += float(size)
    return [math.sqrt(error / size) if size > 0 else 0.0 for error, size in sums]


def split_weights(module: Module, weights: Sequence[Any], *, function: str = "forward") -> tuple[Module, list[Any]]:
    """The function as one that takes what it computes of its weights alone, and that: bytes of a quantized network.

    Both as they were where that takes no fewer bytes.
    """
    if not weights:
        return module, []
    split = module.clone().run(f"kas-split-weights{{function={function}}}")
    results = split.compile(f"{function}_weights")(*weights)
    own = list(results) if isinstance(results, (tuple, list)) else [results]
    if sum(one.nbytes for one in own) >= sum(one.nbytes for one in weights):
        return module, list(weights)
    return Module(split.text_of(function), "<network>"), own


def _run(module: Module, batches: Iterable[Any], weights: Sequence[Any], function: str) -> list[list[Any]]:
    """The results for each batch, as arrays of double precision."""
    import numpy

    run = module.compile(function)
    found = []
    for batch in batches:
        results = run(batch, *weights)
        several = isinstance(results, (tuple, list))
        found.append([numpy.asarray(one, dtype=numpy.float64) for one in (results if several else [results])])
    return found


def _compare(found: list[list[Any]], expected: list[list[Any]]) -> float:
    """The largest difference over the largest value, of the result that differs most."""
    import numpy

    errors = []
    for number in range(len(expected[0])):
        pairs = [(own[number], other[number]) for own, other in zip(found, expected)]
        largest = max(float(numpy.abs(other).max(initial=0)) for _, other in pairs)
        error = max(float(numpy.abs(own - other).max(initial=0)) for own, other in pairs)
        errors.append(error / largest if largest > 0 else error)
    return max(errors)


def quantize(
    module: Module,
    batches: Iterable[Any],
    weights: Sequence[Any],
    *,
    function: str = "forward",
    max_error: float | None = None,
) -> Module:
    """A copy of `module` whose `function` has its layers in int8, calibrated by batches of data.

    `batches`: arrays for the first argument of the function, all of its shape; `weights`: those for the others. Layers
    are convolutions and products of data and weights that sum over channels; depthwise convolutions and products of
    data by data stay in f32, as all does that is between layers. Operators (`kas.apply`) become their stages, which are
    such layers or not, in linalg. Data is quantized to unsigned bytes, per tensor, from
    the least to the largest value that it takes in `batches`, weights to signed bytes, per output channel. The function
    takes the same arguments as before: weights are quantized in it, once for all calls with `prepack_weights=True`.

    With `max_error`, layers stay f32 where they must for the results of the batches to be off by at most so much, over
    the largest result: those first in which bytes change the layer's own result most.

    >>> exported = kas.torch.to_mlir(network, example)
    >>> weights = list(exported.tensors.values())
    >>> quantized = kas.quantize(exported.module, batches, weights)
    >>> call = quantized.compile("forward", prepack_weights=True).bind(x, *weights)
    >>> call.prepack()
    >>> y = call()

    Raises `kas.Error` where the function has no such layer or a layer's data is not finite, `ValueError` without a
    batch. Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
    Inference", CVPR 2018, section 2.
    """
    if max_error is not None and not (isinstance(max_error, (int, float)) and max_error >= 0):
        raise ValueError(f"'max_error' must be a number of at least 0, got {max_error!r}")
    batches = list(batches)
    ranges = measure_ranges(module, batches, weights, function=function)

    def keep(kept: Sequence[int]) -> Module:
        options = f"function={function} ranges={_format(ranges)}"
        if kept:
            options += f" kept={','.join(map(str, sorted(kept)))}"
        return module.clone().run(f"{_LOWER},kas-quantize{{{options}}}")

    quantized = keep([])
    if max_error is None:
        return quantized
    expected = _run(module, batches, weights, function)
    if _compare(_run(quantized, batches, weights, function), expected) <= max_error:
        return quantized
    errors = measure_layer_errors(module, ranges, batches, weights, function=function)
    worst_first = sorted(range(len(errors)), key=lambda number: (-errors[number], number))
    # So few are kept that it is right; all of them always are.
    too_few, enough = 0, len(errors)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if _compare(_run(keep(worst_first[:middle]), batches, weights, function), expected) <= max_error:
            enough = middle
        else:
            too_few = middle
    return keep(worst_first[:enough])
