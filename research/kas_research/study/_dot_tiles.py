# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register tiles of dot products: int8 and bf16 on processors that add products of several channels at once.

One instruction multiplies a vector of the image, 16 pixels of 4 channels (int8) or 2 (bf16), with the same channels of
one weight, and adds the products to 16 sums of 32 bits. The image is packed so that these channels lie together; in
each of stride x stride phases all pixels that a place of the filter needs lie one after another, and lines with their
border are one long line, so that each place of the filter reads the same line a little shifted.
"""

from __future__ import annotations

from dataclasses import dataclass

from ._models import Layer
from ._programs import tensor

LANES = 16


@dataclass(frozen=True)
class DotProduct:
    """An instruction: its name in LLVM, the feature that says that a processor has it, and the types."""

    intrinsic: str
    feature: str
    element: str
    group: int
    sums: str
    result: str


INSTRUCTIONS = {
    "i8": DotProduct("llvm.x86.avx512.vpdpbusd.512", "avx512vnni", "i8", 4, "i32", "i32"),
    "bf16": DotProduct("llvm.x86.avx512bf16.dpbf16ps.512", "avx512bf16", "bf16", 2, "f32", "bf16"),
}


@dataclass(frozen=True)
class Tile:
    """Sums in registers: `rows` outputs times `vectors` vectors of pixels.

    With `swapped`, pixels times vectors of outputs, for images of few pixels.
    """

    rows: int
    vectors: int
    swapped: bool = False

    def __str__(self) -> str:
        return (
            f"{self.rows} {'pixels' if self.swapped else 'outputs'}, {self.vectors} vectors of "
            f"{'outputs' if self.swapped else 'pixels'}"
        )


def get_tiles(layer: Layer, instruction: DotProduct) -> list[Tile]:
    """All that 24 of the registers hold, the best guess first."""
    pixels = layer.output_size * get_pitch(layer)
    steps = count_groups(layer, instruction) * layer.kernel**2

    def cost(tile: Tile) -> tuple[float, bool, int]:
        rows, columns = (pixels, layer.outputs) if tile.swapped else (layer.outputs, pixels)
        blocks = -(-columns // (LANES * tile.vectors)) * -(-rows // tile.rows)
        # Products, loads and broadcasts of a step, where few sums wait for each other; sums of pixels are transposed.
        work = max(tile.rows * tile.vectors, 8) + tile.vectors + 0.25 * tile.rows
        transpose = 2.5 * pixels * layer.outputs if tile.swapped else 0.0
        return blocks * work * steps + transpose, tile.swapped, -tile.rows

    tiles = [
        Tile(rows, vectors, swapped)
        for rows in range(1, 17)
        for vectors in range(1, 7)
        for swapped in (False, True)
        if rows * vectors <= 24 and (swapped or layer.outputs % rows == 0)
    ]
    return sorted(tiles, key=cost)


def get_pitch(layer: Layer) -> int:
    """Pixels of a line of one phase."""
    return layer.output_size + (layer.kernel - 1) // layer.stride


def count_outputs(layer: Layer, tile: Tile) -> int:
    """Outputs up to a multiple of a tile's."""
    step = LANES * tile.vectors if tile.swapped else tile.rows
    return -(-layer.outputs // step) * step


def count_groups(layer: Layer, instruction: DotProduct) -> int:
    return -(-layer.inputs // instruction.group)


def write_dot_tiles(layer: Layer, instruction: DotProduct, tile: Tile) -> str:
    """`@forward` of the image, the weights and the first sums.

    Weights are 32 bits each: [outputs, groups of channels * places] or, for swapped tiles, [groups * places, outputs]
    with outputs up to a multiple of the tile's.
    """
    return _Writer(layer, instruction, tile).write()


class _Writer:
    def __init__(self, layer: Layer, instruction: DotProduct, tile: Tile):
        self.layer, self.instruction, self.tile = layer, instruction, tile
        self.pitch, self.groups = get_pitch(layer), count_groups(layer, instruction)
        block = LANES * tile.vectors
        step = tile.rows if tile.swapped else block
        self.pixels = -(-layer.output_size * self.pitch // step) * step
        self.outputs = count_outputs(layer, tile)
        reach = (layer.kernel - 1) // layer.stride
        self.lines = -(-(self.pixels + reach * (self.pitch + 1)) // self.pitch)
        self.lines = max(self.lines, -(-(layer.size + layer.padding) // layer.stride))
        self.row = self.lines * self.pitch * instruction.group
        self.phases = min(layer.stride, layer.kernel)
        self.out: list[str] = []

    def add(self, line: str) -> None:
        self.out.append(line)

    def write(self) -> str:
        layer, one = self.layer, self.instruction
        image = tensor((1, layer.inputs, layer.size, layer.size), one.element)
        places = self.groups * layer.kernel**2
        self.weights = tensor((places, self.outputs) if self.tile.swapped else (self.outputs, places), "i32")
        self.start = tensor((self.outputs,), one.sums)
        self.result = tensor((1, layer.outputs, layer.output_size, layer.output_size), one.result)
        sums, bits = f"vector<{LANES}x{one.sums}>", f"vector<{LANES * one.group}x{one.element}>"
        # As a function of that name, not by llvm.call_intrinsic, whose effects bufferization does not know.
        self.add(f"func.func private @{one.intrinsic}({sums}, {bits}, {bits}) -> {sums}")
        self.add(f"func.func @forward(%x: {image}, %w: {self.weights}, %start: {self.start}) -> {self.result} {{")
        for number in range(max(3, self.tile.rows)):
            self.add(f"  %c{number} = arith.constant {number} : index")
        for name, value in (
            ("outputs", self.outputs),
            ("pixels", self.pixels),
            ("groups", self.groups),
            ("rows", self.tile.rows),
            ("block", LANES * self.tile.vectors),
            ("group", one.group),
        ):
            self.add(f"  %{name} = arith.constant {value} : index")
        self.pack()
        self.multiply()
        self.crop()
        self.add("}")
        return "\n".join(self.out) + "\n"

    def pack(self) -> None:
        """The image to [phase, group of channels, pixel, channel of the group]."""
        layer, one = self.layer, self.instruction
        zero = "0" if one.element == "i8" else "0.0"
        self.add(f"  %zero = arith.constant {zero} : {one.element}")
        self.add("  %noweight = arith.constant 0 : i32")
        # Products are of unsigned numbers of the image with signed weights: 128 is added, and the first sums take it
        # back.
        self.add("  %sign = arith.constant -128 : i8")
        source = (1, layer.inputs, layer.size, layer.size)
        padded = (1, self.groups * one.group, self.lines * layer.stride, self.pitch * layer.stride)
        pad = layer.padding
        high = [0, padded[1] - layer.inputs, padded[2] - layer.size - pad, max(0, padded[3] - layer.size - pad)]
        padded = (1, padded[1], padded[2], layer.size + pad + high[3])
        self.add(
            f"  %padded = tensor.pad %x low[0, 0, {pad}, {pad}] high{high} {{\n"
            "    ^bb0(%a: index, %b: index, %c: index, %d: index):\n"
            f"      tensor.yield %zero : {one.element}\n"
            f"  }} : {tensor(source, one.element)} to {tensor(padded, one.element)}"
        )
        shape = (self.phases, self.phases, self.groups, self.lines, self.pitch, one.group)
        packed = tensor(shape, one.element)
        body = "      linalg.yield %a : bf16"
        if one.element == "i8":
            body = "      %u = arith.xori %a, %sign : i8\n      linalg.yield %u : i8"
        self.add(f"  %room = tensor.empty() : {packed}")
        place = f"0, q * {one.group} + g, h * {layer.stride} + a, w * {layer.stride} + b"
        dims = "a, b, q, h, w, g"
        kinds = ", ".join(['"parallel"'] * 6)
        self.add(
            f"  %packed = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({place})>, affine_map<({dims}) -> "
            f"({dims})>], "
            f"iterator_types = [{kinds}]}} ins(%padded : {tensor(padded, one.element)}) outs(%room : {packed}) {{\n"
            f"    ^bb0(%a: {one.element}, %o: {one.element}):\n{body}\n  }} -> {packed}"
        )
        self.image = tensor((self.phases**2 * self.groups, self.row), one.element)
        self.add(f"  %image = tensor.collapse_shape %packed [[0, 1, 2], [3, 4, 5]] : {packed} into {self.image}")

    def multiply(self) -> None:
        """All sums: [outputs, pixels], or [pixels, outputs] if swapped."""
        one, tile, kernel = self.instruction, self.tile, self.layer.kernel
        sums = f"vector<{LANES}x{one.sums}>"
        shape = (self.pixels, self.outputs) if tile.swapped else (self.outputs, self.pixels)
        self.sums = tensor(shape, one.sums)
        outer, inner = ("pixels", "outputs") if tile.swapped else ("outputs", "pixels")
        self.add(f"  %none = tensor.empty() : {self.sums}")
        self.add(f"  %all = scf.for %f = %c0 to %{outer} step %rows iter_args(%t = %none) -> ({self.sums}) {{")
        for row in range(tile.rows):
            self.add(f"    %f{row} = arith.addi %f, %c{row} : index")
        self.add(f"    %u = scf.for %n = %c0 to %{inner} step %block iter_args(%v = %t) -> ({self.sums}) {{")
        for vector in range(tile.vectors):
            self.add(
                f"      %o{vector} = arith.constant {vector * LANES} : index\n"
                f"      %n{vector} = arith.addi %n, %o{vector} : index"
            )
        names = [f"%a{row}_{vector}" for row in range(tile.rows) for vector in range(tile.vectors)]
        self.begin(sums)
        firsts = [f"%b{vector if tile.swapped else row}" for row in range(tile.rows) for vector in range(tile.vectors)]
        start = ", ".join(f"{name} = {first}" for name, first in zip(names, firsts))
        types = ", ".join([sums] * len(names))
        self.add(f"      %r:{len(names)} = scf.for %q = %c0 to %groups step %c1 iter_args({start}) -> ({types}) {{")
        current = {name: name for name in names}
        for i in range(kernel):
            for j in range(kernel):
                self.step(i, j, current, sums)
        self.add(f"        scf.yield {', '.join(current[name] for name in names)} : {types}\n      }}")
        value = "%v"
        for number in range(len(names)):
            row, vector = divmod(number, tile.vectors)
            self.add(
                f"      %v{number} = vector.transfer_write %r#{number}, {value}[%f{row}, %n{vector}] {{in_bounds = "
                f"[true]}} : {sums}, {self.sums}"
            )
            value = f"%v{number}"
        self.add(f"      scf.yield {value} : {self.sums}\n    }}\n    scf.yield %u : {self.sums}\n  }}")

    def begin(self, sums: str) -> None:
        """The first sums, of each row or, swapped, each vector of outputs."""
        one = self.instruction
        if self.tile.swapped:
            self.add(f"      %nothing = arith.constant {'0' if one.sums == 'i32' else '0.0'} : {one.sums}")
            for vector in range(self.tile.vectors):
                self.add(
                    f"      %b{vector} = vector.transfer_read %start[%n{vector}], %nothing {{in_bounds = [true]}} : "
                    f"{self.start}, {sums}"
                )
            return
        for row in range(self.tile.rows):
            self.add(f"      %s{row} = tensor.extract %start[%f{row}] : {self.start}")
            self.add(f"      %b{row} = vector.broadcast %s{row} : {one.sums} to {sums}")

    def step(self, i: int, j: int, current: dict[str, str], sums: str) -> None:
        """The products of one place of the filter."""
        one, tile, layer = self.instruction, self.tile, self.layer
        size = LANES * one.group
        bits = f"vector<{size}x{one.element}>"
        tag = f"{i}_{j}"
        phase = (i % layer.stride) * self.phases + j % layer.stride
        shift = (i // layer.stride) * self.pitch + j // layer.stride
        self.add(
            f"        %ph{tag} = arith.constant {phase * self.groups} : index\n"
            f"        %line{tag} = arith.addi %q, %ph{tag} : index"
        )
        self.add(
            f"        %k{tag} = arith.constant {layer.kernel**2} : index\n"
            f"        %l{tag} = arith.muli %q, %k{tag} : index"
        )
        self.add(
            f"        %m{tag} = arith.constant {i * layer.kernel + j} : index\n"
            f"        %place{tag} = arith.addi %l{tag}, %m{tag} : index"
        )
        self.add(f"        %shift{tag} = arith.constant {shift} : index")
        for vector in range(tile.vectors):
            if tile.swapped:
                self.add(
                    f"        %y{tag}_{vector} = vector.transfer_read %w[%place{tag}, %n{vector}], %noweight "
                    f"{{in_bounds = [true]}} : "
                    f"{self.weights}, vector<{LANES}xi32>"
                )
                self.add(f"        %x{tag}_{vector} = vector.bitcast %y{tag}_{vector} : vector<{LANES}xi32> to {bits}")
                continue
            self.add(f"        %d{tag}_{vector} = arith.addi %n{vector}, %shift{tag} : index")
            self.add(f"        %e{tag}_{vector} = arith.muli %d{tag}_{vector}, %group : index")
            self.add(
                f"        %x{tag}_{vector} = vector.transfer_read %image[%line{tag}, %e{tag}_{vector}], %zero "
                f"{{in_bounds = [true]}} : "
                f"{self.image}, {bits}"
            )
        for row in range(tile.rows):
            if tile.swapped:
                self.add(f"        %d{tag}_{row}r = arith.addi %f{row}, %shift{tag} : index")
                self.add(f"        %e{tag}_{row}r = arith.muli %d{tag}_{row}r, %group : index")
                self.add(
                    f"        %w{tag}_{row} = vector.transfer_read %image[%line{tag}, %e{tag}_{row}r], %zero "
                    f"{{in_bounds = [true]}} : "
                    f"{self.image}, vector<{one.group}x{one.element}>"
                )
                self.add(
                    f"        %g{tag}_{row} = vector.bitcast %w{tag}_{row} : vector<{one.group}x{one.element}> to "
                    "vector<1xi32>"
                )
                self.add(f"        %h{tag}_{row} = vector.extract %g{tag}_{row}[0] : i32 from vector<1xi32>")
            else:
                self.add(f"        %h{tag}_{row} = tensor.extract %w[%f{row}, %place{tag}] : {self.weights}")
            self.add(f"        %j{tag}_{row} = vector.broadcast %h{tag}_{row} : i32 to vector<{LANES}xi32>")
            self.add(f"        %z{tag}_{row} = vector.bitcast %j{tag}_{row} : vector<{LANES}xi32> to {bits}")
            for vector in range(tile.vectors):
                name = f"%a{row}_{vector}"
                # The image is the first factor: the one without a sign.
                factors = f"%z{tag}_{row}, %x{tag}_{vector}" if tile.swapped else f"%x{tag}_{vector}, %z{tag}_{row}"
                self.add(
                    f"        %t{tag}_{row}_{vector} = func.call @{one.intrinsic}({current[name]}, {factors}) : "
                    f"({sums}, {bits}, {bits}) -> {sums}"
                )
                current[name] = f"%t{tag}_{row}_{vector}"

    def crop(self) -> None:
        """The image of the sums without what lies between lines, and without outputs that do not exist."""
        layer, one = self.layer, self.instruction
        size, outputs, swapped = layer.output_size, layer.outputs, self.tile.swapped

        def shape(*lines: int) -> tuple[int, ...]:
            return (*lines, outputs) if swapped else (outputs, *lines)

        flat, lines, inner = shape(size * self.pitch), shape(size, self.pitch), shape(size, size)
        self.add(
            f"  %flat = tensor.extract_slice %all[0, 0] {list(flat)} [1, 1] : {self.sums} to {tensor(flat, one.sums)}"
        )
        groups = "[[0, 1], [2]]" if swapped else "[[0], [1, 2]]"
        self.add(
            f"  %lines = tensor.expand_shape %flat {groups} output_shape {list(lines)} : {tensor(flat, one.sums)} "
            f"into {tensor(lines, one.sums)}"
        )
        self.add(
            f"  %inner = tensor.extract_slice %lines[0, 0, 0] {list(inner)} [1, 1, 1] : {tensor(lines, one.sums)} to "
            f"{tensor(inner, one.sums)}"
        )
        body = "      linalg.yield %a : i32"
        if one.result != one.sums:
            body = f"      %r = arith.truncf %a : {one.sums} to {one.result}\n      linalg.yield %r : {one.result}"
        out = tensor((outputs, size, size), one.result)
        self.add(f"  %end = tensor.empty() : {out}")
        source = "h, w, f" if swapped else "f, h, w"
        self.add(
            f"  %copy = linalg.generic {{indexing_maps = [affine_map<(f, h, w) -> ({source})>, affine_map<(f, h, w) "
            "-> (f, h, w)>], "
            f'iterator_types = ["parallel", "parallel", "parallel"]}} ins(%inner : {tensor(inner, one.sums)}) '
            f"outs(%end : {out}) {{\n"
            f"    ^bb0(%a: {one.sums}, %o: {one.result}):\n{body}\n  }} -> {out}"
        )
        self.add(
            f"  %result = tensor.expand_shape %copy [[0, 1], [2], [3]] output_shape [1, {outputs}, {size}, {size}] : "
            f"{out} into {self.result}"
        )
        self.add(f"  return %result : {self.result}")
