# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""research/gpu-session.sh where there is no GPU: on Vulkan and on a stand-in for CUDA's driver."""

import importlib.util
import json
import lzma
import os
import shutil
import subprocess
import sys
import time
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


def test_networks_with_libraries(tmp_path):
    # The stand-in for the driver computes nothing: values are right where the stand-in for the library computes all.
    text = (ROOT / "test/Tools/kas-run/Inputs/library-convolutions.mlir").read_text()
    network = tmp_path / "blocks.mlir"
    network.write_text(text.replace("2x64x28x28", "1x64x4x4").replace("2x64x30x30", "1x64x6x6"))
    pack = [BUILD / "bin/kas-gpu-pack", tmp_path, "--format=ptx", "--chips=sm_90", "--kinds=network"]
    subprocess.run([*pack, f"--network={network}"], check=True, capture_output=True)
    for file in [*SESSION.glob("*.py"), BUILD / "lib/libkas-rt.so"]:
        shutil.copy(file, tmp_path)

    def get(results, **environment):
        done = run(tmp_path, f"--results={results}", "--phases=times", "--seconds=0.001", **environment)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in (tmp_path / results).read_text().splitlines()]
        assert not [line for line in lines if line["status"] in ("error", "lost")]
        return {line["unit"]: line for line in lines if line["status"] == "done"}

    library = str(BUILD / "lib/libkas-cudnn-stand-in.so")
    found = get("with.jsonl", KAS_RT_LIBCUDNN=library)
    for precision in ("f32", "tf32", "f16", "bf16"):
        one = found[f"libraries/blocks/{precision}"]
        assert one["libraries"] == {"cuDNN 8.9.7": 2}, one
        # In f32 the library computes all; elsewhere kernels copy images and filters to channels last.
        assert one["ok"] == (precision == "f32"), one
        assert "libraries" not in found[f"network/blocks/{precision}"]
    report = subprocess.run(
        [sys.executable, "session.py", "report", "--results=with.jsonl"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "cuDNN 8.9.7: 2" in report
    # The same where it is not there: by kernels, with the reason.
    found = get("without.jsonl", KAS_RT_LIBCUDNN="none.so")
    (text,) = found["libraries/blocks/tf32"]["libraries"]
    assert text.startswith("kernel: no cuDNN: looked for the library none.so")


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


def test_table_of_libraries(tmp_path):
    static = [("left_to_cuBLASLt", 0), ("left_to_cuDNN", 1), ("modelled_us", 3)]
    lines = [{"case": f"{name}/f16", "metric": metric, "value": value}
             for name in ("conv", "only_ours") for metric, value in static]  # fmt: skip
    lines += [{"case": "small/f16", "metric": metric, "value": value} for metric, value in (static[0], static[2])]
    lines += [{"case": "small/f16/run_1", "metric": "modelled_us", "value": 7},
              {"case": "small/f16", "metric": "left_to_cuDNN", "value": 0}]  # fmt: skip
    session = [{"unit": f"time/{name}/f16", "status": "done", "ms": 0.016} for name in ("conv", "only_ours", "small")]
    session += [{"unit": f"peers/{name}/f16", "status": "done", "eager": 0.008, "channels_last": 0.004}
                for name in ("conv", "small")]  # fmt: skip
    # A convolution of few channels stays with its kernel alone, and not between others that have channels last.
    dense = "kas.conv2d_strided<N=8,Cin=3,Cout=64,H=224,W=224,k=7,s=2>/tf32"
    lines += [{"case": dense, "metric": metric, "value": value} for metric, value in (static[0], static[2])]
    lines += [{"case": dense, "metric": "left_to_cuDNN", "value": 0}]
    session += [{"unit": f"time/{dense}", "status": "done", "ms": 0.016},
                {"unit": f"peers/{dense}", "status": "done", "eager": 0.008, "channels_last": 0.004}]  # fmt: skip
    file, report = tmp_path / "session.jsonl.xz", tmp_path / "report.md"
    with lzma.open(file, "wt") as stream:
        stream.write("\n".join(map(json.dumps, session)))
    script = [sys.executable, ROOT / "research/peers/gpu-libraries.py", file, report, f"--kas-opt={BUILD}/bin/kas-opt"]

    def write(text):
        report.write_text(text)
        return subprocess.run(
            script, input="\n".join(map(json.dumps, lines)), capture_output=True, text=True, check=False
        )

    begin, end = "<!-- libraries: written by research/peers/gpu-libraries.py -->", "<!-- end of libraries -->"
    done = write(f"before\n{begin}\nold\n{end}\nafter\n")
    assert done.returncode == 0, done.stderr
    text = report.read_text()
    # Of two cases one is left: 4 / 16 and 4 / 8, 4 / 16; 8 / 8, 8 / 16; 4 / 4, 4 / 16.
    assert "| f16 | 2 | 1 | 0.25 | 0.35 | 0.71 | 0.50 |" in text
    assert "| `conv` | 16.0 | 3.0 | 8.0 | 4.0 | 8.0 | 4.0 | cuDNN |" in text
    assert "| `small` | 16.0 | 7.0 | 8.0 | 4.0 | 16.0 | 16.0 |  |" in text
    assert "| tf32 | 1 | 0 | 0.25 | 0.25 | 0.50 | 1.00 |" in text
    assert text.startswith(f"before\n{begin}\n|") and text.endswith(f"|\n{end}\nafter\n") and "only_ours" not in text
    done = write("no table")
    assert done.returncode == 1 and "expected the line" in done.stderr


def test_all_of_the_time_is_used(tmp_path):
    pack = [BUILD / "bin/kas-gpu-pack", tmp_path, "--format=ptx", "--chips=sm_90", "--stride=17", "--schedules=2"]
    subprocess.run([*pack, "--kinds=time"], check=True, capture_output=True)
    for file in [*SESSION.glob("*.py"), BUILD / "lib/libkas-rt.so"]:
        shutil.copy(file, tmp_path)
    options = ("--cases=M=64", "--phases=times,schedules", "--minutes=0.2", "--seconds=0.01", "--fill")
    begin = time.time()
    done = run(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    # 12 seconds; what began before their end is finished.
    assert time.time() - begin > 0.8 * 12
    units = [line["unit"] for line in map(json.loads, (tmp_path / "results.jsonl").open()) if line["status"] == "done"]
    assert any(unit.startswith("schedule/") for unit in units)
    rounds = {int(unit.split("/")[1]) for unit in units if unit.startswith("again/")}
    assert {1, 2} <= rounds


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
