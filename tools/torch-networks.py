#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs networks of transformers and timm through torch.compile with kas, and writes a page of what becomes of each.

usage: tools/torch-networks.py run FILE [--suites=transformers,timm] [--match=REGEX] [--time-limit=SECONDS]
       tools/torch-networks.py page FILE

`run` appends a line of JSON for each network that FILE does not have yet. Needs what
`tools/python.sh --requirements=python/requirements-networks.txt` installs, and the Python package in build/python.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import re
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]


def run(options: argparse.Namespace) -> int:
    """1 where a network failed."""
    sys.path.insert(0, str(ROOT / "test/python"))
    import torch_networks
    import torch_suite

    file = pathlib.Path(options.file)
    known = {(row["suite"], row["name"]) for row in read(file)} if file.exists() else set()
    names = {"transformers": torch_networks.TRANSFORMERS, "timm": torch_networks.TIMM}
    tasks = [
        torch_suite.Task(suite, name, "float32", "gradient", 0)
        for suite in options.suites.split(",")
        for name in names[suite]
        if (suite, name) not in known and re.search(options.match, name)
    ]
    workers = torch_suite.Workers(1, options.time_limit, str(ROOT / "test/python/torch_networks.py"))
    failures = 0
    with file.open("a") as output:
        for task, outcome in workers.run(tasks):
            row = {"suite": task.suite, "name": task.name} | dataclasses.asdict(outcome)
            print(json.dumps(row), file=output, flush=True)
            if outcome.is_failure:
                failures += 1
                print(f"{outcome.status}: {task.name}: {outcome.detail} {outcome.values}", flush=True)
    print(f"{len(tasks)} run, {failures} failed")
    return int(failures > 0)


def read(file: pathlib.Path) -> list[dict[str, Any]]:
    """What became of each network last."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return list({(row["suite"], row["name"]): row for row in rows}.values())


def write_page(file: pathlib.Path) -> str:
    """The page of the results in a file."""
    rows = read(file)
    packages = [f"[{name}](https://pypi.org/project/{name})" for name in dict.fromkeys(row["suite"] for row in rows)]
    lines = [
        "# Networks that `torch.compile` with kas runs",
        "",
        f"Networks of {' and '.join(packages)}, made",
        "small, with random weights: the values of two batch sizes, and the gradients of all parameters, against "
        "PyTorch's. Where gradients jump when parameters change by as little as rounding does, they may differ by as "
        "much.",
        "",
        "- *Error*: the largest difference over the largest value.",
        "- *Compiled*: the share of the FLOPs that kas computes, in inference and in training; PyTorch computes the "
        "rest, for the reasons that `kas.torch.explain` gives.",
        "- *Breaks*: where PyTorch splits the network before kas sees it.",
        "",
        "Written by `tools/torch-networks.py page`.",
    ]
    for suite in ("transformers", "timm"):
        of_suite = [row for row in rows if row["suite"] == suite]
        if not of_suite:
            continue
        good = [row for row in of_suite if row["values"] and row["status"] != "wrong"]
        most = sum(row["values"]["share"] >= 0.95 for row in good)
        lines += ["", f"## {suite}", ""]
        lines += [f"{len(of_suite)} networks: {len(good)} are right, of {most} at least 95 % is compiled.", ""]
        lines += ["| network | error | of gradients | compiled | in training | breaks | what is left |"]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [describe(row) for row in of_suite]
    return "\n".join(lines) + "\n"


def describe(row: dict[str, Any]) -> str:
    """A line of the table."""
    values, detail = row["values"], row["detail"].replace("|", "\\|").replace("\n", " ")[:160]
    if not values:
        return f"| {row['name']} | {row['status']} | | | | | {detail} |"
    breaks = sum(values["breaks"].values())
    numbers = f"{values['values']:.1e} | {values['gradients']:.1e} | {values['share']:.1%} | {values['trained']:.1%}"
    return f"| {row['name']} | {numbers} | {breaks or ''} | {detail} |"


def main() -> int:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").partition("usage: ")[2])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("file")
    runs.add_argument("--suites", default="transformers,timm")
    runs.add_argument("--match", default="")
    runs.add_argument("--time-limit", type=float, default=600)
    commands.add_parser("page").add_argument("file")
    options = parser.parse_args()
    if options.command == "run":
        return run(options)
    print(write_page(pathlib.Path(options.file)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
