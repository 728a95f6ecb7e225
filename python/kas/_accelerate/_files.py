# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of an accelerated network: PyTorch, ONNX, an object file with its C header, weights, a page."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch import nn

from .._errors import Error, MissingExtraError
from ..evaluate._task import call
from ..torch._modules import KasModule
from ._page import write_page
from ._problem import Problem

if TYPE_CHECKING:
    from ._outcome import Accelerated


def write_files(outcome: Accelerated, problem: Problem, folder: str) -> list[str]:
    """Writes all that can be written; says what cannot be, and why. The names of the files."""
    network = copy.deepcopy(outcome.model).eval()
    written: list[str] = []
    steps: list[tuple[str, Callable[[], list[str]]]] = [
        ("the PyTorch module", lambda: _write_pytorch(network, problem, folder)),
        ("ONNX", lambda: _write_onnx(network, problem, folder)),
        ("the object file", lambda: _write_object(outcome, problem, folder)),
    ]
    for what, write in steps:
        try:
            written += write()
        except (ValueError, Error, MissingExtraError, RuntimeError, subprocess.CalledProcessError) as error:
            detail = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
            problem.reporter.message(f"{what} was not written: {' '.join(str(detail).split())[:300]}")
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

    export_network(network, problem.batch, os.path.join(folder, "model.onnx"))
    return ["model.onnx"]


def find_program(name: str) -> str | None:
    """A program of kas: on the path, beside the package, or in its build tree."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [os.path.join(package, "bin"), os.path.join(os.path.dirname(os.path.dirname(package)), "bin")]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(places))


def _write_object(outcome: Accelerated, problem: Problem, folder: str) -> list[str]:
    """`model.o` and `model.h` of the program that was timed, its weights, and an input with what it gives."""
    best = outcome.best
    if best is None or best.program is None:
        return []
    translate = find_program("kas-translate")
    if translate is None:
        raise ValueError("requires the program kas-translate on the path, got none")
    program = best.program
    source, lowered = (os.path.join(folder, name) for name in ("model.mlir", "model.lowered.mlir"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(str(program.module))
    options = f"threads={problem.options.threads} prepare-weights={'true' if len(program.inputs) == 1 else 'false'}"
    if best.precision == "bf16":
        options += " precision=bf16"
    text = str(program.module.clone().run(f"kas-cpu-pipeline{{{options}}}"))
    with open(lowered, "w", encoding="utf-8") as file:
        file.write(text)
    header = ["-kas-to-c-header", source, f"--kas-lowered={lowered}", "-o", os.path.join(folder, "model.h")]
    for arguments in (["-kas-to-object", lowered, "-o", os.path.join(folder, "model.o")], header):
        subprocess.run([translate, *arguments], check=True, capture_output=True, text=True)
    os.remove(lowered)
    weights: dict[str, Any] = {f"{place:04d}": weight.detach().numpy() for place, weight in enumerate(program.weights)}
    numpy.savez(os.path.join(folder, "weights.npz"), **weights)
    assert best.network is not None
    with torch.no_grad():
        outputs = call(best.network, problem.batch)
    if isinstance(problem.batch, torch.Tensor) and isinstance(outputs, torch.Tensor):
        numpy.savez(os.path.join(folder, "example.npz"), input=problem.batch.numpy(), output=outputs.numpy())
        return ["model.mlir", "model.o", "model.h", "weights.npz", "example.npz"]
    return ["model.mlir", "model.o", "model.h", "weights.npz"]
