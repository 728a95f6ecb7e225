# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas doctor`: what kas finds on this machine, what is missing, and how to get that."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass

from . import _kas

EXTRAS = {
    "torch": ("torch", "sklearn", "rich", "pandas", "safetensors"),
    "torch-mlir": ("torch_mlir",),
    "onnx": ("onnx",),
    "ray": ("ray",),
    "report": ("plotly",),
    "data": ("mlxtend", "mnist1d"),
}
"""Modules that the extras of the package install."""

PROGRAMS = ("kas-opt", "kas-run", "kas-train", "kas-tune", "kas-translate", "kas-search-db")
FASHION_MNIST = "/usr/share/datasets/fashion-mnist"


@dataclass(frozen=True)
class Finding:
    """One thing that kas needs, or can use."""

    name: str
    purpose: str
    found: str | None
    """Where it is, or its version; None: it is missing."""
    remedy: str
    """How to get it: a command, or what to do."""


def examine() -> list[Finding]:
    """Looks for everything; nothing is changed, imported or downloaded."""
    return [
        Finding("kas", "the compiler and the search", _get_version(), "pip install kas"),
        Finding(
            "programs",
            f"work without Python ({', '.join(PROGRAMS)})",
            _find_programs(),
            "the wheel of kas has them; in the sources of kas: tools/setup.sh; then put build/bin on the PATH",
        ),
        *(
            Finding(f"kas[{extra}]", _PURPOSES[extra], _find_modules(modules), f"pip install 'kas[{extra}]'")
            for extra, modules in EXTRAS.items()
        ),
        Finding("dot", "pictures of operators in reports", shutil.which("dot"), "apt-get install graphviz"),
        Finding(
            "Vulkan",
            "operators on any GPU, or on the CPU by lavapipe",
            _find_library("libvulkan.so.1", "KAS_RT_LIBVULKAN"),
            "apt-get install libvulkan1 mesa-vulkan-drivers",
        ),
        Finding(
            "CUDA driver",
            "operators on NVIDIA's GPUs",
            _find_library("libcuda.so.1", "KAS_RT_LIBCUDA"),
            "the driver of the GPU from NVIDIA; nothing for machines without one",
        ),
        Finding(
            "ptxas",
            "device code that is compiled before it runs",
            _find_assembler(),
            "pip install nvidia-cuda-nvcc, or NVIDIA's CUDA toolkit",
        ),
        Finding(
            "fashion-mnist",
            "the data of the demo and of kas search --data=fashion-mnist",
            _find_folder(FASHION_MNIST),
            "apt-get install dataset-fashion-mnist",
        ),
    ]


_PURPOSES = {
    "torch": "networks of PyTorch, training and search",
    "torch-mlir": "networks of PyTorch as MLIR",
    "onnx": "operators and networks as ONNX models",
    "ray": "searches on several machines",
    "report": "pages about searches",
    "data": "the data sets mnist-5000 and mnist1d",
}


def _get_version() -> str:
    try:
        return f"{importlib.metadata.version('kas')} in {os.path.dirname(_kas.__file__)}"
    except importlib.metadata.PackageNotFoundError:
        # Of a build tree.
        return os.path.dirname(_kas.__file__)


def _find_programs() -> str | None:
    """The folder of the first, if all are there: where the interpreter's scripts are, or in PATH."""
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    found = [shutil.which(name, path=path) for name in PROGRAMS]
    return os.path.dirname(found[0]) if found[0] and all(found) else None


def _find_modules(modules: Sequence[str]) -> str | None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return None if missing else ", ".join(modules)


def _find_library(name: str, variable: str) -> str | None:
    """A library that can be loaded; `variable` of the environment gives another name for it."""
    name = os.environ.get(variable, name)
    try:
        ctypes.CDLL(name)
    except OSError:
        return None
    return name


def _find_assembler() -> str | None:
    """Where the compiler looks, too."""
    folders = [os.environ[name] for name in ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    site = sysconfig.get_paths()["purelib"]
    folders += ["/usr/local/cuda", *(os.path.join(site, "nvidia", name) for name in ("cuda_nvcc", "cu13", "cu12"))]
    places = [*(os.path.join(folder, "bin") for folder in folders), None]
    return next((found for place in places if (found := shutil.which("ptxas", path=place))), None)


def _find_folder(path: str) -> str | None:
    return path if os.path.isdir(path) else None


def render(findings: Sequence[Finding]) -> str:
    """A line for each, with how to get it where it is missing."""
    lines = []
    for one in findings:
        lines.append(f"{'ok' if one.found else 'missing':<9}{one.name:<16} {one.found or f'for {one.purpose}'}")
        if not one.found:
            lines.append(f"{'':<25} -> {one.remedy}")
    missing = sum(one.found is None for one in findings)
    lines.append(f"{len(findings) - missing} found, {missing} missing; each is needed only for what its line says")
    return "\n".join(lines)
