# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long compiled operators take."""

from __future__ import annotations

import statistics
import time

import numpy

from .._module import Operator
from .._search import SearchSpace


def measure_latency(operator: Operator, space: SearchSpace, runs: int = 7) -> float:
    """Milliseconds of the compiled operator on one thread of the CPU, summed over the layers of the space.

    The batch is as in the bindings, the time the median of `runs` after one that does not count. Includes what a call
    from Python costs.
    """
    symbols = [*operator.symbols[0], *operator.symbols[1]]
    generator = numpy.random.default_rng(0)
    total = 0.0
    for binding, count in zip(space.bindings, space.multiplicities):
        own = {name: binding[name] for name in symbols}
        function = operator.compile(own, threads=1)
        arrays = [generator.standard_normal(shape, dtype=numpy.float32) for _, shape in function.arguments]
        out = function(*arrays)
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            function(*arrays, out=out)
            times.append(time.perf_counter() - start)
        total += count * 1e3 * statistics.median(times)
    return total
