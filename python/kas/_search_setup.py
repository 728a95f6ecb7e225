# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The setup of `kas.search` from its arguments: the trainer, the space, and the names that an objective may have."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence

from ._errors import need

need("torch", "torch")

from torch import nn

import kas.torch

from ._module import Binding, Module
from ._search import SearchSpace, read_objective
from .evaluate import Data, Recipe, Task, TaskData, Trainer
from .evaluate._task import NetworkFactory
from .torch._sites import LayerChoice

COSTS = ("epochs", "train_seconds", "flops", "params", "flops_ratio", "latency_ms")
"""Metrics of each candidate beside those of its task; `latency_ms` only where the objective has it."""


def get_names(objective: str) -> list[str]:
    """The metrics that an objective names."""
    return [name for axis in read_objective(objective) for _, name in axis]


def check_objective(objective: str, metrics: Sequence[str]) -> None:
    """Raises `ValueError` for a name that is neither of the metrics of the task nor a cost."""
    known = (*metrics, *COSTS)
    for name in get_names(objective):
        if name not in known:
            near = "".join(f" (did you mean '{match}'?)" for match in difflib.get_close_matches(name, known, n=1))
            raise ValueError(f"the objective must be made of {', '.join(known)}, got '{name}'{near}")


def fit_limits(space: SearchSpace, limits: Mapping[str, float | Sequence[str | int] | None]) -> SearchSpace:
    """The space with other limits. Windows that the layers themselves have are allowed at their smallest size."""
    changes = dict(limits)
    if "unfold_ratio" not in changes:
        ratios = [
            binding[size] / binding["k"]
            for binding in space.bindings
            for size in ("H", "W", "T")
            if "k" in binding and size in binding
        ]
        if ratios and 1 < min(ratios) < 2:
            # At 5x5 a window of 3 has 5/3 points of the image for each of its own.
            changes["unfold_ratio"] = math.floor(min(ratios) * 100) / 100
    if not changes:
        return space
    module = Module(space.text, "<space>")
    for name, value in changes.items():
        module._handle.set_limit(space.name, name, None if value is None else _make_attribute(name, value))
    module._handle.verify()
    return SearchSpace(module, space.name)


def _make_attribute(name: str, value: float | Sequence[str | int]) -> str:
    """The value of a limit, as MLIR writes it."""
    if name in ("sees", "equivariant") and isinstance(value, (list, tuple)):
        return "[" + ", ".join(f'"{entry}"' for entry in value) + "]"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"the limit '{name}' must be a number, got {value!r}")
    return f"{value} : i64" if isinstance(value, int) else f"{value!r} : f64"


def make_trainer(
    model: nn.Module | NetworkFactory,
    data: str | Data | TaskData,
    recipe: Recipe,
    task: Task | None,
    space: str | SearchSpace | None,
    sites: LayerChoice | None,
    binding: Binding,
    flops_ratio: float,
    min_flops_ratio: float,
    inherit: bool,
    backend: str,
    device: str,
) -> Trainer:
    """The trainer of a search, with the layers and spaces for these ratios."""
    first = Trainer(model, data, recipe, task=task, sites=sites)
    found = kas.torch.extract(
        first.model, first.data.example, sites=sites, flops_ratio=flops_ratio, min_flops_ratio=min_flops_ratio
    )
    if isinstance(space, SearchSpace):
        # Its operators go where its bindings are: the kind with the most FLOPs, unless a kind has its name.
        space = space.name if space.name in found.spaces else None
    return Trainer(
        model,
        first.data,
        recipe,
        task=task,
        space=space,
        sites=found,
        binding=binding,
        inherit=inherit,
        backend=backend,
        device=device,
    )
