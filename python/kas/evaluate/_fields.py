# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fields as data: solutions of differential equations for random coefficients and initial states, made by a seed.

The equations and their random fields are those of Li et al., "Fourier Neural Operator for Parametric Partial
Differential Equations" (ICLR 2021, section 5 and appendix A.3), but for the waves. All of them are solved in float64,
many at once, on grids that are finer than the data.

Data sets are kept in the cache of kas (`kas cache`), since solving takes longer than reading; a file that is damaged is
made again.

Each solver is a function on arrays `[samples, ...]` that is compared with exact solutions in the tests.
"""

from __future__ import annotations

import functools
import hashlib
import io
import math
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .._errors import need

need("torch", "torch")

import numpy
import torch

from .. import _cache
from ._task import Task
from ._task_data import TaskData

Array: TypeAlias = Any
"""A numpy array of float64."""
SAMPLES_AT_ONCE = 64
"""So many are solved together: their fields fit into caches."""


class RelativeError(Task):
    """Fields that are learned by their relative error.

    The loss is the mean over the samples of the L2 norm of the difference from the target over that of the target.
    """

    metric = "relative_error"

    def loss(self, outputs: Any, targets: Any) -> torch.Tensor:
        """The mean relative error of a batch."""
        return get_relative_errors(outputs, targets).mean()

    def metrics(self, outputs: Any, targets: Any) -> dict[str, float | torch.Tensor]:
        """`relative_error`, a share."""
        return {"relative_error": self.loss(outputs, targets)}


def get_relative_errors(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Of each sample: the L2 norm of the difference over that of the target."""
    difference, size = (tensor.flatten(1).norm(dim=1) for tensor in (outputs - targets, targets))
    errors: torch.Tensor = difference / size.clamp_min(1e-12)
    return errors


# ---- Random fields


def _draw_gaussian(generator: numpy.random.Generator, shape: tuple[int, ...], deviation: Callable[[Any], Any]) -> Array:
    """Periodic Gaussian fields `[samples, n, ...]` on the unit torus.

    `deviation` is that of a Fourier mode by `k = (2 pi |m|)^2`; the mean is 0.
    """
    n, axes = shape[1], tuple(range(1, len(shape)))
    modes = numpy.fft.fftfreq(n, 1 / n)
    squares = sum(numpy.meshgrid(*[(2 * numpy.pi * modes) ** 2] * len(axes), indexing="ij"))
    scale = deviation(squares)
    scale[(0,) * len(axes)] = 0
    noise = numpy.fft.fftn(generator.standard_normal(shape), axes=axes)
    # White noise has modes of deviation sqrt(n^d); a field of deviation s in each mode has s * n^d.
    return numpy.real(numpy.fft.ifftn(noise * scale * n ** (len(axes) / 2), axes=axes))


def _draw_between_walls(generator: numpy.random.Generator, samples: int, n: int) -> Array:
    """Gaussian fields `[samples, n, n]` of covariance (-laplacian + 9)^-2 with zero slope at the walls."""
    k = numpy.arange(n)
    squares = numpy.pi**2 * (k[:, None] ** 2 + k[None] ** 2)
    modes = generator.standard_normal((samples, n, n)) * (squares + 9.0) ** -1.0
    modes[:, 0, 0] = 0
    cosines = numpy.sqrt(2) * numpy.cos(numpy.pi * k[:, None] * (k[None] + 0.5) / n)
    cosines[0] = 1
    return cosines.T @ modes @ cosines


# ---- Darcy


def solve_darcy(coefficients: Array, sources: Array | float = 1.0, tolerance: float = 1e-9) -> Array:
    """The solutions `[samples, n, n]` of `-div(a grad u) = f` in the unit square, with `u = 0` at its walls.

    Values are those of cells; between two cells the coefficient is the harmonic mean (finite volumes, order 2 for
    smooth coefficients). By conjugate gradients with the exact inverse of the equation of one coefficient.
    """
    a = numpy.asarray(coefficients, numpy.float64)
    n = a.shape[-1]
    down = 2 / (1 / a[:, 1:] + 1 / a[:, :-1])
    right = 2 / (1 / a[:, :, 1:] + 1 / a[:, :, :-1])

    def apply(u: Array) -> Array:
        result = numpy.zeros_like(u)
        flow = down * (u[:, 1:] - u[:, :-1])
        result[:, 1:] += flow
        result[:, :-1] -= flow
        flow = right * (u[:, :, 1:] - u[:, :, :-1])
        result[:, :, 1:] += flow
        result[:, :, :-1] -= flow
        # The wall is half a cell away.
        for line in (numpy.s_[:, 0], numpy.s_[:, -1], numpy.s_[:, :, 0], numpy.s_[:, :, -1]):
            result[line] += 2 * a[line] * u[line]
        return result

    k = numpy.arange(1, n + 1)
    sines = numpy.sin(numpy.pi * k[:, None] * (numpy.arange(n)[None] + 0.5) / n) * numpy.sqrt(2 / n)
    sines[-1] /= numpy.sqrt(2)
    eigenvalues = 4 * numpy.sin(numpy.pi * k / (2 * n)) ** 2
    both = (eigenvalues[:, None] + eigenvalues[None]) * numpy.sqrt(a.min((1, 2)) * a.max((1, 2)))[:, None, None]

    def precondition(r: Array) -> Array:
        return sines.T @ ((sines @ r @ sines.T) / both) @ sines

    r = numpy.broadcast_to(numpy.asarray(sources, numpy.float64) / n**2, a.shape).copy()
    u, goal = numpy.zeros_like(r), tolerance * numpy.sqrt((r * r).sum((1, 2)))
    z = precondition(r)
    p, product = z, (r * z).sum((1, 2))
    for _ in range(500):
        image = apply(p)
        step = (product / numpy.maximum((p * image).sum((1, 2)), 1e-300))[:, None, None]
        u, r = u + step * p, r - step * image
        if (numpy.sqrt((r * r).sum((1, 2))) <= goal).all():
            return u
        z = precondition(r)
        last, product = product, (r * z).sum((1, 2))
        p = z + (product / numpy.maximum(last, 1e-300))[:, None, None] * p
    raise ValueError(
        f"requires coefficients whose equation is solved in 500 steps, got a ratio of {a.max() / a.min():g}"
    )


def darcy(
    size: int = 32, train: int = 1000, validation: int = 200, test: int = 200, seed: int = 0, high: float = 12.0
) -> TaskData:
    """Flow through a porous square: the pressure `[1, size, size]` for a coefficient that is 3 or `high`.

    Inputs are `[3, size, size]`: the coefficient, normalized, and the two coordinates from -1 to 1, as the walls make
    places differ. Solved on a grid that is twice as fine, and averaged.
    """
    _check(size, [train, validation, test], coefficient=high)
    if high == 3:
        raise ValueError("requires another coefficient than the lower one, 3, got 3")
    places = numpy.linspace(-1, 1, size)
    middle, spread = (high + 3) / 2, (high - 3) / 2

    def make(generator: numpy.random.Generator, samples: int) -> tuple[Array, Array]:
        a = numpy.where(_draw_between_walls(generator, samples, 2 * size) >= 0, high, 3.0)
        grids = numpy.stack(numpy.meshgrid(places, places, indexing="ij"))
        inputs = [((_average(a, 2) - middle) / spread)[:, None], numpy.broadcast_to(grids, (samples, *grids.shape))]
        # A target of some size: the largest pressure is about 0.02.
        return numpy.concatenate(inputs, 1), 100 * _average(solve_darcy(a), 2)[:, None]

    return _build("darcy", (size, high), make, seed, (train, validation, test))


# ---- Periodic equations


def _advance(state: Array, linear: Array, nonlinear: Callable[[Array], Array], time: float, steps: int) -> Array:
    """Fourier modes after `time`, by Runge-Kutta of order 4 with the linear part integrated exactly.

    `linear` is the rate of each mode, `nonlinear` the other part of the time derivative.
    """
    step = time / steps
    half = numpy.exp(linear * step / 2)
    whole = half * half
    for _ in range(steps):
        first = nonlinear(state)
        second = nonlinear(half * (state + step / 2 * first))
        third = nonlinear(half * state + step / 2 * second)
        fourth = nonlinear(whole * state + step * half * third)
        state = whole * state + step / 6 * (whole * first + 2 * half * (second + third) + fourth)
    return state


def solve_burgers(states: Array, viscosity: float = 0.01, time: float = 1.0, steps: int = 200) -> Array:
    """The states `[samples, n]` of `u_t + u u_x = viscosity u_xx` on the unit circle after `time`.

    `steps` must be some `n` times the largest value times `time`, and more.
    """
    n = states.shape[-1]
    k = 2j * numpy.pi * numpy.arange(n // 2 + 1)
    # Products of modes above two thirds would come back as others.
    kept = numpy.arange(n // 2 + 1) <= n // 3

    def nonlinear(modes: Array) -> Array:
        u = numpy.fft.irfft(modes, n)
        return -0.5 * k * kept * numpy.fft.rfft(u * u)

    modes = _advance(numpy.fft.rfft(states) * kept, viscosity * k * k, nonlinear, time, steps)
    return numpy.fft.irfft(modes, n)


def burgers(
    size: int = 128, train: int = 1000, validation: int = 200, test: int = 200, seed: int = 0, viscosity: float = 0.01
) -> TaskData:
    """Burgers' equation on a circle: the state `[1, size]` after a unit of time, for that at the begin.

    Its viscosity is a tenth of that of the paper, where diffusion leaves a fiftieth of the largest wave.
    """

    def make(generator: numpy.random.Generator, samples: int) -> tuple[Array, Array]:
        n = 2 * size
        states = _draw_gaussian(generator, (samples, n), lambda k: 25 / (k + 25))
        return states[:, None, ::2], solve_burgers(states, viscosity, 1.0, 2 * n)[:, None, ::2]

    _check(size, [train, validation, test], 8192, viscosity=viscosity)
    return _build("burgers", (size, viscosity), make, seed, (train, validation, test))


def solve_navier_stokes(
    vorticities: Array, viscosity: float = 1e-3, time: float = 1.0, steps: int = 100, force: bool = True
) -> Array:
    """The vorticity `[samples, n, n]` of an incompressible flow on the unit torus after `time`.

    The force is `0.1 (sin(2 pi (x + y)) + cos(2 pi (x + y)))`, or none.
    """
    n = vorticities.shape[-1]
    rows = 2j * numpy.pi * numpy.fft.fftfreq(n, 1 / n)[:, None]
    columns = 2j * numpy.pi * numpy.arange(n // 2 + 1)[None]
    laplacian = numpy.real(rows * rows + columns * columns)
    inverse = numpy.divide(1.0, laplacian, where=laplacian != 0, out=numpy.zeros_like(laplacian))
    kept = (abs(rows) <= 2 * numpy.pi * (n // 3)) & (abs(columns) <= 2 * numpy.pi * (n // 3))
    x = numpy.arange(n) / n
    angles = 2 * numpy.pi * (x[:, None] + x[None])
    pushed = numpy.fft.rfft2(0.1 * (numpy.sin(angles) + numpy.cos(angles))) if force else 0.0

    def back(modes: Array) -> Array:
        return numpy.fft.irfft2(modes, (n, n))

    def nonlinear(modes: Array) -> Array:
        stream = -inverse * modes
        advected = back(columns * stream) * back(rows * modes) - back(rows * stream) * back(columns * modes)
        return pushed - kept * numpy.fft.rfft2(advected)

    modes = _advance(numpy.fft.rfft2(vorticities) * kept, viscosity * laplacian, nonlinear, time, steps)
    return back(modes)


def navier_stokes(
    size: int = 32, train: int = 1000, validation: int = 200, test: int = 200, seed: int = 0, viscosity: float = 1e-3
) -> TaskData:
    """A flow on the torus: the vorticity `[1, size, size]` five units of time after that at the begin."""

    def make(generator: numpy.random.Generator, samples: int) -> tuple[Array, Array]:
        shape = (samples, 2 * size, 2 * size)
        states = _draw_gaussian(generator, shape, lambda k: 7**1.5 * (k + 49) ** -1.25)
        return states[:, None, ::2, ::2], solve_navier_stokes(states, viscosity, 5.0, 100)[:, None, ::2, ::2]

    _check(size, [train, validation, test], viscosity=viscosity)
    return _build("navier-stokes", (size, viscosity), make, seed, (train, validation, test))


# ---- Waves


def solve_waves(states: Array, speeds: Array, time: float, steps: int) -> Array:
    """Waves `u_tt = c^2 laplacian u` at rest at the begin, in the unit square, with `u = 0` at its walls.

    `states` and `speeds` are `[samples, n, n]`, values of cells. By leapfrog, of order 2; `steps` must be so many that
    a wave passes less than 0.7 cells in each.
    """
    n = states.shape[-1]
    scale = (speeds * time / steps * n) ** 2
    if scale.max() > 0.5:
        raise ValueError(f"requires steps in which waves pass at most 0.7 cells, got {numpy.sqrt(scale.max()):.2g}")

    def apply(u: Array) -> Array:
        # Beyond a wall there is the mirror image with the other sign.
        padded = numpy.pad(u, ((0, 0), (1, 1), (1, 1)))
        padded[:, 0, 1:-1], padded[:, -1, 1:-1] = -u[:, 0], -u[:, -1]
        padded[:, 1:-1, 0], padded[:, 1:-1, -1] = -u[:, :, 0], -u[:, :, -1]
        neighbors = padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]
        return scale * (neighbors - 4 * u)

    last = numpy.asarray(states, numpy.float64)
    now = last + 0.5 * apply(last)
    for _ in range(steps - 1):
        last, now = now, 2 * now - last + apply(now)
    return now


def waves(size: int = 32, train: int = 1000, validation: int = 200, test: int = 200, seed: int = 0) -> TaskData:
    """Scattering: the wave `[1, size, size]` that a pulse has become in a square of two random speeds, 1 and 2.

    Inputs are `[2, size, size]`: the speeds, normalized, and the pulse, whose place is random.
    """

    def make(generator: numpy.random.Generator, samples: int) -> tuple[Array, Array]:
        n = 4 * size
        speeds = numpy.where(_draw_between_walls(generator, samples, n) >= 0, 2.0, 1.0)
        x = (numpy.arange(n) + 0.5) / n
        middle = generator.uniform(0.25, 0.75, (2, samples, 1, 1))
        pulses = numpy.exp(-((x[:, None] - middle[0]) ** 2 + (x[None] - middle[1]) ** 2) / (2 * 0.07**2))
        after = solve_waves(pulses, speeds, 0.3, 2 * n)
        return numpy.stack([_average(2 * speeds - 3, 4), _average(pulses, 4)], 1), _average(after, 4)[:, None]

    _check(size, [train, validation, test])
    return _build("waves", (size,), make, seed, (train, validation, test))


# ---- What all have in common


def _check(size: int, counts: Sequence[int], most: int = 512, **positive: float) -> None:
    """Raises `ValueError` for data that cannot be made, or not in memory: 64 samples of size 512 take gigabytes."""
    if isinstance(size, bool) or not isinstance(size, int) or not 4 <= size <= most:
        raise ValueError(f"requires a size from 4 to {most}, got {size!r}")
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"requires at least a sample for each part, got {count!r}")
    for name, value in positive.items():
        if not 0 < value < math.inf:
            raise ValueError(f"requires a positive {name}, got {value!r}")


def _average(fields: Array, factor: int) -> Array:
    """Means of squares of `factor` cells."""
    samples, rows, columns = fields.shape
    return fields.reshape(samples, rows // factor, factor, columns // factor, factor).mean((2, 4))


def _build(
    equation: str,
    settings: tuple[float, ...],
    make: Callable[[numpy.random.Generator, int], tuple[Array, Array]],
    seed: int,
    counts: tuple[int, int, int],
) -> TaskData:
    """The data set in float32, from the cache or made."""
    key = _cache.make_data_key(_digest_source(), repr((equation, settings, seed, sum(counts))))
    arrays = _unpack(_cache.load_bytes(key))
    if arrays is None:
        arrays = _make(equation, make, seed, sum(counts))
        _cache.store_bytes(key, _pack(arrays))
    name = "-".join([equation, *(f"{value:g}" for value in (*settings, seed))])
    ends = numpy.cumsum(counts)[:-1]
    train, validation, test = zip(*(map(torch.from_numpy, numpy.split(array, ends)) for array in arrays))
    return TaskData(name, train, validation, test, task=RelativeError())


def _make(
    equation: str, make: Callable[[numpy.random.Generator, int], tuple[Array, Array]], seed: int, samples: int
) -> list[Array]:
    """Inputs and targets, each block of samples by a generator of its own: more samples begin with the same."""
    parts = []
    for block, start in enumerate(range(0, samples, SAMPLES_AT_ONCE)):
        generator = numpy.random.default_rng([seed, block, *equation.encode()])
        inputs, targets = make(generator, SAMPLES_AT_ONCE)
        parts.append((inputs[: samples - start], targets[: samples - start]))
    inputs, targets = (numpy.concatenate(side).astype(numpy.float32) for side in zip(*parts))
    if not numpy.isfinite(targets).all():
        raise ValueError(
            "requires settings that the steps of the solver are small enough for, got values that are not finite"
        )
    return [inputs, targets]


@functools.cache
def _digest_source() -> str:
    """Of this file: data of other solvers are other data."""
    return hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()


def _pack(arrays: Sequence[Array]) -> bytes:
    stream = io.BytesIO()
    for array in arrays:
        numpy.save(stream, array)
    return stream.getvalue()


def _unpack(content: bytes | None) -> list[Array] | None:
    """The arrays of `_pack`, whose bytes the cache has checked."""
    if content is None:
        return None
    stream = io.BytesIO(content)
    return [numpy.load(stream, allow_pickle=False) for _ in range(2)]
