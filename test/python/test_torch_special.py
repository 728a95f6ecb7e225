# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of mathematics over their whole range, through torch.compile, against PyTorch's in double precision."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import kas.torch  # noqa: E402

EDGES = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, 10.0, 1e-7, -1e-7, 1e-30, 88.0, 3e4]
SIZES = 10 ** torch.linspace(-6, 3, 60)
NUMBERS = torch.cat([torch.tensor(EDGES), torch.linspace(-12, 12, 173), SIZES, -SIZES, torch.linspace(0, 1, 33)])
GRID = torch.cat([torch.tensor(EDGES), torch.linspace(0.1, 25, 21), -torch.linspace(0.3, 9, 7)])


def compare(call, *inputs, absolute=1e-6, relative=1e-5):
    """Off by little, or by no more than PyTorch is with floats."""
    torch._dynamo.reset()
    with torch.no_grad():
        found = torch.compile(call, backend=kas.torch.backend)(*inputs)
        floats, expected = call(*inputs), call(*(x.double() for x in inputs)).float()
    (graph,) = kas.torch.explain()
    assert (graph.reason, graph.left) == (None, ())
    allowed = absolute + relative * expected.abs()
    near = (found - expected).abs() <= torch.maximum(allowed, (floats - expected).abs())
    same = (found == expected) | (found == floats)
    right = near | same | (found.isnan() & (expected.isnan() | floats.isnan()))
    wrong = [
        (*(x[i].item() for x in inputs), found[i].item(), expected[i].item()) for i in (~right).nonzero().flatten()
    ]
    assert wrong == []


special = torch.special
OF_ONE = {
    **{name: getattr(torch, name) for name in ("digamma", "erfc", "erfinv", "i0", "lgamma")},
    **{
        name: getattr(special, name)
        for name in (
            *("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "erfcx", "i0e", "i1", "i1e", "log_ndtr"),
            *("modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "ndtri"),
            *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0"),
        )
    },
}


@pytest.mark.parametrize("name", OF_ONE)
def test_of_one_number(name):
    # Where PyTorch's expansion of Airy's function begins, it is off in double as well.
    compare(OF_ONE[name], NUMBERS, absolute=5e-6 if name == "airy_ai" else 1e-6)


@pytest.mark.parametrize("degree", range(4))
def test_polygamma(degree):
    x = NUMBERS[~((NUMBERS <= 0) & (NUMBERS.floor() == NUMBERS))]
    compare(lambda x: torch.polygamma(degree, x), x)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions(name):
    x, y = (part.reshape(-1) for part in torch.meshgrid(GRID, GRID, indexing="ij"))
    compare(getattr(torch, name), x, y, relative=1e-4)
    large = torch.tensor([1e6, 3e6, 1e7])
    compare(getattr(torch, name), large, large * torch.tensor([0.9995, 1.0, 1.0003]), relative=1e-3, absolute=1e-5)


def test_zeta():
    x, y = (part.reshape(-1) for part in torch.meshgrid(GRID, GRID, indexing="ij"))
    compare(special.zeta, x, y)


@pytest.mark.parametrize("name", ["chebyshev_polynomial_t", "hermite_polynomial_he", "shifted_chebyshev_polynomial_t"])
def test_polynomials(name):
    x, n = (
        part.reshape(-1) for part in torch.meshgrid(torch.linspace(-3, 3, 25), torch.arange(-1.0, 12), indexing="ij")
    )
    compare(getattr(special, name), x, n, relative=1e-4, absolute=1e-4)


def test_arithmetic():
    x, y = (part.reshape(-1) for part in torch.meshgrid(NUMBERS[:60], NUMBERS[:60], indexing="ij"))
    for call in (torch.fmod, torch.remainder, torch.copysign, torch.nextafter, special.xlog1py):
        with torch.no_grad():
            found, expected = torch.compile(call, backend=kas.torch.backend)(x, y), call(x, y)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0, equal_nan=True)
    with torch.no_grad():
        found = torch.compile(lambda x: (torch.frexp(x), torch.signbit(x)), backend=kas.torch.backend)(NUMBERS)
    torch.testing.assert_close(found, (torch.frexp(NUMBERS), torch.signbit(NUMBERS)), rtol=0, atol=0, equal_nan=True)
    assert all((graph.reason, graph.left) == (None, ()) for graph in kas.torch.explain())
