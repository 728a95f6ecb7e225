# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How functions are expressed by simpler ones before they are exported, where it matters for gradients.

torch-mlir writes some activations as sums of a maximum and a minimum with zero. At zero (which whole channels can be)
their derivative as it is written is then 0, while PyTorch's is that of one side: here only one side counts. And of some
an exponential becomes infinite far out, where the value is right but the derivative, 0 times infinity, is no number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch


def elu(x: torch.Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> torch.Tensor:
    """`torch.nn.functional.elu`, of which selu is made: at zero the derivative is that of the exponential."""
    positive = x > 0
    # An exponential of what is not chosen must not be infinite: its gradient would be NaN.
    exponential = torch.exp(torch.where(positive, torch.zeros_like(x), x) * input_scale)
    return torch.where(positive, x * scale, (exponential - 1) * (alpha * scale))


def celu(x: torch.Tensor, alpha: float = 1) -> torch.Tensor:
    """`torch.nn.functional.celu`."""
    return elu(x, alpha, 1, 1 / alpha)


def leaky_relu(x: torch.Tensor, negative_slope: float = 0.01) -> torch.Tensor:
    """`torch.nn.functional.leaky_relu`: at zero the derivative is the slope."""
    return torch.where(x > 0, x, x * negative_slope)


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    """`torch.sigmoid`, of which silu is made. Below -87 it is as good as 0."""
    # 1 divided by a tensor becomes a reciprocal, with an assertion that keeps loops from being fused.
    return x.new_ones(()) / (1 + torch.exp(-torch.where(x < -87, torch.full_like(x, -87), x)))


def softplus(x: torch.Tensor, beta: float = 1, threshold: float = 20) -> torch.Tensor:
    """`torch.nn.functional.softplus`, of which mish is made."""
    linear = x * beta > threshold
    return torch.where(linear, x, torch.log1p(torch.exp(torch.where(linear, torch.zeros_like(x), x * beta))) / beta)


def gelu(x: torch.Tensor, approximate: str = "none") -> Any:
    """`torch.nn.functional.gelu` by a hyperbolic tangent; torch-mlir's own is off by 4e-6 of the largest value."""
    if approximate != "tanh":
        return NotImplemented
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def get_table() -> dict[Any, Callable[..., Any]]:
    """torch-mlir's decompositions with those of this file."""
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    table: dict[Any, Callable[..., Any]] = dict(get_decomposition_table())
    table[torch.ops.aten.celu.default] = celu
    table[torch.ops.aten.elu.default] = elu
    table[torch.ops.aten.gelu.default] = gelu
    table[torch.ops.aten.leaky_relu.default] = leaky_relu
    table[torch.ops.aten.sigmoid.default] = sigmoid
    table[torch.ops.aten.softplus.default] = softplus
    return table
