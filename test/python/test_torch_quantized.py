# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized networks under torch.compile with kas: those of PT2E and products of int8, and steps while training."""

import importlib

import pytest
import torch
from small_networks import WeightsInBytes
from torch.nn import functional

import kas
import kas.torch


@pytest.fixture(autouse=True)
def _make_operations():
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compile_and_compare(call, *inputs, tolerance=1e-5):
    """All of it is compiled; of results that are rounded some are the next step."""
    kas.torch.explain()
    expected = call(*inputs)
    found = torch.compile(call, backend="kas")(*inputs)
    for graph in kas.torch.explain():
        assert graph.reason is None and not graph.left, graph
    for one, other in zip(*(value if isinstance(value, tuple) else (value,) for value in (found, expected))):
        assert one.dtype == other.dtype
        one, other = one.double(), other.double()
        assert torch.allclose(
            one, other, rtol=tolerance, atol=tolerance * other.nan_to_num().abs().max(), equal_nan=True
        )


def get_operations():
    return torch.ops.quantized_decomposed


class PerChannel(WeightsInBytes):
    """A convolution and a linear layer in bytes with a step per channel; data with known or chosen steps."""

    def __init__(self, is_dynamic):
        super().__init__()
        self.is_dynamic = is_dynamic

    def round(self, x, scale, zero):
        operations, rest = get_operations(), (0, 255, torch.uint8)
        if not self.is_dynamic:
            rounded = operations.quantize_per_tensor.default(x, scale, zero, *rest)
            return operations.dequantize_per_tensor.default(rounded, scale, zero, *rest)
        steps = operations.choose_qparams.tensor(x, 0, 255, 1e-6, torch.uint8)
        rounded = operations.quantize_per_tensor.tensor(x, *steps, *rest)
        return operations.dequantize_per_tensor.tensor(rounded, *steps, *rest)

    def forward(self, x):
        x = functional.relu(functional.conv2d(self.round(x, 0.03, 128), self.weigh("first", -128), padding=1))
        return functional.linear(self.round(x.mean((2, 3)), 0.02, 3), self.weigh("second", -128))


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_pt2e(is_dynamic):
    network, x = PerChannel(is_dynamic).eval(), torch.randn(2, 3, 9, 7)
    with torch.no_grad():
        compile_and_compare(network, x)
        exported = kas.torch.to_mlir(network, x, fold_batch_norms=False)
        found = exported.module.compile("forward")(x, *exported.tensors.values())
        assert (torch.as_tensor(found) - network(x)).abs().max() < 1e-4


def test_operations_of_quantized_networks():
    operations, x = get_operations(), torch.randn(4, 16)
    scales, zeros = torch.rand(4) / 9 + 0.01, torch.tensor([0, 3, -9, 1])
    signed, groups = (-128, 127, torch.int8), (torch.rand(4, 2) + 0.1, torch.zeros(4, 2, dtype=torch.int32))

    def quantize(x, scales, zeros):
        rounded = operations.quantize_per_channel.default(x, scales, zeros, 0, *signed)
        return rounded, operations.dequantize_per_channel.default(rounded, scales, zeros, 0, *signed)

    def quantize_tokens(x):
        steps = operations.choose_qparams_per_token_asymmetric.default(x, torch.int8)
        rounded = operations.quantize_per_token.default(x, *steps, *signed)
        return rounded, operations.dequantize_per_token.default(rounded, *steps, *signed, torch.float32) + 1

    def quantize_groups(x, scales, zeros):
        rounded = operations.quantize_per_channel_group.default(x, scales, zeros, *signed, 8)
        return rounded, operations.dequantize_per_channel_group.default(
            rounded, scales, zeros, *signed, 8, torch.float32
        )

    def quantize_symmetric(x):
        steps = operations.choose_qparams_symmetric.tensor(x, -128, 127, 1e-6, torch.int8)
        return *steps, operations.quantize_per_tensor.tensor(x, *steps, *signed)

    for dtype in (torch.float32, torch.bfloat16):
        compile_and_compare(quantize, x.to(dtype), scales, zeros)
    compile_and_compare(quantize_tokens, x)
    compile_and_compare(quantize_groups, x, *groups)
    compile_and_compare(quantize_symmetric, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_of_bytes(dtype):
    """Data and weights in bytes, as torchao computes a linear layer."""
    weight, scale = torch.randint(-128, 128, (12, 16), dtype=torch.int8), torch.rand(12).to(dtype)

    def multiply(x, weight, scale):
        step = x.abs().amax(-1, keepdim=True) / 127
        rounded = torch.clamp((x / step).round(), -128, 127).to(torch.int8)
        return torch._int_mm(rounded, weight.T.contiguous()).to(x.dtype) * step * scale

    compile_and_compare(multiply, torch.randn(24, 16).to(dtype), weight, scale, tolerance=1e-2)


def test_operations_on_bytes_alone():
    """Of an operation that takes no wider types all that is around it is compiled."""
    weight, scale = torch.randint(-9, 9, (32, 64), dtype=torch.int8), torch.rand(32, dtype=torch.bfloat16)

    def multiply(x, weight, scale):
        return torch.sin(torch.ops.aten._weight_int8pack_mm((x * 2).sin(), weight, scale) * 2).exp()

    x = torch.randn(4, 64, dtype=torch.bfloat16)
    kas.torch.explain()
    found = torch.compile(multiply, backend="kas")(x, weight, scale)
    assert torch.allclose(found, multiply(x, weight, scale), rtol=0.1, atol=0.1)
    (graph,) = kas.torch.explain()
    assert [name for name, _ in graph.left] == ["aten._weight_int8pack_mm.default"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_steps_while_training(dtype):
    x = torch.randn(4, 6).to(dtype) * 9
    x[0, 0], x[1, 1], x[2, 2] = float("nan"), float("inf"), -float("inf")
    scales, zeros = torch.tensor([0.1, 0.2, 0.03, 0.4]), torch.tensor([0, 3, -5, 7], dtype=torch.int32)
    by_channel, by_tensor = torch.fake_quantize_per_channel_affine, torch.fake_quantize_per_tensor_affine
    tolerance = 1e-9 if dtype == torch.float64 else 1e-6
    compile_and_compare(lambda x, s, z: by_channel(x, s, z, 0, -128, 127) * 2, x, scales, zeros, tolerance=tolerance)
    compile_and_compare(
        lambda x, s, z: by_channel(x, s, z, 1, -9, 255) * 2,
        x.T.contiguous(),
        scales,
        zeros.float(),
        tolerance=tolerance,
    )
    compile_and_compare(lambda x: by_tensor(x, 0.1, 3, -128, 127) * 2, x, tolerance=tolerance)
    compile_and_compare(
        lambda x, s, z: by_tensor(x, s, z, -128, 127) * 2, x, scales[:1], zeros[1:2], tolerance=tolerance
    )


def test_gradients_of_steps():
    def quantize(x, scales, zeros):
        return torch.fake_quantize_per_channel_affine(x, scales, zeros, 0, -12, 17).sin()

    x, scales, zeros = torch.randn(4, 6) * 2, torch.full((4,), 0.1), torch.tensor([0, 3, -5, 7], dtype=torch.int32)
    gradients = []
    for call in (quantize, torch.compile(quantize, backend="kas")):
        data = x.clone().requires_grad_()
        call(data, scales, zeros).sum().backward()
        gradients.append(data.grad)
    assert (gradients[0] == 0).any() and torch.allclose(*gradients, atol=1e-5)
