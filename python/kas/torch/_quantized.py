# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized networks: steps that PyTorch chooses while it runs, and products of bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

_NAMESPACE = "quantized_decomposed"


def is_quantized(target: Any) -> bool:
    """Whether it is one of the operations in which PyTorch writes quantized networks."""
    return isinstance(target, torch._ops.OpOverload) and target.namespace == _NAMESPACE


def _quantize(x: torch.Tensor, scale: Any, zero: Any, low: Any, high: Any, dtype: torch.dtype) -> torch.Tensor:
    factor = (1.0 / scale.reshape(()).to(torch.float64)).to(torch.float32)
    rounded = torch.round(x.to(torch.float32) * factor) + zero.reshape(()).to(torch.float32)
    if isinstance(low, torch.Tensor):
        return torch.minimum(torch.maximum(rounded, low.to(rounded.dtype)), high.to(rounded.dtype)).to(dtype)
    return torch.clamp(rounded, low, high).to(dtype)


def _dequantize(
    x: torch.Tensor,
    scale: torch.Tensor,
    zero: torch.Tensor,
    low: Any,
    high: Any,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    found = out_dtype or torch.float32
    return (x.to(found) - zero.reshape(()).to(found)) * scale.reshape(()).to(found)


def _choose(x: torch.Tensor, low: int, high: int, eps: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    least, largest = _find_range(x)
    scale = torch.clamp_min(((largest - least) / float(high - low)).to(torch.float32), eps)
    zero = torch.clamp(low - torch.round(least / scale).to(torch.int32), low, high)
    return scale.to(torch.float64).reshape(1), zero.to(torch.int64).reshape(1)


def _choose_symmetric(
    x: torch.Tensor, low: int, high: int, eps: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    least, largest = _find_range(x)
    scale = torch.maximum(-least, largest) / (float(high - low) / 2)
    scale = torch.clamp_min(scale.to(torch.float32), eps)
    return scale.to(torch.float64).reshape(1), torch.full([1], 128 if dtype == torch.uint8 else 0, dtype=torch.int64)


def _find_range(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The least and the largest element, or zero."""
    zero = x.new_zeros(())
    least, largest = torch.aminmax(x.reshape(-1), dim=0)
    return torch.minimum(least, zero), torch.maximum(largest, zero)


def _quantize_groups(
    x: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor, low: int, high: int, dtype: torch.dtype, size: int = 128
) -> torch.Tensor:
    """Groups of a row; PyTorch looks for NaN before."""
    groups = x.reshape(-1, x.shape[-1] if size > x.shape[-1] and scales.shape[-1] == 1 else size)
    rounded = torch.round(groups * (1.0 / scales.reshape(-1, 1)) + zeros.reshape(-1, 1))
    return torch.clamp(rounded, low, high).to(dtype).reshape(x.shape)


_OWN: dict[str, Callable[..., Any]] = {
    "choose_qparams.tensor": _choose,
    "choose_qparams_symmetric.tensor": _choose_symmetric,
    "dequantize_per_tensor.tensor": _dequantize,
    "dequantize_per_tensor.tensor2": _dequantize,
    "quantize_per_channel_group.default": _quantize_groups,
    "quantize_per_tensor.tensor": _quantize,
    "quantize_per_tensor.tensor2": _quantize,
}
"""Whose definitions in PyTorch look at elements, which are not known before a call."""


def compute_quantized(target: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """An operation of quantized networks by simpler ones: those of PyTorch's own definition where these are known."""
    if own := _OWN.get(str(target).removeprefix(f"{_NAMESPACE}.")):
        return own(*arguments, **options)
    return target._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *arguments, **options)


def _multiply_bytes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A product of bytes with sums of 32 bits."""
    result: torch.Tensor = aten.mm(x.to(torch.int32), y.to(torch.int32))
    return result


def _round_to_steps(
    rounded: torch.Tensor, is_lost: torch.Tensor, low: int, high: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Within the range, and whether they were; what is no integer is the least one, as PyTorch converts it."""
    inside = (rounded >= low) & (rounded <= high)
    return torch.clamp(torch.where(is_lost, torch.full_like(rounded, low), rounded), low, high), inside


def _fake_quantize_channels(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, axis: int, low: int, high: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """`torch.fake_quantize_per_channel_affine`."""
    shape = [1] * x.dim()
    shape[axis] = -1
    scale, zero = scale.view(shape), zero.view(shape)
    steps = x * (1.0 / scale)
    rounded = torch.round(steps + zero) if zero.dtype.is_floating_point else torch.round(steps) + zero
    # NaN as well.
    found, inside = _round_to_steps(rounded, torch.logical_not(rounded.abs() < 2.0**63), low, high)
    return ((found - zero) * scale).to(x.dtype), inside


def _fake_quantize(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, enabled: torch.Tensor, low: int, high: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """`torch.fake_quantize_per_tensor_affine` with steps that are tensors, and a flag whether to do it."""
    found, inside = _fake_quantize_all(x, scale.reshape(()), zero.reshape(()), low, high)
    is_enabled = enabled.reshape(()) != 0
    return torch.where(is_enabled, found, x), inside | torch.logical_not(is_enabled)


def _fake_quantize_all(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, low: int, high: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """With one step, in float32 whatever the elements are."""
    rounded = torch.round(x * (1.0 / scale)) + zero
    found, inside = _round_to_steps(rounded, rounded != rounded, low, high)
    return ((found - zero).to(torch.float32) * scale).to(x.dtype), inside


def _fake_quantize_by_numbers(
    x: torch.Tensor, scale: float, zero: int, low: int, high: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """`torch.fake_quantize_per_tensor_affine`."""
    steps = torch.full((), scale, dtype=torch.float32), torch.full((), zero, dtype=torch.int64)
    return _fake_quantize_all(x, *steps, low, high)


def _pass_inside(gradient: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
    """The gradient of these."""
    return gradient * inside


_KNOWN = (
    *("dequantize_per_channel", "dequantize_per_channel_group", "dequantize_per_tensor"),
    *("quantize_per_channel", "quantize_per_tensor"),
)
"""Of which torch-mlir has the default ones, by which passes find layers in int8."""


def get_quantized_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of products of bytes, and of what torch-mlir does not know of quantized networks."""
    table: dict[Any, Callable[..., Any]] = {
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: _fake_quantize,
        aten._int_mm.default: _multiply_bytes,
        aten.fake_quantize_per_channel_affine_cachemask.default: _fake_quantize_channels,
        aten.fake_quantize_per_channel_affine_cachemask_backward.default: _pass_inside,
        aten.fake_quantize_per_tensor_affine_cachemask.default: _fake_quantize_by_numbers,
        aten.fake_quantize_per_tensor_affine_cachemask_backward.default: _pass_inside,
    }
    # There are none before something has imported them.
    for full_name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = full_name.partition("::")
        name, _, overload = rest.partition(".")
        if namespace == _NAMESPACE and (overload or name not in _KNOWN):
            target = getattr(getattr(torch.ops.quantized_decomposed, name), overload or "default")
            table[target] = functools.partial(_compute, target)
    return table


def _compute(target: Any, *arguments: Any, **options: Any) -> Any:
    return compute_quantized(target, arguments, options)
