# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ONNX on elements: arithmetic, comparisons, activations and conversions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from onnx import TensorProto
from torch.nn import functional

from .._kinds import KINDS, get_name
from .._node import Node, broadcast, define

Tensor = torch.Tensor
_UINT64 = TensorProto.UINT64
_LEAST = -(2**63)

_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Acos": torch.acos,
    "Acosh": torch.acosh,
    "Asin": torch.asin,
    "Asinh": torch.asinh,
    "Atan": torch.atan,
    "Atanh": torch.atanh,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "Log": torch.log,
    "Neg": torch.neg,
    "Reciprocal": torch.reciprocal,
    "Round": torch.round,
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Sqrt": torch.sqrt,
    "Tan": torch.tan,
    "Tanh": torch.tanh,
    "Mish": functional.mish,
    "Not": torch.logical_not,
    "BitwiseNot": torch.bitwise_not,
    "IsNaN": torch.isnan,
}


def _call_unary(function: Callable[[Tensor], Tensor], node: Node, x: Tensor) -> Tensor:
    return function(x)


for _name, _function in _UNARY.items():
    define(_name)(functools.partial(_call_unary, _function))


@define("Identity", moves=True)
def _identity(node: Node, x: Any) -> Any:
    return x


@define("Dropout")
def _dropout(node: Node, x: Tensor, ratio: Any = None, training: Any = None) -> list[Any]:
    if node.is_given(2) and node.read(2).any() and not (node.is_given(1) and not node.read(1).any()):
        raise node.refuse("requires inference, got training_mode, which draws random numbers")
    if node.opset < 7 and not node.get("is_test", 0):
        raise node.refuse("requires is_test = 1, got 0, which draws random numbers")
    mask = torch.ones_like(x, dtype=torch.bool if node.opset >= 10 else x.dtype)
    return [x, mask]


@define("Abs")
def _abs(node: Node, x: Tensor) -> Tensor:
    return x if KINDS[node.kind(0)].is_unsigned else torch.abs(x)


@define("Sign")
def _sign(node: Node, x: Tensor) -> Tensor:
    if KINDS[node.kind(0)].is_unsigned:
        return (x != 0).to(x.dtype)
    sign = (x > 0).to(x.dtype) - (x < 0).to(x.dtype)
    return torch.where(torch.isnan(x), x, sign) if x.is_floating_point() else sign


@define("IsInf")
def _is_inf(node: Node, x: Tensor) -> Tensor:
    positive, negative = node.get("detect_positive", 1), node.get("detect_negative", 1)
    if positive and negative:
        return x.abs() == math.inf
    if positive or negative:
        return x == (math.inf if positive else -math.inf)
    return torch.zeros_like(x, dtype=torch.bool)


# Of two tensors.


def flip(x: Tensor) -> Tensor:
    """Unsigned integers of 64 bits in the order of signed ones."""
    return torch.bitwise_xor(x, torch.full_like(x, _LEAST))


def is_less(node: Node, a: Tensor, b: Tensor) -> Tensor:
    """Whether a < b, for the type of the first input."""
    return flip(a) < flip(b) if node.kind(0) == _UINT64 else a < b


def divide(a: Tensor, b: Tensor) -> Tensor:
    """Signed integers, rounded to zero. What processors leave open: by zero a, by -1 -a."""
    is_odd = (b == 0) | (b == -1)
    return torch.where(
        is_odd, torch.where(b == 0, a, -a), torch.div(a, torch.where(is_odd, 1, b), rounding_mode="trunc")
    )


def _divide_uint64(a: Tensor, b: Tensor) -> Tensor:
    """By division of signed integers of one bit less."""
    is_large = b < 0
    divisor = torch.where(is_large, 1, b)
    half = torch.bitwise_and(torch.bitwise_right_shift(a, torch.ones_like(a)), 2**63 - 1)
    quotient = divide(half, divisor) * 2
    rest = a - quotient * divisor
    quotient = quotient + (flip(rest) >= flip(divisor)).to(torch.int64)
    return torch.where(is_large, (flip(a) >= flip(b)).to(torch.int64), quotient)


def align(node: Node, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The second tensor with the dimensions that versions before 7 name by `axis`."""
    if node.opset < 7 and node.get("broadcast", 0) and node.has("axis"):
        axis = node.get("axis") % a.dim()
        b = b.reshape(*b.shape, *[1] * (a.dim() - axis - b.dim()))
    return a, b


def _binary(name: str, function: Callable[[Node, Tensor, Tensor], Tensor]) -> None:
    define(name)(lambda node, a, b: function(node, *align(node, a, b)))


def _divide_any(node: Node, a: Tensor, b: Tensor) -> Tensor:
    if a.is_floating_point():
        return a / b
    return _divide_uint64(a, b) if node.kind(0) == _UINT64 else divide(a, b)


_binary("Add", lambda node, a, b: a + b)
_binary("Sub", lambda node, a, b: a - b)
_binary("Mul", lambda node, a, b: a * b)
_binary("Div", _divide_any)
_binary("Equal", lambda node, a, b: a == b)
_binary("Less", is_less)
_binary("Greater", lambda node, a, b: is_less(node, b, a))
_binary("LessOrEqual", lambda node, a, b: flip(a) <= flip(b) if node.kind(0) == _UINT64 else a <= b)
_binary("GreaterOrEqual", lambda node, a, b: flip(a) >= flip(b) if node.kind(0) == _UINT64 else a >= b)
_binary("And", lambda node, a, b: torch.logical_and(a, b))
_binary("Or", lambda node, a, b: torch.logical_or(a, b))
_binary("Xor", lambda node, a, b: torch.logical_xor(a, b))
_binary("BitwiseAnd", lambda node, a, b: torch.bitwise_and(a, b))
_binary("BitwiseOr", lambda node, a, b: torch.bitwise_or(a, b))
_binary("BitwiseXor", lambda node, a, b: torch.bitwise_xor(a, b))


@define("Mod")
def _mod(node: Node, a: Tensor, b: Tensor) -> Tensor:
    if a.is_floating_point():
        if not node.get("fmod", 0):
            raise node.refuse("requires fmod = 1 for floating-point numbers, got 0")
        return torch.fmod(a, b)
    if node.kind(0) == _UINT64:
        return a - _divide_uint64(a, b) * b
    rest = a - divide(a, b) * b
    if node.get("fmod", 0):
        return rest
    return torch.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@define("BitShift")
def _bit_shift(node: Node, a: Tensor, b: Tensor) -> Tensor:
    bits = torch.iinfo(KINDS[node.kind(0)].stored).bits
    is_out = (b < 0) | (b >= bits)
    count = torch.where(is_out, 0, b)
    if node.get("direction") == "LEFT":
        return torch.where(is_out, 0, torch.bitwise_left_shift(a, count))
    shifted = torch.bitwise_right_shift(a, count)
    if node.kind(0) == _UINT64:
        # The signs that come in are no bits.
        signs = torch.bitwise_left_shift(torch.full_like(count, -2), 63 - count)
        shifted = torch.where(count == 0, a, torch.bitwise_and(shifted, torch.bitwise_not(signs)))
    return torch.where(is_out, 0, shifted)


@define("BitCast", moves=True)
def _bit_cast(node: Node, x: Tensor) -> Tensor:
    kind = int(node.get("to"))
    if kind not in KINDS or KINDS[kind].stored.itemsize != x.dtype.itemsize:
        raise node.refuse(f"requires a type of {8 * x.dtype.itemsize} bits, got {get_name(kind)}")
    node.result_kinds[0] = kind
    target = KINDS[kind].stored
    if x.is_floating_point() != target.is_floating_point:
        if node.inputs[0].real is None:
            raise node.refuse("requires bits of the same kind of number, got those of another one")
        return x.view(target)
    return x if x.dtype == target else x.to(target)


def power(base: Tensor, exponent: Tensor) -> Tensor:
    """Of integers, by squares; of negative exponents only 1 and -1 have one that is no zero."""
    result = torch.ones_like(base * exponent)
    square = base
    for bit in range(6):
        is_set = torch.bitwise_and(exponent, 1 << bit) != 0
        result = torch.where(is_set, result * square, result)
        square = square * square
    is_unit = (base == 1) | (base == -1)
    return torch.where((exponent < 0) & torch.logical_not(is_unit), 0, result)


@define("Pow")
def _pow(node: Node, base: Tensor, exponent: Tensor) -> Tensor:
    base, exponent = align(node, base, exponent)
    if not base.is_floating_point() and not exponent.is_floating_point():
        return power(base, exponent)
    if not base.is_floating_point():
        return torch.pow(base.to(torch.float64), exponent.to(torch.float64))
    if node.is_given(1) and node.inputs[1].real is not None and node.inputs[1].real.numel() == 1:
        # Squares are no power.
        value = float(node.read(1).reshape(()))
        result = base * base if value == 2 else torch.sqrt(base) if value == 0.5 else torch.pow(base, value)
        return result.expand(broadcast(base.shape, exponent.shape)) if exponent.dim() > base.dim() else result
    return torch.pow(base, exponent.to(base.dtype))


def _fold(function: Callable[[Node, Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda node, *inputs: functools.reduce(functools.partial(function, node), inputs)


def largest(node: Node, a: Tensor, b: Tensor) -> Tensor:
    """NaN where one of them is."""
    if a.is_floating_point():
        return torch.where((a > b) | torch.isnan(a), a, b)
    return torch.where(is_less(node, b, a), a, b)


def smallest(node: Node, a: Tensor, b: Tensor) -> Tensor:
    """NaN where one of them is."""
    if a.is_floating_point():
        return torch.where((a < b) | torch.isnan(a), a, b)
    return torch.where(is_less(node, a, b), a, b)


define("Max")(_fold(largest))
define("Min")(_fold(smallest))
define("Sum")(_fold(lambda node, a, b: a + b))


@define("Mean")
def _mean(node: Node, *inputs: Tensor) -> Tensor:
    return functools.reduce(torch.add, inputs) / len(inputs)


@define("Where", moves=True)
def _where(node: Node, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(condition, a, b)


@define("Clip")
def _clip(node: Node, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    least = node.get("min") if low is None and node.opset < 11 else low
    most = node.get("max") if high is None and node.opset < 11 else high
    if low is None and high is None and least is None and most is None:
        return x
    is_wide = node.kind(0) == _UINT64
    if least is not None:
        is_out = flip(x) < flip(least) if is_wide else x < least
        x = torch.where(is_out, least, x)
    if most is not None:
        is_out = flip(x) > flip(most) if is_wide else x > most
        x = torch.where(is_out, most, x)
    return x


# Conversions.


@define("Cast")
def _cast(node: Node, x: Tensor) -> Tensor:
    return cast(node, x, int(node.get("to")))


@define("CastLike")
def _cast_like(node: Node, x: Tensor, like: Tensor) -> Tensor:
    return cast(node, x, node.kind(1))


def cast(node: Node, x: Tensor, kind: int) -> Tensor:
    """A conversion that wraps integers and cuts off fractions."""
    if kind not in KINDS:
        raise node.refuse(f"requires a conversion to a type that is read, got {get_name(kind)}")
    node.result_kinds[0] = kind
    source, target = KINDS[node.kind(0)], KINDS[kind]
    if target.stored == torch.bool:
        return x != 0
    if target.stored.is_floating_point:
        if source.name == "UINT64":
            # Halves of the bits: each is exact.
            high = torch.bitwise_and(torch.bitwise_right_shift(x, torch.full_like(x, 32)), 0xFFFFFFFF).to(torch.float64)
            low = torch.bitwise_and(x, 0xFFFFFFFF).to(torch.float64)
            return (high * 2.0**32 + low).to(target.wide)
        # Rounded once: f64 to f16 by way of f32 would be twice.
        return x.to(target.stored)
    if x.is_floating_point():
        if target.name == "UINT64":
            is_large = x >= 2.0**63
            return torch.where(is_large, x - 2.0**63, x).to(torch.int64) + is_large.to(torch.int64) * _LEAST
        # Unsigned ones beyond the range of signed ones, and what is wrapped, come from the wider form.
        return x.to(torch.int64).to(target.wide)
    return x.to(target.wide)


# Activations.


@define("Relu")
def _relu(node: Node, x: Tensor) -> Tensor:
    return functional.relu(x)


@define("LeakyRelu")
def _leaky_relu(node: Node, x: Tensor) -> Tensor:
    return torch.where(x < 0, x * node.get("alpha", 0.01), x)


@define("PRelu")
def _prelu(node: Node, x: Tensor, slope: Tensor) -> Tensor:
    if node.opset < 7 and slope.numel() > 1 and slope.dim() == 1:
        slope = slope.reshape(-1, *[1] * (x.dim() - 2))
    return torch.where(x < 0, x * slope, x)


@define("ThresholdedRelu")
def _thresholded_relu(node: Node, x: Tensor) -> Tensor:
    return torch.where(x <= node.get("alpha", 1.0), 0.0, x)


@define("Elu")
def _elu(node: Node, x: Tensor) -> Tensor:
    return torch.where(x < 0, (torch.exp(torch.where(x < 0, x, 0.0)) - 1) * node.get("alpha", 1.0), x)


@define("Celu")
def _celu(node: Node, x: Tensor) -> Tensor:
    alpha = node.get("alpha", 1.0)
    return torch.where(x < 0, (torch.exp(torch.where(x < 0, x, 0.0) / alpha) - 1) * alpha, x)


@define("Selu")
def _selu(node: Node, x: Tensor) -> Tensor:
    alpha = node.get("alpha", 1.67326319217681884765625)
    gamma = node.get("gamma", 1.05070102214813232421875)
    return torch.where(x <= 0, (torch.exp(torch.where(x <= 0, x, 0.0)) - 1) * (alpha * gamma), x * gamma)


@define("HardSigmoid")
def _hard_sigmoid(node: Node, x: Tensor) -> Tensor:
    y = x * node.get("alpha", 0.2) + node.get("beta", 0.5)
    y = torch.where(y < 0, 0.0, y)
    return torch.where(y > 1, 1.0, y)


@define("HardSwish")
def _hard_swish(node: Node, x: Tensor) -> Tensor:
    y = x * (1 / 6) + 0.5
    y = torch.where(y < 0, 0.0, y)
    return x * torch.where(y > 1, 1.0, y)


@define("Softplus")
def _softplus(node: Node, x: Tensor) -> Tensor:
    return torch.log1p(torch.exp(-x.abs())) + torch.where(x < 0, 0.0, x)


@define("Softsign")
def _softsign(node: Node, x: Tensor) -> Tensor:
    return x / (1 + x.abs())


@define("Gelu")
def _gelu(node: Node, x: Tensor) -> Tensor:
    if node.get("approximate", "none") == "tanh":
        return functional.gelu(x, approximate="tanh")
    return 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))


@define("Swish")
def _swish(node: Node, x: Tensor) -> Tensor:
    alpha = node.get("alpha", 1.0)
    return x * torch.sigmoid(x if alpha == 1 else x * alpha)


@define("Shrink")
def _shrink(node: Node, x: Tensor) -> Tensor:
    bias, lambd = node.get("bias", 0.0), node.get("lambd", 0.5)
    return torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, 0 if not x.is_floating_point() else 0.0))


# Along one dimension.


def _find_axis(node: Node, x: Tensor) -> tuple[Tensor, int]:
    """What is normalized along one dimension; before version 13 along all dimensions from `axis` on."""
    axis = node.get("axis", -1 if node.opset >= 13 else 1)
    axis = node.wrap(axis, x.dim()) if axis != x.dim() else axis
    if node.opset >= 13:
        return x, axis
    return x.reshape(*x.shape[:axis], -1), axis


@define("Softmax")
def _softmax(node: Node, x: Tensor) -> Tensor:
    rows, axis = _find_axis(node, x)
    return torch.softmax(rows, axis).reshape(x.shape)


@define("LogSoftmax")
def _log_softmax(node: Node, x: Tensor) -> Tensor:
    rows, axis = _find_axis(node, x)
    return torch.log_softmax(rows, axis).reshape(x.shape)


@define("Hardmax")
def _hardmax(node: Node, x: Tensor) -> Tensor:
    rows, axis = _find_axis(node, x)
    places = torch.argmax(rows, axis, keepdim=True)
    shape = [1] * rows.dim()
    shape[axis] = rows.shape[axis]
    return (torch.arange(rows.shape[axis]).reshape(shape) == places).to(x.dtype).reshape(x.shape)


# What training nodes compute.


@define("Adagrad", domain="ai.onnx.preview.training")
def _adagrad(node: Node, rate: Tensor, step: Tensor, *tensors: Tensor) -> list[Tensor]:
    count = len(tensors) // 3
    rate = rate / (1 + step.to(rate.dtype) * node.get("decay_factor", 0.0))
    results: list[list[Tensor]] = [[], []]
    for x, gradient, squares in zip(tensors[:count], tensors[count : 2 * count], tensors[2 * count :]):
        gradient = gradient + x * node.get("norm_coefficient", 0.0)
        squares = squares + gradient * gradient
        results[0].append(x - rate * gradient / (torch.sqrt(squares) + node.get("epsilon", 1e-6)))
        results[1].append(squares)
    return [*results[0], *results[1]]


@define("Momentum", domain="ai.onnx.preview.training")
def _momentum(node: Node, rate: Tensor, step: Tensor, *tensors: Tensor) -> list[Tensor]:
    count = len(tensors) // 3
    alpha, beta = node.get("alpha"), node.get("beta")
    results: list[list[Tensor]] = [[], []]
    for x, gradient, velocity in zip(tensors[:count], tensors[count : 2 * count], tensors[2 * count :]):
        gradient = gradient + x * node.get("norm_coefficient")
        beta_now = torch.where(step > 0, beta, 1.0).to(x.dtype)
        velocity = velocity * alpha + gradient * beta_now
        change = gradient + velocity * alpha if node.get("mode") == "nesterov" else velocity
        results[0].append(x - rate * change)
        results[1].append(velocity)
    return [*results[0], *results[1]]


@define("Adam", domain="ai.onnx.preview.training")
def _adam(node: Node, rate: Tensor, step: Tensor, *tensors: Tensor) -> list[Tensor]:
    count = len(tensors) // 4
    alpha, beta = node.get("alpha", 0.9), node.get("beta", 0.999)
    parts = [tensors[count * part : count * (part + 1)] for part in range(4)]
    results: list[list[Tensor]] = [[], [], []]
    for x, gradient, first, second in zip(*parts):
        gradient = gradient + x * node.get("norm_coefficient", 0.0)
        first = first * alpha + gradient * (1 - alpha)
        second = second * beta + gradient * gradient * (1 - beta)
        steps = step.to(x.dtype)
        corrected = rate * torch.sqrt(1 - torch.pow(beta, steps)) / (1 - torch.pow(alpha, steps))
        adjusted = torch.where(step > 0, corrected, rate)
        x = x - adjusted * first / (torch.sqrt(second) + node.get("epsilon", 1e-6))
        results[0].append(x * (1 - node.get("norm_coefficient_post", 0.0)))
        results[1].append(first)
        results[2].append(second)
    return [entry for part in results for entry in part]
