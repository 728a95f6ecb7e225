# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long networks take, each by the best of its compilers, and the width at which one is within a budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

import kas.torch
from kas._errors import Error

from ..protocol._latency import CompiledNetwork, _PyTorch, describe_machine
from ..protocol._store import Store
from ._families import WIDTH_STEP, Network, set_by_matrix
from ._protocol import COMPILERS, Experiment, Protocol

NEAR = 0.9
"""A network that takes at least this share of a budget is wide enough."""
WIDEST = 512
CALLS = 60


def measure(protocol: Protocol, equation: str, family: str, width: int, compilers: Sequence[str]) -> dict[str, Any]:
    """The record of a time: the least milliseconds of a field by each compiler, in batches on one thread.

    Networks with Fourier transforms are compiled twice: with fast ones, and with products of matrices.
    """
    torch.set_num_threads(1)
    grid = protocol.equations[equation].grid
    example = torch.randn(protocol.batch, grid.inputs, grid.size, grid.size, generator=torch.Generator().manual_seed(0))
    least: dict[str, float] = {}
    failures: dict[str, str] = {}
    forms = (False, True) if set_by_matrix(protocol.make_network(equation, family, width), True) else (False,)
    for by_matrix in forms:
        network = protocol.make_network(equation, family, width).eval()
        set_by_matrix(network, by_matrix)
        for compiler in compilers:
            if compiler == "kas" and by_matrix != forms[-1]:
                failures[compiler] = "requires no fast Fourier transforms"
                continue
            name = f"{compiler}, by matrices" if by_matrix else compiler
            try:
                timer = _COMPILERS[compiler](network, example)
                least[name] = min(timer() for _ in range(CALLS)) / 1e3 / protocol.batch
            except (Error, ValueError, RuntimeError) as error:
                failures[name] = " ".join(str(error).split())[:200]
    return {
        "kind": "time",
        "key": protocol.time_key(equation, family, width, compilers),
        "family": family,
        "width": width,
        "grid": vars(grid),
        "batch": protocol.batch,
        "machine": describe_machine(),
        "versions": {"pytorch": torch.__version__},
        "time": round(time.time()),
        "ms": {name: float(f"{value:.5g}") for name, value in least.items()},
        "failures": failures,
    }


def _compile_kas(network: Network, example: torch.Tensor) -> Callable[[], float]:
    exported = kas.torch.to_mlir(network, example)
    tensors = [tensor.detach().numpy() for tensor in (example, *exported.tensors.values())]
    compiled = CompiledNetwork(exported.module, tensors, tuple(network(example).shape), 1).start()
    return lambda: compiled.time(1, together=1)


def _compile_torchscript(network: Network, example: torch.Tensor) -> Callable[[], float]:
    """With frozen weights, and layers of oneDNN: built in a second, where Inductor takes half a minute."""
    with torch.no_grad():
        function = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(network, example)))  # type: ignore[no-untyped-call]
        function(example)

    def call() -> float:
        with torch.no_grad():
            start = time.perf_counter_ns()
            function(example)
            return (time.perf_counter_ns() - start) / 1e3

    return call


def _compile_inductor(network: Network, example: torch.Tensor) -> Callable[[], float]:
    compiled = _PyTorch(network, example)
    return lambda: compiled.time(1)


_COMPILERS = dict(zip(COMPILERS, (_compile_kas, _compile_torchscript, _compile_inductor)))


class Widths:
    """The widths of an experiment: times of a store, and those that are missing for a budget."""

    def __init__(
        self,
        protocol: Protocol,
        experiment: Experiment,
        store: Store,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ):
        self.protocol, self.experiment, self.store, self.progress = protocol, experiment, store, progress
        self._known = {record["key"]: record for record in store if record["kind"] == "time"}

    def get_best(self, equation: str, family: str, width: int) -> tuple[str, float]:
        """The fastest compiler of a network that was measured, and its milliseconds."""
        times = self._known[self._get_key(equation, family, width)]["ms"]
        name = min(times, key=lambda name: float(times[name]))
        return name, times[name]

    def get_times(self, equation: str, family: str) -> dict[int, float]:
        """The milliseconds by width, as far as they were measured."""
        widths = range(WIDTH_STEP, WIDEST + 1, WIDTH_STEP)
        records = {width: self._known.get(self._get_key(equation, family, width)) for width in widths}
        return {width: min(record["ms"].values()) for width, record in records.items() if record and record["ms"]}

    def _get_key(self, equation: str, family: str, width: int) -> str:
        return self.protocol.time_key(equation, family, width, self.experiment.compilers)

    def is_known(self, equation: str, family: str, budget: float) -> bool:
        """Whether all was measured that the choice for a budget follows from."""
        return get_next_width(self.get_times(equation, family), budget) is None

    def choose(self, equation: str, family: str, budget: float) -> int | None:
        """The widest network that was measured to be within a budget."""
        times = self.get_times(equation, family)
        return max((width for width, ms in times.items() if ms <= budget), default=None)

    def find(self, equation: str, family: str, budget: float) -> int | None:
        """The same after measuring: at least `NEAR` of the budget, or the next width is beyond it.

        None where the narrowest network takes longer.
        """
        while (width := get_next_width(self.get_times(equation, family), budget)) is not None:
            record = measure(self.protocol, equation, family, width, self.experiment.compilers)
            if not record["ms"]:
                raise ValueError(f"requires a compiler for {family} of width {width}, got: {record['failures']}")
            self.store.add(record)
            self._known[record["key"]] = record
            if self.progress is not None:
                self.progress(record)
        return self.choose(equation, family, budget)

    def get_all(self) -> dict[tuple[str, str, float], int | None]:
        """What is chosen for each equation, family and budget."""
        return {
            (equation, family, budget): self.choose(equation, family, budget)
            for equation in self.experiment.equations
            for family in map(str, self.experiment.families)
            for budget in self.experiment.budgets
        }


def get_next_width(times: Mapping[int, float], budget: float) -> int | None:
    """The width to measure next; None where the choice is made.

    Times are interpolated as powers of the width, beyond what was measured with an exponent of 3/2.
    """
    within = max((width for width, ms in times.items() if ms <= budget), default=None)
    beyond = min((width for width, ms in times.items() if ms > budget and width > (within or 0)), default=None)
    if within is None and beyond is None:
        return 4 * WIDTH_STEP
    if within is not None and times[within] >= NEAR * budget:
        return None
    if within is None or beyond is None:
        known = within or beyond or 0
        guess = known * (NEAR * budget / times[known]) ** (2 / 3)
    else:
        share = _log_share(times[within], times[beyond], 0.97 * budget)
        guess = within * (beyond / within) ** share
    least = (within or 0) + WIDTH_STEP
    most = (beyond or WIDEST + WIDTH_STEP) - WIDTH_STEP
    if least > most:
        return None
    return int(min(max(round(guess / WIDTH_STEP) * WIDTH_STEP, least), most))


def _log_share(low: float, high: float, value: float) -> float:
    """Where a value is between two others, in logarithms."""
    return math.log(value / low) / math.log(high / low)
