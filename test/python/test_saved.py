# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions as files: Module.save and kas.load_compiled."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy
import pytest

import kas

LAYER = """func.func @forward(%x: tensor<3x40xf32> {kas.name = "x"}, %n: tensor<40xi64> {kas.data, kas.name = "n"},
    %w: tensor<40x24xf32> {kas.name = "w"}, %b: tensor<3x24xf32> {kas.name = "b"})
    -> (tensor<3x24xf32>, tensor<40xi64>) {
  %y = linalg.matmul ins(%x, %w : tensor<3x40xf32>, tensor<40x24xf32>) outs(%b : tensor<3x24xf32>) -> tensor<3x24xf32>
  %e = tensor.empty() : tensor<40xi64>
  %m = linalg.add ins(%n, %n : tensor<40xi64>, tensor<40xi64>) outs(%e : tensor<40xi64>) -> tensor<40xi64>
  return %y, %m : tensor<3x24xf32>, tensor<40xi64>
}"""


def make_arguments():
    generator = numpy.random.default_rng(0)
    x, w, b = (generator.standard_normal(shape, dtype=numpy.float32) for shape in ((3, 40), (40, 24), (3, 24)))
    return [x, numpy.arange(40)], [w, b]


@pytest.fixture
def path(tmp_path):
    _, weights = make_arguments()
    kas.parse(LAYER).save(tmp_path / "layer.kas", "forward", weights, threads=1)
    return tmp_path / "layer.kas"


def check(function, *weights):
    data, (w, b) = make_arguments()
    y, m = function(*data, *weights)
    numpy.testing.assert_allclose(y, data[0] @ w + b, rtol=1e-4, atol=1e-5)
    assert (m == 2 * data[1]).all()
    return y, m


def test_values_are_those_of_the_compiled_function(path):
    data, weights = make_arguments()
    call = kas.parse(LAYER).compile("forward", threads=1, prepack_weights=True).bind(*data, *weights)
    call.prepack()
    loaded = kas.load_compiled(path)
    assert loaded.arguments == [("x", (3, 40)), ("n", (40,))]
    assert loaded.types == ["float32", "int64", "float32", "int64"]
    assert [shape for _, shape in loaded.results] == [(3, 24), (40,)]
    for found, expected in zip(check(loaded), call()):
        assert (found == expected).all()


def test_files_without_weights_take_them(path):
    data, weights = make_arguments()
    for prepacks in (False, True):
        kas.parse(LAYER).save(path, "forward", prepack_weights=prepacks, threads=1)
        loaded = kas.load_compiled(path)
        assert [name for name, _ in loaded.arguments] == ["x", "n", "w", "b"]
        loaded.bind(*data, *weights).prepack()
        check(loaded, *weights)
    # One of them alone.
    kas.parse(LAYER).save(path, "forward", weights[1:], prepack_weights=False, threads=1)
    check(kas.load_compiled(path), weights[0])


def test_other_processes_load_it(path):
    code = "import sys, pickle, kas; f = kas.load_compiled(sys.argv[1]); x, n = pickle.load(sys.stdin.buffer); " + (
        "sys.stdout.buffer.write(pickle.dumps(f(x, n)))"
    )
    data, _ = make_arguments()
    done = subprocess.run([sys.executable, "-c", code, path], input=pickle.dumps(data), capture_output=True, check=True)
    for found, expected in zip(pickle.loads(done.stdout), check(kas.load_compiled(path))):
        assert (found == expected).all()


def test_batches_of_any_size(tmp_path):
    text = """func.func @forward(%x: tensor<8x40xf32>, %w: tensor<40x24xf32>) -> tensor<8x24xf32> {
      %e = tensor.empty() : tensor<8x24xf32>
      %z = arith.constant 0.0 : f32
      %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x24xf32>) -> tensor<8x24xf32>
      %y = linalg.matmul ins(%x, %w : tensor<8x40xf32>, tensor<40x24xf32>) outs(%f : tensor<8x24xf32>)
        -> tensor<8x24xf32>
      return %y : tensor<8x24xf32>
    }"""
    _, (w, _) = make_arguments()
    kas.parse(text).save(tmp_path / "any.kas", "forward", [w], any_batch=True, threads=1)
    loaded = kas.load_compiled(tmp_path / "any.kas")
    assert loaded.any_batch
    for samples in (1, 5, 8, 11):
        x = numpy.ones((samples, 40), numpy.float32)
        numpy.testing.assert_allclose(loaded(x), x @ w, rtol=1e-4, atol=1e-4)


def test_copies_are_read_from_the_file(path):
    loaded = kas.load_compiled(path)
    assert copy.deepcopy(loaded) is loaded
    again = pickle.loads(pickle.dumps(loaded))
    path.unlink()
    check(again)
    check(loaded)
    with pytest.raises(kas.Error, match=r"cannot read '.*layer.kas': No such file"):
        pickle.loads(pickle.dumps(loaded))


def test_pytorch_weights(tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    import kas.torch

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).eval()
    x = torch.randn(1, 3, 9, 9)
    exported = kas.torch.to_mlir(network, x)
    exported.module.save(tmp_path / "network.kas", "forward", exported.tensors.values(), threads=1)
    y = kas.load_compiled(tmp_path / "network.kas")(x)
    torch.testing.assert_close(y, network(x).detach(), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_saved(tmp_path):
    data, weights = make_arguments()
    module = kas.parse(LAYER)
    with pytest.raises(kas.Error, match="requires all weights, as they are prepacked, got none for 'w'"):
        module.save(tmp_path / "f", "forward", weights[1:])
    with pytest.raises(kas.Error, match="requires weights, got the data 'n'"):
        module.save(tmp_path / "f", "forward", [data[1], *weights])
    with pytest.raises(TypeError, match="expected 4 weights, at most, got 5"):
        module.save(tmp_path / "f", "forward", [*data, *weights, data[0]])
    with pytest.raises(ValueError, match="'b' must have the shape"):
        module.save(tmp_path / "f", "forward", [weights[0], weights[0]])
    with pytest.raises(ValueError, match="precision requires 'f32' or 'bf16', got 'f8'"):
        module.save(tmp_path / "f", "forward", weights, precision="f8")
    with pytest.raises(kas.Error, match="no function 'backward'"):
        module.save(tmp_path / "f", "backward", weights)
    with pytest.raises(kas.Error, match="cannot write"):
        module.save(tmp_path / "none" / "f", "forward", weights)
    assert not (tmp_path / "f").exists()


def test_other_files_are_refused(path):
    content = path.read_bytes()

    def load(changed):
        path.write_bytes(changed)
        return kas.load_compiled(path)

    with pytest.raises(kas.Error, match="expected a file of compiled code, got something else"):
        load(b"module {}")
    with pytest.raises(kas.Error, match="of format 1, got another one"):
        load(content.replace(b"kas compiled 1", b"kas compiled 2"))
    for changed in (content[:-1], content[: len(content) // 2], content[:20], content.replace(b'"kas":', b'"kaz":')):
        with pytest.raises(kas.Error, match="damaged"):
            load(changed)
    check(load(content))


def test_code_for_another_processor_is_refused(tmp_path):
    module = kas.parse(LAYER)
    module.run("kas-attach-cpu-target{cpu=sapphirerapids features=+amx-fp16,+sm4,+avx10.2}")
    with pytest.raises(kas.Error, match=r"expected code for this processor, got code for one with .*avx10\.2"):
        module.compile("forward", threads=1)


NETWORKS = """
import torch
from torch import nn


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 7)

    def forward(self, x, gate):
        return self.layer(x) * gate


def make_gate():
    torch.manual_seed(0)
    return Gate()
"""


def test_the_command_exports_networks(tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    from kas import cli

    (tmp_path / "saved_networks.py").write_text(NETWORKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import saved_networks

    def export(name, *options):
        assert (
            cli.main(["export", f"saved_networks.py:{name}", "--format=compiled", "-o", f"{name}.kas", *options]) == 0
        )
        return kas.load_compiled(f"{name}.kas")

    x, two, gate = torch.randn(1, 1, 8, 8), torch.randn(2, 6), torch.randn(2, 7)
    found = export("make", "--shape=1x1x8x8")(x)
    torch.testing.assert_close(found, saved_networks.make()(x).detach(), rtol=1e-4, atol=1e-5)
    found = export("make_gate", "--shape=2x6", "--shape=2x7")(two, gate)
    torch.testing.assert_close(found, saved_networks.make_gate()(two, gate).detach(), rtol=1e-4, atol=1e-5)
    for options, message in (
        ([], "--format=compiled requires a file: -o FILE"),
        (["-o", "x.kas", "--cpu=x86-64"], "--format=compiled is for this machine, got --cpu"),
        (["-o", "x.kas"], "requires --shape"),
    ):
        assert cli.main(["export", "saved_networks.py:make", "--format=compiled", *options]) == 1
        assert message in capsys.readouterr().err
