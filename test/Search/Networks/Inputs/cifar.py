#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a residual network for images of CIFAR's size, as linalg on tensors.

usage: cifar.py DEPTH [BATCH [WIDTH [IMAGE]]]

DEPTH is 18, 34 or, for tests, 4: one block. The module has @forward for one image and @forward_batch for BATCH (4) of
them; WIDTH is the channels of the first stage (64), IMAGE the size of the image (32). The stem is a 3x3 convolution
without pooling, as is usual for such images; batch normalizations are part of the convolutions' weights and biases.
There are 10 classes.
"""

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location(
    "resnet", Path(__file__).resolve().parents[3] / "Tools/kas-tune/Inputs/resnet.py"
)
resnet = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(resnet)


class Writer(resnet.Writer):
    def classify(self, value, classes):
        batch, channels, height, width = map(int, value[1].split("x"))
        means = f"{batch}x{channels}"
        empty = self.emit(f"tensor.empty() : tensor<{means}xf32>", means)
        zeros = self.emit(
            f"linalg.fill ins(%zero : f32) outs({empty[0]} : tensor<{means}xf32>) -> tensor<{means}xf32>", means
        )
        mean = self.emit(
            "linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> "
            "(n, c)>], "
            'iterator_types = ["parallel", "parallel", "reduction", "reduction"]} '
            f"ins({value[0]} : tensor<{value[1]}xf32>) outs({zeros[0]} : tensor<{means}xf32>) {{\n"
            "  ^bb0(%x: f32, %o: f32):\n"
            f"    %points = arith.constant {float(height * width)} : f32\n    %d = arith.divf %x, %points : f32\n"
            f"    %s = arith.addf %o, %d : f32\n    linalg.yield %s : f32\n  }} -> tensor<{means}xf32>",
            means,
        )
        weight = self.argument("fc.weight", classes, channels)
        bias = self.argument("fc.bias", classes)
        scores = f"{batch}x{classes}"
        turned = f"{channels}x{classes}"
        empty = self.emit(f"tensor.empty() : tensor<{turned}xf32>", turned)
        transposed = self.emit(
            f"linalg.transpose ins({weight[0]} : tensor<{weight[1]}xf32>) outs({empty[0]} : tensor<{turned}xf32>) "
            "permutation = [1, 0]",
            turned,
        )
        empty = self.emit(f"tensor.empty() : tensor<{scores}xf32>", scores)
        init = self.emit(
            f"linalg.broadcast ins({bias[0]} : tensor<{classes}xf32>) outs({empty[0]} : tensor<{scores}xf32>) "
            "dimensions = [0]",
            scores,
        )
        return self.emit(
            f"linalg.matmul ins({mean[0]}, {transposed[0]} : tensor<{means}xf32>, tensor<{turned}xf32>) "
            f"outs({init[0]} : tensor<{scores}xf32>) -> tensor<{scores}xf32>",
            scores,
        )


def write(name, depth, batch, width=64, image=32):
    writer = Writer(batch)
    value = writer.argument("input", batch, 3, image, image)
    value = writer.relu(writer.conv(value, "conv1", width, 3, 1))
    for stage, blocks in enumerate(resnet.STAGES[depth]):
        for number in range(blocks):
            value = writer.block(
                value, f"layer{stage + 1}.{number}", width << stage, 2 if stage and not number else 1, False
            )
    value = writer.classify(value, 10)
    lines = "\n".join(writer.lines)
    return (
        f"func.func @{name}({', '.join(writer.arguments)}) -> tensor<{value[1]}xf32> {{\n"
        "  %zero = arith.constant 0.0 : f32\n"
        f"{lines}\n  return {value[0]} : tensor<{value[1]}xf32>\n}}\n"
    )


def main():
    numbers = [int(text) for text in sys.argv[1:]]
    if not 1 <= len(numbers) <= 4 or numbers[0] not in (4, 18, 34):
        sys.exit(__doc__)
    depth, batch, *sizes = ([*numbers, 4])[:2] + numbers[2:]
    print(f"// ResNet-{depth} for images of CIFAR's size.")
    print(write("forward", depth, 1, *sizes) + write("forward_batch", depth, batch, *sizes), end="")


if __name__ == "__main__":
    main()
