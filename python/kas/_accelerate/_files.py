# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of an accelerated network: PyTorch, ONNX, a folder for C, a page."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import nn

from .._c_folder import write_c_folder
from .._errors import Error, MissingExtraError
from .._quantize import split_weights
from ..torch._modules import KasModule
from ._page import write_page
from ._problem import Problem
from ._times import Program

if TYPE_CHECKING:
    from ._outcome import Accelerated


def write_files(outcome: Accelerated, problem: Problem, folder: str) -> list[str]:
    """Writes all that can be written; says what cannot be, and why. The names of the files."""
    network = copy.deepcopy(outcome.model).eval()
    written: list[str] = []
    steps: list[tuple[str, Callable[[], list[str]]]] = [
        ("the PyTorch module", lambda: _write_pytorch(network, problem, folder)),
        ("ONNX", lambda: _write_onnx(network, problem, folder)),
        ("the folder for C", lambda: _write_object(outcome, problem, folder)),
    ]
    for what, write in steps:
        try:
            written += write()
        except (ValueError, Error, MissingExtraError, RuntimeError) as error:
            problem.reporter.message(f"{what} was not written: {' '.join(str(error).split())[:300]}")
    page = os.path.join(folder, "report.html")
    with open(page + ".new", "w", encoding="utf-8") as file:
        file.write(write_page(outcome, [*written, "results.json"]))
    os.replace(page + ".new", page)
    return [*written, "report.html"]


def _write_pytorch(network: nn.Module, problem: Problem, folder: str) -> list[str]:
    """A program of torch.export, which needs neither kas nor the code of the network."""
    for module in network.modules():
        if isinstance(module, KasModule):
            module.backend = module.chosen = "pytorch"
            module._make_functions()
    inputs = problem.batch if isinstance(problem.batch, (tuple, list)) else (problem.batch,)
    with torch.no_grad():
        program = torch.export.export(network, tuple(inputs))
    torch.export.save(program, os.path.join(folder, "model.pt2"))
    return ["model.pt2"]


def _write_onnx(network: nn.Module, problem: Problem, folder: str) -> list[str]:
    from ..onnx import export_network

    # Functions of operators are for few tools.
    export_network(network, problem.batch, os.path.join(folder, "model.onnx"), inline=True)
    return ["model.onnx"]


def _write_object(outcome: Accelerated, problem: Problem, folder: str) -> list[str]:
    """The folder `c`, of the program that was timed, and `model.mlir`, what it is made of."""
    best = outcome.best
    if best is None or not isinstance(best.program, Program):
        return []
    program = best.program
    module, weights = program.module, program.weights
    if best.precision == "int8":
        module, weights = split_weights(module, weights)
    with open(os.path.join(folder, "model.mlir"), "w", encoding="utf-8") as file:
        file.write(str(module))
    outputs = program(problem.batch)
    files = write_c_folder(
        module,
        weights,
        os.path.join(folder, "c"),
        inputs=program.inputs,
        outputs=outputs if isinstance(outputs, (tuple, list)) else [outputs],
        threads=problem.options.threads,
        precision="bf16" if best.precision == "bf16" else "f32",
    )
    return ["model.mlir", *(os.path.join("c", name) for name in files)]
