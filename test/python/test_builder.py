# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that are written in Python."""

import numpy
import pytest

import kas


def make_conv1d():
    b = kas.OperatorBuilder("conv1d", primaries=["N", "Cin", "Cout", "L"], coefficients=["k"])
    n, co, w = b.outputs("N", "Cout", "L")
    ci, kw = b.reduce("Cin"), b.reduce("k")
    ci_d, ci_w = b.share(ci)
    kw_d, kw_w = b.share(kw)
    return b.build([n, ci_d, b.unfold(w, kw_d)], [[co, ci_w, kw_w]])


def test_builds_a_convolution():
    built, named = make_conv1d(), kas.operator("conv1d")
    assert built.sizes == named.sizes
    assert built.symbolic_cost == named.symbolic_cost
    binding = {"N": 2, "Cin": 3, "Cout": 4, "L": 8, "k": 3}
    shapes = built.shapes(binding)
    generator = numpy.random.default_rng(0)
    arrays = [generator.standard_normal(shape) for shape in (shapes.data, *shapes.weights)]
    assert numpy.allclose(built.evaluate(binding, *arrays), named.evaluate(binding, *arrays), rtol=1e-5, atol=1e-5)


def test_every_primitive():
    b = kas.OperatorBuilder("all", ["C", "H"], ["s"])
    c, h = b.outputs("C", "H/s")
    r = b.reduce("s", "mean")
    x = b.split(b.stride(h, 1), r)
    q, m = b.merge(b.shift(c, 1), "s")
    b.expand(m)
    y = b.unfold(x, b.reduce(3, "max"), low=0)
    op = b.build([q, y])
    assert op.sizes["data"] == ["C/s", "H"]
    text = str(op)
    for name in ("split", "stride", "merge", "shift", "expand", "unfold", "reduce mean", "reduce max"):
        assert f"kas.{name} " in text


def test_looks_back():
    b = kas.OperatorBuilder("sums", ["T"], ["k"])
    (t,) = b.outputs("T")
    op = b.build([b.unfold(t, b.reduce("k"), causal=True)])
    assert "causal : T, k" in str(op)
    assert op.evaluate("T=5,k=4", numpy.array([1, 2, 3, 4, 5], numpy.float32)).tolist() == [1, 3, 6, 10, 14]
    assert op.find_lookahead("T=5,k=4") is None
    with pytest.raises(ValueError, match="'low' or 'causal' for an unfold, got both"):
        b.unfold(t, b.reduce("k"), low=1, causal=True)


def make_cyclic(window, **where):
    """A convolution along one axis; its window goes on at the other end."""
    b = kas.OperatorBuilder("cyclic", ["N", "Cin", "Cout", "L"], ["k"])
    n, co, x = b.outputs("N", "Cout", "L")
    ci_d, ci_w = b.share(b.reduce("Cin"))
    k_d, k_w = b.share(b.reduce(window))
    return b.build([n, ci_d, b.cyclic_unfold(x, k_d, **where)], [[co, ci_w, k_w]])


def apply_cyclic(data, weight, low):
    """By index: y[n,o,x] is the sum of data[n,c,(x+j-low) mod L] * weight[o,c,j]."""
    places = (numpy.arange(data.shape[2])[:, None] + numpy.arange(weight.shape[2]) - low) % data.shape[2]
    return numpy.einsum("ncxj,ocj->nox", data[:, :, places], weight)


@pytest.mark.parametrize(
    ("window", "where", "low"),
    [("k", {}, 1), ("k", {"low": 0}, 0), ("k", {"causal": True}, 2), ("L", {}, 3), ("2*L", {"low": "L"}, 6)],
)
def test_cyclic_windows(window, where, low):
    operator = make_cyclic(window, **where)
    binding = {"N": 2, "Cin": 3, "Cout": 4, "L": 6, "k": 3}
    shapes = operator.shapes(binding)
    generator = numpy.random.default_rng(0)
    arrays = [generator.integers(-3, 4, shape).astype(numpy.float32) for shape in (shapes.data, *shapes.weights)]
    expected = apply_cyclic(*arrays, low)
    for one in (operator, operator.canonical()):
        assert (one.evaluate(binding, *arrays) == expected).all()
        assert (one.compile(binding, check="exact")(*arrays) == expected).all()


def test_a_cyclic_window_of_the_whole_size_is_a_circulant_matrix():
    operator, binding = make_cyclic("L", low=0), {"N": 1, "Cin": 1, "Cout": 1, "L": 5, "k": 1}
    weight = numpy.arange(5, dtype=numpy.float32)
    rows = [
        operator.evaluate(binding, row.reshape(1, 1, 5), weight.reshape(1, 1, 5)) for row in numpy.eye(5, dtype="f")
    ]
    # Columns of the matrix: each is the one before it, turned by one.
    columns = [row.reshape(5) for row in rows]
    assert all((numpy.roll(columns[i], 1) == columns[(i + 1) % 5]).all() for i in range(5))
    gradient = operator.compile_gradient(1, binding)
    data = numpy.arange(5, dtype=numpy.float32).reshape(1, 1, 5)
    ones = numpy.ones((1, 1, 5), numpy.float32)
    assert (gradient(data, weight.reshape(1, 1, 5), ones) == data.sum()).all()


def test_bad_input():
    b = kas.OperatorBuilder("a", ["N"])
    (n,) = b.outputs("N")
    with pytest.raises(ValueError, match="given already"):
        b.outputs("N")
    with pytest.raises(ValueError, match="'sum', 'mean' or 'max', got 'min'"):
        b.reduce("N", "min")
    with pytest.raises(TypeError, match="expected a coordinate, got str"):
        b.shift("n", 1)
    with pytest.raises(ValueError, match="of another builder"):
        kas.OperatorBuilder("b", ["N"]).shift(n, 1)
    with pytest.raises(ValueError, match="identifiers"):
        kas.OperatorBuilder("a b", [])
    with pytest.raises(kas.Error, match="C9"):
        b.build([n, n])
