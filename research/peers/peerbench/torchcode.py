# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch code for any operator: what one would write who reads its primitives, from the data to the output.

A tensor has one dimension per coordinate. Going through the primitives from the data upwards, a split becomes
`unflatten`, a merge `flatten`, a shift `roll`, an unfold `pad` and a strided view, a stride a strided view, and each
weight one `einsum` as soon as all it shares is there, which sums over what nothing else needs. Operators are read in
stages (`kas-rfactor`), each of them a function of the one before, so that the code does no more multiply-adds than
ours.
"""

import dataclasses
import re
from fractions import Fraction

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class UnsupportedError(Exception):
    """The operator has what there is no code for."""


@dataclasses.dataclass
class Primitive:
    kind: str
    results: list
    operands: list
    sizes: list
    # The kind of a reduction, the distance of a shift, the size of a merge or stride, the low side of an unfold.
    extra: object = None


@dataclasses.dataclass
class Operator:
    name: str
    outputs: list  # (coordinate, size)
    inputs: list  # sizes
    primitives: list
    data: list
    weights: list  # lists of coordinates
    sizes: dict  # of all coordinates

    @property
    def shape(self):
        return [size for _, size in self.outputs]

    def weight_shapes(self):
        return [[self.sizes[c] for c in weight] for weight in self.weights]

    def points(self):
        count = 1
        for size in self.shape + [self.sizes[p.results[0]] for p in self.primitives if p.kind == "reduce"]:
            count *= size
        return count

    def macs(self):
        """As kas-print-cost counts them, of one stage."""
        reduces = any(primitive.kind == "reduce" for primitive in self.primitives)
        return self.points() * (len(self.weights) or int(reduces))


def make_size(text, binding):
    """The value of a size such as `C*k/(2*s)`."""
    if not re.fullmatch(r"[\w\s*/()]+", text):
        raise ValueError(f"expected a size, got '{text}'")
    value = eval(
        re.sub(r"\b(\d+)\b", r"Fraction(\1)", text),
        {"Fraction": Fraction, "__builtins__": {}},
        {name: Fraction(v) for name, v in binding.items()},
    )
    if value.denominator != 1:
        raise ValueError(f"expected '{text}' to be a whole number, got {value}")
    return int(value)


def split_commas(text):
    return [part.strip() for part in text.split(",") if part.strip()]


OPERATOR = re.compile(
    r"kas\.operator (?:private "
    r")?@(?P<name>[\w.]+)(?P<symbols><[^>]*>)?\s*\((?P<outputs>[^)]*(?:\([^)]*\)[^)]*)*)\)\s*from "
    r"\[(?P<inputs>[^\]]*)\]"
    r"(?P<attributes>[^\n]*)\{\n(?P<body>.*?)\n\s*\}",
    re.S,
)
YIELD = re.compile(r"(data|weight)\(([^)]*)\)")


def parse_operators(text, binding=None):
    """Name -> operator for all kas.operator of the text, with sizes at the binding, or for the concrete ones."""
    return {
        match["name"]: parse_operator(match, binding or {})
        for match in OPERATOR.finditer(text)
        if binding or not match["symbols"]
    }


def parse_operator(match, binding):
    def size(part):
        return make_size(part.replace("unordered", "").strip(), binding)

    outputs = [
        (name.strip().lstrip("%"), size(value))
        for name, value in (part.split(":") for part in split_commas(match["outputs"]))
    ]
    operator = Operator(
        match["name"], outputs, [size(part) for part in split_commas(match["inputs"])], [], [], [], dict(outputs)
    )
    for line in match["body"].splitlines():
        line = line.split("//")[0].strip()
        if line.startswith("kas.yield"):
            for kind, names in YIELD.findall(line):
                coordinates = [name.lstrip("%") for name in split_commas(names)]
                if kind == "data":
                    operator.data = coordinates
                else:
                    operator.weights.append(coordinates)
        elif line:
            primitive = parse_primitive(line, size)
            operator.primitives.append(primitive)
            operator.sizes.update(zip(primitive.results, result_sizes(primitive)))
    return operator


def parse_primitive(line, size):
    head, _, sizes = line.rpartition(":")
    results, equals, call = head.rpartition("=")
    names = [name.lstrip("%") for name in split_commas(results)] if equals else []
    words = call.split()
    primitive = Primitive(
        words[0].removeprefix("kas."),
        names,
        re.findall(r"%([\w#]+)", call),
        [size(part) for part in split_commas(sizes)],
    )
    if primitive.kind == "reduce":
        primitive.extra = words[1]
    elif primitive.kind in ("merge", "stride", "shift"):
        by = call.partition(" by ")[2].strip()
        primitive.extra = int(by) if primitive.kind == "shift" else size(by)
    elif primitive.kind == "unfold":
        low = call.partition(" low ")[2].strip()
        primitive.extra = size(low) if low else primitive.sizes[1] // 2
    return primitive


def result_sizes(primitive):
    s = primitive.sizes
    return {
        "split": lambda: [s[0] * s[1]],
        "merge": lambda: [s[0] // primitive.extra, primitive.extra],
        "shift": lambda: s,
        "expand": lambda: [],
        "unfold": lambda: [s[0]],
        "stride": lambda: [s[0] * primitive.extra],
        "reduce": lambda: s,
        "share": lambda: [s[0], s[0]],
    }[primitive.kind]()


class Writer:
    """Writes the lines of one operator; `t` is the tensor, `dims` its coordinates."""

    def __init__(self, operator, data, weights):
        self.operator, self.lines, self.t = operator, [], data
        self.dims = list(operator.data)
        # What is still to be multiplied: the tensor's name and its coordinates.
        self.pending = [(name, list(dims)) for name, dims in zip(weights, operator.weights)]
        self.reductions = {p.results[0]: p for p in operator.primitives if p.kind == "reduce"}
        if any(p.extra not in ("sum", "mean") for p in self.reductions.values()):
            raise UnsupportedError("a maximum")
        self.factor = 1.0
        self.passed = []

    def emit(self, value):
        self.lines.append(f"t = {value}")
        self.t = "t"

    def write(self):
        for primitive in reversed(self.operator.primitives):
            if primitive.kind == "share":
                self.share(primitive)
            elif primitive.kind != "reduce":
                self.need(primitive.results)
                getattr(self, primitive.kind)(primitive)
            self.multiply_ready()
        while self.pending:
            self.multiply(self.pending[0][0])
        self.sum_dead()
        wanted = [name for name, _ in self.operator.outputs]
        if sorted(wanted) != sorted(self.dims):
            raise UnsupportedError(f"an output without the coordinates {set(wanted) ^ set(self.dims)}")
        if wanted != self.dims:
            self.emit(f"{self.t}.permute({', '.join(str(self.dims.index(name)) for name in wanted)})")
        if self.factor != 1.0:
            self.emit(f"{self.t} * {self.factor!r}")
        return self.lines

    def need(self, coordinates):
        """Multiplies in the weights that have coordinates which the primitive takes."""
        while any(set(dims) & set(coordinates) for _, dims in self.pending):
            self.multiply(next(name for name, dims in self.pending if set(dims) & set(coordinates)))
        missing = [c for c in coordinates if c not in self.dims]
        if missing:
            raise UnsupportedError(f"coordinates that neither data nor weights have: {missing}")

    def open_shares(self, dims):
        """The shares after `dims` that the traversal has not come to."""
        return [
            p
            for p in self.operator.primitives
            if p.kind == "share" and p not in self.passed and set(p.results) & set(dims)
        ]

    def multiply_ready(self):
        """Multiplies in what has met the data and waits for no share."""
        for name, dims in list(self.pending):
            if set(dims) & set(self.dims) and not self.open_shares(dims):
                self.multiply(name)
        self.sum_dead()

    def multiply(self, name):
        """One einsum, which sums over what nothing else needs."""
        position = next(i for i, (pending, _) in enumerate(self.pending) if pending == name)
        for share in reversed(self.open_shares(self.pending[position][1])):
            if not any(share.results[0] in dims for dims in (self.dims, *(dims for _, dims in self.pending))):
                raise UnsupportedError("a weight that is needed before what it shares is there")
            self.share(share)
        _, dims = self.pending.pop(position)
        result = self.dims + [c for c in dict.fromkeys(dims) if c not in self.dims]
        dead = {c for c in result if self.is_dead(c)}
        letters = dict(zip(result, LETTERS))
        kept = [c for c in result if c not in dead]
        left, right, out = ("".join(letters[c] for c in part) for part in (self.dims, dims, kept))
        self.emit(f'torch.einsum("{left},{right}->{out}", {self.t}, {name})')
        self.account(dead)
        self.dims = kept

    def is_dead(self, coordinate):
        return coordinate in self.reductions and not any(coordinate in dims for _, dims in self.pending)

    def account(self, dead):
        for c in dead:
            if self.reductions[c].extra == "mean":
                self.factor /= self.operator.sizes[c]

    def sum_dead(self):
        dead = [c for c in self.dims if self.is_dead(c)]
        if dead:
            self.emit(f"{self.t}.sum(({', '.join(str(self.dims.index(c)) for c in dead)},))")
            self.account(dead)
            self.dims = [c for c in self.dims if c not in dead]

    # ---- the primitives, from top to bottom coordinates

    def share(self, primitive):
        if primitive in self.passed:
            return
        self.passed.append(primitive)
        bottom = primitive.operands[0]

        def renamed(dims):
            return [bottom if c in primitive.results else c for c in dims]

        self.dims = renamed(self.dims)
        self.pending = [(name, renamed(dims)) for name, dims in self.pending]

    def expand(self, primitive):
        self.emit(
            f"{self.t}.unsqueeze({len(self.dims)}).expand({', '.join(['-1'] * len(self.dims))}, {primitive.sizes[0]})"
        )
        self.dims.append(primitive.operands[0])

    def split(self, primitive):
        at = self.dims.index(primitive.results[0])
        self.emit(f"{self.t}.unflatten({at}, ({primitive.sizes[0]}, {primitive.sizes[1]}))")
        self.dims[at : at + 1] = primitive.operands

    def merge(self, primitive):
        q, r = primitive.results
        order = [c for c in self.dims if c != r]
        order.insert(order.index(q) + 1, r)
        if order != self.dims:
            self.emit(f"{self.t}.permute({', '.join(str(self.dims.index(c)) for c in order)})")
        at = order.index(q)
        self.emit(f"{self.t}.flatten({at}, {at + 1})")
        self.dims = order[:at] + primitive.operands + order[at + 2 :]

    def shift(self, primitive):
        at = self.dims.index(primitive.results[0])
        self.emit(f"torch.roll({self.t}, {-primitive.extra}, {at})")
        self.dims[at] = primitive.operands[0]

    def unfold(self, primitive):
        at, (_, window), low = self.dims.index(primitive.results[0]), primitive.sizes, primitive.extra
        zeros = "0, 0, " * (len(self.dims) - 1 - at)
        self.emit(f"F.pad({self.t}, ({zeros}{low}, {window - 1 - low})).unfold({at}, {window}, 1)")
        self.dims[at] = primitive.operands[0]
        self.dims.append(primitive.operands[1])

    def stride(self, primitive):
        at = self.dims.index(primitive.results[0])
        self.emit(f"{self.t}.unflatten({at}, ({primitive.sizes[0]}, {primitive.extra})).select({at + 1}, 0)")
        self.dims[at] = primitive.operands[0]


APPLY = re.compile(r"%([\w#]+) = kas\.apply @([\w.]+)\(([^)]*)\)")


def write_module(text):
    """The source of `class Model` for the public function of a module of concrete operators, and its macs."""
    operators = parse_operators(text)
    head, body = re.search(r"func\.func @\w+\(([^)]*)\) -> [^{]*\{\n(.*?)\n\s*\}", text, re.S).groups()
    arguments = re.findall(r"%(\w+): tensor<([0-9x]+)xf32>", head)
    names = {arguments[0][0]: "x"}
    constants, lines, macs = [], [], 0
    for i, (argument, _) in enumerate(arguments[1:]):
        names[argument] = f"self.w{i}"
    for line in body.splitlines():
        line = line.strip()
        if line.startswith("return"):
            lines.append(f"return {names[line.split()[1].lstrip('%')]}")
            break
        match = APPLY.match(line)
        if not match:
            raise UnsupportedError(f"the operation '{line}'")
        result, callee, operands = match.groups()
        operands = [names[name.lstrip("%")] for name in split_commas(operands)]
        operator = operators[callee]
        macs += operator.macs()
        # What depends on weights only is computed once.
        constant = all(name.startswith("self.") for name in operands)
        names[result] = ("self.c" if constant else "v") + str(len(names))
        stage = Writer(operator, operands[0], operands[1:]).write()
        value = "t" if stage else operands[0]
        if constant:
            constants += [
                *stage,
                f"self.register_buffer('{names[result].removeprefix('self.')}', {value}.contiguous())",
            ]
        else:
            lines += [*stage, f"{names[result]} = {value}"]
    shapes = [tuple(map(int, dims.split("x"))) for _, dims in arguments[1:]]
    source = "class Model(torch.nn.Module):\n    def __init__(self, weights):\n        super().__init__()\n"
    for i in range(len(shapes)):
        source += f"        self.register_buffer('w{i}', weights[{i}])\n"
    for line in constants:
        source += f"        {line}\n"
    source += "\n    def forward(self, x):\n" + "".join(f"        {line}\n" for line in lines)
    return source, macs, tuple(map(int, arguments[0][1].split("x"))), shapes
