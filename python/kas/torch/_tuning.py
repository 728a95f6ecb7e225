# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pipeline compiles a graph: the usual one, or the fastest of some that are measured."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import torch

from .._errors import Error
from .._module import Module
from .._pipelines import CPUPipeline
from ._options import Options

_ALGORITHMS = ("direct", "im2col", "spatial-pack")
"""Without winograd, which rounds more than the others: it has to be requested."""


def list_pipelines(options: Options, is_packed: bool, batched: int) -> list[str]:
    """The pipelines that may be used, the usual one first.

    `is_packed`: weights are packed ahead. `batched`: how many arguments have samples, where a program is for batches of
    any size, else 0.
    """
    # The others are of tensor cores: here nothing is rounded to them.
    precision = "bf16" if options.precision == "bf16" else "f32"
    usual = CPUPipeline(options.threads, prepack_weights=is_packed, precision=precision, algorithm=options.algorithm)
    variants = [usual]
    if options.tuning_seconds:
        if options.algorithm == "auto":
            variants += [dataclasses.replace(usual, algorithm=algorithm) for algorithm in _ALGORITHMS]
        if is_packed:
            variants.append(dataclasses.replace(usual, split_batch=False))
        if options.threads != 1:
            variants.append(dataclasses.replace(usual, share_short_loops=True))
    check = f"kas-check-samples{{data={batched}}}," if batched else ""
    return [f"{check}{variant}" for variant in variants]


def choose_pipeline(
    module: Module,
    pipelines: Sequence[str],
    tensors: Sequence[tuple[tuple[int, ...], torch.dtype]],
    num_data: int,
    seconds: float,
) -> Module:
    """The module, lowered by the first pipeline, or by the one of the fastest code.

    `tensors`: shapes and types of what `@forward` takes, of which the first `num_data` are no weights, and gives;
    `seconds` is how long may be measured, compilation included.
    """
    if len(pipelines) == 1:
        return module.run(pipelines[0], verify_each=False)
    start, best, least = time.perf_counter(), None, float("inf")
    for pipeline in pipelines:
        if best is not None and time.perf_counter() - start > seconds:
            break
        try:
            candidate = module.clone().run(pipeline, verify_each=False)
            milliseconds = _measure(candidate, tensors, num_data)
        except (Error, ValueError):
            if best is None and pipeline == pipelines[-1]:
                raise
            continue
        # Noise is no reason to leave what the cost model chose.
        if milliseconds < least * (0.98 if best is not None else 1):
            best, least = candidate, milliseconds
    assert best is not None
    return best


def _measure(module: Module, tensors: Sequence[tuple[tuple[int, ...], torch.dtype]], num_data: int) -> float:
    """Milliseconds of a call, on numbers that are as good as any."""
    program: Any = module._handle.load(2, None)
    generator = torch.Generator().manual_seed(0)
    memory: list[Any] = [
        torch.rand(shape, generator=generator).to(dtype) if dtype.is_floating_point else torch.zeros(shape, dtype=dtype)
        for shape, dtype in tensors
    ]
    if count := program.get_num_prepacked_elements("forward"):
        whole = torch.zeros(count + 16)
        start = -(whole.data_ptr() // 4) % 16
        packed = whole[start : start + count]
        weights = memory[num_data:][: program.get_num_tensors("forward_prepack") - 1]
        program.call("forward_prepack", [*weights, packed], 1)
        memory.append(packed)
    program.call("forward", memory, 1)
    least: float = min(program.call("forward", memory, 3) for _ in range(3))
    return least
