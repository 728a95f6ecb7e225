# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""research/gpu-session.sh where there is no GPU: on Vulkan and on a stand-in for CUDA's driver."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parents[3]
SESSION = ROOT / "research/gpu-session"
BUILD = Path(os.environ.get("KAS_BUILD", "build")).resolve()
STAND_IN = {"KAS_RT_LIBCUDA": str(BUILD / "lib/libkas-cuda-stand-in.so")}


def load_module(name):
    spec = importlib.util.spec_from_file_location(name, SESSION / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rehearsal():
    environment = os.environ | {"KAS_BUILD": str(BUILD), "PYTHON": sys.executable}
    script = [ROOT / "research/gpu-session.sh", "--rehearse"]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "on Vulkan" in done.stdout and done.stdout.endswith("on the stand-in: ok\n")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    pack = [BUILD / "bin/kas-gpu-pack", folder, "--format=ptx", "--chips=sm_90", "--stride=100", "--kinds=values"]
    subprocess.run(pack, check=True, capture_output=True)
    for file in [*SESSION.glob("*.py"), BUILD / "lib/libkas-rt.so"]:
        shutil.copy(file, folder)
    return folder


def run(bundle, *options, **environment):
    command = [sys.executable, "session.py", "run", "--architecture=sm_90a", "--no-peers", *options]
    return subprocess.run(
        command, cwd=bundle, env=os.environ | STAND_IN | environment, capture_output=True, text=True, check=False
    )


def test_second_session_runs_what_is_left(bundle):
    results = bundle / "results.jsonl"
    assert run(bundle).returncode == 0
    lines = results.read_text().splitlines()
    results.write_text("\n".join(lines[:4]) + "\n")
    assert run(bundle).returncode == 0
    again = results.read_text().splitlines()
    assert again[:4] == lines[:4]
    assert [json.loads(line)["unit"] for line in again] == [json.loads(line)["unit"] for line in lines]


def test_case_that_was_begun_is_lost(bundle):
    results = bundle / "begun.jsonl"
    case = json.loads((bundle / "cases.jsonl").read_text().splitlines()[0])["name"]
    results.write_text(json.dumps({"unit": case, "status": "started"}) + "\n")
    assert run(bundle, "--results=begun.jsonl").returncode == 0
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [line["status"] for line in lines if line["unit"] == case] == ["started", "lost"]


def test_case_that_ends_its_process_is_lost_alone(bundle):
    # As a process leaves the file that dies during a case.
    results = bundle / "lost.jsonl"
    case = json.loads((bundle / "cases.jsonl").read_text().splitlines()[0])["name"]
    script = (bundle / "session.py").read_text()
    start = 'self.write(unit, "started")'
    broken = script.replace(start, f"{start}\n        unit == {case!r} and os.abort()")
    assert broken != script
    (bundle / "session.py").write_text(broken)
    try:
        assert run(bundle, "--results=lost.jsonl").returncode == 0
    finally:
        (bundle / "session.py").write_text(script)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    lost = [line["unit"] for line in lines if line["status"] == "lost"]
    done = [line["unit"] for line in lines if line["status"] == "done"]
    assert lost == [case]
    assert len(done) > 10 and case not in done


def test_line_that_was_not_finished(bundle):
    results = bundle / "cut.jsonl"
    results.write_text('{"unit": "one", "status": "done"}\n{"unit": "tw')
    assert run(bundle, "--results=cut.jsonl").returncode == 0
    units = [json.loads(line)["unit"] for line in results.read_text().splitlines()]
    assert units[0] == "one" and "machine" in units


def test_wrong_values_are_found(bundle, monkeypatch):
    monkeypatch.syspath_prepend(str(SESSION))
    opened = load_module("values").Bundle(bundle)
    case = next(case for case in opened.cases if case["expected"]["tolerance"] == 0)
    shape = case["expected"]["shape"]
    right = opened.read(case, case["expected"]["data"], int(np.prod(shape))).reshape(shape)
    assert opened.compare(case, right) == (0, True)
    for wrong in (np.nextafter(right.flat[-1], np.float32(np.inf)), np.nan):
        values = right.copy()
        values.flat[-1] = wrong
        assert not opened.compare(case, values)[1]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--phases=values,speed", "requires some of values, times, schedules, compiled, got 'speed'"),
        ("--minutes=0", "require positive numbers, got 0.0"),
        ("--cases=[", "requires a regular expression, got '['"),
        ("--bundle=nowhere", "requires the file nowhere/cases.jsonl, found none"),
        ("--library=none.so", "requires the file none.so, found none"),
    ],
)
def test_wrong_options(bundle, option, message):
    done = run(bundle, option)
    assert done.returncode == 2
    assert message in done.stderr


def test_operators_without_a_layer_have_composites(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(SESSION))
    # A window for each channel, then a contraction over all channels: both are convolutions, too.
    found = ROOT / "research/data/operators/found-360.mlir"
    pack = [BUILD / "bin/kas-gpu-pack", tmp_path, "--format=ptx", "--chips=sm_90", "--kinds=operators"]
    pack += ["--precisions=f32", "--schedules=1", f"--operators={found}:N=2,Cin=8,Cout=12,H=10,W=9,k=3,g=2"]
    subprocess.run(pack, check=True, capture_output=True)
    opened = load_module("values").Bundle(tmp_path)
    assert [case["name"].split("<")[0] for case in opened.cases] == ["found-360.candidate_0", "found-360.candidate_1"]
    peers = load_module("peers")
    for case in opened.cases:
        arguments = opened.get_arguments(case)
        layers = peers.make_composites(torch, case["name"], case["composite"], arguments, "cpu")
        assert set(layers) == {"composite", "convolution"}
        for function, inputs in layers.values():
            error, is_right = opened.compare(case, function(inputs[0]).numpy())
            assert is_right, (case["name"], error)


def test_no_driver(bundle):
    done = run(bundle, "--results=none.jsonl", KAS_RT_LIBCUDA="none.so")
    assert done.returncode == 1
    assert "no CUDA driver: looked for the library none.so" in done.stderr


def test_values_are_those_of_the_compiler(tmp_path):
    values = load_module("values")
    (tmp_path / "m.mlir").write_text(
        'func.func @forward(%x: tensor<3x5xf32> {kas.name = "x", kas.init = "normal(0.5)"}) -> tensor<3x5xf32> '
        "{ return %x : tensor<3x5xf32> }"
    )
    out = tmp_path / "out.npy"
    command = [BUILD / "bin/kas-run", tmp_path / "m.mlir", "--function=forward", "--args=7", f"--output={out}"]
    subprocess.run(command, check=True, capture_output=True)
    assert (values.make((3, 5), "normal", 0.5, 7, "x") == np.load(out)).all()


def test_numbers_of_sixteen_bits():
    runtime = load_module("runtime")
    numbers = np.array([1.0, 1.00390625, 1.01171875, -3.14159, 65504.0, 1e-30], np.float32)
    torch = pytest.importorskip("torch")
    expected = torch.from_numpy(numbers).to(torch.bfloat16).float().numpy()
    assert (runtime.widen(runtime.narrow(numbers, "bf16"), "bf16") == expected).all()
    assert runtime.narrow(numbers, "f16").dtype == np.float16


@pytest.mark.parametrize(
    ("chip", "own", "can"),
    [("sm_90a", "sm_90", True), ("sm_80", "sm_90", False), ("sm_80", "sm_86", True), ("sm_90a", "sm_100", False),
     ("vulkan", "vulkan", True), ("vulkan", "sm_90", False)],
)  # fmt: skip
def test_machine_code_runs_on_its_major_version(chip, own, can, monkeypatch):
    monkeypatch.syspath_prepend(str(SESSION))
    assert load_module("session").can_run(chip, own) == can
