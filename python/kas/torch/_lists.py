# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on lists of tensors, of which optimizers are made, by those on each tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

_PREFIX = "aten::_foreach_"
_OPTIONS = ("alpha", "dtype", "value")
"""That operations on single tensors take by name."""


def _add_product(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, *, value: Any = 1) -> torch.Tensor:
    """`torch.addcmul`, whose factor may be a tensor."""
    if isinstance(value, torch.Tensor):
        return x + value.to(x.dtype) * y * z
    result: torch.Tensor = aten.addcmul(x, y, z, value=value)
    return result


def _add_quotient(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, *, value: Any = 1) -> torch.Tensor:
    """`torch.addcdiv`, whose factor may be a tensor."""
    if isinstance(value, torch.Tensor):
        return x + value.to(x.dtype) * y / z
    result: torch.Tensor = aten.addcdiv(x, y, z, value=value)
    return result


def _copy(x: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    return source.to(x.dtype).expand(x.shape).clone()


def _norm(x: torch.Tensor, ord: Any = 2, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    result: torch.Tensor = aten.linalg_vector_norm(x, ord, dtype=dtype)
    return result


def _bound(of_tensors: Any, of_numbers: Any) -> Callable[..., Any]:
    def decompose(x: torch.Tensor, other: Any) -> Any:
        return of_tensors(x, other) if isinstance(other, torch.Tensor) else of_numbers(x, other)

    return decompose


_OTHERS: dict[str, Callable[..., Any]] = {
    "addcdiv": _add_quotient,
    "addcmul": _add_product,
    "copy": _copy,
    "maximum": _bound(aten.maximum, aten.clamp_min),
    "minimum": _bound(aten.minimum, aten.clamp_max),
    "norm": _norm,
    "zero": aten.zeros_like,
}
"""What is no operation of the same name on each tensor."""


def _apply_to_each(operation: Callable[..., Any], schema: Any) -> Callable[..., list[torch.Tensor]]:
    names = [argument.name for argument in schema.arguments]
    lists = {argument.name for argument in schema.arguments if isinstance(argument.type, torch.ListType)}
    has_value = schema.name.endswith(("addcmul", "addcdiv"))

    def decompose(*arguments: Any, **options: Any) -> list[torch.Tensor]:
        values = dict(zip(names, arguments)) | options
        count = next(len(values[name]) for name in names if name in lists)
        results = []
        for place in range(count):
            positional, named = [], {}
            for name, value in values.items():
                is_factor = has_value and name in ("value", "scalars")
                one = value[place] if name in lists or (is_factor and isinstance(value, torch.Tensor)) else value
                if is_factor or name in _OPTIONS:
                    named["value" if is_factor else name] = one
                else:
                    positional.append(one)
            results.append(operation(*positional, **named))
        return results

    return decompose


@functools.cache
def get_lists_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of all operations on lists that change none of them."""
    table: dict[Any, Callable[..., Any]] = {}
    for full_name in torch._C._dispatch_get_all_op_names():
        name, _, overload = full_name.removeprefix(_PREFIX).partition(".")
        if not full_name.startswith(_PREFIX) or name.endswith("_") or overload.endswith("out"):
            continue
        operation = _OTHERS.get(name) or getattr(aten, name, None)
        if operation is not None:
            target = getattr(getattr(aten, f"_foreach_{name}"), overload or "default")
            table[target] = _apply_to_each(operation, target._schema)
    return table
