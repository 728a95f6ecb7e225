# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.torch.backend: networks by torch.compile, and what stays with PyTorch."""

from __future__ import annotations

import copy
import pathlib

import pytest

import kas

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import kas.torch  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def begin():
    torch._dynamo.reset()
    kas.torch.explain()
    torch.manual_seed(0)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.norm(self.first(x))), 2)
        return self.head((x + functional.gelu(self.depthwise(x))).mean((2, 3)))


def compile_and_compare(network, *inputs, compiled=None):
    """The results of both, and the compiled network."""
    if compiled is None:
        compiled = torch.compile(network, backend=kas.torch.backend)
    with torch.no_grad():
        expected, found = network(*inputs), compiled(*inputs)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    return compiled


def test_networks_of_each_batch_size_are_compiled_once():
    network, compiled = Images().eval(), None
    for batch in (1, 4, 1, 3, 4):
        compiled = compile_and_compare(network, torch.randn(batch, 3, 12, 12), compiled=compiled)
    graphs = kas.torch.explain()
    assert [graph.shapes for graph in graphs] == [((batch, 3, 12, 12),) for batch in (1, 4, 3)]
    assert all(graph.reason is None and graph.operations > 5 and graph.seconds > 0 for graph in graphs)
    assert kas.torch.explain() == []


def test_attention(monkeypatch):
    # Else the whole layer is one operation of PyTorch.
    monkeypatch.setattr(torch.backends.mha, "get_fastpath_enabled", lambda: False)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=True).eval()
    compile_and_compare(layer, torch.randn(2, 7, 16))
    (graph,) = kas.torch.explain()
    assert graph.reason is None


def test_weights_may_change():
    network = Images().eval()
    compiled = compile_and_compare(network, torch.randn(2, 3, 8, 8))
    with torch.no_grad():
        network.first.weight.mul_(2)
    compile_and_compare(network, torch.randn(2, 3, 8, 8), compiled=compiled)
    network.first.weight.data = torch.randn_like(network.first.weight)
    compile_and_compare(network, torch.randn(2, 3, 8, 8), compiled=compiled)
    assert all(graph.reason is None for graph in kas.torch.explain())


def test_buffers_that_a_network_changes_are_changed():
    network = Images().train()
    other = copy.deepcopy(network)
    compiled, x = torch.compile(network, backend=kas.torch.backend), torch.randn(4, 3, 8, 8)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), other(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(network.norm.running_mean, other.norm.running_mean)
    torch.testing.assert_close(network.norm.running_var, other.norm.running_var)
    assert network.norm.num_batches_tracked == 2


def test_several_inputs_and_outputs_of_all_kinds():
    weight = torch.randn(4, 3)

    def call(x, y):
        z = x @ weight
        return z, z.t(), y, x.shape[0] + 1, None, (z + y, z)

    compile_and_compare(call, torch.randn(5, 4), torch.randn(5, 3))
    compile_and_compare(call, torch.randn(4, 5).t(), torch.randn(5, 3))
    assert all(graph.reason is None for graph in kas.torch.explain())


def test_inputs_that_a_function_changes_are_changed():
    def call(x):
        x.mul_(2)
        return x.relu()

    first = torch.randn(3, 4)
    second = first.clone()
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(call, backend=kas.torch.backend)(first), call(second))
    assert torch.equal(first, second)


def test_operators_in_networks():
    operator = kas.operator("conv2d_depthwise_separable")
    binding = {"N": 2, "Cin": 4, "Cout": 8, "H": 6, "W": 6, "k": 3}
    compile_and_compare(kas.torch.KasModule(operator, binding, "pytorch").eval(), torch.randn(2, 4, 6, 6))
    assert all(graph.reason is None for graph in kas.torch.explain())


@pytest.mark.parametrize(
    "call, make, reason",
    [
        (nn.Embedding(7, 4), lambda: (torch.arange(6),), "requires tensors of float32 on the CPU, got torch.int64"),
        (lambda x: x > 0, lambda: (torch.randn(3),), "requires results of float32, got torch.bool"),
        (torch.special.i0, lambda: (torch.randn(3, 3),), "torch-mlir cannot express torch.aten.i0"),
    ],
)
def test_what_kas_does_not_compile_is_run_by_pytorch(call, make, reason, capfd):
    compile_and_compare(call, *make())
    (graph,) = kas.torch.explain()
    assert graph.reason.startswith(reason)
    assert "error" not in capfd.readouterr().err


def test_random_numbers_follow_the_seed():
    compiled, x = torch.compile(lambda x: torch.dropout(x, 0.5, True), backend=kas.torch.backend), torch.ones(64)
    found = []
    with torch.no_grad():
        for call in (compiled, compiled, lambda x: torch.dropout(x, 0.5, True)):
            torch.manual_seed(3)
            found.append(call(x))
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    (graph,) = kas.torch.explain()
    assert graph.reason.startswith("requires a network without random numbers, got aten.")


def test_results_have_the_layout_of_pytorch():
    network, x = nn.Conv2d(3, 5, 3), torch.randn(2, 3, 7, 9)
    compiled = torch.compile(network, backend=kas.torch.backend)
    with torch.no_grad():
        for data in (x, x.to(memory_format=torch.channels_last), x):
            expected, found = network(data), compiled(data)
            assert found.stride() == expected.stride()
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert all(graph.reason is None for graph in kas.torch.explain())


@pytest.mark.parametrize("shape", [(), (1,), (0, 3)])
def test_few_elements(shape):
    compile_and_compare(lambda x: (x * 2 + 1).exp(), torch.randn(shape))


def test_gradients_are_those_of_pytorch():
    network = Images().eval()
    other = copy.deepcopy(network)
    x = torch.randn(2, 3, 8, 8)
    torch.compile(network, backend=kas.torch.backend)(x).sum().backward()
    other(x).sum().backward()
    torch.testing.assert_close(network.first.weight.grad, other.first.weight.grad)
    (graph,) = kas.torch.explain()
    assert graph.reason == "requires a network without gradients (torch.no_grad())"


def test_installations_name_the_backend():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.torch_dynamo_backends]\nkas = "kas.torch:backend"\n' in text
