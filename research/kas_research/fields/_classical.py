# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Solvers of the equations beside networks: the cheapest settings with which one has at most a network's error.

The solvers are those that make the data (`kas.evaluate`), on coarser grids, with larger tolerances and fewer steps.
They get what the networks get, the fields of the data, and what they give is brought to the grid of the data.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy
import torch
from torch.nn import functional

from kas.evaluate._fields import get_relative_errors, solve_darcy, solve_navier_stokes

from ._protocol import Equation

Array: TypeAlias = Any
COARSEST = 4
"""Points along an axis."""
TOLERANCES = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-6)
"""Of conjugate gradients, relative to the source."""
STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 32)
"""Of Runge-Kutta, for five units of time."""
FLOW_TIME = 5.0


class Solver(NamedTuple):
    """A solver with settings, as a function of the inputs of networks `[samples, channels, n, n]`."""

    name: str
    run: Callable[[Array], Array]
    """The outputs `[samples, 1, n, n]`."""


def resample(fields: Array, size: int, periodic: bool) -> Array:
    """Fields `[..., n, n]` on another grid: by Fourier modes on a torus, else by means or lines between cells."""
    n = fields.shape[-1]
    if size == n:
        return fields
    if periodic:
        return _resample_modes(fields, size)
    if n % size == 0:
        factor = n // size
        return fields.reshape(*fields.shape[:-2], size, factor, size, factor).mean((-3, -1))
    flat = torch.from_numpy(numpy.ascontiguousarray(fields)).reshape(1, -1, n, n)
    found = functional.interpolate(flat, (size, size), mode="bilinear", align_corners=False)
    return found.numpy().reshape(*fields.shape[:-2], size, size)


def _resample_modes(fields: Array, size: int) -> Array:
    n = fields.shape[-1]
    kept = (min(n, size) - 1) // 2
    modes = numpy.fft.rfft2(fields)
    found = numpy.zeros((*fields.shape[:-2], size, size // 2 + 1), complex)
    found[..., : kept + 1, : kept + 1] = modes[..., : kept + 1, : kept + 1]
    found[..., -kept:, : kept + 1] = modes[..., -kept:, : kept + 1]
    return numpy.fft.irfft2(found * (size / n) ** 2, (size, size))


def list_solvers(equation: Equation, size: int) -> list[Solver]:
    """Settings for fields of a size, on grids of a quarter to twice of it. Raises `ValueError` without a solver."""
    name = equation.kind_name or equation.name
    if name not in _LISTS:
        raise ValueError(f"requires an equation with a solver, {' or '.join(_LISTS)}, got '{equation.name}'")
    return _LISTS[name](equation, size)


def _list_darcy(equation: Equation, size: int) -> list[Solver]:
    high = 12.0 if equation.high is None else equation.high

    def make(grid: int, tolerance: float) -> Solver:
        def run(inputs: Array) -> Array:
            coefficients = (high + 3) / 2 + (high - 3) / 2 * inputs[:, 0].astype(numpy.float64)
            found = 100 * solve_darcy(resample(coefficients, grid, False), tolerance=tolerance)
            return resample(found, size, False)[:, None]

        return Solver(f"{grid}x{grid}, tolerance {tolerance:g}", run)

    grids = [grid for grid in (size // 4, size // 2, size) if grid >= COARSEST]
    return [make(grid, tolerance) for grid in grids for tolerance in TOLERANCES]


def _list_navier_stokes(equation: Equation, size: int) -> list[Solver]:
    def make(grid: int, steps: int) -> Solver:
        def run(inputs: Array) -> Array:
            states = resample(inputs[:, 0].astype(numpy.float64), grid, True)
            return resample(solve_navier_stokes(states, time=FLOW_TIME, steps=steps), size, True)[:, None]

        return Solver(f"{grid}x{grid}, {steps} steps", run)

    grids = [grid for grid in (size // 4, size // 2, size, 2 * size) if grid >= COARSEST]
    return [make(grid, steps) for grid in grids for steps in STEPS]


_LISTS: Mapping[str, Callable[[Equation, int], list[Solver]]] = {
    "darcy": _list_darcy,
    "navier-stokes": _list_navier_stokes,
}


def get_error(outputs: Array, targets: torch.Tensor) -> float:
    """The mean relative error, in percent; infinite where an output is no finite number."""
    found = torch.from_numpy(numpy.ascontiguousarray(outputs)).double()
    error = 100 * float(get_relative_errors(found, targets.double()).mean())
    return error if numpy.isfinite(error) else float("inf")


class Trial(NamedTuple):
    """What a solver does on some fields."""

    solver: Solver
    error: float
    """The mean relative one, in percent; infinite where steps are too large for a flow."""
    seconds: float
    """Of a call, which says what is worth timing."""


def try_solvers(solvers: Sequence[Solver], inputs: torch.Tensor, targets: torch.Tensor) -> list[Trial]:
    """All of them on the same fields."""
    found = []
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for solver in solvers:
            start = time.perf_counter()
            outputs = solver.run(inputs.numpy())
            found.append(Trial(solver, get_error(outputs, targets), time.perf_counter() - start))
    return found
