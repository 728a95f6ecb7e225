# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that torch-mlir does not know, as they are decomposed, against those of PyTorch, and compiled."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from test_torch_backend import compare_gradients  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

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
