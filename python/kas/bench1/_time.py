# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latencies of the operators in layers of ResNet-18, beside those of the dense layers."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .._errors import Error, need

need("torch", "torch")

import numpy

from .. import __version__
from .._module import Module, Operator
from .._module import operator as named_operator
from ..evaluate.protocol import Store
from ..evaluate.protocol._latency import CompiledNetwork, describe_machine
from ..evaluate.protocol._store import make_key
from ._space import LAYERS
from ._table import Latency, Row

BATCH = 8
"""Operators that are timed in turn with one dense layer."""
ROUNDS, CALLS = 5, 20


def _tensor(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def compile_layer(operator: Operator, binding: Mapping[str, int], threads: int) -> CompiledNetwork:
    """The operator as a layer whose weights are known before: all that depends on them alone is computed ahead."""
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
    module.run("kas-specialize,kas-rfactor")
    generator = numpy.random.default_rng(0)
    arrays = [generator.standard_normal(shape, dtype=numpy.float32) for shape in tensors]
    return CompiledNetwork(module, arrays, shapes.output, threads)


def measure(
    operators: Sequence[Operator], layer: str, threads: int, rounds: int = ROUNDS, calls: int = CALLS
) -> tuple[list[float | str], float]:
    """The least microseconds of each operator in a layer, or why it has none; and those of the dense layer.

    All are timed in turn, in so many rounds of calls: they see the same machine.
    """
    binding = LAYERS[layer]
    dense = compile_layer(named_operator("conv2d"), {**binding, "W": binding["H"], "k": binding["k1"]}, threads)
    compiled: list[CompiledNetwork | str] = []
    for operator in operators:
        try:
            compiled.append(compile_layer(operator, binding, threads))
        except (Error, RuntimeError) as error:
            compiled.append(" ".join(str(error).split())[:300])
    least = [float("inf")] * len(compiled)
    least_dense = float("inf")
    for _ in range(rounds):
        least_dense = min(least_dense, dense.time(calls))
        for number, layer_ in enumerate(compiled):
            if not isinstance(layer_, str):
                least[number] = min(least[number], layer_.time(calls))
    return [one if isinstance(one, str) else least[number] for number, one in enumerate(compiled)], least_dense


def _make_key(row: Row, layer: str, threads: int, machine: str) -> str:
    return make_key({"operator": row.key, "layer": layer, "threads": threads, "machine": machine})


def _batches(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def measure_all(
    rows: Sequence[Row],
    store: Store,
    *,
    layers: Iterable[str] = LAYERS,
    threads: Iterable[int] = (1, 2),
    part: tuple[int, int] = (1, 1),
    limit: int | None = None,
    progress: Callable[[Row, str, int, float | str], None] | None = None,
) -> None:
    """Times what the store does not have of this machine, at most `limit` operators. Nothing else should run meanwhile.

    `part` (I, N) is one of N parts of equal size: each of N machines of one kind takes one.
    """
    machine = describe_machine()
    known = {record["key"] for record in store if record["kind"] == "operator_latency"}
    own = rows[part[0] - 1 :: part[1]]
    layers, threads = list(layers), list(threads)
    missing = [
        row
        for row in own
        if any(_make_key(row, layer, count, machine) not in known for layer in layers for count in threads)
    ]
    for batch in _batches(missing[:limit]):
        for layer in layers:
            for count in threads:
                left = [row for row in batch if _make_key(row, layer, count, machine) not in known]
                if not left:
                    continue
                times, dense = measure([row.operator for row in left], layer, count)
                for row, found in zip(left, times):
                    store.add(_make_record(row, layer, count, machine, found, dense))
                    if progress is not None:
                        progress(row, layer, count, found)


def _make_record(row: Row, layer: str, threads: int, machine: str, found: float | str, dense: float) -> dict[str, Any]:
    record: dict[str, Any] = {
        "kind": "operator_latency",
        "key": _make_key(row, layer, threads, machine),
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


def collect_latencies(stores: Iterable[Store]) -> dict[str, list[Latency]]:
    """The latencies in stores by the key of the operator; of equal ones the last counts, failures are left out."""
    records = {record["key"]: record for store in stores for record in store if record["kind"] == "operator_latency"}
    found: dict[str, list[Latency]] = {}
    for record in records.values():
        if record["failure"] is None:
            latency = Latency(
                *(record[name] for name in ("layer", "threads", "machine", "microseconds", "dense_microseconds"))
            )
            found.setdefault(record["operator"], []).append(latency)
    for latencies in found.values():
        latencies.sort(key=lambda one: (one.machine, list(LAYERS).index(one.layer), one.threads))
    return found
