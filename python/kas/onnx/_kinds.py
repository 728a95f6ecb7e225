# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of elements in ONNX models, and what of them PyTorch computes with.

Each type has two forms: `stored` is that of the elements in memory, where unsigned integers of 16 bits and more are
signed ones with the same bits; `wide` is that which is computed with, so that 8-bit, 16-bit and half-precision numbers
are computed in 32 bits and rounded or wrapped once for each operation.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from onnx import TensorProto


class Kind(NamedTuple):
    """A type of elements."""

    name: str
    """As ONNX writes it, in capitals."""
    stored: torch.dtype
    wide: torch.dtype
    mask: int | None = None
    """The bits of an unsigned integer that is stored as a signed one, unless it has 64."""
    is_unsigned: bool = False


KINDS: dict[int, Kind] = {
    TensorProto.FLOAT: Kind("FLOAT", torch.float32, torch.float32),
    TensorProto.DOUBLE: Kind("DOUBLE", torch.float64, torch.float64),
    TensorProto.FLOAT16: Kind("FLOAT16", torch.float16, torch.float32),
    TensorProto.BFLOAT16: Kind("BFLOAT16", torch.bfloat16, torch.float32),
    TensorProto.BOOL: Kind("BOOL", torch.bool, torch.bool),
    TensorProto.INT8: Kind("INT8", torch.int8, torch.int32),
    TensorProto.INT16: Kind("INT16", torch.int16, torch.int32),
    TensorProto.INT32: Kind("INT32", torch.int32, torch.int32),
    TensorProto.INT64: Kind("INT64", torch.int64, torch.int64),
    TensorProto.UINT8: Kind("UINT8", torch.uint8, torch.int32, 0xFF, True),
    TensorProto.UINT16: Kind("UINT16", torch.int16, torch.int32, 0xFFFF, True),
    TensorProto.UINT32: Kind("UINT32", torch.int32, torch.int64, 0xFFFFFFFF, True),
    TensorProto.UINT64: Kind("UINT64", torch.int64, torch.int64, None, True),
}
"""The types that are read, by their numbers in ONNX."""

_NAMES = {
    "float": TensorProto.FLOAT,
    "double": TensorProto.DOUBLE,
    **{name.lower(): number for name, number in TensorProto.DataType.items()},
}
_NATURAL = {
    torch.float32: TensorProto.FLOAT,
    torch.float64: TensorProto.DOUBLE,
    torch.float16: TensorProto.FLOAT16,
    torch.bfloat16: TensorProto.BFLOAT16,
    torch.bool: TensorProto.BOOL,
    torch.int8: TensorProto.INT8,
    torch.int16: TensorProto.INT16,
    torch.int32: TensorProto.INT32,
    torch.int64: TensorProto.INT64,
    torch.uint8: TensorProto.UINT8,
}


def get_name(kind: int) -> str:
    """As ONNX calls the type."""
    return str(TensorProto.DataType.Name(kind)) if kind in TensorProto.DataType.values() else str(kind)


def parse_kind(text: str) -> int:
    """The number of `tensor(float)`, as schemas write it."""
    return int(_NAMES[text.removeprefix("tensor(").removesuffix(")")])


def find_kind(dtype: torch.dtype) -> int:
    """The type in ONNX with the elements of this one."""
    return int(_NATURAL[dtype])


def widen(tensor: torch.Tensor, kind: int) -> torch.Tensor:
    """What is computed with."""
    entry = KINDS[kind]
    if tensor.dtype == entry.wide:
        return tensor
    wide = tensor.to(entry.wide)
    return wide if entry.mask is None or tensor.dtype == torch.uint8 else torch.bitwise_and(wide, entry.mask)


def narrow(tensor: torch.Tensor, kind: int) -> torch.Tensor:
    """What is stored."""
    stored = KINDS[kind].stored
    return tensor if tensor.dtype == stored else tensor.to(stored)
