# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Deviations and learning rates of the weights of structured linear layers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .._errors import Error
from .._module import Binding, Operator, binding_to_text
from ._code import exported_function
from ._modules import KasModule
from ._sizes import find_operator

OPTIMIZERS = ("adam", "sgd")


@dataclass(frozen=True)
class WeightScale:
    """How a weight of a structured linear layer starts, and how fast it learns."""

    deviation: float
    """The standard deviation of its elements."""
    adam: float
    """The factor of the learning rate of a dense layer for optimizers whose steps have a fixed size, such as
    Adam and signed gradients."""
    sgd: float
    """The same for steps that are proportional to gradients."""


@dataclass(frozen=True)
class Uses:
    """What a linear layer [.., inputs] -> [.., outputs] has terms for, with a batch of `rows` of data."""

    rows: int
    inputs: int
    outputs: int
    terms: float
    """Of one element of the output."""
    roots: tuple[float, ...]
    """For each weight the sum over its elements of the square root of the number of terms that each is in."""

    def get_scales(self, deviations: list[float]) -> list[WeightScale]:
        """The scales of weights with these deviations."""
        product = math.prod(deviations)
        count = len(deviations)
        dense = self.inputs * self.outputs * math.sqrt(self.rows)
        return [
            WeightScale(
                deviation,
                adam=dense * deviation / (count * root * product),
                sgd=self.inputs * deviation**2 / (count * self.terms * product**2),
            )
            for deviation, root in zip(deviations, self.roots, strict=True)
        ]


def count_uses(operator: Operator, binding: Binding) -> Uses:
    """Counts terms: an operator of ones gives their number, and its gradient the number for each element."""
    shapes = operator.shapes(binding)
    if not shapes.data or shapes.data[:-1] != shapes.output[:-1]:
        raise Error(
            "requires a linear layer whose data and output differ in their last dimension alone, got "
            f"{list(shapes.output)} from {list(shapes.data)}"
        )
    if not shapes.weights:
        raise Error(f"requires a layer with weights, got the operator '{operator.name}' without any")
    text = str(operator.alone())
    if re.search(r"kas\.reduce (?!sum\b)", text):
        raise Error(f"requires a linear layer of sums, got the operator '{operator.name}' with maxima or means")
    code = exported_function(text, binding_to_text(binding))
    weights = [torch.ones(shape, dtype=torch.float64, requires_grad=True) for shape in shapes.weights]
    ones = torch.ones(shapes.data, dtype=torch.float64)
    first = torch.zeros(shapes.data, dtype=torch.float64)
    first.view(-1, shapes.data[-1])[0] = 1
    if code(first, *weights).detach().view(-1, shapes.output[-1])[1:].any():
        raise Error(f"requires a linear layer, got the operator '{operator.name}', whose rows depend on each other")
    # Initializations mostly run without gradients.
    with torch.enable_grad():
        output = code(ones, *weights)
        uses = torch.autograd.grad(output.sum(), weights)
    rows = math.prod(shapes.data[:-1])
    roots = tuple(float(count.sqrt().sum()) for count in uses)
    return Uses(rows, shapes.data[-1], shapes.output[-1], float(output.detach().mean()), roots)


def weight_scales(operator: Operator, binding: Binding, *, gain: float = 1.0) -> list[WeightScale]:
    """The scales of a linear layer's weights with which it starts and learns as a dense layer does.

    `operator` maps [.., inputs] to [.., outputs]. With the deviations, outputs for independent data of mean 0 have the
    variance of the data times the square of `gain`; all factors have the same deviation. With the rates, the first
    step changes the output for a batch by as much, along its gradient, as that of a dense layer of the same gain, and
    each of the weights has an equal part in that; for steps along signs this holds where gradients are sums of many
    terms.

    Derivation: terms of a sum differ in a weight or in the data, so they are uncorrelated, and an output has the
    variance `T s1^2 s2^2 ..` for T terms and deviations s1, s2, .. of the weights. The gradient of an element that is
    in n terms of a batch has the variance `n s2^2 s3^2 ..`, without its own factor. A step along signs changes the
    output, along its gradient, by the sum over all elements of `sqrt(2 n / pi) s2 s3 ..`; a step along the gradient by
    the sum of `n s2^2 s3^2 ..`. A dense layer's change (n: the rows of the batch, no other factors) divided by
    this is the rate. Qiu et al. ("Compute Better Spent", ICML 2024, section 3) derive the same from the sizes of block
    tensor trains.

    Raises `kas.Error` for operators that are no such layer.
    """
    if not isinstance(operator, Operator):
        raise TypeError(
            f"expected a kas.Operator, such as kas.operator('linear_monarch'), got {type(operator).__name__}"
        )
    if gain <= 0:
        raise ValueError(f"gain must be positive, got {gain}")
    uses = count_uses(operator, binding)
    count = len(uses.roots)
    return uses.get_scales([(gain**2 / uses.terms) ** (0.5 / count)] * count)


def find_layers(network: nn.Module) -> Iterator[tuple[KasModule, Uses]]:
    """The structured linear layers of a network of which all weights are trained."""
    for module in network.modules():
        if isinstance(module, KasModule) and len(module.trained_weights) == len(module.weights):
            try:
                yield module, count_uses(find_operator(module.text), module.binding)
            except Error:
                continue


def scale_weights(network: nn.Module, *, gain: float = 1.0) -> None:
    """Draws the weights of all structured linear layers of a network again, with the deviations of `weight_scales`."""
    for module, uses in find_layers(network):
        count = len(uses.roots)
        for weight in module.weights:
            nn.init.normal_(weight, std=(gain**2 / uses.terms) ** (0.5 / count))


def parameter_groups(network: nn.Module, learning_rate: float, optimizer: str = "adam") -> list[dict[str, Any]]:
    """Groups of parameters for an optimizer of PyTorch, in which structured linear layers learn as dense ones do.

    The weights of each `KasModule` that is a linear layer (`weight_scales`) are groups of their own, with
    `learning_rate` times the rate of "adam" or "sgd" for the deviations that they have now: before the training. All
    other parameters are the first group, with `learning_rate`.
    """
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"the optimizer must be 'adam' or 'sgd', got {optimizer!r}")
    groups: list[dict[str, Any]] = []
    structured: set[int] = set()
    for module, uses in find_layers(network):
        if any(id(weight) in structured for weight in module.weights):
            # Layers that share a weight learn by the first one.
            continue
        deviations = [float(weight.detach().square().mean().sqrt()) for weight in module.weights]
        if not all(deviations):
            continue
        for weight, scale in zip(module.weights, uses.get_scales(deviations), strict=True):
            structured.add(id(weight))
            groups.append({"params": [weight], "lr": learning_rate * getattr(scale, optimizer)})
    others = [parameter for parameter in network.parameters() if id(parameter) not in structured]
    return [{"params": others, "lr": learning_rate}, *groups] if others else groups
