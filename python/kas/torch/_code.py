# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exported PyTorch code of operators, also for batches of any size."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from .._errors import Error
from .._module import binding_to_text, parse_binding
from ._sizes import find_operator

Code: TypeAlias = Callable[..., torch.Tensor]


@torch.compiler.disable  # type: ignore[untyped-decorator]
@functools.lru_cache(maxsize=1024)
def exported_function(text: str, binding: str) -> Code:
    """The function of the exported PyTorch code at a binding."""
    operator = find_operator(text)
    names: dict[str, Any] = {}
    code = operator.to_pytorch(binding)
    exec(compile(code, f"<PyTorch code of {operator.name}>", "exec"), names)
    function: Code = next(value for value in names.values() if getattr(value, "__code__", None) is not None)
    return function


def _statements(text: str, binding: str) -> str:
    """The code without comments and without its docstring, which says the sizes."""
    tree = ast.parse(find_operator(text).to_pytorch(binding))
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    function.body = function.body[1:]
    return ast.unparse(function)


@functools.lru_cache(maxsize=1024)
def any_batch_function(text: str, binding: str) -> Code | None:
    """The operator on batches of any size: one function, which can be traced with a symbolic size.

    None for an operator that has no batch.
    """
    operator = find_operator(text)
    if not operator.has_batch:
        return None
    values, batch = parse_binding(binding), operator.sizes["data"][0]

    def at(size: int) -> str:
        return binding_to_text({**values, batch: size})

    try:
        # Nothing but whole tensors has the size of the batch: where that is in the code, the next one shows it.
        if _statements(text, at(values[batch])) == _statements(text, at(values[batch] + 1)):
            return exported_function(text, binding)  # type: ignore[no-any-return]
    except Error:
        pass
    one: Code = exported_function(text, at(1))

    def each(data: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.vmap(lambda example: one(example.unsqueeze(0), *weights).squeeze(0))(data)
        return result

    return each
