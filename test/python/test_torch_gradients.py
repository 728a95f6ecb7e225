# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that torch-mlir does not know, as they are decomposed, against those of PyTorch, and compiled."""

from __future__ import annotations

import copy
import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from test_torch_backend import compare_gradients  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from kas.torch._gradient_decompositions import get_training_table  # noqa: E402

aten = torch.ops.aten


def draw_images(chance, rank, least, most):
    """Images with or without a batch."""
    sizes = [chance.randint(least, most) for _ in range(rank)]
    return torch.randn(*[2] * chance.randint(0, 1), 3, *sizes)


def check(operation, count, draw):
    """The gradient as it is decomposed is PyTorch's, `count` times; `draw` gives the forward operation and arguments.

    What PyTorch refuses is drawn again.
    """
    decompose, number = get_training_table()[operation], 0
    while number < count:
        forward, data, options, rest = draw()
        try:
            result = forward(data, *options)
            gradient = torch.randn_like(result)
            expected = operation(gradient, data, *options, *rest(result))
        except RuntimeError:
            continue
        found = decompose(gradient, data, *options, *rest(result))
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5, msg=f"{data.shape} {options}")
        assert found.is_contiguous()
        number += 1


@pytest.mark.parametrize("rank", [2, 3])
def test_averages(rank):
    chance = random.Random(rank)

    def draw():
        kernel, stride = ([chance.randint(1, 7) for _ in range(rank)] for _ in range(2))
        padding = [chance.randint(0, size // 2) for size in kernel]
        flags = [chance.random() < 0.5, chance.random() < 0.5, chance.choice((None, None, 3))]
        data = draw_images(chance, rank, 1, 12)
        return getattr(aten, f"avg_pool{rank}d").default, data, [kernel, stride, padding, *flags], lambda _: []

    check(getattr(aten, f"avg_pool{rank}d_backward").default, 100, draw)


@pytest.mark.parametrize("rank", [2, 3])
def test_adaptive_averages(rank):
    chance = random.Random(rank)
    forward = getattr(aten, f"_adaptive_avg_pool{rank}d").default
    operation = getattr(aten, f"_adaptive_avg_pool{rank}d_backward").default
    decompose = get_training_table()[operation]
    for _ in range(100):
        data = draw_images(chance, rank, 1, 14)
        gradient = torch.randn_like(forward(data, [chance.randint(1, 14) for _ in range(rank)]))
        torch.testing.assert_close(decompose(gradient, data), operation(gradient, data), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("name", ["reflection", "replication"])
def test_pads(name, rank):
    chance = random.Random(rank)

    def draw():
        padding = [chance.randint(-1, 4) for _ in range(2 * rank)]
        return getattr(aten, f"{name}_pad{rank}d").default, draw_images(chance, rank, 3, 7), [padding], lambda _: []

    check(getattr(aten, f"{name}_pad{rank}d_backward").default, 60, draw)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances(p):
    """Some of which are zero, as are some differences."""
    table = get_training_table()
    x, y = torch.randn(2, 5, 3), torch.randn(2, 4, 3)
    x[:, 0], x[:, 1, 0] = y[:, 1], y[:, 0, 0]
    distances = aten._cdist_forward(x, y, p, None)
    given = (torch.randn_like(distances), x, y, p, distances)
    torch.testing.assert_close(table[aten._cdist_backward.default](*given), aten._cdist_backward(*given))
    distances = aten._pdist_forward(x[0], p)
    given = (torch.randn_like(distances), x[0], p, distances)
    torch.testing.assert_close(table[aten._pdist_backward.default](*given), aten._pdist_backward(*given))


class Images(nn.Module):
    """Pools with windows that overlap, that are apart, that reach over the borders and that are not of one size."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x):
        x = functional.pad(functional.pad(self.norm(x), (2, 1, 1, 2), mode="reflect"), (1, -1, -1, 2), mode="replicate")
        x = functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)
        x = functional.avg_pool2d(x, 2, 3, divisor_override=3) + functional.adaptive_avg_pool2d(x, (3, 3))
        return functional.avg_pool1d(x.flatten(1), 5, 1) * functional.adaptive_avg_pool3d(x, (3, 2, 2)).mean()


class Rows(nn.Module):
    def forward(self, x):
        return torch.cdist(x, x[:3] * 2, p=1).sum(1) + functional.pdist(x).mean() + torch.sgn(x).sum()


@pytest.mark.parametrize("network, data", [(Images(), (2, 3, 11, 12)), (Rows(), (6, 4))])
def test_gradients_are_compiled(network, data):
    for graph in compare_gradients(network.train(), torch.randn(data)):
        assert graph.reason is None
        # The count of the batches of a norm.
        assert all(name == "aten.add.Tensor" for name, _ in graph.left)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce):
    """Of elements that are the same, zero or no numbers, and segments of none."""
    decompose = get_training_table()[aten._segment_reduce_backward.default]
    lengths = torch.tensor([[2, 0, 4, 1], [3, 3, 0, 1]])
    some, few = torch.randn(2, 7, 3), torch.randint(0, 3, (2, 7, 3)).float()
    odd = few.clone()
    odd[0, 1, 1] = odd[1, 5, :2] = torch.nan
    for data in (some, few, odd):
        for options in ({}, {"initial": 2.0}):
            options |= {"lengths": lengths, "axis": 1}
            result = torch.segment_reduce(data, reduce, **options)
            given = (torch.randn_like(result), result, data, reduce)
            expected = aten._segment_reduce_backward(*given, **options)
            torch.testing.assert_close(decompose(*given, **options), expected, equal_nan=True)


@pytest.mark.parametrize("mode, weighted", [(0, False), (0, True), (1, False), (2, False)])
@pytest.mark.parametrize("padding_idx", [-1, 3])
def test_bags(mode, weighted, padding_idx):
    """And what their gradients need: bags of places, sizes, rows of maxima."""
    table, weight = get_training_table(), torch.randn(9, 4)
    places = torch.tensor([1, 2, 4, 5, 4, 3, 2, 3])
    scales = torch.randn(8) if weighted else None
    for offsets, ends in ((torch.tensor([0, 3, 3, 7]), False), (torch.tensor([0, 3, 3, 8]), True)):
        given = (weight, places, offsets, False, mode, False, scales, ends, padding_idx)
        expected = aten._embedding_bag(*given)
        torch.testing.assert_close(table[aten._embedding_bag.default](*given), expected)
        result, *others = expected
        gradient = torch.randn_like(result)
        given = (gradient, places, offsets, *others, 9, False, mode, False, scales, padding_idx)
        found = table[aten._embedding_bag_backward.default](*given)
        torch.testing.assert_close(found, aten._embedding_bag_backward(*given))
        if weighted:
            operation = aten._embedding_bag_per_sample_weights_backward.default
            bags = torch.tensor([0, 0, 0, 2, 2, 2, 2, 2 if ends else 3])
            expected = operation(gradient, weight, places, offsets, bags, mode, padding_idx)
            for which in (bags, others[0]):
                found = table[operation](gradient, weight, places, offsets, which, mode, padding_idx)
                torch.testing.assert_close(found, expected)


class Bags(nn.Module):
    def forward(self, weight, scales):
        places, offsets = torch.tensor([1, 2, 4, 5, 4, 3, 2, 8]), torch.tensor([0, 3, 3, 7])
        found = functional.embedding_bag(places, weight, offsets, mode="sum", per_sample_weights=scales)
        for mode in ("mean", "max"):
            found = found + functional.embedding_bag(places, weight, offsets, mode=mode, padding_idx=4)
        return torch.segment_reduce(found, "max", lengths=torch.tensor([1, 0, 3]), initial=-9.0)


def test_gradients_of_bags_are_compiled():
    for graph in compare_gradients(Bags(), torch.randn(9, 4), torch.randn(8)):
        assert graph.reason is None and graph.left == ()


def test_what_is_changed_may_be_kept_for_the_gradients():
    # Statistics of the norm change in the forward pass, and the checkpoint computes it again in the backward one.
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    expected = copy.deepcopy(network)
    data = torch.randn(2, 3, 6, 6)

    @torch.compile(backend="kas")
    def compiled(x):
        return checkpoint(network, x, use_reentrant=False)

    for _ in range(2):
        compiled(data).square().mean().backward()
        expected(data).square().mean().backward()
    for got, wanted in zip(network.parameters(), expected.parameters()):
        torch.testing.assert_close(got.grad, wanted.grad, rtol=1e-3, atol=1e-5)
    for got, wanted in zip(network.buffers(), expected.buffers()):
        torch.testing.assert_close(got, wanted)
