# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks whose layers multiply bytes."""

from __future__ import annotations

import math

import numpy
import pytest

import kas

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import kas.torch  # noqa: E402
import kas.zoo  # noqa: E402
from kas._quantize import measure_ranges  # noqa: E402

Range = tuple[float, float]


class Network(nn.Module):
    """Padding, strides, groups, a depthwise convolution, a residual, layers with and without a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 20, 3, padding=1)
        self.grouped = nn.Conv2d(20, 20, 3, padding=1, groups=2, bias=False)
        self.depthwise = nn.Conv2d(20, 20, 3, padding=1, groups=20)
        self.pointwise = nn.Conv2d(20, 34, 1, stride=2)
        self.head = nn.Linear(34, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.hardtanh(self.first(x), -0.7, 2.0)
        x = x + self.grouped(x)
        x = functional.relu(self.pointwise(self.depthwise(x)))
        return self.head(x.mean((2, 3)))


class Simulated(Network):
    """The same in double precision, on values that are rounded as bytes are."""

    def __init__(self, network: Network, ranges: list[Range]):
        super().__init__()
        self.load_state_dict(network.state_dict())
        self.double()
        layers = [self.first, self.grouped, self.pointwise, self.head]
        for layer, (lower, upper) in zip(layers, ranges, strict=True):
            scale = layer.weight.abs().amax(tuple(range(1, layer.weight.ndim)), keepdim=True) / 127
            layer.weight.data = (layer.weight.data / scale.clamp(min=1e-30)).round().clamp(-127, 127) * scale
            layer.register_forward_pre_hook(lambda _, inputs, a=lower, b=upper: self.round(inputs[0], a, b))

    @staticmethod
    def round(x: torch.Tensor, lower: float, upper: float) -> torch.Tensor:
        step = (upper - lower) / 255
        zero = math.floor(-lower / step + 0.5)
        return ((x / step + zero).round().clamp(0, 255) - zero) * step


@pytest.mark.parametrize("prepare_weights", [False, True])
def test_values(prepare_weights: bool) -> None:
    torch.manual_seed(0)
    network = Network().eval()
    batches = [torch.randn(2, 3, 9, 11) for _ in range(3)]
    exported = kas.torch.to_mlir(network, batches[0])
    weights = list(exported.tensors.values())
    quantized = kas.quantize(exported.module, batches, weights)
    assert str(quantized).count("arith.extui") == 4
    assert "forward_ranges" not in str(quantized)
    run = quantized.compile("forward", threads=1, prepare_weights=prepare_weights)
    simulated = Simulated(network, measure_ranges(exported.module, batches, weights))
    with torch.no_grad():
        for batch in batches:
            expected = simulated(batch.double())
            call = run.bind(batch, *weights)
            if prepare_weights:
                call.prepare()
            output = call()
            largest = expected.abs().max()
            # A value between two bytes may be rounded to the other one.
            assert (output - expected).abs().max() < 0.01 * largest
            assert (output - network(batch)).abs().max() < 0.05 * largest


def test_ranges() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
    batches = [torch.rand(5, 8) + 1, torch.rand(5, 8) - 3]
    exported = kas.torch.to_mlir(network, batches[0])
    ranges = measure_ranges(exported.module, batches, list(exported.tensors.values()))
    with torch.no_grad():
        inner = torch.cat([network[:2](batch) for batch in batches])
    both = torch.cat(batches)
    assert ranges[0] == pytest.approx((both.min().item(), both.max().item()))
    assert ranges[1] == pytest.approx((0, inner.max().item()))


def test_beyond_the_range() -> None:
    """Values that calibration has not seen are clipped, NaN is some byte, and nothing else changes."""
    network = nn.Linear(4, 2, bias=False).eval()
    network.weight.data = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0]])
    exported = kas.torch.to_mlir(network, torch.zeros(3, 4))
    weights = list(exported.tensors.values())
    quantized = kas.quantize(exported.module, [torch.tensor([[-1.0, 0, 0, 1.55]] * 3)], weights)
    x = torch.tensor([[5.0, -7, 0, 0], [float("inf"), -float("inf"), 0, 0], [float("nan"), 0.5, 0, 0]])
    output = quantized.compile("forward")(x, *weights)
    assert output[:2].tolist() == [pytest.approx([1.55, -1.0])] * 2
    assert output[2, 1].item() == pytest.approx(0.5)
    assert math.isfinite(output[2, 0])


def test_zero_weights_and_data() -> None:
    network = nn.Linear(8, 3).eval()
    network.weight.data.zero_()
    exported = kas.torch.to_mlir(network, torch.zeros(2, 8))
    weights = list(exported.tensors.values())
    quantized = kas.quantize(exported.module, [torch.zeros(2, 8)], weights)
    output = quantized.compile("forward")(torch.ones(2, 8), *weights)
    assert output.tolist() == [pytest.approx(network.bias.tolist())] * 2


def test_errors() -> None:
    network = nn.Linear(8, 3).eval()
    exported = kas.torch.to_mlir(network, torch.zeros(2, 8))
    weights = list(exported.tensors.values())
    with pytest.raises(ValueError, match="at least one batch of data to calibrate with, got none"):
        kas.quantize(exported.module, [], weights)
    with pytest.raises(kas.Error, match="requires finite ranges of data, got"):
        kas.quantize(exported.module, [torch.full((2, 8), float("inf"))], weights)
    with pytest.raises(kas.Error, match="requires a function with a body, got 'backward'"):
        kas.quantize(exported.module, [torch.zeros(2, 8)], weights, function="backward")
    depthwise = kas.torch.to_mlir(nn.Conv2d(4, 4, 3, groups=4).eval(), torch.zeros(1, 4, 8, 8))
    with pytest.raises(kas.Error, match="requires a function with layers that sum products"):
        kas.quantize(depthwise.module, [torch.zeros(1, 4, 8, 8)], list(depthwise.tensors.values()))


def test_found_network() -> None:
    """Of found operators, too, the layers that sum over channels multiply bytes, and decisions stay the same."""
    network = kas.zoo.create("pooled64_fashion_found_1")
    generator = numpy.random.default_rng(0)
    batch = torch.from_numpy(generator.normal(size=(32, 1, 32, 32)).astype(numpy.float32))
    exported = kas.torch.to_mlir(network, batch, fold_batch_norms=False)
    weights = list(exported.tensors.values())
    quantized = kas.quantize(exported.module, [batch], weights)
    output = quantized.compile("forward")(batch, *weights)
    with torch.no_grad():
        expected = network(batch)
    assert (output.argmax(1) == expected.argmax(1)).float().mean() >= 0.9
