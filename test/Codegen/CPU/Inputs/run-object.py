"""Compiles a function to an object file, links it into a C program with its header, runs that, and compares.

The function applies a named operator; the first line of FILE has the operator's binding for kas-run, whose reference
evaluator says what is right. Arguments are random with a fixed seed.

usage: run-object.py TOOLS_FOLDER C_COMPILER LIBRARY_FOLDER FILE CPU THREADS FOLDER [COMPILER_OPTIONS...]
"""

import os
import pathlib
import random
import re
import struct
import subprocess
import sys

MAIN = """
#include "layer.h"
#include <stdio.h>
#include <stdlib.h>

/* The elements after the header of an .npy file. */
static float *load(const char *path, size_t count) {
  unsigned char header[10];
  FILE *file = fopen(path, "rb");
  float *data = malloc(count * sizeof(float));
  if (!file || !data || fread(header, 1, 10, file) != 10 ||
      fseek(file, 10 + header[8] + 256 * header[9], SEEK_SET) ||
      fread(data, sizeof(float), count, file) != count)
    exit(2);
  fclose(file);
  return data;
}

int main(void) {
  float largest = 0, error = 0;
%s
  for (size_t i = 0; i < %d; ++i) {
    float size = expected[i] < 0 ? -expected[i] : expected[i];
    float off = expected[i] - result[i] < 0 ? result[i] - expected[i] : expected[i] - result[i];
    /* Written so that a NaN counts as wrong. */
    if (!(off <= error)) error = off;
    if (size > largest) largest = size;
  }
  puts(largest > 0 && error <= 1e-5f * largest ? "as the reference" : "unlike the reference");
  return 0;
}
"""


def write_npy(path, shape, values):
    header = "{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}".format(", ".join(map(str, shape)))
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}f", *values))


def main(tools, compiler, library, path, cpu, threads, folder, *options):
    os.makedirs(folder, exist_ok=True)
    text = pathlib.Path(path).read_text(encoding="utf-8")
    operator = re.search(r"kas.apply @(\w+)", text).group(1)
    binding = re.match(r"// (--bind=.*)", text).group(1)
    text = pathlib.Path(library, operator + ".mlir").read_text(encoding="utf-8") + text

    def run(*command):
        subprocess.run(command, cwd=folder, check=True)

    def tool(name):
        return os.path.join(tools, name)

    with open(os.path.join(folder, "layer.mlir"), "w", encoding="utf-8") as file:
        file.write(text)
    run(tool("kas-translate"), "-kas-to-c-header", "layer.mlir", "-o", "layer.h")
    run(tool("kas-opt"), "layer.mlir", f"-kas-cpu-pipeline=cpu={cpu} threads={threads}", "-o", "lowered.mlir")
    run(tool("kas-translate"), "-kas-to-object", "lowered.mlir", "-o", "layer.o")

    header = pathlib.Path(folder, "layer.h").read_text(encoding="utf-8")
    shapes = [
        [int(n) for n in re.findall(r"\[(\d+)\]", line)] for line in re.findall(r"^ \* (.*float.*)$", header, re.M)
    ]
    counts = []
    for shape in shapes:
        counts.append(1)
        for extent in shape:
            counts[-1] *= extent
    generator = random.Random(1)
    given, lines = [], []
    for i, (shape, count) in enumerate(zip(shapes[:-1], counts)):
        write_npy(os.path.join(folder, f"{i}.npy"), shape, [generator.uniform(-1, 1) for _ in range(count)])
        given.append(f"--{'weight' if i else 'input'}={i}.npy")
        lines.append(f'  const float *a{i} = load("{i}.npy", {count});')
    run(tool("kas-run"), f"--operator=kas.{operator}", binding, *given, "--device=reference", "--output=expected.npy")
    lines.append(f'  const float *expected = load("expected.npy", {counts[-1]});')
    lines.append(f"  float *result = malloc({counts[-1]} * sizeof(float));")
    lines.append(f"  layer({', '.join(f'a{i}' for i in range(len(shapes) - 1))}, result);")
    with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as file:
        file.write(MAIN % ("\n".join(lines), counts[-1]))
    run(compiler, "-Wall", "-Wextra", "-Werror", "main.c", "layer.o", "-lm", "-o", "main", *options)
    print(f"{operator} for {cpu}, threads={threads}:", flush=True)
    run("./main")


if __name__ == "__main__":
    if len(sys.argv) < 8:
        sys.exit(__doc__)
    main(*sys.argv[1:])
