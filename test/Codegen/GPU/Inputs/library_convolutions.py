#!/usr/bin/env python3
"""Writes random convolutions, and checks the descriptions of them in a manifest.

    python library_convolutions.py write SEED COUNT > module.mlir
    python library_convolutions.py check SEED COUNT < manifest.json

Each function is a convolution with strides, dilations and pads, in random orders
of dimensions or an operator with groups, with or without a bias along a
dimension, a residual and a rectifier. `check` computes each convolution that has
a description for a library from that description alone on small integers, and
compares all elements with what the function computes. It prints how many it has
compared. All draws come from SEED.
"""

import json
import random
import sys
from dataclasses import dataclass

import numpy as np


@dataclass
class Case:
    """A function. Orders are strings of the letters n, c, h, w of images and results and k, c, h, w of filters."""

    images: int
    channels: int
    size: tuple[int, int]
    filters: int
    window: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    low: tuple[int, int]
    high: tuple[int, int]
    groups: int
    orders: tuple[str, str, str]
    bias: str
    has_residual: bool
    is_rectified: bool

    @property
    def results(self) -> tuple[int, int]:
        height, width = (
            (size + low + high - dilation * (points - 1) - 1) // stride + 1
            for size, low, high, dilation, points, stride in zip(
                self.size, self.low, self.high, self.dilations, self.window, self.strides, strict=True
            )
        )
        return height, width

    @property
    def shapes(self) -> tuple[list[int], list[int], list[int]]:
        """Of the image, the filter and the result, each in its order."""
        sizes = (
            dict(zip("nchw", (self.images, self.channels, *self.size), strict=True)),
            dict(zip("kchw", (self.filters, self.channels // self.groups, *self.window), strict=True)),
            dict(zip("nchw", (self.images, self.filters, *self.results), strict=True)),
        )
        image, kernel, result = (
            [size[letter] for letter in order] for size, order in zip(sizes, self.orders, strict=True)
        )
        return image, kernel, result

    @property
    def inputs(self) -> list[list[int]]:
        """Shapes of all inputs."""
        image, kernel, result = self.shapes
        bias = [[result[self.orders[2].index(self.bias)]]] if self.bias else []
        return [image, kernel, *bias, *([result] if self.has_residual else [])]


def draw(generator: random.Random) -> Case:
    def pair(least: int, most: int) -> tuple[int, int]:
        return generator.randint(least, most), generator.randint(least, most)

    def shuffle(letters: str) -> str:
        return "".join(generator.sample(letters, len(letters)))

    kind = generator.random()
    orders = ("nchw", "kchw", "nchw")
    if 0.4 < kind < 0.75:
        orders = ("nhwc", "khwc", "nhwc")
    elif kind >= 0.75:
        orders = (shuffle("nchw"), shuffle("kchw"), shuffle("nchw"))
    low = pair(0, 2)
    case = Case(
        images=generator.choice([1, 4]),
        channels=generator.choice([3, 40, 64]),
        size=pair(16, 28),
        filters=generator.choice([1, 40, 64]),
        window=pair(1, 3),
        strides=generator.choice([(1, 1), (1, 1), (2, 2), pair(1, 3)]),
        dilations=generator.choice([(1, 1), (1, 1), pair(1, 3)]),
        low=low,
        high=low if generator.random() < 0.8 else pair(0, 2),
        groups=1,
        orders=orders,
        bias=generator.choice(["", "c", "c", "c", "n", "w"]),
        has_residual=generator.random() < 0.3,
        is_rectified=generator.random() < 0.3,
    )
    if generator.random() < 0.2:
        # As operators have them.
        case.groups = generator.choice([2, 4])
        case.channels, case.filters = 16 * case.groups, 24 * case.groups
        points, stride = generator.choice([2, 3, 5]), generator.choice([1, 2])
        size = generator.choice([16, 24])
        case.size, case.window = (size, size), (points, points)
        case.strides, case.dilations = (stride, stride), (1, 1)
        case.low = (points // 2, points // 2)
        # So that there are size / stride results.
        high = (size // stride - 1) * stride + points - size - points // 2
        case.high = (high, high)
        case.orders = ("nchw", "kchw", "nchw")
    return case


def get_cases(seed: int, count: int) -> list[Case]:
    generator = random.Random(seed)
    return [draw(generator) for _ in range(count)]


def tensor(shape: list[int]) -> str:
    return "tensor<" + "x".join(map(str, [*shape, "f32"])) + ">"


def write_operator(case: Case, name: str) -> list[str]:
    n, c, (h, w), k, p, g = case.images, case.channels, case.size, case.filters, case.window[0], case.groups
    (y, x), s = case.results, case.strides[0]
    return [
        f"kas.operator @o{name}(%n: {n}, %go: {k}, %h: {y}, %w: {x}) from [{n}, {c}, {h}, {w}] {{",
        f"  %c = kas.reduce sum : {c // g}",
        f"  %i = kas.reduce sum : {p}",
        f"  %j = kas.reduce sum : {p}",
        f"  %G, %o = kas.merge %go by {k // g} : {k}",
        f"  %G_d, %G_w = kas.share %G : {g}",
        f"  %c_d, %c_w = kas.share %c : {c // g}",
        f"  %i_d, %i_w = kas.share %i : {p}",
        f"  %j_d, %j_w = kas.share %j : {p}",
        f"  %gc = kas.split %G_d, %c_d : {g}, {c // g}",
        f"  %h_s = kas.stride %h by {s} : {y}",
        f"  %w_s = kas.stride %w by {s} : {x}",
        f"  %y = kas.unfold %h_s, %i_d : {h}, {p}",
        f"  %x = kas.unfold %w_s, %j_d : {w}, {p}",
        "  kas.yield data(%n, %gc, %y, %x) weight(%G_w, %o, %c_w, %i_w, %j_w)",
        "}",
    ]


def write_sum(case: Case) -> list[str]:
    """The convolution as `%sum`, of the arguments `%a0` and `%a1` and of zeros."""
    image, kernel, result = map(tensor, case.shapes)
    pads = {"h": 0, "w": 1}
    low, high = (
        ", ".join(str(ends[pads[letter]]) if letter in pads else "0" for letter in case.orders[0])
        for ends in (case.low, case.high)
    )
    padded = tensor(
        [
            size + (case.low[pads[letter]] + case.high[pads[letter]] if letter in pads else 0)
            for letter, size in zip(case.orders[0], case.shapes[0], strict=True)
        ]
    )
    index = {"n": "n", "c": "c", "k": "k"}
    at = {
        letter: f"{out} * {case.strides[i]} + {point} * {case.dilations[i]}"
        for i, (letter, out, point) in enumerate((("h", "y", "i"), ("w", "x", "j")))
    }
    outs = {"n": "n", "c": "k", "h": "y", "w": "x"}
    points = {"k": "k", "c": "c", "h": "i", "w": "j"}
    loops = "(n, k, y, x, c, i, j)"
    maps = ", ".join(
        f"affine_map<{loops} -> ({', '.join(names[letter] for letter in order)})>"
        for names, order in zip((index | at, points, outs), case.orders, strict=True)
    )
    kinds = ", ".join(['"parallel"'] * 4 + ['"reduction"'] * 3)
    return [
        f"  %pad = tensor.pad %a0 low[{low}] high[{high}] {{",
        "    ^bb0(%d0: index, %d1: index, %d2: index, %d3: index):",
        "      tensor.yield %zero : f32",
        f"  }} : {image} to {padded}",
        f"  %sum = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}",
        f"      ins(%pad, %a1 : {padded}, {kernel}) outs(%zeros : {result}) {{",
        "    ^bb0(%x: f32, %y: f32, %z: f32):",
        "      %product = arith.mulf %x, %y : f32",
        "      %next = arith.addf %z, %product : f32",
        "      linalg.yield %next : f32",
        f"  }} -> {result}",
    ]


def write_epilogue(case: Case) -> list[str]:
    """What follows the sum, as `%all`."""
    result, order = tensor(case.shapes[2]), case.orders[2]
    same = f"affine_map<({', '.join(order)}) -> ({', '.join(order)})>"
    inputs = ["%sum", *(f"%a{i}" for i in range(2, len(case.inputs)))]
    maps = [same] * len(inputs)
    if case.bias:
        maps[1] = f"affine_map<({', '.join(order)}) -> ({case.bias})>"
    types = [result, *map(tensor, case.inputs[2:])]
    lines = [
        f"  %all = linalg.generic {{indexing_maps = [{', '.join([*maps, same])}],",
        '      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}',
        f"      ins({', '.join(inputs)} : {', '.join(types)}) outs(%empty : {result}) {{",
        f"    ^bb0({', '.join(f'%x{i}: f32' for i in range(len(inputs)))}, %out: f32):",
    ]
    term = "%x0"
    for i in range(1, len(inputs)):
        lines.append(f"      %s{i} = arith.addf %x{i}, {term} : f32")
        term = f"%s{i}"
    if case.is_rectified:
        lines.append(f"      %rectified = arith.maximumf {term}, %zero : f32")
        term = "%rectified"
    return [*lines, f"      linalg.yield {term} : f32", f"  }} -> {result}"]


def write(case: Case, name: str) -> str:
    types = list(map(tensor, case.inputs))
    result = tensor(case.shapes[2])
    lines = [
        f"func.func @{name}({', '.join(f'%a{i}: {type}' for i, type in enumerate(types))}) -> {result} {{",
        "  %zero = arith.constant 0.0 : f32",
        f"  %empty = tensor.empty() : {result}",
    ]
    operator = []
    if case.groups > 1:
        operator = write_operator(case, name)
        k, c, i, j = case.shapes[1]
        weight = tensor([case.groups, k // case.groups, c, i, j])
        lines += [
            f"  %w = tensor.expand_shape %a1 [[0, 1], [2], [3], [4]] output_shape [{case.groups}, {k // case.groups},"
            f" {c}, {i}, {j}] : {types[1]} into {weight}",
            f"  %sum = kas.apply @o{name}(%a0, %w) : ({types[0]}, {weight}) -> {result}",
        ]
    else:
        lines.append(f"  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}")
        lines += write_sum(case)
    value = "%sum"
    if len(types) > 2 or case.is_rectified:
        lines += write_epilogue(case)
        value = "%all"
    return "\n".join([*operator, *lines, f"  return {value} : {result}", "}"])


def convolve(
    image: np.ndarray,
    kernel: np.ndarray,
    results: tuple[int, int],
    low: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> np.ndarray:
    """Of an image `n, c, h, w` and a filter `k, c of a group, i, j`, with zeros around the image."""
    k, channels, *window = kernel.shape
    groups = image.shape[1] // channels
    room = [(size - 1) * stride + 1 for size, stride in zip(results, strides, strict=True)]
    ends = [
        (pad, max(0, size + dilation * (points - 1) - pad - length))
        for pad, size, dilation, points, length in zip(low, room, dilations, window, image.shape[2:], strict=True)
    ]
    padded = np.pad(image, [(0, 0), (0, 0), *ends])
    sums = np.zeros((image.shape[0], groups, k // groups, *results))
    parts = kernel.reshape(groups, k // groups, channels, *window)
    for i in range(window[0]):
        for j in range(window[1]):
            y, x = i * dilations[0], j * dilations[1]
            points = padded[:, :, y : y + room[0] : strides[0], x : x + room[1] : strides[1]]
            points = points.reshape(image.shape[0], groups, channels, *results)
            sums += np.einsum("ngchw,gkc->ngkhw", points, parts[..., i, j])
    return sums.reshape(image.shape[0], k, *results)


def evaluate(convolution: dict, arguments: list[np.ndarray]) -> np.ndarray:
    """What the description says, of flat arguments."""
    is_last = convolution["channels_last"]

    def read(name: str, sizes: list[int]) -> np.ndarray:
        values = arguments[convolution[name]]
        if not is_last:
            return values.reshape(sizes)
        return values.reshape(sizes[0], *sizes[2:], sizes[1]).transpose(0, 3, 1, 2)

    image, kernel = read("image", convolution["image_sizes"]), read("filter", convolution["filter_sizes"])
    height, width = (
        (size + 2 * pad - dilation * (points - 1) - 1) // stride + 1
        for size, pad, dilation, points, stride in zip(
            convolution["image_sizes"][2:],
            convolution["pads"],
            convolution["dilations"],
            convolution["filter_sizes"][2:],
            convolution["strides"],
            strict=True,
        )
    )
    values = convolve(
        image, kernel, (height, width), convolution["pads"], convolution["strides"], convolution["dilations"]
    )
    if "bias" in convolution:
        values += arguments[convolution["bias"]].reshape(1, -1, 1, 1)
    if "residual" in convolution:
        values += read("residual", list(values.shape))
    if convolution["rectified"]:
        values = np.maximum(values, 0)
    return (values.transpose(0, 2, 3, 1) if is_last else values).reshape(-1)


def compute(case: Case, inputs: list[np.ndarray]) -> np.ndarray:
    image = np.einsum(f"{case.orders[0]}->nchw", inputs[0])
    kernel = np.einsum(f"{case.orders[1]}->kchw", inputs[1])
    value = np.einsum(
        f"nchw->{case.orders[2]}", convolve(image, kernel, case.results, case.low, case.strides, case.dilations)
    )
    others = inputs[2:]
    if case.bias:
        value = value + others.pop(0).reshape([-1 if letter == case.bias else 1 for letter in case.orders[2]])
    if case.has_residual:
        value = value + others.pop(0)
    return (np.maximum(value, 0) if case.is_rectified else value).reshape(-1)


def check(cases: list[Case], manifest: dict) -> tuple[int, int]:
    """How many were compared, and how many of these have groups."""
    compared = grouped = 0
    functions = {function["name"]: function for function in manifest["functions"]}
    generator = np.random.default_rng(0)
    for i, case in enumerate(cases):
        function = functions[f"f{i}"]
        launch = function["launches"][0]
        convolution = manifest["kernels"][launch["kernel"]].get("convolution")
        # What first copies weights, or has no such form.
        if convolution is None or len(function["launches"]) != 1:
            continue
        inputs = [generator.integers(-4, 5, shape).astype(float) for shape in case.inputs]
        # Buffers of the function are its arguments in order, then its result.
        assert launch["arguments"][-1] == len(inputs), launch
        arguments = [inputs[position].reshape(-1) for position in launch["arguments"][:-1]]
        expected = compute(case, inputs)
        result = evaluate(convolution, arguments)
        if not np.array_equal(result, expected):
            sys.exit(f"error: expected {expected} for function f{i} ({case}), got {result} from {convolution}")
        compared += 1
        grouped += case.groups > 1
    return compared, grouped


def main() -> None:
    mode, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    cases = get_cases(seed, count)
    if mode == "write":
        print("\n".join(write(case, f"f{i}") for i, case in enumerate(cases)))
    else:
        compared, grouped = check(cases, json.load(sys.stdin))
        print(f"compared {compared} of {count}, {grouped} with groups")


if __name__ == "__main__":
    main()
