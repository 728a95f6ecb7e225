# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables from the list, the costs and the records of any number of machines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from kas import __version__

from ..protocol import Store
from ..protocol._protocol import settings_of
from ._space import BINDING, WIDTH, read_text
from ._table import Row, Table, Training
from ._tasks import NETWORK, REFERENCES, TASKS, WIDTHS, get_name
from ._time import collect_latencies, merge_latencies
from ._train import collect_trainings

LICENCE = "CC-BY-4.0"
_T = TypeVar("_T")


def pack(table: Table, stores: Sequence[Store]) -> tuple[list[Row], dict[str, Row], dict[str, Any]]:
    """The rows with what the stores know of them, the layers made by hand, and what the manifest says.

    What the table has stays, unless a store has the same training, or a lower time of the same layer on the same
    machine.
    Records of other recipes or operators are left out. Raises a `ValueError` where trainings of a task are on other
    data than those in the table.
    """
    trainings, identities = collect_trainings(table, stores)
    latencies = collect_latencies(stores)
    for name, identity in identities.items():
        known = table.manifest["tasks"].get(name, {}).get("data")
        if known not in (None, identity):
            raise ValueError(f"requires trainings on '{name}' with the data {known} of the table, got {identity}")
    rows = [
        replace(
            row,
            trainings=_merge(row.trainings, trainings.get(get_name(row), ()), _key_of),
            latencies=tuple(merge_latencies([*row.latencies, *latencies.get(row.key, ())])),
        )
        for row in table
    ]
    references = {}
    for name in REFERENCES:
        old = table.references.get(name, Row(-1, "", "", frozenset()))
        known = replace(
            old,
            trainings=_merge(old.trainings, trainings.get(name, ()), _key_of),
            latencies=tuple(merge_latencies([*old.latencies, *latencies.get(name, ())])),
        )
        if known.trainings or known.latencies:
            references[name] = known
    return rows, references, _add_known(describe(identities, stores), table.manifest)


def _key_of(training: Training) -> tuple[Any, ...]:
    return training.task, training.width, training.seed


def _merge(known: Sequence[_T], added: Sequence[_T], get_key: Callable[[_T], Any]) -> tuple[_T, ...]:
    """Both, sorted; what is added takes the place of what is known by the same key."""
    found = {get_key(one): one for one in (*known, *added)}
    tasks = {name: place for place, name in enumerate(TASKS)}
    order = sorted(found, key=lambda key: (tasks.get(key[0], len(tasks)), *key))
    return tuple(found[key] for key in order)


def _add_known(about: dict[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the machines, versions and data of a table that stays."""
    for name, task in about["tasks"].items():
        task["data"] = task["data"] or manifest["tasks"].get(name, {}).get("data")
    about["machines"] = sorted({*about["machines"], *manifest.get("machines", ())})
    versions = about["versions"]
    versions["latencies"] = sorted({*versions["latencies"], *manifest.get("versions", {}).get("latencies", ())})
    return about


def describe(identities: Mapping[str, str], stores: Sequence[Store]) -> dict[str, Any]:
    """What the manifest says beside the files."""
    versions = [record["versions"] for store in stores for record in store if record["kind"] == "operator_latency"]
    machines = sorted(
        {record["machine"] for store in stores for record in store if record["kind"] == "operator_latency"}
    )
    return {
        "name": "KAS-Bench-1",
        "licence": LICENCE,
        "command": "kas-research bench1 list, costs, train, time, pack",
        "space": {"name": "resnet18", "sha256": hashlib.sha256(read_text().encode()).hexdigest()},
        "tasks": {
            name: {
                "data": identities.get(name),
                "network": NETWORK,
                "width": WIDTH,
                "widths": {name: list(WIDTHS) for name in REFERENCES},
                "binding": dict(BINDING),
                "recipe": settings_of(task.recipe),
            }
            for name, task in TASKS.items()
        },
        "machines": machines,
        "versions": {"kas": __version__, "latencies": sorted({str(sorted(entry.items())) for entry in versions})},
    }
