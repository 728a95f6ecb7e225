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


BRANCHES = """
kas.operator @rows<N, C, H, W | k>(%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %r = kas.reduce sum : H
  %r_d, %r_w = kas.share %r : H
  %c_d, %c_w = kas.share %c : C
  kas.yield data(%n, %c_d, %r_d, %w) weight(%c_w, %h, %r_w)
}
kas.operator @mixing<N, C, H, W | k>(%n: N, %o: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c = kas.reduce sum : C
  %c_d, %c_w = kas.share %c : C
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %h, %x) weight(%o, %c_w, %i_w)
}
kas.operator @last<N, C, H, W | k>(%n: N, %o: C, %h: H, %w: W) from [N, 2*C, H, W] {
  %c = kas.reduce sum : 2*C
  %c_d, %c_w = kas.share %c : 2*C
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.sequence @added [@rows add @mixing, @rows] between [normalize_relu]
kas.sequence @gated [@mixing, @rows multiply @mixing] between [relu]
kas.sequence @joined [@rows join @mixing, @last] between [normalize_relu]
kas.sequence @ends_joined [@mixing, @rows join @mixing] between [none]
"""
OF_BRANCHES = {"N": 2, "C": 4, "H": 3, "W": 5, "k": 3}


def compute_branches(name, module, data):
    """The sequences by hand, of modules of their operators and the normalization."""

    def norm(value):
        return nn.functional.batch_norm(value, None, None, training=True).relu()

    def apply(number, x):
        weight = module[number].weight0
        if module[number].operator_name == "rows":
            return torch.einsum("nciw,chi->nchw", x, weight)
        if module[number].operator_name == "last":
            return torch.einsum("nihw,oi->nohw", x, weight)
        return nn.functional.conv2d(x, weight[:, :, None, :], padding=(0, 1))

    if name == "added":
        return apply(2, norm(apply(0, data) + apply(1, data)))
    if name == "gated":
        middle = apply(0, data).relu()
        return apply(1, middle) * apply(2, middle)
    if name == "joined":
        return apply(2, norm(torch.cat([apply(0, data), apply(1, data)], 1)))
    middle = apply(0, data)
    return torch.cat([apply(1, middle), apply(2, middle)], 1)


@pytest.mark.parametrize("name", ["added", "gated", "joined", "ends_joined"])
@pytest.mark.parametrize("backend", ["pytorch", "compiled"])
def test_parallel_operators_are_added_multiplied_or_joined(name, backend):
    torch.manual_seed(0)
    sequence = kas.parse(BRANCHES).sequences[name]
    assert sequence.sizes["output"] == ["N", "2*C" if name == "ends_joined" else "C", "H", "W"]
    module = kas.torch.SequenceModule(sequence, OF_BRANCHES, backend, threads=1, bias_dim=1)
    data = torch.randn(2, 4, 3, 5, requires_grad=True)
    bias = module[-1].bias
    with torch.no_grad():
        bias.normal_()
    output = module(data)
    assert output.shape == sequence.shapes(OF_BRANCHES).output
    expected = compute_branches(name, module, data) + bias[:, None, None]
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)
    tensors = [data, *(parameter for key, parameter in module.named_parameters() if "norm" not in key)]
    gradients = torch.autograd.grad(output.square().sum(), tensors)
    expected_gradients = torch.autograd.grad(expected.square().sum(), tensors)
    for one, other in zip(gradients, expected_gradients):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["added", "gated", "joined", "ends_joined"])
def test_gradients_of_parallel_operators_are_differences(name):
    torch.manual_seed(0)
    sequence = kas.parse(BRANCHES).sequences[name]
    module = kas.torch.SequenceModule(sequence, OF_BRANCHES, "pytorch").double()
    assert torch.autograd.gradcheck(module, torch.randn(2, 4, 3, 5, dtype=torch.float64, requires_grad=True))
    for parameter in module.parameters():
        with torch.no_grad():
            parameter.add_(0.1)
    names = [name for name, _ in module.named_parameters()]

    def compute(data, *values):
        return torch.func.functional_call(module, dict(zip(names, values)), (data,))

    values = [torch.randn_like(parameter, requires_grad=True) for parameter in module.parameters()]
    assert torch.autograd.gradcheck(compute, (torch.randn(2, 4, 3, 5, dtype=torch.float64), *values))


def test_steps_of_parallel_operators():
    sequence = kas.parse(BRANCHES).sequences["gated"]
    assert sequence.steps == ["relu", "multiply"]
    assert [sequence.is_parallel(number) for number in range(3)] == [False, False, True]
    assert kas.OperatorSequence(kas.parse(str(sequence)), "gated").steps == sequence.steps
