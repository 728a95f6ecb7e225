# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ONNX that normalize."""

from __future__ import annotations

import torch
from onnx import TensorProto
from torch.nn import functional

from .._node import Node, define

Tensor = torch.Tensor


def _per_channel(x: Tensor, values: Tensor) -> Tensor:
    return values.reshape(1, -1, *[1] * (x.dim() - 2))


@define("BatchNormalization")
def _batch_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> list[Tensor]:
    epsilon = node.get("epsilon", 1e-5)
    if node.opset < 9 and not node.get("spatial", 1):
        raise node.refuse("requires spatial = 1, got 0")
    if not node.get("training_mode", 0):
        # One factor and one term for each channel, which depend on weights alone.
        factor = scale * torch.rsqrt(variance + epsilon)
        y = x * _per_channel(x, factor) + _per_channel(x, bias - mean * factor)
        return [y, *[mean, variance, mean, variance][: node.num_results - 1]]
    dims = [0, *range(2, x.dim())]
    momentum = node.get("momentum", 0.9)
    own_mean = torch.mean(x, dims, True)
    centered = x - own_mean
    own_variance = torch.mean(centered * centered, dims, True)
    y = centered * torch.rsqrt(own_variance + epsilon) * _per_channel(x, scale) + _per_channel(x, bias)
    running_mean = mean * momentum + own_mean.reshape(-1) * (1 - momentum)
    running_variance = variance * momentum + own_variance.reshape(-1) * (1 - momentum)
    return [y, running_mean, running_variance]


def _normalize(x: Tensor, dims: list[int], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """The normalized tensor, the mean and the inverse of the deviation."""
    mean = torch.mean(x, dims, True)
    centered = x - mean
    inverse = torch.rsqrt(torch.mean(centered * centered, dims, True) + epsilon)
    return centered * inverse, mean, inverse


@define("InstanceNormalization")
def _instance_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    y, _, _ = _normalize(x, list(range(2, x.dim())), node.get("epsilon", 1e-5))
    return y * _per_channel(x, scale) + _per_channel(x, bias)


@define("LayerNormalization")
def _layer_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> list[Tensor]:
    axis = node.wrap(node.get("axis", -1), x.dim())
    y, mean, inverse = _normalize(x, list(range(axis, x.dim())), node.get("epsilon", 1e-5))
    y = y * scale
    node.result_kinds[1] = node.result_kinds[2] = TensorProto.DOUBLE if x.dtype == torch.float64 else TensorProto.FLOAT
    return [y if bias is None else y + bias, mean, inverse]


@define("RMSNormalization")
def _rms_norm(node: Node, x: Tensor, scale: Tensor) -> Tensor:
    axis = node.wrap(node.get("axis", -1), x.dim())
    squares = torch.mean(x * x, list(range(axis, x.dim())), True)
    return x * torch.rsqrt(squares + node.get("epsilon", 1e-5)) * scale


@define("GroupNormalization")
def _group_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups, channels = node.get("num_groups"), x.shape[1]
    rows = x.reshape(x.shape[0], groups, -1)
    y, _, _ = _normalize(rows, [2], node.get("epsilon", 1e-5))
    if scale.shape[0] != channels:
        # Before version 21 there is one for each group.
        y = y * scale.reshape(1, -1, 1) + bias.reshape(1, -1, 1)
        return y.reshape(x.shape)
    return y.reshape(x.shape) * _per_channel(x, scale) + _per_channel(x, bias)


@define("MeanVarianceNormalization")
def _mean_variance(node: Node, x: Tensor) -> Tensor:
    dims = [node.wrap(axis, x.dim()) for axis in node.get("axes", [0, 2, 3])]
    mean = torch.mean(x, dims, True)
    centered = x - mean
    return centered / (torch.sqrt(torch.mean(centered * centered, dims, True)) + 1e-9)


@define("LpNormalization")
def _lp_norm(node: Node, x: Tensor) -> Tensor:
    dim = node.wrap(node.get("axis", -1), x.dim())
    is_first = node.get("p", 2) == 1
    norm = torch.sum(x.abs(), dim, True) if is_first else torch.sqrt(torch.sum(x * x, dim, True))
    return torch.where(norm == 0, 0.0, x / torch.where(norm == 0, 1.0, norm))


@define("LRN")
def _lrn(node: Node, x: Tensor) -> Tensor:
    size = node.get("size")
    alpha, beta, bias = node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0)
    before = (size - 1) // 2
    squares = functional.pad(x * x, [0, 0] * (x.dim() - 2) + [before, size - 1 - before])
    total = squares.narrow(1, 0, x.shape[1])
    for offset in range(1, size):
        total = total + squares.narrow(1, offset, x.shape[1])
    return x / torch.pow(total * (alpha / size) + bias, beta)
