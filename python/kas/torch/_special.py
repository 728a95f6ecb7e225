# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of mathematics: those that kas has for float32, and arithmetic that torch-mlir takes for something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._loops import ELEMENTS, broadcast, elementwise

aten = torch.ops.aten

_OF_ONE = ("digamma", "erfc", "erfinv", "i0", "lgamma")
_SPECIAL_OF_ONE = (
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "erfcx",
    "i0e",
    "i1",
    "i1e",
    "log_ndtr",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "ndtri",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
)
_OF_TWO = ("igamma", "igammac", "nextafter")
# Others are NaN, or off, at other places than PyTorch's where numbers are infinite or next to one.
_POLYNOMIALS = (
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_v",
)


def _promote(values: Sequence[Any]) -> list[torch.Tensor] | None:
    """Tensors of float32; None where PyTorch computes in another type."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    dtype = tensors[0].dtype
    for value in values:
        dtype = torch.promote_types(dtype, torch.result_type(tensors[0], value))
    if dtype != torch.float32 and (dtype.is_floating_point or dtype.is_complex):
        return None
    if torch.get_default_dtype() != torch.float32 and dtype != torch.float32:
        return None
    return [
        value.to(torch.float32) if isinstance(value, torch.Tensor) else torch.full((), value, dtype=torch.float32)
        for value in values
    ]


def _call(name: str) -> Callable[..., Any]:
    """A function of `SpecialFunctions.cpp`."""

    def decompose(*values: Any) -> Any:
        tensors = _promote(values)
        if tensors is None or not all(tensor.numel() for tensor in tensors):
            return NotImplemented
        types = ", ".join("f32" for _ in tensors)
        operands = ", ".join(f"%x{number}" for number in range(len(tensors)))
        body = f"%y = func.call @kas_{name}({operands}) : ({types}) -> f32\nyield %y"
        return elementwise(tensors, body, before=f"func.func private @kas_{name}({types}) -> f32")

    return decompose


def polygamma(n: int, x: torch.Tensor) -> Any:
    """`torch.polygamma`."""
    return _call("polygamma")(torch.full((), n, dtype=torch.float32), x)


def frexp(x: torch.Tensor) -> Any:
    """`torch.frexp`."""
    if x.dtype != torch.float32 or not x.numel():
        return NotImplemented
    body = "%y = func.call @kas_frexp_exponent(%x0) : (f32) -> i32\nyield %y"
    before = "func.func private @kas_frexp_exponent(f32) -> i32"
    return _call("frexp_mantissa")(x), elementwise([x], body, torch.int32, before)


def xlog1py(x: Any, y: Any) -> Any:
    """`torch.special.xlog1py`."""
    tensors = _promote([x, y])
    if tensors is None:
        return NotImplemented
    x, y = broadcast(*tensors)
    found = torch.where(x == 0, torch.zeros_like(y), x * torch.log1p(y))
    return torch.where(y != y, y, found)


def copysign(x: torch.Tensor, y: Any) -> Any:
    """`torch.copysign`."""
    tensors = _promote([x, y])
    if tensors is None:
        return NotImplemented
    return elementwise(tensors, "%y = math.copysign %x0, %x1 : f32\nyield %y")


def signbit(x: torch.Tensor) -> Any:
    """`torch.signbit`."""
    if x.dtype != torch.float32:
        return x < 0 if not x.dtype.is_floating_point and x.dtype != torch.bool else NotImplemented
    return elementwise([x], "%y = arith.bitcast %x0 : f32 to i32\nyield %y", torch.int32) < 0


# ---- Division

_CHECKED = """%zero = arith.constant 0 : {0}
%one = arith.constant 1 : {0}
%minus_one = arith.constant -1 : {0}
%divides = arith.cmpi ne, %x1, %zero : {0}
cf.assert %divides, "ZeroDivisionError: integer division by zero"
%negates = arith.cmpi eq, %x1, %minus_one : {0}
%divisor = arith.select %negates, %one, %x1 : {0}
"""
"""The least integer has no quotient by -1: it is negated instead."""
_QUOTIENT = """%cut = arith.divsi %x0, %divisor : {0}
%negative = arith.subi %zero, %x0 : {0}
%quotient = arith.select %negates, %negative, %cut : {0}
"""
_REST = "%rest = arith.remsi %x0, %divisor : {0}\n"
_IS_BELOW = """%is_exact = arith.cmpi eq, %rest, %zero : {0}
%signs = arith.xori %rest, %x1 : {0}
%differ = arith.cmpi slt, %signs, %zero : {0}
%false = arith.constant false
%is_below = arith.select %is_exact, %false, %differ : i1
"""


def _divide(floats: str, integers: str) -> Callable[..., Any]:
    """The texts of an operation on floats and on integers."""

    def decompose(x: Any, y: Any) -> Any:
        dtype = torch.result_type(x, y)
        if dtype not in ELEMENTS or not (dtype.is_floating_point or dtype in (torch.int32, torch.int64)):
            return NotImplemented
        if not (floats if dtype.is_floating_point else integers):
            return NotImplemented
        tensors = [
            value.to(dtype) if isinstance(value, torch.Tensor) else torch.full((), value, dtype=dtype)
            for value in (x, y)
        ]
        if not all(tensor.numel() for tensor in tensors):
            return NotImplemented
        return elementwise(tensors, (floats if dtype.is_floating_point else integers).format(ELEMENTS[dtype]))

    return decompose


fmod = _divide("%y = arith.remf %x0, %x1 : {0}\nyield %y", f"{_CHECKED}{_REST}yield %rest")
remainder = _divide(
    """%rest = arith.remf %x0, %x1 : {0}
%zero = arith.constant 0.0 : {0}
%is_left = arith.cmpf une, %rest, %zero : {0}
%one = arith.cmpf olt, %rest, %zero : {0}
%two = arith.cmpf olt, %x1, %zero : {0}
%differ = arith.xori %one, %two : i1
%is_below = arith.andi %is_left, %differ : i1
%sum = arith.addf %rest, %x1 : {0}
%y = arith.select %is_below, %sum, %rest : {0}
yield %y""",
    f"""{_CHECKED}{_REST}{_IS_BELOW}%sum = arith.addi %rest, %x1 : {{0}}
%y = arith.select %is_below, %sum, %rest : {{0}}
yield %y""",
)
_cut = _divide("", f"{_CHECKED}{_QUOTIENT}yield %quotient")
_round_down = _divide(
    """%rest = arith.remf %x0, %x1 : {0}
%zero = arith.constant 0.0 : {0}
%one = arith.constant 1.0 : {0}
%half = arith.constant 0.5 : {0}
%quotient = arith.divf %x0, %x1 : {0}
%whole = arith.subf %x0, %rest : {0}
%above = arith.divf %whole, %x1 : {0}
%is_left = arith.cmpf une, %rest, %zero : {0}
%rest_below = arith.cmpf olt, %rest, %zero : {0}
%divisor_below = arith.cmpf olt, %x1, %zero : {0}
%differ = arith.xori %rest_below, %divisor_below : i1
%is_below = arith.andi %is_left, %differ : i1
%below = arith.subf %above, %one : {0}
%exact = arith.select %is_below, %below, %above : {0}
%down = math.floor %exact : {0}
%lost = arith.subf %exact, %down : {0}
%is_lost = arith.cmpf ogt, %lost, %half : {0}
%up = arith.addf %down, %one : {0}
%rounded = arith.select %is_lost, %up, %down : {0}
%nothing = math.copysign %zero, %quotient : {0}
%is_nothing = arith.cmpf oeq, %exact, %zero : {0}
%signed = arith.select %is_nothing, %nothing, %rounded : {0}
%by_nothing = arith.cmpf oeq, %x1, %zero : {0}
%y = arith.select %by_nothing, %quotient, %signed : {0}
yield %y""",
    f"""{_CHECKED}{_QUOTIENT}{_REST}{_IS_BELOW}%below = arith.subi %quotient, %one : {{0}}
%y = arith.select %is_below, %below, %quotient : {{0}}
yield %y""",
)


def divide(otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """`torch.div` that rounds."""

    def decompose(x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
        rounds = {"trunc": _cut, "floor": _round_down}.get(rounding_mode or "")
        found = rounds(x, y) if rounds else NotImplemented
        if found is NotImplemented and otherwise is not None:
            return otherwise(x, y, rounding_mode=rounding_mode)
        return found

    return decompose


def floor_divide(otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """`torch.floor_divide`."""

    def decompose(x: Any, y: Any) -> Any:
        found = _round_down(x, y)
        return otherwise(x, y) if found is NotImplemented and otherwise is not None else found

    return decompose


def get_special_table(others: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file; of what it does not round those of `others`."""
    table: dict[Any, Any] = {
        aten.copysign.Scalar: copysign,
        aten.copysign.Tensor: copysign,
        aten.fmod.Scalar: fmod,
        aten.fmod.Tensor: fmod,
        aten.frexp.Tensor: frexp,
        aten.polygamma.default: polygamma,
        aten.remainder.Scalar: remainder,
        aten.remainder.Scalar_Tensor: remainder,
        aten.remainder.Tensor: remainder,
        aten.signbit.default: signbit,
        aten.special_modified_bessel_i0.default: _call("i0"),
        aten.special_modified_bessel_i1.default: _call("i1"),
    }
    for name in ("div.Tensor_mode", "div.Scalar_mode"):
        operation = _find(name)
        table[operation] = divide(others.get(operation))
    for name in ("floor_divide.default", "floor_divide.Scalar"):
        operation = _find(name)
        table[operation] = floor_divide(others.get(operation))
    for name in (*_OF_ONE, *_OF_TWO):
        table[_find(f"{name}.default")] = _call(name)
    for name in _SPECIAL_OF_ONE:
        table[_find(f"special_{name}.default")] = _call(name)
    for name in (*_POLYNOMIALS, "zeta"):
        scalars = ("self_scalar", "other_scalar") if name == "zeta" else ("x_scalar", "n_scalar")
        for overload in ("default", *scalars):
            table[_find(f"special_{name}.{overload}")] = _call(name)
    for overload in ("default", "self_scalar", "other_scalar"):
        table[_find(f"special_xlog1py.{overload}")] = xlog1py
    return table


def _find(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload)
