# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks whose layers multiply bytes, by the ranges of their data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ._module import Module


def measure_ranges(
    module: Module, batches: Iterable[Any], weights: Sequence[Any], *, function: str = "forward"
) -> list[tuple[float, float]]:
    """The least and the largest value that the data of each layer takes, and zero if that is less or larger.

    As `quantize` measures them: of the layers that `-kas-quantize` lets multiply bytes, in order.
    """
    name = f"{function}_ranges"
    measuring = module.clone().run(f"kas-data-ranges{{function={function}}}").compile(name)
    ranges: list[tuple[float, float]] = []
    for batch in batches:
        here = [(float(lower), float(upper)) for lower, upper in measuring(batch, *weights)]
        if ranges:
            here = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(ranges, here)]
        ranges = here
    if not ranges:
        raise ValueError("expected at least one batch of data to calibrate with, got none")
    return ranges


def quantize(module: Module, batches: Iterable[Any], weights: Sequence[Any], *, function: str = "forward") -> Module:
    """A copy of `module` whose `function` multiplies bytes in its layers, calibrated by batches of data.

    `batches`: arrays for the first argument of the function, all of its shape; `weights`: those for the others. Layers
    are convolutions and products of data and weights that sum over channels; depthwise convolutions and products of
    data by data stay in f32, as all does that is between layers. Data is quantized to unsigned bytes, per tensor, from
    the least to the largest value that it takes in `batches`, weights to signed bytes, per output channel. The function
    takes the same arguments as before: weights are quantized in it, once for all calls with `prepare_weights=True`.

    >>> exported = kas.torch.to_mlir(network, example)
    >>> weights = list(exported.tensors.values())
    >>> quantized = kas.quantize(exported.module, batches, weights)
    >>> call = quantized.compile("forward", prepare_weights=True).bind(x, *weights)
    >>> call.prepare()
    >>> y = call()

    Raises `kas.Error` where the function has no such layer or a layer's data is not finite, `ValueError` without a
    batch. Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
    Inference", CVPR 2018, section 2.
    """
    ranges = measure_ranges(module, batches, weights, function=function)
    numbers = ",".join(f"{value:.9g}" for pair in ranges for value in pair)
    return module.clone().run(f"kas-quantize{{function={function} ranges={numbers}}}")
