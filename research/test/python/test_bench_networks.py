# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""research/peers/networks.py and any-batch.py on small networks, which need no torchvision."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import kas

BENCHES = Path(__file__).resolve().parents[3] / "research" / "peers"
sys.path.insert(0, str(BENCHES))
import networks  # noqa: E402

from peerbench import isa  # noqa: E402


def run(*arguments, program="networks.py"):
    packages = os.pathsep.join([str(Path(kas.__file__).parents[1]), str(BENCHES.parent)])
    environment = {**os.environ, "PYTHONPATH": packages, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, BENCHES / program, *arguments], env=environment, capture_output=True, text=True, timeout=600
    )


def test_language_models():
    done = run("--networks=tiny-gpt2,tiny-bert", "--peers=onnxruntime,openvino", "--rounds=1", "--calls=2", "--batch=2")
    assert done.returncode == 0, done.stderr
    *records, summary = map(json.loads, done.stdout.splitlines())
    assert [record["network"] for record in records] == ["tiny-gpt2", "tiny-bert"]
    for record in records:
        assert "failures" not in record
        assert record["error"] < 1e-5
        assert set(record["least_ms"]) == {"kas", "onnxruntime", "openvino"}
        assert record["to_best_peer"] > 0
    assert summary["networks"] == 2 and summary["least"] <= summary["geometric_mean"]


def test_backend_of_torch_compile():
    done = run("--networks=tiny-bert", "--peers=", "--backend", "--rounds=1", "--calls=2")
    assert done.returncode == 0, done.stderr
    record, summary = map(json.loads, done.stdout.splitlines())
    assert "failures" not in record and record["backend_error"] < 1e-5
    assert record["backend_graphs"] == 1 and record["backend_left"] == []
    assert set(record["least_ms"]) == {"kas", "backend"} and "to_best_peer" not in record
    assert summary["backend_least"] == summary["backend_geometric_mean"] == record["backend_to_kas"] > 0


def test_bytes():
    done = run("--networks=tiny-vision", "--peers=onnxruntime,openvino", "--bytes", "--rounds=1", "--calls=2")
    assert done.returncode == 0, done.stderr
    record, summary = map(json.loads, done.stdout.splitlines())
    assert "failures" not in record
    assert 0 < record["bytes_error"] < 0.05
    assert 0 < record["qdq_error"] < 0.05
    assert summary["qdq_least"] == record["qdq_to_best_peer"] > 0
    assert {"kas", "kas_bytes", "kas_qdq", "onnxruntime", "onnxruntime_bytes", "openvino_bytes"} <= set(
        record["least_ms"]
    )
    assert summary["bytes_least"] == record["bytes_to_best_peer"] > 0
    assert summary["bytes_to_f32_least"] == record["bytes_to_f32"] > 0


def test_instruction_set():
    done = run("--networks=tiny-vision", "--peers=onnxruntime,pytorch", "--isa=avx2", "--rounds=1", "--calls=2")
    record, summary = map(json.loads, done.stdout.splitlines())
    assert record["isa"] == "avx2" and record["error"] < 1e-4 and "failures" not in record
    least = record["least_ms"]
    assert set(least) == {"kas", "onnxruntime", "pytorch"}
    rivals = {"onnxruntime", "pytorch"} - set(record.get("not_limited", []))
    assert summary["least"] == record["to_best_peer"]
    assert record["to_best_peer"] == round(min(least[peer] for peer in rivals) / least["kas"], 3)
    done = run("--networks=tiny-vision", "--isa=mmx")
    assert done.returncode == 2 and "invalid choice: 'mmx'" in done.stderr


def test_peers_that_are_not_limited():
    flags = {"avx2", "avx512f"}
    assert isa.list_unlimited("avx2", 0.05, flags) == ["onnxruntime"]
    assert isa.list_unlimited("avx2", 0.9, flags) == ["onnxruntime", "openvino"]
    assert isa.list_unlimited("avx2", 0.9, flags - {"avx512f"}) == []
    assert isa.list_unlimited("avx512", 0.9, flags) == isa.list_unlimited("native", 0.9, flags) == []


def test_share_of_linear_layers():
    # Of 2 x 3 rows: 4 x 8 products each and no convolution; of 4 x 4 pixels 9 x 2 x 3 products each, then 48 x 10.
    linear = torch.nn.Linear(4, 8)
    assert networks.measure_linear_share(linear, torch.randn(2, 3, 4)) == 1
    mixed = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3, padding=1), torch.nn.Flatten(), torch.nn.Linear(3 * 16, 10))
    assert networks.measure_linear_share(mixed, torch.randn(1, 2, 4, 4)) == pytest.approx(480 / (16 * 54 + 480))


def test_no_networks():
    done = run("--networks=")
    assert done.returncode == 2
    assert "argument --networks: expected at least one name, got none" in done.stderr


def test_unknown_peer():
    done = run("--networks=tiny-bert", "--peers=tvm")
    assert done.returncode == 2
    assert "argument --peers: expected onnxruntime, openvino or pytorch, got 'tvm'" in done.stderr


def test_network_that_does_not_exist():
    done = run("--networks=resnet9000", "--peers=", "--rounds=1")
    assert done.returncode != 0
    assert "resnet9000" in done.stderr or "torchvision" in done.stderr


def test_batches_of_any_size():
    arguments = ("--networks=small-separable", "--sizes=1,3", "--seconds=0.01", "--rounds=2")
    done = run(*arguments, program="any-batch.py")
    assert done.returncode == 0, done.stderr
    record, summary = map(json.loads, done.stdout.splitlines())
    assert record["made_for"] == 3
    for size in ("1", "3"):
        assert record["error"][size] < 1e-5
        assert record["any_to_fixed"][size] == summary["sizes"][size]["least"] > 0


def test_sizes_of_batches():
    for sizes, message in (("0", "numbers from 1 to 4096, got '0'"), ("1", "one of at least 2, got '1'")):
        done = run(f"--sizes={sizes}", program="any-batch.py")
        assert done.returncode == 2
        assert f"argument --sizes: expected {message}" in done.stderr
