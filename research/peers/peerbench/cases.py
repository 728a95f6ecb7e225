# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators that are measured: the kas function of each, and the same function as PyTorch code.

A case counts its multiply-adds nominally: every output has all taps, also those on padding; operators of two stages
count the staged form. `real` is the share of them that does not fall on padding, which good kernels skip: at 7x7 18 %
of a 3x3 do. Nothing here needs a package: PyTorch is an argument of the functions that build modules.
"""

import collections
import dataclasses
import itertools
import re
import typing
import zlib
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[3] / "lib" / "Library"


@dataclasses.dataclass
class Case:
    name: str
    # The class of the summary (dense, grouped, new, searched, network), and a finer one.
    group: str
    subgroup: str
    shape: tuple
    # The text of a module with one public function @run, of the data and the weights.
    mlir: str
    macs: float
    real: float
    # Name of the form -> function(torch) -> module; "written" is the first one.
    forms: dict
    # function(module of the first form) -> the weights as kas takes them.
    weights: typing.Callable
    # Elements of all tensors that must be read or written once.
    elements: int = 0
    # The public function of the module.
    entry: str = "run"
    # Other modules that only kas runs, on the same inputs, with a function of that name: what they compute is not
    # compared. Name -> (text, function(module) -> weights).
    others: dict = dataclasses.field(default_factory=dict)

    def build(self, torch, form="written"):
        """The module with the weights of the case: the same ones in every form and every process."""
        torch.manual_seed(zlib.crc32(self.name.encode()) % 100000)
        module = self.forms[form](torch).eval()
        for parameter in module.parameters():
            parameter.requires_grad_(False)
        return module

    def inputs(self, numpy):
        """Enough inputs to exceed the second-level cache in turn."""
        count = max(4, min(16, -(-(2 << 20) // (4 * product(self.shape)))))
        random = numpy.random.default_rng(zlib.crc32(self.name.encode()) + 1)
        return [random.standard_normal(self.shape).astype(numpy.float32) for _ in range(count)]


def product(values):
    result = 1
    for value in values:
        result *= value
    return result


def library(*names):
    """The text of operators of the library, without their comments."""
    text = "".join((LIBRARY / f"{name}.mlir").read_text() for name in names)
    return re.sub(r"^//.*\n", "", text, flags=re.M)


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def function(operators, inputs, result, body):
    """A module with the operators and @run; `inputs` are shapes, the first that of the data."""
    names = ["x", *(f"w{i}" for i in range(len(inputs) - 1))]
    arguments = ", ".join(f"%{name}: {tensor(*shape)}" for name, shape in zip(names, inputs))
    return (
        f"{library(*operators)}func.func @run({arguments}) -> {tensor(*result)} {{\n"
        f"{body}  return %y : {tensor(*result)}\n}}\n"
    )


def apply(result, operator, binding, operands, shapes, out):
    symbols = ", ".join(f"{name} = {value}" for name, value in binding.items())
    types = ", ".join(tensor(*shape) for shape in shapes)
    return (
        f"  %{result} = kas.apply "
        f"@{operator}{'<' + symbols + '>' if symbols else ''}({', '.join('%' + o for o in operands)}) : ({types}) -> "
        f"{tensor(*out)}\n"
    )


def single(operator, binding, shapes, out):
    """A module that applies one operator to its arguments."""
    operands = ["x", *(f"w{i}" for i in range(len(shapes) - 1))]
    return function([operator], shapes, out, apply("y", operator, binding, operands, shapes, out))


def inside(size, kernel, stride=1, dilation=1):
    """Share of the (output, tap) pairs of one axis whose input is not padding."""
    pad = dilation * (kernel // 2)
    out = out_size(size, kernel, stride, dilation)
    return sum(0 <= o * stride + t * dilation - pad < size for o in range(out) for t in range(kernel)) / (out * kernel)


def out_size(size, kernel, stride=1, dilation=1):
    return (size + 2 * dilation * (kernel // 2) - dilation * (kernel - 1) - 1) // stride + 1


CASES = collections.OrderedDict()


def add(name, group, subgroup, shape, mlir, macs, real, forms, weights, elements):
    CASES[name] = Case(name, group, subgroup, shape, mlir, macs, real, forms, weights, elements)


# ---------------------------------------------------------------- convolutions


def make_convolution(name, group, subgroup, cin, cout, size, kernel, stride=1, groups=1, dilation=1):
    pad, out = dilation * (kernel // 2), out_size(size, kernel, stride, dilation)
    x, y = (1, cin, size, size), (1, cout, out, out)
    per_group = cin // groups
    weight = (cout, per_group, kernel, kernel)
    if kernel == 1:
        operator, binding, weight = "conv1x1", {}, (cout, cin)
    elif groups == cin == cout:
        operator, binding, weight = "conv2d_depthwise", {"k": kernel}, (cin, kernel, kernel)
    elif groups > 1:
        operator, binding, weight = (
            "conv2d_grouped",
            {"k": kernel, "g": groups},
            (groups, cout // groups, per_group, kernel, kernel),
        )
    elif dilation > 1:
        operator, binding = "conv2d_dilated", {"k": kernel, "d": dilation, "p": pad}
    elif stride > 1:
        operator, binding = "conv2d_strided", {"k": kernel, "s": stride}
    else:
        operator, binding = "conv2d", {"k": kernel}
    if groups > 1 and stride > 1:
        operator, binding = operator + "_strided", {**binding, "s": stride}

    def build(torch):
        return torch.nn.Conv2d(cin, cout, kernel, stride, pad, dilation, groups, bias=False)

    def weights(module):
        return [module.weight.numpy().reshape(weight)]

    macs = out * out * cout * per_group * kernel * kernel
    return Case(
        name,
        group,
        subgroup,
        x,
        single(operator, binding, [x, weight], y),
        macs,
        inside(size, kernel, stride, dilation) ** 2,
        {"written": build},
        weights,
        product(x) + product(y) + product(weight),
    )


def convolution(name, *arguments, **options):
    CASES[name] = make_convolution(name, *arguments, **options)


# What one call costs when there is next to nothing to compute.
convolution("call_1x1_8_8@1", "call", "call", 8, 8, 1, 1)
for c, h in ((64, 56), (128, 28), (256, 14), (512, 7)):
    convolution(f"c3_{c}_{c}@{h}", "dense", "dense", c, c, h, 3)
convolution("c3s2_64_128@56", "dense", "dense", 64, 128, 56, 3, stride=2)
for cin, cout, h in ((64, 256, 56), (256, 64, 56), (512, 128, 28), (1024, 256, 14), (2048, 512, 7)):
    convolution(f"c1_{cin}_{cout}@{h}", "dense", "dense", cin, cout, h, 1)
convolution("c7s2_3_64@224", "dense", "dense", 3, 64, 224, 7, stride=2)
for g in (2, 4, 8, 16, 32):
    convolution(f"g{g}_64_64@56", "grouped", "wide" if g < 8 else "thin", 64, 64, 56, 3, groups=g)
convolution("g32_256_256@14", "grouped", "thin", 256, 256, 14, 3, groups=32)
# ResNeXt-50 32x4d: 32 groups at every resolution.
for c, h in ((128, 56), (256, 28), (512, 14), (1024, 7)):
    convolution(f"g32_{c}_{c}@{h}", "grouped", "thin", c, c, h, 3, groups=32)
for k, c, h in ((3, 64, 56), (3, 256, 14), (3, 512, 7), (5, 64, 56), (7, 64, 56)):
    convolution(f"dw{k}_{c}@{h}", "grouped", "depthwise", c, c, h, k, groups=c)
convolution("dil2_64_64@56", "grouped", "wide", 64, 64, 56, 3, dilation=2)


def shift(c, h):
    """Nine groups of channels, each moved by its own offset in 3x3 with zeros after it, then a 1x1 convolution."""
    bounds = [q * c // 9 for q in range(10)]
    x, pad = (1, c, h, h), (1, c, h + 2, h + 2)
    body = "  %zero = arith.constant 0.0 : f32\n"
    body += (
        "  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {\n  ^bb0(%a: index, %b: index, %c: index, %d: index):\n"
    )
    body += f"    tensor.yield %zero : f32\n  }} : {tensor(*x)} to {tensor(*pad)}\n"
    for q, (low, high) in enumerate(itertools.pairwise(bounds)):
        body += (
            f"  %s{q} = tensor.extract_slice %p[0, {low}, {q // 3}, {q % 3}] [1, {high - low}, {h}, {h}] [1, 1, "
            f"1, 1] : {tensor(*pad)} to {tensor(1, high - low, h, h)}\n"
        )
    types = ", ".join(tensor(1, high - low, h, h) for low, high in itertools.pairwise(bounds))
    body += f"  %m = tensor.concat dim(1) {', '.join(f'%s{q}' for q in range(9))} : ({types}) -> {tensor(*x)}\n"
    body += apply("y", "conv1x1", {}, ["m", "w0"], [x, (c, c)], x)

    def build(torch):
        class Shift(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.Conv2d(c, c, 1, bias=False)

            def forward(self, data):
                padded = torch.nn.functional.pad(data, (1, 1, 1, 1))
                parts = [padded[:, bounds[q] : bounds[q + 1], q // 3 : q // 3 + h, q % 3 : q % 3 + h] for q in range(9)]
                return self.conv(torch.cat(parts, 1))

        return Shift()

    add(
        f"shift_{c}_{c}@{h}",
        "grouped",
        "wide",
        x,
        function(["conv1x1"], [x, (c, c)], x, body),
        c * c * h * h,
        1.0,
        {"written": build},
        lambda module: [module.conv.weight.numpy().reshape(c, c)],
        2 * product(x) + c * c,
    )


def cyclic_shift(c, h):
    """The shift of the coordinate level: all channels by one pixel, cyclically, then a 1x1 convolution."""
    x = (1, c, h, h)

    def build(torch):
        class CyclicShift(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.Conv2d(c, c, 1, bias=False)

            def forward(self, data):
                return self.conv(torch.roll(data, -1, 2))

        return CyclicShift()

    add(
        f"roll_{c}_{c}@{h}",
        "grouped",
        "wide",
        x,
        single("shift_conv2d", {}, [x, (c, c)], x),
        c * c * h * h,
        1.0,
        {"written": build},
        lambda module: [module.conv.weight.numpy().reshape(c, c)],
        2 * product(x) + c * c,
    )


shift(64, 56)
cyclic_shift(64, 56)

# ---------------------------------------------------------------- operators that no library knows

G, K, S = 32, 3, 2


def random_weight(torch, *shape, fan):
    return torch.nn.Parameter(torch.randn(*shape) / fan**0.5)


def operator1_modules(torch, c, h):
    """Syno's Operator 1: written with unfold and einsum, and by hand as two convolutions and a shift."""
    F, T = torch.nn.functional, c // (G * S)

    class Operator1(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w1 = random_weight(torch, c, K, T, fan=c // G)
            self.w2 = random_weight(torch, G, K, K, c, T, fan=G * K * K * T)

        def forward(self, x):
            u = F.unfold(x, (1, K), padding=(0, K // 2)).view(1, G, c // G, K, h, h)
            z = torch.einsum("ngcjhw,gcjt->ngjthw", u, self.w1.view(G, c // G, K, T))
            z = F.unfold(z.reshape(1, G * K * T, h, h), (K, 1), padding=(K // 2, 0))
            return torch.einsum("ngjtihw,gijot->nohw", z.view(1, G, K, T, K, h, h), self.w2)

    class Operator1Convolutions(torch.nn.Module):
        def __init__(self, module):
            super().__init__()
            w1 = module.w1.detach().view(G, c // G, K, T)
            self.v1 = torch.nn.Parameter(w1.permute(0, 2, 3, 1).reshape(G * K * T, c // G, 1, 1).contiguous())
            self.v2 = torch.nn.Parameter(
                module.w2.detach().permute(3, 0, 2, 4, 1).reshape(c, G * K * T, K, 1).contiguous()
            )

        def forward(self, x):
            z = F.conv2d(x, self.v1, groups=G).view(1, G, K, T, h, h)
            z = torch.stack([F.pad(z[:, :, 0, :, :, :-1], (1, 0)), z[:, :, 1], F.pad(z[:, :, 2, :, :, 1:], (0, 1))], 2)
            return F.conv2d(z.reshape(1, G * K * T, h, h), self.v2, padding=(1, 0))

    return Operator1, Operator1Convolutions


def operator2_modules(torch, c, h):
    """Syno's Operator 2: written with unfold and einsum, and by hand as two convolutions."""
    F, T = torch.nn.functional, c // (G * S)

    class Operator2(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w1 = random_weight(torch, c, K, T, fan=c // G * K)
            self.w2 = random_weight(torch, G, K, c, T, fan=G * K * T)

        def forward(self, x):
            u = F.unfold(x, (1, K), padding=(0, K // 2)).view(1, G, c // G, K, h, h)
            z = torch.einsum("ngcjhw,gcjt->ngthw", u, self.w1.view(G, c // G, K, T))
            z = torch.roll(z.reshape(1, G * T, h, h), -1, 2)
            z = F.unfold(z, (K, 1), padding=(K // 2, 0))
            return torch.einsum("ngtihw,giot->nohw", z.view(1, G, T, K, h, h), self.w2)

    class Operator2Convolutions(torch.nn.Module):
        def __init__(self, module):
            super().__init__()
            w1 = module.w1.detach().view(G, c // G, K, T)
            self.v1 = torch.nn.Parameter(w1.permute(0, 3, 1, 2).reshape(G * T, c // G, 1, K).contiguous())
            self.v2 = torch.nn.Parameter(module.w2.detach().permute(2, 0, 3, 1).reshape(c, G * T, K, 1).contiguous())

        def forward(self, x):
            z = F.conv2d(x, self.v1, groups=G, padding=(0, 1))
            return F.conv2d(torch.roll(z, -1, 2), self.v2, padding=(1, 0))

    return Operator2, Operator2Convolutions


OPERATORS = {
    "op1": ("syno_operator1", operator1_modules, lambda c: [(c, K, c // (G * S)), (G, K, K, c, c // (G * S))]),
    "op2": ("syno_operator2", operator2_modules, lambda c: [(c, K, c // (G * S)), (G, K, c, c // (G * S))]),
}


def operator_macs(shapes, h):
    """Two stages: each weight once per pixel."""
    return sum(map(product, shapes)) * h * h


def new_operator(name, c, h):
    operator, modules, get_shapes = OPERATORS[name]
    x, shapes = (1, c, h, h), get_shapes(c)

    def written(torch):
        return modules(torch, c, h)[0]()

    def by_hand(torch):
        plain, convolutions = modules(torch, c, h)
        return convolutions(plain())

    first, second, share = product(shapes[0]), product(shapes[1]), inside(h, K)
    # The first stage of Operator 1 reads no neighbours.
    real = (first + second * share) * share / (first + second) if name == "op1" else share
    add(
        f"{name}_{c}@{h}",
        "new",
        name,
        x,
        single(operator, {"k": K, "g": G, "s": S}, [x, *shapes], x),
        operator_macs(shapes, h),
        real,
        {"written": written, "by-hand": by_hand},
        lambda module: [module.w1.numpy(), module.w2.numpy()],
        2 * product(x) + first + second,
    )


def sequences(c, h, dense_outputs=16, slabs=2, groups=(2, 4)):
    """The three sequences of NAS-PTE in the paper's numbering."""
    x, dense = (1, c, h, h), 9 * c * c * h * h
    share, rest = inside(h, 3), c - dense_outputs

    def slabs_module(torch):
        nn = torch.nn

        class Slabs(nn.Module):
            """The height in slabs, each with its own dense convolution."""

            def __init__(self):
                super().__init__()
                self.m = nn.ModuleList([nn.Conv2d(c, c, 3, padding=1, bias=False) for _ in range(slabs)])

            def forward(self, data):
                size = h // slabs
                return torch.cat([m(data[:, :, i * size : (i + 1) * size]) for i, m in enumerate(self.m)], 2)

        return Slabs()

    def stacked(module):
        import numpy

        return [numpy.stack([m.weight.numpy() for m in module.m])]

    weight = (slabs, c, c, 3, 3)
    add(
        f"seq1_{c}@{h}",
        "new",
        "sequence",
        x,
        single("conv2d_slabs", {"k": 3, "s": slabs}, [x, weight], x),
        dense,
        share * inside(h // slabs, 3),
        {"written": slabs_module},
        stacked,
        2 * product(x) + product(weight),
    )

    def split_module(torch):
        nn = torch.nn

        class Split(nn.Module):
            """Some outputs dense, the others in groups of the other inputs."""

            def __init__(self):
                super().__init__()
                self.a = nn.Conv2d(c, dense_outputs, 3, padding=1, bias=False)
                self.b = nn.Conv2d(rest, rest, 3, padding=1, groups=2, bias=False)

            def forward(self, data):
                return torch.cat([self.a(data), self.b(data[:, dense_outputs:])], 1)

        return Split()

    first, second = (dense_outputs, c, 3, 3), (2, rest // 2, rest // 2, 3, 3)
    one, other = (1, dense_outputs, h, h), (1, rest, h, h)
    body = apply("a", "conv2d", {"k": 3}, ["x", "w0"], [x, first], one)
    body += (
        f"  %s = tensor.extract_slice %x[0, {dense_outputs}, 0, 0] [1, {rest}, {h}, {h}] [1, 1, 1, 1] : "
        f"{tensor(*x)} to {tensor(*other)}\n"
    )
    body += apply("b", "conv2d_grouped", {"k": 3, "g": 2}, ["s", "w1"], [other, second], other)
    body += f"  %y = tensor.concat dim(1) %a, %b : ({tensor(*one)}, {tensor(*other)}) -> {tensor(*x)}\n"
    add(
        f"seq2_{c}@{h}",
        "new",
        "sequence",
        x,
        function(["conv2d", "conv2d_grouped"], [x, first, second], x, body),
        9 * h * h * (dense_outputs * c + rest * rest // 2),
        share**2,
        {"written": split_module},
        lambda module: [module.a.weight.numpy(), module.b.weight.numpy().reshape(second)],
        2 * product(x) + product(first) + product(second),
    )

    def halves_module(torch):
        nn = torch.nn

        class Halves(nn.Module):
            """The outputs in two halves with different groups."""

            def __init__(self):
                super().__init__()
                self.m = nn.ModuleList([nn.Conv2d(c, c // 2, 3, padding=1, groups=g, bias=False) for g in groups])

            def forward(self, data):
                return torch.cat([m(data) for m in self.m], 1)

        return Halves()

    half = (1, c // 2, h, h)
    shapes = [(g, c // 2 // g, c // g, 3, 3) for g in groups]
    body = "".join(
        apply(f"h{i}", "conv2d_grouped", {"k": 3, "g": g}, ["x", f"w{i}"], [x, shapes[i]], half)
        for i, g in enumerate(groups)
    )
    body += f"  %y = tensor.concat dim(1) %h0, %h1 : ({tensor(*half)}, {tensor(*half)}) -> {tensor(*x)}\n"
    add(
        f"seq3_{c}@{h}",
        "new",
        "sequence",
        x,
        function(["conv2d_grouped"], [x, *shapes], x, body),
        dense * 3 // 8,
        share**2,
        {"written": halves_module},
        lambda module: [m.weight.numpy().reshape(s) for m, s in zip(module.m, shapes)],
        2 * product(x) + sum(map(product, shapes)),
    )


for c, h in ((64, 56), (128, 28), (256, 14)):
    new_operator("op1", c, h)
    new_operator("op2", c, h)
    sequences(c, h)
