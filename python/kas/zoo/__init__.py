# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks with found operators and their baselines, by name and with weights.

>>> import kas.zoo
>>> kas.zoo.list_models("*found_1")
['pooled48_fashion_found_1', 'pooled64_fashion_found_1']
>>> network = kas.zoo.create("pooled64_fashion_found_1")  # of PyTorch, with its weights
>>> kas.zoo.card("pooled64_fashion_found_1").parameters
162506

The page docs/guide/zoo.md introduces it.
"""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from .._errors import need
from ._cards import Card, WeightsError, load_cards, read_weights

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Card", "WeightsError", "card", "create", "list_models"]


def list_models(pattern: str = "*") -> list[str]:
    """The names that a pattern of the shell (`*`, `?`, `[...]`) fits, in alphabetical order."""
    return sorted(name for name in load_cards() if fnmatch.fnmatchcase(name, pattern))


def card(name: str) -> Card:
    """A network, how it was trained and what it reached; a ValueError lists the names where there is none."""
    cards = load_cards()
    if name not in cards:
        raise ValueError(f"requires a name of {', '.join(sorted(cards))}, got '{name}'")
    return cards[name]


def create(name: str, pretrained: bool = True) -> nn.Module:
    """A network [N, 1, 32, 32] -> [N, 10] by name, ready for inference (`eval`), with operators as PyTorch code.

    With `pretrained` it has its weights, else random ones, which follow from PyTorch's seed. A `WeightsError` says that
    the file of the weights is missing or not that of the card, a `ValueError` that there is no such name. Needs the
    extra `torch`.
    """
    found = card(name)
    need("torch", "torch")
    from ._networks import make

    return make(found, read_weights(found) if pretrained else None)
