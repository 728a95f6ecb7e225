# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the tensor level: compiled = the reference, gradients = differences, modules train."""

import numpy
import pytest
import torch
from operators import relative_error

import kas
import kas.torch

VALUES = {
    "C": 4,
    "H": 6,
    "W": 6,
    "N": 6,
    "L": 6,
    "T": 6,
    "k": 3,
    "l": 3,
    "g": 2,
    "h": 2,
    "x": 2,
    "y": 2,
    "r": 2,
    "d": 2,
    "s": 2,
}


def named_kernels():
    for name in kas.named_kernels():
        kernel = kas.kernel(name)
        yield kernel, {symbol: VALUES.get(symbol, 2) for symbol in kernel.symbols}


def make_arrays(shapes, seed=0):
    generator = numpy.random.default_rng(seed)
    draw = lambda shape: generator.standard_normal(shape, dtype=numpy.float32)  # noqa: E731
    weights = [draw(shape) * deviation for shape, deviation in zip(shapes.weights, shapes.deviations)]
    return [draw(shape) for shape in shapes.inputs], [weight.astype(numpy.float32) for weight in weights]


def test_named_kernels():
    cases = list(named_kernels())
    assert len(cases) == 21
    for kernel, binding in cases:
        shapes = kernel.shapes(binding, batch=2)
        inputs, weights = make_arrays(shapes)
        run = kernel.compile(binding, batch=2, threads=1)
        output = run(*inputs, *weights)
        for sample in range(2):
            expected = kernel.evaluate(binding, [array[sample] for array in inputs], weights)
            assert relative_error(output[sample], expected) < 1e-4, kernel.name


def get_slope(run, tensors, along, upstream, width):
    ends = [run(*(t + numpy.float32(sign * width) * a for t, a in zip(tensors, along))) for sign in (1, -1)]
    return float(((ends[0].astype(float) - ends[1]) * upstream).sum()) / (2 * width)


def test_gradients_of_named_kernels():
    """Along a random direction, against differences in f32 of two widths."""
    for number, (kernel, binding) in enumerate(named_kernels()):
        shapes = kernel.shapes(binding, batch=2)
        tensors = [array for group in make_arrays(shapes, number) for array in group]
        generator = numpy.random.default_rng(number)
        upstream = generator.standard_normal(shapes.output, dtype=numpy.float32)
        along = [generator.standard_normal(t.shape, dtype=numpy.float32) * t.std() for t in tensors]
        run = kernel.compile(binding, batch=2, threads=1)
        output, *gradients = kernel.compile_gradient(binding, batch=2, threads=1)(*tensors, upstream)
        assert relative_error(output, run(*tensors)) < 1e-6
        slope = get_slope(run, tensors, along, upstream, 1e-2)
        products = [g.astype(float) * a for g, a in zip(gradients, along)]
        exact, magnitude = (sum(float(f(p).sum()) for p in products) for f in (numpy.asarray, numpy.abs))
        assert abs(slope - exact) < 2e-2 * magnitude + 1e-3, kernel.name


def test_gradients_equal_those_of_pytorch():
    binding = {"C": 4, "H": 5, "W": 6, "x": 3}
    module = kas.torch.KernelModule(kas.kernel("squeeze_excite"), binding)
    first, second = module.weights
    x = torch.randn(3, 4, 5, 6, requires_grad=True)
    y = module(x)
    gate = torch.sigmoid(torch.relu(x.mean((2, 3)) @ first.reshape(3, 4).T) @ second.reshape(4, 3).T)
    expected = gate[:, :, None, None] * x
    assert torch.allclose(y, expected, atol=1e-6)
    upstream = torch.randn_like(y)
    wanted = torch.autograd.grad(expected, [x, first, second], upstream)
    for one, other in zip(torch.autograd.grad(y, [x, first, second], upstream), wanted):
        assert torch.allclose(one, other, atol=1e-5)


def test_torch_compile_and_export():
    module = kas.torch.KernelModule(kas.kernel("separable_convolution"), {"C": 4, "H": 5, "W": 5, "k": 3})
    network = torch.nn.Sequential(module, torch.nn.ReLU())
    x = torch.randn(2, 4, 5, 5)
    traced = torch.compile(network, backend="aot_eager", fullgraph=True)
    results = []
    for one in (network, traced):
        network.zero_grad()
        one(x).square().sum().backward()
        results.append([weight.grad.clone() for weight in module.weights])
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*results))
    exported = torch.export.export(network, (x,))
    assert "kas.apply_kernel" in str(exported.graph)
    assert torch.allclose(exported.module()(x), network(x), atol=1e-6)


def test_bad_input():
    kernel = kas.kernel("squeeze_excite")
    module = kas.torch.KernelModule(kernel, "C=4,H=4,W=4,x=2")
    for call, error, message in [
        (lambda: kas.kernel("squeeze"), KeyError, "did you mean squeeze_excite"),
        (
            lambda: kernel.compile({"C": 4}),
            kas.Error,
            "requires a value for symbol 'H' of kernel 'squeeze_excite', got none",
        ),
        (lambda: kernel.compile("C=4,H=4,W=4,x=0"), kas.Error, "the value of symbol 'x' must be at least 1, got 0"),
        (lambda: kernel.compile("C=4,H=4,W=4,z=1"), kas.Error, "requires symbols of kernel .*got 'z'"),
        (lambda: kernel.shapes("C=4,H=4,W=4,x=2", batch=0), kas.Error, "requires a batch of at least 1, got 0"),
        (lambda: kernel.evaluate("C=4,H=4,W=4,x=2", [numpy.zeros((4, 4))]), ValueError, "must have the shapes"),
        (lambda: kas.torch.KernelModule("squeeze_excite"), TypeError, "expected a kas.Kernel"),
        (lambda: module(torch.randn(4, 4, 4)), ValueError, "expected inputs of shapes"),
        (lambda: module(torch.randn(1, 4, 4, 4).double()), TypeError, "float32 on the CPU"),
        (lambda: kas.parse(kas.named_kernels()["mlp_mixer"].text)["mlp_mixer"], kas.Error, "to be a kas.operator"),
    ]:
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize("causal", ["", " causal"])
def test_shifts_at_the_binding(causal):
    """A shift by no less than the extent (D4), which only the caller's binding shows."""
    shift = f"%y = kas.dag.shift %in dim 0 by -3{causal} : [L]"
    kernel = kas.Kernel(kas.parse(f"kas.kernel @f<L> (%in: [L]) -> [L] {{ {shift} kas.dag.output %y : [L] }}"), "f")
    x = numpy.arange(1, 5, dtype=numpy.float32)
    expected = [0, 0, 0, 1] if causal else [2, 3, 4, 1]
    assert kernel.compile("L=4")(x[None]).tolist() == [expected]
    assert kernel.evaluate("L=4", [x]).tolist() == expected
    message = r"requires a shift amount d with 0 < \|d\| < 3 \(D4\), got -3"
    for call in (lambda: kernel.compile("L=3"), lambda: kernel.evaluate("L=3", [x[:3]])):
        with pytest.raises(kas.Error, match=message):
            call()
