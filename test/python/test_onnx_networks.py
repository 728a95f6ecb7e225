# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks with operators in their layers as ONNX models."""

import collections

import numpy
import pytest
import torch
from test_onnx import SEQUENCE, SIZES, run, run_openvino
from torch import nn

import kas
import kas.torch

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import kas.onnx
import kas.zoo


def set_statistics(network):
    torch.manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            for tensor in (module.running_mean, module.running_var, module.weight.data, module.bias.data):
                tensor.uniform_(0.5, 1.5)
    return network.eval()


def check(network, data, runners=(run,), **options):
    with torch.no_grad():
        expected = network(*data).numpy()
    model = kas.onnx.export_network(network, data, **options)
    for runner in runners:
        output = runner(model, [tensor.numpy() for tensor in data])
        error = numpy.abs(output - expected).max()
        assert error < 1e-5 * max(1, numpy.abs(expected).max()), f"{runner.__name__}: {error}"
    return model


def make_network():
    """Two sizes of one operator, with a bias, a sequence, and a kernel."""
    conv, kernel = kas.operator("conv2d"), kas.kernel("squeeze_excite")
    sequence = kas.parse(SEQUENCE.replace("STEP", "normalize_relu")).sequences["separable"]
    return set_statistics(
        nn.Sequential(
            kas.torch.KasModule(conv, {**SIZES, "Cin": 3, "Cout": 4}, "pytorch", bias_dim=1),
            nn.ReLU(),
            kas.torch.KasModule(conv, {**SIZES, "Cout": 4}, "compiled", threads=1),
            kas.torch.KasModule(conv, {**SIZES, "Cout": 4}, "effective"),
            kas.torch.SequenceModule(sequence, SIZES, "pytorch"),
            nn.BatchNorm2d(6),
            kas.torch.KernelModule(kernel, {"C": 6, "H": 5, "W": 7, "x": 2}, threads=1),
            nn.Flatten(),
            nn.Linear(210, 3),
        )
    )


@pytest.mark.parametrize("opset", [17, 20])
def test_a_network_calls_functions(opset, tmp_path):
    network, path = make_network(), tmp_path / "network.onnx"
    data = (torch.randn(2, 3, 5, 7),)
    model = check(network, data, path=path, opset=opset)
    assert path.read_bytes() == model.SerializeToString(deterministic=True)
    # Equal operators at equal sizes are one function.
    assert [function.name for function in model.functions] == [
        "conv2d",
        "conv2d_1",
        "depthwise",
        "pointwise",
        "squeeze_excite",
    ]
    calls = [node.op_type for node in model.graph.node if node.domain == "kas"]
    assert calls == ["conv2d", "conv2d_1", "conv2d_1", "depthwise", "pointwise", "squeeze_excite"]
    assert [value.name for value in model.graph.input] == ["data"]
    names = {tensor.name for tensor in model.graph.initializer}
    assert {"0.weight0", "2.weight0", "4.0.weight0", "6.weight0"} <= names
    # The network is as it was.
    assert network[0](data[0]).shape == (2, 4, 5, 7)


def test_other_batches_are_other_models():
    network = make_network()
    check(network[:3], (torch.randn(5, 3, 5, 7),))


def test_openvino_runs_networks():
    pytest.importorskip("openvino")
    model = check(make_network(), (torch.randn(2, 3, 5, 7),), (run, run_openvino), inline=True)
    assert not model.functions


@pytest.mark.parametrize("name", ["found-1", "found-2", "found-4"])
def test_found_networks_are_convolutions(name):
    pytest.importorskip("openvino")
    network = set_statistics(kas.zoo.create(f"pooled64_fashion_{name.replace('-', '_')}", pretrained=False))
    model = check(network, (torch.randn(1, 1, 32, 32),), (run, run_openvino), inline=True)
    kinds = collections.Counter(node.op_type for node in model.graph.node)
    assert kinds["Conv"] == {"found-1": 11, "found-2": 10, "found-4": 9}[name]
    assert not {"Gather", "Pad", "Slice", "MatMul", "Transpose", "Einsum"}.intersection(kinds)


def test_errors_of_networks():
    class Sorted(nn.Module):
        def forward(self, data):
            return torch.linalg.svdvals(data)

    data = torch.randn(3, 3)
    for call, kind, message in (
        (lambda: kas.onnx.export_network("network", data), TypeError, "requires a torch.nn.Module, got str"),
        (
            lambda: kas.onnx.export_network(nn.Identity(), data, opset=21),
            ValueError,
            "requires an opset of 17 to 20 for a network, got 21",
        ),
        (
            lambda: kas.onnx.export_network(Sorted(), data),
            ValueError,
            "PyTorch cannot write this network as ONNX: .*svd",
        ),
    ):
        with pytest.raises(kind, match=message):
            call()
