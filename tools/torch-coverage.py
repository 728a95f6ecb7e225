#!/usr/bin/env python3
"""Runs PyTorch's tests of operations and modules through torch.compile with kas, and writes a page of what is compiled.

usage: tools/torch-coverage.py run FILE [--suite=op_db,module_db] [--match=REGEX] [--dtypes=...] [--modes=...]
                                   [--samples=N] [--jobs=N] [--time-limit=SECONDS] [--failures] [--seed=N]
       tools/torch-coverage.py page FILE

`run` appends what becomes of each entry to FILE in JSON, one per line, and goes on where FILE has some already;
--samples is the most of one entry (6; 0: all), --failures runs those of FILE that failed once more. `page` prints the
page. Needs the environment of tools/python.sh, and the Python package in build/python.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import re
import sys
from collections.abc import Iterable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")


def read(lines: Iterable[str]) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    """What became of each task last."""
    found = {}
    for line in lines:
        row = json.loads(line)
        found[row["suite"], row["name"], row["dtype"], row["mode"]] = row
    return found


def run(options: argparse.Namespace) -> int:
    """Runs the tasks that FILE does not have yet; 1 where one failed."""
    sys.path.insert(0, str(ROOT / "test/python"))
    import torch_suite

    file = pathlib.Path(options.file)
    known = read(file.read_text().splitlines()) if file.exists() else {}
    tasks = []
    for suite in options.suite.split(","):
        names = [name for name in torch_suite.list_entries(suite) if re.search(options.match, name)]
        for mode in options.modes.split(","):
            for dtype in options.dtypes.split(","):
                for name in names:
                    task = torch_suite.Task(suite, name, dtype, mode, options.samples, options.seed)
                    row = known.get((suite, name, dtype, mode))
                    again = options.failures and row and torch_suite.Outcome(row["status"]).is_failure
                    if (not row and not options.failures) or again:
                        tasks.append(task)
    tasks = [task for task in tasks if (task.mode == "forward" or task.dtype.find("float") >= 0)]
    failures = 0
    with file.open("a") as output:
        for task, outcome in torch_suite.Workers(options.jobs, options.time_limit).run(tasks):
            row = {"suite": task.suite, "name": task.name, "dtype": task.dtype, "mode": task.mode}
            print(json.dumps(row | dataclasses.asdict(outcome)), file=output, flush=True)
            if outcome.is_failure:
                failures += 1
                print(f"{outcome.status}: {task}: {outcome.detail}", flush=True)
    print(f"{len(tasks)} run, {failures} failed")
    return int(failures > 0)


def shorten(reason: str) -> str:
    """Why something is left, as a cell of a table."""
    return reason.replace("|", "\\|").replace("torch.aten.", "aten.")[:160]


def write_page(path: str) -> str:
    """The page of the results in a file."""
    with open(path, encoding="utf-8") as file:
        rows = read(file)
    lines = [
        "# What `torch.compile` with kas compiles",
        "",
        "PyTorch's own tests of its operations (`op_db`) and modules (`module_db`), run through `torch.compile(..., "
        'backend="kas")` and',
        "compared with PyTorch. *Compiled*: kas computes all of it. *Left*: PyTorch computes parts of it or all, for "
        "the reason that `kas.torch.explain` gives. Both give PyTorch's results; nothing else may happen.",
        "At most "
        + ", ".join(f"{count} samples of an entry for {mode}" for mode, count in count_samples(rows).items())
        + " were run, drawn by a seed; the slow test runs more.",
        "*Extremal*: with NaN, infinities, and zeros of both signs. Empty, strided and expanded tensors "
        "are among PyTorch's samples.",
        "",
        "Written by `tools/torch-coverage.py page`.",
    ]
    for suite, title in (("op_db", "Operations"), ("module_db", "Modules")):
        lines += ["", f"## {title}", "", *summarize(suite, rows), "", *list_entries(suite, rows)]
    return "\n".join(lines) + "\n"


def count_samples(rows: dict[tuple[str, str, str, str], dict[str, Any]]) -> dict[str, int]:
    """The most samples of an entry, of each mode."""
    counts: dict[str, int] = {}
    for (_, _, _, mode), row in rows.items():
        counts[mode] = max(counts.get(mode, 0), row["samples"])
    return counts


def summarize(suite: str, rows: dict[tuple[str, str, str, str], dict[str, Any]]) -> list[str]:
    counts: dict[tuple[str, str], collections.Counter[str]] = {}
    for (of, _, dtype, mode), row in rows.items():
        if of == suite and row["status"] != "none":
            counts.setdefault((dtype, mode), collections.Counter())[row["status"]] += 1
    lines = ["| elements | | entries | compiled | left | wrong or failed |", "|---|---|---|---|---|---|"]
    for (dtype, mode), count in sorted(counts.items(), key=lambda item: (DTYPES.index(item[0][0]), item[0][1])):
        total = count.total()
        bad = total - count["compiled"] - count["left"] - count["refused"]
        lines.append(f"| {dtype} | {mode} | {total} | {count['compiled']} | {count['left']} | {bad} |")
    return lines


def list_entries(suite: str, rows: dict[tuple[str, str, str, str], dict[str, Any]]) -> list[str]:
    names = sorted({name for of, name, *_ in rows if of == suite})
    lines = ["| entry | float32 | gradient | extremal | other types that are compiled | why something is left |"]
    lines.append("|---|---|---|---|---|---|")
    for name in names:
        cells, reason = [], ""
        for mode in ("forward", "gradient", "extremal"):
            row = rows.get((suite, name, "float32", mode))
            cells.append("" if row is None or row["status"] == "none" else row["status"])
            reason = reason or (row["detail"] if row and row["status"] == "left" else "")
        others = [t for t in DTYPES[1:] if rows.get((suite, name, t, "forward"), {}).get("status") == "compiled"]
        lines.append(f"| `{name}` | {' | '.join(cells)} | {', '.join(others)} | {shorten(reason)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").partition("usage: ")[2])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("file")
    runs.add_argument("--suite", default="op_db,module_db")
    runs.add_argument("--match", default="")
    runs.add_argument("--dtypes", default=",".join(DTYPES))
    runs.add_argument("--modes", default="forward,gradient,extremal")
    runs.add_argument("--samples", type=int, default=6)
    runs.add_argument("--jobs", type=int, default=1)
    runs.add_argument("--time-limit", type=float, default=120)
    runs.add_argument("--seed", type=int, default=0)
    runs.add_argument("--failures", action="store_true")
    pages = commands.add_parser("page")
    pages.add_argument("file")
    options = parser.parse_args()
    if options.command == "run":
        return run(options)
    print(write_page(options.file), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
