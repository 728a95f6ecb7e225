# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables from the list, the costs and the records of any number of machines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import __version__
from ..evaluate.protocol import Store
from ..evaluate.protocol._protocol import settings_of
from ._space import read_text
from ._table import Row
from ._tasks import BINDING, NETWORK, REFERENCES, TASKS, WIDTH, get_name
from ._time import collect_latencies
from ._train import collect_trainings

LICENCE = "CC-BY-4.0"


def pack(rows: Sequence[Row], stores: Sequence[Store]) -> tuple[list[Row], dict[str, Row], dict[str, Any]]:
    """The rows with what the stores know of them, the layers made by hand, and what the manifest says.

    Records of other recipes, data or operators are left out; `rows` keep nothing that they had.
    """
    trainings, identities = collect_trainings(rows, stores)
    latencies = collect_latencies(stores)
    packed = [
        replace(row, trainings=tuple(trainings.get(get_name(row), ())), latencies=tuple(latencies.get(row.key, ())))
        for row in rows
    ]
    references = {
        name: Row(-1, "", "", frozenset(), trainings=tuple(trainings[name])) for name in REFERENCES if name in trainings
    }
    return packed, references, describe(identities, stores)


def describe(identities: Mapping[str, str], stores: Sequence[Store]) -> dict[str, Any]:
    """What the manifest says beside the files."""
    versions = [record["versions"] for store in stores for record in store if record["kind"] == "operator_latency"]
    machines = sorted(
        {record["machine"] for store in stores for record in store if record["kind"] == "operator_latency"}
    )
    return {
        "name": "KAS-Bench-1",
        "licence": LICENCE,
        "command": "python -m kas.bench1 list, costs, train, time, pack",
        "space": {"name": "resnet18", "sha256": hashlib.sha256(read_text().encode()).hexdigest()},
        "tasks": {
            name: {
                "data": identities.get(name),
                "network": NETWORK,
                "width": WIDTH,
                "binding": dict(BINDING),
                "recipe": settings_of(task.recipe),
            }
            for name, task in TASKS.items()
        },
        "machines": machines,
        "versions": {"kas": __version__, "latencies": sorted({str(sorted(entry.items())) for entry in versions})},
    }
