# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors of small matrices and systems of equations, as they are decomposed, against PyTorch's, and compiled."""

from __future__ import annotations

import itertools
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from test_torch_backend import compare_gradients  # noqa: E402
from test_torch_meaning import compile_and_compare  # noqa: E402
from torch import linalg, nn  # noqa: E402

import kas.torch  # noqa: E402
from kas.torch._decompositions import get_inference_table  # noqa: E402

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _start():
    """The same matrices always, since of some no digits are left, and no graphs of the test before."""
    torch.manual_seed(0)
    kas.torch.explain()


def check(operation, *given, results=None, **options):
    """The first `results` are those of PyTorch."""
    found = get_inference_table()[operation](*given, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # One of the operations is deprecated.
        expected = operation(*given, **options)
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        found, expected = list(found)[:results], list(expected)[:results]
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 5, 5), (2, 3, 6, 4), (20, 20)])
def test_factors(shape):
    matrix = torch.randn(shape)
    check(aten.linalg_lu_factor_ex.default, matrix)
    check(aten.linalg_lu.default, matrix)
    lu, pivots, _ = aten.linalg_lu_factor_ex(matrix)
    for flags in itertools.product((False, True), repeat=2):
        check(aten.lu_unpack.default, lu, pivots, *flags)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 8, 8)])
def test_systems(shape):
    size = shape[-1]
    matrix, right = torch.randn(shape) + 2 * torch.eye(size), torch.randn(*shape[:-1], 3)
    check(aten.linalg_inv_ex.default, matrix)
    check(aten._linalg_slogdet.default, matrix, results=2)
    check(aten._linalg_det.default, matrix, results=1)
    for given in (right, right[..., 0], torch.randn(size)):
        if given.shape != matrix.shape[:-1] or matrix.dim() == 2:
            check(aten._linalg_solve_ex.default, matrix, given, results=1)
    lu, pivots, _ = aten.linalg_lu_factor_ex(matrix)
    triangle = torch.randn(shape) + 5 * torch.eye(size)
    for first, second in itertools.product((False, True), repeat=2):
        check(aten.linalg_lu_solve.default, lu, pivots, right if first else right.mT, left=first, adjoint=second)
        for third in (False, True):
            options = {"upper": second, "left": first, "unitriangular": third}
            check(aten.linalg_solve_triangular.default, triangle, right if first else right.mT, **options)
            check(aten.triangular_solve.default, right, triangle, first, second, third)


def test_matrices_without_inverse():
    for matrix in (torch.tensor([[1.0, 2], [2, 4]]), torch.zeros(3, 3), torch.tensor([[1.0, torch.nan], [2, 4]])):
        check(aten.linalg_lu_factor_ex.default, matrix)
        check(aten._linalg_slogdet.default, matrix, results=2)
        check(aten._linalg_det.default, matrix, results=1)
    check(aten.linalg_inv_ex.default, torch.tensor([[1.0, 2], [2, 4]]))


def test_what_is_compiled():
    def call(matrix, right):
        lu, pivots = linalg.lu_factor_ex(matrix)[:2]
        solved = linalg.lu_solve(lu, pivots, right), linalg.solve_triangular(matrix, right, upper=True)
        return *solved, *linalg.lu(matrix), *linalg.slogdet(matrix), linalg.det(matrix), linalg.inv_ex(matrix)[0]

    compile_and_compare(call, torch.randn(2, 5, 5) + 3 * torch.eye(5), torch.randn(2, 5, 3), exact_zeros=False)
    compiled = torch.compile(lambda lu, pivots: torch.lu_unpack(lu, pivots)[0] * 2, backend=kas.torch.backend)
    pivots = torch.tensor([2, 2, 3], dtype=torch.int32)
    with torch.no_grad():
        compiled(torch.randn(3, 3), pivots)
        for wrong in (pivots - 2, pivots + 1):
            with pytest.raises(RuntimeError, match="pivots require numbers from 1 to 3"):
                compiled(torch.randn(3, 3), wrong)


class Systems(nn.Module):
    def forward(self, matrix, right):
        lower = linalg.lu(matrix)[1]
        return linalg.inv_ex(matrix)[0] @ right + linalg.solve_triangular(lower, right, upper=False)


def test_gradients_are_compiled():
    for graph in compare_gradients(Systems(), torch.randn(2, 4, 4) + 3 * torch.eye(4), torch.randn(2, 4, 3)):
        assert graph.reason is None and graph.left == ()


def test_convolutions_of_groups_in_three_dimensions():
    layer = nn.Conv3d(6, 9, 3, stride=2, padding=1, groups=3)
    for graph in compare_gradients(layer, torch.randn(2, 6, 5, 4, 6)):
        assert graph.reason is None and graph.left == ()
