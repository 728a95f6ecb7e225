# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tasks of the benchmark of `kas accelerate`: networks, their data, and how they are trained beforehand.

The networks on images are those of the zoo with the blocks as they were published: two 3x3 convolutions and a shortcut,
inverted residuals with windows of 3x3, blocks of ConvNeXt with windows of 7x7. That for fields has 3x3 convolutions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from kas.evaluate import Recipe, Training, darcy, fashion_mnist
from kas.evaluate._probe import choose_task
from kas.zoo._backbones import NETWORKS
from kas_research.fields._families import Grid, make_network, set_statistics


class Size(NamedTuple):
    """How large a task is."""

    width: int
    train: int
    epochs: int


class Sizes(NamedTuple):
    """What is chosen from."""

    whole: Size
    short: Size
    """Trained for minutes: a benchmark of hours."""
    tiny: Size
    """For a test of the program."""


class BenchTask(NamedTuple):
    """A network to be made faster."""

    load: Callable[[int], Any]
    """The data, with so many examples for training."""
    make: Callable[[int, Any], nn.Module]
    """The network of a width for the data."""
    limit: float
    """What may be lost: points of accuracy, percent of the error."""
    sizes: Sizes


def _load_images(train):
    return fashion_mnist(train=train, validation=min(5000, train))


def _window(size):
    def make(channels, _):
        return nn.Conv2d(channels, channels, size, padding=size // 2, groups=channels, bias=False)

    return make


def _dense(channels, _):
    return nn.Conv2d(channels, channels, 3, padding=1, bias=False)


def _image_task(network, layer, width):
    sizes = Sizes(Size(width, 50000, 12), Size(width, 20000, 6), Size(16, 640, 1))
    return BenchTask(_load_images, lambda width, _: NETWORKS[network](width, layer), 0.5, sizes)


def _load_fields(train):
    return darcy(size=32, train=train, validation=max(16, train // 5), test=max(16, train // 5))


def _make_fields(width, data):
    network = make_network("dense", width, Grid(3, 1, 32, periodic=False))
    set_statistics(network, torch.cat([targets for _, targets in data.in_order(data.train, 64)]))
    return network


TASKS = {
    "residual": _image_task("pooled", _dense, 48),
    "inverted-residual": _image_task("mobilenet", _window(3), 32),
    "convnext": _image_task("convnext", _window(7), 32),
    "darcy-32": BenchTask(
        _load_fields, _make_fields, 5.0, Sizes(Size(32, 1000, 60), Size(32, 1000, 20), Size(16, 64, 1))
    ),
}


def train(task, size, seed):
    """The trained network, the data, and what it is measured by."""
    data = task.load(size.train)
    torch.manual_seed(seed)
    network = task.make(size.width, data)
    recipe = Recipe(epochs=size.epochs, batch_size=64, learning_rate=4e-3, weight_decay=0.02, warmup_steps=20)
    training = Training(network, data, recipe, seed=seed, task=choose_task(None, data))
    training.advance(size.epochs)
    training.evaluate()
    return training.network.eval(), data
