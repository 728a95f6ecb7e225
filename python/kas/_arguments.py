# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of the arguments of functions that torch-mlir has made."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any


def set_attributes(text: str, attributes: Sequence[dict[str, Any]]) -> str:
    """`text` with the attributes of the arguments of its function `@forward`; `None` stands for no value."""
    start = text.index("func.func @forward(")
    end = text.index("{", text.index("->", start))

    def write(match: re.Match[str]) -> str:
        entries = [
            name if value is None else f"{name} = {json.dumps(value, ensure_ascii=False)}"
            for name, value in attributes[int(match[2])].items()
        ]
        return f"{match[1]} {{{', '.join(entries)}}}"

    arguments, count = re.subn(r"(%arg(\d+): tensor<[^>]*>)", write, text[start:end])
    if count != len(attributes):
        raise ValueError(f"torch-mlir made a function of {count} arguments, expected {len(attributes)}")
    return text[:start] + arguments + text[end:]
