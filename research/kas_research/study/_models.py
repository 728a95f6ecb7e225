# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks of a study, as lists of their layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Layer:
    """A convolution of one image, with zeros around it; a linear layer is one of 1x1 on one pixel."""

    inputs: int
    outputs: int
    size: int
    """Of the image that it reads."""
    kernel: int = 1
    stride: int = 1
    depthwise: bool = False
    count: int = 1
    """How often the network has it."""

    @property
    def padding(self) -> int:
        """Zeros on each side of the image."""
        return self.kernel // 2

    @property
    def output_size(self) -> int:
        """The edge of the output in pixels."""
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def weight_shape(self) -> tuple[int, int, int, int]:
        """Outputs, inputs per group, and the filter."""
        return (self.outputs, 1 if self.depthwise else self.inputs, self.kernel, self.kernel)

    @property
    def weights(self) -> int:
        """How many weights there are."""
        return math.prod(self.weight_shape)

    @property
    def macs(self) -> int:
        """Multiply-adds, those with zeros around the image included."""
        return self.weights * self.output_size**2

    @property
    def name(self) -> str:
        """Such as `c3s2_64_128@32`: kind, kernel, stride, inputs, outputs and size."""
        kind = "dw" if self.depthwise else "c"
        stride = f"s{self.stride}" if self.stride > 1 else ""
        return f"{kind}{self.kernel}{stride}_{self.inputs}_{self.outputs}@{self.size}"

    def to_json(self) -> dict[str, Any]:
        """The fields, for a process that measures."""
        return asdict(self)


class _Network:
    """Collects layers in order, with the image that reaches them."""

    def __init__(self, image: int, width: float):
        self.size, self.width, self.channels = image, width, 3
        self.layers: dict[Layer, int] = {}

    def scale(self, channels: int) -> int:
        return max(8, round(channels * self.width / 8) * 8)

    def add(self, outputs: int, kernel: int, stride: int = 1, depthwise: bool = False, inputs: int = 0) -> None:
        layer = Layer(inputs or self.channels, outputs, self.size, kernel, stride, depthwise)
        self.layers[layer] = self.layers.get(layer, 0) + 1
        if not inputs:
            self.channels, self.size = outputs, layer.output_size

    def pool(self, factor: int) -> None:
        self.size = max(1, self.size // factor)

    def classify(self, classes: int) -> None:
        self.size = 1
        self.add(classes, 1)

    def finish(self) -> list[Layer]:
        return [replace(layer, count=count) for layer, count in self.layers.items()]


def _resnet18(net: _Network) -> None:
    """He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, with a 3x3 stem for small images."""
    net.add(net.scale(64), 3)
    for stage in range(4):
        channels = net.scale(64 << stage)
        for block in range(2):
            stride = 2 if stage and not block else 1
            size, inputs = net.size, net.channels
            net.add(channels, 3, stride)
            net.add(channels, 3)
            if stride == 2:
                after, net.size = net.size, size
                net.add(channels, 1, 2, inputs=inputs)
                net.size = after
    net.classify(10)


def _vgg16(net: _Network) -> None:
    """VGG-16 with the classifier that is usual for small images.

    Simonyan and Zisserman, "Very Deep Convolutional Networks", ICLR 2015.
    """
    for channels, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            net.add(net.scale(channels), 3)
        net.pool(2)
    net.classify(10)


def _mobilenet_v1(net: _Network) -> None:
    """Howard et al., "MobileNets", 2017, with a stem of stride 1 for small images."""
    net.add(net.scale(32), 3)
    for outputs, stride in (
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        *[(512, 1)] * 5,
        (1024, 2),
        (1024, 1),
    ):
        net.add(net.channels, 3, stride, depthwise=True)
        net.add(net.scale(outputs), 1)
    net.classify(10)


def _mobilenet_v2(net: _Network) -> None:
    """Sandler et al., "MobileNetV2", CVPR 2018, with a stem and a second stage of stride 1 for small images."""
    net.add(net.scale(32), 3)
    stages = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, outputs, blocks, stride in stages:
        for block in range(blocks):
            if expansion > 1:
                net.add(net.channels * expansion, 1)
            net.add(net.channels, 3, stride if not block else 1, depthwise=True)
            net.add(net.scale(outputs), 1)
    net.add(net.scale(1280), 1)
    net.classify(10)


def _tiny(net: _Network) -> None:
    """For tests: one layer of each kind."""
    net.add(net.scale(16), 3)
    net.add(net.channels, 3, 2, depthwise=True)
    net.add(net.scale(24), 1)
    net.classify(10)


_BUILDERS: dict[str, Callable[[_Network], None]] = {
    "resnet18": _resnet18,
    "vgg16": _vgg16,
    "mobilenet_v1": _mobilenet_v1,
    "mobilenet_v2": _mobilenet_v2,
    "tiny": _tiny,
}
NETWORKS = tuple(_BUILDERS)
"""What a study may name as a model."""


def get_layers(network: str, image: int = 32, width: float = 1.0) -> list[Layer]:
    """The distinct layers of a network, in the order of their first use."""
    net = _Network(image, width)
    _BUILDERS[network](net)
    return net.finish()


def _without_channels(layers: list[Layer], ratio: float) -> Iterator[Layer]:
    keep = math.sqrt(1 - ratio)

    def prune(channels: int, fixed: bool) -> int:
        return channels if fixed else max(1, round(channels * keep))

    for place, layer in enumerate(layers):
        outputs = prune(layer.outputs, place + 1 == len(layers))
        yield replace(
            layer, inputs=outputs if layer.depthwise else prune(layer.inputs, layer.inputs == 3), outputs=outputs
        )


def prune_channels(layers: list[Layer], ratio: float) -> list[Layer]:
    """The layers when a share `ratio` of a dense layer's weights goes with its channels.

    Of both inputs and outputs the square root of the rest stays. The image's channels and the classes stay. The order
    and the length are as before.
    """
    return list(_without_channels(layers, ratio))
