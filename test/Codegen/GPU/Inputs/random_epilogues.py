#!/usr/bin/env python3
"""Writes a function whose kernels end in random elementwise operations.

    python random_epilogues.py SEED COUNT

Each result of `@forward` is a contraction, an operator or a reduction and what
an elementwise operation makes of it, with biases, residuals in several orders,
padded or of other kernels, through reshapes. The first lines tell FileCheck how
many kernels there are: one for each contraction, operator or reduction. All
draws come from SEED.
"""

import random
import sys

OPERATOR = """kas.operator @depthwise<N, C, W | k>
    (%n: N, %c: C, %w: W) from [N, C, W] {
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : C
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%c_w, %j_w)
}
"""


def tensor(shape):
    return "tensor<" + "x".join(map(str, [*shape, "f32"])) + ">"


def get_map(rank, dims):
    loops = ", ".join(f"d{i}" for i in range(rank))
    return f"affine_map<({loops}) -> ({', '.join(f'd{d}' for d in dims)})>"


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.arguments, self.lines, self.results = [], [], []
        self.kernels = self.names = 0

    def argument(self, shape):
        self.arguments.append(f"%a{len(self.arguments)}: {tensor(shape)}")
        return f"%a{len(self.arguments) - 1}"

    def line(self, text):
        self.names += 1
        self.lines.append(f"  %v{self.names} = {text}")
        return f"%v{self.names}"

    def fill(self, shape, value="%zero"):
        empty = self.line(f"tensor.empty() : {tensor(shape)}")
        return self.line(f"linalg.fill ins({value} : f32) outs({empty} : {tensor(shape)}) -> {tensor(shape)}")

    def named(self, name, shapes, result, attributes=""):
        values = [self.argument(shape) for shape in shapes]
        types = ", ".join(map(tensor, shapes))
        zeros = self.fill(result)
        return self.line(
            f"linalg.{name}{attributes} ins({', '.join(values)} : {types}) "
            f"outs({zeros} : {tensor(result)}) -> {tensor(result)}"
        )

    # Kernels: each returns a value and its shape.

    def convolution(self):
        pick = self.random.choice
        c, k, size = pick([3, 8, 16]), pick([5, 8, 16, 72]), pick([4, 7, 14])
        window = pick([1, 3])
        return self.named(
            "conv_2d_nchw_fchw",
            [[1, c, size, size], [k, c, window, window]],
            [1, k, size - window + 1, size - window + 1],
        ), [1, k, size - window + 1, size - window + 1]

    def channels_last(self):
        pick = self.random.choice
        c, k, size = pick([8, 16]), pick([6, 8, 24]), pick([5, 8])
        result = [2, size - 2, size - 2, k]
        shapes = [[2, size, size, c], [3, 3, c, k]]
        return self.named("conv_2d_nhwc_hwcf", shapes, result), result

    def product(self):
        m, n, k = (self.random.choice([8, 9, 64, 136]) for _ in range(3))
        return self.named("matmul", [[m, k], [k, n]], [m, n]), [m, n]

    def batches(self):
        b, m, n, k = (self.random.choice([2, 8, 16, 24]) for _ in range(4))
        return self.named("batch_matmul", [[b, m, k], [b, k, n]], [b, m, n]), [b, m, n]

    def reduction(self):
        shape = [self.random.choice([2, 4, 16]) for _ in range(3)]
        op, start = self.random.choice([("addf", "%zero"), ("maximumf", "%least")])
        data, init = self.argument(shape), self.fill(shape[:2], start)
        return self.line(
            f"linalg.generic {{indexing_maps = [{get_map(3, [0, 1, 2])}, {get_map(3, [0, 1])}], "
            'iterator_types = ["parallel", "parallel", "reduction"]} '
            f"ins({data} : {tensor(shape)}) outs({init} : {tensor(shape[:2])}) {{\n"
            "  ^bb0(%in: f32, %out: f32):\n"
            f"    %r = arith.{op} %in, %out : f32\n"
            "    linalg.yield %r : f32\n"
            f"  }} -> {tensor(shape[:2])}"
        ), shape[:2]

    def operator(self):
        c, w = self.random.choice([4, 8, 24]), self.random.choice([7, 16, 32])
        data, weight = [1, c, w], [c, 3]
        operands = f"{self.argument(data)}, {self.argument(weight)}"
        return self.line(
            f"kas.apply @depthwise<k = 3>({operands}) : ({tensor(data)}, {tensor(weight)}) -> {tensor(data)}"
        ), data

    def kernel(self):
        self.kernels += 1
        return self.random.choice(
            [
                self.convolution,
                self.channels_last,
                self.product,
                self.batches,
                self.reduction,
                self.operator,
            ]
        )()

    # What elementwise operations read.

    def reshape(self, value, shape):
        """The same elements with the last two dimensions as one, or one as two."""
        if self.random.random() < 0.6:
            return value, shape
        last = len(shape) - 1
        groups = [[i] for i in range(last - 1)]
        if self.random.random() < 0.5:
            to = [*shape[:-2], shape[-2] * shape[-1]]
            groups.append([last - 1, last])
            text = f"tensor.collapse_shape {value} {groups}"
        elif shape[-1] % 2 == 0:
            to = [*shape[:-1], 2, shape[-1] // 2]
            groups += [[last - 1], [last, last + 1]]
            sizes = f"output_shape {to}"
            text = f"tensor.expand_shape {value} {groups} {sizes}"
        else:
            return value, shape
        return self.line(f"{text} : {tensor(shape)} into {tensor(to)}"), to

    def padded(self, shape):
        """A tensor that is shorter along the first dimension, with ones around it."""
        small = [shape[0] - 1, *shape[1:]]
        low = ", ".join("1" if i == 0 else "0" for i in range(len(shape)))
        high = ", ".join("0" for _ in shape)
        indices = ", ".join(f"%i{i}: index" for i in range(len(shape)))
        return self.line(
            f"tensor.pad {self.argument(small)} low[{low}] high[{high}] {{\n"
            f"  ^bb0({indices}):\n    tensor.yield %one : f32\n"
            f"  }} : {tensor(small)} to {tensor(shape)}"
        )

    def operand(self, shape):
        """A tensor and the dimensions of `shape` that it has, in its order."""
        all_dims = list(range(len(shape)))
        kind = self.random.choice(["bias", "bias", "residual", "transposed", "padded"])
        if kind == "bias":
            dims = [d for d in all_dims if self.random.random() < 0.4]
            return self.argument([shape[d] for d in dims]), dims
        if kind == "padded" and shape[0] > 1:
            return self.padded(shape), all_dims
        dims = self.random.sample(all_dims, len(shape)) if kind == "transposed" else all_dims
        return self.argument([shape[d] for d in dims]), dims

    def elementwise(self, value, shape, other):
        """`other`: a second kernel's result of this shape, or None."""
        rank = len(shape)
        operands = [(value, list(range(rank)))]
        if other:
            operands.append((other, list(range(rank))))
        operands += [self.operand(shape) for _ in range(self.random.randint(0, 3))]
        # The loops in any order.
        loops = self.random.sample(range(rank), rank)
        maps = [get_map(rank, [loops[d] for d in dims]) for _, dims in operands]
        maps.append(get_map(rank, loops))
        types = [tensor([shape[d] for d in dims]) for _, dims in operands]
        empty = self.line(f"tensor.empty() : {tensor(shape)}")
        names = [f"%x{i}" for i in range(len(operands))]
        body, current = [], names[0]
        for i, name in enumerate([*names[1:], "%zero_in"]):
            op = self.random.choice(["addf", "addf", "mulf", "subf"]) if name != "%zero_in" else "maximumf"
            body.append(f"    %y{i} = arith.{op} {current}, {name} : f32")
            current = f"%y{i}"
        arguments = ", ".join(f"{name}: f32" for name in [*names, "%out"])
        kinds = ", ".join(['"parallel"'] * rank)
        return self.line(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} "
            f"ins({', '.join(v for v, _ in operands)} : {', '.join(types)}) "
            f"outs({empty} : {tensor(shape)}) {{\n"
            f"  ^bb0({arguments}):\n    %zero_in = arith.constant -0.1 : f32\n"
            + "\n".join(body)
            + f"\n    linalg.yield {current} : f32\n  }} -> {tensor(shape)}"
        )

    def step(self):
        value, shape = self.kernel()
        other = None
        if len(shape) == 2 and self.random.random() < 0.3:
            self.kernels += 1
            other = self.named("matmul", [[shape[0], 8], [8, shape[1]]], shape)
        else:
            value, shape = self.reshape(value, shape)
        self.results.append((self.elementwise(value, shape, other), tensor(shape)))

    def text(self):
        types = ", ".join(t for _, t in self.results)
        values = ", ".join(v for v, _ in self.results)
        return "\n".join(
            [
                f"// CHECK-COUNT-{self.kernels}: gpu.launch_func",
                "// CHECK-NOT: gpu.launch_func",
                OPERATOR + "func.func @forward(" + ", ".join(self.arguments) + f") -> ({types}) {{",
                "  %zero = arith.constant 0.0 : f32",
                "  %one = arith.constant 1.0 : f32",
                "  %least = arith.constant 0xFF800000 : f32",
                *self.lines,
                f"  return {values} : {types}",
                "}",
            ]
        )


writer = Writer(int(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    writer.step()
print(writer.text())
