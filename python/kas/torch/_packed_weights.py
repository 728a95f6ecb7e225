# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that are packed ahead of the calls that need them, and again when their memory has changed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .. import _kas


def enter(tensor: torch.Tensor) -> torch.Tensor:
    """As compiled functions take it: in rows."""
    return tensor if tensor.is_contiguous() else tensor.contiguous()


class _State(NamedTuple):
    """What was packed last."""

    places: list[int]
    """Of the weights, as they are."""
    addresses: list[int]
    """Of the weights in rows, and of what is packed of them."""
    tensors: list[torch.Tensor]
    """All of these: as long as they are here, nothing else has their memory."""
    watch: Any
    """Of the memory of the weights. Goes first, before the memory does."""


class PackedWeights:
    """The weights of a compiled function, packed.

    PyTorch counts changes of tensors, but not all (`.data`, memory that NumPy shares): the memory itself is watched.
    """

    def __init__(self, program: Any, num_elements: int):
        """`num_elements`: of what the function `forward_prepack` of the program packs."""
        self.program, self.num_elements = program, num_elements
        self._state: _State | None = None
        # Of two threads both must not use what is only half packed.
        self._lock = threading.Lock()

    def get_addresses(self, weights: Sequence[torch.Tensor]) -> list[int]:
        """The addresses of the weights in rows, and of what is packed of them as they are now."""
        places = [*map(torch.Tensor.data_ptr, weights)]
        with self._lock:
            state = self._state
            if state is None or state.places != places:
                state = self._state = self._pack(places, weights, _kas.WriteWatch(_get_memory(weights)))
            elif state.watch.has_changed():
                # Watched all the time: what changes from here on is reported by the next call.
                state = self._state = self._pack(places, weights, state.watch)
            return state.addresses

    def _pack(self, places: list[int], weights: Sequence[torch.Tensor], watch: Any) -> _State:
        rows = [enter(weight) for weight in weights]
        memory = torch.zeros(self.num_elements + 16)
        start = -(memory.data_ptr() // 4) % 16
        packed = memory[start : start + self.num_elements]
        addresses = [tensor.data_ptr() for tensor in (*rows, packed)]
        self.program.call_at("forward_prepack", addresses)
        return _State(places, addresses, [*(weight.detach() for weight in weights), *rows, packed], watch)


def _get_memory(tensors: Sequence[torch.Tensor]) -> list[tuple[int, int]]:
    """Address and number of bytes from the first to the last element of each tensor."""
    return [
        (
            tensor.data_ptr(),
            tensor.element_size() * (1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))),
        )
        for tensor in tensors
        if tensor.numel()
    ]
