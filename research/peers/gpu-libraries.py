#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the table of kernels and libraries in a report: times as measured, and what is expected without and with them.

    kas-bench gpu --static --chip=sm_90a | python gpu-libraries.py SESSION.jsonl.xz REPORT.md [--kas-opt=PATH]

Reads from the benchmark which cases the cost model leaves to a library, and the modelled times of kernels; from the
results of a session on a GPU the measured times of kernels, and of PyTorch with both orders of dimensions. What is left
to a library is expected to take as long as that took with channels first, the order of functions that are one layer, or
inside of a network, where images may have their channels last, in the faster order; other kernels take as long as they
did. Which dense convolutions are left to it there says `-kas-gpu-channels-last`, through `kas-opt`; others are if they
are with channels first. The model of today's kernels leaves caches and waiting out, so it decides nothing. Nothing here
is a measurement of kas with libraries.
"""

import argparse
import json
import lzma
import math
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

BEGIN, END = "<!-- libraries: written by research/peers/gpu-libraries.py -->", "<!-- end of libraries -->"


@dataclass
class Case:
    """Microseconds: of kernels then, of today's by the model, of the peer with channels first, of the best."""

    name: str
    precision: str
    before: float
    modelled: float
    first: float
    best: float
    library: str
    inside: bool

    @property
    def expected(self) -> float:
        return self.first if self.library else self.before

    @property
    def expected_inside(self) -> float:
        return self.best if self.inside else self.before


def write_convolution(operator: str, sizes: dict[str, int]) -> str | None:
    """A function that computes a dense convolution with padding; None for other operators."""
    if operator not in ("conv2d", "conv1x1", "conv2d_strided", "conv2d_dilated"):
        return None
    k, step, spread = sizes.get("k", 1), sizes.get("s", 1), sizes.get("d", 1)
    pad = spread * (k - 1) // 2
    rows, columns = (sizes[name] + 2 * pad for name in "HW")
    results = [(size - spread * (k - 1) - 1) // step + 1 for size in (rows, columns)]

    def write_type(*shape: int) -> str:
        return f"tensor<{'x'.join(map(str, shape))}xf32>"

    image = write_type(sizes["N"], sizes["Cin"], sizes["H"], sizes["W"])
    padded = write_type(sizes["N"], sizes["Cin"], rows, columns)
    filters = write_type(sizes["Cout"], sizes["Cin"], k, k)
    result = write_type(sizes["N"], sizes["Cout"], *results)
    windows = f"dilations = dense<{spread}> : tensor<2xi64>, strides = dense<{step}> : tensor<2xi64>"
    return f"""
func.func @layer(%x: {image}, %w: {filters}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, {pad}, {pad}] high[0, 0, {pad}, {pad}] {{
    ^bb0(%a: index, %b: index, %c: index, %d: index):
      tensor.yield %zero : f32
  }} : {image} to {padded}
  %e = tensor.empty() : {result}
  %z = linalg.fill ins(%zero : f32) outs(%e : {result}) -> {result}
  %y = linalg.conv_2d_nchw_fchw {{{windows}}} ins(%p, %w : {padded}, {filters}) outs(%z : {result}) -> {result}
  return %y : {result}
}}
"""


def is_left_inside(kas_opt: str, name: str, precision: str) -> bool | None:
    """Whether a dense convolution with channels last is left to a library; None for other operators."""
    operator, _, binding = name.removeprefix("kas.").partition("<")
    text = write_convolution(operator, {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", binding)})
    if text is None:
        return None
    elements = precision if precision in ("f16", "bf16") else "f32"
    target = f"chip=sm_90a libraries=auto precision={precision} elements={elements} layout=whole"
    command = [kas_opt, "-", f"-kas-nvvm-pipeline={target}"]
    made = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    # In the manifest, an attribute of the module.
    return re.search(r"\\22(convolution|matmul)\\22", made) is not None


def read_static(lines: list[str]) -> dict[str, dict[str, float]]:
    """Numbers by case and metric; the last kernel of a case, which follows those that copy weights."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for line in map(json.loads, lines):
        if not line["case"].startswith("geomean/"):
            found[re.sub(r"/run_\d+$", "", line["case"])][line["metric"]] = line["value"]
    return found


def read_session(file: Path) -> dict[str, dict]:
    with lzma.open(file, "rt") as stream:
        lines = list(map(json.loads, stream))
    return {line["unit"]: line for line in lines if line["status"] == "done"}


def get_cases(static: dict[str, dict[str, float]], session: dict[str, dict], kas_opt: str) -> list[Case]:
    cases = []
    for name, metrics in static.items():
        own, peer = session.get(f"time/{name}"), session.get(f"peers/{name}", {})
        if own is None or "eager" not in peer:
            continue
        library = next((name for name in ("cuBLASLt", "cuDNN") if metrics[f"left_to_{name}"]), "")
        first = 1e3 * peer["eager"]
        best = min(first, 1e3 * peer.get("channels_last", peer["eager"]))
        operator, precision = name.rsplit("/", 1)
        inside = is_left_inside(kas_opt, operator, precision)
        inside = bool(library) if inside is None else inside
        cases.append(Case(operator, precision, 1e3 * own["ms"], metrics["modelled_us"], first, best, library, inside))
    return cases


def get_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def write_table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows]]


def write(cases: list[Case]) -> str:
    shares, rows = [], []
    for precision in ("f32", "tf32", "f16"):
        found = [case for case in cases if case.precision == precision]
        if not found:
            continue
        means = [
            get_mean([case.best / case.before for case in found]),
            get_mean([case.best / case.expected for case in found]),
            get_mean([case.first / case.expected for case in found]),
            get_mean([case.best / case.expected_inside for case in found]),
        ]
        left = sum(bool(case.library) for case in found)
        shares.append([precision, str(len(found)), str(left), *(f"{mean:.2f}" for mean in means)])
    for case in cases:
        if case.precision == "f16":
            times = (case.before, case.modelled, case.first, case.best, case.expected, case.expected_inside)
            rows.append([f"`{case.name}`", *(f"{time:.1f}" for time in times), case.library])
    return "\n".join(
        [
            *write_table(
                ["precision", "cases", "left to a library", "best peer's time over ours, measured",
                 "the same with libraries, expected", "peer with channels first over ours with libraries, expected",
                 "best peer's over ours inside of a network, expected"],
                shares,
            ),
            "",
            *write_table(
                ["f16, us", "kernels, measured", "today's, modelled", "peer with channels first", "best peer",
                 "with libraries, expected", "inside of a network, expected", "left to"],
                rows,
            ),
        ]
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("session", type=Path)
    parser.add_argument("report", type=Path)
    parser.add_argument("--kas-opt", default="build/bin/kas-opt")
    options = parser.parse_args()
    report = options.report
    cases = get_cases(read_static(list(sys.stdin)), read_session(options.session), options.kas_opt)
    text = report.read_text()
    before, _, rest = text.partition(BEGIN)
    if END not in rest:
        sys.exit(f"error: expected the line '{BEGIN}' and '{END}' after it in {report}, found none")
    report.write_text(f"{before}{BEGIN}\n{write(cases)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
