# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operators are trained on, and how."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kas._errors import need

need("torch", "torch")

from kas.evaluate import Recipe

from ..protocol import Contender, Job, Point, Protocol
from ._space import BINDING, WIDTH
from ._table import Row

NETWORK = "pooled"
"""Only the layers that are replaced and the stem see neighbours in it: it measures operators (see
`kas_research.protocol.NETWORKS`)."""
WIDTHS = (8, 16, 24, 32, 48)
"""Of the layers made by hand."""
SEEDS = (0, 1, 2)
REFERENCES = ("dense", "pointwise", "depthwise-separable", "depthwise-separable-relu")
"""Layers made by hand that are trained in the same way."""
DRAWN = 300
"""How many of the operators that do not see a whole window are trained."""


@dataclass(frozen=True)
class Task:
    """Images and how long networks are trained on them."""

    data: str
    """As `kas.evaluate.load_data` takes it."""
    recipe: Recipe
    options: Mapping[str, Any] = field(default_factory=dict)


def _make_recipe(epochs: int) -> Recipe:
    return Recipe(
        epochs=epochs, batch_size=64, learning_rate=4e-3, weight_decay=0.02, warmup_steps=30, recalibrate=False
    )


TASKS: Mapping[str, Task] = {
    "fashion-mnist": Task("fashion-mnist", _make_recipe(4), {"train": 6000, "validation": 5000, "seed": 0}),
    "moved-mnist": Task(f"{Path(__file__).with_name('_images.py')}:moved_mnist", _make_recipe(8), {"train": 3000}),
}
"""By name."""


def get_name(row: Row) -> str:
    """What the contender of an operator is called."""
    return f"operator-{row.number}"


def make_protocol(task: Task, rows: Iterable[Row]) -> Protocol:
    """The trainings of operators and of the references on a task."""
    operators = [Contender(get_name(row), row.text, BINDING) for row in rows]
    return Protocol(
        (*(Contender(name, widths=WIDTHS) for name in REFERENCES), *operators),
        networks=(NETWORK,),
        widths=(WIDTH,),
        choosing=(),
        reporting=SEEDS,
        recipe=task.recipe,
        data=task.data,
        data_options=task.options,
        name="kas-bench-1",
    )


def make_job(name: str, seed: int, width: int = WIDTH) -> Job:
    """The training of a contender with a seed."""
    return Job(Point(NETWORK, name, width), seed, True)


def get_widths(name: str) -> tuple[int, ...]:
    """Those that a contender is trained at."""
    return WIDTHS if name in REFERENCES else (WIDTH,)


def order(rows: Sequence[Row], drawn: int = DRAWN, seed: int = 0) -> list[Row]:
    """The operators that are trained, in their order: each prefix is a sample.

    First those that see a whole window, in a random order by the seed, then as many as `drawn` others.
    """
    generator = random.Random(seed)
    windows = [row for row in rows if "sees" in row.properties]
    others = [row for row in rows if "sees" not in row.properties]
    return generator.sample(windows, len(windows)) + generator.sample(others, min(drawn, len(others)))
