# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times networks in ONNX files.

A program for an interpreter that has NumPy, and ONNX Runtime or OpenVINO, and need not have kas. Requests and answers
are lines of JSON on the standard input and output; `_latency.py` makes them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def _find_versions() -> dict[str, str]:
    found = {}
    for name in ("onnxruntime", "openvino"):
        try:
            found[name] = __import__(name).__version__
        except ImportError:
            continue
    return found


def _make_input(shape: Any, is_integral: bool) -> Any:
    import numpy

    generator = numpy.random.default_rng(0)
    # Numbers of words that any vocabulary has.
    return generator.integers(0, 64, shape) if is_integral else generator.standard_normal(shape, dtype=numpy.float32)


def _load_onnxruntime(path: str, threads: int, precision: str) -> Callable[[], Any]:
    import numpy
    import onnxruntime

    if precision != "f32":
        raise ValueError(f"ONNX Runtime requires the precision 'f32', got '{precision}'")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    (data,), (output,) = session.get_inputs(), session.get_outputs()
    x = _make_input(data.shape, "int" in data.type)
    y = onnxruntime.OrtValue.ortvalue_from_shape_and_type(output.shape, numpy.float32, "cpu")
    binding.bind_ortvalue_input(data.name, onnxruntime.OrtValue.ortvalue_from_numpy(x, "cpu"))
    binding.bind_ortvalue_output(output.name, y)
    return lambda: session.run_with_iobinding(binding)


def _load_openvino(path: str, threads: int, precision: str) -> Callable[[], Any]:
    import openvino

    options = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(threads)}
    options |= {"INFERENCE_PRECISION_HINT": precision, "ENABLE_CPU_PINNING": "NO"}
    model = openvino.Core().compile_model(path, "CPU", options)
    request = model.create_infer_request()
    x = _make_input(tuple(model.input(0).shape), model.input(0).element_type.is_integral())
    request.set_input_tensor(openvino.Tensor(x))

    def call() -> None:
        request.start_async()
        request.wait()

    return call


def main() -> None:
    """Serves requests until the input ends."""
    threads = int(sys.argv[1])
    # Libraries print on the standard output, also from native code: that goes to the error stream.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    loaders = {"onnxruntime": _load_onnxruntime, "openvino": _load_openvino}
    loaded: list[Callable[[], Any]] = []
    print(json.dumps({"versions": _find_versions()}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                loaded.append(loaders[request["name"]](request["load"], threads, request["precision"]))
                loaded[-1]()
                answer: dict[str, Any] = {"number": len(loaded) - 1}
            else:
                call, least = loaded[request["time"]], float("inf")
                for _ in range(request["calls"]):
                    start = time.perf_counter_ns()
                    call()
                    least = min(least, (time.perf_counter_ns() - start) / 1e3)
                answer = {"microseconds": least}
        except Exception as error:
            answer = {"failure": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
