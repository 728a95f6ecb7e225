# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data of any task: tensors of any types and shapes, map-style datasets, loaders of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from .._errors import need

need("torch", "torch")

import torch
from torch.utils.data import default_collate

from ._task import Task, count_examples, describe_shapes, map_tensors

Part: TypeAlias = Any
"""A pair of inputs and targets, each a tensor or a tuple of tensors, or a map-style dataset of such pairs."""
Loader: TypeAlias = Callable[[Part, int, torch.Generator | None], Iterable[tuple[Any, Any]]]
"""Of a part, a size of batches and, for training, the generator of the order: batches, with a length."""


def is_pair(part: Part) -> bool:
    """Whether a part is a pair of inputs and targets in memory."""
    return isinstance(part, (tuple, list)) and len(part) == 2 and all(_is_tensors(one) for one in part)


def _is_tensors(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return bool(value) and all(isinstance(one, torch.Tensor) for one in value)
    return isinstance(value, torch.Tensor)


@dataclass(frozen=True)
class TaskData:
    """Data of any task, beside a `kas.evaluate.Task`.

    Each part is a pair of inputs and targets with as many entries, tensors of any types and shapes (or tuples of such,
    for networks of several arguments), or a map-style dataset: `len(part)`, and `part[i]` is a pair of one input and
    its target. Candidates are trained on `train` and chosen by `validation`; `test` is for what is reported at the end.

    `loader(part, batch_size, generator)` gives other batches, pairs of inputs and targets, in something with a length,
    such as a `torch.utils.data.DataLoader`. With a generator that is an epoch of training, in a random order by it;
    with None an evaluation of all examples in their order. By default epochs have no rest that fills no batch.

    `name` is in the settings of search databases, with the sizes of the parts: other data need another name. `task` is
    what is trained for where no other one is given.
    """

    name: str
    train: Part
    validation: Part
    test: Part
    loader: Loader | None = None
    task: Task | None = None

    def __post_init__(self) -> None:
        for name in ("train", "validation", "test"):
            part = getattr(self, name)
            if is_pair(part):
                sizes = {len(one) for side in part for one in (side if isinstance(side, (tuple, list)) else [side])}
                if len(sizes) != 1 or 0 in sizes:
                    raise ValueError(
                        f"'{name}' must have at least one input and a target for each, got inputs of shape "
                        f"{describe_shapes(part[0])} and targets of shape {describe_shapes(part[1])}"
                    )
            elif isinstance(part, (tuple, list)) or not isinstance(part, Sized) or not hasattr(part, "__getitem__"):
                raise TypeError(
                    f"'{name}' must be a pair of tensors or a dataset with len() and [], got {type(part).__name__}"
                )
            elif len(part) == 0:
                raise ValueError(f"'{name}' must have at least one example, got none")
        if self.loader is not None and not callable(self.loader):
            raise TypeError(f"the loader must be a function, got {type(self.loader).__name__}")
        if self.task is not None and not isinstance(self.task, Task):
            raise TypeError(f"the task must be a kas.evaluate.Task, got {type(self.task).__name__}")

    def count(self, part: Part) -> int:
        """The number of examples of a part."""
        return count_examples(part[0]) if is_pair(part) else len(part)

    def describe(self) -> str:
        """The name and the sizes of the parts."""
        return f"{self.name} {'/'.join(str(self.count(part)) for part in (self.train, self.validation, self.test))}"

    @property
    def example(self) -> Any:
        """The first input of `train`, as a batch of one."""
        return next(iter(self.in_order(self.train, 1)))[0]

    def to(self, device: str | torch.device) -> TaskData:
        """The same with what is in memory on a device; datasets stay, their batches are moved."""
        if self.loader is not None:
            return self
        parts = {
            name: map_tensors(lambda tensor: tensor.to(device), part)
            for name in ("train", "validation", "test")
            if is_pair(part := getattr(self, name))
        }
        return replace(self, **parts)

    def num_batches(self, size: int) -> int:
        """How many batches an epoch has."""
        if self.loader is None:
            return self.count(self.train) // min(size, self.count(self.train))
        batches = self.loader(self.train, size, torch.Generator())
        if not isinstance(batches, Sized) or len(batches) == 0:
            raise ValueError(
                "requires batches with a length of at least 1 of the loader, got "
                f"{'none' if isinstance(batches, Sized) else type(batches).__name__}"
            )
        return len(batches)

    def batches(self, size: int, generator: torch.Generator) -> Iterator[tuple[Any, Any]]:
        """One epoch in random order."""
        if self.loader is not None:
            yield from map(_check_batch, self.loader(self.train, size, generator))
            return
        count = self.count(self.train)
        size = min(size, count)
        order = torch.randperm(count, generator=generator)
        for start in range(0, count - size + 1, size):
            yield _pick(self.train, order[start : start + size])

    def in_order(self, part: Part, size: int) -> Iterator[tuple[Any, Any]]:
        """All examples of a part, for evaluation."""
        if self.loader is not None:
            yield from map(_check_batch, self.loader(part, size, None))
            return
        count = self.count(part)
        for start in range(0, count, size):
            yield _pick(part, torch.arange(start, min(start + size, count)))


def _check_batch(batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise TypeError(f"requires batches that are pairs of inputs and targets, got {describe_shapes(batch)}")
    inputs, targets = batch
    return inputs, targets


def _pick(part: Part, indices: torch.Tensor) -> tuple[Any, Any]:
    if is_pair(part):
        inputs, targets = (map_tensors(lambda tensor: tensor[indices.to(tensor.device)], side) for side in part)
        return inputs, targets
    return _check_batch(default_collate([part[index] for index in indices.tolist()]))
