# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own tests of operations and modules: what kas computes is right, and the rest is left to PyTorch.

`tools/torch-coverage.py` prints what becomes of each.
"""

from __future__ import annotations

import json
import pathlib
import random
import subprocess

import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import torch_suite
from torch_suite import Task

ROOT = pathlib.Path(__file__).parents[2]


def check(tasks, jobs, time_limit):
    outcomes = list(torch_suite.Workers(jobs, time_limit).run(tasks))
    assert len(outcomes) == len(tasks)
    assert [f"{task}: {outcome.status}: {outcome.detail}" for task, outcome in outcomes if outcome.is_failure] == []
    return [outcome.status for _, outcome in outcomes]


def test_sample():
    """Some entries of each kind, drawn by a seed."""
    chance, tasks = random.Random(0), []
    for suite, mode, count in (
        ("op_db", "forward", 14),
        ("op_db", "gradient", 6),
        ("op_db", "extremal", 6),
        ("module_db", "forward", 4),
        ("module_db", "gradient", 2),
    ):
        names = chance.sample(torch_suite.list_entries(suite), count)
        tasks += [Task(suite, name, "float32", mode, 1) for name in names]
    assert check(tasks, 1, 300).count("compiled") >= 8


@pytest.mark.slow
@pytest.mark.parametrize("mode", torch_suite.MODES)
@pytest.mark.parametrize("suite", ["op_db", "module_db"])
def test_all(suite, mode):
    others = ("float64", "float16", "bfloat16")
    if mode == "forward":
        others += ("int64", "int32", "int16", "int8", "uint8", "bool")
    names = torch_suite.list_entries(suite)
    statuses = check([Task(suite, name, "float32", mode, 6) for name in names], 2, 600)
    if mode == "forward":
        assert statuses.count("compiled") >= 0.6 * (len(statuses) - statuses.count("none"))
    check([Task(suite, name, dtype, mode, 2) for dtype in others for name in names], 2, 600)


@pytest.mark.slow
def test_networks(tmp_path):
    """Networks of transformers and timm: none is wrong or ends the process."""
    requirements = f"--requirements={ROOT / 'python/requirements-networks.txt'}"
    made = subprocess.run([ROOT / "tools/python.sh", requirements], check=True, capture_output=True, text=True)
    python, file = made.stdout.split()[-1], tmp_path / "networks.jsonl"
    subprocess.run([python, ROOT / "tools/torch-networks.py", "run", file, "--time-limit=1800"], check=True)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum(row["values"]["share"] >= 0.95 for row in rows) >= 0.6 * len(rows) > 60


def test_a_worker_that_is_lost_is_a_failure(monkeypatch, tmp_path):
    # A worker that ends by a signal, hangs, or answers.
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import json, os, sys, time\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    name = json.loads(line)['name']\n"
        "    os.abort() if name == 'abort' else time.sleep(100) if name == 'hang' else None\n"
        "    print(json.dumps({'status': 'compiled'}), flush=True)\n"
    )
    monkeypatch.setattr(torch_suite, "__file__", str(worker))
    tasks = [torch_suite.Task("op_db", name, "float32", "forward", 1) for name in ("abort", "good", "hang", "good")]
    outcomes = [outcome.status for _, outcome in torch_suite.Workers(1, 10).run(tasks)]
    assert outcomes == ["crash", "compiled", "time-out", "compiled"]
