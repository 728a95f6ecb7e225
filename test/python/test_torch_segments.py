# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of rows whose sizes are data, through torch.compile: bags, segments, histograms, repeats, what is not zero."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from test_torch_meaning import compile_and_compare  # noqa: E402
from torch.nn import functional  # noqa: E402

import kas.torch  # noqa: E402

WEIGHT = torch.randn(9, 4)
PLACES, OFFSETS = torch.tensor([1, 2, 4, 5, 4, 3, 2, 8]), torch.tensor([0, 3, 3, 7])
SCALES = torch.randn(8)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    def call(weight, places, offsets):
        scales = SCALES if mode == "sum" else None
        one = functional.embedding_bag(places, weight, offsets, mode=mode, per_sample_weights=scales)
        ends = torch.cat([offsets[:3], torch.tensor([8])])
        two = functional.embedding_bag(places, weight, ends, mode=mode, padding_idx=4, include_last_offset=True)
        return one, two, functional.embedding_bag(places.view(2, 4), weight, mode=mode)

    compile_and_compare(call, WEIGHT, PLACES, OFFSETS)
    compiled = torch.compile(lambda *given: functional.embedding_bag(*given) * 2, backend=kas.torch.backend)
    with torch.no_grad():
        compiled(PLACES, WEIGHT, OFFSETS)
        for places, offsets in ((PLACES + 1, OFFSETS), (PLACES - 2, OFFSETS), (PLACES, OFFSETS + 2)):
            with pytest.raises(RuntimeError):
                compiled(places, WEIGHT, offsets)


def test_rows_of_limited_norm():
    def call(weight, places):
        return functional.embedding(places, weight, max_norm=1.0, norm_type=2.0) * 2

    # The weight is changed as well.
    compile_and_compare(call, WEIGHT, PLACES)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce):
    data, lengths = torch.randn(7, 3), torch.tensor([2, 0, 4, 1])

    def call(data, lengths):
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        one = torch.segment_reduce(data, reduce, lengths=lengths)
        two = torch.segment_reduce(data.t().contiguous(), reduce, lengths=lengths.expand(3, 4), axis=1, initial=1.5)
        return one, two, torch.segment_reduce(data, reduce, offsets=offsets, initial=0)

    compile_and_compare(call, data, lengths)
    compiled = torch.compile(lambda x, n: torch.segment_reduce(x, reduce, lengths=n) * 2, backend=kas.torch.backend)
    with torch.no_grad(), pytest.raises(RuntimeError):
        compiled(data, lengths + 1)


def test_what_is_not_zero_and_repeats():
    def call(x, times):
        return x.nonzero_static(size=5), x.nonzero_static(size=30), x.repeat_interleave(times, 0, output_size=7)

    x, times = torch.tensor([[0.0, 1, 2], [3, 0, 0], [0, 0, -1], [2, 1, 0]]), torch.tensor([2, 0, 4, 1])
    compile_and_compare(call, x, times)
    compiled = torch.compile(lambda x, n: x.repeat_interleave(n, 0, output_size=7) * 2, backend=kas.torch.backend)
    with torch.no_grad():
        for wrong in ([2, 0, 4, 2], [2, 0, 4, 0], [-1, 3, 4, 1]):
            with pytest.raises(RuntimeError):
                compiled(x, torch.tensor(wrong))


def test_histograms():
    x, edges = torch.cat([torch.randn(200), torch.tensor([-1.0, 1.0, 0.5])]), torch.tensor([-2.0, -1, 0.5, 0.75, 1])

    def call(x, edges):
        counts = x.histc(7), x.histc(4, -1, 1), torch.full((3,), 2.0).histc(4), x.histogram(edges, weight=x.exp())
        return counts, x.histogram(8, range=(-1.0, 1.0)), x.histogram(edges, density=True)

    compile_and_compare(call, x, edges)
    compiled = torch.compile(lambda x: x.histc(7) * 2, backend=kas.torch.backend)
    with torch.no_grad(), pytest.raises(RuntimeError, match="not finite"):
        compiled(x / 0)


def test_places_that_are_known():
    def call(x):
        one = torch.as_strided_copy(x, (3, 2, 2), (2, 3, 1), 1)
        two = torch.as_strided_scatter(x, x[:2, :3] * 2, (2, 3), (3, 2), 2)
        return one, two, functional.pdist(x), functional.pdist(x, 1.0)

    compile_and_compare(call, torch.randn(5, 4))


def test_transposed_convolutions_of_groups():
    def call(x, weight):
        sizes = {"stride": (3, 2), "padding": (1, 2), "output_padding": (2, 1), "groups": 2, "dilation": (4, 2)}
        return functional.conv_transpose2d(x, weight, torch.ones(6), **sizes)

    compile_and_compare(call, torch.randn(2, 4, 4, 5), torch.randn(4, 3, 4, 3))
