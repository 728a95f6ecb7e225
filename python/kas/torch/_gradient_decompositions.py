# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the gradients that PyTorch derives are expressed by operations that torch-mlir knows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ._decompositions import get_inference_table
from ._indexing import get_indexing_table
from ._linear_algebra import get_determinants_table
from ._max_pooling import get_max_pooling_table
from ._pooling import get_pooling_gradients_table, pad_dim
from ._segment_gradients import get_segment_gradients_table

aten = torch.ops.aten


def _spread(gradient: torch.Tensor, stride: Sequence[int], output_padding: Sequence[int]) -> torch.Tensor:
    """Zeros between the positions of images, `stride - 1` of them, and `output_padding` after the last."""
    for axis, (step, after) in enumerate(zip(stride, output_padding), start=2):
        size = gradient.shape[axis]
        if step > 1:
            spread = pad_dim(gradient.unsqueeze(axis + 1), axis + 1, 0, step - 1)
            gradient = spread.flatten(axis, axis + 1).narrow(axis, 0, (size - 1) * step + 1)
        if after:
            gradient = pad_dim(gradient, axis, 0, after)
    return gradient


class _Convolution(NamedTuple):
    """One that is differentiated."""

    gradient: torch.Tensor
    """Of its result."""
    data: torch.Tensor
    weight: torch.Tensor
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    groups: int


def _get_data_gradient(convolution: _Convolution) -> torch.Tensor:
    """A convolution of the gradient with the kernel turned around, inputs and outputs of each group exchanged."""
    gradient, data, weight, stride, padding, dilation, groups = convolution
    num_outputs, kernel = weight.shape[0], weight.shape[2:]
    reach = [step * (size - 1) for step, size in zip(dilation, kernel)]
    # Positions of the data that a stride leaves out at the end.
    after = [
        size + 2 * around - length - 1 - step * (outputs - 1)
        for size, around, length, step, outputs in zip(data.shape[2:], padding, reach, stride, gradient.shape[2:])
    ]
    turned = weight.flip([axis for axis in range(2, weight.dim()) if weight.shape[axis] > 1])
    turned = turned.view(groups, num_outputs // groups, *weight.shape[1:]).transpose(1, 2).flatten(0, 1)
    around = [length - before for length, before in zip(reach, padding)]
    cut = [max(0, -size) for size in around]
    result: torch.Tensor = aten.convolution(
        _spread(gradient, stride, after),
        turned,
        None,
        [1] * len(kernel),
        [max(0, size) for size in around],
        dilation,
        False,
        [0] * len(kernel),
        groups,
    )
    for axis, size in enumerate(cut, start=2):
        if size:
            result = result.narrow(axis, size, data.shape[axis])
    return result


def _get_weight_gradient(convolution: _Convolution) -> torch.Tensor:
    """A product of matrices for small images, else a convolution of the data with the gradient.

    The inputs of that are the images of the batch, its kernels the gradients, and strides are its dilations.
    """
    gradient, data, weight, stride, padding, dilation, groups = convolution
    kernel = weight.shape[2:]
    # Measured: convolutions with kernels as large as small images are slow, copies of large images as well.
    if groups == 1 and (math.prod(kernel) == 1 or math.prod(gradient.shape[2:]) < 200):
        rows = gradient.transpose(0, 1).flatten(1)
        columns = _gather_windows(convolution)
        return (rows @ columns).view(weight.shape[0], -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)
    grouped = data.view(data.shape[0], groups, data.shape[1] // groups, *data.shape[2:])
    images = grouped.permute(2, 1, 0, *range(3, grouped.dim())).flatten(1, 2)
    zeros = [0] * len(padding)
    result: torch.Tensor = aten.convolution(
        images, gradient.transpose(0, 1), None, dilation, padding, stride, False, zeros, groups
    )
    for axis in range(2, weight.dim()):
        result = result.narrow(axis, 0, weight.shape[axis])
    return result.transpose(0, 1)


def _gather_windows(convolution: _Convolution) -> torch.Tensor:
    """A row for each image and position: of each place of the window all channels."""
    gradient, data, weight, stride, padding, dilation, _ = convolution
    if any(padding):
        data = aten.constant_pad_nd(data, [size for size in reversed(padding) for _ in range(2)])
    data = data.permute(0, *range(2, data.dim()), 1)
    windows = []
    for place in itertools.product(*(range(size) for size in weight.shape[2:])):
        window = data
        for axis, (tap, step, distance, count) in enumerate(zip(place, stride, dilation, gradient.shape[2:]), start=1):
            first = tap * distance
            window = aten.slice(window, axis, first, first + step * (count - 1) + 1, step)
        windows.append(window)
    return torch.cat(windows, -1).flatten(0, -2)


def convolution(
    data: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """Several groups, where torch-mlir has none: in three dimensions, and transposed, as the gradient of another."""
    rank = data.dim() - 2
    if groups == 1 or not data.numel() or (not transposed and (rank < 3 or groups > 32)):
        return NotImplemented
    if not transposed:
        rest = (stride, padding, dilation, False, output_padding, 1)
        biases = [None] * groups if bias is None else bias.chunk(groups)
        parts = zip(data.chunk(groups, 1), weight.chunk(groups), biases)
        return torch.cat([aten.convolution(*part, *rest) for part in parts], 1)
    sizes = (stride, padding, dilation, output_padding)
    stride, padding, dilation, output_padding = ([*size] * (rank if len(size) == 1 else 1) for size in sizes)
    windows = zip(data.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding)
    shape = [
        (size - 1) * step - 2 * before + far * (taps - 1) + 1 + after
        for size, taps, step, before, far, after in windows
    ]
    outputs = data.new_empty((data.shape[0], weight.shape[1] * groups, *shape))
    result = _get_data_gradient(_Convolution(data, outputs, weight, stride, padding, dilation, groups))
    return result if bias is None else result + bias.view([-1] + [1] * rank)


def convolution_backward(
    gradient: torch.Tensor,
    data: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    """The gradients of data, weights and bias, as convolutions and sums."""
    rank = data.dim() - 2
    sizes = (stride, padding, dilation)
    stride, padding, dilation = ([*size] * (rank if len(size) == 1 else 1) for size in sizes)
    if transposed:
        # It is the gradient of a convolution, of which its data are the results and its results the data.
        convolution = _Convolution(data, gradient, weight, stride, padding, dilation, groups)
        zeros = [0] * rank
        change: torch.Tensor | None = None
        if output_mask[0]:
            change = aten.convolution(gradient, weight, None, stride, padding, dilation, False, zeros, groups)
            # What was padded at the end may have room for more windows.
            for axis in range(2, data.dim()):
                change = change.narrow(axis, 0, data.shape[axis])
    else:
        convolution = _Convolution(gradient, data, weight, stride, padding, dilation, groups)
        change = _get_data_gradient(convolution) if output_mask[0] else None
    return (
        change,
        _get_weight_gradient(convolution) if output_mask[1] else None,
        gradient.sum([0, *range(2, gradient.dim())]) if output_mask[2] else None,
    )


def _get_probabilities(scores: torch.Tensor, logarithm: torch.Tensor) -> torch.Tensor:
    """Zeros for what may attend to nothing, as PyTorch has it."""
    probabilities = torch.exp(scores - logarithm.unsqueeze(-1))
    return torch.where(logarithm.unsqueeze(-1) > -math.inf, probabilities, torch.zeros_like(probabilities))


def flash_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """Attention and the logarithms of the sums of its exponentials, which its gradient needs."""
    if dropout_p:
        return NotImplemented
    scores = _get_scores(query, key, is_causal, attn_mask, scale)
    logarithm = torch.logsumexp(scores, -1)
    return _get_probabilities(scores, logarithm) @ value, logarithm


def flash_attention_backward(
    gradient: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """The gradients of query, key and value; the probabilities are computed again."""
    if dropout_p:
        return NotImplemented
    scores = _get_scores(query, key, is_causal, attn_mask, scale)
    probabilities = _get_probabilities(scores, logsumexp)
    mean = (gradient * out).sum(-1, keepdim=True)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    change = probabilities * (gradient @ value.transpose(-2, -1) - mean) * factor
    return change @ key, change.transpose(-2, -1) @ query, probabilities.transpose(-2, -1) @ gradient


def _get_scores(
    query: torch.Tensor, key: torch.Tensor, is_causal: bool, mask: torch.Tensor | None, scale: float | None
) -> torch.Tensor:
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        rows, columns = (torch.arange(size, dtype=torch.float32) for size in scores.shape[-2:])
        scores = torch.where(rows.unsqueeze(1) >= columns, scores, torch.full_like(scores, -math.inf))
    return scores if mask is None else scores + mask


def soft_margin_loss_backward(
    gradient: torch.Tensor, x: torch.Tensor, target: torch.Tensor, reduction: int
) -> torch.Tensor:
    """Without the difference of 1 and what is almost 1."""
    change = -target * gradient * torch.sigmoid(-target * x)
    return change / x.numel() if reduction == 1 else change


def _fold(gradient: torch.Tensor, dim: int, size: int, pad: Sequence[int], reflects: bool) -> torch.Tensor:
    """Along one dimension of `size` elements, with what was padded added to what it was; less than none was cut."""
    cut = [max(-length, 0) for length in pad]
    kept = size - sum(cut)

    def place(part: torch.Tensor, first: int) -> torch.Tensor:
        return pad_dim(part, dim, first, size - first - part.shape[dim])

    found = place(gradient.narrow(dim, max(pad[0], 0), kept), cut[0])
    for is_after, length in enumerate(pad):
        if length > 0:
            part = gradient.narrow(dim, gradient.shape[dim] - length if is_after else 0, length)
            if reflects:
                found = found + place(part.flip(dim), size - 1 - length if is_after else 1)
            else:
                found = found + place(part.sum(dim, keepdim=True), size - 1 if is_after else 0)
    return found


def _pad_backward(rank: int, reflects: bool) -> Callable[..., Any]:
    def decompose(gradient: torch.Tensor, data: torch.Tensor, padding: Sequence[int]) -> Any:
        """The gradient of a pad with what is within, dimension by dimension."""
        dims = [(data.dim() - 1 - number, padding[2 * number : 2 * number + 2]) for number in range(rank)]
        if not data.numel() or any(data.shape[dim] + min(a, 0) + min(b, 0) <= 0 for dim, (a, b) in dims):
            return NotImplemented
        for dim, pad in dims:
            gradient = _fold(gradient, dim, data.shape[dim], pad, reflects)
        return gradient.clone(memory_format=torch.contiguous_format)

    return decompose


def cdist_backward(gradient: torch.Tensor, x: torch.Tensor, y: torch.Tensor, p: float, distances: torch.Tensor) -> Any:
    """The gradient of the rows of `x` of `torch.cdist`: zero where rows are the same."""
    difference, distances = x.unsqueeze(-2) - y.unsqueeze(-3), distances.unsqueeze(-1)
    sign, zeros = difference.sign(), torch.zeros_like(difference)
    if p == 0:
        change = zeros
    elif p == 1:
        change = sign
    elif p == math.inf:
        change = torch.where(difference.abs() == distances, sign, zeros)
    else:
        is_none = distances == 0 if p >= 1 else (distances == 0) | (difference == 0)
        quotient = difference.abs() / torch.where(distances == 0, torch.ones_like(distances), distances)
        quotient = torch.where(is_none, torch.ones_like(quotient), quotient)
        change = torch.where(is_none, zeros, sign * (quotient if p == 2 else quotient.pow(p - 1)))
    return (gradient.unsqueeze(-1) * change).sum(-2)


def pdist_backward(gradient: torch.Tensor, x: torch.Tensor, p: float, distances: torch.Tensor) -> Any:
    """The gradient of `torch.nn.functional.pdist`, where each pair is there once."""
    size = x.shape[0]
    if not 2 <= size <= 64 or not x.numel():
        return NotImplemented
    ends = list(itertools.accumulate(range(size - 1, 0, -1)))

    def make_matrix(pairs: torch.Tensor) -> torch.Tensor:
        rows = [pad_dim(pairs[end - size + 1 + row : end], 0, row + 1, 0) for row, end in enumerate(ends)]
        upper = torch.stack([*rows, pairs.new_zeros(size)])
        return upper + upper.t()

    return cdist_backward(make_matrix(gradient), x, x, p, make_matrix(distances))


def zeros(size: Sequence[int], *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    """A tensor of zeros that PyTorch keeps without memory."""
    return torch.zeros(size, dtype=dtype)


def get_training_table() -> dict[Any, Callable[..., Any]]:
    """Decompositions of the operations of forward and backward graphs."""
    from torch._decomp import core_aten_decompositions, decomposition_table

    table: dict[Any, Callable[..., Any]] = get_inference_table()
    for operation in get_determinants_table():
        table.pop(operation)
    gradients: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    del gradients[aten._softmax_backward_data.default]
    table |= {name: function for name, function in gradients.items() if "_backward" in str(name)}
    for rank in (1, 2, 3):
        for name, reflects in (("reflection", True), ("replication", False)):
            table[getattr(aten, f"{name}_pad{rank}d_backward").default] = _pad_backward(rank, reflects)
    # These write at places that are checked.
    table |= get_indexing_table() | get_max_pooling_table()
    table |= get_pooling_gradients_table() | get_segment_gradients_table()
    table[aten.soft_margin_loss_backward.default] = soft_margin_loss_backward
    table[aten._cdist_backward.default] = cdist_backward
    table[aten._efficientzerotensor.default] = zeros
    table[aten._pdist_backward.default] = pdist_backward
    table[aten.batch_norm_backward.default] = decomposition_table[aten.batch_norm_backward.default]
    table[aten.convolution_backward.default] = convolution_backward
    table[aten._scaled_dot_product_flash_attention_for_cpu.default] = flash_attention
    table[aten._scaled_dot_product_flash_attention_for_cpu_backward.default] = flash_attention_backward
    return table
