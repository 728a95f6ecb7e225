# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors of small matrices, and systems of equations with them: LU with pivots, and triangles.

Large ones are left to PyTorch, whose library works on blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._loops import Result, compute, get_type

aten = torch.ops.aten
LARGEST = 64
"""The most rows or columns of a matrix."""


def _is_small(*matrices: torch.Tensor) -> bool:
    """Of f32, with some elements."""
    return all(
        x.dtype == torch.float32 and x.dim() >= 2 and min(x.shape) > 0 and max(x.shape[-2:]) <= LARGEST
        for x in matrices
    )


def _broadcast(*shapes: Sequence[int]) -> list[int]:
    """`torch.broadcast_shapes`."""
    return list(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]


def _constants(**numbers: int) -> str:
    return "\n".join(f"%{name} = arith.constant {value} : index" for name, value in numbers.items())


def factor(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """LU in one matrix, the rows that were exchanged, counted from 1, and the first zero pivot, or 0."""
    *batch, m, n = matrix.shape
    count, steps = math.prod(batch), min(m, n)
    whole = get_type((count, m, n), torch.float32)
    rows, zeros = get_type((count, steps), torch.int32), get_type((count,), torch.int32)
    all_types = f"{whole}, {rows}, {zeros}"
    body = f"""{_constants(zero=0, one=1, count=count, m=m, n=n, steps=steps)}
%none = arith.constant 0.0 : f32
%unit = arith.constant 1.0 : f32
%unset = arith.constant 0 : i32
%all:3 = scf.for %b = %zero to %count step %one iter_args(%a0 = %0, %p0 = %1, %i0 = %2) -> ({all_types}) {{
  %made:3 = scf.for %j = %zero to %steps step %one iter_args(%a1 = %a0, %p1 = %p0, %i1 = %i0) -> ({all_types}) {{
    %next = arith.addi %j, %one : index
    %here = tensor.extract %a1[%b, %j, %j] : {whole}
    %size = math.absf %here : f32
    %best:2 = scf.for %i = %next to %m step %one iter_args(%most = %size, %row = %j) -> (f32, index) {{
      %x = tensor.extract %a1[%b, %i, %j] : {whole}
      %abs = math.absf %x : f32
      %is_more = arith.cmpf ogt, %abs, %most : f32
      %new_most = arith.select %is_more, %abs, %most : f32
      %new_row = arith.select %is_more, %i, %row : index
      scf.yield %new_most, %new_row : f32, index
    }}
    %a2 = scf.for %c = %zero to %n step %one iter_args(%s = %a1) -> ({whole}) {{
      %upper = tensor.extract %s[%b, %j, %c] : {whole}
      %lower = tensor.extract %s[%b, %best#1, %c] : {whole}
      %s1 = tensor.insert %lower into %s[%b, %j, %c] : {whole}
      %s2 = tensor.insert %upper into %s1[%b, %best#1, %c] : {whole}
      scf.yield %s2 : {whole}
    }}
    %pivot = tensor.extract %a2[%b, %j, %j] : {whole}
    %is_zero = arith.cmpf oeq, %pivot, %none : f32
    %divisor = arith.select %is_zero, %unit, %pivot : f32
    %a3 = scf.for %i = %next to %m step %one iter_args(%s = %a2) -> ({whole}) {{
      %x = tensor.extract %s[%b, %i, %j] : {whole}
      %l = arith.divf %x, %divisor : f32
      %s1 = tensor.insert %l into %s[%b, %i, %j] : {whole}
      %s2 = scf.for %c = %next to %n step %one iter_args(%t = %s1) -> ({whole}) {{
        %y = tensor.extract %t[%b, %i, %c] : {whole}
        %z = tensor.extract %t[%b, %j, %c] : {whole}
        %product = arith.mulf %l, %z : f32
        %rest = arith.subf %y, %product : f32
        %t1 = tensor.insert %rest into %t[%b, %i, %c] : {whole}
        scf.yield %t1 : {whole}
      }}
      scf.yield %s2 : {whole}
    }}
    %number = arith.addi %best#1, %one : index
    %number32 = arith.index_cast %number : index to i32
    %p2 = tensor.insert %number32 into %p1[%b, %j] : {rows}
    %old = tensor.extract %i1[%b] : {zeros}
    %is_unset = arith.cmpi eq, %old, %unset : i32
    %is_first = arith.andi %is_unset, %is_zero : i1
    %step32 = arith.index_cast %next : index to i32
    %new = arith.select %is_first, %step32, %old : i32
    %i2 = tensor.insert %new into %i1[%b] : {zeros}
    scf.yield %a3, %p2, %i2 : {all_types}
  }}
  scf.yield %made#0, %made#1, %made#2 : {all_types}
}}
return %all#0, %all#1, %all#2"""
    results = [Result((count, m, n), torch.float32), Result((count, steps), torch.int32), Result((count,), torch.int32)]
    given = [matrix.reshape(count, m, n), *(torch.zeros(result.shape, dtype=torch.int32) for result in results[1:])]
    lu, pivots, info = compute(given, results, body)
    return lu.reshape(matrix.shape), pivots.reshape(*batch, steps), info.reshape(batch)


def _permute(pivots: torch.Tensor, size: int) -> torch.Tensor:
    """The rows that exchanges bring to each place."""
    *batch, steps = pivots.shape
    count = math.prod(batch)
    given, type = get_type((count, steps), torch.int32), get_type((count, size), torch.int64)
    body = f"""{_constants(zero=0, one=1, count=count, size=size, steps=steps)}
%all = scf.for %b = %zero to %count step %one iter_args(%p0 = %1) -> ({type}) {{
  %made = scf.for %j = %zero to %steps step %one iter_args(%p1 = %p0) -> ({type}) {{
    %number32 = tensor.extract %0[%b, %j] : {given}
    %number = arith.index_cast %number32 : i32 to index
    %is_some = arith.cmpi sge, %number, %one : index
    %is_row = arith.cmpi sle, %number, %size : index
    %is_fine = arith.andi %is_some, %is_row : i1
    cf.assert %is_fine, "pivots require numbers from 1 to {size}, the number of rows"
    %row = arith.subi %number, %one : index
    %x = tensor.extract %p1[%b, %j] : {type}
    %y = tensor.extract %p1[%b, %row] : {type}
    %p2 = tensor.insert %y into %p1[%b, %j] : {type}
    %p3 = tensor.insert %x into %p2[%b, %row] : {type}
    scf.yield %p3 : {type}
  }}
  scf.yield %made : {type}
}}
return %all"""
    start = torch.arange(size).expand(count, size).clone()
    tensors = [pivots.to(torch.int32).reshape(count, steps), start]
    found: torch.Tensor = compute(tensors, [Result((count, size), torch.int64)], body)
    return found.reshape(*batch, size)


def _solve_triangle(
    triangle: torch.Tensor, right: torch.Tensor, upper: bool, is_unit: bool = False, transposed: bool = False
) -> torch.Tensor:
    """What the triangle times it is `right`; what is not of the triangle is not read."""
    if transposed:
        triangle, upper = triangle.mT, not upper
    *batch, n, width = right.shape
    batch = _broadcast(batch, triangle.shape[:-2])
    triangle, right = triangle.expand(*batch, n, n), right.expand(*batch, n, width)
    count = math.prod(batch)
    square, whole = (get_type((count, n, size), torch.float32) for size in (n, width))
    body = f"""{_constants(zero=0, one=1, count=count, n=n, width=width, last=n - 1)}
%all = scf.for %b = %zero to %count step %one iter_args(%x0 = %1) -> ({whole}) {{
  %made = scf.for %step = %zero to %n step %one iter_args(%x1 = %x0) -> ({whole}) {{
    %i = arith.{"subi %last, %step" if upper else "addi %step, %zero"} : index
    %after = arith.addi %i, %one : index
    %x2 = scf.for %k = %{"after" if upper else "zero"} to %{"n" if upper else "i"} step %one iter_args(%s = %x1) -> ({
        whole
    }) {{
      %t = tensor.extract %0[%b, %i, %k] : {square}
      %s1 = scf.for %c = %zero to %width step %one iter_args(%r = %s) -> ({whole}) {{
        %old = tensor.extract %r[%b, %i, %c] : {whole}
        %known = tensor.extract %r[%b, %k, %c] : {whole}
        %product = arith.mulf %t, %known : f32
        %new = arith.subf %old, %product : f32
        %r1 = tensor.insert %new into %r[%b, %i, %c] : {whole}
        scf.yield %r1 : {whole}
      }}
      scf.yield %s1 : {whole}
    }}
    %pivot = {"arith.constant 1.0 : f32" if is_unit else f"tensor.extract %0[%b, %i, %i] : {square}"}
    %x3 = scf.for %c = %zero to %width step %one iter_args(%s = %x2) -> ({whole}) {{
      %old = tensor.extract %s[%b, %i, %c] : {whole}
      %new = arith.divf %old, %pivot : f32
      %s1 = tensor.insert %new into %s[%b, %i, %c] : {whole}
      scf.yield %s1 : {whole}
    }}
    scf.yield %x3 : {whole}
  }}
  scf.yield %made : {whole}
}}
return %all"""
    tensors = [triangle.reshape(count, n, n), right.reshape(count, n, width)]
    found: torch.Tensor = compute(tensors, [Result((count, n, width), torch.float32)], body)
    return found.reshape(*batch, n, width)


# ---- PyTorch's operations


def solve_triangular(
    matrix: torch.Tensor, right: torch.Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """`torch.linalg.solve_triangular`."""
    if not _is_small(matrix, right):
        return NotImplemented
    if left:
        return _solve_triangle(matrix, right, upper, unitriangular)
    return _solve_triangle(matrix, right.mT, upper, unitriangular, transposed=True).mT


def triangular_solve(
    right: torch.Tensor, matrix: torch.Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """`torch.triangular_solve`."""
    if not _is_small(matrix, right):
        return NotImplemented
    result = _solve_triangle(matrix, right, upper, unitriangular, transpose)
    return result, matrix.expand(*result.shape[:-2], *matrix.shape[-2:]).clone()


def lu_factor_ex(matrix: torch.Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """`torch.linalg.lu_factor_ex`."""
    return factor(matrix) if pivot and not check_errors and _is_small(matrix) else NotImplemented


def lu_unpack(lu: torch.Tensor, pivots: torch.Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """`torch.lu_unpack`: the matrix is the product of the three."""
    if not _is_small(lu):
        return NotImplemented
    m, n = lu.shape[-2:]
    size = min(m, n)
    permutation, lower, upper = lu.new_empty(0), lu.new_empty(0), lu.new_empty(0)
    if unpack_pivots:
        permutation = (_permute(pivots, m).unsqueeze(-2) == torch.arange(m).unsqueeze(-1)).to(lu.dtype)
    if unpack_data:
        lower = lu[..., :size].tril(-1) + torch.eye(m, size)
        upper = lu[..., :size, :].triu()
    return permutation, lower, upper


def lu(matrix: torch.Tensor, *, pivot: bool = True) -> Any:
    """`torch.linalg.lu`."""
    return lu_unpack(*factor(matrix)[:2]) if pivot and _is_small(matrix) else NotImplemented


def lu_solve(
    lu: torch.Tensor, pivots: torch.Tensor, right: torch.Tensor, *, left: bool = True, adjoint: bool = False
) -> Any:
    """`torch.linalg.lu_solve`."""
    if not _is_small(lu, right):
        return NotImplemented
    if not left:
        return lu_solve(lu, pivots, right.mT, adjoint=not adjoint).mT
    batch = _broadcast(lu.shape[:-2], right.shape[:-2])
    rows = _permute(pivots, lu.shape[-1]).expand(*batch, -1).unsqueeze(-1)
    right = right.expand(*batch, *right.shape[-2:])
    if not adjoint:
        right = right.gather(-2, rows.expand(right.shape))
        return _solve_triangle(lu, _solve_triangle(lu, right, False, True), True)
    found = _solve_triangle(lu, right, True, transposed=True)
    found = _solve_triangle(lu, found, False, True, transposed=True)
    return torch.zeros_like(found).scatter(-2, rows.expand(found.shape), found)


def inv_ex(matrix: torch.Tensor, *, check_errors: bool = False) -> Any:
    """`torch.linalg.inv_ex`."""
    if check_errors or not _is_small(matrix):
        return NotImplemented
    lu, pivots, info = factor(matrix)
    return lu_solve(lu, pivots, torch.eye(matrix.shape[-1]).expand(matrix.shape)), info


def _find_sign(pivots: torch.Tensor) -> torch.Tensor:
    """Of exchanges."""
    steps = torch.arange(1, pivots.shape[-1] + 1)
    return (1 - 2 * ((pivots != steps).sum(-1) % 2)).to(torch.float32)


def slogdet(matrix: torch.Tensor) -> Any:
    """`torch.linalg.slogdet` where it has no gradient."""
    if not _is_small(matrix):
        return NotImplemented
    lu, pivots, _ = factor(matrix)
    diagonal = lu.diagonal(dim1=-2, dim2=-1)
    return _find_sign(pivots) * diagonal.sign().prod(-1), diagonal.abs().log().sum(-1), lu, pivots


def det(matrix: torch.Tensor) -> Any:
    """`torch.linalg.det` where it has no gradient."""
    if not _is_small(matrix):
        return NotImplemented
    lu, pivots, _ = factor(matrix)
    return _find_sign(pivots) * lu.diagonal(dim1=-2, dim2=-1).prod(-1), lu, pivots


def solve_ex(matrix: torch.Tensor, right: torch.Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """`torch.linalg.solve_ex` where it has no gradient."""
    batch = matrix.shape[:-2]
    is_vector = right.dim() == 1 or right.shape == matrix.shape[:-1]
    columns = right.unsqueeze(-1) if is_vector else right
    if check_errors or not left or not _is_small(matrix, columns):
        return NotImplemented
    lu, pivots, info = factor(matrix)
    result = lu_solve(lu, pivots, columns.expand(*_broadcast(batch, columns.shape[:-2]), -1, -1))
    return result.squeeze(-1) if is_vector else result, lu, pivots, info


def get_linear_algebra_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions of this file that gradients may be of."""
    return {
        aten.linalg_inv_ex.default: inv_ex,
        aten.linalg_lu.default: lu,
        aten.linalg_lu_factor_ex.default: lu_factor_ex,
        aten.linalg_lu_solve.default: lu_solve,
        aten.linalg_solve_triangular.default: solve_triangular,
        aten.lu_unpack.default: lu_unpack,
        aten.triangular_solve.default: triangular_solve,
    }


def get_determinants_table() -> dict[Any, Callable[..., Any]]:
    """Those whose gradients need the factors as PyTorch has them: of the transposed matrix or not, by its layout."""
    return {
        aten._linalg_det.default: det,
        aten._linalg_slogdet.default: slogdet,
        aten._linalg_solve_ex.default: solve_ex,
    }
