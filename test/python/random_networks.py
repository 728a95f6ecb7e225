# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random small networks, some of them with a random operator in the place of convolutions."""

from __future__ import annotations

import random
from typing import NamedTuple

import torch
from torch import nn

import kas
import kas.torch

CLASSES = 5
BATCH = 4
SIDE = 8


class Residual(nn.Module):
    """The data and what layers that keep its shape make of it."""

    def __init__(self, *layers: nn.Module):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


class Case(NamedTuple):
    network: nn.Module
    """For PyTorch, with the operator."""
    module: kas.Module
    """The same as MLIR, with `kas.apply`."""
    tensors: dict[str, torch.Tensor]
    """The arguments after the data."""
    names: dict[str, str]
    """PyTorch's name of each of these tensors, where it has another one."""
    shape: tuple[int, ...]


def _activation(draw: random.Random) -> nn.Module:
    return draw.choice(
        (
            nn.ReLU,
            nn.ReLU,
            nn.ReLU6,
            nn.GELU,
            nn.SiLU,
            nn.Tanh,
            nn.Sigmoid,
            nn.ELU,
            nn.Hardswish,
            nn.Softplus,
            lambda: nn.LeakyReLU(0.1),
        )
    )()


def _norm(draw: random.Random, channels: int) -> nn.Module:
    kind = draw.randrange(4)
    if kind < 2:
        return nn.BatchNorm2d(channels, affine=kind == 0 or draw.random() < 0.7)
    groups = draw.choice([count for count in (1, 2, 4) if channels % count == 0])
    return nn.GroupNorm(groups, channels)


def _convolution(draw: random.Random, inputs: int, outputs: int, stride: int, bias: bool) -> nn.Module:
    kernel = draw.choice((1, 3, 3, 5))
    dilation = draw.choice((1, 1, 2)) if kernel == 3 else 1
    groups = draw.choice([count for count in (1, 1, 2, 4, inputs) if inputs % count == 0 and outputs % count == 0])
    padding = dilation * (kernel // 2)
    return nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, groups, bias)


def _block(draw: random.Random, inputs: int, outputs: int, stride: int) -> list[nn.Module]:
    norm = draw.random() < 0.7
    # Before a normalization a bias has no gradient but rounding.
    layers = [_convolution(draw, inputs, outputs, stride, bias=not norm and draw.random() < 0.7)]
    if norm:
        layers.append(_norm(draw, outputs))
    return [*layers, _activation(draw)]


def _pool(draw: random.Random) -> nn.Module:
    return draw.choice(
        (
            nn.MaxPool2d(2),
            nn.AvgPool2d(2),
            nn.MaxPool2d(3, 2, 1),
            nn.AvgPool2d(3, 2, 1),
            nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        )
    )


def make_network(seed: int, found: bool) -> nn.Module:
    """`found`: with a layer `found` that operators can take the place of."""
    draw = random.Random(seed)
    channels = draw.choice((4, 8))
    layers: list[tuple[str, nn.Module]] = []

    def add(*modules: nn.Module) -> None:
        for module in modules:
            layers.append((str(len(layers)), module))

    add(*_block(draw, 3, channels, draw.choice((1, 1, 2))))
    if found:
        layers.append(("found", nn.Conv2d(channels, channels, 3, padding=1, bias=draw.random() < 0.5)))
        add(_activation(draw))
    side = SIDE
    for _ in range(draw.randint(1, 3)):
        kind = draw.randrange(4)
        if kind == 0:
            add(Residual(*_block(draw, channels, channels, 1)), _activation(draw))
        elif kind == 1 and side > 2:
            add(_pool(draw))
            side //= 2
        else:
            outputs, stride = draw.choice((4, 6, 8, 12)), draw.choice((1, 1, 2))
            add(*_block(draw, channels, outputs, stride))
            channels = outputs
    network = nn.Sequential()
    for name, layer in layers:
        network.add_module(name, layer)
    with torch.no_grad():
        shape = network.eval()(torch.zeros(BATCH, 3, SIDE, SIDE)).shape
    if draw.random() < 0.5:
        network.add_module("pool", nn.AdaptiveAvgPool2d(1))
        shape = (*shape[:2], 1, 1)
    network.add_module("flatten", nn.Flatten())
    features = shape[1] * shape[2] * shape[3]
    if draw.random() < 0.3:
        network.add_module("hidden", nn.Linear(features, 10))
        network.add_module("norm", nn.LayerNorm(10))
        network.add_module("last", _activation(draw))
        features = 10
    network.add_module("head", nn.Linear(features, CLASSES))
    return network


def _substitute(network: nn.Module, example: torch.Tensor, exported: kas.torch.Exported, seed: int) -> Case:
    """Puts a random operator of the search space of the layer `found` in, wherever it fits a layer of that space."""
    sites = kas.torch.extract(network, example, flops_ratio=1.0, min_flops_ratio=0.01)
    space = sites.sites["found"].space
    with kas.Searcher(sites.spaces[space], "random", seed=seed) as searcher:
        operator = searcher.ask(1)[0].operator
    same = [site for site in sites.sites.values() if site.space == space]
    replaced = kas.torch.substitute(network, operator, same, backend="pytorch", strict=False)
    exported.module.run("kas-extract")
    text = str(exported.module).replace("module {", f"module {{\n{operator}", 1)
    module = kas.Module(text, "<network>").run(
        f"kas-substitute{{operator=@{operator.name} space=@{space}}},kas-specialize"
    )
    # The order of the arguments; what is new has the values of the modules.
    tensors, names = {}, {}
    parameters = dict(replaced.named_parameters())
    for name, _ in module.compile("forward", threads=1, opt_level=0).arguments[1:]:
        layer, _, weight = name.partition(".weight")
        here = f"{layer}.weight{weight.removeprefix('.') or '0'}"
        is_new = name not in parameters and here in parameters
        if is_new:
            names[name] = here
        tensors[name] = parameters[here] if is_new else exported.tensors[name]
    assert any(name.startswith("found.") for name in names)
    return Case(replaced, module, tensors, names, tuple(example.shape))


def make(seed: int) -> Case:
    torch.manual_seed(seed)
    found = seed % 2 == 1
    network = make_network(seed, found)
    example = torch.randn(BATCH, 3, SIDE, SIDE)
    exported = kas.torch.to_mlir(network, example, fold_batch_norms=False)
    if found:
        return _substitute(network, example, exported, seed)
    return Case(network, exported.module, exported.tensors, {}, tuple(example.shape))
