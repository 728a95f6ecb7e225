# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences of two operators, with a normalization and a rectifier between them, in the place of layers and of runs.

Each is a `kas.sequence` that the search lists. Its operators become layers of PyTorch where they are such layers.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from .._errors import Error
from .._module import Module, Operator, binding_to_text
from .._search import SearchSpace
from .._sequence import OperatorSequence
from ..torch._effective import EffectiveConvolution, find_effective_convolution
from ..torch._modules import KasModule
from ..torch._sites import Site, fit_strides, get_binding
from ..torch._sizes import evaluate_size

MOST_SECONDS = 60.0
"""A list takes no longer: an interrupt waits for its end."""


class Listed(NamedTuple):
    """A sequence of a space."""

    sequence: OperatorSequence
    milliseconds: float
    """Of all layers of the space, predicted."""
    params: int
    """Of all of them."""

    def describe(self) -> tuple[str, str, str]:
        """The first digits of its key, its text with names that follow from what it is, and its formula."""
        operators = [operator.canonical() for operator in self.sequence.operators]
        texts = [re.sub(rf"@{re.escape(one.name)}\b", "@NAME", str(one), count=1) for one in operators]
        # Modules of operators are distinguished by the names that these have.
        names = [f"found_{_digest(text)}" for text in texts]
        steps = ", ".join(self.sequence.steps)
        key = _digest(" ".join([*names, steps]))
        parts = dict(zip(names, (text.replace("@NAME", f"@{name}", 1) for name, text in zip(names, texts))))
        stages = ", ".join(f"@{name}" for name in names)
        text = "\n".join([*parts.values(), f"kas.sequence @found_{key} [{stages}] between [{steps}]"])
        return key, text, f"; {steps.replace('_', ', ')}; ".join(one.formula for one in operators)


# ---- Listing


def list_sequences(text: str, seed: int, seconds: float, count: int) -> list[Listed]:
    """Of `count` sequences of the text's space the fastest, and those that are slower but have more parameters.

    Times are predicted, the fastest comes first. Always the same for a seed; fewer where listing them takes more than
    `seconds`.
    """
    module = Module(text, "<sequences>")
    layers = SearchSpace(module, "layers")
    # 0 would be no limit.
    seconds = min(max(seconds, 1e-3), MOST_SECONDS)
    module.run(f"kas-search{{space=sequences algorithm=random seed={seed} evaluations={count} seconds={seconds:.3f}}}")
    # Each in a module of its own: looking symbols up takes long in one of hundreds.
    parts = {
        one[0]: one[1]
        for one in re.findall(r"^  (?=kas\.\w+ @([\w.$]+))(.*?)(?=^  kas\.|^\})", str(module), re.M | re.S)
    }
    timed = []
    for number, (name, own) in enumerate(parts.items()):
        if own.startswith("kas.sequence @"):
            stages = re.findall(r"@([\w.$]+)", own.split("between")[0])[1:]
            whole = Module("\n".join([*(parts[stage] for stage in dict.fromkeys(stages)), own]), "<sequence>")
            sequence = whole.sequences[name]
            params = re.search(r"\bparams = (\d+)", own)
            assert params, "the search writes what it counts"
            timed.append((_predict(sequence, layers), -int(params[1]), number, sequence))
    front: list[Listed] = []
    for milliseconds, negative, _, sequence in sorted(timed, key=lambda one: one[:3]):
        if not front or -negative > front[-1].params:
            front.append(Listed(sequence, milliseconds, -negative))
    return front


def _predict(sequence: OperatorSequence, layers: SearchSpace) -> float:
    """The milliseconds of its operators in all layers of a space."""
    pairs = zip(layers.bindings, layers.multiplicities)
    return math.fsum(
        count * operator.predict_milliseconds({name: values[name] for name in itertools.chain(*operator.symbols)})
        for values, count in pairs
        for operator in sequence.operators
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@functools.lru_cache(maxsize=256)
def find_sequence(text: str) -> OperatorSequence | None:
    """The sequence of a text; None where it is one of an operator."""
    return next(iter(Module(text, "<sequence>").sequences.values()), None)


# ---- At a layer


class Stage(NamedTuple):
    """An operator of a sequence at a layer."""

    operator: Operator
    binding: dict[str, int]


def bind_stages(sequence: OperatorSequence, site: Site) -> list[Stage]:
    """The operators with the sizes that they have at a layer or a run of layers, that with the window with its stride.

    Raises `ValueError` and `kas.Error` where they do not fit.
    """
    operators = sequence.operators
    # Of rows, whatever is before their channels.
    has_rows = len(sequence.sizes["data"]) == 2
    shape, last = ((math.prod(one[:-1]), one[-1]) if has_rows else one for one in (site.data_shape, site.output_shape))
    windows = [number for number, one in enumerate(operators) if "kas.unfold" in str(one)]
    strided = windows[0] if windows else 0
    stages = []
    for number, operator in enumerate(operators):
        channels = int(evaluate_size(operator.sizes["output"][1], site.binding))
        output = (shape[0], channels, *(last if number >= strided else shape)[2:])
        own = site._replace(data_shape=shape, output_shape=output)
        fitting, values = fit_strides(operator, own, {})
        stages.append(Stage(fitting, get_binding(fitting, own, nn.Identity(), values)))
        shape = output
    if shape != last:
        raise ValueError(f"requires the shape {last} of the layer, got {shape}")
    return stages


def count_flops(stages: list[Stage]) -> int:
    """Of all stages, two for a multiply-add."""
    return sum(stage.operator.cost(stage.binding).flops for stage in stages)


# ---- Modules


class FoundSequence(nn.Sequential):
    """Operators with normalizations and rectifiers between them; imitation begins with all operators together."""

    @property
    def stages(self) -> list[nn.Module]:
        """The operators."""
        return [one for one in self if isinstance(one, (nn.Conv2d, nn.Linear, KasModule))]


class RowNorm(nn.BatchNorm1d):
    """A batch normalization of the last dimension, whatever is before it."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """See `torch.nn.BatchNorm1d`."""
        return super().forward(input.flatten(0, -2)).reshape(input.shape)


class RunModule(nn.Module):
    """What takes the place of a run of layers: what `inner` makes of the data.

    Where the shape stays, `scale` times the data of each channel is added: of a run with a shortcut it becomes 1 or so,
    of another one 0. Where all outputs of the run are positive, so are its own.
    """

    scale: nn.Parameter | None

    def __init__(self, inner: nn.Sequential, scale: torch.Tensor | None, is_rectified: bool):
        super().__init__()
        self.inner, self.is_rectified = inner, is_rectified
        self.register_parameter("scale", None if scale is None else nn.Parameter(scale))

    def add(self, data: torch.Tensor) -> torch.Tensor:
        """The sum, before the rectifier."""
        output: torch.Tensor = self.inner(data)
        return output if self.scale is None else output + self.scale * data

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """The output."""
        output = self.add(data)
        return output.relu() if self.is_rectified else output


def make_sequence(stages: list[Stage], has_bias: bool, generator: torch.Generator) -> FoundSequence:
    """The module, with weights of the generator and, where it has one, a bias of zeros."""
    parts: list[nn.Module] = []
    for number, stage in enumerate(stages):
        is_last = number + 1 == len(stages)
        module = _make_stage(stage, has_bias and is_last, generator)
        parts.append(module)
        if not is_last:
            output = stage.operator.shapes(stage.binding).output
            parts += [RowNorm(output[1]) if len(output) == 2 else nn.BatchNorm2d(output[1]), nn.ReLU()]
    return FoundSequence(*parts).eval()


def _make_stage(stage: Stage, has_bias: bool, generator: torch.Generator) -> nn.Module:
    operator, binding = stage
    try:
        found = find_effective_convolution(str(operator.alone()), binding_to_text(binding))
    except (Error, ValueError):
        found = None
    if found is not None and (layer := _find_layer(stage, found, has_bias)) is not None:
        with torch.no_grad():
            fan_in = layer.weight[0].numel()
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * math.sqrt(2 / fan_in))
            if layer.bias is not None:
                layer.bias.zero_()
        return layer
    has_rows = len(operator.sizes["data"]) == 2
    bias_dim = None if not has_bias else -1 if has_rows else 1
    backend = "pytorch" if found is None else "effective"
    module = KasModule(operator, binding, backend, threads=1, bias_dim=bias_dim)
    module.reset_parameters(generator)
    return module


def _find_layer(stage: Stage, form: EffectiveConvolution, has_bias: bool) -> nn.Conv2d | nn.Linear | None:
    """The layer of PyTorch that an operator is, with a weight of as many elements; None where it is none."""
    shapes = stage.operator.shapes(stage.binding)
    if len(shapes.weights) != 1 or form.rolled or form.factors is not None or form.weight_shape[0] != 1:
        return None
    elements = form.elements[0]
    if not len(elements) == len(set(elements.tolist())) == math.prod(shapes.weights[0]):
        return None
    outputs, inputs = shapes.output[1], shapes.data[1]
    if len(shapes.data) == 2:
        return nn.Linear(inputs, outputs, has_bias) if form.groups == 1 and not form.places else None
    if form.data_order[: form.num_batches + 1] not in ([0, 1], [0, 2, 3, 1]):
        return None
    if not form.places:
        return nn.Conv2d(inputs, outputs, 1, groups=form.groups, bias=has_bias)
    if len(form.places) != 2:
        return None
    (height, width), (down, right) = form.weight_shape[3:], form.dilations
    before, after = form.padding[::-1][1::2], form.padding[::-1][::2]
    # What is left out at the end of the data are points that the stride passes over.
    is_same = all(high <= low and high > low - s for low, high, s in zip(before, after, form.strides))
    if not is_same or before != [down * (height // 2), right * (width // 2)]:
        return None
    top, left = before
    strides = form.strides[0], form.strides[1]
    return nn.Conv2d(inputs, outputs, (height, width), strides, (top, left), (down, right), form.groups, has_bias)


def is_separable(stages: list[Stage]) -> bool:
    """Whether it is a window for each channel and 1x1, in any order: layers have such alternatives by name."""
    layers = [one for one in make_sequence(stages, False, torch.Generator()) if isinstance(one, nn.Conv2d)]
    kinds = [(one.groups == one.in_channels, one.groups == 1, one.kernel_size != (1, 1)) for one in layers]
    return sorted(kinds) == [(False, True, False), (True, False, True)]


# ---- Its operators without what is between them


def apply_stages(
    module: FoundSequence,
) -> tuple[Callable[[torch.Tensor, Any], torch.Tensor], list[torch.Tensor]] | None:
    """What the operators alone compute, linear in each of their weights, and these; None where that is not so."""
    stages = module.stages
    if any(isinstance(one, KasModule) and one.has_maxima for one in stages):
        return None
    weights = [one.weights if isinstance(one, KasModule) else [one.get_parameter("weight")] for one in stages]

    def apply(data: torch.Tensor, values: Any) -> torch.Tensor:
        rest = iter(values)
        for stage, own in zip(stages, weights):
            taken = [next(rest) for _ in own]
            if isinstance(stage, KasModule):
                data = stage.apply_weights(data, taken)
            elif isinstance(stage, nn.Conv2d):
                data = stage._conv_forward(data, taken[0], None)
            else:
                data = functional.linear(data, taken[0])
        return data

    return apply, [one for own in weights for one in own]
