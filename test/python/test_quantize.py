# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks with layers in int8."""

from __future__ import annotations

import importlib
import math
import pathlib
from typing import Any

import numpy
import pytest

import kas

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from small_networks import WeightsInBytes  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import kas.torch  # noqa: E402
import kas.zoo  # noqa: E402
from kas._quantize import measure_layer_errors, measure_ranges, split_weights  # noqa: E402

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


@pytest.mark.parametrize("prepack_weights", [False, True])
def test_values(prepack_weights: bool) -> None:
    torch.manual_seed(0)
    network = Network().eval()
    batches = [torch.randn(2, 3, 9, 11) for _ in range(3)]
    exported = kas.torch.to_mlir(network, batches[0])
    weights = list(exported.tensors.values())
    quantized = kas.quantize(exported.module, batches, weights)
    assert str(quantized).count("arith.extui") == 4
    assert "forward_ranges" not in str(quantized)
    run = quantized.compile("forward", threads=1, prepack_weights=prepack_weights)
    simulated = Simulated(network, measure_ranges(exported.module, batches, weights))
    with torch.no_grad():
        for batch in batches:
            expected = simulated(batch.double())
            call = run.bind(batch, *weights)
            if prepack_weights:
                call.prepack()
            output = call()
            largest = expected.abs().max()
            # A value between two bytes may be rounded to the other one.
            assert (output - expected).abs().max() < 0.01 * largest
            assert (output - network(batch)).abs().max() < 0.05 * largest


@pytest.mark.parametrize("rectified", [False, True])
@pytest.mark.parametrize("pool", [nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(2), nn.MaxPool2d(3, 1, 1)])
def test_maxima_of_bytes(pool: nn.Module, rectified: bool) -> None:
    """What is read by two layers is quantized before its maxima, which padding takes no part in."""
    torch.manual_seed(0)
    first = nn.Conv2d(3, 8, 3)
    second, third = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, padding=1)

    class Pooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.third = first, second, third

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.first(x)
            x = pool(functional.relu(x) if rectified else x - 1)
            return self.second(x) + self.third(x)

    network = Pooled().eval()
    batches = [torch.randn(2, 3, 38, 75) for _ in range(2)]
    exported = kas.torch.to_mlir(network, batches[0])
    weights = list(exported.tensors.values())
    quantized = kas.quantize(exported.module, batches, weights)
    assert "arith.maxui" in str(quantized.clone().run("func.func(kas-fuse-elementwise,kas-lower-pooling)"))
    call = quantized.compile("forward", threads=1, prepack_weights=True).bind(batches[0], *weights)
    call.prepack()
    with torch.no_grad():
        expected = network(batches[0])
    assert (call() - expected).abs().max() < 0.03 * expected.abs().max()


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
    """Of found operators, too, the layers that sum over channels are int8, and decisions stay the same."""
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


def test_kept_layers() -> None:
    """Layers stay f32 where the bound asks for it: first the one whose result bytes change most."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    # Bytes of the second layer's data are all 0 but for one place.
    network[0].weight.data[3] *= 1e4
    network[2].weight.data[:, 3] *= 1e-4
    batches = [torch.rand(5, 8) for _ in range(2)]
    exported = kas.torch.to_mlir(network, batches[0])
    weights = list(exported.tensors.values())
    errors = measure_layer_errors(exported.module, measure_ranges(exported.module, batches, weights), batches, weights)
    assert len(errors) == 3
    assert errors[1] == max(errors) > 10 * max(errors[0], errors[2])
    free = kas.quantize(exported.module, batches, weights)
    bound = kas.quantize(exported.module, batches, weights, max_error=0.05)
    assert str(free).count("arith.extui") == 3
    assert str(bound).count("arith.extui") == 2

    def measure(module: kas.Module) -> float:
        run = module.compile("forward")
        with torch.no_grad():
            pairs = [(run(batch, *weights), network(batch)) for batch in batches]
        largest = max(expected.abs().max() for _, expected in pairs)
        return float(max((found - expected).abs().max() for found, expected in pairs) / largest)

    assert measure(bound) <= 0.05 < measure(free)
    # No error at all: all layers are f32.
    exact = kas.quantize(exported.module, batches, weights, max_error=0)
    assert "arith.extui" not in str(exact)
    # A bound that holds anyway changes nothing.
    assert str(kas.quantize(exported.module, batches, weights, max_error=10)) == str(free)
    for wrong in (-1, math.nan, "small"):
        with pytest.raises(ValueError, match=f"'max_error' must be a number of at least 0, got {wrong!r}"):
            kas.quantize(exported.module, batches, weights, max_error=wrong)  # type: ignore[arg-type]


def make_quantized(network: nn.Module, batches: list[torch.Tensor], folder: pathlib.Path, **options: Any) -> str:
    """The file of the network with pairs of quantization and dequantization, by ONNX Runtime's quantizer."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    plain, quantized = str(folder / "plain.onnx"), str(folder / "quantized.onnx")
    torch.onnx.export(network, (batches[0],), plain, opset_version=17, dynamo=False, input_names=["x"])

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.batches = iter(batches)

        def get_next(self) -> Any:
            batch = next(self.batches, None)
            return None if batch is None else {"x": batch.numpy()}

    quantization.quantize_static(plain, quantized, Reader(), quant_format=quantization.QuantFormat.QDQ, **options)
    return quantized


@pytest.mark.parametrize("data", ["QUInt8", "QInt8"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_quantized_onnx(tmp_path: pathlib.Path, data: str, per_channel: bool) -> None:
    """Files with QDQ pairs: layers are int8, and results are those of ONNX Runtime up to a step."""
    runtime = pytest.importorskip("onnxruntime")
    kinds = pytest.importorskip("onnxruntime.quantization").QuantType
    onnx = pytest.importorskip("kas.onnx")
    torch.manual_seed(0)
    network = Network().eval()
    batches = [torch.randn(2, 3, 9, 11) for _ in range(4)]
    path = make_quantized(
        network, batches, tmp_path, per_channel=per_channel, activation_type=kinds[data], weight_type=kinds.QInt8
    )
    loaded = onnx.load(path)
    text = str(loaded.module)
    # Four layers; the depthwise one stays f32, or a named operation.
    assert text.count("arith.extui") >= 4
    assert "linalg.conv_2d_nchw_fchw " not in text
    assert "linalg.matmul" not in text
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    run = loaded.module.compile("forward", prepack_weights=True)
    for batch in batches:
        (expected,) = session.run(None, {"x": batch.numpy()})
        call = run.bind(batch.numpy(), *loaded.tensors.values())
        call.prepack()
        found = call()
        step = numpy.unique(numpy.abs(numpy.diff(numpy.unique(expected))))[0]
        # Sums between two bytes may be rounded to the other one, in each of the layers.
        assert numpy.abs(found - expected).max() <= 4 * step
        with torch.no_grad():
            plain = network(batch).numpy()
        assert numpy.abs(found - plain).max() < 0.1 * numpy.abs(plain).max()


class Rounded(WeightsInBytes):
    """A convolution and a linear layer in bytes, as PyTorch's PT2E flow writes them."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ops = torch.ops.quantized_decomposed
        rounded = [0.03, -5, -128, 127, torch.int8]
        x = ops.dequantize_per_tensor.default(ops.quantize_per_tensor.default(x, *rounded), *rounded)
        x = functional.relu(functional.conv2d(x, self.weigh("first", -127), self.bias, padding=1))
        rounded = [0.1, 0, 0, 255, torch.uint8]
        x = ops.dequantize_per_tensor.default(ops.quantize_per_tensor.default(x.mean((2, 3)), *rounded), *rounded)
        return x @ self.weigh("second", -127).T


def test_quantized_pt2e(tmp_path: pathlib.Path) -> None:
    """A file of an exported program that is quantized: layers are int8."""
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    torch.manual_seed(0)
    network, x = Rounded().eval(), torch.randn(2, 3, 9, 7)
    torch.export.save(torch.export.export(network, (x,)), tmp_path / "network.pt2")
    restored = torch.export.load(tmp_path / "network.pt2").module()
    exported = kas.torch.to_mlir(restored, x, fold_batch_norms=False)
    assert not any("zero_point" in name for name in exported.tensors)
    text = str(exported.module)
    assert text.count("arith.extui") == 2
    assert "linalg.conv_2d" not in text
    assert "linalg.matmul" not in text
    call = exported.module.compile("forward", prepack_weights=True).bind(x, *exported.tensors.values())
    call.prepack()
    with torch.no_grad():
        assert (call() - network(x)).abs().max() < 1e-4


def test_network_of_found_operators() -> None:
    """Operators that are kept as such in a network: their stages that sum over channels are int8."""
    network = kas.zoo.create("pooled64_fashion_found_1")
    generator = numpy.random.default_rng(0)
    batch = torch.from_numpy(generator.normal(size=(8, 1, 32, 32)).astype(numpy.float32))
    exported = kas.torch.to_mlir(network, batch, fold_batch_norms=False, keep_operators=True)
    assert "kas.apply" in str(exported.module)
    weights = list(exported.tensors.values())
    quantized = kas.quantize(exported.module, [batch], weights)
    assert "kas.apply" not in str(quantized)
    # All but the first layer, which has one channel, and the depthwise ones.
    assert str(quantized).count("arith.extui") == 6
    output = quantized.compile("forward")(batch, *weights)
    with torch.no_grad():
        expected = network(batch)
    assert (output.argmax(1) == expected.argmax(1)).float().mean() >= 0.8


def test_weights_are_bytes_ahead_of_the_function() -> None:
    torch.manual_seed(0)
    network, x = Network().eval(), torch.randn(2, 3, 9, 9)
    exported = kas.torch.to_mlir(network, x)
    weights = list(exported.tensors.values())
    quantized = kas.quantize(exported.module, [x], weights)
    split, own = split_weights(quantized, weights)
    assert torch.equal(split.compile("forward")(x, *own), quantized.compile("forward")(x, *weights))
    # The layers that are not quantized, biases, steps and offsets are f32.
    layers = [network.first, network.grouped, network.pointwise, network.head]
    assert [one.numel() for one in own if one.dtype == torch.int8] == [layer.weight.numel() for layer in layers]
    assert all(one.dtype == torch.int8 or one.numel() <= network.depthwise.weight.numel() for one in own)
    # Where nothing becomes smaller all stays.
    same, kept = split_weights(exported.module, weights)
    assert same is exported.module and all(one is two for one, two in zip(kept, weights, strict=True))
    assert split_weights(exported.module, []) == (exported.module, [])
