# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported PyTorch code runs alone and equals the reference."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from operators import make_arrays, named_cases, random_kernels, random_operators, relative_error

import kas


def load(code):
    names = {}
    exec(compile(code, "<exported>", "exec"), names)
    modules = [value for value in names.values() if isinstance(value, type) and issubclass(value, torch.nn.Module)]
    assert len(modules) == 1
    return modules[0]()


def check(cases):
    kinds = {"einsum": 0, "gather": 0}
    for op, binding in cases:
        code = op.to_pytorch(binding)
        kinds["gather" if "torch.arange" in code else "einsum"] += 1
        module = load(code)
        arrays = make_arrays(op, binding)
        parameters = list(module.parameters())
        assert len(parameters) == op.num_weights
        with torch.no_grad():
            for parameter, array in zip(parameters, arrays[1:]):
                parameter.copy_(torch.from_numpy(array))
            result = module(torch.from_numpy(arrays[0]))
        error = relative_error(result, op.evaluate(binding, *arrays))
        assert error < 1e-5, f"{op.name}: {error}\n{op}\n{binding}\n{code}"
    return kinds


def test_named_operators():
    assert check(named_cases())["einsum"] == 59


def test_random_operators():
    kinds = check(random_operators(60))
    assert kinds["einsum"] > 20 and kinds["gather"] > 5, kinds


@pytest.mark.slow
def test_many_random_operators():
    check(random_operators(300, seed=60))


def check_gradients(cases):
    for op, binding in cases:
        module = load(op.to_pytorch(binding)).double()
        inputs = [torch.from_numpy(array).double() for array in make_arrays(op, binding)]
        if sum(tensor.numel() for tensor in inputs) > 300:
            continue
        for tensor in inputs:
            tensor.requires_grad_()
        names = [name for name, _ in module.named_parameters()]

        def function(data, *weights, module=module, names=names):
            return torch.func.functional_call(module, dict(zip(names, weights)), (data,))

        assert torch.autograd.gradcheck(function, inputs), op.name


def test_gradients_of_the_code():
    check_gradients(random_operators(60)[:30])


@pytest.mark.slow
def test_gradients_of_much_code():
    check_gradients(named_cases() + list(random_operators(300, seed=60)))


def test_file_runs_alone(tmp_path):
    """The file needs no kas, and neither does a program that uses it."""
    binding = {"N": 1, "Cin": 4, "Cout": 8, "H": 6, "W": 6, "k": 3}
    (tmp_path / "conv.py").write_text(kas.operator("conv2d").to_pytorch(binding))
    code = (
        "import sys, torch, conv\n"
        "assert 'kas' not in sys.modules\n"
        "torch.manual_seed(0)\n"
        "module = conv.Conv2d()\n"
        "x = torch.randn(1, 4, 6, 6)\n"
        "expected = torch.nn.functional.conv2d(x, module.weight0, padding=1)\n"
        "assert torch.allclose(module(x), expected, atol=1e-5)\n"
    )
    subprocess.run(
        [sys.executable, "-I", "-c", "import sys; sys.path.insert(0, '.')\n" + code], cwd=tmp_path, check=True
    )


def test_initialization_keeps_the_scale():
    """After a rectifier the mean square of activations stays, up to sampling."""
    torch.manual_seed(0)
    op = kas.operator("conv2d")
    module = load(op.to_pytorch({"N": 4, "Cin": 64, "Cout": 64, "H": 8, "W": 8, "k": 1}))
    data = torch.relu(torch.randn(4, 64, 8, 8))
    before, after = data.pow(2).mean(), torch.relu(module(data)).pow(2).mean()
    assert 0.7 < after / before < 1.4


# Kernels of the tensor level

SIZES = {"C": 4, "H": 6, "L": 7, "W": 6, "k": 3, "l": 3, "G": 2, "x": 2}


def named_kernels():
    return [
        (kernel, {symbol: SIZES.get(symbol, 2) for symbol in kernel.symbols})
        for kernel in map(kas.kernel, kas.named_kernels())
    ]


def draw(shapes, seed=0):
    """Data from -1 to 1, and weights within their deviations: larger numbers lose the digits of f32 in powers."""
    generator = torch.Generator().manual_seed(seed)
    uniform = lambda shape, scale: scale * (2 * torch.rand(shape, generator=generator) - 1)  # noqa: E731
    return [uniform(shape, 1) for shape in shapes.inputs], [
        uniform(s, d) for s, d in zip(shapes.weights, shapes.deviations)
    ]


def check_kernels(cases):
    """Values against the reference, and gradients in f64 against the compiled ones."""
    num_gradients = 0
    for kernel, binding in cases:
        code = kernel.to_pytorch(binding)
        module = load(code)
        shapes = kernel.shapes(binding, batch=2)
        inputs, weights = draw(shapes)
        parameters = list(module.parameters())
        assert [tuple(parameter.shape) for parameter in parameters] == [tuple(shape) for shape in shapes.weights]
        with torch.no_grad():
            for parameter, weight in zip(parameters, weights):
                parameter.copy_(weight)
            result = module.double()(*(tensor.double() for tensor in inputs))
        story = f"{kernel.name}\n{kernel.module}\n{binding}\n{code}"
        assert result.shape == shapes.output, story
        for sample in range(2):
            expected = kernel.evaluate(
                binding, [tensor[sample].numpy() for tensor in inputs], [w.numpy() for w in weights]
            )
            if torch.isfinite(torch.from_numpy(expected)).all():
                assert relative_error(result[sample], expected) < 1e-4, story
        num_gradients += check_kernel_gradients(kernel, binding, module, inputs, parameters, story)
    return num_gradients


def check_kernel_gradients(kernel, binding, module, inputs, parameters, story):
    tensors = [tensor.double().requires_grad_() for tensor in inputs]
    result = module(*tensors)
    upstream = torch.rand(result.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 0.5
    expected = torch.autograd.grad(result, [*tensors, *parameters], upstream, allow_unused=True)
    given = [*(tensor.float().detach() for tensor in [*tensors, *parameters]), upstream.float()]
    run = kernel.compile_gradient(binding, batch=2, threads=1)
    _, *actual = run(*(tensor.contiguous() for tensor in given))
    expected = [torch.zeros(t.shape) if g is None else g for t, g in zip(given, expected)]
    if not all(torch.isfinite(gradient).all() for gradient in expected):
        return 0
    # Of sums that cancel, such as that over a softmax, f32 has no digits.
    least = 1e-2 * max(gradient.abs().max().item() for gradient in expected)
    for one, other in zip(actual, expected):
        error = (torch.as_tensor(one) - other).abs().max().item()
        assert error <= 1e-4 * max(other.abs().max().item(), least), story
    return len(expected)


def test_named_kernels():
    cases = named_kernels()
    assert len(cases) == 21 and check_kernels(cases) > 21


def test_kernels_that_look_back():
    path = Path(__file__).parents[1] / "Tools" / "kas-run" / "Inputs" / "scans.mlir"
    kernels = kas.Module(path.read_text(encoding="utf-8")).kernels
    cases = [
        (kernels[name], {"C": 3, "L": length, **({"k": 4} if name == "back" else {})})
        for name in ("last", "first", "middle", "back")
        for length in (3, 7, 16)
    ]
    assert check_kernels(cases) >= 24


def test_random_kernels():
    assert check_kernels([(kernel, None) for kernel in random_kernels(20)]) >= 30


@pytest.mark.slow
def test_many_random_kernels():
    assert check_kernels([(kernel, None) for kernel in random_kernels(300, seed=20)]) >= 450


def test_errors_of_kernels():
    kernel = kas.kernel("squeeze_excite")
    with pytest.raises(kas.Error, match=r"requires a value for symbol 'x' of kernel 'squeeze_excite', got none"):
        kernel.to_pytorch("C=4,H=4,W=4")
    with pytest.raises(kas.Error, match=r"requires sizes that are integers .K3., got "):
        kas.kernel("multi_head_attention").to_pytorch("C=4,H=4,W=4,G=3")
