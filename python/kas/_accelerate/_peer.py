# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model in int8 by ONNX Runtime, where that is installed: what others give without any search."""

from __future__ import annotations

import logging
import os
import tempfile
from typing import Any

import torch

from .._errors import MissingExtraError
from ._problem import Problem

NAME = "the model, ONNX Runtime"


class PeerProgram:
    """A session for examples of the shapes of one, with the calls of a `Program`."""

    def __init__(self, path: str, batch: torch.Tensor, threads: int):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._input = self._session.get_inputs()[0].name
        self._batch = batch.numpy().copy()

    def run(self) -> None:
        """A call with the inputs that are there."""
        self._session.run(None, {self._input: self._batch})

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """The outputs for any number of examples."""
        parts, size = [], len(self._batch)
        for start in range(0, len(inputs), size):
            part = inputs[start : start + size].numpy()
            self._batch[: len(part)] = part
            parts.append(torch.from_numpy(self._session.run(None, {self._input: self._batch})[0][: len(part)]))
        return torch.cat(parts)


def make_peer(problem: Problem) -> PeerProgram | None:
    """The quantized model; None where that is impossible, with the reason in a message."""
    if not isinstance(problem.batch, torch.Tensor):
        return None
    try:
        return _make(problem, problem.batch)
    except (ImportError, MissingExtraError) as error:
        problem.reporter.message(f"onnx or onnxruntime is not installed: no int8 of ONNX Runtime ({error})")
    except Exception as error:
        # Errors of ONNX Runtime have no class of their own, and whatever it fails by costs nothing but a row.
        problem.reporter.message(f"ONNX Runtime has no int8: {' '.join(str(error).split())[:200]}")
    return None


def _make(problem: Problem, batch: torch.Tensor) -> PeerProgram:
    from ..onnx import export_network

    with tempfile.TemporaryDirectory(prefix="kas-peer-") as folder:
        path, quantized = os.path.join(folder, "model.onnx"), os.path.join(folder, "int8.onnx")
        export_network(problem.model, batch, path)
        quantize(problem, path, quantized)
        return PeerProgram(quantized, batch, problem.options.threads)


def quantize(problem: Problem, path: str, quantized: str) -> None:
    """Writes the ONNX file of a network in int8, calibrated on the examples that ranges of kas are measured on."""
    from onnx import load
    from onnxruntime import quantization

    name = load(path, load_external_data=False).graph.input[0].name

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            self._entries = iter([{name: one.numpy()} for one in problem.get_calibration()])

        def get_next(self) -> Any:
            return next(self._entries, None)

    # It recommends to prepare models, on the logger of all.
    logging.disable(logging.WARNING)
    try:
        quantization.quantize_static(
            path,
            quantized,
            Reader(),
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
    finally:
        logging.disable(logging.NOTSET)
