# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The spaces that operators, and sequences of two, are listed from for the layers of a network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from .._search import SearchSpace
from ._alternatives import SHARE
from ._units import MOST_OF_RUN, Unit

LEAST_CHANNELS = 8
"""Of the input of a layer: there is nothing to divide among fewer."""
CLASSES = {
    "window, all channels": 'depth = 8, weights = 2, sees = ["k", "k"], reaches = 1',
    "window, one weight": 'depth = 10, weights = 1, sees = ["k", "k"]',
    "all channels": "depth = 8, weights = 2, reaches = 1",
}
"""Properties of operators (docs/reference/properties.md), as limits of the spaces that they are listed from."""
SEQUENCES = {
    "window, then all channels": ("window", "mixing"),
    "all channels, then window": ("mixing", "window"),
    "all channels twice": ("mixing", "mixing"),
}
"""Those of sequences, by what their operators are; the last is for layers without a window alone."""
_LIMITS = "expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 0, weights_by_position = 0"
_STAGES = {
    "window": 'depth = 8, reduce = 3, weight_takes = 0, sees = ["k", "k"]',
    "mixing": "depth = 6, reduce = 2, reaches = 1",
}
_ALL_STAGES = "split = 1, merge = 1, shift = 0, stride = 0, weights = 1, weights_by_position = 0"
"""Limits of the operators of a sequence: few, since there are two of them."""


def find_kind(layer: nn.Module, unit: Unit) -> str | None:
    """The kind of layer whose operators fit it: a square window of so many points, or rows; None where there is none.

    Strided layers have operators of those that keep the size, which compute every so many points. A run of layers, in
    a block, is of the kind of its largest window.
    """
    if unit.is_block:
        return _find_kind_of_run(layer, unit)
    if unit.data_shape[0 if isinstance(layer, nn.Conv2d) else -1] < LEAST_CHANNELS:
        return None
    if isinstance(layer, nn.Linear):
        return "rows"
    if not isinstance(layer, nn.Conv2d) or layer.groups == layer.in_channels:
        return None
    height, width = layer.kernel_size
    if height != width:
        return None
    return _find_kind_of_window(height, unit)


def _find_kind_of_window(size: int, unit: Unit) -> str | None:
    pairs = list(zip(unit.data_shape[1:], unit.output_shape[1:]))
    if size % 2 == 0 or any(whole % few for whole, few in pairs):
        return None
    return None if size > 1 and min(unit.data_shape[1:]) <= size else f"window {size}"


def _find_kind_of_run(block: nn.Module, unit: Unit) -> str | None:
    layers = [one for one in block.modules() if isinstance(one, (nn.Conv2d, nn.Linear))]
    if not 2 <= len(layers) <= MOST_OF_RUN or len(unit.data_shape) != len(unit.output_shape):
        return None
    if all(isinstance(one, nn.Linear) for one in layers):
        is_same = unit.data_shape[:-1] == unit.output_shape[:-1]
        return "rows" if is_same and unit.data_shape[-1] >= LEAST_CHANNELS else None
    windows = [max(one.kernel_size) for one in layers if isinstance(one, nn.Conv2d)]
    if len(windows) < len(layers) or len(unit.data_shape) != 3 or unit.data_shape[0] < LEAST_CHANNELS:
        return None
    return _find_kind_of_window(max(windows), unit)


def get_binding(kind: str, unit: Unit) -> dict[str, int]:
    """The symbols of the spaces of the kind at a layer."""
    if kind == "rows":
        rows = math.prod(unit.data_shape[:-1])
        return {"N": rows, "Cin": unit.data_shape[-1], "Cout": unit.output_shape[-1], "g": 4}
    (inputs, height, width), outputs = unit.data_shape, unit.output_shape[0]
    window = {} if kind == "window 1" else {"k": int(kind.removeprefix("window "))}
    return {"N": 1, "Cin": inputs, "Cout": outputs, "H": height, "W": width, **window, "g": 4}


@dataclass(frozen=True)
class _Layers:
    """All layers of a kind, as parts of the text of a space."""

    bindings: Counter[tuple[tuple[str, int], ...]]

    @property
    def names(self) -> list[str]:
        """The symbols."""
        return [name for name, _ in next(iter(self.bindings))]

    @property
    def image(self) -> str:
        """The sizes after the channels."""
        return ", H, W" if "H" in self.names else ""

    def write_symbols(self, *more: str) -> str:
        """The symbols, with more primary ones."""
        coefficients = [name for name in ("k", "g") if name in self.names]
        primaries = [name for name in self.names if name not in coefficients]
        return f"<{', '.join([*primaries, *more])} | {', '.join(coefficients)}>"

    def write_bindings(self, width: str = "") -> str:
        """Values of the symbols, and for a symbol `width` as many channels as the data has."""
        rows = []
        for binding, count in self.bindings.items():
            values = dict(binding)
            entries = {**values, **({width: values["Cin"]} if width else {})}
            rows.append(f"<{', '.join(f'{name} = {value}' for name, value in entries.items())}> x {count}")
        return f"bindings [{', '.join(rows)}]"

    def write_limits(self, own: str) -> str:
        """Limits of a space for them."""
        limits = [own]
        if self.image:
            # What is no convolution does not learn what one does.
            limits.append("equivariant = 1")
        if "k" in self.names and any(min(dict(one)["H"], dict(one)["W"]) < 2 * dict(one)["k"] for one in self.bindings):
            limits.append("unfold_ratio = 1.33")
        return f"limits {{{', '.join(limits)}}}"

    def write_budget(self, share: float = SHARE) -> str:
        """What alternatives of all of them may cost: a share of their multiply-adds."""
        flops = params = 0
        for binding, count in self.bindings.items():
            values = dict(binding)
            weights = values["Cin"] * values["Cout"] * values.get("k", 1) ** 2
            params += count * weights
            flops += 2 * count * weights * values["N"] * values.get("H", 1) * values.get("W", 1)
        return (
            f"budget {{flops_ratio = {share}, min_flops_ratio = 0.02, baseline_flops = {flops}, params_ratio = 1.0, "
            f"baseline_params = {params}}}"
        )

    def divides(self, name: str) -> bool:
        """Whether the coefficient g divides a symbol everywhere."""
        return all(dict(one)[name] % dict(one)["g"] == 0 for one in self.bindings)


def _find_layers(kind: str, units: Sequence[Unit]) -> _Layers:
    return _Layers(Counter(tuple(get_binding(kind, unit).items()) for unit in units))


def list_spaces(kind: str, units: Sequence[Unit]) -> dict[str, SearchSpace]:
    """The space of each class of operators for layers of one kind."""
    layers = _find_layers(kind, units)
    sides = f"[N, Cout unordered{layers.image}] from [N, Cin unordered{layers.image}]"
    unfold = f"unfold = {2 if 'k' in layers.names else 0}"
    return {
        name: SearchSpace.parse(
            f"kas.space @layers{layers.write_symbols()} {sides} {layers.write_bindings()} "
            f"{layers.write_limits(f'{_LIMITS}, {unfold}, {own}')} {layers.write_budget()}"
        )
        for name, own in CLASSES.items()
        if "k" in layers.names or "sees" not in own
    }


def write_sequence_spaces(kind: str, units: Sequence[Unit], share: float = SHARE) -> dict[str, str]:
    """The text of the `kas.sequence_space` of each class of sequences for layers of one kind.

    `share`: see `_Layers.write_budget`.
    """
    layers = _find_layers(kind, units)
    has_window = "k" in layers.names
    found = {}
    for name, stages in SEQUENCES.items():
        if ("window" in stages) != has_window:
            continue
        # Where the window comes last, the channels between are those of the output.
        channels = "Cout" if stages[1] == "window" else "Cin"
        widths = [channels, f"2*{channels}"] if stages[0] == "window" else [channels]
        widths += [f"{channels}/g"] if layers.divides(channels) else []
        text = (
            f"kas.space @layers{layers.write_symbols()} [N, Cout unordered{layers.image}] "
            f"from [N, Cin unordered{layers.image}] {layers.write_bindings()} {layers.write_budget(share)}\n"
        )
        for stage, output, data, own in (("first", "M", "Cin", stages[0]), ("second", "Cout", "M", stages[1])):
            limits = f"{_STAGES[own]}, {_ALL_STAGES}, unfold = {2 if own == 'window' else 0}"
            text += (
                f"kas.space @{stage}{layers.write_symbols('M')} [N, {output} unordered{layers.image}] "
                f"from [N, {data} unordered{layers.image}] {layers.write_bindings('M')} {layers.write_limits(limits)}\n"
            )
        text += (
            "kas.sequence_space @sequences of @layers [@first, @second] between [normalize_relu] "
            f"widths {{M = [{', '.join(widths)}]}}\n"
        )
        found[name] = text
    return found
