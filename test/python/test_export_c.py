# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas export --format=c: networks as folders that C programs are built from."""

import re
import subprocess

import numpy
import pytest
import torch
from c_compiler import C_COMPILER
from torch import nn

import kas.torch
from kas import cli

NETWORKS = """
import torch
from torch import nn


def make(width=8):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, 16, 3, stride=2, groups=2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 5 * 5, 10),
    )


def make_rectifier():
    return nn.ReLU()


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.linear = nn.Embedding(9, 16), nn.Linear(16, 5)

    def forward(self, tokens, mask, scale):
        found = self.linear(self.embedding(tokens) * mask.unsqueeze(-1)) * scale.float()
        wide = found.double()
        return found.half(), found.bfloat16(), found, wide, found > 0, found.argmax(-1), (found * 9).to(torch.int8)


def make_tokens():
    torch.manual_seed(0)
    return Tokens()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("export")
    (path / "net.py").write_text(NETWORKS)
    examples = numpy.random.default_rng(1).standard_normal((8, 1, 12, 12), dtype=numpy.float32)
    numpy.save(path / "examples.npy", examples)
    return path


def export(folder, name, *options):
    source = f"{folder}/net.py:make"
    assert (
        cli.main(
            ["export", source, "--shape=1x1x12x12", "--format=c", f"--name={name}", "-o", str(folder / name), *options]
        )
        == 0
    )
    return folder / name


def build(made, name, binary):
    sources = [made / one for one in ("main.c", "example.S", f"{name}_weights.S", f"{name}.o")]
    subprocess.run([C_COMPILER, "-Wall", "-Wextra", "-Werror", f"-I{made}", *sources, "-lm", "-o", binary], check=True)
    return subprocess.run([binary], check=True, capture_output=True, text=True).stdout


def get_difference(printed):
    """Over the largest value."""
    return float(printed.split("from the example: ")[1].split()[0])


@pytest.mark.parametrize("options", [(), ("--precision=int8", "--calibration=examples.npy"), ("--precision=bf16",)])
def test_the_folder_is_a_program(folder, tmp_path, options):
    options = [one.replace("examples.npy", str(folder / "examples.npy")) for one in options]
    made = export(folder, f"net{len(options)}", *options)
    assert get_difference(build(made, made.name, tmp_path / "main")) <= (
        0.05 if "--precision=bf16" in options else 1e-6
    )
    if "--precision=int8" in options:
        plain = export(folder, "plain") / "plain.weights"
        assert (made / f"{made.name}.weights").stat().st_size < 0.4 * plain.stat().st_size
        assert "const int8_t *" in (made / f"{made.name}.h").read_text()
    symbols = subprocess.run(["nm", made / f"{made.name}.o"], check=True, capture_output=True, text=True).stdout
    assert "malloc" not in symbols and "free" not in symbols
    public = [line.split()[2] for line in symbols.splitlines() if line.split()[-2] == "T"]
    assert public and all(name.startswith(made.name) for name in public)
    memory = (made / "memory.txt").read_text()
    assert all(int(line.split(" bytes")[0].split()[-1].replace(",", "")) > 0 for line in memory.splitlines())


def export_tokens(folder, name):
    source, made = f"{folder}/net.py:make_tokens", folder / name
    shapes = ["--shape=2x6:int64", "--shape=2x6:bool", "--shape=2x6x1:float64"]
    assert cli.main(["export", source, *shapes, "--format=c", f"--name={name}", "-o", str(made)]) == 0
    return made


def test_elements_have_any_type(folder, tmp_path):
    made = export_tokens(folder, "tokens")
    header = (made / "tokens.h").read_text()
    for parameter in ("const int64_t *", "const bool *", "const double *", "uint16_t *", "int8_t *"):
        assert parameter in header
    assert get_difference(build(made, made.name, tmp_path / "main")) <= 1e-6


@pytest.mark.parametrize("result", range(7))
def test_a_wrong_element_of_any_type_is_a_failure(folder, tmp_path, result):
    made = export_tokens(folder, f"wrong{result}")
    place = int((made / "main.c").read_text().split(f"(result{result}, ")[1].split("_example + ")[1].split(")")[0])
    data = bytearray((made / "example.data").read_bytes())
    # The sign and the exponent of the first element, or all of it where it has a byte.
    size = {0: 2, 1: 2, 2: 4, 3: 8, 5: 8}.get(result, 1)
    data[place + size - 1] ^= 0x5F
    (made / "example.data").write_bytes(data)
    with pytest.raises(subprocess.CalledProcessError) as found:
        build(made, made.name, tmp_path / "main")
    assert found.value.returncode == 1


def test_the_example_is_what_pytorch_computes(folder):
    made = export(folder, "example")
    data = numpy.fromfile(made / "example.data", numpy.float32)
    scope = {}
    exec(NETWORKS, scope)
    with torch.no_grad():
        expected = scope["make"]().eval()(torch.from_numpy(data[:144].reshape(1, 1, 12, 12)))
    assert numpy.allclose(data[144:][-10:], expected.numpy().ravel(), atol=1e-5)


@pytest.mark.parametrize("wrong", [numpy.nan, numpy.inf, 1e3])
def test_a_wrong_result_is_a_failure(folder, tmp_path, wrong):
    """Also the first of several values."""
    made = export(folder, "wrong")
    data = numpy.fromfile(made / "example.data", numpy.float32)
    data[-10] = wrong
    data.tofile(made / "example.data")
    with pytest.raises(subprocess.CalledProcessError) as found:
        build(made, made.name, tmp_path / "main")
    assert found.value.returncode == 1 and get_difference(found.value.stdout) != 0


def test_two_networks_link_into_one_program_that_cmake_builds(folder, tmp_path):
    one, two = export(folder, "one"), export(folder, "two", "--precision=int8", f"--calibration={folder}/examples.npy")
    (tmp_path / "main.c").write_text(
        '#include "one_weights.h"\n#include "two_weights.h"\n#include <stdio.h>\n'
        "static _Alignas(64) float packed1[ONE_PREPACKED_ELEMENTS], packed2[TWO_PREPACKED_ELEMENTS];\n"
        "static _Alignas(64) char workspace1[ONE_WORKSPACE_BYTES + 1], workspace2[TWO_WORKSPACE_BYTES + 1];\n"
        "int main(void) {\n  float x[144], y[10], z[10];\n"
        "  for (int i = 0; i < 144; ++i)\n    x[i] = (i % 7 - 3) / 2.0f;\n"
        "  if (one_setup(packed1, workspace1) || two_setup(packed2, workspace2)) return 1;\n"
        "  if (one_run(x, y, packed1, workspace1) || two_run(x, z, packed2, workspace2)) return 1;\n"
        '  for (int i = 0; i < 10; ++i)\n    printf("%g %g\\n", y[i], z[i]);\n  return 0;\n}\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.13)\nproject(both C ASM)\nadd_subdirectory({one} one)\n"
        f"add_subdirectory({two} two)\nadd_executable(both main.c)\ntarget_link_libraries(both one two)\n"
    )
    subprocess.run(
        ["cmake", f"-DCMAKE_C_COMPILER={C_COMPILER}", "-S", tmp_path, "-B", tmp_path / "build"],
        check=True,
        capture_output=True,
    )
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)
    assert get_difference(subprocess.check_output([tmp_path / "build" / "one" / "one_example"], text=True)) <= 1e-6
    printed = subprocess.check_output([tmp_path / "build" / "both"], text=True)
    values = numpy.array([line.split() for line in printed.splitlines()], dtype=float)
    assert values.shape == (10, 2) and numpy.abs(values[:, 0]).max() > 0
    assert numpy.abs(values[:, 0] - values[:, 1]).max() <= 0.1 * numpy.abs(values[:, 0]).max()


def test_a_triple_alone_is_a_target(folder):
    made = export(folder, "arm", "--triple=aarch64-linux-gnu")
    assert (made / "arm.o").read_bytes()[18] == 183  # EM_AARCH64
    assert "workspace" in (made / "memory.txt").read_text()


def test_a_network_of_onnx(folder, tmp_path):
    path = tmp_path / "net.onnx"
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4)).eval()
    from kas.onnx import export_network

    export_network(network, torch.zeros(1, 3, 8, 8), str(path))
    assert cli.main(["export", str(path), "--format=c", "-o", str(tmp_path / "net")]) == 0
    assert get_difference(build(tmp_path / "net", "model", tmp_path / "main")) <= 1e-6


def test_a_network_of_onnx_with_tokens(tmp_path):
    from kas.onnx import export_network

    network = nn.Sequential(nn.Embedding(2, 8), nn.Flatten(), nn.Linear(48, 4)).eval()
    export_network(network, torch.zeros(1, 6, dtype=torch.long), str(tmp_path / "net.onnx"))
    assert cli.main(["export", str(tmp_path / "net.onnx"), "--format=c", "-o", str(tmp_path / "net")]) == 0
    assert "const int64_t *" in (tmp_path / "net/model.h").read_text()
    assert get_difference(build(tmp_path / "net", "model", tmp_path / "main")) <= 1e-6


def test_a_network_without_weights(folder, tmp_path):
    arguments = [f"{folder}/net.py:make_rectifier", "--shape=1x4", "--format=c", "-o", str(tmp_path / "net")]
    assert cli.main(["export", *arguments]) == 0
    assert get_difference(build(tmp_path / "net", "model", tmp_path / "main")) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shape=1x1x12x12"], "--format=c requires a folder: -o FOLDER"),
        (["-o", "net"], "requires --shape, such as --shape=1x3x32x32, got none"),
        (["-o", "net", "--shape=1xtwo"], "a shape must be sizes such as 1x3x32x32, got '1xtwo'"),
        (["-o", "net", "--shape=1x1x12x12", "--name=2b"], "of which the first is a letter, got '2b'"),
        (["-o", "net", "--shape=1x1x12x12", "--name=class"], "'name' requires no keyword of C or C++, got 'class'"),
        (["-o", "net", "--shape=1x1x12x12", "--name=memcpy"], "'name' requires no name of C's library, got 'memcpy'"),
        (["-o", "net", "--shape=1x1x12x12", "--name=expf"], "'name' requires no name of C's library, got 'expf'"),
        (["-o", "net", "--shape=1x1x12x12", "--name=input"], "no name of an argument or of what the files use, got"),
        (["-o", "net", "--shape=1x1x12x12", "--name=result0"], "no name of an argument or of what the files use, got"),
        (["-o", "net", "--shape=1x5x12x12"], "requires data that the network takes, got (1, 5, 12, 12) torch.float32"),
        (["-o", "", "--shape=1x1x12x12"], "-o requires a folder, got ''"),
        (["-o", "net.py/sub", "--shape=1x1x12x12"], "-o requires a folder, got the file 'net.py'"),
        (["-o", "net", "--shape=1x1x12x12", "--weights=net.py"], "requires a file of tensors that can be read, got"),
        (["-o", "net", "--shape=1x1x12x12", "--precision=int8"], "requires --calibration=FILE.npy, got none"),
        (["-o", "net", "--shape=1x1x12x12", "--triple=pdp11-bsd"], "expected the triple of an x86_64, aarch64, arm,"),
        (["-o", "net.py", "--shape=1x1x12x12"], "-o requires a folder, got the file 'net.py'"),
    ],
)
def test_what_cannot_be_is_said(folder, monkeypatch, capsys, options, message):
    monkeypatch.chdir(folder)
    assert cli.main(["export", "net.py:make", "--format=c", *options]) != 0
    assert message in capsys.readouterr().err


NAMES = ["x", "model_", "kas", "n0", "Model", "data", "value", "example", "count", "init"]


def test_names_that_are_allowed_and_names_that_are_not(tmp_path):
    """Whatever name is allowed, the folder compiles with it and gives the same; those of the library are not."""
    from kas._c_names import check_c_name

    (tmp_path / "net.py").write_text(NETWORKS)
    for name in NAMES:
        arguments = [f"{tmp_path}/net.py:make_rectifier", "--shape=1x4", "--format=c", f"--name={name}"]
        assert cli.main(["export", *arguments, "-o", str(tmp_path / name)]) == 0
        assert get_difference(build(tmp_path / name, name, tmp_path / "main")) == 0
    headers = "".join(f"#include <{name}.h>\n" for name in ("math", "stdint", "stdio", "stdlib", "string"))
    text = subprocess.run(
        [C_COMPILER, "-std=c11", "-E", "-"], input=headers, capture_output=True, text=True, check=True
    ).stdout
    declared = re.findall(r"^extern [^;=(]*?\b([a-z]\w*) \(", text, re.MULTILINE)
    assert len(declared) > 200
    for name in declared:
        with pytest.raises(ValueError, match=f"no name of C's library, got '{name}'"):
            check_c_name(name, "")


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        self.count += 1
        return self.linear(x) * self.count


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(4, 3), persistent=False)

    def forward(self, x):
        self.keys[1:3] = x
        return self.keys.sum(0)


class Observer(nn.Module):
    """Its result does not depend on what it changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        self.seen.copy_(x.amax(0))
        return x * 2


@pytest.mark.parametrize(("make", "name"), [(Counter, "count"), (Cache, "keys"), (Observer, "seen")])
def test_networks_with_a_state_are_refused(make, name):
    with pytest.raises(ValueError, match=f"^requires a network that computes the same in each call, .* '{name}'$"):
        kas.torch.to_mlir(make(), torch.randn(2, 3))


def test_networks_may_overwrite_their_data():
    network = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    data = torch.randn(2, 3)
    exported = kas.torch.to_mlir(network, data.clone())
    found = exported.module.compile("forward")(data, *exported.tensors.values())
    with torch.no_grad():
        torch.testing.assert_close(found, network(data.clone()), rtol=1e-5, atol=1e-6)
