# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules under autocast, torch.func, other memory formats, symbolic and empty batches, and the choice of a backend."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

import kas
import kas.torch

BINDING = {"N": 2, "Cin": 3, "Cout": 4, "H": 6, "W": 5, "k": 3}
GROUPED = {"N": 2, "Cin": 4, "Cout": 4, "H": 4, "W": 4, "k": 3, "g": 2}
SEPARABLE = {"N": 2, "Cin": 3, "Cout": 4, "H": 6, "W": 5, "k": 3}
BACKENDS = ["compiled", "pytorch"]

# An operator whose PyTorch code says the size of the batch, by a reshape.
GATHERED = """
kas.operator @gathered<N, C, H>(%n: N, %c: C, %h: H) from [N, H] {
  %i = kas.reduce max : 3
  %j = kas.unfold %h, %i : H, 3
  %a, %b = kas.share %j : H
  kas.yield data(%n, %a) weight(%c, %b)
}
"""
MIXED = """
kas.operator @mixed<N, H>(%n: N, %h: H) from [N, H] {
  %m = kas.shift %n by 1 : N
  kas.yield data(%m, %h)
}
"""


def make(backend, name="conv2d", binding=BINDING, dtype=None):
    torch.manual_seed(0)
    return kas.torch.KasModule(kas.operator(name), binding, backend, threads=1).to(dtype)


def make_pair(name="conv2d_depthwise_separable", binding=SEPARABLE):
    """The compiled module, and its PyTorch code in f64, which is taken for the truth."""
    return make("compiled", name, binding), make("pytorch", name, binding).double()


def close(actual, expected):
    return torch.allclose(actual.double(), expected.double(), rtol=1e-4, atol=1e-4)


def as_function(module):
    """The module as a function of its parameters and the data, and these."""
    return (lambda parameters, x: torch.func.functional_call(module, parameters, (x,))), dict(module.named_parameters())


def like(module, x):
    return x.to(next(module.parameters()).dtype)


def test_batches():
    assert kas.operator("conv2d").has_batch and kas.operator("syno_operator1").has_batch
    for text, name, batch in [(GATHERED, "gathered", True), (MIXED, "mixed", False)]:
        assert kas.parse(text)[name].has_batch is batch
    for text in [
        # In the size of a weight, of another dimension, of a reduction; used twice; a coefficient; not first.
        "@f<N>(%n: N) from [N] { %a, %b = kas.share %n : N kas.yield data(%a) weight(%b) }",
        "@f<N>(%n: N, %h: N) from [N, N] { kas.yield data(%n, %h) }",
        "@f<N>(%n: N) from [N, N] { %i = kas.reduce sum : N kas.yield data(%n, %i) }",
        "@f<N>(%n: 2*N) from [2*N] { kas.yield data(%n) }",
        "@f<N, H>(%n: N, %h: H) from [H, N] { kas.yield data(%h, %n) }",
    ]:
        assert not kas.parse(f"kas.operator {text}")["f"].has_batch, text


# ---- torch.func and higher derivatives


@pytest.mark.parametrize("name, binding", [("conv2d_depthwise_separable", SEPARABLE), ("conv2d_grouped", GROUPED)])
def test_forward_mode(name, binding):
    results = []
    for module in make_pair(name, binding):
        torch.manual_seed(1)
        function, parameters = as_function(module)
        shape = kas.operator(name).shapes(binding).data
        x, dx = (like(module, torch.randn(shape)) for _ in range(2))
        tangents = {name: like(module, torch.randn(p.shape)) for name, p in parameters.items()}
        results.append(torch.func.jvp(function, (parameters, x), (tangents, dx)))
    (y, dy), (exact_y, exact_dy) = results
    assert close(y, exact_y) and close(dy, exact_dy) and dy.abs().max() > 0.1


def test_forward_mode_of_some_tensors():
    for module in make_pair():
        x = like(module, torch.randn(2, 3, 6, 5))
        # The operator is linear in its data.
        assert close(torch.func.jvp(module, (x,), (2 * x,))[1], 2 * module(x))


def test_gradients_of_functions():
    results = []
    for module in make_pair():
        torch.manual_seed(1)
        function, parameters = as_function(module)
        x = like(module, torch.randn(2, 3, 6, 5))
        results.append(torch.func.grad(lambda p, x, f=function: f(p, x).square().sum(), argnums=(0, 1))(parameters, x))
    (weights, data), (exact_weights, exact_data) = results
    assert close(data, exact_data) and all(close(weights[name], exact_weights[name]) for name in weights)


def test_vectorized():
    results = []
    for module in make_pair():
        torch.manual_seed(1)
        function, parameters = as_function(module)
        x = like(module, torch.randn(2, 3, 3, 6, 5))
        several = {name: torch.stack([p, 2 * p, -p]) for name, p in parameters.items()}
        loss = lambda p, x, f=function: f(p, x.unsqueeze(0)).square().sum()  # noqa: E731
        results.append(
            [
                torch.vmap(module, in_dims=1, out_dims=1)(x),
                # A network for each element, with data of its own, and all with the same.
                torch.vmap(function, (0, 1))(several, x),
                torch.vmap(function, (0, None))(several, x[:, 0]),
                # The gradients of each example.
                *torch.vmap(torch.func.grad(loss), (None, 0))(parameters, x[:, 0]).values(),
                torch.vmap(torch.func.grad(loss, argnums=1), (None, 0))(parameters, x[:, 0]),
            ]
        )
    assert all(close(one, exact) for one, exact in zip(*results))


def second_derivatives(module):
    torch.manual_seed(1)
    x = like(module, torch.randn(2, 3, 6, 5)).requires_grad_()
    tensors = [x, *module.parameters()]
    first = torch.autograd.grad(module(x).pow(3).sum(), tensors, create_graph=True)
    second = torch.autograd.grad(sum((g * g).sum() for g in first), tensors, create_graph=True)
    return [*second, *torch.autograd.grad(sum((g * g).sum() for g in second), tensors)]


def test_derivatives_of_higher_order():
    for one, exact in zip(*map(second_derivatives, make_pair())):
        assert torch.allclose(one.double(), exact, rtol=1e-3, atol=1e-3 * exact.detach().abs().max().item())


def test_hessian():
    binding = {"N": 1, "Cin": 2, "Cout": 1, "H": 2, "W": 2, "k": 3}
    results = []
    for module in make_pair(binding=binding):
        torch.manual_seed(1)
        x = like(module, torch.randn(1, 2, 2, 2))
        results.append(torch.func.hessian(lambda x, f=module: f(x).pow(3).sum())(x))
    assert close(*results) and results[0].abs().max() > 0.01


def test_a_maximum_has_first_derivatives_alone():
    pool, binding = kas.operator("max_pool2d"), {"N": 2, "C": 3, "H": 4, "W": 4, "k": 3, "s": 2}
    x = torch.randn(2, 3, 4, 4, requires_grad=True)
    compiled = kas.torch.KasModule(pool, binding, threads=1)
    with pytest.raises(NotImplementedError, match="takes a maximum, which has no forward-mode derivative"):
        torch.func.jvp(compiled, (x,), (x,))
    (gradient,) = torch.autograd.grad(compiled(x).pow(3).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="has no second derivative; use backend='pytorch'"):
        gradient.sum().backward()
    exact = kas.torch.KasModule(pool, binding, "pytorch")
    assert torch.allclose(torch.func.jvp(exact, (x,), (x,))[1], exact(x))


# ---- Autocast


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name, binding", [("conv2d_depthwise_separable", SEPARABLE), ("conv2d_grouped", GROUPED)])
def test_autocast(backend, name, binding):
    module = make(backend, name, binding)
    channels = binding["Cin"]
    network = nn.Sequential(nn.Conv2d(channels, channels, 1), module)
    x = torch.randn(kas.operator(name).shapes(binding).data)
    expected = network(x)
    with torch.autocast("cpu", torch.bfloat16):
        output = network(x)
        loss = output.float().square().mean()
    loss.backward()
    assert torch.allclose(output.float(), expected, rtol=0.1, atol=0.05)
    assert all(p.grad.dtype == torch.float32 and p.grad.isfinite().all() for p in network.parameters())
    if backend == "compiled":
        assert output.dtype == torch.float32
        with pytest.raises(TypeError, match="compiled kernels take float32"):
            module(x.bfloat16())


# ---- Batches of any size


class Network(nn.Module):
    """Two layers with what traces must see through, and a bias."""

    def __init__(self, backend):
        super().__init__()
        separable, grouped = kas.operator("conv2d_depthwise_separable"), kas.operator("conv2d_grouped")
        self.first = kas.torch.KasModule(separable, {**SEPARABLE, "H": 4, "W": 4}, backend, threads=1, bias_dim=1)
        self.second = kas.torch.KasModule(grouped, GROUPED, backend, threads=1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))).mean((2, 3))


def make_network(backend):
    torch.manual_seed(0)
    return Network(backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_for_any_batch(backend):
    torch._dynamo.reset()
    network = make_network(backend)
    other, counter = copy.deepcopy(network), CompileCounterWithBackend("aot_eager")
    traced = torch.compile(other, backend=counter, fullgraph=True)
    for batch in (2, 4, 7):
        x = torch.randn(batch, 3, 4, 4)
        for module in (network, traced):
            module(x).square().sum().backward()
        assert torch.allclose(network(x), traced(x), atol=1e-5)
    # Once for the first size, once for any other.
    assert counter.frame_count == 2
    for one, two in zip(network.parameters(), other.parameters()):
        assert torch.allclose(one.grad, two.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend, strict", [("compiled", True), ("compiled", False), ("pytorch", False)])
def test_exported_for_any_batch(backend, strict):
    network = make_network(backend)
    shapes = ({0: torch.export.Dim("batch")},)
    exported = torch.export.export(network, (torch.randn(2, 3, 4, 4),), dynamic_shapes=shapes, strict=strict)
    for batch in (2, 5):
        x = torch.randn(batch, 3, 4, 4)
        assert torch.allclose(exported.module()(x), network(x), atol=1e-5)
    assert ("kas.apply" in str(exported.graph)) == (backend == "compiled")


def test_code_that_says_the_batch():
    """An operator whose code is for one size alone is traced for one example, and mapped."""
    operator = kas.parse(GATHERED)["gathered"]
    module = kas.torch.KasModule(operator, "N=2,C=3,H=4", "pytorch")
    traced = torch.compile(module, backend="aot_eager", fullgraph=True)
    exported = torch.export.export(module, (torch.randn(2, 4),), dynamic_shapes=({0: torch.export.Dim("n")},))
    for batch in (2, 3, 5):
        x = torch.randn(batch, 4)
        assert torch.allclose(traced(x), module(x)) and torch.allclose(exported.module()(x), module(x))


def test_symbolic_images():
    """Custom ops have shapes over all symbols of the data."""
    module = make("compiled")
    image = {0: torch.export.Dim("n"), 2: torch.export.Dim("h"), 3: torch.export.Dim("w")}
    exported = torch.export.export(module, (torch.randn(2, 3, 6, 5),), dynamic_shapes=(image,))
    x = torch.randn(4, 3, 7, 8)
    assert torch.allclose(exported.module()(x), module(x), atol=1e-5)


@pytest.mark.parametrize("backend", [*BACKENDS, "auto"])
def test_empty_batches(backend):
    network = make_network(backend)
    x = torch.randn(0, 3, 4, 4, requires_grad=True)
    y = network(x)
    assert y.shape == (0, 4)
    y.sum().backward()
    assert x.grad.shape == x.shape
    assert all(p.grad.shape == p.shape and not p.grad.any() for p in network.parameters())
    with pytest.raises((ValueError, kas.Error), match="does not fit this module"):
        network.first(torch.randn(0, 4, 4, 4))
    # An operator that mixes examples has no empty batch.
    module = kas.torch.KasModule(kas.parse(MIXED)["mixed"], "N=2,H=3", backend)
    with pytest.raises(kas.Error, match="must be at least 1, got 0"):
        module(torch.randn(0, 3))


# ---- Memory formats


@pytest.mark.parametrize("backend", BACKENDS)
def test_channels_last(backend):
    dense = {name: value for name, value in GROUPED.items() if name != "g"}
    operators = make(backend, "conv2d_grouped", GROUPED), make(backend, "conv2d", dense)
    network = nn.Sequential(nn.Conv2d(4, 4, 1), *operators)
    x = torch.randn(2, 4, 4, 4)
    expected = network(x)
    names = {name: p.shape for name, p in network.state_dict().items()}
    network.to(memory_format=torch.channels_last)
    assert network[0].weight.is_contiguous(memory_format=torch.channels_last)
    # The weights of operators stay as they are: dense, in their shapes.
    assert all(p.is_contiguous() for module in network[1:] for p in module.parameters())
    assert {name: p.shape for name, p in network.state_dict().items()} == names
    y = network(x.to(memory_format=torch.channels_last))
    assert torch.allclose(y, expected, atol=1e-5)
    y.sum().backward()
    network.double().to(memory_format=torch.channels_last).float()
    assert torch.allclose(network(x), expected, atol=1e-5)
    assert network[1].weight0.grad.shape == network[1].weight0.shape


# ---- The faster backend


def test_the_faster_backend(monkeypatch):
    import kas.torch._modules as modules

    monkeypatch.setattr(modules, "_choices", {})
    measured = []

    def measure(self, backend, data):
        measured.append((backend, len(data)))
        return {"compiled": 2.0, "pytorch": 1.0}[backend]

    monkeypatch.setattr(kas.torch.KasModule, "_measure", measure)
    module, x = make("auto"), torch.randn(2, 3, 6, 5)
    assert module.chosen is None and "auto" in repr(module)
    assert torch.equal(module(x), make("pytorch")(x)) and module.chosen == "pytorch"
    assert measured == [("compiled", 2), ("pytorch", 2)]
    # Not measured again: neither here, nor by another module of the same operator, nor by a copy.
    module(torch.randn(3, 3, 6, 5))
    other = make("auto")
    other(x), pickle.loads(pickle.dumps(module))(x)
    assert other.chosen == "pytorch" and len(measured) == 2
    monkeypatch.setattr(kas.torch.KasModule, "_measure", lambda self, backend, data: backend != "compiled")
    x = torch.randn(4, 3, 6, 5)
    module = make("auto")
    assert torch.equal(module(x), make("compiled")(x)) and module.chosen == "compiled"
    assert make("auto").double()(x.double()).dtype == torch.float64


def test_both_backends_are_timed():
    module, x = make("auto"), torch.randn(2, 3, 6, 5)
    state = torch.get_rng_state()
    with torch.no_grad():
        y = module(x)
    # Nothing is drawn, and no gradient is left.
    assert torch.equal(torch.get_rng_state(), state) and module.weight0.grad is None
    assert module.chosen in BACKENDS and torch.allclose(y, make("pytorch")(x), atol=1e-5)
    assert all(module._measure(backend, x, runs=1) > 0 for backend in BACKENDS)


def test_the_faster_backend_while_tracing():
    torch._dynamo.reset()
    module, x = make("auto"), torch.randn(2, 3, 6, 5)
    assert torch.allclose(torch.compile(module, backend="aot_eager", fullgraph=True)(x), make("pytorch")(x), atol=1e-5)
    assert module.chosen is None


# ---- Kernels of the tensor level


def make_kernel():
    torch.manual_seed(0)
    kernel, binding = kas.kernel("squeeze_excite"), "C=4,H=3,W=3,x=2"
    module = kas.torch.KernelModule(kernel, binding, threads=1)
    names = {}
    exec(kernel.to_pytorch(binding), names)
    code = next(value for value in names.values() if isinstance(value, type) and issubclass(value, nn.Module))()
    code.load_state_dict(module.state_dict())
    return module, code.double()


def test_kernels_under_torch_func():
    results = []
    for module in make_kernel():
        torch.manual_seed(1)
        function, parameters = as_function(module)
        x = like(module, torch.randn(2, 4, 3, 3))
        loss = lambda p, x, f=function: f(p, x.unsqueeze(0)).square().sum()  # noqa: E731
        results.append(
            [
                torch.vmap(module, in_dims=1)(x.unsqueeze(0)),
                *torch.vmap(torch.func.grad(loss), (None, 0))(parameters, x).values(),
            ]
        )
    assert all(close(one, exact) for one, exact in zip(*results))


def test_kernels_name_what_they_lack():
    module, _ = make_kernel()
    x = torch.randn(2, 4, 3, 3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="no forward-mode derivative; the PyTorch code"):
        torch.func.jvp(module, (x,), (x,))
    (gradient,) = torch.autograd.grad(module(x).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="no second derivative; the PyTorch code"):
        gradient.sum().backward()


def test_kernels_under_autocast():
    module, _ = make_kernel()
    x = torch.randn(2, 4, 3, 3).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(module(x), module(x.float()))
    with pytest.raises(TypeError, match="compiled kernels take float32"):
        module(x)


def test_kernels_take_any_batch():
    torch._dynamo.reset()
    module, _ = make_kernel()
    counter = CompileCounterWithBackend("aot_eager")
    traced = torch.compile(module, backend=counter, fullgraph=True)
    shapes = {"inputs": ({0: torch.export.Dim("batch")},)}
    exported = torch.export.export(module, (torch.randn(2, 4, 3, 3),), dynamic_shapes=shapes).module()
    for batch in (2, 4, 5):
        x = torch.randn(batch, 4, 3, 3)
        assert torch.equal(traced(x), module(x)) and torch.equal(exported(x), module(x))
    assert counter.frame_count == 2
    x = torch.randn(0, 4, 3, 3, requires_grad=True)
    module(x).sum().backward()
    assert x.grad.shape == x.shape and all(not p.grad.any() for p in module.parameters())


# ---- torch.func within torch.compile


def _explain_all(call, *inputs):
    """That it computes what PyTorch does; what became of its graphs."""
    torch._dynamo.reset()
    kas.torch.explain()
    expected = call(*inputs)
    found = torch.compile(call, backend="kas")(*inputs)
    for one, other in zip(*(torch.utils._pytree.tree_leaves(value) for value in (found, expected))):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-4)
    return kas.torch.explain()


def test_gradients_inside_of_a_compiled_function():
    """They are operations of a graph that infers."""
    torch.manual_seed(0)
    weight, images = torch.randn(4, 3, 3, 3), torch.randn(2, 3, 8, 8)

    def lose(weight, image):
        convolved = nn.functional.conv2d(image[None], weight)
        return nn.functional.max_pool2d(convolved, 2).pow(2).sum()

    def each(weight, images):
        return torch.func.vmap(torch.func.grad(lose), (None, 0))(weight, images)

    for call in (torch.func.grad(lose), torch.func.jacrev(lose)):
        assert all(not graph.reason and not graph.left for graph in _explain_all(call, weight, images[0]))
    assert all(not graph.reason and not graph.left for graph in _explain_all(each, weight, images))


def test_random_numbers_of_checkpoints():
    """The state that they keep, and set again, stays with PyTorch, and nothing else."""
    torch.manual_seed(0)
    first, second, dropout = nn.Linear(5, 7), nn.Linear(7, 5), nn.Dropout(0.5)

    def run(x):
        return second(dropout(torch.relu(first(x)))).sin()

    def compute(x):
        return torch.utils.checkpoint.checkpoint(run, x, use_reentrant=False)

    torch._dynamo.reset()
    kas.torch.explain()
    results = []
    for call in (compute, torch.compile(compute, backend="kas")):
        x = torch.ones(4, 5, requires_grad=True)
        torch.manual_seed(1)
        result = call(x)
        result.sum().backward()
        results.append((result.detach(), x.grad))
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*results))
    graphs = kas.torch.explain()
    assert [graph.kind for graph in graphs] == ["forward", "backward"]
    for graph in graphs:
        assert graph.parts and all("rng_state" in name for name, _ in graph.left) and graph.left, graph
