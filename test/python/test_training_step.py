# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps as programs (-kas-training-step) against PyTorch's in double precision."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy
import pytest

import kas

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402

import kas.torch  # noqa: E402

BATCH = 8


class Residual(nn.Module):
    """A block of stride 2 with a shortcut of 1x1."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.conv0 = nn.Conv2d(inputs, outputs, 3, 2, 1, bias=False)
        self.norm0 = nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.short = nn.Conv2d(inputs, outputs, 1, 2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(self.conv1(torch.relu(self.norm0(self.conv0(x)))))
        return torch.relu(y + self.short(x))


def residual() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, 1, 1, bias=False),
        nn.BatchNorm2d(6, eps=1e-3),
        nn.ReLU(),
        Residual(6, 8),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )


def separable() -> nn.Module:
    # No bias before a normalization: its gradient is nothing but rounding, which AdamW makes steps of.
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.ReLU6(),
        nn.Conv2d(8, 8, 3, 2, 2, dilation=2, groups=8, bias=False),
        nn.BatchNorm2d(8),
        nn.Conv2d(8, 12, 1),
        nn.ReLU(),
        nn.Conv2d(12, 12, 3, 1, 1, groups=4, bias=False),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12, 16, bias=False),
        nn.BatchNorm1d(16, affine=False),
        nn.Linear(16, 5),
    )


class Attention(nn.Module):
    """One layer of a Transformer on the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3 * 9, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.embed(x.permute(0, 2, 1, 3).flatten(2))
        return self.head(self.layer(tokens).mean(1))


def train_by_kas(network: nn.Module, options: str, images, labels, learning_rate: float):
    """The losses, and all parameters, statistics and state after the steps."""
    exported = kas.torch.to_mlir(network, images[0], fold_batch_norms=False)
    function = exported.module.run(f"kas-training-step{{{options}}}").compile("train_step", threads=1)
    assert [name for name, _ in function.arguments[:3]] == ["input", "labels", "learning_rate"]
    values = {name: tensor.detach().numpy().copy() for name, tensor in exported.tensors.items()}
    for name, shape in function.arguments[3:]:
        values.setdefault(name, numpy.zeros(shape, numpy.float32))
    names = [name for name, _ in function.arguments[3:]]
    assert [name for name, _ in function.results[2:]] == names
    losses, correct = [], []
    for batch, numbers in zip(images, labels):
        results = function(
            batch.numpy(),
            numbers.numpy().astype(numpy.float32),
            numpy.array(learning_rate, numpy.float32),
            *values.values(),
        )
        losses.append(float(results[0]))
        correct.append(float(results[1]))
        values = dict(zip(names, results[2:]))
    return losses, correct, values


def train_by_torch(network: nn.Module, make_optimizer: Callable, make_loss: Callable, clip: float, images, labels):
    network = copy.deepcopy(network).double().train()
    matrices = [parameter for parameter in network.parameters() if parameter.dim() >= 2]
    others = [parameter for parameter in network.parameters() if parameter.dim() < 2]
    optimizer = make_optimizer([{"params": matrices}, {"params": others, "weight_decay": 0.0}])
    losses, correct = [], []
    for batch, numbers in zip(images, labels):
        optimizer.zero_grad()
        logits = network(batch.double())
        loss = make_loss(logits, numbers)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(network.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
        correct.append(float((logits.argmax(1) == numbers).sum()))
    return losses, correct, network.state_dict()


SGD = ("momentum=0.9 nesterov=1 weight-decay=0.01 label-smoothing=0.1", 0.0, 0.02)
ADAMW = ("optimizer=adamw weight-decay=0.05 clip-norm=0.5", 0.5, 2e-3)


@pytest.mark.parametrize("make", [residual, separable, Attention])
@pytest.mark.parametrize("options,clip,learning_rate", [SGD, ADAMW])
def test_equals_pytorch(make, options: str, clip: float, learning_rate: float) -> None:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(1)
    network = make()
    images = [torch.randn(BATCH, 3, 9, 9, generator=generator) for _ in range(10)]
    labels = [torch.randint(0, 5, (BATCH,), generator=generator) for _ in images]
    losses, correct, values = train_by_kas(network, options, images, labels, learning_rate)
    if "adamw" in options:
        expected = train_by_torch(
            network,
            lambda groups: torch.optim.AdamW(groups, lr=learning_rate, weight_decay=0.05),
            nn.functional.cross_entropy,
            clip,
            images,
            labels,
        )
    else:
        expected = train_by_torch(
            network,
            lambda groups: torch.optim.SGD(groups, lr=learning_rate, momentum=0.9, nesterov=True, weight_decay=0.01),
            lambda logits, numbers: nn.functional.cross_entropy(logits, numbers, label_smoothing=0.1),
            clip,
            images,
            labels,
        )
    assert losses == pytest.approx(expected[0], rel=1e-4)
    assert correct == expected[1]
    for name, value in expected[2].items():
        if name.endswith("num_batches_tracked"):
            continue
        wanted, actual = value.numpy(), values[name]
        if name.endswith("in_proj_bias"):
            # Softmax does not see a bias of the keys: its gradient is nothing but rounding.
            wanted, actual = (numpy.delete(array, numpy.s_[16:32]) for array in (wanted, actual))
        error = numpy.abs(actual - wanted).max()
        assert error <= 1e-4 * max(numpy.abs(wanted).max(), 1e-2), name


OPERATORS = {
    "conv2d_depthwise_separable": {},
    "conv2d_spatially_separable": {},
    "bottleneck": {"r": 2},
    "shift_conv2d": {},
    "syno_operator1": {"g": 2, "s": 2},
    "syno_operator2": {"g": 2, "s": 2},
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_in_the_place_of_layers(name: str) -> None:
    """Steps of a network with an operator, in the stages that take the least time to train, equal PyTorch's."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, 1, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )
    images = [torch.randn(BATCH, 3, 8, 8, generator=generator) for _ in range(5)]
    labels = [torch.randint(0, 5, (BATCH,), generator=generator) for _ in images]
    operator = kas.operator(name)
    sizes = {"N": BATCH, "Cin": 8, "Cout": 8, "C": 8, "H": 8, "W": 8, "k": 3, "k1": 3, **OPERATORS[name]}
    replaced = kas.torch.KasModule(
        operator, {symbol: sizes[symbol] for symbols in operator.symbols for symbol in symbols}, "pytorch"
    )

    exported = kas.torch.to_mlir(network, images[0], fold_batch_norms=False)
    coefficients = ",".join(f"{symbol}={sizes[symbol]}" for symbol in operator.symbols[1])
    module = exported.module.run("kas-extract")
    module.run(f"kas-substitute{{operator=kas.{name} space=@conv2d bind={coefficients}}}")
    assert str(module).count("kas.apply @") == 1
    step = module.run("kas-specialize,kas-rfactor{cost=training traffic=8},kas-training-step{nesterov=1}")
    function = step.compile("train_step", threads=1)

    network[3] = replaced
    weights = {f"3.weight.{number}": weight.detach().numpy().copy() for number, weight in enumerate(replaced.weights)}
    tensors = {key: tensor.detach().numpy().copy() for key, tensor in exported.tensors.items()} | weights
    values = {key: tensors.get(key, numpy.zeros(shape, numpy.float32)) for key, shape in function.arguments[3:]}
    assert set(weights) <= set(values)
    losses = []
    for batch, numbers in zip(images, labels):
        targets = numbers.numpy().astype(numpy.float32)
        results = function(batch.numpy(), targets, numpy.array(0.05, numpy.float32), *values.values())
        losses.append(float(results[0]))
        values = dict(zip(values, results[2:]))
    expected, _, state = train_by_torch(
        network,
        lambda groups: torch.optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True),
        nn.functional.cross_entropy,
        0.0,
        images,
        labels,
    )
    assert losses == pytest.approx(expected, rel=1e-4)
    for key in weights:
        wanted = state[key.replace("weight.", "weight")].numpy()
        assert numpy.abs(values[key] - wanted).max() <= 1e-4 * numpy.abs(wanted).max(), key


def test_mean_squared_error_and_evaluation() -> None:
    torch.manual_seed(0)
    network = nn.Linear(6, 3)
    data, targets = torch.randn(4, 6), torch.randn(4, 3)
    exported = kas.torch.to_mlir(network, data)
    module = exported.module.run("kas-training-step{loss=mse momentum=0}")
    tensors = [tensor.detach().numpy() for tensor in exported.tensors.values()]
    results = module.compile("train_step")(data.numpy(), targets.numpy(), numpy.array(0.5, numpy.float32), *tensors)
    loss = nn.functional.mse_loss(network(data), targets)
    loss.backward()
    assert float(results[0]) == pytest.approx(loss.item(), rel=1e-6)
    for result, parameter in zip(results[2:], network.parameters()):
        numpy.testing.assert_allclose(result, (parameter - 0.5 * parameter.grad).detach().numpy(), rtol=1e-5, atol=1e-6)
    evaluated = module.compile("evaluate")(data.numpy(), targets.numpy(), *tensors)
    assert float(evaluated[0]) == pytest.approx(loss.item(), rel=1e-6)


def test_first_of_equal_logits_counts() -> None:
    network = nn.Linear(2, 3)
    exported = kas.torch.to_mlir(network, torch.zeros(3, 2))
    evaluate = exported.module.run("kas-training-step").compile("evaluate")
    zeros = [numpy.zeros(shape, numpy.float32) for _, shape in evaluate.arguments[2:]]
    labels = numpy.array([0, 1, 2], numpy.float32)
    _, correct = evaluate(numpy.ones((3, 2), numpy.float32), labels, *zeros)
    assert float(correct) == 1


@pytest.mark.parametrize("label", [3.0, -1.0, 0.5, float("nan")])
def test_label_out_of_range(label: float) -> None:
    network = nn.Linear(2, 3)
    exported = kas.torch.to_mlir(network, torch.zeros(2, 2))
    step = exported.module.run("kas-training-step").compile("train_step")
    arguments = [numpy.zeros(shape, numpy.float32) for _, shape in step.arguments]
    arguments[1][1] = label
    with pytest.raises(kas.Error, match="requires labels that are numbers of classes, less than 3"):
        step(*arguments)


# Inputs, outputs, window, stride, padding, dilation, groups, height and width.
CONVOLUTIONS = [
    (8, 8, 3, 1, 1, 1, 1, 32, 32),
    (5, 7, 3, 1, 1, 1, 1, 28, 28),
    (4, 6, 3, 2, 1, 1, 1, 33, 35),
    (6, 6, 3, 1, 1, 1, 6, 16, 40),
    (6, 12, 3, 2, 1, 1, 6, 18, 18),
    (8, 16, 3, 1, 1, 1, 4, 12, 12),
    (8, 8, 3, 2, 1, 1, 4, 16, 16),
    (3, 4, 5, 1, 2, 1, 1, 10, 70),
    (3, 4, 3, 1, 2, 2, 1, 9, 17),
    (8, 12, 1, 1, 0, 1, 1, 7, 9),
    (8, 12, 1, 2, 0, 1, 1, 15, 15),
    (2, 3, (1, 7), 1, (0, 3), 1, 1, 5, 50),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_gradients_of_weights(case) -> None:
    inputs, outputs, window, stride, padding, dilation, groups, height, width = case
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(inputs, outputs, window, stride, padding, dilation, groups, bias=False),
        nn.Flatten(),
    )
    data = torch.randn(6, inputs, height, width)
    logits = network(data)
    targets = torch.randn_like(logits)
    exported = kas.torch.to_mlir(network, data)
    threads = 2 if groups > 1 else 1
    step = exported.module.run("kas-training-step{loss=mse momentum=0}").compile("train_step", threads=threads)
    weight = network[0].weight
    results = step(data.numpy(), targets.numpy(), numpy.array(1, numpy.float32), weight.detach().numpy())
    network.double()
    nn.functional.mse_loss(network(data.double()), targets.double()).backward()
    gradient = network[0].weight.grad.numpy()
    actual = weight.detach().numpy().astype(numpy.float64) - results[2]
    numpy.testing.assert_allclose(actual, gradient, atol=1e-5 * numpy.abs(weight.detach().numpy()).max())


def _freeze(norm):
    return norm.eval()


def _freeze_weights(norm):
    return norm.requires_grad_(False)


NORMS = {
    "default": lambda: nn.BatchNorm2d(6),
    "eps": lambda: nn.BatchNorm2d(6, eps=0.1),
    "momentum 0.01": lambda: nn.BatchNorm2d(6, momentum=0.01),
    "momentum 0.3": lambda: nn.BatchNorm2d(6, momentum=0.3),
    "momentum 0": lambda: nn.BatchNorm2d(6, momentum=0.0),
    "momentum 1": lambda: nn.BatchNorm2d(6, momentum=1.0),
    "momentum 0.00001": lambda: nn.BatchNorm2d(6, momentum=1e-5),
    "mean of all": lambda: nn.BatchNorm2d(6, momentum=None),
    "no affine": lambda: nn.BatchNorm2d(6, affine=False, momentum=0.2),
    "no statistics": lambda: nn.BatchNorm2d(6, track_running_stats=False),
    "frozen": lambda: _freeze(nn.BatchNorm2d(6)),
    "frozen weights": lambda: _freeze_weights(nn.BatchNorm2d(6)),
}


@pytest.mark.parametrize("name", NORMS)
def test_training_moves_statistics_as_pytorch(name):
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1, bias=False),
        NORMS[name](),
        nn.ReLU(),
        nn.Conv2d(6, 6, 1),
        nn.BatchNorm2d(6, momentum=0.4),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 5),
    )
    if network[1].running_mean is not None:
        network[1].running_mean.normal_()
    reference = copy.deepcopy(network).double()
    x, y = torch.randn(8, 3, 8, 8) * 2 + 1, torch.randint(0, 5, (8,))
    exported = kas.torch.to_mlir(network, x, fold_batch_norms=False)
    step = exported.module.run("kas-training-step{momentum=0}").compile("train_step")
    values = {name: value.clone() for name, value in exported.tensors.items()}
    optimizer = torch.optim.SGD([p for p in reference.parameters() if p.requires_grad], 0.1)
    for _ in range(3):
        results = step(x, y.float(), torch.tensor(0.1), *values.values())
        values = dict(zip(values, map(torch.as_tensor, results[2:])))
        optimizer.zero_grad()
        nn.functional.cross_entropy(reference(x.double()), y).backward()
        optimizer.step()
    theirs = dict(reference.named_parameters()) | dict(reference.named_buffers())
    for key, value in values.items():
        expected = theirs[key].detach().to(torch.float32)
        torch.testing.assert_close(value, expected, rtol=1e-3, atol=1e-5, msg=lambda text, key=key: f"{key}: {text}")
