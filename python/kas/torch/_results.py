# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory for the results of compiled functions."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch


class _Owned:
    """A tensor that is given out any number of times, but never while somebody has what was given out before."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype):
        self.tensor = torch.empty(shape, dtype=dtype)
        self.storage = self.tensor.untyped_storage()
        self.references = self._count()

    def _count(self) -> int:
        # A storage is one object of Python, which counts once in C++ however many have it.
        return torch._C._storage_Use_Count(self.storage._cdata) + sys.getrefcount(self.storage)

    def is_free(self) -> bool:
        """Whether no tensor, view or array has the memory."""
        return self._count() == self.references

    def give(self) -> torch.Tensor:
        # Another tensor with the same storage, which counts as a reference.
        return self.tensor.detach()


class Results:
    """New tensors for the results of each call, or the memory of those of earlier calls that nothing refers to."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], types: Sequence[torch.dtype], is_reused: bool):
        self.kinds, self.is_reused = list(zip(shapes, types)), is_reused
        self._owned: list[_Owned | None] = [None] * len(self.kinds)

    def make(self) -> list[torch.Tensor]:
        if not self.is_reused:
            return [torch.empty(shape, dtype=dtype) for shape, dtype in self.kinds]
        results = []
        for number, (shape, dtype) in enumerate(self.kinds):
            # Taken out while it is used, so that another thread does not take it, too.
            owned, self._owned[number] = self._owned[number], None
            if owned is None or not owned.is_free():
                owned = _Owned(shape, dtype)
            results.append(owned.give())
            self._owned[number] = owned
        return results
