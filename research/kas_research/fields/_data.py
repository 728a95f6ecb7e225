# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The equations of the experiments, and batches of their solutions turned by the symmetries of the square."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

import kas.evaluate
from kas.evaluate._task_data import TaskData

from ._relief import relief


@dataclass(frozen=True)
class Kind:
    """An equation whose solutions are data."""

    make: Callable[..., TaskData]
    inputs: int
    """Channels."""
    scalars: int
    """So many of them, the first ones, are fields of numbers, which turn with the square; others are coordinates."""
    symmetric: bool
    """The solution turns with the fields: the eight symmetries of the square."""
    periodic: bool


KINDS: Mapping[str, Kind] = {
    "darcy": Kind(kas.evaluate.darcy, 3, 1, True, False),
    "navier-stokes": Kind(kas.evaluate.navier_stokes, 1, 1, False, True),
    "waves": Kind(kas.evaluate.waves, 2, 2, True, False),
    "relief": Kind(relief, 1, 1, True, False),
}


def turn(fields: torch.Tensor, kind: int) -> torch.Tensor:
    """One of the eight symmetries of the square, of fields `[..., n, n]`."""
    if kind & 1:
        fields = fields.transpose(-2, -1)
    axes = [axis for axis, bit in ((-2, 2), (-1, 4)) if kind & bit]
    return fields.flip(axes) if axes else fields


@dataclass(frozen=True)
class Batches:
    """The loader of `TaskData`: with a generator in random order and, where the equation allows it, turned."""

    kind: Kind
    part: tuple[torch.Tensor, torch.Tensor]
    size: int
    generator: torch.Generator | None

    def __len__(self) -> int:
        count = len(self.part[0])
        size = min(self.size, count)
        return count // size if self.generator is not None else -(-count // size)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        inputs, targets = self.part
        if self.generator is None:
            for start in range(0, len(inputs), self.size):
                yield inputs[start : start + self.size], targets[start : start + self.size]
            return
        order = torch.randperm(len(inputs), generator=self.generator)
        size = min(self.size, len(inputs))
        for start in range(0, len(self) * size, size):
            chosen = order[start : start + size]
            batch = inputs[chosen], targets[chosen]
            yield self.turn(*batch) if self.kind.symmetric else batch

    def turn(self, inputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Each sample by a symmetry of its own. Coordinates stay."""
        kinds = torch.randint(0, 8, (len(inputs),), generator=self.generator)
        for kind in range(1, 8):
            chosen = kinds == kind
            inputs[chosen, : self.kind.scalars] = turn(inputs[chosen, : self.kind.scalars], kind)
            targets[chosen] = turn(targets[chosen], kind)
        return inputs, targets
