# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replacements of the layers of a network: by name, as a text, or one for each stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

import kas.torch

from .._kernel import Kernel
from .._module import Module, Operator
from .._module import operator as named_operator
from .._sequence import OperatorSequence
from ._backbones import NETWORKS, SIZES
from ._layers import LAYERS, OPERATORS, Layer


@dataclass(frozen=True)
class Contender:
    """The replacements of the layers of a network."""

    name: str
    """Of `LAYERS` or `OPERATORS`, or any other with a text or stages."""
    text: str | None = None
    """An operator or a kernel as MLIR; None: the one by that name."""
    binding: Mapping[str, int] = field(default_factory=dict)
    """Sizes that a layer does not have."""
    is_candidate: bool = False
    """Found by a search: it is tested against the baselines, which are all others."""
    widths: tuple[int, ...] = ()
    """Those of the protocol where there are none."""
    num_seeds: int | None = None
    """Of the seeds for reporting; None: all."""
    stages: tuple[Contender, ...] = ()
    """Instead of a text: what takes the places of each stage of a network, one for each of `SIZES`."""
    is_afterthought: bool = False
    """A baseline that was added when a search had found it or its like: candidates are tested without and with such."""

    def __post_init__(self) -> None:
        if self.is_candidate and self.is_afterthought:
            raise ValueError(f"requires a baseline that is an afterthought, got the candidate '{self.name}'")
        if self.stages:
            if len(self.stages) != len(SIZES):
                raise ValueError(f"requires {len(SIZES)} stages of '{self.name}', got {len(self.stages)}")
            if self.text is not None or self.binding or any(stage.stages for stage in self.stages):
                raise ValueError(
                    f"requires a text and a binding in the stages of '{self.name}', got one beside or more stages"
                )
        elif self.text is None and self.name not in LAYERS and self.name not in OPERATORS:
            raise ValueError(
                f"requires a contender of {', '.join([*LAYERS, *OPERATORS])}, or one with a text, got '{self.name}'"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """What its results follow from."""
        if self.stages:
            return {"stages": [stage.settings for stage in self.stages]}
        if self.text is not None:
            return {"text": self.text, "binding": dict(self.binding)}
        if self.name in OPERATORS:
            return {"operator": OPERATORS[self.name][0], "binding": {**OPERATORS[self.name][1], **self.binding}}
        return {"layer": self.name}


Form = Operator | OperatorSequence | Kernel


def get_form(contender: Contender) -> Form | None:
    """The operator, sequence or kernel of a contender; None for a layer made by hand."""
    settings = contender.settings
    if "layer" in settings:
        return None
    if "operator" in settings:
        return named_operator(settings["operator"])
    module = Module(settings["text"], f"<{contender.name}>")
    sequences = list(module.sequences.values())
    parts = {operator.name for sequence in sequences for operator in sequence.operators}
    operators = [module[name] for name in module.operators if name not in parts]
    forms: list[Form] = [*sequences, *operators, *module.kernels.values()]
    if len(forms) != 1:
        raise ValueError(
            f"requires one operator, sequence or kernel in the text of '{contender.name}', got {len(forms)}"
        )
    return forms[0]


def _bind(form: Form, contender: Contender, channels: int, size: int, batch: int) -> dict[str, int]:
    symbols = form.symbols if isinstance(form, Kernel) else [*form.symbols[0], *form.symbols[1]]
    layer = {"N": batch, "C": channels, "Cin": channels, "Cout": channels, "H": size, "W": size}
    values = {**layer, **contender.settings["binding"]}
    if missing := [name for name in symbols if name not in values]:
        raise ValueError(f"requires values for {', '.join(missing)} in the binding of '{contender.name}', got none")
    return {name: values[name] for name in symbols}


def make_layer(contender: Contender, batch: int = 1) -> Layer:
    """A factory of the layers; operators as PyTorch code, or as one gathered convolution where they are one."""
    if contender.stages:
        layers = [make_layer(stage, batch) for stage in contender.stages]
        return lambda channels, size: layers[SIZES.index(size)](channels, size)
    form = get_form(contender)
    if form is None:
        return LAYERS[contender.name]

    def make(channels: int, size: int) -> nn.Module:
        binding = _bind(form, contender, channels, size, batch)
        if isinstance(form, Kernel):
            return kas.torch.KernelModule(form, binding, threads=1)
        if isinstance(form, OperatorSequence):
            return kas.torch.SequenceModule(form, binding, "pytorch")
        return kas.torch.KasModule(form, binding, "pytorch")

    return make


def make_network(name: str, width: int, contender: Contender, batch: int = 1) -> nn.Module:
    """A network with a contender in the replaced places, for a batch of `batch` images."""
    return NETWORKS[name](width, make_layer(contender, batch))
