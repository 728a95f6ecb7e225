# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the networks of cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from .._errors import need
from ._cards import Card
from ._contenders import Contender, make_network
from ._layers import OPERATORS


def _make_contender(name: str, settings: Mapping[str, Any]) -> Contender:
    """The inverse of `Contender.settings`."""
    if "stages" in settings:
        stages = [_make_contender(f"{name}-{number}", stage) for number, stage in enumerate(settings["stages"])]
        return Contender(name, stages=tuple(stages))
    if "layer" in settings:
        return Contender(settings["layer"])
    if "operator" in settings:
        (known,) = (key for key, (operator, _) in OPERATORS.items() if operator == settings["operator"])
        return Contender(known, binding=settings["binding"])
    return Contender(name, text=settings["text"], binding=settings["binding"])


def make(card: Card, weights: bytes | None = None) -> nn.Module:
    """The network of a card in `eval` mode; with the tensors of a file of safetensors, which must be all of its own."""
    network = make_network(card.network, card.width, _make_contender(card.contender, card.settings))
    if weights is not None:
        network.load_state_dict(need("safetensors.torch", "torch").load(weights))
    return network.eval()
