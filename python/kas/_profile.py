# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the time of a compiled function goes."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, NamedTuple

from . import _kas
from ._function import as_plain_array


class ProfiledOperation(NamedTuple):
    """One operation of a model, with the operations that were fused into it."""

    operation: str
    """`conv_2d_nchw_fchw`, `kas.apply @conv2d`, or what the body of a `linalg.generic` computes."""
    layer: str
    """The layer whose parameters it reads; empty if there is none."""
    location: str
    """Where the model has it: file, line and column."""
    fused: tuple[str, ...]
    """The operations that are computed in the same loops."""
    strategy: str
    """`row vectors`, `panels`, `direct tiles`, `inner products`, `winograd`, `loops`, or empty: nothing was chosen."""
    reason: str
    """The numbers that were chosen, or what prevents register tiles."""
    calls: int
    """Loop nests that run for it in each call."""
    ms: float
    """Milliseconds of a call: the sum of the medians of its loop nests."""
    min_ms: float
    """The same of the least times: where other processes want the cores, too, these say more."""
    flops: int
    """Floating-point operations, without products with padding."""
    bytes: int
    """Of the buffers that its loop nests use, each once."""
    gflops: float
    """Thousand millions of floating-point operations per second."""
    roof: float
    """The share of the roof: of the peak, or of a copy of as many bytes, whichever takes longer."""


class CompiledPass(NamedTuple):
    """All runs of one pass, or of one step of LLVM."""

    name: str
    ms: float
    """The sum over all threads."""
    runs: int


class Profile(NamedTuple):
    """Where the time of a function goes. Its text is a table."""

    function: str
    threads: int
    runs: int
    ms: float
    """Milliseconds of a whole call, the median."""
    min_ms: float
    """The least."""
    outside_ms: float
    """The time outside of the operations: the call itself, and interruptions by other processes."""
    peak_gflops: float
    """The peak of all threads together, as measured."""
    operations: tuple[ProfiledOperation, ...]
    """In the order in which they run."""
    compile_ms: float
    passes: tuple[CompiledPass, ...]
    """The longest first."""
    table: str
    trace: dict[str, Any]
    """The fastest run and the passes in the format of Chrome's trace viewer and of Perfetto."""

    def __str__(self) -> str:
        return self.table

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace to a file of JSON."""
        pathlib.Path(path).write_text(json.dumps(self.trace))


def profile(
    module: _kas.Module,
    name: str,
    binding: str | None,
    arguments: tuple[Any, ...],
    *,
    threads: int,
    opt_level: int,
    runs: int,
    seed: int,
) -> Profile:
    """Profiles the operator `name` at `binding`, or a function if that is None."""
    if min(threads, runs, seed) < 0:
        raise ValueError(f"threads, runs and the seed must not be negative, got {min(threads, runs, seed)}")
    arrays = [as_plain_array(argument) for argument in arguments]
    answer = json.loads(_kas.profile(module, name, binding, arrays, threads, opt_level, runs, seed))
    fields = answer["profile"]
    operations = (ProfiledOperation(**{**row, "fused": tuple(row["fused"])}) for row in fields["operations"])
    passes = (CompiledPass(row["pass"], row["ms"], row["runs"]) for row in fields["passes"])
    return Profile(
        function=fields["function"],
        threads=fields["threads"],
        runs=fields["runs"],
        ms=fields["ms"],
        min_ms=fields["min_ms"],
        outside_ms=fields["outside_ms"],
        peak_gflops=fields["peak_gflops"],
        operations=tuple(operations),
        compile_ms=fields["compile_ms"],
        passes=tuple(passes),
        table=answer["table"],
        trace=json.loads(answer["trace"]),
    )
