# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles, checks and times the layers of one configuration.

This is a process of its own, so that whatever happens to it is an outcome like others. Reads a job as JSON from the
standard input and writes what came out to the standard output.
"""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import json
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from kas import _kas
from kas._errors import Error
from kas._module import Module
from kas._pipelines import CPUPipeline

from ._data import (
    Data,
    align,
    allocate,
    compress_places,
    compress_rows,
    from_bf16,
    get_error,
    make_data,
    pack_dot_products,
)
from ._dot_tiles import INSTRUCTIONS, get_tiles, write_dot_tiles
from ._models import Layer
from ._programs import write_dense
from ._sparse import SPARSE_PASSES, write_sparse

TOLERANCE = {"f32": 1e-4, "f16": 2e-3, "bf16": 2e-2, "i8": 0.0}
"""The largest error allowed, relative to the largest magnitude."""

DTYPES = {"f32": numpy.float32, "f16": numpy.float16, "bf16": numpy.uint16, "i8": numpy.int32}

PR_SET_PDEATHSIG = 1
"""Of <sys/prctl.h>."""

TILES = 6
"""Tiles of dot products that are measured for `tuned`."""

PLAN_RUNS = 4
"""Runs of each schedule that the study chooses from by itself."""


class JobError(Exception):
    """Why there is no result."""


@dataclass
class Variant:
    """A program for a layer."""

    text: str
    passes: str
    arguments: list[Any]
    schedule: str = ""
    """What was chosen, for those who want to know."""
    tunable: bool = False
    """Whether the schedule is kas-tune's."""


class Kernel:
    """Compiled code with its data."""

    def __init__(self, variant: Variant, shape: Sequence[int], element: str):
        module = Module(variant.text, "<layer>").run(variant.passes)
        self.program: _kas.Program = module._handle.load(2)
        self.output = allocate(shape, DTYPES[element])
        self.tensors = [*variant.arguments, self.output]
        prepared = self.program.get_num_prepacked_elements("forward")
        if prepared:
            packed = allocate((prepared,), numpy.float32)
            self.program.call("forward_prepack", [*variant.arguments[1:], packed], 1)
            self.tensors.append(packed)

    def run(self, times: int) -> float:
        """Mean milliseconds of a run."""
        return self.program.call("forward", self.tensors, times)


def time_in_turn(kernels: Sequence[Kernel], runs: int) -> list[float]:
    """The least of the times of each: other work on the machine makes times longer, never shorter."""
    times = []
    for kernel in kernels:
        kernel.run(1)
        # Short ones run several times at once, for 0.1 ms.
        times.append(min(1000, max(1, int(0.1 / max(kernel.run(1), 1e-4)))))
    least = [float("inf")] * len(kernels)
    for _ in range(runs):
        for place, kernel in enumerate(kernels):
            least[place] = min(least[place], kernel.run(times[place]))
    return least


def get_element(compression: str) -> str:
    return {"f16": "f16", "bf16": "bf16", "int8": "i8"}.get(compression, "f32")


class Job:
    """One configuration."""

    def __init__(self, request: dict[str, Any]):
        self.configuration = request["configuration"]
        self.baseline: dict[str, Any] | None = request["baseline"]
        self.layers = [(Layer(**dense), Layer(**pruned)) for dense, pruned in request["layers"]]
        self.seed, self.runs, self.trials, self.threads = (
            request[key] for key in ("seed", "runs", "trials", "threads")
        )
        self.database: str = request["database"]
        self.features = request["features"]

    def run(self) -> list[dict[str, Any]]:
        return [self.run_layer(dense, layer) for dense, layer in self.layers]

    def run_layer(self, dense: Layer, layer: Layer) -> dict[str, Any]:
        configuration = self.configuration
        element = get_element(configuration["compression"])
        sparsity = (
            configuration["ratio"] if configuration["compression"] == "weight-pruning" and not layer.depthwise else 0
        )
        data = make_data(layer, element, sparsity, self.seed)
        variant, kernel = self.choose(layer, configuration, data, element)
        kernels = [kernel]
        if self.baseline is not None:
            kernels.insert(0, self.choose(dense, self.baseline, make_data(dense, "f32", 0, self.seed), "f32")[1])
        least = time_in_turn(kernels, self.runs)
        macs = int(numpy.count_nonzero(data.weights)) * layer.output_size**2 if sparsity else layer.macs
        return {
            "layer": layer.name,
            "count": layer.count,
            "macs": macs,
            "dense_macs": dense.macs,
            "ms": least[-1],
            "baseline_ms": least[0] if self.baseline is not None else None,
            "error": get_error(kernel.output, data, element),
            "schedule": variant.schedule,
        }

    def choose(self, layer: Layer, configuration: dict[str, Any], data: Data, element: str) -> tuple[Variant, Kernel]:
        """The program of a layer, compiled and checked; of several the fastest, which the database remembers."""
        shape = data.expected.shape
        variants = list(self.get_variants(layer, configuration, data, element))
        if variants[0].tunable:
            variants = [self.tune(layer, variants[0])]
        choice = None
        if len(variants) > 1:
            key = self.get_key(*(variant.text + variant.passes for variant in variants))
            choice = self.recall(key)
        if choice is not None:
            variants = [variant for variant in variants if variant.schedule == choice]
        kernels = [Kernel(variant, shape, element) for variant in variants]
        for kernel in kernels:
            kernel.run(1)
            error = get_error(kernel.output, data, element)
            if not error <= TOLERANCE[element]:
                raise JobError(f"{layer.name}: expected an error of at most {TOLERANCE[element]:g}, got {error:.3g}")
        if len(variants) == 1:
            return variants[0], kernels[0]
        times = time_in_turn(kernels, PLAN_RUNS)
        best = min(range(len(times)), key=times.__getitem__)
        self.remember(key, variants[best].schedule)
        return variants[best], kernels[best]

    # Programs

    def get_variants(self, layer: Layer, configuration: dict[str, Any], data: Data, element: str) -> Iterator[Variant]:
        compression, algorithm, schedule = (configuration[key] for key in ("compression", "algorithm", "schedule"))
        target = configuration["target"]
        tiles = False if schedule == "untuned" else None
        base = CPUPipeline(self.threads, cpu="" if target == "cpu" else target, register_tiles=tiles)
        if compression == "weight-pruning" and not layer.depthwise:
            yield from self.get_sparse(layer, algorithm, schedule, data, base)
            return
        instruction = INSTRUCTIONS.get(element)
        if (
            instruction
            and f"+{instruction.feature}" in self.features
            and algorithm == "auto"
            and not layer.depthwise
            and target == "cpu"
        ):
            for tile in get_tiles(layer, instruction)[: TILES if schedule == "tuned" else 1]:
                packed = pack_dot_products(layer, instruction, tile, data.weights)
                text = write_dot_tiles(layer, instruction, tile)
                yield Variant(text, str(base), [data.image, *packed], str(tile))
            return
        if schedule != "untuned":
            base = dataclasses.replace(base, prepack_weights=True)
        if algorithm not in ("auto", "im2col") and schedule != "untuned" and not layer.depthwise:
            base = dataclasses.replace(base, algorithm=algorithm)
        text = write_dense(layer, algorithm, element)
        # Weights are made ready ahead, as packing them is.
        weights = align(from_bf16(data.weights)) if element == "bf16" else data.weights
        weights = align(weights.astype(numpy.float32)) if element == "f16" else weights
        yield Variant(text, str(base), [data.image, weights], tunable=schedule == "tuned" and element != "i8")

    def get_sparse(
        self, layer: Layer, algorithm: str, schedule: str, data: Data, base: CPUPipeline
    ) -> Iterator[Variant]:
        if algorithm == "im2col":
            counts, arrays = compress_rows(data.weights.reshape(layer.outputs, -1))
        else:
            counts, arrays = compress_places(layer, data.weights)
        text = write_sparse(layer, algorithm, counts)
        for lanes in (0, 8, 16) if schedule == "tuned" else (0,):
            passes = f"{SPARSE_PASSES.format(lanes=lanes)},{base}"
            yield Variant(text, passes, [data.image, *arrays], f"{lanes} lanes" if lanes else "LLVM's vectors")

    # Schedules

    def tune(self, layer: Layer, variant: Variant) -> Variant:
        key = self.get_key(variant.text, variant.passes, str(self.trials))
        found = self.recall(key)
        if found is None:
            module = Module(variant.text, "<layer>")
            report = json.loads(
                module._handle.tune(
                    "forward", self.database, f"study {layer.name}", self.trials, self.runs, 0, self.threads
                )
            )
            schedules = ", ".join(kernel["schedule"] or "the cost model's" for kernel in report)
            found = json.dumps([str(module), schedules])
            self.remember(key, found)
        text, schedules = json.loads(found)
        return Variant(text, variant.passes, variant.arguments, schedules)

    def get_key(self, *texts: str) -> str:
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def connect(self, use: Callable[[sqlite3.Connection], Any]) -> Any:
        connection = sqlite3.connect(self.database, timeout=60)
        try:
            with connection:
                return use(connection)
        finally:
            connection.close()

    def recall(self, key: str) -> str | None:
        row = self.connect(
            lambda c: c.execute("SELECT choice FROM study_schedule WHERE program = ?", (key,)).fetchone()
        )
        return row[0] if row else None

    def remember(self, key: str, choice: str) -> None:
        self.connect(lambda c: c.execute("INSERT OR REPLACE INTO study_schedule VALUES (?, ?)", (key, choice)))


def main() -> int:
    # A process whose parent is killed would measure for nobody.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    request = json.load(sys.stdin)
    try:
        answer: dict[str, Any] = {"layers": Job(request).run()}
    except (Error, JobError, MemoryError, RuntimeError, ValueError) as error:
        answer = {"failure": str(error).strip()[:2000]}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
