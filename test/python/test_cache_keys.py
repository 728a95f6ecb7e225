# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is kept of PyTorch's graphs is found again for the same graph, and for no other that differs in one thing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import kas.torch  # noqa: E402
from kas.torch import _export, _graph_import  # noqa: E402
from kas.torch._options import Options  # noqa: E402


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("KAS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("KAS_CACHE_MB", "4")
    return tmp_path / "cache"


def make_step(factor=2.0, stride=1, table=(1.0, 2.0), slope=0.1, keeps=True):
    """The forward and backward graph of a network, as PyTorch gives them to a backend: in one."""

    def step(x, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = nn.functional.conv2d(x, w, stride=stride) * factor
        y = nn.functional.leaky_relu(y, slope) * torch.tensor(table)[:, None, None]
        loss = y.square().sum()
        return (loss, *torch.autograd.grad(loss, (x, w) if keeps else (w,)))

    return step


def make_step_key(data=(1, 3, 6, 6), dtype=torch.float32, layout=torch.contiguous_format, kind="forward", **settings):
    names = ("options", "static", "batched")
    arguments = {name: settings.pop(name) for name in names if name in settings}
    x = torch.ones(data, dtype=dtype).contiguous(memory_format=layout)
    w = torch.ones(2, data[1], 3, 3, dtype=dtype)
    graph = make_fx(make_step(**settings), tracing_mode="real")(x, w)
    for node, value in zip(graph.graph.find_nodes(op="placeholder"), (x, w)):
        node.meta["val"] = value
    return _graph_import.make_key(graph, (x, w), kind, **arguments)


STEPS = [
    {"factor": 3.0},
    {"factor": 2},
    {"stride": 2},
    {"table": (1.0, 3.0)},
    {"slope": 0.2},
    {"keeps": False},
    {"data": (1, 3, 6, 7)},
    {"data": (2, 3, 6, 6)},
    {"dtype": torch.float64},
    {"layout": torch.channels_last},
    {"kind": "backward"},
    {"static": {1}},
    {"batched": {0}},
    {"options": Options(threads=2)},
    {"options": Options(precision="bf16")},
    {"options": Options(algorithm="winograd")},
    {"options": Options(tuning_seconds=1.0)},
]


def test_steps_that_differ_in_one_thing_have_other_keys(monkeypatch):
    key = make_step_key()
    assert key and key == make_step_key() == make_step_key(options=Options(strict=True, bind_calls=True))
    keys = [key, *(make_step_key(**change) for change in STEPS)]
    # What the default type is shows in no graph, nor what casts it may get.
    with torch.autocast("cpu", torch.bfloat16):
        keys.append(make_step_key())
    with torch.autocast("cpu", torch.float16):
        keys.append(make_step_key())
    torch.set_default_dtype(torch.float64)
    try:
        keys.append(make_step_key())
    finally:
        torch.set_default_dtype(torch.float32)
    monkeypatch.setattr(torch, "__version__", "another")
    keys.append(make_step_key())
    monkeypatch.undo()
    monkeypatch.setattr(_graph_import, "version", lambda package: f"another {package}")
    keys.append(make_step_key())
    assert None not in keys
    assert len({*keys}) == len(keys)


class Network(nn.Module):
    def __init__(self, factor=2.0, stride=1, table=(1.0, 2.0), eps=1e-5, p=0.0, layer=nn.ReLU):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 2, 3, stride), nn.BatchNorm2d(2, eps), layer(), nn.Dropout(p))
        self.factor, self.table, self.calls = factor, table, 0

    def forward(self, x):
        # A network that changes itself computes what it computes at its first call.
        self.calls += 1
        return self.layers(x) * self.factor * torch.tensor(self.table)[:, None, None] + self.calls


def change(network, path, value):
    module, _, name = path.rpartition(".")
    setattr(network.get_submodule(module), name, value)
    return network


def freeze(network):
    network.layers[0].weight.requires_grad_(False)
    return network


X = torch.ones(1, 3, 6, 6)
NETWORKS = {
    "the same": (Network, X, {}),
    "constant": (lambda: Network(3.0), X, {}),
    "constant of another type": (lambda: Network(2), X, {}),
    "attribute": (lambda: Network(stride=2), X, {}),
    "table": (lambda: Network(table=(1.0, 3.0)), X, {}),
    "epsilon": (lambda: Network(eps=1e-3), X, {}),
    "operation": (lambda: Network(layer=nn.Tanh), X, {}),
    "size": (Network, torch.ones(2, 3, 6, 6), {}),
    "type": (lambda: Network().double(), X.double(), {}),
    "folded": (Network, X, {"fold_batch_norms": True}),
    "frozen": (lambda: freeze(Network()), X, {}),
    "momentum": (lambda: change(Network(), "layers.1.momentum", 0.3), X, {}),
    "affine": (lambda: change(change(Network(), "layers.1.weight", None), "layers.1.bias", None), X, {}),
    "evaluation": (lambda: Network().eval(), X, {}),
    "dropout": (lambda: Network(p=0.5), X, {"dropout": True}),
    "probability": (lambda: Network(p=0.25), X, {"dropout": True}),
    "state": (lambda: change(Network(), "calls", 7), X, {}),
}


def export(name):
    make, x, options = NETWORKS[name]
    torch.manual_seed(0)
    return kas.torch.to_mlir(make(), x, **({"fold_batch_norms": False} | options))


def test_exported_networks_come_from_the_cache_and_are_their_own(directory, monkeypatch):
    monkeypatch.setenv("KAS_CACHE_MB", "0")
    expected = {name: export(name) for name in NETWORKS}
    assert not directory.exists()
    monkeypatch.setenv("KAS_CACHE_MB", "4")
    for name, own in expected.items():
        assert str(export(name).module) == str(own.module), name
    # What differs in the attributes of arguments alone shares an entry.
    assert len({str(own.module) for own in expected.values()}) > len([*directory.iterdir()]) > len(NETWORKS) // 2
    # From now on nothing is exported.
    monkeypatch.setattr(torch.export, "export", None)
    for name, own in expected.items():
        found = export(name)
        assert str(found.module) == str(own.module), name
        assert [*found.tensors] == [*own.tensors]


def test_what_cannot_be_described_has_no_key():
    class Branch(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    lifted = _export._Lifted(Branch(), [], 1, False)
    assert _export._make_key(lifted, (torch.ones(3),), "export") is None


def test_operators_are_in_the_key():
    torch.manual_seed(0)
    layer = {"N": 1, "Cin": 3, "Cout": 2, "H": 6, "W": 6}
    texts = []
    for operator, binding in (("conv2d", {"k": 3}), ("conv1x1", {})):
        network = nn.Sequential(kas.torch.KasModule(kas.operator(operator), layer | binding))
        for keeps in (True, False):
            first, second = (str(kas.torch.to_mlir(network, X, keep_operators=keeps).module) for _ in range(2))
            assert first == second
            texts.append(first)
    assert len({*texts}) == 4
