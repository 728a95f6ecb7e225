# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of the arguments of functions that torch-mlir has made."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any


def _write(value: Any) -> str:
    """A string or a number as an attribute."""
    text = json.dumps(value, ensure_ascii=False)
    # Numbers of MLIR have a point before their exponent.
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


def set_attributes(
    text: str, attributes: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]] | None = None
) -> str:
    """`text` with the attributes of the arguments and results of its function `@forward`; `None` is a unit."""
    start = text.index("func.func @forward(")
    arrow = text.index("->", start)
    end = text.index("{\n", arrow)

    def write(type_: str, entries: dict[str, Any]) -> str:
        shown = [name if value is None else f"{name} = {_write(value)}" for name, value in entries.items()]
        return f"{type_} {{{', '.join(shown)}}}" if shown else type_

    arguments, count = re.subn(
        r"(%arg(\d+): tensor<[^>]*>)", lambda match: write(match[1], attributes[int(match[2])]), text[start:arrow]
    )
    if count != len(attributes):
        raise ValueError(f"torch-mlir made a function of {count} arguments, expected {len(attributes)}")
    made = text[arrow:end]
    if results and any(results):
        types = re.findall(r"tensor<[^>]*>", made)
        if len(types) != len(results):
            raise ValueError(f"torch-mlir made a function of {len(types)} results, expected {len(results)}")
        made = f"-> ({', '.join(map(write, types, results))}) "
    return text[:start] + arguments + made + text[end:]
