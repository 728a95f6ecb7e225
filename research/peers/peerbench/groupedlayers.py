# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 3x3 layers that Gibson's thesis replaces by grouped ones (chapter 5), at all group counts.

They are those of WRN-40-2, ResNet-34 and MobileNetV2.

A grouped layer has as many outputs as inputs. What is expected of it is the time of the dense layer of the same shape
over the number of groups, as its multiply-adds are.
"""

import re

from . import cases

# Network -> (channels, size of the image, stride, how often the network has it).
LAYERS = {
    "wrn": [(16, 32, 1, 1), (32, 32, 1, 11), (32, 32, 2, 1), (64, 16, 1, 11), (64, 16, 2, 1), (128, 8, 1, 11)],
    "resnet34": [
        (64, 56, 1, 6),
        (64, 56, 2, 1),
        (128, 28, 1, 7),
        (128, 28, 2, 1),
        (256, 14, 1, 11),
        (256, 14, 2, 1),
        (512, 7, 1, 5),
    ],
    "mobilenet": [
        (32, 112, 1, 1),
        (96, 112, 2, 1),
        (144, 56, 1, 1),
        (144, 56, 2, 1),
        (192, 28, 1, 2),
        (192, 28, 2, 1),
        (384, 14, 1, 4),
        (576, 14, 1, 2),
        (576, 14, 2, 1),
        (960, 7, 1, 3),
    ],
}


def get_name(channels, size, stride, groups):
    return f"{channels}@{size}{f's{stride}' if stride > 1 else ''}_g{groups}"


def make_cases():
    """Name -> case; the dense layer comes before those in groups."""
    made = {}
    for network, layers in LAYERS.items():
        for channels, size, stride, _ in layers:
            for groups in dict.fromkeys((1, 2, 4, 8, 16, channels)):
                name = get_name(channels, size, stride, groups)
                kind = "dense" if groups == 1 else "N groups" if groups == channels else f"{groups} groups"
                made[name] = cases.make_convolution(
                    name, network, kind, channels, channels, size, 3, stride=stride, groups=groups
                )
    return made


def get_dense(name):
    """The dense layer of the same shape, and the number of groups; None for all but grouped layers."""
    match = re.fullmatch(r"(\d+@\d+(?:s\d+)?)_g(\d+)", name)
    return (f"{match[1]}_g1", int(match[2])) if match and match[2] != "1" else None
