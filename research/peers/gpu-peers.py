#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures `kas-bench gpu` and PyTorch on the same GPU in one run.

    research/peers/gpu-peers.py > gpu.jsonl
    research/peers/gpu-peers.py --filter='matmul.*f16' --rounds=3

Case by case, in several rounds, kas and PyTorch (eager, which is cuBLAS and cuDNN, and `torch.compile` with
max-autotune) are timed in turn by events of the device; inputs rotate, the median counts. Also measured in the run: the
bandwidth of a copy, and as the peak the rate of cuBLAS at a product of 8192^3 in each precision. Prints lines of JSON
like `kas-bench gpu`, and of kas ratio_to_best_peer: above 1 kas is faster. Needs PyTorch with CUDA and a GPU of
NVIDIA's.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "build" / "bin"
COPIES = 3


def load_torch():
    try:
        import torch
    except ImportError:
        sys.exit("gpu-peers: error: PyTorch is not installed")
    if not torch.cuda.is_available():
        sys.exit("gpu-peers: error: PyTorch finds no CUDA device")
    return torch


def read_sizes(case):
    """`kas.conv2d<N=1,k=3>/f16` -> ("conv2d", {"N": 1, "k": 3}, "f16")."""
    match = re.fullmatch(r"kas\.(\w+)<([^>]*)>/(\w+)", case)
    if not match:
        return None
    sizes = {name: int(value) for name, value in (part.split("=") for part in match[2].split(","))}
    return match[1], sizes, match[3]


def make_layer(torch, case):
    """A function of one input and its inputs, or None where PyTorch has no such layer."""
    parts = read_sizes(case)
    if not parts:
        return None
    name, size, precision = parts
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)

    def random(*shape):
        return torch.randn(*shape, device="cuda", dtype=dtype)

    if name == "matmul":
        weight = random(size["K"], size["N"])
        return (lambda x: x @ weight), [random(size["M"], size["K"]) for _ in range(COPIES)]
    known = ("conv2d", "conv2d_strided", "conv1x1", "conv2d_grouped", "conv2d_depthwise", "conv2d_dilated")
    if name not in known:
        return None
    k, channels = size.get("k", 1), size.get("Cin", size.get("C"))
    groups = channels if name == "conv2d_depthwise" else size.get("g", 1)
    weight = random(size.get("Cout", channels), channels // groups, k, k)
    dilation = size.get("d", 1)
    settings = {"stride": size.get("s", 1), "padding": dilation * (k // 2), "dilation": dilation, "groups": groups}
    inputs = [random(size["N"], channels, size["H"], size["W"]) for _ in range(COPIES)]
    return (lambda x: torch.nn.functional.conv2d(x, weight, **settings)), inputs


def measure(torch, function, inputs, seconds):
    """Milliseconds of single calls, by the device's clock."""
    for value in inputs * 2:
        function(value)
    torch.cuda.synchronize()
    times, spent = [], 0.0
    while len(times) < 20 or spent < seconds * 1e3:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function(inputs[len(times) % len(inputs)])
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
        spent += times[-1]
    return times


def run_kas(options, pattern):
    command = [options.tools / "kas-bench", "gpu", f"--filter={pattern}", f"--seconds={options.seconds}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"gpu-peers: error: {result.stderr.strip()}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def write(case, implementation, metric, value, unit=""):
    print(
        json.dumps(
            {"suite": "gpu", "case": case, "impl": implementation, "metric": metric, "value": value, "unit": unit}
        ),
        flush=True,
    )


def measure_case(torch, options, case):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case.endswith("/tf32")
    layer = make_layer(torch, case)
    contenders = {}
    if layer:
        compiled = torch.compile(layer[0], mode="max-autotune-no-cudagraphs")
        contenders = {"eager": layer[0], "compiled": compiled}
    times = {}
    for _ in range(options.rounds):
        lines = run_kas(options, f"^{re.escape(case)}$")
        times.setdefault("kas", []).extend(line["value"] for line in lines if line["metric"] == "time_ms")
        for name, function in contenders.items():
            times.setdefault(name, []).extend(measure(torch, function, layer[1], options.seconds))
    medians = {name: statistics.median(values) for name, values in times.items() if values}
    for name, value in medians.items():
        write(case, name, "time_ms", value, "ms")
    if len(medians) > 1 and "kas" in medians:
        best = min(value for name, value in medians.items() if name != "kas")
        write(case, "kas", "ratio_to_best_peer", best / medians["kas"])


def measure_peaks(torch, options):
    for precision in ("f32", "tf32", "f16", "bf16"):
        case = f"kas.matmul<M=8192,N=8192,K=8192>/{precision}"
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        function, inputs = make_layer(torch, case)
        milliseconds = statistics.median(measure(torch, function, inputs, options.seconds))
        write(f"peak/{precision}", "cublas", "gflops", 2e-6 * 8192**3 / milliseconds, "GFLOP/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=Path, default=TOOLS, help="where kas-bench is")
    parser.add_argument("--filter", default="", help="only cases that this regular expression finds")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch = load_torch()
    # The names of all cases, and the copy's bandwidth.
    first = run_kas(argparse.Namespace(tools=options.tools, seconds=0.01), "")
    for line in first:
        if line["case"] == "copy":
            write("copy", "kas", line["metric"], line["value"], line["unit"])
    measure_peaks(torch, options)
    for case in dict.fromkeys(line["case"] for line in first if line["metric"] == "time_ms"):
        if re.search(options.filter, case):
            measure_case(torch, options, case)


if __name__ == "__main__":
    main()
