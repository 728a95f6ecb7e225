# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long compiled operators take."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

import numpy

from .._module import Operator, named_operators
from .._module import operator as named_operator
from .._search import SearchSpace


def measure_latency(operator: Operator, space: SearchSpace, runs: int = 15, extra: Mapping[str, int] = {}) -> float:
    """Milliseconds of the compiled operator on one thread of the CPU, summed over the layers of the space.

    The batch is as in the bindings, the time the least of `runs` after one that does not count, as other trainings run
    on the machine meanwhile. Includes what a call from Python costs. `extra` has sizes before those of the layers.
    """
    symbols = [*operator.symbols[0], *operator.symbols[1]]
    generator = numpy.random.default_rng(0)
    total = 0.0
    for binding, count in zip(space.bindings, space.multiplicities):
        own = {name: {**binding, **extra}[name] for name in symbols}
        function = operator.compile(own, threads=1)
        arrays = [generator.standard_normal(shape, dtype=numpy.float32) for _, shape in function.arguments]
        out = function(*arrays)
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            function(*arrays, out=out)
            times.append(time.perf_counter() - start)
        total += count * 1e3 * min(times)
    return total


def measure_own_latency(space: SearchSpace, runs: int = 15) -> float | None:
    """The same of the layers that the space was extracted from; None where no named operator is known to be that."""
    match = re.search(r'kas\.named_operator = "kas\.([^"]*)"', space.text)
    if match is None or match[1] not in named_operators():
        return None
    operator = named_operator(match[1])
    symbols = {*operator.symbols[0], *operator.symbols[1]}
    return measure_latency(operator, space, runs) if all(symbols <= set(b) for b in space.bindings) else None
