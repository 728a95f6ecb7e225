# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A network as a folder for C programs: object file, headers, weights, a program that runs it, a CMake file."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from ._c_names import check_c_name
from ._module import Module
from ._pipelines import CPUPipeline

ALIGNMENT = 64


class Memory(NamedTuple):
    """What a network takes, in bytes."""

    code: int
    weights: int
    prepacked: int
    workspace: int
    stack: int
    """Of all functions of the object together, which is at least what any call takes; the C library's come on top."""

    def __str__(self) -> str:
        return (
            f"code and constants  {self.code:>12,} bytes\nweights             {self.weights:>12,} bytes (read only)\n"
            f"prepacked weights   {self.prepacked:>12,} bytes (of the caller, filled once)\n"
            f"workspace           {self.workspace:>12,} bytes (of the caller, for each call at a time)\n"
            f"stack               {self.stack:>12,} bytes at most, and what memcpy and libm take\n"
        )


def find_program(name: str) -> str | None:
    """A program of kas: on the path, beside the package, or in its build tree."""
    package = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(package, "bin"), os.path.join(os.path.dirname(os.path.dirname(package)), "bin")]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(places))


def write_c_folder(
    module: Module,
    weights: Sequence[Any],
    folder: str | os.PathLike[str],
    *,
    name: str = "model",
    function: str = "forward",
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    threads: int = 1,
    precision: str = "f32",
    cpu: str = "",
    triple: str = "",
    features: str = "",
) -> list[str]:
    """Writes `function` of a module, whose last arguments are `weights`, to a folder; the names of the files.

    `name` is what all functions and files are called, so that several networks link into one program. `inputs` are an
    example, of which `outputs` are the results. With one thread nothing calls `malloc`: callers give the workspace.
    """
    check_c_name(name, str(module))
    arrays = [_to_array(weight) for weight in weights]
    translate = find_program("kas-translate")
    if translate is None:
        raise ValueError("requires the program kas-translate on the path, got none")
    os.makedirs(folder, exist_ok=True)
    renamed = Module(re.sub(rf"@{re.escape(function)}(?![\w$.])", f"@{name}", str(module)))
    paths = {end: os.path.join(folder, name + end) for end in (".mlir", ".lowered.mlir", ".o", ".h")}
    pipeline = CPUPipeline(
        threads,
        workspace=threads == 1,
        cpu=cpu,
        triple=triple,
        features=features,
        prepack_weights=len(inputs) == 1,
        precision="bf16" if precision == "bf16" else "",
    )
    lowered = renamed.clone().run(str(pipeline))
    try:
        for end, text in ((".mlir", renamed), (".lowered.mlir", lowered)):
            with open(paths[end], "w", encoding="utf-8") as file:
                file.write(str(text))
        header = ["-kas-to-c-header", paths[".mlir"], f"--kas-lowered={paths['.lowered.mlir']}", "-o", paths[".h"]]
        for arguments in (["-kas-to-object", paths[".lowered.mlir"], "-o", paths[".o"]], header):
            subprocess.run([translate, *arguments], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise ValueError(f"the network cannot be compiled: {' '.join(str(error.stderr).split())[:500]}") from error
    finally:
        if os.path.exists(paths[".lowered.mlir"]):
            os.remove(paths[".lowered.mlir"])
    return _Writer(os.fspath(folder), name, paths, arrays, len(inputs)).write(inputs, outputs)


class _Array(NamedTuple):
    """Elements as they lie in memory."""

    data: bytes
    num_elements: int
    type: str
    """As MLIR writes it, for numbers that C has no type for: f16 or bf16; else empty."""


def _to_array(tensor: Any) -> _Array:
    if hasattr(tensor, "detach"):
        import torch

        tensor = tensor.detach().cpu().contiguous()
        kind = {torch.float16: "f16", torch.bfloat16: "bf16"}.get(tensor.dtype, "")
        array = (tensor.view(torch.int16) if kind else tensor).numpy()
    else:
        array = numpy.ascontiguousarray(tensor)
        kind = "f16" if array.dtype == numpy.float16 else ""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"requires tensors of numbers that are not complex, got {array.dtype}")
    return _Array(array.tobytes(), array.size, kind)


class _Parameter(NamedTuple):
    """A pointer that the function takes."""

    type: str
    """Of the elements in C."""
    name: str

    @staticmethod
    def read(text: str) -> _Parameter | None:
        found = re.fullmatch(r"(?:const )?(\w+) \*(\w+)", text)
        return None if found is None or found[1] == "void" else _Parameter(found[1], found[2])


class _Writer:
    """The files beside the object and its header."""

    def __init__(self, folder: str, name: str, paths: dict[str, str], weights: list[_Array], num_inputs: int):
        self.folder, self.name, self.weights = folder, name, weights
        with open(paths[".h"], encoding="utf-8") as file:
            self.header = file.read()
        found = re.search(rf"^const char \*{name}\((.*)\);$", self.header, re.MULTILINE)
        assert found is not None, "the header declares the function"
        tensors = [one for one in map(_Parameter.read, found[1].split(", ")) if one is not None]
        end = num_inputs + len(weights)
        self.inputs, self.parameters, self.results = tensors[:num_inputs], tensors[num_inputs:end], tensors[end:]
        self.prepacked, self.workspace = self._find("PREPACKED_ELEMENTS"), self._find("WORKSPACE_BYTES")
        self.stack, self.code = _read_sizes(paths[".o"])

    def _find(self, what: str) -> int:
        found = re.search(rf"^#define {self.name.upper()}_{what} (\d+)$", self.header, re.MULTILINE)
        return int(found[1]) if found else 0

    def write(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[str]:
        name = self.name
        offsets = self._write_arrays(f"{name}.weights", self.weights)
        example = [_to_array(one) for one in (*inputs, *outputs)]
        starts = self._write_arrays("example.data", example)
        memory = Memory(
            self.code, sum(len(one.data) for one in self.weights), 4 * self.prepacked, self.workspace, self.stack
        )
        texts = {
            f"{name}_weights.S": _ASSEMBLY.format(symbol=f"{name}_weights", file=f"{name}.weights"),
            "example.S": _ASSEMBLY.format(symbol=f"{name}_example", file="example.data"),
            f"{name}_weights.h": self._write_helpers(offsets),
            "main.c": self._write_program(starts, example),
            "CMakeLists.txt": _CMAKE.format(name=name),
            "memory.txt": str(memory),
        }
        for file_name, text in texts.items():
            with open(os.path.join(self.folder, file_name), "w", encoding="utf-8") as file:
                file.write(text)
        return [f"{name}.mlir", f"{name}.o", f"{name}.h", f"{name}.weights", "example.data", *texts]

    def _write_arrays(self, file_name: str, arrays: Sequence[_Array]) -> list[int]:
        """One after the other, each from a multiple of 64 bytes on; where each starts, in bytes."""
        starts, place = [], 0
        with open(os.path.join(self.folder, file_name), "wb") as file:
            for array in arrays:
                file.write(b"\0" * (-place % ALIGNMENT))
                place += -place % ALIGNMENT
                starts.append(place)
                file.write(array.data)
                place += len(array.data)
            if place == 0:
                file.write(b"\0" * 4)
        return starts

    def _write_helpers(self, offsets: Sequence[int]) -> str:
        name = self.name
        weights = [f"(const {one.type} *)({name}_weights + {offset})" for one, offset in zip(self.parameters, offsets)]
        buffers = ([f"const void *{name}_packed"] if self.prepacked else []) + (
            ["void *workspace"] if self._takes_workspace else []
        )
        passed = [*(one.name for one in self.inputs), *weights, *(one.name for one in self.results)]
        passed += [f"{name}_packed"] * bool(self.prepacked) + ["workspace"] * self._takes_workspace
        prepack = ""
        if self.prepacked:
            arguments = [*weights, "packed"] + ["workspace"] * self._takes_workspace
            parameters = ["void *packed"] + ["void *workspace"] * self._takes_workspace
            prepack = (
                "/* Fills the buffer of prepacked weights, once. */\n"
                f"static inline const char *{name}_setup({', '.join(parameters)}) {{\n"
                f"  return {name}_prepack({', '.join(arguments)});\n}}\n\n"
            )
        parameters = [f"const {one.type} *{one.name}" for one in self.inputs]
        parameters += [*(f"{one.type} *{one.name}" for one in self.results), *buffers]
        return (
            f"/* The network with its weights, which {name}_weights.S has inside: they stay where they are loaded. */\n"
            f"#ifndef {name.upper()}_WEIGHTS_H\n#define {name.upper()}_WEIGHTS_H\n\n"
            f'#include "{name}.h"\n\n#ifdef __cplusplus\nextern "C" {{\n#endif\n\n'
            f"extern const unsigned char {name}_weights[];\n\n{prepack}"
            f"static inline const char *{name}_run({', '.join(parameters)}) {{\n"
            f"  return {name}({', '.join(passed)});\n}}\n\n"
            "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
        )

    @property
    def _takes_workspace(self) -> bool:
        return f"{self.name}_workspace_bytes" in self.header

    def _write_program(self, starts: Sequence[int], example: Sequence[_Array]) -> str:
        name, count = self.name, len(self.inputs)
        buffers, setup, last, checks = "", "", [], ""
        arguments = [f"(const {one.type} *)({name}_example + {start})" for one, start in zip(self.inputs, starts)]
        kinds = [array.type or one.type for one, array in zip(self.results, example[count:])]
        for number, (one, start, array, kind) in enumerate(zip(self.results, starts[count:], example[count:], kinds)):
            buffers += f"static {one.type} result{number}[{array.num_elements}];\n"
            arguments.append(f"result{number}")
            expected = f"(const {one.type} *)({name}_example + {start})"
            checks += f"  largest = compare_{kind}(result{number}, {expected}, {array.num_elements}, largest);\n"
        if self.prepacked:
            buffers += f"static _Alignas(64) float packed[{name.upper()}_PREPACKED_ELEMENTS];\n"
            last.append("packed")
        if self._takes_workspace:
            buffers += f"static _Alignas(64) char workspace[{name.upper()}_WORKSPACE_BYTES + 64];\n"
            last.append("workspace")
        if self.prepacked:
            setup = f"  message = {name}_setup({', '.join(last)});\n"
        return _PROGRAM.format(
            name=name,
            buffers=buffers,
            readers="".join(_READERS[kind] for kind in dict.fromkeys(kinds) if kind in _READERS),
            compare="".join(
                _COMPARE.format(kind=kind, type=_TYPES.get(kind, kind), get=_GETS.get(kind, ""))
                for kind in dict.fromkeys(kinds)
            ),
            setup=setup,
            arguments=", ".join([*arguments, *last]),
            checks=checks,
            first=_GETS.get(kinds[0], ""),
        )


_TYPES = {"f16": "uint16_t", "bf16": "uint16_t"}
"""Of numbers that C has no type for."""
_GETS = {"f16": "read_f16", "bf16": "read_bf16"}
"""What makes these a number."""
_READERS = {
    "bf16": """
static double read_bf16(uint16_t bits) {
  uint32_t whole = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &whole, sizeof(value));
  return value;
}
""",
    "f16": """
static double read_f16(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 0    ? ldexp(fraction, -24)
                 : exponent == 31 ? (fraction ? NAN : INFINITY)
                                  : ldexp(fraction + 1024, exponent - 25);
  return bits >> 15 ? -value : value;
}
""",
}
_COMPARE = """
static double compare_{kind}(const {type} *found, const {type} *expected, long count, double error) {{
  double largest = 0, size;
  for (long i = 0; i < count; ++i) {{
    size = fabs((double){get}(expected[i]));
    /* Of finite values. */
    largest = size > largest && size - size == 0 ? size : largest;
  }}
  for (long i = 0; i < count && error == error; ++i) {{
    double a = (double){get}(found[i]), b = (double){get}(expected[i]);
    if (a == b || (a != a && b != b))
      continue;
    size = fabs(a - b);
    size = largest > 0 ? size / largest : size;
    error = size <= error ? error : size;
  }}
  return error;
}}
"""


_ASSEMBLY = """/* The bytes of a file as a constant. */
    .section .rodata
    .globl {symbol}
    .balign 64
{symbol}:
    .incbin "{file}"
    .section .note.GNU-stack,"",%progbits
"""

_CMAKE = """cmake_minimum_required(VERSION 3.13)
project({name} C ASM)

# The network: link your program with it, and include {name}_weights.h.
add_library({name} STATIC {name}_weights.S {name}.o)
set_source_files_properties({name}.o PROPERTIES EXTERNAL_OBJECT TRUE)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_link_libraries({name} PUBLIC m)

add_executable({name}_example main.c example.S)
target_link_libraries({name}_example PRIVATE {name})
"""

_PROGRAM = """/* Runs the network on the example, and compares with what it gave where this was made. */
#include "{name}_weights.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern const unsigned char {name}_example[];

{buffers}{readers}
/* The largest difference over the largest value, so far in `error`; NaN where one side alone is NaN. */{compare}
int main(void) {{
  const char *message = 0;
  double largest = 0;
{setup}  if (!message)
    message = {name}_run({arguments});
  if (message) {{
    printf("%s\\n", message);
    return 1;
  }}
{checks}  for (unsigned i = 0; i < sizeof(result0) / sizeof(result0[0]) && i < 10; ++i)
    printf("%g\\n", (double){first}(result0[i]));
  printf("largest difference from the example: %g of the largest value\\n", largest);
  /* Rounding to bf16 alone may come near to this. */
  return largest <= 0.1 ? 0 : 1;
}}
"""


def _read_sizes(path: str) -> tuple[int, int]:
    """What the functions of an object of ELF take of the stack, all together, and its bytes of code and constants."""
    with open(path, "rb") as file:
        data = file.read()
    is_wide = data[4] == 2
    (start,) = struct.unpack_from("<Q", data, 0x28) if is_wide else struct.unpack_from("<I", data, 0x20)
    size, count, names = struct.unpack_from("<3H", data, 0x3A if is_wide else 0x2E)
    form = "<2I4Q2I2Q" if is_wide else "<10I"
    sections = [struct.unpack_from(form, data, start + number * size) for number in range(count)]
    stack = code = 0
    for name, kind, flags, _, offset, length, *_ in sections:
        begin = sections[names][4] + name
        text = data[begin : data.index(b"\0", begin)]
        if flags & 2:  # Loaded into memory.
            code += length
        if text == b".stack_sizes" and kind == 1:
            stack += _sum_stack_sizes(data[offset : offset + length], 8 if is_wide else 4)
    return stack, code


def _sum_stack_sizes(data: bytes, address_bytes: int) -> int:
    """Entries of an address and a number in base 128."""
    total, place = 0, 0
    while place < len(data):
        place += address_bytes
        shift = 0
        while True:
            byte = data[place]
            place += 1
            total += (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
    return total
