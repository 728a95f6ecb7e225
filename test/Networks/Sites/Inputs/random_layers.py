#!/usr/bin/env python3
"""Writes a function with random convolutions and linear layers.

    python random_layers.py SEED COUNT

All layers of `@layers` have data, weight and the start of the accumulator as
arguments and their result as one of the function's. The first lines tell
FileCheck how many of them must become kas.apply, by a rule of this file: the
output size is the input size over the stride. All draws come from SEED.
"""

import random
import sys


class Writer:
    def __init__(self):
        self.arguments, self.lines, self.results, self.found = [], [], [], 0

    def argument(self, shape):
        self.arguments.append(f"%a{len(self.arguments)}: {tensor(shape)}")
        return f"%a{len(self.arguments) - 1}"

    def name(self):
        return f"%v{len(self.lines)}"

    def line(self, text):
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def result(self, value, shape):
        self.results.append((value, tensor(shape)))

    def text(self):
        types = ", ".join(t for _, t in self.results)
        values = ", ".join(v for v, _ in self.results)
        return "\n".join(
            [
                f"// CHECK-COUNT-{self.found}: kas.apply",
                "// CHECK-NOT: kas.apply",
                "func.func @layers(" + ", ".join(self.arguments) + f") -> ({types}) {{",
                "  %zero = arith.constant 0.0 : f32",
                *self.lines,
                f"  return {values} : {types}",
                "}",
            ]
        )


def tensor(shape):
    return "tensor<" + "x".join(map(str, shape)) + "xf32>"


def pad(writer, value, shape, low, high):
    padded = [n + a + b for n, a, b in zip(shape, low, high)]
    if padded == shape:
        return value, shape
    indices = ", ".join(f"%i{d}: index" for d in range(len(shape)))
    return writer.line(
        f"tensor.pad {value} low{low} high{high} {{\n  ^bb0({indices}):\n    tensor.yield %zero : f32\n"
        f"  }} : {tensor(shape)} to {tensor(padded)}"
    ), padded


def convolution(writer, rng):
    rank = rng.choice([1, 2, 2, 2])
    kind = rng.choice(["dense", "dense", "depthwise"] + (["grouped"] if rank == 2 else []))
    batch, groups = rng.randint(1, 2), rng.randint(2, 3) if kind == "grouped" else 1
    inputs, outputs = groups * rng.randint(1, 4), groups * rng.randint(1, 4)
    if kind == "depthwise":
        outputs = inputs
    uniform = rng.random() < 0.7

    def draw(choices):
        one = rng.choice(choices)
        return [one] * rank if uniform else [rng.choice(choices) for _ in range(rank)]

    # A space has at most 12 symbols, so that not everything can differ between dimensions.
    kernel, dilation = draw([1, 2, 3, 3, 4, 5]), [rng.choice([1, 1, 1, 2])] * rank
    uniform = uniform or kind == "grouped"
    stride = draw([1, 1, 1, 2, 3])
    low, high, size, output = [], [], [], []
    for k, s, d in zip(kernel, stride, dilation):
        reach = d * (k - 1)
        n = s * (-(-(reach + 1) // s) + rng.randint(0, 2)) + (rng.random() < 0.1)
        low.append(rng.choice([reach // 2, reach // 2, (reach + 1) // 2, reach, 0]))
        # What gives n / s outputs, or anything.
        wanted = s * (-(-n // s) - 1) + 1 + reach - n - low[-1]
        high.append(max(0, wanted) if rng.random() < 0.8 else rng.randint(0, 2))
        size.append(n)
        output.append((n + low[-1] + high[-1] - reach - 1) // s + 1)
    if all(o * s == n for o, s, n in zip(output, stride, size)):
        writer.found += 1

    shape = [batch, inputs, *size]
    value, padded = pad(writer, writer.argument(shape), shape, [0, 0, *low], [0, 0, *high])
    attributes = (
        f"{{dilations = dense<{dilation}> : vector<{rank}xi64>, strides = dense<{stride}> : vector<{rank}xi64>}}"
    )
    result = [batch, outputs, *output]
    if kind == "dense":
        operation, weight = ("conv_2d_nchw_fchw", "conv_1d_ncw_fcw")[rank == 1], [outputs, inputs, *kernel]
    elif kind == "depthwise":
        operation, weight = ("depthwise_conv_2d_nchw_chw", "depthwise_conv_1d_ncw_cw")[rank == 1], [inputs, *kernel]
    else:
        operation = rng.choice(["conv_2d_ngchw_gfchw", "conv_2d_ngchw_fgchw"])
        order = [groups, outputs // groups] if operation.endswith("gfchw") else [outputs // groups, groups]
        weight = [*order, inputs // groups, *kernel]
        split = [batch, groups, inputs // groups, *padded[2:]]
        value = writer.line(
            f"tensor.expand_shape {value} [[0], [1, 2], [3], [4]] output_shape {split} : "
            f"{tensor(padded)} into {tensor(split)}"
        )
        padded, result = split, [batch, groups, outputs // groups, *output]
    weight_value, start = writer.argument(weight), writer.argument(result)
    y = writer.line(
        f"linalg.{operation} {attributes} ins({value}, {weight_value} : {tensor(padded)}, {tensor(weight)}) "
        f"outs({start} : {tensor(result)}) -> {tensor(result)}"
    )
    writer.result(y, result)


def linear(writer, rng):
    rows, inputs, outputs = (rng.randint(1, 5) for _ in range(3))
    writer.found += 1
    x, result = writer.argument([rows, inputs]), [rows, outputs]
    if rng.random() < 0.5:
        weight = writer.argument([outputs, inputs])
        empty = writer.line(f"tensor.empty() : {tensor([inputs, outputs])}")
        weight = writer.line(
            f"linalg.transpose ins({weight} : {tensor([outputs, inputs])}) "
            f"outs({empty} : {tensor([inputs, outputs])}) permutation = [1, 0]"
        )
    else:
        weight = writer.argument([inputs, outputs])
    start = writer.argument(result)
    y = writer.line(
        f"linalg.matmul ins({x}, {weight} : {tensor([rows, inputs])}, {tensor([inputs, outputs])}) "
        f"outs({start} : {tensor(result)}) -> {tensor(result)}"
    )
    writer.result(y, result)


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    rng, writer = random.Random(seed), Writer()
    for _ in range(count):
        (linear if rng.random() < 0.1 else convolution)(writer, rng)
    print(writer.text())


main()
