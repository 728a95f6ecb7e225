# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop nests in C compute what the reference does; formulas and graphs mention every tensor."""

import ctypes
import subprocess

import numpy
import pytest
from c_compiler import C_COMPILER
from operators import make_arrays, named_cases, random_operators, relative_error


def check_loop_nests(cases, folder):
    source = folder / "nests.c"
    texts = []
    for number, (op, binding) in enumerate(cases):
        text = op.loop_nest(binding).replace(f"void {op.name}(", f"void nest{number}(")
        for helper in ("floordiv", "floormod"):
            text = text.replace(f"{helper}(", f"{helper}{number}(")
        texts.append(text)
    source.write_text("\n".join(texts))
    options = ["-std=c11", "-O1", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([C_COMPILER, *options, "-o", folder / "nests.so", source, "-lm"], check=True)
    library = ctypes.CDLL(str(folder / "nests.so"))
    for number, (op, binding) in enumerate(cases):
        arrays = make_arrays(op, binding)
        output = numpy.full(op.shapes(binding).output, numpy.nan, dtype=numpy.float32)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*arrays, output)]
        getattr(library, f"nest{number}")(*pointers)
        error = relative_error(output, op.evaluate(binding, *arrays))
        assert error < 1e-5, f"{op.name}: {error}\n{op}\n{binding}\n{op.loop_nest(binding)}"


def test_loop_nests(tmp_path):
    check_loop_nests(named_cases() + random_operators(60), tmp_path)


@pytest.mark.slow
def test_many_loop_nests(tmp_path):
    check_loop_nests(random_operators(300, seed=60), tmp_path)


def test_formulas_and_graphs():
    for op, _ in named_cases() + random_operators(60):
        formula = op.formula
        assert formula.startswith("Y[") and "X[" in formula and "\n" not in formula
        assert formula.count("W") >= op.num_weights
        graph = op.graph
        assert graph.startswith(f'digraph "{op.name}" {{') and graph.count("box3d") == 1 + op.num_weights
