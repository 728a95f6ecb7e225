# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operations mean at the edges, through torch.compile: numbers near zero, NaN, no elements, one element."""

from __future__ import annotations

import itertools
import math
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import torch_suite  # noqa: E402
from torch.nn import functional  # noqa: E402

import kas.torch  # noqa: E402
from kas.torch._graph_import import import_graph, trace  # noqa: E402


def compile_and_compare(call, *inputs, is_compiled=True, exact_zeros=True):
    """The same as PyTorch: types, shapes, NaN, infinities, signs of zeros."""
    torch._dynamo.reset()
    kas.torch.explain()
    arguments = [[x.clone() for x in inputs] for _ in range(2)]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = torch.compile(call, backend=kas.torch.backend)(*arguments[0])
        expected = call(*arguments[1])
    assert torch_suite.differ([expected, arguments[1]], [found, arguments[0]], exact_zeros) == ""
    graphs = kas.torch.explain()
    if is_compiled:
        assert [(graph.reason, graph.left) for graph in graphs] == [(None, ())]
    return graphs


EDGES = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3e4, -3e4, 1e-7, -1e-7, 3e-12])
OTHER = torch.stack([EDGES.roll(shift) for shift in range(5)])


def test_numbers_near_zero():
    def call(x):
        return x.log1p(), x.expm1(), x.tanh(), functional.softplus(x * 30), functional.softplus(x, 3, 0.2)

    compile_and_compare(call, torch.cat([EDGES, torch.tensor([1e-20, -1e-12, 1e-4, -26.5, -80.0, 88.0])]))


def test_nan():
    def compare(x, y):
        return x == x, x != x, x == y, x < y, x >= y, torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y)

    def bound(x):
        return x.clamp(-1, 2), x.clamp_min(0), x.relu(), functional.relu6(x), functional.hardswish(x), x.sign(), -x

    def reduce(x):
        return x.amax(1), x.amin(0), x.max(), x.max(1), x.min(0), x.argmax(), x.argmin(1, keepdim=True), x.sum(1)

    def pool(x):
        x = x.view(1, 5, 2, 7)
        return functional.max_pool2d(x, 2), functional.max_pool2d(x[0], 2), functional.avg_pool2d(x, 2)

    # The maximum of zeros of both signs is any of them.
    compile_and_compare(compare, EDGES, OTHER, exact_zeros=False)

    def weigh(x):
        # Infinity times zero is NaN.
        return functional.glu(x, 1), x.sigmoid(), torch.logaddexp(x[0], x[1]), torch.logaddexp2(x[0], x[1])

    for call in (bound, reduce, pool, weigh):
        compile_and_compare(call, OTHER)


# No float is equal to these: beside floats they are rounded, as elements are.
DECIMALS = torch.tensor([0.1, -0.1, 0.3, -0.3, 0.7, 0.5])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_comparisons_with_numbers(dtype):
    def compare(x):
        of_numbers = x > 0.1, x >= 0.1, x < 0.1, x <= 0.1, x == 0.1, x != 0.1, x == 0.7, x >= 1e300, x < math.nan
        return of_numbers, functional.threshold(x, 0.1, 5), functional.hardshrink(x, 0.1), x.masked_fill(x > 0.3, 0.1)

    compile_and_compare(compare, DECIMALS.to(dtype))

    def compare_with_doubles(x, one):
        return x > one, x <= one, x == one, x != one, torch.where(x < one, x, one), torch.maximum(x, one)

    compile_and_compare(compare_with_doubles, DECIMALS.to(dtype), torch.tensor(0.1, dtype=torch.float64))


def test_powers_that_are_roots():
    compile_and_compare(lambda x: (x**0.5, x**-0.5, x**2, x**-1, x**0, x**2.5, x.sqrt(), x.rsqrt()), EDGES)


def test_gradients_at_the_ends_of_ranges():
    def call(x):
        ranges = functional.hardshrink(x, 0.1), functional.hardtanh(x, -0.1, 0.1), functional.threshold(x, 0.1, 0.5)
        return torch.stack([*ranges, functional.rrelu(x, 0.1, 0.3), x.clamp(-0.1, 0.3), x.clamp_min(0.1)])

    torch._dynamo.reset()
    expected, found = DECIMALS.clone().requires_grad_(), DECIMALS.clone().requires_grad_()
    weights = torch.linspace(1, 2, 36).view(6, 6)
    (call(expected) * weights).sum().backward()
    with warnings.catch_warnings():
        # PyTorch's, of gradients that do not free their arguments.
        warnings.simplefilter("error")
        (torch.compile(call, backend="kas")(found) * weights).sum().backward()
    torch.testing.assert_close(found.grad, expected.grad)


def _make_constants():
    """What follows from no argument, of every type that meets numbers of another one."""
    ones, ints, halves = torch.ones(3), torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.float16)
    yield from (ones * -1, ones + -2, ones - 2, -1 - ones, ones / -2, torch.add(ones, ones, alpha=-2))
    yield from (torch.rsub(ones, 2, alpha=-2), ones.double() * -1, halves * -1, ones.bfloat16() - 3, ones * ints.neg())
    yield from (ones * -1 == -1, ones > -1, ones - 3 < -1, ints - 2 <= ones, torch.where(ones > 0, -1, 2))
    yield from (ints * -1 / 2, ints * -1.5, (ints * -7) % 3, (ints * -7) // 2, (ints * -5) >> 1, (ints * -5) & 3)
    yield from (ints.to(torch.int8) * 100 + 100, ints.to(torch.int32) * 2**30 * 4, ints.bool() * -1, ints.square() - 9)
    yield from (torch.tensor([1.0, 2.0]) * -1, torch.tensor(2.0) * -1, torch.tensor([2.0, 2.0]) * -3)
    yield from (1 / (ones * 0 * -1), ones * float("-inf"), torch.triu(torch.ones(3, 3) * float("-inf"), 1))
    yield from ((ones * float("nan")) * -1, torch.arange(3.0) * -1, torch.eye(2) * -2, (ints * -1).cumsum(0))
    yield from ((ones * -1).reshape(3, 1).expand(3, 2).sum(1), torch.ones(3000, 3000)[::1000] * -1, (ones - 2).any())
    yield torch.full((3,), 200, dtype=torch.uint8) * 2
    yield torch.cat([ones * -1, ones]) * -1
    yield torch.tensor([1.0, 2.0], dtype=torch.bfloat16) * -1


def test_constants():
    """torch-mlir folds tensors of one value itself, and takes negative integers for large ones."""
    expected = [*_make_constants()]
    for function in (lambda x: (*_make_constants(), x + 1), lambda x: (*_make_constants(),)):
        results = torch.compile(function, backend="kas")(torch.ones(2))
        for number, (result, wanted) in enumerate(zip(results, expected)):
            assert result.dtype == wanted.dtype, number
            torch.testing.assert_close(result, wanted, equal_nan=True, msg=f"{number}: {result} instead of {wanted}")
            assert not wanted.is_floating_point() or torch.equal(result.signbit(), wanted.signbit()), number


def test_constants_of_booleans(monkeypatch):
    """torch-mlir knows them by the addresses of bytes it makes of them, which must not be another's before it ends."""
    from torch_mlir.extras import fx_importer

    make, made = fx_importer._make_vtensor_literal_op, []

    def make_and_watch(tensor, *arguments):
        made.append(weakref.ref(tensor))
        assert all(reference() is not None for reference in made)
        return make(tensor, *arguments)

    monkeypatch.setattr(fx_importer, "_make_vtensor_literal_op", make_and_watch)
    masks = [*itertools.product([False, True], repeat=4)]
    graph = trace(lambda x: tuple(x & torch.tensor(mask) for mask in masks), [torch.ones(4, dtype=torch.bool)], False)
    import_graph(graph)
    assert len(made) > 10


def _overwrite(x):
    """Constants that are written over what follows from the argument."""
    everywhere, nowhere = torch.ones(3, dtype=torch.bool), torch.zeros(3, dtype=torch.bool)
    whole, one, all_set, copied = x.clone(), x[:1].clone(), x.clone(), x.clone().copy_(torch.ones(3))
    whole[:], one[0], all_set[everywhere] = 1.0, 0.0, 2.0
    yield from (copied, whole, one, all_set, x.clone().copy_(torch.tensor([1.0, 2.0, 3.0])), x.long().fill_(7))
    yield from (torch.where(everywhere, torch.ones(3), x), torch.where(nowhere, x, torch.full((), -1.0)))
    yield from (x.masked_fill(everywhere, -2.0), x[:2].masked_scatter(everywhere[:2], torch.tensor([0.0, -0.0])))
    yield torch.where(torch.tensor([True, False, True]), torch.ones(3), torch.where(everywhere, torch.ones(3), x))


USES = [
    *(lambda y: y > 0, lambda y: y > -1, lambda y: y == 1, lambda y: y >= -1, lambda y: y != -1, lambda y: y * -1),
    *(lambda y: y + -2, lambda y: -1 - y, lambda y: y / -2, lambda y: (y * -3) // 2, lambda y: (y * -3) % 2),
    *(lambda y: (y * -1).to(torch.int32), lambda y: torch.where(y > 0, -1, 2), lambda y: (y * -1).sum()),
]


def test_constants_over_data():
    def call(x):
        return [use(value) for value in _overwrite(x) for use in USES]

    x = torch.tensor([1.0, -2.0, 3.0])
    torch.testing.assert_close(torch.compile(call, backend="kas")(x), call(x))


def test_constants_beside_data():
    x = torch.arange(6.0)
    for function in (lambda x: x[:3] + (1 - torch.ones(3)) * -10000, lambda x: x[torch.full((2,), -1)]):
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(function, backend="kas")(x), function(x))


def test_orders():
    numbers = torch.cat([OTHER, OTHER.flip(1)], 1)

    def order(x):
        # Else PyTorch has what is the same in any order.
        ascending, descending = x.sort(stable=True, dim=1), x.sort(stable=True, dim=0, descending=True)
        return ascending, descending, x.argsort(stable=True), x.kthvalue(3, 1).values

    def accumulate(x):
        return x.cumsum(1), x.cumprod(0), x.cummax(1), x.cummin(0), x.logcumsumexp(1), x.to(torch.int64).cumsum(1)

    # Zeros of both signs are the same.
    compile_and_compare(order, numbers, exact_zeros=False)
    # Infinities of both signs have no sum.
    compile_and_compare(accumulate, torch.randn(5, 19))
    compile_and_compare(lambda x: (x.topk(3, 1), x.topk(4, 0, largest=False)), torch.randperm(55).float().view(5, 11))
    compile_and_compare(lambda x: (x.sort(stable=True), x.median(1), x.nanmedian(0)[0]), torch.randn(3, 1000))

    def find(x, boundaries):
        found = torch.searchsorted(boundaries, x), torch.searchsorted(boundaries, x, right=True, out_int32=True)
        return found, torch.bucketize(x, boundaries[0]), x.median(1).values, x.nanmedian(1).values, x.median()

    compile_and_compare(find, OTHER, torch.arange(35.0).view(5, 7) - 17)


EMPTY = {
    "elementwise": lambda x, y: (x * 2 + 1).exp() / x,
    "sum": lambda x, y: (x.sum(0), x.sum(1), x.sum() + 1, x.prod(0)),
    "mean": lambda x, y: (x.mean(0), x.mean(), torch.var_mean(x, 0), x.std()),
    "product": lambda x, y: (x.t() @ x, x @ y.t(), functional.linear(x, y)),
    "contraction": lambda x, y: torch.addmm(torch.ones(5, 5), x.t(), x),
    "views": lambda x, y: (x.view(5, 0), x.reshape(0, 5, 1), x.repeat(3, 2), x.flatten(), x.expand(2, 0, 5)),
    "concatenation": lambda x, y: torch.cat([x, y * 2, x]),
    "softmax": lambda x, y: (x.softmax(0), x.softmax(1), functional.layer_norm(x, (5,))),
    "beside others": lambda x, y: (x + 1, y.exp() + x.sum(0)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_no_elements(name):
    compile_and_compare(EMPTY[name], torch.randn(0, 5), torch.randn(3, 5))


def test_single_numbers_have_no_dimension():
    def call(x):
        reductions = x.amax(0), x.amin(-1), x.max(0), x.min(0), x.argmax(0), x.argmin(), x.sum(0), x.logsumexp(0)
        norms = [torch.linalg.vector_norm(x, order, 0) for order in (0, 1, 2, 3, math.inf, -math.inf)]
        return (
            norms,
            x.softmax(0),
            x.log_softmax(-1),
            reductions,
            x.sort(0),
            x.cumsum(0),
            x.cummax(0),
            x.prod(0),
            x.all(0),
            (x.var(0), x.std(0, correction=0), torch.var_mean(x, -1), torch.std_mean(x, 0, correction=0, keepdim=True)),
        )

    compile_and_compare(call, torch.tensor(1.5))


def test_places_of_maxima_without_numbers():
    x = torch.full((1, 1, 4, 4), -math.inf)
    compile_and_compare(lambda x: functional.max_pool2d(x * 2, 2, return_indices=True), x, is_compiled=False)


def test_places_to_write_to_are_checked():
    x, places = torch.randn(4, 5), torch.tensor([[0, 2, 1, 3, 0]])

    def call(x, places):
        source = x[:1] * 2
        sums = x.scatter_add(0, places, source), x.scatter_reduce(0, places, source, "prod")
        return sums, x.scatter(0, places, source), x.index_add(1, places[0], x), x.index_copy(0, places[0, 1:2], x[:1])

    compile_and_compare(call, x, places, is_compiled=False)
    with torch.no_grad(), pytest.raises((IndexError, RuntimeError)):
        torch.compile(call, backend=kas.torch.backend)(x, places + 7)


@pytest.mark.parametrize("is_trained", [False, True])
def test_checks_of_operations_are_made(is_trained):
    call = torch.compile(lambda x: torch.linalg.inv(x) @ x.exp(), backend=kas.torch.backend)
    x = torch.randn(3, 3, requires_grad=is_trained)
    torch.testing.assert_close(call(x), torch.linalg.inv(x) @ x.exp())
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        call(torch.zeros(3, 3, requires_grad=is_trained))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_integers(dtype):
    least = torch.iinfo(dtype).min
    x = torch.tensor([7, -7, 5, -5, least, 0, 3], dtype=dtype)
    y = torch.tensor([2, 2, -3, -3, 3, 4, 7], dtype=dtype)

    def divide(x, y):
        return x // y, x % y, x / y, torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y)

    def shift(x, y):
        return x << 3, x >> 2, x & y, x | y, x ^ y, ~x, -x, x.abs(), x * y, x // 3, x % -3, torch.fmod(x, 3)

    for call in (divide, shift):
        compile_and_compare(call, x, y)
    with torch.no_grad(), pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.compile(lambda x, y: x // y, backend=kas.torch.backend)(x, y * 0)
    # Rounded numbers may be zero as well.
    with torch.no_grad(), pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.compile(lambda x: 7 // x.to(torch.int64), backend=kas.torch.backend)(torch.zeros(3) + 0.5)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_have_weights(mode):
    weight, places = torch.randn(9, 4), torch.tensor([1, 2, 4, 5, 4, 3, 2, 8])
    scales = torch.randn(8) if mode == "sum" else None

    def call(weight, places):
        offsets = torch.tensor([0, 3, 3])
        return functional.embedding_bag(places, weight, offsets, mode=mode, per_sample_weights=scales) * 2

    compile_and_compare(call, weight, places, is_compiled=False)


def test_much_that_is_left_to_pytorch_is_a_warning():
    x = torch.randn(700, 700)
    call = torch.compile(lambda x: x.mode(1, True)[0] * 2 + x @ x.round(decimals=1), backend=kas.torch.backend)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        call(x)
    (graph,) = kas.torch.explain()
    assert graph.flops > 2 * 700**3 and 0.9 < graph.share < 1

    def left(x):
        return torch.geqrf(torch.geqrf(x)[0])[0] + x.mode(0, True)[0]

    with (
        torch.no_grad(),
        pytest.warns(RuntimeWarning, match=r"kas leaves 100 % of \d MFLOP .* to PyTorch: .*aten\.geqrf"),
    ):
        torch.compile(left, backend=kas.torch.backend)(x)
