# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The analysis of the benchmark of proxies, on made-up trainings of which the answer is known."""

import json
import pathlib
import subprocess
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCORES = (
    "params",
    "flops",
    "nest_flops",
    "bytes",
    "points_seen",
    "positions_seen",
    "channels_seen",
    "data_used",
    "points_seen_twice",
)
INITIAL = (
    "grad_norm",
    "snip",
    "synflow",
    "fisher",
    "naswot",
    "static_seconds",
    "initialization_seconds",
    "fit_seconds",
)


def write(path):
    generator = numpy.random.default_rng(0)
    quality = generator.random(30)
    with open(path, "w") as file:

        def line(**row):
            file.write(json.dumps(row) + "\n")

        for task in ("digits", "moved_digits"):
            line(task=task, index=-1, operator="dense", what="seed0", test=0.95)
            for index, good in enumerate(quality):
                key = {"task": task, "index": index, "operator": f"{index:016x}"}
                if index == 29:
                    line(**key, what="seed0", failure="too slow")
                    continue
                for seed in range(2):
                    run = {"test": good + 0.001 * generator.random(), "validation": good, "seconds": 1.0}
                    for epochs in (1, 3, 6):
                        run |= {f"validation{epochs}": good * epochs / 10, f"seconds{epochs}": epochs / 20}
                    line(**key, what=f"seed{seed}", **run)
                scores = {name: float(generator.random()) for name in (*SCORES, *INITIAL)}
                # The parameters know it on the first task, and say the contrary on the second.
                scores["params"] = 1 + good if task == "digits" else 3 - good
                line(**key, what="scores", **scores, fit25=1 - good, weights_indexed_by_position=float(index % 2))


def test_tables(tmp_path):
    write(tmp_path / "runs.jsonl")
    script = ROOT / "research" / "proxies" / "analyse.py"
    process = subprocess.run(
        [sys.executable, script, tmp_path / "runs.jsonl", "--shuffles=2", "--draws=50"], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    rows = {line.split("|")[1].strip(): line for line in process.stdout.splitlines() if line.startswith("|")}
    assert process.stdout.startswith("29 operators with 2 seeds on 2 tasks; 1 drawn ones left out.")
    assert "| 1.00 [" in rows["params"] and "| -1.00 [" in rows["params"]
    assert rows["fit, 25 steps"].count("| 1.00 [") == rows["3 epochs"].count("| 1.00 [") == 2
    assert "successive halving 1-3-6-all" in rows and "surrogate on static features" in rows
    # What was learned on one task is wrong on the other, and is said to be.
    transfer = next(line for line in process.stdout.splitlines() if line.startswith("* The combination of digits (own"))
    assert " on moved_digits: **-0.9" in transfer


def test_search_algorithms_on_imputed_accuracies(tmp_path):
    write(tmp_path / "runs.jsonl")
    script = ROOT / "research" / "proxies" / "searchers.py"
    command = [
        sys.executable,
        script,
        tmp_path / "runs.jsonl",
        "--seeds=1",
        "--algorithms=random,evolution",
        "--trainings=1,2",
    ]
    process = subprocess.run([*command, "--least=10"], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    best = [float(line.split("best ")[1].split(",")[0]) for line in process.stdout.splitlines() if "best " in line]
    rows = {
        line.split("|")[1].strip(): [float(cell.split("±")[0]) for cell in line.split("|")[2:-1]]
        for line in process.stdout.splitlines()
        if line.startswith("| `")
    }
    assert all(numbers[1] > 0 and numbers[3] > 0 for numbers in rows.values())
    assert set(rows) == {"`random`", "`evolution`"}
    for digits1, digits2, moved1, moved2 in rows.values():
        assert 0 <= digits1 <= digits2 <= best[0] + 0.05 and 0 <= moved1 <= moved2 <= best[1] + 0.05
    process = subprocess.run([*command, "--least=30"], capture_output=True, text=True)
    assert (
        process.returncode == 2
        and "requires at least 30 operators with all trainings and scores on digits, got 29" in process.stderr
    )
