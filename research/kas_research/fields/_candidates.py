# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that are compared with the families: operators and sequences of kas, and modules of PyTorch."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from kas._module import operator as named_operator
from kas.zoo._contenders import Contender, make_layer

from ._families import Grid


@dataclass(frozen=True)
class Candidate:
    """A layer in the place of a family's: of a `module`, an `operator` by name, or a `text` of MLIR."""

    name: str
    nearest: str
    """The family whose learning rate it gets before it has one of its own."""
    module: str | None = None
    """A function of width, depth and grid, as `package.module:function`."""
    operator: str | None = None
    text: str | None = None
    """Of an operator, a sequence or a kernel."""
    binding: Mapping[str, int] = field(default_factory=dict)
    """Of what width and grid do not give."""

    def __post_init__(self) -> None:
        given = [one for one in (self.module, self.operator, self.text) if one is not None]
        if len(given) != 1:
            raise ValueError(f"requires a module, an operator or a text of '{self.name}', got {len(given)} of them")
        if self.module is not None and self.binding:
            raise ValueError(f"requires a binding of an operator or a text, got one of the module '{self.module}'")

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """What its results follow from: for a module with the digest of the function's source."""
        if self.module is not None:
            source = inspect.getsource(_import(self.module))
            return {"module": self.module, "sha256": hashlib.sha256(source.encode()).hexdigest()}
        return {"text": self.get_text(), "binding": dict(self.binding)}

    def make(self, width: int, depth: int, grid: Grid) -> nn.Module:
        """The layer at a depth of the network."""
        if self.module is not None:
            layer: nn.Module = _import(self.module)(width, depth, grid)
            return layer
        return make_layer(Contender(self.name, self.get_text(), self.binding))(width, grid.size)

    def get_text(self) -> str:
        """The MLIR of what is no module."""
        return self.text if self.text is not None else str(named_operator(self.operator or ""))


def _import(name: str) -> Callable[[int, int, Grid], nn.Module]:
    module, _, function = name.partition(":")
    try:
        found: Callable[[int, int, Grid], nn.Module] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"requires a function package.module:function, got '{name}': {error}") from error
    return found
