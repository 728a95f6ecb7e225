#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the table of kernels and libraries in a report: times as measured, and what is expected without and with them.

    kas-bench gpu --static --chip=sm_90a | python gpu-libraries.py SESSION.jsonl.xz REPORT.md

Reads from the benchmark which cases the cost model leaves to a library, and the modelled times of kernels; from the
results of a session on a GPU the measured times of kernels, and of PyTorch with both orders of dimensions. What is left
to a library is expected to take as long as that took with channels first, the order that programs of kas have, and
other kernels as long as they did. The model of today's kernels leaves caches and waiting out, so it decides nothing.
Nothing here is a measurement of kas with libraries.
"""

import json
import lzma
import math
import re
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

    @property
    def expected(self) -> float:
        return self.first if self.library else self.before


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


def get_cases(static: dict[str, dict[str, float]], session: dict[str, dict]) -> list[Case]:
    cases = []
    for name, metrics in static.items():
        own, peer = session.get(f"time/{name}"), session.get(f"peers/{name}", {})
        if own is None or "eager" not in peer:
            continue
        library = next((name for name in ("cuBLASLt", "cuDNN") if metrics[f"left_to_{name}"]), "")
        first = 1e3 * peer["eager"]
        best = min(first, 1e3 * peer.get("channels_last", peer["eager"]))
        operator, precision = name.rsplit("/", 1)
        cases.append(Case(operator, precision, 1e3 * own["ms"], metrics["modelled_us"], first, best, library))
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
        ]
        left = sum(bool(case.library) for case in found)
        shares.append([precision, str(len(found)), str(left), *(f"{mean:.2f}" for mean in means)])
    for case in cases:
        if case.precision == "f16":
            numbers = [f"{number:.1f}" for number in (case.before, case.modelled, case.first, case.best, case.expected)]
            rows.append([f"`{case.name}`", *numbers, case.library])
    return "\n".join(
        [
            *write_table(
                ["precision", "cases", "left to a library", "best peer's time over ours, measured",
                 "the same with libraries, expected", "peer with channels first over ours with libraries, expected"],
                shares,
            ),
            "",
            *write_table(
                ["f16, us", "kernels, measured", "today's, modelled", "peer with channels first", "best peer",
                 "with libraries, expected", "left to"],
                rows,
            ),
        ]
    )  # fmt: skip


def main() -> None:
    session, report = map(Path, sys.argv[1:])
    cases = get_cases(read_static(list(sys.stdin)), read_session(session))
    text = report.read_text()
    before, _, rest = text.partition(BEGIN)
    if END not in rest:
        sys.exit(f"error: expected the line '{BEGIN}' and '{END}' after it in {report}, found none")
    report.write_text(f"{before}{BEGIN}\n{write(cases)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
