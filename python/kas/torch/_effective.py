# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators as one convolution of PyTorch whose weight is gathered from theirs."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from .._module import binding_to_text, parse_binding
from ._sizes import find_operator

LIMIT = 1 << 22
"""The most products of weights that are listed."""


class EffectiveConvolution:
    """The convolution that an operator is at a binding.

    Its weight has the contractions of the operator's weights; see
    `include/kas/Dialect/Kas/Analysis/EffectiveConvolution.h`. Any batch is taken, and any size along a window.
    """

    def __init__(self, text: str, binding: str):
        operator = find_operator(text)
        values = parse_binding(binding)
        if operator.has_batch and values.get(operator.sizes["data"][0]) == 1:
            # Of one example alone it would not be seen that others may be with it.
            binding = binding_to_text({**values, operator.sizes["data"][0]: 2})
        handle = operator.module._handle
        form: dict[str, Any] = json.loads(handle.get_effective_convolution(operator.name, binding, LIMIT))
        shapes = operator.shapes(binding)
        windows = form["windows"]
        if len(windows) > 3:
            raise ValueError(f"requires at most 3 dimensions with windows, got {len(windows)}")
        self.rolled = [dim for dim, roll in enumerate(form["rolls"]) if roll]
        self.rolls = [-form["rolls"][dim] for dim in self.rolled]
        self.groups: int = form["groups"]
        # A convolution of PyTorch has one dimension at least.
        sizes = [window["size"] for window in windows] or [1]
        self.weight_shape = [form["terms"], form["outputs"], form["inputs"] // self.groups, *sizes]
        self.elements = [torch.tensor(elements) for elements in form["elements"]]
        self.factors: torch.Tensor | None = None
        if form["exists"] is not None or form["divisor"] != 1:
            self.factors = torch.tensor(form["exists"] or [1], dtype=torch.float64) / form["divisor"]
        self.strides = [window["stride"] for window in windows] or [1]
        self.dilations = [window["dilation"] for window in windows] or [1]
        self.batch_outputs = [output for _, output in form["batch"]]
        self.data_order = [dim for dim, _ in form["batch"]] + form["data_channels"] + [w["data"] for w in windows]
        self.output_order = self.batch_outputs + form["output_channels"] + [window["output"] for window in windows]
        self.num_batches = len(form["batch"])
        self.num_data_channels = len(form["data_channels"])
        self.output_channels = [shapes.output[dim] for dim in form["output_channels"]]
        self.places = [shapes.output[window["output"]] for window in windows]
        self.padding: list[int] = []
        for window, places in reversed(list(zip(windows, self.places))):
            last = (places - 1) * window["stride"] + (window["size"] - 1) * window["dilation"] + window["first"]
            # Negative where windows leave out what is at an end of the data.
            self.padding += [-window["first"], last - (shapes.data[window["data"]] - 1)]

    def weight(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """The weight of the convolution, differentiable."""
        product: torch.Tensor | None = None
        for elements, weight in zip(self.elements, weights):
            factor = weight.reshape(-1).index_select(0, elements.to(weight.device))
            product = factor if product is None else product * factor
        if product is None:
            product = torch.ones(math.prod(self.weight_shape), dtype=torch.float64)
        if self.factors is not None:
            product = product * self.factors.to(product.device, product.dtype)
        return product.reshape(self.weight_shape).sum(0)

    def __call__(self, data: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """The output for the data and the weights of the operator."""
        if self.rolled:
            data = data.roll(self.rolls, self.rolled)
        data = data.permute(self.data_order)
        batch = data.shape[: self.num_batches]
        places = data.shape[self.num_batches + self.num_data_channels :]
        data = data.reshape([math.prod(batch), self.weight_shape[2] * self.groups, *(places or [1])])
        convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[len(self.strides) - 1]
        if any(self.padding):
            data = functional.pad(data, self.padding)
        weight = self.weight(weights)
        if not weights:
            weight = weight.to(data.device, data.dtype)
        output = convolve(data, weight, None, self.strides, 0, self.dilations, self.groups)
        output = output.reshape([*batch, *self.output_channels, *self.places])
        inverse = [self.output_order.index(dim) for dim in range(len(self.output_order))]
        return output.permute(inverse).contiguous()


@functools.lru_cache(maxsize=256)
def find_effective_convolution(text: str, binding: str) -> EffectiveConvolution:
    """The convolution of an operator; raises `kas.Error` where it is none."""
    return EffectiveConvolution(text, binding)
