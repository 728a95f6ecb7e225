# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences of operators: in modules, in PyTorch, in networks."""

import pytest
import torch
from torch import nn

import kas
import kas.torch
from kas.zoo._layers import SEQUENCES

SEPARABLE = SEQUENCES["depthwise-separable-relu"]
BINDING = {"N": 2, "Cin": 4, "Cout": 6, "H": 5, "W": 7, "k": 3}


def get_separable():
    return kas.parse(SEPARABLE).sequences["separable"]


def test_a_sequence_has_operators_and_steps():
    sequence = get_separable()
    assert [operator.name for operator in sequence.operators] == ["depthwise", "pointwise"]
    assert sequence.steps == ["normalize_relu"]
    assert sequence.symbols == (["N", "Cin", "H", "W", "Cout"], ["k"])
    assert sequence.sizes["weights"] == [["Cin", "k", "k"], ["Cout", "Cin"]]
    shapes = sequence.shapes(BINDING)
    assert shapes.data == (2, 4, 5, 7)
    assert shapes.weights == ((4, 3, 3), (6, 4))
    assert shapes.output == (2, 6, 5, 7)
    assert sequence.shapes("N=2,Cin=4,Cout=6,H=5,W=7,k=3") == shapes


def test_a_sequence_alone_is_a_module_of_its_own():
    other = kas.parse(f"{SEPARABLE}\n{kas.operator('conv2d')}").sequences["separable"]
    alone = other.alone()
    assert alone.module.operators == ["depthwise", "pointwise"]
    assert str(alone) == str(get_separable())


def test_errors_say_what_was_required():
    with pytest.raises(KeyError, match=r"requires a kas.sequence 'depthwise' in the module, got a kas.operator"):
        kas.OperatorSequence(kas.parse(SEPARABLE), "depthwise")
    with pytest.raises(KeyError, match=r"requires a kas.sequence 'x' in the module, got none"):
        kas.OperatorSequence(kas.parse(SEPARABLE), "x")
    with pytest.raises(ValueError, match="requires values for H, W, k in the binding of 'separable', got none"):
        get_separable().shapes({"N": 1, "Cin": 4, "Cout": 4})
    with pytest.raises(TypeError, match=r"expected a kas.OperatorSequence, got Operator"):
        kas.torch.SequenceModule(kas.operator("conv2d"), BINDING)


@pytest.mark.parametrize("backend", ["pytorch", "compiled"])
def test_a_module_is_the_layers_of_pytorch(backend):
    torch.manual_seed(0)
    module = kas.torch.SequenceModule(get_separable(), BINDING, backend, threads=1, bias_dim=1)
    assert [name for name, _ in module.named_parameters()] == [
        "0.weight0",
        "0.norm.weight",
        "0.norm.bias",
        "1.weight0",
        "1.bias",
    ]
    depthwise, norm = nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False), nn.BatchNorm2d(4)
    pointwise = nn.Conv2d(4, 6, 1)
    depthwise.weight.data = module[0].weight0.detach()[:, None].clone()
    pointwise.weight.data = module[1].weight0.detach()[:, :, None, None].clone()
    nn.init.zeros_(pointwise.bias)
    layers = nn.Sequential(depthwise, norm, nn.ReLU(), pointwise)
    data = torch.randn(2, 4, 5, 7)
    torch.testing.assert_close(module(data), layers(data), rtol=1e-4, atol=1e-5)
    module(data).square().sum().backward()
    layers(data).square().sum().backward()
    torch.testing.assert_close(module[0].weight0.grad, depthwise.weight.grad[:, 0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(module[0].norm.running_mean, norm.running_mean, rtol=1e-4, atol=1e-5)


def test_steps_between_operators():
    data = torch.randn(2, 4, 5, 7)
    for step in ("none", "relu", "normalize", "normalize_relu"):
        sequence = kas.parse(SEPARABLE.replace("normalize_relu", step)).sequences["separable"]
        stage = kas.torch.SequenceModule(sequence, BINDING, "pytorch")[0]
        output = stage(data)
        assert (output.min() >= 0) == step.endswith("relu")
        assert hasattr(stage, "norm") == step.startswith("normalize")


def test_a_sequence_takes_the_place_of_layers():
    network = nn.Sequential(nn.Conv2d(1, 8, 1), nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1))
    changed = kas.torch.substitute(
        network, get_separable(), example=torch.zeros(2, 1, 8, 8), space="conv2d", backend="pytorch"
    )
    assert [type(module) for module in changed[1:]] == [kas.torch.SequenceModule] * 2
    assert changed[1][1].bias is changed[1].get_parameter("1.bias")
    assert changed(torch.zeros(2, 1, 8, 8)).shape == (2, 8, 8, 8)
