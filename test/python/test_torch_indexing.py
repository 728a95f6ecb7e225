# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading and writing at places that are integers, through torch.compile: duplicates, the ends, and places outside."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from test_torch_meaning import compile_and_compare  # noqa: E402
from torch.nn import functional  # noqa: E402

import kas.torch  # noqa: E402
from kas.torch._graph_import import import_graph, trace  # noqa: E402

X = torch.randn(5, 4)
ALONG = torch.tensor([4, 0, 0, 2])
"""Rows, of which one comes twice."""
OUTSIDE = (-6, 5, 2**40)
"""Neither rows of `X`, from either end, nor places of the calls below."""


def scatter(x, i):
    i = i.unsqueeze(1).expand(4, 3)
    source = x[:4, :3] * 2
    sums = x.scatter_add(0, i, source), x.scatter(0, i, 3.0), x.scatter(0, i, 2.0, reduce="multiply")
    kinds = ("sum", "prod", "mean", "amax", "amin")
    return sums, [x.scatter_reduce(0, i, source, kind, include_self=own) for kind in kinds for own in (True, False)]


def write_rows(x, i):
    source = x[:4] + 1
    kinds = ("prod", "mean", "amax", "amin")
    reduced = [x.index_reduce(0, i, source, kind, include_self=own) for kind in kinds for own in (True, False)]
    return x.index_add(0, i, source, alpha=2), x.index_copy(0, i, source), x.index_fill(0, i, 7), reduced


def read(x, i):
    return x.index_select(0, i), x[i], x[i, i - 4 * (i > 3)], x[:, None][i, 0, 1:], x.take(i), x.gather(0, i[None, :])


def write(x, i):
    y = x.clone()
    y[i] += 1
    added = x.index_put((i, torch.arange(4)), x[0], accumulate=True)
    return y, added, x.put(i, x[0, :4], accumulate=True), x.put(i, x[1, :4]), x.masked_scatter(x > 0, x.t().exp())


def count(x, i):
    ones = torch.ones_like(i)
    return torch.zeros(5, dtype=i.dtype).scatter_add(0, i, ones), (x > 0).index_fill(0, i, True)


CALLS = {call.__name__: call for call in (scatter, write_rows, read, write, count)}


@pytest.mark.parametrize("name", CALLS)
def test_places(name):
    compile_and_compare(CALLS[name], X, ALONG)


@pytest.mark.parametrize("name", CALLS)
def test_places_outside_are_errors(name):
    compiled = torch.compile(CALLS[name], backend=kas.torch.backend)
    with torch.no_grad():
        compiled(X, ALONG)
        for place in OUTSIDE:
            with pytest.raises((RuntimeError, IndexError)):
                compiled(X, torch.tensor([0, 1, place, 2]))


@pytest.mark.parametrize(
    "call",
    [lambda x, i: x.index_select(0, i), lambda x, i: x.index_add(0, i, x[:4]), lambda x, i: x.gather(0, i[None])],
)
def test_what_does_not_count_from_the_end(call):
    compiled = torch.compile(lambda x, i: call(x, i) * 2, backend=kas.torch.backend)
    with torch.no_grad(), pytest.raises((RuntimeError, IndexError)):
        compiled(X, ALONG - 1)


def test_more_flags_than_elements_are_an_error():
    compiled = torch.compile(lambda x, y: x.masked_scatter(x > 0, y), backend=kas.torch.backend)
    with torch.no_grad():
        compiled(X.abs(), torch.randn(20))
        with pytest.raises(RuntimeError, match="mask requires as many elements"):
            compiled(X.abs(), torch.randn(19))


def test_gradients():
    def call(x, i):
        pooled, places = functional.max_pool2d(x[None], 2, return_indices=True)
        back = functional.max_unpool2d(pooled, places, 2, output_size=x.shape)
        return x[i].exp(), x.gather(0, i[None, :]), x.max(0).values, x.cummax(1).values, back, x.sort(0)[0]

    found = []
    for function in (call, torch.compile(call, backend=kas.torch.backend)):
        torch._dynamo.reset()
        x = X[:4].clone().requires_grad_()
        weighted = [result * torch.arange(result.numel()).view(result.shape).cos() for result in function(x, ALONG % 4)]
        sum(part.sum() for part in weighted).backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0])
    assert all((graph.reason, graph.left) == (None, ()) for graph in kas.torch.explain())


def test_places_of_maxima():
    x = torch.randn(2, 3, 9, 8)
    x[0, 0, :3] = -torch.inf
    x[0, 1, 2:5, 4] = torch.nan
    x[1, 0] = 1

    def call(x):
        one = functional.max_pool2d(x, 3, 2, 1, return_indices=True)
        two = functional.max_pool2d(x, (2, 3), (1, 2), dilation=(3, 2), ceil_mode=True, return_indices=True)
        three = functional.adaptive_max_pool2d(x, (4, 3), return_indices=True)
        return one, two, three, functional.max_pool3d(x, 2, return_indices=True)

    compile_and_compare(call, x)


def test_loops_beside_what_pytorch_runs():
    def call(x, i):
        x = x.index_add(0, i, x[:4])
        x = torch.fft.irfft(torch.fft.rfft(x @ x.t()), 5)
        return (x @ x).exp() + 1

    (graph,) = compile_and_compare(call, X, ALONG, is_compiled=False)
    assert graph.parts == 2 and {name for name, _ in graph.left} == {"aten._fft_r2c.default", "aten._fft_c2r.default"}


def test_loops_leave_other_operations_where_they_are():
    """A bias that is far ahead of its layer is not fused into it."""

    def call(x, table, i, weight, bias):
        x = functional.conv2d(x, weight, bias) + table[i].reshape(4, 1, 1)
        return functional.conv2d(x, weight, bias.neg())

    i = torch.tensor([3, 8])
    arguments = torch.randn(1, 4, 5, 5), torch.randn(9, 2), i, torch.randn(4, 4, 1, 1), torch.randn(4)
    traced = trace(lambda *tensors: (call(*tensors),), arguments, False)
    assert any(node.target is torch.ops.kas.loops.default for node in traced.graph.nodes)
    text = str(import_graph(traced))
    places = [text.index(name) for name in ("linalg.conv_2d", "cf.assert", "arith.negf")]
    assert places == sorted(places) and places[2] < text.rindex("linalg.conv_2d")
