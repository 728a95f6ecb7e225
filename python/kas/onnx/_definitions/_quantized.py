# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ONNX on bytes that stand for numbers: quantization, and products of what is quantized."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy
import torch
from onnx import TensorProto

from .._kinds import KINDS, get_name
from .._node import Node, constant, define
from ._products import convolve, multiply

Tensor = torch.Tensor

_RANGES: dict[int, tuple[int, int]] = {
    TensorProto.UINT8: (0, 255),
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT16: (0, 65535),
    TensorProto.INT16: (-32768, 32767),
}


def _spread(node: Node, x: Tensor, values: Tensor, axis: int, block: int) -> Tensor:
    """Scales or zero points for all elements: one, one for each place of a dimension, or one for each block of it."""
    if values.dim() == 0 or (values.numel() == 1 and not block):
        return values.reshape(())
    axis = node.wrap(axis, x.dim())
    if block:
        if values.dim() != x.dim() or -(-x.shape[axis] // block) != values.shape[axis]:
            raise node.refuse(f"requires scales of blocks of {block} elements, got {tuple(values.shape)}")
        rows = values.unsqueeze(axis + 1).expand(*values.shape[: axis + 1], block, *values.shape[axis + 1 :])
        rows = rows.reshape(*values.shape[:axis], values.shape[axis] * block, *values.shape[axis + 1 :])
        return rows.narrow(axis, 0, x.shape[axis])
    if values.dim() != 1 or values.shape[0] != x.shape[axis]:
        raise node.refuse(f"requires {x.shape[axis]} scales for axis {axis}, got {tuple(values.shape)}")
    return values.reshape(-1, *[1] * (x.dim() - axis - 1))


def round_to(node: Node, number: int, x: Tensor, zero: Any, kind: int) -> Tensor:
    """Rounded to even, with the zero point, and clamped to the range of the type."""
    if kind not in _RANGES:
        raise node.refuse(f"requires results of 8 or 16 bits, got {get_name(kind)}")
    node.result_kinds[number] = kind
    low, high = _RANGES[kind]
    y = torch.round(x) + zero
    y = torch.where(y < low, float(low), y)
    return torch.where(y > high, float(high), y).to(torch.int32)


@define("QuantizeLinear")
def _quantize(node: Node, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    kind = int(node.get("output_dtype", 0)) or (node.kind(2) if node.is_given(2) else TensorProto.UINT8)
    axis, block = node.get("axis", 1), node.get("block_size", 0)
    if not x.is_floating_point():
        x = x.to(torch.float32)
    quotient = x / _spread(node, x, scale, axis, block).to(x.dtype)
    offset = 0.0 if zero is None else _spread(node, x, zero, axis, block).to(x.dtype)
    return round_to(node, 0, quotient, offset, kind)


def _dequantize_int8(node: Node, x: Tensor) -> Tensor | None:
    """Bytes with steps that are known as the operation of PyTorch, by which passes find layers in int8."""
    known = [value.real for value in node.inputs[1:] if value is not None]
    is_int8 = node.kind(0) in (TensorProto.INT8, TensorProto.UINT8) and node.kind(1) == TensorProto.FLOAT
    if not is_int8 or type(x) is Tensor or any(value is None for value in known):
        return None
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    operations = torch.ops.quantized_decomposed
    scale = node.read(1)
    zero = node.read(2).astype(numpy.int64) if node.is_given(2) else numpy.zeros(scale.shape, numpy.int64)
    limits = (*_RANGES[node.kind(0)], x.dtype)
    if scale.size == 1:
        return operations.dequantize_per_tensor.default(x, scale.item(), zero.item(), *limits)  # type: ignore[no-any-return]
    axis = node.wrap(node.get("axis", 1), x.dim())
    if scale.ndim != 1 or scale.shape[0] != x.shape[axis]:
        return None
    steps, offsets = constant(scale, torch.float32), constant(zero, torch.int64)
    return operations.dequantize_per_channel.default(x, steps, offsets, axis, *limits)  # type: ignore[no-any-return]


@define("DequantizeLinear", moves=True)
def _dequantize(node: Node, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    axis, block = node.get("axis", 1), node.get("block_size", 0)
    kind = int(node.get("output_dtype", 0)) or node.kind(1)
    node.result_kinds[0] = kind
    if node.kind(0) not in (*_RANGES, TensorProto.INT32):
        raise node.refuse(f"requires elements of 8, 16 or 32 bits, got {get_name(node.kind(0))}")
    if (plain := _dequantize_int8(node, x)) is not None and kind == TensorProto.FLOAT and not block:
        return plain
    scale = scale.to(KINDS[node.kind(1)].wide)
    values = node.widen(0, x)
    if zero is not None:
        zero = _spread(node, x, node.widen(2, zero), axis, block)
        # Integers of 32 bits may differ by more than floating-point numbers of 32 bits have.
        is_wide = node.kind(0) == TensorProto.INT32
        values = values - zero if is_wide else values.to(scale.dtype) - zero.to(scale.dtype)
    return values.to(scale.dtype) * _spread(node, x, scale, axis, block)


@define("DynamicQuantizeLinear")
def _dynamic_quantize(node: Node, x: Tensor) -> list[Tensor]:
    low = torch.amin(x.reshape(-1), 0)
    high = torch.amax(x.reshape(-1), 0)
    low, high = torch.where(low > 0, 0.0, low), torch.where(high < 0, 0.0, high)
    scale = (high - low) / 255
    divisor = torch.where(scale == 0, 1.0, scale)
    zero = round_to(node, 2, -low / divisor, 0.0, TensorProto.UINT8)
    return [round_to(node, 0, x / divisor, zero.to(x.dtype), TensorProto.UINT8), scale, zero]


def _is_exact(count: int) -> bool:
    """Whether f32 has all sums of products of so many pairs of bytes."""
    return count * 255 * 255 < 2**24


def _subtract(x: Tensor, zero: Tensor | None, by_row: bool) -> Tensor:
    """Without the zero points: one, or one for each row or each column."""
    if zero is None:
        return x
    if zero.dim() == 1 and zero.numel() > 1:
        return x - (zero.reshape(-1, 1) if by_row else zero)
    return x - (zero.reshape(()) if zero.numel() == 1 else zero)


def _multiply_integers(a: Tensor, b: Tensor) -> Tensor:
    dtype = torch.float32 if _is_exact(a.shape[-1]) else torch.float64
    return multiply(a.to(dtype), b.to(dtype))


@define("MatMulInteger")
def _matmul_integer(
    node: Node, a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    return _multiply_integers(_subtract(a, a_zero, True), _subtract(b, b_zero, False)).to(torch.int32)


@define("QLinearMatMul")
def _qlinear_matmul(node: Node, *inputs: Tensor) -> Tensor:
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = inputs
    product = _multiply_integers(_subtract(a, a_zero, True), _subtract(b, b_zero, False))
    rows = a_scale.reshape(-1, 1) if a_scale.numel() > 1 and a_scale.dim() == 1 else a_scale
    share = (rows * b_scale / scale).to(torch.float32)
    share = share.reshape(()) if share.numel() == 1 else share
    offset = zero.to(torch.float32)
    return round_to(
        node, 0, product.to(torch.float32) * share, offset.reshape(()) if zero.numel() == 1 else offset, node.kind(7)
    )


def _convolve_integers(node: Node, x: Tensor, weight: Tensor, x_zero: Tensor | None, w_zero: Tensor | None) -> Tensor:
    if x_zero is not None:
        x = x - x_zero.reshape(())
    if w_zero is not None:
        weight = weight - (w_zero.reshape(()) if w_zero.numel() == 1 else w_zero.reshape(-1, *[1] * (weight.dim() - 1)))
    dtype = torch.float32 if _is_exact(math.prod(weight.shape[1:])) else torch.float64
    return convolve(node, x.to(dtype), weight.to(dtype), None)


@define("ConvInteger")
def _conv_integer(
    node: Node, x: Tensor, weight: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None
) -> Tensor:
    return _convolve_integers(node, x, weight, x_zero, w_zero).to(torch.int32)


@define("QLinearConv")
def _qlinear_conv(node: Node, *inputs: Tensor) -> Tensor:
    x, x_scale, x_zero, weight, w_scale, w_zero, scale, zero, *rest = inputs
    total = _convolve_integers(node, x, weight, x_zero, w_zero)
    positions = [1] * (x.dim() - 2)
    if rest and rest[0] is not None:
        total = total + rest[0].reshape(-1, *positions).to(total.dtype)
    share = x_scale.reshape(()) * (w_scale.reshape(()) if w_scale.numel() == 1 else w_scale) / scale.reshape(())
    share = share if share.dim() == 0 else share.reshape(-1, *positions)
    return round_to(node, 0, total.to(torch.float32) * share, zero.reshape(()).to(torch.float32), node.kind(7))
