# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The request that an evaluator receives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """A candidate to evaluate: what a line of the protocol for external evaluators says (docs/guide/searching.md)."""

    id: int
    operator: str
    """The text of a file with one operator."""
    bindings: Sequence[Mapping[str, int]] = ()
    """The values of the symbols, once per distinct layer."""
    multiplicities: Sequence[int] = ()
    """How many layers have each of the bindings."""
