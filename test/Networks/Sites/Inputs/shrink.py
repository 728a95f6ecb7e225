#!/usr/bin/env python3
"""Writes a ResNet-18 for images of 224 x 224 with an eighth of the channels, for images of 64 x 64.

    python shrink.py resnet18_224.mlir OUTPUT

All layers stay, so that the whole network is quick to run by value.
"""

import re
import sys

CHANNELS = {64: 8, 128: 16, 256: 32, 512: 64}
# Images, and images with the padding of windows of 3 and, at the start, of 7.
SIZES = {224: 64, 112: 32, 56: 16, 28: 8, 14: 4, 7: 2, 230: 70, 114: 34, 58: 18, 30: 10, 16: 6, 9: 4}


def shrink(match):
    shape = [int(size) for size in match[1].split("x")]
    if len(shape) == 4 and shape[0] == 1:
        shape[1:] = [CHANNELS.get(shape[1], shape[1])] + [SIZES.get(size, size) for size in shape[2:]]
    else:
        shape = [CHANNELS.get(size, size) for size in shape]
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def main():
    with open(sys.argv[1]) as file:
        text = file.read()
    head, _, body = text.partition("\n")
    assert "1x3x224x224" in head, f"expected a network for images of 224 x 224, got {head}"
    text = re.sub(r"tensor<([0-9x]+)xf32>", shrink, body)
    # What sums of 7 x 7 elements are divided by.
    assert text.count("4.900000e+01") == 1
    with open(sys.argv[2], "w") as file:
        file.write(text.replace("4.900000e+01", "4.000000e+00"))


main()
