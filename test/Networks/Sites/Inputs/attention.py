#!/usr/bin/env python3
"""Writes functions of attention on two samples of 5 tokens with 12 channels.

One is a block of attention with 3 heads, and others are nearly one.
"""

N, T, C, H = 2, 5, 12, 3
D = C // H


def tensor(*shape):
    return "tensor<" + "x".join(map(str, shape)) + "xf32>"


class Function:
    def __init__(self, name):
        self.name, self.lines, self.arguments = name, [], []

    def argument(self, name, *shape):
        self.arguments.append(f'%{name}: {tensor(*shape)} {{kas.name = "{name}"}}')
        return f"%{name}"

    def add(self, text):
        self.lines.append(f"  %{len(self.lines)} = {text}")
        return f"%{len(self.lines) - 1}"

    def fill(self, *shape):
        empty = self.add(f"tensor.empty() : {tensor(*shape)}")
        return self.add(f"linalg.fill ins(%zero : f32) outs({empty} : {tensor(*shape)}) -> {tensor(*shape)}")

    def product(self, op, a, b, sa, sb, *shape):
        return self.add(
            f"{op} ins({a}, {b} : {tensor(*sa)}, {tensor(*sb)}) outs({self.fill(*shape)} : {tensor(*shape)})"
            f" -> {tensor(*shape)}"
        )

    def linear(self, x, name, columns=C):
        return self.product(
            "linalg.matmul", x, self.argument(name + ".weight", C, columns), (N * T, C), (C, columns), N * T, columns
        )

    def transpose(self, x, shape, permutation):
        to = [shape[p] for p in permutation]
        empty = self.add(f"tensor.empty() : {tensor(*to)}")
        return self.add(
            f"linalg.transpose ins({x} : {tensor(*shape)}) outs({empty} : {tensor(*to)}) permutation = "
            f"{list(permutation)}"
        )

    def split(self, x, last):
        """[N*T, C] as [N*H, T, D], or as [N*H, D, T]."""
        x = self.add(
            f"tensor.expand_shape {x} [[0, 1], [2, 3]] output_shape [{N}, {T}, {H}, {D}] : {tensor(N * T, C)} into "
            f"{tensor(N, T, H, D)}"
        )
        order = (0, 2, 1, 3) if last else (0, 2, 3, 1)
        shape = [(N, T, H, D)[p] for p in order]
        x = self.transpose(x, (N, T, H, D), order)
        return self.add(
            f"tensor.collapse_shape {x} [[0, 1], [2], [3]] : {tensor(*shape)} into {tensor(N * H, *shape[2:])}"
        )

    def elementwise(self, x, other, step, *shape):
        dims = ", ".join(f"d{i}" for i in range(len(shape)))
        kinds = ", ".join(['"parallel"'] * len(shape))
        map_ = f"affine_map<({dims}) -> ({dims})>"
        empty = self.add(f"tensor.empty() : {tensor(*shape)}")
        operands = (
            f"{x}, {other} : {tensor(*shape)}, {tensor(*shape)}"
            if other.startswith("%") and other != "%factor"
            else f"{x} : {tensor(*shape)}"
        )
        maps = ", ".join([map_] * (3 if "," in operands.split(":")[0] else 2))
        arguments = "%in: f32, %b: f32, %out: f32" if "," in operands.split(":")[0] else "%in: f32, %out: f32"
        value = "%b" if "," in operands.split(":")[0] else other
        return self.add(
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({operands}) "
            f"outs({empty} : {tensor(*shape)}) {{\n  ^bb0({arguments}):\n    %s = {step} %in, {value} : f32\n"
            f"    linalg.yield %s : f32\n  }} -> {tensor(*shape)}"
        )

    def softmax(self, x, dimension):
        shape = (N * H, T, T)
        empty = self.add(f"tensor.empty() : {tensor(*shape)}")
        return self.add(
            f"linalg.softmax dimension({dimension}) ins({x} : {tensor(*shape)}) outs({empty} : {tensor(*shape)})"
            f" -> {tensor(*shape)}"
        )

    def text(self, results, factor):
        types = ", ".join(t for _, t in results)
        values = ", ".join(v for v, _ in results)
        return "\n".join(
            [
                f"func.func @{self.name}(" + ", ".join(self.arguments) + f") -> ({types}) {{",
                "  %zero = arith.constant 0.0 : f32",
                f"  %factor = arith.constant {factor} : f32",
                *self.lines,
                f"  return {values} : {types}",
                "}",
            ]
        )


def attention(name, factor=2.0, mask=False, cross=False, used=False, dimension=2, columns=C, merge=(0, 2, 1, 3)):
    f = Function(name)
    x = f.argument("input", N * T, C)
    other = f.add(f"tensor.empty() : {tensor(N * T, C)}") if cross else x
    x = other if cross else x
    data = f.add(
        f"tensor.expand_shape %input [[0, 1], [2]] output_shape [{N}, {T}, {C}] : {tensor(N * T, C)} into "
        f"{tensor(N, T, C)}"
    )
    data = f.add(f"tensor.collapse_shape {data} [[0, 1], [2]] : {tensor(N, T, C)} into {tensor(N * T, C)}")
    q = f.split(f.linear(data, "q"), True)
    k = f.split(f.linear(x if cross else data, "k"), False)
    v = f.split(f.linear(data, "v"), True)
    scores = f.product("linalg.batch_matmul", q, k, (N * H, T, D), (N * H, D, T), N * H, T, T)
    scores = f.elementwise(scores, "%factor", "arith.divf", N * H, T, T)
    if mask:
        scores = f.elementwise(scores, f.argument("mask", N * H, T, T), "arith.addf", N * H, T, T)
    shares = f.softmax(scores, dimension)
    y = f.product("linalg.batch_matmul", shares, v, (N * H, T, T), (N * H, T, D), N * H, T, D)
    y = f.add(
        f"tensor.expand_shape {y} [[0, 1], [2], [3]] output_shape [{N}, {H}, {T}, {D}] : {tensor(N * H, T, D)} into "
        f"{tensor(N, H, T, D)}"
    )
    shape = [(N, H, T, D)[p] for p in merge]
    y = f.transpose(y, (N, H, T, D), merge)
    y = f.add(f"tensor.collapse_shape {y} [[0, 1], [2, 3]] : {tensor(*shape)} into {tensor(N * T, C)}")
    y = f.linear(y, "proj", columns)
    results = [(y, tensor(N * T, columns))]
    if used:
        results.append((shares, tensor(N * H, T, T)))
    return f.text(results, factor)


print(attention("attention"))
print(attention("mask", mask=True))
print(attention("factor", factor=3.0))
print(attention("cross", cross=True))
print(attention("used", used=True))
print(attention("queries", dimension=1))
print(attention("interleaved", merge=(0, 2, 3, 1)))
print(attention("wide", columns=2 * C))
