# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of the zoo: cards, and files of weights."""

from __future__ import annotations

import functools
import hashlib
import json
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from .._errors import Error

DATA = pathlib.Path(__file__).parent / "data"
CARDS = DATA / "cards.json"


class WeightsError(Error):
    """A file of weights that is missing, or not the one of the card."""


@dataclass(frozen=True)
class Card:
    """A network of the zoo."""

    name: str
    network: str
    """Of `kas.zoo._backbones.NETWORKS`."""
    width: int
    """Channels of its first stage."""
    contender: str
    """The contents of its replaced layers, by the name that the comparison has for them."""
    settings: Mapping[str, Any]
    """The same as `Contender.settings`: `layer`, `operator` with `binding`, `text` with `binding`, or `stages`."""
    data: str
    """Name, checksum and augmentation of the training data."""
    data_licence: str
    mean: float
    """Of the training images' pixels, from 0 to 255; see `normalize`."""
    deviation: float
    recipe: Mapping[str, Any]
    """As in the protocol: epochs, batch size, optimizer and so on."""
    seed: int
    parameters: int
    accuracy: Mapping[str, float]
    """Of this training, in percent: `validation`, `test`, `shifted` and `rotated` images. Averages of the points of the
    comparison are on the page research/reports/discovery.md."""
    sha256: str
    """Of the file of weights."""
    licence: str = "Apache-2.0 WITH LLVM-exception"

    def normalize(self, pixels: Any) -> Any:
        """What the network takes for pixels from 0 to 255, of a tensor or an array, which have a frame of two 0."""
        return (pixels - self.mean) / self.deviation

    def __str__(self) -> str:
        """All of it but texts of operators, a line each."""
        shown = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "settings"}
        return "\n".join(
            f"{name}: {dict(value) if isinstance(value, Mapping) else value}" for name, value in shown.items()
        )


@functools.cache
def load_cards() -> Mapping[str, Card]:
    """All cards by name."""
    cards = [Card(**entry) for entry in json.loads(CARDS.read_text())]
    return MappingProxyType({card.name: card for card in cards})


def read_weights(card: Card) -> bytes:
    """The file of safetensors of a network, after its checksum was compared."""
    path = DATA / f"{card.name}.safetensors"
    if not path.is_file():
        raise WeightsError(f"requires the weights of '{card.name}' in {path}, got no file")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != card.sha256:
        raise WeightsError(f"requires the checksum {card.sha256} of {path}, got {found}")
    return content
