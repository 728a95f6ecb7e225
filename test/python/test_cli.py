# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command kas: its help, JSON, what kas doctor says, and what it makes of budgets and baselines."""

import json
import os
import subprocess
import sys

import pytest

import kas
from kas import _doctor, cli

SPACE = """
kas.space @layer<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>]
    limits {depth = 5}
"""
BIND = "N=1,Cin=4,Cout=4,H=4,W=4,k=3"


def run(capsys, *arguments):
    assert cli.main(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_help_has_groups_and_exit_codes(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for part in ("find operators:\n  search ", "this machine:\n  doctor ", "exit codes:\n  0 ", "2    wrong arguments"):
        assert part in text
    # Each command once, and each has its own help.
    for name in cli._HELP:
        assert text.count(f"\n  {name} ") == 1
    with pytest.raises(SystemExit) as ended:
        cli.main(["none"])
    assert ended.value.code == 2


def test_python_runs_the_package():
    command = [sys.executable, "-m", "kas", "show", "conv2d"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.startswith("Y[n,cout,h,w] = ")


def test_json(capsys, tmp_path):
    shown = run(capsys, "show", "conv2d", "--bind", BIND, "--json")
    assert shown["formula"] == kas.operator("conv2d").formula
    assert shown["costs"] == [{"binding": BIND, **kas.operator("conv2d").cost(BIND)._asdict()}]
    (timed,) = run(capsys, "bench", "conv2d", "--bind", BIND, "--runs", "3", "--json")
    assert timed["runs"] == 3 and 0 < timed["min_ms"] <= timed["median_ms"]
    with kas.Searcher(SPACE, "random", database=tmp_path / "a.db") as searcher:
        first, second = searcher.ask(2)
        searcher.tell(first.id, {"accuracy": 0.5})
        searcher.tell(second.id, error="no")
    listed = run(capsys, "show", str(tmp_path / "a.db"), "--json")
    assert listed["states"] == {"evaluated": 1, "failed": 1}
    assert [row["id"] for row in listed["candidates"]] == [0] and listed["candidates"][0]["metrics"]["accuracy"] == 0.5


def test_json_of_exports_and_reports(capsys, tmp_path):
    exported = run(capsys, "export", "conv2d", "--json")
    assert exported == {
        "formula": kas.operator("conv2d").formula,
        "format": "mlir",
        "output": None,
        "text": str(kas.operator("conv2d")),
    }
    file = str(tmp_path / "conv.dot")
    assert run(capsys, "export", "conv2d", "--format=graph", "-o", file, "--json")["output"] == file
    with open(file) as written:
        assert written.read() == kas.operator("conv2d").graph
    with kas.Searcher(SPACE, "random", database=tmp_path / "a.db", objective="-accuracy") as searcher:
        for candidate, accuracy in zip(searcher.ask(2), (0.5, 0.75)):
            searcher.tell(candidate.id, {"accuracy": accuracy})
    found = run(capsys, "report", str(tmp_path / "a.db"), "--json")
    assert found["output"] == str(tmp_path / "a.html") and os.path.exists(found["output"])
    assert found["best"] == 1 and found["metrics"]["accuracy"] == [0.5, 0.75]
    assert cli.main(["report", str(tmp_path / "none.db"), "--json"]) == 1


def test_doctor(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KAS_RT_LIBVULKAN", "none.so")
    monkeypatch.setattr(_doctor, "FASHION_MNIST", str(tmp_path / "none"))
    monkeypatch.setattr(_doctor, "EXTRAS", {"report": ("no_such_module",)})
    findings = {one["name"]: one for one in run(capsys, "doctor", "--json")}
    assert findings["kas"]["found"] and not findings["dot"]["found"]
    assert findings["kas[report]"]["remedy"] == "pip install 'kas[report]'"
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    for part in (
        "-> apt-get install graphviz",
        "-> apt-get install libvulkan1 mesa-vulkan-drivers",
        "-> apt-get install dataset-fashion-mnist",
        "missing  programs",
    ):
        assert part in text
    # Where everything is there it says so.
    for name in ("dot", *_doctor.PROGRAMS):
        (tmp_path / name).write_text("#!/bin/sh\n")
        os.chmod(tmp_path / name, 0o755)
    (tmp_path / "none").mkdir()
    findings = {one["name"]: one["found"] for one in run(capsys, "doctor", "--json")}
    assert findings["dot"] == str(tmp_path / "dot") and findings["programs"] == str(tmp_path)
    assert findings["fashion-mnist"]


def test_baselines_of_files(tmp_path):
    conv = str(kas.operator("conv1x1"))
    (tmp_path / "one.mlir").write_text(conv)
    (tmp_path / "two.mlir").write_text(f"{conv}\nkas.sequence @alone [@conv1x1] between []")
    found = cli._read_baselines(["conv2d", str(tmp_path / "one.mlir"), str(tmp_path / "two.mlir")])
    assert found["kas.conv2d"] == "conv2d" and isinstance(found["conv1x1"], kas.Operator)
    assert isinstance(found["alone"], kas.OperatorSequence) and len(found) == 3
    with pytest.raises(cli.UsageError, match=r"there is no file 'none.mlir'"):
        cli._read_baselines(["none.mlir"])


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("10 min", {"seconds": 600}),
        ("1 candidate", {"candidates": 1}),
        ("90s", {"seconds": 90}),
        ("1.5 hours", {"seconds": 5400}),
        ("2 days", {"seconds": 172800}),
        ("1 training", {"epochs": 1}),
        ("500 candidates", {"candidates": 500}),
    ],
)
def test_budgets(text, budget):
    pytest.importorskip("torch")
    assert kas.Budget.of(text) == kas.Budget(**budget)


@pytest.mark.parametrize("text", ["1.5 candidates", "10 parsecs", "min", "10"])
def test_budgets_that_are_none(text):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="the budget must be text such as"):
        kas.Budget.of(text)


@pytest.mark.parametrize(
    ("option", "least"),
    [("--runs=0", 1), ("--runs=x", 1), ("--threads=-2", 0), (f"--threads={1 << 40}", 0)],
)
def test_counts_of_bench(capsys, option, least):
    with pytest.raises(SystemExit):
        cli.main(["bench", "kas.conv2d", "--bind=N=1,Cin=3,Cout=4,H=8,W=8,k=3", option])
    assert f"requires an integer of at least {least}, got" in capsys.readouterr().err


FILE = """
import torch
from kas.evaluate import Data

network = torch.nn.Linear(3, 4)
number = 5


def make_of(size):
    return torch.nn.Linear(size, 4)


def draw(inputs):
    inputs = torch.as_tensor(inputs)
    part = inputs, torch.zeros(len(inputs), dtype=torch.int64)
    return Data("drawn", part, part, part, 4)


def make_wide():
    return draw([[1.0] * 5])


def make_doubles():
    return draw(torch.ones(4, 3, dtype=torch.float64))


def make_infinite():
    return draw([[1.0, 2.0, float("inf")], [float("nan")] * 3])
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.py:number"], "'net.py:number' must give a torch.nn.Module, got int"),
        (
            ["net.py:make_of"],
            "'net.py:make_of' must be callable without arguments: missing a required argument: 'size'",
        ),
        (["net.py:network", "--data=net.py:make_wide"], "requires data that the network takes, got"),
        (["net.py:network", "--data=net.py:make_doubles"], "requires data that the network takes, got"),
        (["net.py:network", "--data=net.py:make_infinite"], "must have finite inputs, got 4 numbers that are infinite"),
        (["net.py:network", "-o", "net.py"], "-o requires a folder, got the file 'net.py'"),
        (["net.py:network", "--weights=net.py"], "requires a file of tensors that can be read, got 'net.py'"),
        (["net.py:network", "--weights=empty.pt"], "requires a file of tensors that can be read, got 'empty.pt'"),
        (["net.py:network", "--weights=bad.safetensors"], "requires a file of tensors that can be read, got 'bad."),
    ],
)
def test_files_and_data_that_do_not_fit(capsys, monkeypatch, tmp_path, arguments, message):
    """An error that says what was required, and no stack."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FILE)
    (tmp_path / "empty.pt").touch()
    (tmp_path / "bad.safetensors").write_bytes(bytes(range(200)))
    assert cli.main(["accelerate", *arguments, "--minutes=0.1", "--quiet"]) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_network_that_is_made_already(capsys, monkeypatch, tmp_path):
    """NAME may be a module, not only what makes one."""
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FILE)
    assert cli.main(["export", "net.py:network", "--shape=2x3", "--format=compiled", "-o", "net.kas"]) == 0
    assert kas.load_compiled("net.kas").arguments[0][1] == (2, 3)
