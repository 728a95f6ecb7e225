# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The space of the benchmark, the layers that its operators are for, and the properties that they may have."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from kas._search import SearchSpace

DATA = Path(__file__).with_name("data")
"""The folder of the tables."""

LAYERS: Mapping[str, Mapping[str, int]] = {
    f"{channels}x{size}": {"N": 1, "Cin": channels, "Cout": channels, "H": size, "k1": 3, "k2": 7, "s": 2, "g": 32}
    for channels, size in ((64, 56), (128, 28), (256, 14), (512, 7))
}
"""The four kinds of layers of ResNet-18 that have as many channels as outputs, by channels and rows of the image."""

NETWORK = "network"
"""What sums over the 19 layers of the space are called."""

TRAINED = "trained"
"""What sums over the four layers of the network that is trained are called, with the sizes that they have there."""

WIDTH = 16
"""Channels of the first stage of that network where operators are trained in it."""

BINDING: Mapping[str, int] = {"k1": 3, "k2": 4, "s": 2, "g": 8}
"""Of the coefficients there. Channels are a quarter of those of ResNet-18 (16 to 64), and so is g; the images are 16, 8
and 4 rows high, and k2 is as high as the last one, as 7 is in ResNet-18: all operators of the space have whole sizes
then."""


SIZES = (NETWORK, TRAINED, *LAYERS)
"""What costs are of."""


def make_trained_layers(width: int = WIDTH) -> list[tuple[int, Mapping[str, int]]]:
    """The layers of the network that is trained: how many there are of each size, and their bindings."""
    stages = ((2, width, 16), (1, 2 * width, 8), (1, 4 * width, 4))
    return [
        (count, {"N": 1, "Cin": channels, "Cout": channels, "H": size, **BINDING}) for count, channels, size in stages
    ]


PROPERTIES: Mapping[str, str] = {
    "sees": 'sees = ["k1", "k1"]',
    "reaches": "reaches = 2",
    "reaches_all": "reaches = 1",
    "same_everywhere": "weights_by_position = 0",
    "equivariant": "equivariant = 1",
    "one_product": "one_product = 1",
    "linear_path": "linear_path = 1",
}
"""Properties by name, each with the limit of a space that asks for it (docs/reference/properties.md)."""

DEFAULT = ("sees", "reaches")
"""The properties that `-kas-extract` asks for."""


def read_text() -> str:
    """The space as text."""
    return (DATA / "space.mlir").read_text(encoding="utf-8")


def make_space(*properties: str) -> SearchSpace:
    """The space of the operators that have these properties."""
    limits = "".join(f"{PROPERTIES[name]}, " for name in properties)
    return SearchSpace(read_text().replace("limits {", f"limits {{{limits}", 1))


@functools.cache
def read_space() -> SearchSpace:
    """The space of all operators."""
    return make_space()
