# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators as one convolution equal their PyTorch code, and their gradients do."""

import copy

import pytest
import torch
from operators import make_arrays, named_cases, random_operators, relative_error

import kas
import kas.torch

BINDING = {"N": 2, "Cin": 3, "Cout": 4, "H": 6, "W": 5, "k": 3}


def run(module, data, gradient):
    data = data.clone().requires_grad_()
    output = module(data)
    (output * gradient).sum().backward()
    return [output.detach(), data.grad, *(weight.grad for weight in module.weights)]


def check(cases):
    """How many operators have the form; all of those are compared in f64."""
    reasons = []
    for number, (operator, binding) in enumerate(cases):
        try:
            effective = kas.torch.KasModule(operator, binding, "effective").double()
        except (kas.Error, ValueError) as error:
            assert "requires" in str(error)
            reasons.append(str(error))
            continue
        exact = kas.torch.KasModule(operator, binding, "pytorch").double()
        exact.load_state_dict(effective.state_dict())
        data = torch.from_numpy(make_arrays(operator, binding, seed=number)[0]).double()
        gradient = torch.rand(operator.shapes(binding).output, dtype=torch.float64)
        for one, other in zip(run(effective, data, gradient), run(exact, data, gradient)):
            # A weight that nothing reads has no gradient in one of them.
            if one is not None and other is not None:
                assert relative_error(one, other) < 1e-10, f"{operator.name}\n{operator}\n{binding}"
    return len(cases) - len(reasons)


def test_named_operators():
    assert check(named_cases()) >= 35


def test_random_operators():
    assert check(random_operators(60)) >= 15


def test_in_other_batches_and_traced():
    torch.manual_seed(0)
    module = kas.torch.KasModule(kas.operator("conv2d_depthwise_separable"), BINDING, "effective", bias_dim=1)
    exact = kas.torch.KasModule(kas.operator("conv2d_depthwise_separable"), BINDING, "pytorch", bias_dim=1)
    exact.load_state_dict(module.state_dict())
    traced = torch.compile(copy.deepcopy(module), backend="aot_eager", fullgraph=True)
    shapes = ({0: torch.export.Dim("n")},)
    exported = torch.export.export(module, (torch.randn(2, 3, 6, 5),), dynamic_shapes=shapes).module()
    for shape in [(2, 3, 6, 5), (4, 3, 6, 5), (0, 3, 6, 5)]:
        x = torch.randn(shape)
        assert torch.allclose(module(x), exact(x), atol=1e-5) and torch.allclose(traced(x), exact(x), atol=1e-5)
        assert shape[0] == 0 or torch.allclose(exported(x), exact(x), atol=1e-5)
    x = torch.randn(2, 3, 9, 7)
    assert torch.allclose(module(x), exact(x), atol=1e-5)


def test_a_binding_of_one_example_takes_batches():
    for name in ("conv2d_depthwise_separable", "conv2d_grouped", "shift_conv2d"):
        binding = {"N": 1, "Cin": 8, "Cout": 8, "H": 5, "W": 6, "k": 3, "g": 2}
        names = [symbol for symbols in kas.operator(name).symbols for symbol in symbols]
        binding = {symbol: binding[symbol] for symbol in names}
        module = kas.torch.KasModule(kas.operator(name), binding, "effective")
        exact = kas.torch.KasModule(kas.operator(name), binding, "pytorch")
        exact.load_state_dict(module.state_dict())
        for batch in (1, 3):
            x = torch.randn(batch, 8, 5, 6)
            assert torch.allclose(module(x), exact(x), atol=1e-5), name


def test_operators_that_are_none():
    pool, binding = kas.operator("max_pool2d"), {"N": 2, "C": 3, "H": 4, "W": 4, "k": 3, "s": 2}
    with pytest.raises(kas.Error, match="requires sums and means, got a maximum"):
        kas.torch.KasModule(pool, binding, "effective")
