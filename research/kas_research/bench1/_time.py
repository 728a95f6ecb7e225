# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latencies of the operators in layers of ResNet-18, beside those of the dense layers."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import platform
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from kas._errors import Error, need

need("torch", "torch")

import numpy

from kas import __version__
from kas._module import Module, Operator
from kas._module import operator as named_operator

from ..protocol import Store
from ..protocol._latency import CompiledNetwork, describe_machine
from ..protocol._store import StoreError, make_key
from ._space import LAYERS, SIZES
from ._table import Latency, Row

BATCH = 16
"""Operators that are timed in turn with one dense layer."""
ROUNDS, CALLS = 5, 20
ROUND = 2000.0
"""Microseconds that the calls of a round take, besides the first ones, unless these are too few or too many."""

SLICE = 16
"""So many layers with several threads are timed between looks at the machine."""
PATIENCE = 120.0
"""Seconds that are spent waiting for a calm machine, besides half of the time since the first look at it."""
CALM = 1.12
"""The probe takes at most so much longer than ever on a calm machine: the least of 20 s is 4 % below the median."""
AHEAD = 4
"""Batches that may be compiled before their turn, while a calm machine is waited for: each has up to a gigabyte."""

Place = tuple[str, int]
"""A layer and a number of threads."""
Found = CompiledNetwork | str
"""A compiled layer, or why there is none."""


def _tensor(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def describe_processor() -> str:
    """As the system names it; with family and model where the name is one of many processors, such as `AMD EPYC`."""
    name = describe_machine()
    fields: dict[str, str] = {}
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    if any(letter.isdigit() for letter in name) or not {"cpu family", "model"} <= fields.keys():
        return name
    return f"{name} (family {fields['cpu family']}, model {fields['model']})"


def compile_layer(operator: Operator, binding: Mapping[str, int], threads: int) -> CompiledNetwork:
    """The operator as a layer, to be started, whose weights are known: what depends on them alone is computed ahead."""
    own = {name: binding[name] for name in (*operator.symbols[0], *operator.symbols[1])}
    shapes = operator.shapes(own)
    tensors = [shapes.data, *shapes.weights]
    names = [f"%argument{number}" for number in range(len(tensors))]
    types = list(map(_tensor, tensors))
    given = ", ".join(f"{name} = {value}" for name, value in own.items())
    arguments = ", ".join(f"{name}: {type}" for name, type in zip(names, types))
    module = Module(
        f"{operator.alone()}\n"
        f"func.func @forward({arguments}) -> {_tensor(shapes.output)} {{\n"
        f"  %result = kas.apply @{operator.name}<{given}>({', '.join(names)})\n"
        f"      : ({', '.join(types)}) -> {_tensor(shapes.output)}\n"
        f"  return %result : {_tensor(shapes.output)}\n}}\n",
        f"<{operator.name}>",
    )
    # A copy for each: two weights in one place would stay in a cache in which they do not fit.
    return CompiledNetwork(module, [_draw(shape).copy() for shape in tensors], shapes.output, threads)


@functools.lru_cache(maxsize=64)
def _draw(shape: tuple[int, ...]) -> numpy.ndarray:
    """Kept, as drawing millions of numbers takes about as long as the passes of an operator."""
    array: numpy.ndarray = numpy.random.default_rng(0).standard_normal(shape, dtype=numpy.float32)
    return array


def _compile_dense(layer: str, threads: int) -> CompiledNetwork:
    binding = LAYERS[layer]
    return compile_layer(named_operator("conv2d"), {**binding, "W": binding["H"], "k": binding["k1"]}, threads)


def _try_to_compile(operator: Operator, layer: str, threads: int) -> Found:
    try:
        return compile_layer(operator, LAYERS[layer], threads)
    except (Error, RuntimeError) as error:
        return _describe(error)


class Probe:
    """Whether two threads exchange data as fast as they ever did here.

    A virtual machine may run them near each other, far from each other, or on one core, for seconds or minutes.
    Operators of two stages then take up to five times as long, while dense layers may take no longer at all.
    """

    def __init__(self, known: float = math.inf) -> None:
        """`known`: the least microseconds of earlier probes on this machine, which may not be calm as this starts."""
        binding = LAYERS["64x56"]
        given = {**binding, "W": binding["H"], "k": binding["k1"]}
        self._layer = compile_layer(named_operator("syno_operator2"), given, 2).start()
        self.least = min(known, *(self._layer.time(CALLS) for _ in range(200)))
        self._start = time.monotonic()
        self._waited = 0.0
        self.is_calm = True
        """Whether no wait was given up since this was set."""
        self.meanwhile: Callable[[], bool] = lambda: False
        """Does a part of other work between two looks at the machine; whether there was any left."""

    def wait(self) -> None:
        """Returns when the machine is calm, or when there was too much waiting without any other work."""
        patience = PATIENCE + (time.monotonic() - self._start) / 2 - self._waited
        taken = 0.0
        while True:
            start = time.monotonic()
            found = self._layer.time(8)
            self.least = min(self.least, found)
            taken += time.monotonic() - start
            if found <= CALM * self.least:
                break
            if taken >= patience:
                self.is_calm = False
                break
            self.meanwhile()
        self._waited += taken


class Batch:
    """Operators of each place, and the dense layers of the places: compiled first, then timed in turn."""

    def __init__(self, operators: Mapping[Place, Sequence[Operator]]):
        self._operators = operators
        self._left: list[Callable[[], Found]] = [functools.partial(_compile_dense, *place) for place in operators]
        for place, of in operators.items():
            self._left += [functools.partial(_try_to_compile, one, *place) for one in of]
        self._layers: list[Found] = []

    def compile(self, most: int | None = None) -> bool:
        """Compiles what is left, at most so many layers, on all cores; whether there were any."""
        layers, self._left = self._left[:most], self._left[len(self._left[:most]) :]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self._layers += pool.map(lambda layer: layer(), layers)
        return bool(layers)

    def measure(
        self, probe: Probe, rounds: int = ROUNDS, calls: int = CALLS
    ) -> Iterator[tuple[Place, list[float | str], float]]:
        """Of each place the least microseconds of each operator, or why it has none; and those of the dense layer.

        All are timed in turn, in so many rounds of at most so many calls: they see the same machine, and what disturbs
        it for less than a round harms none.
        """
        self.compile()
        # Started here: threads that wait for a parallel loop would take the cores of the compiler.
        times = iter(_time_in_turn([*map(_start, self._layers)], probe, rounds, calls))
        least = list(itertools.islice(times, len(self._operators)))
        for (place, of), dense in zip(self._operators.items(), least):
            if isinstance(dense, str):
                raise RuntimeError(f"the dense layer of {place[0]}: {dense}")
            yield place, list(itertools.islice(times, len(of))), dense


def _start(layer: Found) -> Found:
    try:
        return layer if isinstance(layer, str) else layer.start()
    except RuntimeError as error:
        return _describe(error)


def _describe(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _time_in_turn(layers: Sequence[Found], probe: Probe, rounds: int, calls: int) -> list[float | str]:
    """The least microseconds of each. Slow ones are called less often, but twice in a round.

    The first calls of a round may miss caches.
    """
    least = [layer if isinstance(layer, str) else layer.time(0, together=1) for layer in layers]
    unwatched = SLICE
    for _ in range(rounds):
        for number, (layer, known) in enumerate(zip(layers, least)):
            if isinstance(layer, str) or isinstance(known, str):
                continue
            if layer.threads > 1:
                # One thread exchanges nothing.
                if unwatched >= SLICE:
                    probe.wait()
                    unwatched = 0
                unwatched += 1
            several = round(min(max(ROUND / max(known, 1.0), 1), calls))
            least[number] = min(known, layer.time(several, together=min(several, 4)))
    return least


def _make_key(row: Row, layer: str, threads: int, machine: str, again: int = 0) -> str:
    """`again`: how often it was timed before."""
    key: dict[str, str | int] = {"operator": row.key, "layer": layer, "threads": threads, "machine": machine}
    return make_key(key | ({"again": again} if again else {}))


def _list_batches(
    rows: Sequence[Row], places: Sequence[Place], is_missing: Callable[[Row, Place], bool]
) -> Iterator[tuple[dict[Place, list[Row]], Batch]]:
    for start in range(0, len(rows), BATCH):
        found = {place: [row for row in rows[start : start + BATCH] if is_missing(row, place)] for place in places}
        left = {place: of for place, of in found.items() if of}
        yield left, Batch({place: [row.operator for row in of] for place, of in left.items()})


def measure_all(
    rows: Sequence[Row],
    store: Store,
    *,
    layers: Iterable[str] = LAYERS,
    threads: Iterable[int] = (1, 2),
    part: tuple[int, int] = (1, 1),
    limit: int | None = None,
    again: int = 0,
    progress: Callable[[Row, str, int, float | str], None] | None = None,
) -> None:
    """Times what neither rows nor store have of this machine, at most `limit` operators. Nothing else should run.

    Operators that no machine has timed come first. What the store has of times when the machine was not calm is timed
    once more, and the least counts.
    `part` (I, N) is one of N parts of equal size: each of N machines of one kind takes one. With `again` = K all is
    timed that the store does not have for the K-th time after the first one: the least of all counts, and what else
    runs on a virtual machine's processor may slow some operators, but not the dense layer, by a fifth for minutes.
    """
    machine, probe = describe_processor(), None
    timed = list(_read_records(store))
    calm = {record["key"] for record in timed if record.get("calm", True)}
    known = set(calm)
    least = min((r.get("probe_microseconds", math.inf) for r in timed if r["machine"] == machine), default=math.inf)
    if not again:
        known |= {
            _make_key(row, one.layer, one.threads, machine)
            for row in rows
            for one in row.latencies
            if one.machine == machine
        }
        # Also where the tables have them by now.
        known -= {record["key"] for record in timed} - calm

    def is_missing(row: Row, place: Place) -> bool:
        return _make_key(row, *place, machine, again) not in known

    own = rows[part[0] - 1 :: part[1]]
    places = list(itertools.product(layers, threads))

    def is_timed(row: Row) -> bool:
        return {(one.layer, one.threads) for one in row.latencies}.issuperset(places)

    missing = sorted((row for row in own if any(is_missing(row, place) for place in places)), key=is_timed)
    batches = _list_batches(missing[:limit], places, is_missing)
    queue = deque(itertools.islice(batches, 1 + AHEAD))
    while queue:
        left, batch = queue.popleft()
        probe = probe or Probe(least)
        probe.is_calm = True
        probe.meanwhile = lambda: any(later.compile(os.cpu_count()) for _, later in queue)
        for place, times, dense in batch.measure(probe):
            state = {"calm": probe.is_calm, "probe_microseconds": round(probe.least, 2)}
            for row, found in zip(left[place], times):
                store.add(_make_record(row, place, machine, found, dense, again) | state)
                if progress is not None:
                    progress(row, *place, found)
        queue.extend(itertools.islice(batches, 1))


def _make_record(row: Row, place: Place, machine: str, found: float | str, dense: float, again: int) -> dict[str, Any]:
    layer, threads = place
    record: dict[str, Any] = {
        "kind": "operator_latency",
        "key": _make_key(row, layer, threads, machine, again),
        "operator": row.key,
        "layer": layer,
        "threads": threads,
        "machine": machine,
        "versions": {"kas": __version__, "python": sys.version.split()[0], "system": platform.release()},
        "time": round(time.time()),
        "failure": found if isinstance(found, str) else None,
    }
    if not isinstance(found, str):
        record |= {"microseconds": round(found, 2), "dense_microseconds": round(dense, 2)}
    return record


def _read_records(store: Store) -> Iterator[dict[str, Any]]:
    required = {"key", "operator", "layer", "threads", "machine", "failure"}
    for record in store:
        if record["kind"] == "operator_latency":
            if missing := sorted(required - record.keys()):
                raise StoreError(f"{store.path}: requires latencies with '{missing[0]}', got one without")
            yield record


def collect_latencies(stores: Iterable[Store]) -> dict[str, list[Latency]]:
    """The latencies in stores by the key of the operator: the least of all. Failures are left out."""
    found: dict[str, list[Latency]] = {}
    for record in itertools.chain.from_iterable(map(_read_records, stores)):
        if record["failure"] is None:
            names = ("layer", "threads", "machine", "microseconds", "dense_microseconds")
            latency = Latency(**{name: record[name] for name in names}, width=record.get("width"))
            found.setdefault(record["operator"], []).append(latency)
    return {key: merge_latencies(latencies) for key, latencies in found.items()}


def merge_latencies(latencies: Iterable[Latency]) -> list[Latency]:
    """One for each layer, number of threads and machine: the least time of the operator and that of the dense layer."""
    found: dict[tuple[str, int, int, int], Latency] = {}
    for one in latencies:
        key = (one.machine, SIZES.index(one.layer), one.threads, one.width or 0)
        known = found.setdefault(key, one)
        found[key] = replace(
            one,
            microseconds=min(one.microseconds, known.microseconds),
            dense_microseconds=min(one.dense_microseconds, known.dense_microseconds),
        )
    return [found[key] for key in sorted(found)]
