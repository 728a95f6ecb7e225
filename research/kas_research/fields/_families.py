# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks from fields to fields: families of layers in one residual trunk, and a U-Net."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

LAYERS = 4
"""Of the trunk; a dilated family has windows of 1, 2, 4 and 8 cells between their points."""
GROUPS = 4
"""Of channels, with weights of their own along each axis; widths are multiples of it."""
WIDTH_STEP = 4


@dataclass(frozen=True)
class Grid:
    """The fields that a network maps."""

    inputs: int
    outputs: int
    size: int
    """Points along both axes."""
    periodic: bool
    """Else there are walls: windows read zeros there, and Fourier modes have a period that is an eighth longer."""

    @property
    def period(self) -> int:
        """That of Fourier modes, in points."""
        return self.size if self.periodic else self.size + self.size // 8


def _window(grid: Grid, inputs: int, outputs: int, size: int, dilation: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution that keeps the grid; without bias where another layer follows."""
    return nn.Conv2d(
        inputs,
        outputs,
        size,
        padding=size // 2 * dilation,
        dilation=dilation,
        groups=groups,
        bias=groups == 1,
        padding_mode="circular" if grid.periodic else "zeros",
    )


def _separable(width: int, grid: Grid, size: int, dilation: int = 1) -> nn.Module:
    """A window for each channel, then a 1x1 convolution."""
    return nn.Sequential(_window(grid, width, width, size, dilation, width), nn.Conv2d(width, width, 1))


class _LargeKernelAttention(nn.Module):
    """Windows for each channel that cover 23x23 points, by which the input is multiplied.

    Guo et al., "Visual Attention Network", Computational Visual Media 2023.
    """

    def __init__(self, width: int, grid: Grid):
        super().__init__()
        self.before = nn.Conv2d(width, width, 1)
        self.near = _window(grid, width, width, 5, 1, width)
        self.far = _window(grid, width, width, 7, 3, width)
        self.mix = nn.Conv2d(width, width, 1)
        self.after = nn.Conv2d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.gelu(self.before(x))
        y: torch.Tensor = self.after(x * self.mix(self.far(self.near(x))))
        return y


class _Axial(nn.Module):
    """Full mixing along each axis, with weights by position that groups of channels share, then a 1x1 convolution."""

    def __init__(self, width: int, grid: Grid):
        super().__init__()
        shape = GROUPS, grid.size, grid.size
        self.rows = nn.Parameter(torch.randn(shape) * grid.size**-0.5)
        self.columns = nn.Parameter(torch.randn(shape) * grid.size**-0.5)
        self.mix = nn.Conv2d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, width, size, _ = x.shape
        y = x.reshape(batch, GROUPS, width // GROUPS * size, size) @ self.columns
        y = self.rows[:, None] @ y.reshape(batch, GROUPS, width // GROUPS, size, size)
        mixed: torch.Tensor = self.mix(y.reshape(x.shape))
        return mixed


class _Spectral(nn.Module):
    """Layers that multiply Fourier modes by complex matrices over channels.

    `weights` are `[2, modes, width, width]`: real and imaginary parts. `by_matrix`: transforms are products with their
    matrices instead of fast ones, which is faster for few modes; the values are the same but for rounding. There
    complex numbers are pairs of real ones, and complex matrices real ones of twice the size.
    """

    by_matrix = False
    axes = 1
    lines: torch.Tensor
    """Of the lowest modes along lines, `[2 * modes, points]`: real parts, then imaginary ones."""
    rows: torch.Tensor
    """Of the lowest modes of both signs along rows, as a real matrix `[2 * 2 * modes, 2 * points]`."""
    twice: torch.Tensor
    """For the way back: a real signal has each mode twice but the first."""

    def __init__(self, width: int, grid: Grid, modes: int, matrices: int):
        super().__init__()
        if 2 * modes > grid.period:
            raise ValueError(f"requires at most {grid.period // 2} modes of a grid of {grid.size} points, got {modes}")
        self.modes, self.period = modes, grid.period
        self.weights = nn.ParameterList(
            nn.Parameter(torch.randn(2, matrices, width, width) * (2 * width) ** -0.5) for _ in range(self.axes)
        )
        k = torch.arange(modes, dtype=torch.float64)
        for name, matrix in (
            ("lines", torch.cat(_transform(k, grid))),
            ("rows", _as_real(*_transform(torch.cat([k, k - modes]), grid))),
            ("twice", torch.where(k > 0, 2.0, 1.0)),
        ):
            self.register_buffer(name, matrix.float(), persistent=False)


def _transform(modes: torch.Tensor, grid: Grid) -> tuple[torch.Tensor, torch.Tensor]:
    """The real and imaginary parts of `exp(-2 pi i k x / period) / sqrt(period)`, each `[modes, points]`."""
    angles = 2 * math.pi / grid.period * modes[:, None] * torch.arange(grid.size, dtype=torch.float64)
    return angles.cos() / grid.period**0.5, -angles.sin() / grid.period**0.5


def _as_real(real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
    """Complex matrices `[..., rows, columns]` as real ones that multiply pairs from the left."""
    return torch.cat([torch.cat([real, -imaginary], -1), torch.cat([imaginary, real], -1)], -2)


def _mix(pairs: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """`[modes, ..., 2 * inputs]` by complex matrices `[2, modes, inputs, outputs]`."""
    transposed = _as_real(weights[0].transpose(1, 2), weights[1].transpose(1, 2))
    return torch.bmm(pairs, transposed.transpose(1, 2))


class _Fourier(_Spectral):
    """The lowest modes of both axes, and a 1x1 convolution beside them.

    Li et al., "Fourier Neural Operator for Parametric Partial Differential Equations", ICLR 2021.
    """

    def __init__(self, width: int, grid: Grid, modes: int):
        super().__init__(width, grid, modes, 2 * modes * modes)
        self.beside = nn.Conv2d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = self._by_matrices(x) if self.by_matrix else self._by_fft(x)
        y: torch.Tensor = mixed + self.beside(x)
        return y

    def _by_fft(self, x: torch.Tensor) -> torch.Tensor:
        m, n, size = self.modes, self.period, x.shape[-1]
        f = torch.fft.rfft2(x, s=(n, n), norm="ortho")
        kept = torch.cat([f[:, :, :m, :m], f[:, :, -m:, :m]], 2)
        weights = torch.complex(self.weights[0][0], self.weights[0][1]).reshape(2 * m, m, *self.weights[0].shape[2:])
        mixed = torch.einsum("bcxy,xycd->bdxy", kept, weights)
        y = torch.zeros(*x.shape[:2], n, n // 2 + 1, dtype=f.dtype)
        y[:, :, :m, :m], y[:, :, -m:, :m] = mixed[:, :, :m], mixed[:, :, m:]
        values: torch.Tensor = torch.fft.irfft2(y, s=(n, n), norm="ortho")[..., :size, :size]
        return values

    def _by_matrices(self, x: torch.Tensor) -> torch.Tensor:
        batch, width, size, _ = x.shape
        m = self.modes
        # Pairs are with the rows: [batch, width, 2 * rows, modes of columns], then they precede the channels.
        f = (x @ self.lines.T).reshape(batch, width, size, 2, m).permute(0, 1, 3, 2, 4)
        f = self.rows @ f.reshape(batch, width, 2 * size, m)
        f = f.reshape(batch, width, 2, 2 * m * m).permute(3, 0, 2, 1).reshape(2 * m * m, batch, 2 * width)
        f = _mix(f, self.weights[0]).reshape(2 * m * m, batch, 2, width).permute(1, 3, 2, 0)
        # The transposed real matrix has the conjugates of the way back.
        f = (self.rows.T @ f.reshape(batch, width, 4 * m, m)).reshape(batch, width, 2, size, m) * self.twice
        return f.permute(0, 1, 3, 2, 4).reshape(batch, width, size, 2 * m) @ self.lines


class _FactorizedFourier(_Spectral):
    """The lowest modes of each axis alone, added, then a 1x1 convolution: mixing of low rank along each axis.

    Tran et al., "Factorized Fourier Neural Operators", ICLR 2023.
    """

    axes = 2

    def __init__(self, width: int, grid: Grid, modes: int):
        super().__init__(width, grid, modes, modes)
        self.mix = nn.Conv2d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        along = self._by_matrices if self.by_matrix else self._by_fft
        y: torch.Tensor = along(x, self.weights[0]) + along(x.transpose(2, 3), self.weights[1]).transpose(2, 3)
        y = self.mix(y)
        return y

    def _by_fft(self, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        kept = torch.fft.rfft(x, n=self.period, norm="ortho")[..., : self.modes]
        mixed = torch.einsum("bchx,xcd->bdhx", kept, torch.complex(weights[0], weights[1]))
        values: torch.Tensor = torch.fft.irfft(mixed, n=self.period, norm="ortho")[..., : x.shape[-1]]
        return values

    def _by_matrices(self, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        batch, width, size, _ = x.shape
        m = self.modes
        f = (x @ self.lines.T).reshape(batch, width, size, 2, m).permute(4, 0, 2, 3, 1)
        f = _mix(f.reshape(m, batch * size, 2 * width), weights)
        f = f.reshape(m, batch, size, 2, width).permute(1, 4, 2, 3, 0) * self.twice
        return f.reshape(batch, width, size, 2 * m) @ self.lines


Factory = Callable[[int, int, Grid], nn.Module]
"""Makes the layer of a width at a depth of the trunk."""

_FACTORIES: Mapping[str, Factory] = {
    "pointwise": lambda width, depth, grid: nn.Conv2d(width, width, 1),
    "dense": lambda width, depth, grid: _window(grid, width, width, 3),
    "dilated": lambda width, depth, grid: _window(grid, width, width, 3, 2**depth),
    "depthwise-3": lambda width, depth, grid: _separable(width, grid, 3),
    "depthwise-7": lambda width, depth, grid: _separable(width, grid, 7),
    "depthwise-dilated": lambda width, depth, grid: _separable(width, grid, 3, 2**depth),
    "large-kernel-attention": lambda width, depth, grid: _LargeKernelAttention(width, grid),
    "axial": lambda width, depth, grid: _Axial(width, grid),
    "low-rank-axial": lambda width, depth, grid: _FactorizedFourier(width, grid, 8),
    **{
        f"fno-{modes}": functools.partial(lambda width, depth, grid, modes: _Fourier(width, grid, modes), modes=modes)
        for modes in (4, 8, 12)
    },
}

FAMILIES = (*_FACTORIES, "unet")
EXPRESSIBLE = frozenset(["pointwise", "dense", "dilated", "depthwise-3", "depthwise-7", "depthwise-dilated", "axial"])
"""Those whose layer is an operator, or a sequence of operators, of kas; the others add or multiply two branches, have
fixed weights or several grids."""


class _Block(nn.Module):
    """Normalization and nonlinearity of a layer."""

    def __init__(self, layer: nn.Module, width: int):
        super().__init__()
        self.layer, self.norm = layer, nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.gelu(self.norm(self.layer(x)))


class Network(nn.Module):
    """A 1x1 stem, what is derived, and a head of two 1x1 convolutions.

    Outputs are `middle + spread * head`, the statistics of the targets for training: the mean at each point, and one
    deviation.
    """

    middle: torch.Tensor
    spread: torch.Tensor

    def __init__(self, width: int, grid: Grid):
        super().__init__()
        self.stem = nn.Conv2d(grid.inputs, width, 1)
        self.head = nn.Sequential(nn.Conv2d(width, width, 1), nn.GELU(), nn.Conv2d(width, grid.outputs, 1))
        self.register_buffer("middle", torch.zeros(1, grid.outputs, grid.size, grid.size))
        self.register_buffer("spread", torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.middle + self.spread * self.head(self.transform(self.stem(x)))
        return y

    def transform(self, x: torch.Tensor) -> torch.Tensor:
        """From the stem to the head."""
        raise NotImplementedError


class _Residual(Network):
    """Layers of one kind, each beside what it gets."""

    def __init__(self, factory: Factory, width: int, grid: Grid):
        super().__init__(width, grid)
        self.blocks = nn.ModuleList(_Block(factory(width, depth, grid), width) for depth in range(LAYERS))

    def transform(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


class _UNet(Network):
    """Four grids, each half as fine and twice as wide as the one before, with two 3x3 windows on each way.

    Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation", MICCAI 2015.
    """

    def __init__(self, width: int, grid: Grid):
        super().__init__(width, grid)
        widths = [width * 2**level for level in range(4)]

        def pair(inputs: int, outputs: int) -> nn.Module:
            first, second = (_window(grid, count, outputs, 3) for count in (inputs, outputs))
            return nn.Sequential(_Block(first, outputs), _Block(second, outputs))

        self.down = nn.ModuleList(pair(width if level == 0 else widths[level - 1], widths[level]) for level in range(4))
        self.up = nn.ModuleList(pair(widths[level] + widths[level + 1], widths[level]) for level in range(3))

    def transform(self, x: torch.Tensor) -> torch.Tensor:
        kept: list[torch.Tensor] = []
        for level, pair in enumerate(self.down):
            x = pair(functional.avg_pool2d(x, 2) if level else x)
            kept.append(x)
        for level in (2, 1, 0):
            x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = self.up[level](torch.cat([kept[level], x], 1))
        return x


def make_network(family: str, width: int, grid: Grid, seed: int = 0, factory: Factory | None = None) -> Network:
    """A network of the family, or with the layers of a factory, with initial weights by the seed."""
    if factory is None and family not in FAMILIES:
        raise ValueError(f"requires a family of {', '.join(FAMILIES)}, got '{family}'")
    if width < WIDTH_STEP or width % WIDTH_STEP:
        raise ValueError(f"requires a width that is a multiple of {WIDTH_STEP}, got {width}")
    if factory is None and family == "unet" and grid.size % 8:
        raise ValueError(f"requires a size that is a multiple of 8 of a unet, got {grid.size}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if factory is None and family == "unet":
            return _UNet(width, grid)
        return _Residual(factory or _FACTORIES[family], width, grid)


def set_statistics(network: Network, targets: torch.Tensor) -> None:
    """Lets the outputs have the mean and the deviation of targets."""
    network.middle.copy_(targets.mean(0, keepdim=True))
    network.spread.copy_((targets - network.middle).std())


def set_by_matrix(network: nn.Module, by_matrix: bool) -> bool:
    """Chooses how Fourier transforms are computed. Whether there are any."""
    layers = [module for module in network.modules() if isinstance(module, _Spectral)]
    for layer in layers:
        layer.by_matrix = by_matrix
    return bool(layers)
