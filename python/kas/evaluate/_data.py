# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A data set in memory, with its augmentation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from .._errors import need

need("torch", "torch")

import torch
from torch.nn import functional

Split = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Data:
    """A data set for classification in memory: inputs `[examples, ...]` f32 and classes `[examples]` int64.

    Candidates are trained on `train` and chosen by `validation`; `test` is for what is reported at the end.
    """

    name: str
    train: Split
    validation: Split
    test: Split
    num_classes: int
    augmentation: str = "none"
    """"none", "flip": random horizontal flips, or "crop_flip": also random crops of images padded by an eighth."""

    def __post_init__(self) -> None:
        shape = None
        for name in ("train", "validation", "test"):
            split = getattr(self, name)
            if not isinstance(split, (tuple, list)) or len(split) != 2:
                raise TypeError(f"'{name}' must be a pair of inputs and classes, got {type(split).__name__}")
            inputs, classes = split
            if not isinstance(inputs, torch.Tensor) or not isinstance(classes, torch.Tensor):
                raise TypeError(f"'{name}' must hold torch tensors; make them by torch.as_tensor")
            if len(inputs) == 0 or classes.shape != inputs.shape[:1]:
                raise ValueError(
                    f"'{name}' must have at least one input and a class for each, "
                    f"got inputs of shape {tuple(inputs.shape)} and classes of shape {tuple(classes.shape)}"
                )
            if not inputs.dtype.is_floating_point or classes.dtype != torch.int64:
                raise TypeError(
                    f"'{name}' must have float inputs and int64 classes, got {inputs.dtype} and {classes.dtype}"
                )
            if num_bad := int((~torch.isfinite(inputs)).sum()):
                raise ValueError(f"'{name}' must have finite inputs, got {num_bad} numbers that are infinite or NaN")
            if int(classes.min()) < 0 or int(classes.max()) >= self.num_classes:
                raise ValueError(
                    f"'{name}' must have classes from 0 to {self.num_classes - 1}, "
                    f"got {int(classes.min())} to {int(classes.max())}"
                )
            shape = shape or inputs.shape[1:]
            if inputs.shape[1:] != shape:
                raise ValueError(f"'{name}' must have inputs of shape {tuple(shape)}, got {tuple(inputs.shape[1:])}")
        if self.augmentation not in ("none", "flip", "crop_flip"):
            raise ValueError(f"the augmentation must be 'none', 'flip' or 'crop_flip', got {self.augmentation!r}")

    def checksum(self) -> str:
        """32 digits (SHA-256) of shapes, inputs and classes of all parts: results on other data are not compared."""
        digest = hashlib.sha256()
        for split in (self.train, self.validation, self.test):
            for tensor in split:
                digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
                digest.update(tensor.contiguous().cpu().numpy().data)
        return digest.hexdigest()[:32]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input, without the examples."""
        return tuple(self.train[0].shape[1:])

    def to(self, device: str | torch.device) -> Data:
        """The same on a device."""

        def move(split: Split) -> Split:
            return split[0].to(device), split[1].to(device)

        return Data(
            self.name, move(self.train), move(self.validation), move(self.test), self.num_classes, self.augmentation
        )

    def count(self, part: Split) -> int:
        """The number of examples of a part."""
        return len(part[0])

    def describe(self) -> str:
        """The name and the sizes of the parts."""
        return f"{self.name} {len(self.train[0])}/{len(self.validation[0])}/{len(self.test[0])}"

    @property
    def example(self) -> torch.Tensor:
        """The first input of `train`, as a batch of one."""
        return self.train[0][:1]

    def num_batches(self, size: int) -> int:
        """How many batches an epoch has."""
        return len(self.train[0]) // min(size, len(self.train[0]))

    def in_order(self, part: Split, size: int) -> Iterator[Split]:
        """All examples of a part, for evaluation."""
        for start in range(0, len(part[0]), size):
            yield part[0][start : start + size], part[1][start : start + size]

    def batches(self, size: int, generator: torch.Generator) -> Iterator[Split]:
        """One pass over the training set in random order, without what is left of it after the last whole batch."""
        inputs, classes = self.train
        size = min(size, len(inputs))
        order = torch.randperm(len(inputs), generator=generator)
        for start in range(0, len(inputs) - size + 1, size):
            chosen = order[start : start + size].to(inputs.device)
            batch = inputs[chosen]
            if self.augmentation == "flip":
                batch = _flip(batch, generator)
            elif self.augmentation == "crop_flip":
                batch = _crop_and_flip(batch, generator)
            yield batch, classes[chosen]


def _flip(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    flips = torch.rand(len(images), generator=generator).to(images.device) < 0.5
    return torch.where(flips[:, None, None, None], images.flip(3), images)


def _crop_and_flip(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    count, _, height, width = images.shape
    pad = max(1, height // 8)
    padded = functional.pad(images, (pad, pad, pad, pad))
    tops, lefts = torch.randint(0, 2 * pad + 1, (2, count), generator=generator).to(images.device)
    rows = tops[:, None] + torch.arange(height, device=images.device)
    columns = lefts[:, None] + torch.arange(width, device=images.device)
    flips = torch.rand(count, generator=generator).to(images.device) < 0.5
    columns = torch.where(flips[:, None], columns.flip(1), columns)
    picked = padded.permute(0, 2, 3, 1)[
        torch.arange(count, device=images.device)[:, None, None], rows[:, :, None], columns[:, None, :]
    ]
    return picked.permute(0, 3, 1, 2).contiguous()
