# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules: compiled kernels and gradients equal the PyTorch code and the reference."""

import copy
import pickle

import numpy
import pytest
import torch
from operators import make_arrays, named_cases, random_operators, relative_error
from torch import nn

import kas
import kas.torch

BINDING = {"N": 2, "Cin": 3, "Cout": 4, "H": 6, "W": 5, "k": 3}


def run(module, data, gradient):
    """The output and the gradients of the data and the weights."""
    data = data.clone().requires_grad_()
    output = module(data)
    (output * gradient).sum().backward()
    return [tensor.detach().double().numpy() for tensor in (output, data.grad, *(w.grad for w in module.weights))]


def check(cases):
    for number, (op, binding) in enumerate(cases):
        compiled = kas.torch.KasModule(op, binding, threads=1)
        # The gradients of PyTorch's code in f64 are taken for the true ones.
        exact = kas.torch.KasModule(op, binding, backend="pytorch").double()
        arrays = make_arrays(op, binding, seed=number)
        for weight, reference, array in zip(compiled.weights, exact.weights, arrays[1:]):
            weight.data.copy_(torch.from_numpy(array))
            reference.data.copy_(torch.from_numpy(array))
        gradient = torch.from_numpy(numpy.random.default_rng(number).standard_normal(op.shapes(binding).output))
        data = torch.from_numpy(arrays[0])
        actual = run(compiled, data, gradient.float())
        expected = run(exact, data.double(), gradient)
        assert relative_error(actual[0], op.evaluate(binding, *arrays)) < 1e-5, op.name
        for index, (one, other) in enumerate(zip(actual, expected)):
            error = relative_error(one, other)
            assert error < 1e-4, f"{op.name}, tensor {index - 1}: {error}\n{op}\n{binding}"


def test_named_operators():
    check(named_cases())


def test_random_operators():
    check(random_operators(60))


def check_roads(cases, least):
    """Gradients as structured operations equal those as loop nests; `least` of them have both forms."""
    both = 0
    for number, (op, binding) in enumerate(cases):
        generator = numpy.random.default_rng(number)
        gradient = generator.standard_normal(op.shapes(binding).output, dtype=numpy.float32)
        arrays = [*make_arrays(op, binding, seed=number), gradient]
        for tensor in range(op.num_weights + 1):
            loops = op.compile_gradient(tensor, binding, lowering="loops", threads=1)
            try:
                structured = op.compile_gradient(tensor, binding, lowering="structured", threads=1)
            except kas.Error as error:
                assert "has no structured form" in str(error)
                continue
            both += 1
            assert structured.arguments == loops.arguments and structured.results[0][1] == loops.results[0][1]
            # By the magnitudes that are summed: a sum may cancel to nothing.
            magnitude = numpy.abs(loops(*(numpy.asarray(numpy.abs(array)) for array in arrays))).max(initial=0)
            one, other = structured(*arrays), loops(*arrays)
            scale = max(magnitude, numpy.abs(other).max(initial=0))
            error = numpy.abs(one - other).max(initial=0) / (scale if scale > 0 else 1)
            assert error < 1e-5, f"{op.name}, tensor {tensor}: {error}\n{op}\n{binding}"
    assert both >= least, both


def test_lowerings_of_gradients():
    check_roads(named_cases()[::2] + random_operators(60)[:10], 30)


@pytest.mark.slow
def test_roads_of_many_gradients():
    check_roads(named_cases() + random_operators(300, seed=60), 500)


@pytest.mark.slow
def test_many_random_operators():
    check(random_operators(300, seed=60))


class Network(nn.Module):
    def __init__(self, backend):
        super().__init__()
        conv = kas.operator("conv2d")
        self.first = kas.torch.KasModule(conv, BINDING, backend)
        self.second = kas.torch.KasModule(conv, {**BINDING, "Cin": 4, "Cout": 2}, backend)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))).mean((2, 3))


@pytest.mark.parametrize("backend", ["compiled", "pytorch"])
def test_torch_compile(backend):
    torch.manual_seed(0)
    network = Network(backend)
    other = copy.deepcopy(network)
    # aot_eager traces forward and backward as inductor does, but calls no C++ compiler.
    traced = torch.compile(other, backend="aot_eager", fullgraph=True)
    x = torch.randn(2, 3, 6, 5)
    for module in (network, traced):
        module(x).square().sum().backward()
    assert torch.allclose(network(x), traced(x), atol=1e-5)
    for one, two in zip(network.parameters(), other.parameters()):
        assert torch.allclose(one.grad, two.grad, atol=1e-5)


@pytest.mark.parametrize("backend", ["compiled", "pytorch"])
def test_torch_export(backend):
    torch.manual_seed(0)
    network = Network(backend)
    x = torch.randn(2, 3, 6, 5)
    exported = torch.export.export(network, (x,))
    assert torch.allclose(exported.module()(x), network(x), atol=1e-5)
    if backend == "compiled":
        assert "kas.apply" in str(exported.graph)


def test_custom_op_is_registered_rightly():
    module = kas.torch.KasModule(kas.operator("conv2d"), BINDING)
    x = torch.randn(2, 3, 6, 5, requires_grad=True)
    arguments = (x, module.weights, module.text, "N=2,Cin=3,Cout=4,H=6,W=5,k=3", 1)
    torch.library.opcheck(
        torch.ops.kas.apply.default,
        arguments,
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )


def test_trains():
    """A few steps on random data bring the loss down."""
    torch.manual_seed(0)
    network = Network("compiled")
    x, target = torch.randn(2, 3, 6, 5), torch.randn(2, 2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (network(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0], losses


def test_other_batch_sizes():
    module = kas.torch.KasModule(kas.operator("conv2d"), BINDING)
    x = torch.randn(5, 3, 6, 5)
    expected = nn.functional.conv2d(x, module.weight0, padding=1)
    assert torch.allclose(module(x), expected, atol=1e-5)


def test_state_and_copies():
    conv = kas.operator("conv2d")
    module, other = kas.torch.KasModule(conv, BINDING), kas.torch.KasModule(conv, "N=2,Cin=3,Cout=4,H=6,W=5,k=3")
    assert list(module.state_dict()) == ["weight0"]
    other.load_state_dict(module.state_dict())
    x = torch.randn(2, 3, 6, 5)
    assert torch.equal(module(x), other(x))
    assert torch.equal(copy.deepcopy(module)(x), module(x))
    assert "conv2d" in repr(module)
    for backend in ("compiled", "pytorch"):
        module = kas.torch.KasModule(conv, BINDING, backend)
        assert torch.equal(pickle.loads(pickle.dumps(module))(x), module(x))


def test_initialization_is_that_of_the_exported_code():
    conv = kas.operator("conv2d_depthwise_separable")
    binding = {"N": 1, "Cin": 64, "Cout": 64, "H": 4, "W": 4, "k": 3}
    torch.manual_seed(0)
    module = kas.torch.KasModule(conv, binding)
    names = {}
    exec(conv.to_pytorch(binding), names)
    torch.manual_seed(0)
    exported = names["Conv2dDepthwiseSeparable"]()
    for one, two in zip(module.parameters(), exported.parameters()):
        assert torch.allclose(one, two, rtol=1e-5)


def test_bad_input():
    conv = kas.operator("conv2d")
    module = kas.torch.KasModule(conv, BINDING)
    for call, error, message in [
        (lambda: kas.torch.KasModule("conv2d", BINDING), TypeError, "expected a kas.Operator"),
        (
            lambda: kas.torch.KasModule(conv, BINDING, "cuda"),
            ValueError,
            "'effective' or 'auto', got 'cuda'",
        ),
        (lambda: kas.torch.KasModule(conv, {"N": 1}), kas.Error, "requires a value for symbol 'Cin'"),
        (lambda: kas.torch.KasModule(conv, "N=one"), ValueError, "a binding must be text"),
        (lambda: module(torch.randn(3, 6, 5)), ValueError, "expected data with 4 dimensions"),
        (lambda: module(torch.randn(2, 4, 6, 5)), ValueError, "does not fit this module"),
        (lambda: module(torch.randn(2, 3, 6, 5).double()), TypeError, "compiled kernels take float32"),
        (
            lambda: conv.compile_gradient(1, BINDING, lowering="quick"),
            ValueError,
            "'structured' or 'loops', got 'quick'",
        ),
        (lambda: conv.compile_gradient(2, BINDING), ValueError, "must be 0 .the data. to 1, got 2"),
    ]:
        with pytest.raises(error, match=message):
            call()


MODES = """
kas.operator @modes<N, C, H | m>(%n: N, %c: C, %h: H) from [N, C, H] {
  %r = kas.reduce sum : H
  %r_d, %r_w = kas.share %r : H
  %m = kas.reduce sum : m
  %m_1, %m_2 = kas.share %m : m
  %m_3, %m_4 = kas.share %m_1 : m
  %c_d, %c_w = kas.share %c : C
  kas.yield data(%n, %c_d, %r_d) weight(%m_3, %r_w) weight(%c_w, %m_4) weight(%m_2, %h)
}
kas.sequence @twice [@modes, @modes] between [relu]
"""
OF_MODES = {"N": 2, "C": 3, "H": 8, "m": 4}


def cosines(modes, size):
    """The first rows of the orthonormal cosine transform."""
    m, x = torch.arange(modes)[:, None], torch.arange(size)
    scale = torch.where(m == 0, 1.0, 2.0) / size
    return scale.sqrt() * torch.cos(torch.pi * m * (2 * x + 1) / (2 * size))


@pytest.mark.parametrize("backend", ["compiled", "pytorch"])
def test_fixed_weights_are_not_trained(backend):
    """The data in the first cosines, each times a weight of its channel, and back."""
    torch.manual_seed(0)
    basis = cosines(4, 8)
    torch.testing.assert_close(basis @ basis.T, torch.eye(4))
    operator = kas.parse(MODES)["modes"]
    module = kas.torch.KasModule(operator, OF_MODES, backend, fixed={0: basis, 2: basis})
    assert [name for name, _ in module.named_parameters()] == ["weight1"]
    assert [name for name, _ in module.named_buffers()] == ["weight0", "weight2"]
    data = torch.randn(2, 3, 8, requires_grad=True)
    expected = torch.einsum("nch,mh,cm,mg->ncg", data, basis, module.weight1, basis)
    output = module(data)
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)
    tensors = [data, module.weight1]
    for one, other in zip(
        torch.autograd.grad(output.square().sum(), tensors), torch.autograd.grad(expected.square().sum(), tensors)
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.1)
    module(data).square().sum().backward()
    optimizer.step()
    torch.testing.assert_close(module.weight0, basis)
    with torch.no_grad():
        module.weight1.fill_(1)
    low = torch.einsum("mh,ncm->nch", basis, torch.randn(2, 3, 4))
    torch.testing.assert_close(module(low), low, rtol=1e-4, atol=1e-5)
    other = pickle.loads(pickle.dumps(module))
    torch.testing.assert_close(other(low), low, rtol=1e-4, atol=1e-5)


def test_gradients_beside_fixed_weights_are_differences():
    torch.manual_seed(0)
    basis = cosines(4, 8)
    sequence = kas.parse(MODES).sequences["twice"]
    fixed = {"0.weight0": basis, "0.weight2": basis, "1.weight0": basis}
    module = kas.torch.SequenceModule(sequence, OF_MODES, "pytorch", fixed=fixed).double()
    assert [name for name, _ in module.named_parameters()] == ["0.weight1", "1.weight1", "1.weight2"]
    names = [name for name, _ in module.named_parameters()]

    def compute(data, *values):
        return torch.func.functional_call(module, dict(zip(names, values)), (data,))

    values = [torch.randn_like(parameter, requires_grad=True) for parameter in module.parameters()]
    assert torch.autograd.gradcheck(compute, (torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True), *values))


def test_fixed_weights_keep_the_mean_square_of_trained_ones():
    """What is fixed does not change what comes out on average."""
    operator, sizes = kas.parse(MODES)["modes"], {"N": 64, "C": 16, "H": 32, "m": 16}
    data = torch.randn(64, 16, 32, generator=torch.Generator().manual_seed(0)).relu()
    squares = []
    for fixed in ({}, {0: torch.randn(16, 32) * 5}, {0: torch.randn(16, 32) * 0.01, 2: torch.randn(16, 32)}):
        torch.manual_seed(1)
        modules = [kas.torch.KasModule(operator, sizes, "pytorch", fixed=fixed) for _ in range(20)]
        with torch.no_grad():
            squares.append(sum(float(module(data).square().mean()) for module in modules))
    assert max(squares) < 3 * min(squares)


def test_wrong_fixed_weights_are_refused():
    operator, sequence = kas.parse(MODES)["modes"], kas.parse(MODES).sequences["twice"]
    with pytest.raises(ValueError, match=r"requires numbers of weights from 0 to 2 as fixed, got 3"):
        kas.torch.KasModule(operator, OF_MODES, fixed={3: torch.zeros(4, 8)})
    with pytest.raises(ValueError, match=r"requires values of shape \(4, 8\) for the fixed weight 0, got \(8, 4\)"):
        kas.torch.KasModule(operator, OF_MODES, fixed={0: torch.zeros(8, 4)})
    with pytest.raises(ValueError, match=r"requires names of weights \(0.weight0, .*\) as fixed, got 'weight0'"):
        kas.torch.SequenceModule(sequence, OF_MODES, fixed={"weight0": torch.zeros(4, 8)})
