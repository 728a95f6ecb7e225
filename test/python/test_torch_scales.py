# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Structured linear layers start and learn as dense ones do: `kas.torch.weight_scales`."""

import math
import os
import subprocess
from pathlib import Path

import pytest
import torch

import kas
import kas.torch

BUILD = Path(os.environ.get("KAS_BUILD", "build")).resolve()
SLOW = bool(os.environ.get("KAS_SLOW_TESTS"))
ROWS = 64
TOLERANCE = 0.1

# At widths that are a power of two; `root` is a divisor near the square root.
FAMILIES = {
    "linear": lambda width, root: {},
    "linear_low_rank": lambda width, root: {"r": width // 8},
    "linear_block_diagonal": lambda width, root: {"g": 4},
    "linear_kronecker": lambda width, root: {"p": root, "g": root},
    "linear_monarch": lambda width, root: {"g": root, "p": root},
    "linear_monarch_transposed": lambda width, root: {"g": root, "p": root},
    "linear_block_tensor_train": lambda width, root: {"g": root, "p": root, "r": 2},
    "linear_shuffled_groups": lambda width, root: {"g": 4},
    "linear_blast": lambda width, root: {"b": 4, "r": width // 16},
    "linear_butterfly3": lambda width, root: {"r": 4},
    "linear_toeplitz": lambda width, root: {"k": 7},
}
SPACE = """
kas.space @found<N, Cin, Cout | g, r>
    [N, Cout] from [N, Cin]
    bindings [<N = 5, Cin = 64, Cout = 64, g = 4, r = 2>, <N = 5, Cin = 2048, Cout = 512, g = 4, r = 2>]
    limits {depth = 7, reduce = 3, split = 1, shift = 0, weights = 2}
"""


def bind(name, width):
    root = 1 << ((width.bit_length() - 1) // 2)
    sizes = {"C": width} if name in ("linear_butterfly3", "linear_toeplitz") else {"Cin": width, "Cout": width}
    return {"N": ROWS, **sizes, **FAMILIES[name](width, root)}


def measure(operator, binding, gain=1.0, gaussian=False):
    """Variance of outputs, and what steps along signs and gradients change, over what a dense layer's do."""
    # Sums over few elements are far from their means.
    smallest = min(math.prod(shape) for shape in operator.shapes(binding).weights)
    draws = 8 + 3000 // smallest
    scales = kas.torch.weight_scales(operator, binding, gain=gain)
    module = kas.torch.KasModule(operator, binding, "pytorch")
    shapes = operator.shapes(binding)
    variance = signed = proportional = 0.0
    for _ in range(draws):
        with torch.no_grad():
            for weight, scale in zip(module.weights, scales, strict=True):
                # Variances know second moments alone; those of few normal weights are far from their means.
                weight.normal_() if gaussian else weight.copy_(torch.randint(2, weight.shape) * 2.0 - 1)
                weight *= scale.deviation
        data, delta = torch.randn(shapes.data), torch.randn(shapes.output)
        output = module(data)
        gradients = torch.autograd.grad((output * delta).sum(), module.weights)
        dense = data.T @ delta
        variance += output.detach().square().mean().item() / draws
        parts = [scale.adam * gradient.abs().sum() for scale, gradient in zip(scales, gradients, strict=True)]
        signed += (sum(parts) / dense.abs().sum()).item() / draws
        parts = [scale.sgd * gradient.square().sum() for scale, gradient in zip(scales, gradients, strict=True)]
        proportional += (sum(parts) / dense.square().sum()).item() / draws
    return variance, signed, proportional


@pytest.mark.parametrize("width", [64, 256, 2048])
@pytest.mark.parametrize("name", FAMILIES)
def test_named_layers_are_as_dense_ones(name, width):
    torch.manual_seed(0)
    ratios = measure(kas.operator(name), bind(name, width))
    assert ratios == pytest.approx((1, 1, 1), abs=TOLERANCE)


@pytest.mark.parametrize("name", ["linear_monarch", "linear_low_rank"])
def test_normal_weights_and_gain(name):
    torch.manual_seed(1)
    variance, signed, proportional = measure(kas.operator(name), bind(name, 256), gain=2**0.5, gaussian=True)
    assert variance == pytest.approx(2, rel=TOLERANCE)
    assert (signed, proportional) == pytest.approx((1, 1), abs=TOLERANCE)


@pytest.mark.parametrize("width", [64, 2048] if SLOW else [64])
def test_found_layers_are_as_dense_ones(width, tmp_path):
    (tmp_path / "space.mlir").write_text(SPACE)
    found = tmp_path / "found.mlir"
    search = "-kas-search=algorithm=uniform evaluations=200 seed=1"
    subprocess.run([BUILD / "bin/kas-opt", tmp_path / "space.mlir", search, "-o", found], check=True)
    module = kas.load(found)
    operators = [module[name] for name in module.operators]
    assert len(operators) == 200
    torch.manual_seed(0)
    binding = {"N": ROWS, "Cin": width, "Cout": width, "g": 4, "r": 2}
    wrong = {}
    for operator in operators:
        ratios = measure(operator, binding)
        if any(abs(ratio - 1) > TOLERANCE for ratio in ratios):
            wrong[operator.formula] = ratios
    assert not wrong


def test_scales_of_a_dense_layer():
    (scale,) = kas.torch.weight_scales(kas.operator("linear"), {"N": 3, "Cin": 16, "Cout": 8})
    assert scale == kas.torch.WeightScale(0.25, pytest.approx(1), pytest.approx(1))


def test_groups_of_parameters():
    operator = kas.operator("linear_monarch")
    binding = bind("linear_monarch", 64)
    network = torch.nn.Sequential(kas.torch.KasModule(operator, binding, "pytorch"), torch.nn.Linear(64, 10))
    kas.torch.scale_weights(network)
    scales = kas.torch.weight_scales(operator, binding)
    deviations = [weight.std().item() for weight in network[0].weights]
    assert deviations == pytest.approx([scale.deviation for scale in scales], rel=0.1)
    for optimizer, rates in (("adam", [s.adam for s in scales]), ("sgd", [s.sgd for s in scales])):
        groups = kas.torch.parameter_groups(network, 0.01, optimizer)
        assert [len(group["params"]) for group in groups] == [2, 1, 1]
        assert groups[0]["lr"] == 0.01
        assert [group["lr"] for group in groups[1:]] == pytest.approx([0.01 * rate for rate in rates], rel=0.2)
    torch.optim.Adam(kas.torch.parameter_groups(network, 0.01))


def test_initializations_need_no_gradients():
    binding = bind("linear_monarch", 64)
    network = torch.nn.Sequential(kas.torch.KasModule(kas.operator("linear_monarch"), binding, "pytorch"))
    torch.manual_seed(0)
    kas.torch.scale_weights(network)
    weights = [weight.detach().clone() for weight in network[0].weights]
    torch.manual_seed(0)
    with torch.no_grad():
        kas.torch.scale_weights(network)
    assert all((weight == other).all() for weight, other in zip(network[0].weights, weights, strict=True))


def test_groups_leave_other_modules_alone():
    convolution = kas.torch.KasModule(kas.operator("conv2d"), "N=1,Cin=4,Cout=4,H=8,W=8,k=3", "pytorch")
    (group,) = kas.torch.parameter_groups(torch.nn.Sequential(convolution, torch.nn.Linear(8, 8)), 0.1)
    assert group["lr"] == 0.1 and len(group["params"]) == 3


def test_layers_that_share_a_weight():
    layers = [kas.torch.KasModule(kas.operator("linear"), "N=2,Cin=8,Cout=8", "pytorch") for _ in range(2)]
    layers[1].weight0 = layers[0].weight0
    groups = kas.torch.parameter_groups(torch.nn.Sequential(*layers), 0.1)
    assert [len(group["params"]) for group in groups] == [1]
    torch.optim.SGD(groups)


@pytest.mark.parametrize("kind", ["max", "mean"])
def test_sums_alone(kind):
    text = f"""
    kas.operator @other<N, Cin, Cout>(%n: N, %o: Cout) from [N, Cin] {{
      %c = kas.reduce {kind} : Cin
      %d, %w = kas.share %c : Cin
      kas.yield data(%n, %d) weight(%o, %w)
    }}"""
    with pytest.raises(
        kas.Error, match="requires a linear layer of sums, got the operator 'other' with maxima or means"
    ):
        kas.torch.weight_scales(kas.parse(text)["other"], "N=2,Cin=4,Cout=4")


def test_one_row_and_one_element():
    (scale,) = kas.torch.weight_scales(kas.operator("linear"), "N=1,Cin=1,Cout=1")
    assert scale == kas.torch.WeightScale(1.0, pytest.approx(1), pytest.approx(1))


def test_errors():
    with pytest.raises(kas.Error, match="requires a linear layer"):
        kas.torch.weight_scales(kas.operator("conv2d"), "N=1,Cin=4,Cout=4,H=8,W=8,k=3")
    with pytest.raises(ValueError, match="gain must be positive, got 0"):
        kas.torch.weight_scales(kas.operator("linear"), "N=1,Cin=4,Cout=4", gain=0)
    with pytest.raises(TypeError, match=r"expected a kas\.Operator"):
        kas.torch.weight_scales("linear", "N=1,Cin=4,Cout=4")
    with pytest.raises(ValueError, match="must be 'adam' or 'sgd', got 'lion'"):
        kas.torch.parameter_groups(torch.nn.Linear(2, 2), 0.1, "lion")
