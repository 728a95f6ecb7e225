# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX's own tests: each model is right, or refused by a message that names an operation of it (onnx_suite.py)."""

import random

import pytest

pytest.importorskip("onnx")
pytest.importorskip("torch_mlir")

import onnx_suite

# Shares of what is not excluded.
SHARES = {"node": 0.9, "simple": 0.95, "pytorch-operator": 0.95, "pytorch-converted": 0.95, "light": 0.95}


def check(names, jobs):
    results = list(onnx_suite.run_all(names, jobs))
    assert len(results) == len(names)
    bad = [result for result in results if result["outcome"] not in ("right", "refused", "excluded")]
    assert not bad
    return results


def test_sample():
    """Some models of each folder, drawn by a seed that says which."""
    generator = random.Random(0)
    names = [name for name in onnx_suite.list_models() if not name.startswith("light")]
    results = check(generator.sample(names, 40), 1)
    assert sum(result["outcome"] == "right" for result in results) >= 25


@pytest.mark.slow
def test_all():
    results = check(onnx_suite.list_models(), 2)
    for folder, share in SHARES.items():
        own = [result for result in results if result["name"].startswith(f"{folder}/")]
        counted = [result for result in own if result["outcome"] != "excluded"]
        right = sum(result["outcome"] == "right" for result in counted)
        assert right >= share * len(counted), folder


def test_ends_are_results(monkeypatch, tmp_path):
    """A worker that a signal ends, and one that takes too long, are outcomes, and others go on."""
    path = tmp_path / "worker.py"
    path.write_text(
        "import json, os, sys, time\n"
        "for line in sys.stdin:\n"
        "    name = line.strip()\n"
        "    if name == 'a/crash': os.abort()\n"
        "    if name == 'a/timeout': time.sleep(100)\n"
        "    print(json.dumps({'outcome': 'right', 'why': '', 'seconds': 0}), flush=True)\n"
    )
    monkeypatch.setattr(onnx_suite, "__file__", str(path))
    monkeypatch.setattr(onnx_suite, "START", 1)
    names = ["a/1", "a/crash", "a/2", "a/timeout", "a/3"]
    outcomes = {r["name"]: r["outcome"] for r in onnx_suite.run_all(names, 1, 1)}
    assert outcomes == {"a/1": "right", "a/crash": "crash", "a/2": "right", "a/timeout": "timeout", "a/3": "right"}
