# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.torch.backend on tensors of CUDA devices, on a stand-in for the driver: nothing here has run on a GPU.

This PyTorch knows no CUDA, so graphs are those of the CPU, called with tensors that say they are on `cuda:0`.
"""

from __future__ import annotations

import gc
from operator import getitem

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from cuda_stand_in import CudaTensor, StandIn  # noqa: E402
from small_networks import Images  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import kas.torch  # noqa: E402
from kas.torch._backend import _Graph  # noqa: E402
from kas.torch._graph_device import move_to_host  # noqa: E402
from kas.torch._graph_import import UnsupportedGraphError  # noqa: E402
from kas.torch._options import Options, read_options  # noqa: E402

pytestmark = pytest.mark.gpu
STREAM = 0x77


class Stream:
    cuda_stream = STREAM


class Pool:
    """Results in the same memory again and again, as PyTorch's allocator gives them."""

    def __init__(self, driver):
        self.driver, self.made = driver, {}

    def make(self, like, shape, dtype):
        key = (tuple(shape), dtype)
        if key not in self.made:
            self.made[key] = place(self.driver, torch.zeros(shape, dtype=dtype))
        return self.made[key]


def place(driver, host):
    driver.controls.add_memory(host.untyped_storage().data_ptr(), host.untyped_storage().nbytes())
    return CudaTensor(host)


@pytest.fixture
def driver(monkeypatch):
    monkeypatch.setenv("KAS_RT_LIBCUDA", "")
    stand_in = StandIn()
    stand_in.add_stream(STREAM)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream)
    pool = Pool(stand_in)
    monkeypatch.setattr(CudaTensor, "new_empty", lambda self, *how, dtype: pool.make(self, *how, dtype), raising=False)
    torch.manual_seed(0)
    kas.torch.explain()
    yield stand_in
    gc.collect()
    assert stand_in.violations == ""
    assert stand_in.controls.count_live() == 0


def capture(network, *inputs):
    """The graph that torch.compile gives to the backend for inference, the places of its weights, and its arguments."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._guards import TracingContext

    found = []

    def compiler(graph, _):
        static = list(TracingContext.try_get().fw_metadata.static_input_indices)

        def run(arguments):
            found.append((graph, static, [*arguments]))
            return graph(*arguments)

        run._boxed_call = True
        return run

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(network, backend=aot_autograd(fw_compiler=compiler, inference_compiler=compiler))(*inputs)
    return found[0]


class Door:
    """A network as the backend calls it, with its weights and inputs on the device."""

    def __init__(self, driver, network, *inputs, kind="inference"):
        graph, static, arguments = capture(network, *inputs)
        self.graph = _Graph(graph, kind, static, Options())
        self.arguments = [place(driver, a.detach()) if isinstance(a, torch.Tensor) else a for a in arguments]
        self.data = [p for p, a in enumerate(self.arguments) if p not in static]

    def __call__(self):
        return self.graph([*self.arguments])


def test_networks_are_one_launch_in_the_callers_stream(driver):
    door = Door(driver, Images().eval(), torch.randn(2, 3, 16, 16))
    (first,) = door()
    (graph,) = kas.torch.explain()
    assert graph.reason is None and graph.share == 1 and first.shape == (2, 5)
    prepacked = len(driver.find_calls("cuLaunchKernel"))
    for calls in range(1, 4):
        assert door()[0] is first
        assert driver.find_calls("cuGraphLaunch")[calls - 1 :] and len(driver.find_calls("cuGraphLaunch")) == calls
    recorded = len(driver.find_calls("cuLaunchKernel")) - prepacked
    # Norms and what else depends on weights alone was computed once.
    assert 0 < recorded < prepacked
    assert all(line.endswith(hex(STREAM)) for line in driver.find_calls("cuGraphLaunch"))
    # Arguments and results stay where they are.
    assert not driver.find_calls("cuMemcpyDtoHAsync_v2")
    assert kas.torch.explain() == []
    # A change that PyTorch counts: the weights are prepacked again.
    before = len(driver.find_calls("cuLaunchKernel"))
    door.arguments[next(p for p in range(9) if p not in door.data)].add_(1)
    door()
    door()
    assert len(driver.find_calls("cuLaunchKernel")) == before + prepacked - recorded
    del door


def test_each_batch_has_a_program(driver):
    network = nn.Sequential(nn.Linear(8, 16), nn.ReLU()).eval()
    graph, static, arguments = capture(network, torch.randn(4, 8))
    dynamic = _Graph(graph, "inference", static, Options())
    # As of a graph with a batch of any size.
    dynamic.has_symbols = True
    weights = {p: place(driver, a.detach()) for p, a in enumerate(arguments) if p in static}
    for batch in (4, 7, 4):
        data = place(driver, torch.randn(batch, 8))
        (result,) = dynamic([weights.get(p, data) for p in range(len(arguments))])
        assert result.shape == (batch, 16)
    assert [entry.reason for entry in kas.torch.explain()] == [None, None]
    del dynamic


def test_weights_with_gaps_are_copied_once(driver, monkeypatch):
    network = nn.Linear(8, 16, bias=False).eval()
    door = Door(driver, network, torch.randn(4, 8))
    (weight,) = (p for p in range(2) if p not in door.data)
    door.arguments[weight] = place(driver, torch.randn(8, 16).t())
    copies = []

    def clone(tensor, **named):
        copies.append(tensor)
        return place(driver, tensor.host.clone(**named))

    monkeypatch.setattr(CudaTensor, "clone", clone, raising=False)
    monkeypatch.setattr(CudaTensor, "detach", lambda self: self, raising=False)
    for _ in range(3):
        door()
    assert len(copies) == 1 and [graph.reason for graph in kas.torch.explain()] == [None]
    del door


@pytest.mark.parametrize("kind", ["forward", "backward"])
def test_training_stays_with_pytorch(driver, kind):
    door = Door(driver, nn.Linear(8, 16).eval(), torch.randn(4, 8), kind=kind)
    door()
    (graph,) = kas.torch.explain()
    assert graph.reason == f"requires a graph that infers on 'cuda:0', got the {kind} of a training"
    assert not driver.find_calls("cuModuleLoadDataEx")


def test_several_devices_stay_with_pytorch(driver):
    door = Door(driver, nn.Linear(8, 16).eval(), torch.randn(4, 8))
    door.arguments[door.data[0]] = door.arguments[door.data[0]].host
    door.graph.options = Options(strict=True)
    with pytest.raises(UnsupportedGraphError, match="strict=True requires a graph that kas compiles, got: requires"):
        door()
    (graph,) = kas.torch.explain()
    assert graph.reason == "requires tensors on the CPU or on one CUDA device, got cpu, cuda:0"


def test_a_device_that_cannot_be_used_is_a_reason(driver, monkeypatch):
    monkeypatch.setenv("KAS_STAND_IN_ARCHITECTURE", "60")
    door = Door(driver, nn.Linear(8, 16).eval(), torch.randn(4, 8))
    door()
    (graph,) = kas.torch.explain()
    assert "cuda:0 (Stand-in, sm_60): expected a device of" in graph.reason
    assert graph.reason.endswith("compile for the CPU")


def call_on_host(target, tensors, rest, options=None):
    """What the graph of one operation gives, the first of its results, when it is moved to the host."""
    graph = torch.fx.Graph()
    nodes = [graph.placeholder(f"x{i}") if isinstance(t, torch.Tensor) else t for i, t in enumerate(tensors)]
    call = graph.call_function(target, (*nodes, *rest), options or {})
    graph.output(graph.call_function(getitem, (call, 0)))
    given = [tensor for tensor in tensors if isinstance(tensor, torch.Tensor)]
    moved, hosts = move_to_host(torch.fx.GraphModule({}, graph), given)
    assert [(h.shape, h.stride(), h.dtype) for h in hosts] == [(t.shape, t.stride(), t.dtype) for t in given]
    return moved(*given)


def test_operations_that_cuda_devices_have_instead():
    aten = torch.ops.aten
    weight, bias, mean, variance = (torch.rand(4) for _ in range(4))
    images = torch.randn(2, 4, 5, 5)
    found = call_on_host(aten.cudnn_batch_norm.default, (images, weight, bias, mean, variance), (False, 0.1, 1e-5))
    torch.testing.assert_close(found, functional.batch_norm(images, mean, variance, weight, bias))
    query, key, value, mask = (torch.randn(2, 3, 6, 8) for _ in range(4))
    mask, tensors = mask[:1, :1, :, :6], (query, key, value)
    flash, efficient, cudnn = (
        getattr(aten, f"_scaled_dot_product_{kind}_attention").default for kind in ("flash", "efficient", "cudnn")
    )
    for target, arguments, rest, options, meaning in (
        (flash, tensors, (0.0, True), {"scale": 0.5}, {"is_causal": True, "scale": 0.5}),
        (flash, tensors, (), {}, {}),
        (efficient, (*tensors, mask), (False,), {}, {"attn_mask": mask}),
        (cudnn, (*tensors, None), (False, 0.0, True), {}, {"is_causal": True}),
    ):
        expected = functional.scaled_dot_product_attention(query, key, value, **meaning)
        torch.testing.assert_close(call_on_host(target, arguments, rest, options), expected)


def test_graphs_that_make_tensors_on_the_device():
    constant = torch.arange(3.0)

    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("constant", constant)

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    made = graph.call_function(torch.ops.aten.full.default, ([3], 2.0), {"device": torch.device("cuda", 0)})
    moved = graph.call_function(torch.ops.aten._to_copy.default, (x,), {"device": torch.device("cuda", 0)})
    total = graph.call_function(torch.ops.aten.add.Tensor, (made, moved))
    graph.output(graph.call_function(torch.ops.aten.add.Tensor, (total, graph.get_attr("constant"))))
    host, _ = move_to_host(torch.fx.GraphModule(Graph(), graph), [torch.zeros(3)])
    torch.testing.assert_close(host(torch.ones(3)), 3 + constant)


def test_options():
    assert read_options(None, {"precision": "tf32", "libraries": "none"})[-1] == "none"
    with pytest.raises(ValueError, match="option 'libraries' of the backend kas requires one of 'auto', 'none'"):
        read_options(None, {"libraries": "all"})
