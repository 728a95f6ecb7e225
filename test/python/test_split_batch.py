# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""-kas-split-batch: batches in parts are the same as whole ones."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import kas

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import random_networks  # noqa: E402
from per_sample import ASSERTION, Tokens  # noqa: E402

import kas.torch  # noqa: E402


def run(module: kas.Module, tensors: list[numpy.ndarray], size: int, threads: int) -> tuple[list[numpy.ndarray], bool]:
    """The results, by parts of `size` samples, and whether there are parts."""
    module = module.clone()
    shapes = [shape for _, shape in module.clone().compile("forward", threads=1).results]
    module.run(
        f"kas-attach-cpu-target,kas-specialize,kas-split-batch{{size={size}}},"
        f"kas-cpu-pipeline{{threads={threads} prepack-weights=true split-batch=false}}"
    )
    program = module._handle.load(2)
    results = [numpy.full(shape, numpy.nan, numpy.float32) for shape in shapes]
    arguments: list[Any] = [*tensors, *results]
    if count := program.get_num_prepacked_elements("forward"):
        memory = numpy.zeros(count + 16, numpy.float32)
        packed = memory[-(memory.ctypes.data // 4) % 16 :][:count]
        program.call("forward_prepack", [*tensors[1:], packed], 1)
        arguments.append(packed)
    program.call("forward", arguments, 1)
    return results, "forward_part" in str(module)


def compare(module: kas.Module, tensors: list[numpy.ndarray], size: int, threads: int) -> bool:
    expected, _ = run(module, tensors, tensors[0].shape[0], 1)
    found, is_split = run(module, tensors, size, threads)
    for one, other in zip(found, expected):
        scale = numpy.abs(other).max() + 1e-6
        numpy.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=1e-5)
    return is_split


@pytest.mark.parametrize("start", [0, 6])
def test_random_networks(start: int) -> None:
    num_split = 0
    for seed in range(start, start + 6):
        print("seed", seed)
        case = random_networks.make(seed)
        generator = torch.Generator().manual_seed(seed)
        data = torch.randn(case.shape, generator=generator)
        module = case.module
        names = [name for name, _ in module.clone().compile("forward", threads=1).arguments]
        tensors = [data, *case.tensors.values()]
        assert len(names) == len(tensors)
        arrays = [tensor.detach().float().contiguous().numpy() for tensor in tensors]
        num_split += compare(module, arrays, size=1 + seed % 2, threads=1 + seed // 2 % 2)
    # Networks whose norms take statistics of the batch are not cut.
    assert num_split >= 2


@pytest.mark.parametrize(("batch", "size"), [(6, 1), (6, 2), (6, 3), (5, 1)])
@pytest.mark.parametrize("threads", [1, 2])
def test_tokens(batch: int, size: int, threads: int) -> None:
    torch.manual_seed(0)
    data = torch.randn(batch, 8, 3, 3)
    exported = kas.torch.to_mlir(Tokens().eval(), data)
    arrays = [tensor.detach().numpy() for tensor in (data, *exported.tensors.values())]
    assert compare(exported.module, arrays, size, threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_messages_of_parts(threads: int) -> None:
    module = kas.Module(ASSERTION, "assertion.mlir")
    data = numpy.ones((4, 2), numpy.float32)
    assert compare(module, [data], 1, threads)
    data[2, 1] = -1
    with pytest.raises(RuntimeError, match=r":\d+:\d+: requires numbers of at least 0"):
        run(module, [data], 1, threads)
