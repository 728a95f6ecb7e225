# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas export` of networks of PyTorch or ONNX: as a folder for C programs, or compiled for this machine."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy

from ._c_folder import write_c_folder
from ._module import Module
from ._quantize import quantize, split_weights


def export_c(arguments: argparse.Namespace) -> list[str]:
    """Writes the folder; the names of its files."""
    if arguments.output is None:
        raise ValueError("--format=c requires a folder: -o FOLDER")
    check_folder(arguments.output)
    module, weights, inputs = _load(arguments)
    if arguments.precision == "int8":
        module = quantize(module, _load_calibration(arguments.calibration, inputs), weights)
        module, weights = split_weights(module, weights)
    results = module.compile("forward", threads=1)(*inputs, *weights)
    outputs = list(results) if isinstance(results, (tuple, list)) else [results]
    return write_c_folder(
        module,
        weights,
        arguments.output,
        name=arguments.name,
        inputs=inputs,
        outputs=outputs,
        precision=arguments.precision,
        cpu=arguments.cpu,
        triple=arguments.triple,
        features=arguments.features,
    )


def check_folder(path: str) -> None:
    """A `ValueError` where there cannot be a folder, before anything is computed for it."""
    if not path:
        raise ValueError("-o requires a folder, got ''")
    above = path
    while above and not os.path.lexists(above):
        above = os.path.dirname(above)
    if above and not os.path.isdir(above):
        raise ValueError(f"-o requires a folder, got the file '{above}'")


def export_compiled(arguments: argparse.Namespace) -> None:
    """Writes the file for `kas.load_compiled`."""
    if arguments.output is None:
        raise ValueError("--format=compiled requires a file: -o FILE")
    if other := [name for name in ("triple", "cpu", "features") if getattr(arguments, name)]:
        raise ValueError(f"--format=compiled is for this machine, got --{other[0]}")
    module, weights, inputs = _load(arguments)
    precision = arguments.precision
    if precision == "int8":
        module, precision = quantize(module, _load_calibration(arguments.calibration, inputs), weights), "f32"
    module.save(arguments.output, "forward", weights, precision=precision)


def _load(arguments: argparse.Namespace) -> tuple[Module, list[Any], list[numpy.ndarray]]:
    """The module, its weights, and inputs, random where nobody gave some."""
    source = arguments.source
    generator = numpy.random.default_rng(0)
    if source.endswith(".onnx"):
        from .onnx import load

        loaded = load(source)
        weights = list(loaded.tensors.values())
        function = loaded.module.compile("forward", threads=1)
        count = len(function.arguments) - len(weights)
        kinds = zip(function.arguments[:count], function.types)
        return loaded.module, weights, [_draw(shape, kind, generator) for (_, shape), kind in kinds]
    import torch

    from ._accelerate._command import load_weights
    from ._accelerate._times import export
    from .evaluate.__main__ import load_network

    network = load_network(source).eval()
    if arguments.weights:
        load_weights(network, arguments.weights)
    if not arguments.shape:
        raise ValueError("--format=c of FILE.py:NAME requires --shape, such as --shape=1x3x32x32, got none")
    inputs = [_make_input(text, generator) for text in arguments.shape]
    tensors = tuple(torch.from_numpy(one) for one in inputs)
    exported = export(network, tensors if len(tensors) > 1 else tensors[0])
    return exported.module, exported.weights, inputs


TYPES = (
    "float16",
    "float32",
    "float64",
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)


def _make_input(text: str, generator: numpy.random.Generator) -> numpy.ndarray:
    """An example for a shape and a type, such as `1x12:int64`: numbers of a normal distribution, or 0 and 1."""
    shape, _, dtype = text.partition(":")
    return _draw(_read_shape(shape), dtype or "float32", generator)


def _draw(shape: Sequence[int], dtype: str, generator: numpy.random.Generator) -> numpy.ndarray:
    if dtype not in TYPES:
        raise ValueError(f"the elements of an input must be {', '.join(TYPES)}, got '{dtype}'")
    if dtype.startswith("float"):
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def _read_shape(text: str) -> list[int]:
    sizes = text.split("x")
    if not all(size.isdigit() and int(size) > 0 for size in sizes) or math.prod(map(int, sizes)) > 1 << 28:
        raise ValueError(f"a shape must be sizes such as 1x3x32x32, got '{text}'")
    return [int(size) for size in sizes]


def _load_calibration(path: str | None, inputs: list[numpy.ndarray]) -> list[numpy.ndarray]:
    if len(inputs) != 1:
        raise ValueError(f"int8 requires a network of one input, got {len(inputs)}")
    if path is None:
        raise ValueError("--precision=int8 requires --calibration=FILE.npy, got none")
    shape = inputs[0].shape
    examples = numpy.load(path, allow_pickle=False)
    if examples.shape[1:] != shape[1:] or len(examples) < shape[0]:
        raise ValueError(f"--calibration requires examples of shape {list(shape[1:])}, got {list(examples.shape)}")
    inputs[0] = numpy.ascontiguousarray(examples[: shape[0]], dtype=numpy.float32)
    whole = len(examples) // shape[0] * shape[0]
    parts = examples[:whole].astype(numpy.float32).reshape(-1, *shape)
    return [numpy.ascontiguousarray(part) for part in parts]
