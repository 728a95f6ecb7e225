# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How functions are expressed by simpler ones before they are exported, where it matters for gradients.

torch-mlir writes some activations as sums of a maximum and a minimum with zero. At zero (which whole channels can be)
their derivative as it is written is then 0, while PyTorch's is that of one side: here only one side counts. And of some
an exponential becomes infinite far out, where the value is right but the derivative, 0 times infinity, is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ._comparisons import clamp, get_comparison_table
from ._indexing import get_indexing_table
from ._linear_algebra import get_determinants_table, get_linear_algebra_table
from ._lists import get_lists_table
from ._max_pooling import get_max_pooling_table
from ._operations import get_operations_table
from ._orders import get_orders_table
from ._pooling import get_pooling_table
from ._quantized import get_quantized_table
from ._segments import get_segments_table
from ._special import get_special_table

aten = torch.ops.aten


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


def rrelu_with_noise_backward(
    gradient: torch.Tensor,
    x: torch.Tensor,
    noise: torch.Tensor,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
) -> torch.Tensor:
    """The gradient of `torch.nn.functional.rrelu`; torch-mlir has the function in its place."""
    if training and upper - lower > 1e-6:
        return gradient * noise
    return torch.where(x > 0, gradient, gradient * ((lower + upper) / 2))


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    """`torch.sigmoid`, of which silu is made. Far below it is as good as 0, and further below it is 0."""
    small, zero = (-708, -746) if x.dtype == torch.float64 else (-87, -104)
    # 1 divided by a tensor becomes a reciprocal, with an assertion that keeps loops from being fused.
    found = x.new_ones(()) / (1 + torch.exp(-torch.where(x < small, torch.full_like(x, small), x)))
    return torch.where(x < zero, torch.zeros_like(x), found)


def softplus(x: torch.Tensor, beta: float = 1, threshold: float = 20) -> torch.Tensor:
    """`torch.nn.functional.softplus`, of which mish is made."""
    linear = x * beta > threshold
    return torch.where(linear, x, torch.log1p(torch.exp(torch.where(linear, torch.zeros_like(x), x * beta))) / beta)


def gelu(x: torch.Tensor, approximate: str = "none") -> Any:
    """`torch.nn.functional.gelu` by a hyperbolic tangent; torch-mlir's own is off by 4e-6 of the largest value."""
    if approximate != "tanh":
        return NotImplemented
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def safe_softmax(x: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The softmax of attention, zero where all is masked: that is seen from the maximum, without passes of its own."""
    x = x if dtype is None else x.to(dtype)
    largest = x.max(dim, keepdim=True)[0]
    exponentials = torch.exp(x - torch.where(largest == -math.inf, torch.zeros_like(largest), largest))
    total = exponentials.sum(dim, keepdim=True)
    return exponentials / torch.where(total == 0, torch.ones_like(total), total)


def multiply_add(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """The sum that PyTorch writes for `addcmul_` and `addcdiv_` with a number, as it computes it."""
    return x * y + z


def _place(data: torch.Tensor, dim: int, first: int, step: int, size: int) -> torch.Tensor:
    """`size` elements along `dim`: those of `data` from `first` on with `step`, and zeros."""
    data = data.movedim(dim, -1)
    data = aten.constant_pad_nd(data.unsqueeze(-1), [0, step - 1]).flatten(-2)[..., : size - first]
    placed: torch.Tensor = aten.constant_pad_nd(data, [first, size - first - data.shape[-1]])
    return placed.movedim(-1, dim)


def slice_scatter(
    data: torch.Tensor,
    source: torch.Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> torch.Tensor:
    """The source instead of some of the data; torch-mlir is wrong about where some slices end."""
    size, first = data.shape[dim], start or 0
    first = min(max(first + size if first < 0 else first, 0), size)
    if step == 1:
        last = first + source.shape[dim]
        return torch.cat([data.narrow(dim, 0, first), source, data.narrow(dim, last, size - last)], dim)
    is_new = _place(torch.ones_like(source), dim, first, step, size) > 0
    return torch.where(is_new, _place(source, dim, first, step, size), data)


def constant_pad_nd(data: torch.Tensor, pad: Sequence[int], value: float = 0) -> Any:
    """What is padded by less than nothing, as the gradient of a padding is, is a slice first."""
    if min(pad, default=0) >= 0:
        return NotImplemented
    for number in range(len(pad) // 2):
        dim, (before, after) = data.dim() - 1 - number, (max(-size, 0) for size in pad[2 * number : 2 * number + 2])
        data = data.narrow(dim, before, data.shape[dim] - before - after)
    pad = [max(size, 0) for size in pad]
    return aten.constant_pad_nd(data, pad, value) if any(pad) else data.clone()


def relu(x: torch.Tensor) -> torch.Tensor:
    """`torch.relu`, which leaves -0 as it is."""
    return torch.where(x < 0, torch.zeros_like(x), x)


def hardtanh(x: torch.Tensor, min_val: Any = -1, max_val: Any = 1) -> Any:
    """`torch.nn.functional.hardtanh`, which leaves -0 as it is: its derivative is an operation of its own here."""
    return clamp(x, min_val, max_val)


def reciprocal(x: torch.Tensor) -> torch.Tensor:
    """`torch.reciprocal`, of which 1 / x is made; torch-mlir's asserts that nothing is zero."""
    x = x if x.dtype.is_floating_point else x.to(torch.get_default_dtype())
    return x.new_ones(()) / x


def get_table() -> dict[Any, Callable[..., Any]]:
    """torch-mlir's decompositions with those of this file."""
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    table: dict[Any, Callable[..., Any]] = dict(get_decomposition_table())
    table |= get_comparison_table() | get_pooling_table() | get_quantized_table()
    table[torch.ops.aten._safe_softmax.default] = safe_softmax
    table[torch.ops.aten.celu.default] = celu
    table[torch.ops.aten.elu.default] = elu
    table[torch.ops.aten.gelu.default] = gelu
    table[torch.ops.aten.constant_pad_nd.default] = constant_pad_nd
    table[torch.ops.aten.leaky_relu.default] = leaky_relu
    table[torch.ops.aten.rrelu_with_noise_backward.default] = rrelu_with_noise_backward
    table[torch.ops.aten.slice_scatter.default] = slice_scatter
    table[torch.ops.aten.sigmoid.default] = sigmoid
    table[torch.ops.aten.softplus.default] = softplus
    # Known only where something has imported it.
    if fused := getattr(torch.ops.prims, "fma", None):
        table[fused.default] = multiply_add
    return table


def _has_view(data: torch.Tensor, size: Sequence[int]) -> bool:
    with _disable_current_modes():
        try:
            torch.empty_strided(data.shape, data.stride(), device="meta").view(size)
        except RuntimeError:
            return False
    return True


def view(data: torch.Tensor, size: Sequence[int]) -> Any:
    """A copy where the layout is another one than the graph was written for, as decompositions make it.

    None where there is a view all the same: PyTorch takes the result for one, and makes it again from its strides.
    """
    if data.is_contiguous() or _has_view(data, size):
        return NotImplemented
    return aten.clone(data, memory_format=torch.contiguous_format).view(size)


def apply_operator(
    data: torch.Tensor, weights: Sequence[torch.Tensor], text: str, binding: str, threads: int
) -> torch.Tensor:
    """An operator of kas as its PyTorch code: products and sums as any others."""
    from ._code import exported_function
    from ._sizes import fit

    sizes = fit(text, binding, tuple(int(size) for size in data.shape))
    output: torch.Tensor = exported_function(text, sizes)(data, *weights)
    return output


def get_inference_table() -> dict[Any, Callable[..., Any]]:
    """Decompositions of the operations of graphs without gradients."""
    # Importing it is what makes the operation known.
    from ._apply import _apply
    from ._gradient_decompositions import convolution

    table = get_table()
    return {
        **table,
        _apply._opoverload: apply_operator,
        aten.convolution.default: convolution,
        aten.hardtanh.default: hardtanh,
        aten.reciprocal.default: reciprocal,
        aten.relu.default: relu,
        aten.view.default: view,
        **get_operations_table(table),
        **get_determinants_table(),
        **get_indexing_table(),
        **get_linear_algebra_table(),
        **get_lists_table(),
        **get_max_pooling_table(),
        **get_orders_table(),
        **get_segments_table(),
        **get_special_table(table),
    }
