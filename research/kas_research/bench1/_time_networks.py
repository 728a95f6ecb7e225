# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latencies of the networks that are trained, at the sizes that they are trained at, beside that with dense layers."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kas._errors import Error, need

need("torch", "torch")

import torch

from kas import __version__

from ..protocol import Protocol, Store
from ..protocol._latency import CompiledNetwork, export
from ..protocol._store import make_key
from ._space import TRAINED, WIDTH
from ._table import Row
from ._tasks import REFERENCES, TASKS, get_name, get_widths, make_job, make_protocol
from ._time import describe_processor

BATCH = 15
"""Networks that are timed in turn with the dense one."""
ROUNDS, CALLS = 10, 40


class Network(NamedTuple):
    """A contender at a width; `operator` is what latencies of it are known by: its key, or its name."""

    operator: str
    contender: str
    width: int


def list_networks(rows: Iterable[Row]) -> list[Network]:
    """The layers made by hand at all widths, then the operators."""
    by_hand = [Network(name, name, width) for name in REFERENCES for width in get_widths(name)]
    return by_hand + [Network(row.key, get_name(row), WIDTH) for row in rows]


def make_network_key(network: Network, machine: str, threads: int) -> str:
    """Of the record of a latency."""
    own = {"operator": network.operator, "width": network.width}
    return make_key({**own, "layer": TRAINED, "threads": threads, "machine": machine})


def measure_networks(
    rows: Sequence[Row],
    store: Store,
    *,
    threads: int = 1,
    limit: int | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Times what the store does not have of this machine, at most `limit` networks. Nothing else should run.

    Images one by one. All networks of a batch and the one with dense layers of `WIDTH` are timed in turn, in rounds.
    """
    machine = describe_processor()
    known = {record["key"] for record in store if record["kind"] == "operator_latency"}
    missing = [network for network in list_networks(rows) if make_network_key(network, machine, threads) not in known][
        :limit
    ]
    protocol = make_protocol(next(iter(TASKS.values())), rows)
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        times = _time_in_turn(protocol, [Network("dense", "dense", WIDTH), *batch], threads)
        if isinstance(times[0], str):
            raise RuntimeError(f"the network with dense layers: {times[0]}")
        for network, found in zip(batch, times[1:]):
            record = _make_record(network, machine, threads, found, times[0])
            store.add(record)
            if progress is not None:
                progress(record)


def _time_in_turn(protocol: Protocol, networks: Sequence[Network], threads: int) -> list[float | str]:
    """The least microseconds of each by its fastest form, or why there is none."""
    example = torch.randn(1, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    compiled = [_compile(protocol, network, example, threads) for network in networks]
    least = [forms if isinstance(forms, str) else float("inf") for forms in compiled]
    for _, (place, forms) in itertools.product(range(ROUNDS), list(enumerate(compiled))):
        known = least[place]
        if not isinstance(forms, str) and not isinstance(known, str):
            least[place] = min(known, *(form.time(CALLS) for form in forms))
    return least


def _compile(protocol: Protocol, network: Network, example: torch.Tensor, threads: int) -> list[CompiledNetwork] | str:
    forms: list[CompiledNetwork] = []
    reasons: list[str] = []
    try:
        point = make_job(network.contender, 0, network.width).point
        for module, arrays in export(protocol, point, example):
            try:
                forms.append(CompiledNetwork(module, arrays, (len(example), 10), threads).start())
            except (Error, RuntimeError) as error:
                reasons.append(str(error))
    except (Error, ValueError, RuntimeError) as error:
        reasons.append(str(error))
    return forms or " ".join("; ".join(reasons).split())[:300]


def _make_record(network: Network, machine: str, threads: int, found: float | str, dense: float) -> dict[str, Any]:
    record: dict[str, Any] = {
        "kind": "operator_latency",
        "key": make_network_key(network, machine, threads),
        "operator": network.operator,
        "contender": network.contender,
        "layer": TRAINED,
        "width": network.width,
        "threads": threads,
        "machine": machine,
        "versions": {"kas": __version__, "python": sys.version.split()[0], "pytorch": torch.__version__},
        "time": round(time.time()),
        "failure": found if isinstance(found, str) else None,
    }
    if not isinstance(found, str):
        record |= {"microseconds": round(found, 3), "dense_microseconds": round(dense, 3)}
    return record
