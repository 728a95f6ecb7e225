# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported PyTorch code runs alone and equals the reference."""

import subprocess
import sys

import pytest
import torch
from operators import make_arrays, named_cases, random_operators, relative_error

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
    assert check(named_cases())["einsum"] == 48


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

        def function(data, *weights):
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
    subprocess.run([sys.executable, "-I", "-c", "import sys; sys.path.insert(0, '.')\n" + code], cwd=tmp_path, check=True)


def test_initialization_keeps_the_scale():
    """Behind a rectifier the mean square of activations stays, up to sampling."""
    torch.manual_seed(0)
    op = kas.operator("conv2d")
    module = load(op.to_pytorch({"N": 4, "Cin": 64, "Cout": 64, "H": 8, "W": 8, "k": 1}))
    data = torch.relu(torch.randn(4, 64, 8, 8))
    before, after = data.pow(2).mean(), torch.relu(module(data)).pow(2).mean()
    assert 0.7 < after / before < 1.4
