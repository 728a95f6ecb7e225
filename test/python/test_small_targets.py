# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks as folders for C on other processors, down to those without an operating system, run by qemu."""

import math
import pathlib
import re
import subprocess

import numpy
import pytest
import torch
from c_compiler import C_COMPILER
from torch import nn

import kas
from kas import cli
from kas.onnx import export_network

NETWORK = """
import torch
from torch import nn


def make():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, groups=2), nn.GELU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10), nn.Softmax(-1),
    )
"""
TARGETS = {
    "aarch64": ("aarch64-linux-gnu", "", "qemu-aarch64"),
    "riscv64": ("riscv64-linux-gnu", "", "qemu-riscv64"),
    "armv7": ("arm-linux-gnueabihf", "cortex-a7", "qemu-arm"),
    "cortex-m4": ("thumbv7em-none-eabihf", "cortex-m4", "qemu-arm"),
    "rv32": ("riscv32-unknown-elf", "sifive-e76", "qemu-riscv32"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("small")
    (path / "net.py").write_text(NETWORK)
    examples = numpy.random.default_rng(1).standard_normal((8, 1, 12, 12), dtype=numpy.float32)
    numpy.save(path / "examples.npy", examples)
    return path


def export(folder, made, triple, cpu, *options):
    arguments = ["export", f"{folder}/net.py:make", "--shape=1x1x12x12", "--format=c", "--name=net", "-o", str(made)]
    return cli.main([*arguments, f"--triple={triple}", *([f"--cpu={cpu}"] if cpu else []), *options])


def run(made, triple, cpu, emulator, tmp_path):
    place, count = re.search(
        r"compare_float\(result0, .*net_example \+ (\d+)\), (\d+),", (made / "main.c").read_text()
    ).groups()
    sources = [
        pathlib.Path(__file__).parent / "Inputs/bare.c",
        made / "example.S",
        made / "net_weights.S",
        made / "net.o",
    ]
    # Its own code is for the processor, too, and passes numbers as the object does.
    options = ["-march=rv32imafc", "-mabi=ilp32f"] if triple.startswith("riscv32") else [f"-mcpu={cpu}"] if cpu else []
    options += ["-march=rv64gc"] if triple.startswith("riscv64") else []
    command = [
        C_COMPILER,
        f"--target={triple}",
        *options,
        "-O1",
        "-ffreestanding",
        "-nostdlib",
        "-static",
        "-fuse-ld=lld",
    ]
    command += [
        f"-DEXPECTED={place}",
        f"-DCOUNT={count}",
        f"-I{made}",
        *map(str, sources),
        "-o",
        str(tmp_path / "main"),
    ]
    subprocess.run(command, check=True)
    return subprocess.run([emulator, tmp_path / "main"], check=False).returncode


@pytest.mark.parametrize("precision", ["f32", "int8"])
@pytest.mark.parametrize("name", TARGETS)
def test_the_folder_runs(folder, tmp_path, name, precision):
    triple, cpu, emulator = TARGETS[name]
    made = tmp_path / "net"
    calibration = [f"--calibration={folder}/examples.npy"] if precision == "int8" else []
    assert export(folder, made, triple, cpu, f"--precision={precision}", *calibration) == 0
    assert run(made, triple, cpu, emulator, tmp_path) == 0
    # It can fail.
    data = bytearray((made / "example.data").read_bytes())
    data[-1] ^= 0x40
    (made / "example.data").write_bytes(data)
    assert run(made, triple, cpu, emulator, tmp_path) == 1


@pytest.mark.parametrize("name", ["aarch64", "cortex-m4"])
def test_an_onnx_file_with_tokens_runs(tmp_path, name):
    """As the one of kas.accelerate does."""
    network = nn.Sequential(nn.Embedding(9, 16), nn.Linear(16, 16), nn.GELU(), nn.Flatten(), nn.Linear(96, 4)).eval()
    export_network(network, torch.zeros(1, 6, dtype=torch.long), str(tmp_path / "model.onnx"))
    triple, cpu, emulator = TARGETS[name]
    options = [f"--triple={triple}", *([f"--cpu={cpu}"] if cpu else []), "--name=net", "-o", str(tmp_path / "net")]
    assert cli.main(["export", str(tmp_path / "model.onnx"), "--format=c", *options]) == 0
    assert run(tmp_path / "net", triple, cpu, emulator, tmp_path) == 0


@pytest.mark.parametrize(
    "triple, cpu",
    [("thumbv6m-none-eabi", "cortex-m0"), ("riscv32-unknown-elf", "generic-rv32"), ("arm-linux-gnueabihf", "")],
)
def test_without_instructions_the_library_of_the_compiler_does(folder, tmp_path, triple, cpu):
    """And no function of the C library but an exponential and an error function."""
    assert export(folder, tmp_path / "net", triple, cpu) == 0
    nm = ["llvm-nm-22", "-u", "-j", tmp_path / "net/net.o"]
    names = set(subprocess.run(nm, check=True, capture_output=True, text=True).stdout.split())
    assert {name for name in names if not name.startswith("__")} <= {"expf", "erff", "memset", "memcpy"}


ROUNDINGS = ["roundeven", "round", "floor", "ceil", "trunc"]


@pytest.mark.parametrize("name", ROUNDINGS)
def test_roundings_without_instructions(name):
    text = f"""func.func @f(%x: tensor<40xf32>) -> tensor<40xf32> {{
      %0 = math.{name} %x : tensor<40xf32>
      return %0 : tensor<40xf32>
    }}"""
    module = kas.parse(text).run(
        "kas-attach-cpu-target{triple=arm-linux-gnueabihf cpu=cortex-a7},func.func(kas-expand-math)"
    )
    expanded = re.sub(r"^module attributes .*{$", "module {", str(module), flags=re.MULTILINE)
    assert f"math.{name}" not in expanded and "linux" not in expanded
    edges = [
        0,
        0.3,
        0.5,
        0.7,
        1,
        1.5,
        2.5,
        2.7,
        0.49999997,
        2**22 + 0.5,
        2**23 - 0.5,
        2**23,
        2**24,
        1e30,
        1e-40,
        math.inf,
    ]
    x = numpy.array([*edges, *(-edge for edge in edges), math.nan, *range(-3, 4)], numpy.float32)
    found = kas.parse(expanded).compile("f")(x)
    sizes = numpy.floor(numpy.abs(x) + numpy.where(numpy.abs(x) == numpy.float32(0.49999997), 0, 0.5))
    away = numpy.where(numpy.abs(x) < 2**22, numpy.copysign(sizes, x), numpy.copysign(numpy.ceil(numpy.abs(x)), x))
    expected = {"roundeven": numpy.rint(x), "round": away}.get(name)
    expected = getattr(numpy, name)(x) if expected is None else expected
    assert numpy.array_equal(found.view(numpy.int32)[x == x], expected.astype(numpy.float32).view(numpy.int32)[x == x])
    assert numpy.isnan(found[x != x]).all()


def test_floats_in_registers_need_such_a_processor(folder, tmp_path, capsys):
    assert export(folder, tmp_path / "net", "arm-linux-gnueabihf", "arm7tdmi") == 1
    assert "expected a target with the features '+vfp2sp', got 'arm7tdmi'" in capsys.readouterr().err
