# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.evaluate.Trainer with compiled steps: the same numbers as with PyTorch's."""

from __future__ import annotations

import dataclasses

import pytest

import kas

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402

from kas import evaluate  # noqa: E402

RECIPE = evaluate.Recipe(epochs=2, batch_size=20, learning_rate=2e-3)


class Small(nn.Module):
    """A stem, a layer with a bias to replace, a normalization and a linear layer."""

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, 1, 1)
        self.layer = nn.Conv2d(8, 8, 3, 1, 1)
        self.norm = nn.BatchNorm2d(8)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm(self.layer(torch.relu(self.stem(x)))))
        return self.head(self.dropout(y.mean((2, 3))))


@pytest.fixture(scope="module")
def data():
    whole = evaluate.load_data("digits")
    return dataclasses.replace(
        whole,
        train=tuple(part[:70] for part in whole.train),
        validation=tuple(part[:50] for part in whole.validation),
        test=tuple(part[:30] for part in whole.test),
    )


def train(data, recipe, backend, operator=None, binding=None, **options):
    if operator and "s" in operator.symbols[1]:
        binding = {"s": 2}
    trainer = evaluate.Trainer(Small(), data, recipe, space="conv2d", binding=binding, backend=backend)
    return trainer.train_once(operator, seed=1, **options)


@pytest.mark.parametrize(
    "changes",
    [
        {"recalibrate": False},
        {"optimizer": "sgd", "clip_gradients": 1.0, "label_smoothing": 0.1},
        {"optimizer": "sgd", "momentum": 0.0, "weight_decay": 0.0},
    ],
)
def test_a_network_is_trained_as_by_pytorch(data, changes):
    recipe = dataclasses.replace(RECIPE, **changes)
    expected, expected_curve = train(data, recipe, "pytorch", test=True)
    metrics, curve = train(data, recipe, "native", test=True)
    assert metrics["loss"] == pytest.approx(expected["loss"], rel=1e-3)
    assert metrics["epochs"] == 2
    assert [(epoch, name) for epoch, name, _ in curve] == [(epoch, name) for epoch, name, _ in expected_curve]
    assert [v for _, name, v in curve if name == "train_loss"] == pytest.approx(
        [v for _, name, v in expected_curve if name == "train_loss"], rel=1e-3
    )


@pytest.mark.parametrize("name", ["conv2d", "syno_operator1", "syno_operator2"])
def test_an_operator_is_trained_as_by_pytorch(data, name):
    operator = kas.operator(name)
    expected, _ = train(data, RECIPE, "pytorch", operator)
    metrics, _ = train(data, RECIPE, "native", operator)
    assert metrics["loss"] == pytest.approx(expected["loss"], rel=1e-3)


BRANCHES = """
kas.operator @rows<N, Cin, Cout, H, W | k>(%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %r = kas.reduce sum : H
  %r_d, %r_w = kas.share %r : H
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %r_d, %w) weight(%h, %r_w) weight(%o, %c_w)
}
kas.operator @window<N, Cin, Cout, H, W | k>(%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  %x = kas.unfold %w, %i_d : W, k
  kas.yield data(%n, %c_d, %h, %x) weight(%o, %c_w, %i_w)
}
kas.operator @last<N, Cin, Cout, H, W | k>(%n: N, %o: Cout, %h: H, %w: W) from [N, JOINED, H, W] {
  %c = kas.reduce sum : JOINED
  %c_d, %c_w = kas.share %c : JOINED
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.sequence @branches [@rows STEP @window, @last] between [normalize_relu]
"""


@pytest.mark.parametrize("step", ["add", "multiply", "join"])
def test_parallel_operators_are_trained_as_by_pytorch(data, step):
    text = BRANCHES.replace("STEP", step).replace("JOINED", "2*Cout" if step == "join" else "Cout")
    sequence = kas.parse(text).sequences["branches"]
    expected, _ = train(data, RECIPE, "pytorch", sequence)
    metrics, _ = train(data, RECIPE, "native", sequence)
    assert metrics["loss"] == pytest.approx(expected["loss"], rel=1e-3)


class OfCosines(Small):
    """With a layer between two fixed cosine transforms along the rows."""

    def __init__(self):
        super().__init__()
        text = """
        kas.operator @modes<N, C, H, W | m>(%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
          %r = kas.reduce sum : H
          %r_d, %r_w = kas.share %r : H
          %m = kas.reduce sum : m
          %m_1, %m_2 = kas.share %m : m
          %m_3, %m_4 = kas.share %m_1 : m
          %c_d, %c_w = kas.share %c : C
          kas.yield data(%n, %c_d, %r_d, %w) weight(%m_3, %r_w) weight(%c_w, %m_4) weight(%m_2, %h)
        }
        """
        m, x = torch.arange(4)[:, None], torch.arange(10)
        basis = (torch.where(m == 0, 1.0, 2.0) / 10).sqrt() * torch.cos(torch.pi * m * (2 * x + 1) / 20)
        sizes = {"N": 20, "C": 8, "H": 10, "W": 10, "m": 4}
        self.layer = kas.torch.KasModule(kas.parse(text)["modes"], sizes, "pytorch", fixed={0: basis, 2: basis})


def test_fixed_weights_stay_as_they_are(data):
    networks = {}
    losses = {}
    for backend in ("pytorch", "native"):
        torch.manual_seed(0)
        trainer = evaluate.Trainer(OfCosines(), data, RECIPE, backend=backend)
        training = trainer.start(None, seed=1)
        training.advance(RECIPE.epochs)
        losses[backend] = training.evaluate()["loss"]
        networks[backend] = training.network
    assert losses["native"] == pytest.approx(losses["pytorch"], rel=1e-3)
    before = OfCosines().layer
    for network in networks.values():
        torch.testing.assert_close(network.layer.weight0, before.weight0)
        torch.testing.assert_close(network.layer.weight2, before.weight2)
        assert not torch.equal(network.layer.weight1, before.weight1)
    torch.testing.assert_close(
        networks["native"].layer.weight1, networks["pytorch"].layer.weight1, rtol=1e-2, atol=1e-3
    )


def test_sizes_of_the_user_take_the_place_of_those_of_layers(data):
    expected, _ = train(data, RECIPE, "pytorch", kas.operator("conv2d"), {"k": 5})
    metrics, _ = train(data, RECIPE, "native", kas.operator("conv2d"), {"k": 5})
    assert metrics["loss"] == pytest.approx(expected["loss"], rel=1e-3)


def test_a_training_goes_on_from_a_checkpoint(data, tmp_path):
    whole, _ = train(data, RECIPE, "native")
    file = tmp_path / "training.pt"
    assert train(data, RECIPE, "native", epochs=1, checkpoint=file)[0]["epochs"] == 1
    rest, _ = train(data, RECIPE, "native", checkpoint=file)
    assert rest["loss"] == whole["loss"]


def test_the_reason_is_given_where_a_network_is_not_taken(data):
    dropout = evaluate.Trainer(Small(0.5), data, RECIPE, space="conv2d", backend="native")
    with pytest.raises(evaluate.TrainingFailure, match="requires a network without dropout, got one in 'dropout'"):
        dropout.train_once(None)
    wide = evaluate.Trainer(Small(), data, dataclasses.replace(RECIPE, batch_size=71), space="conv2d", backend="native")
    with pytest.raises(evaluate.TrainingFailure, match="requires at least one whole batch of 71 examples, got 70"):
        wide.train_once(None)


def test_a_loss_of_nan_is_a_failure(data):
    recipe = dataclasses.replace(RECIPE, optimizer="sgd", learning_rate=1e30, warmup_steps=0, recalibrate=False)
    with pytest.raises(evaluate.TrainingFailure, match="the loss is"):
        train(data, recipe, "native")


def test_operators_are_put_into_a_network():
    """Under names that it does not have, and not at all where something is wrong."""
    exported = kas.torch.to_mlir(nn.Conv2d(4, 4, 3, padding=1, bias=False), torch.zeros(1, 4, 8, 8))
    module = exported.module.run("kas-extract")
    ((space, _),) = [entry for entry in module.symbols.items() if entry[1] == "kas.space"]
    before = str(module)
    # The operator has the name of the space, then that of the operator of before.
    text = str(kas.operator("conv2d").alone()).replace("@conv2d", f"@{space}")
    for operator, layers, binding, message in [
        ("func.func private @g()", [], "", "requires a kas.operator or a kas.sequence as the last op"),
        ("", [], "", "requires a kas.operator or a kas.sequence as the last op"),
        ("kas.operator @a", [], "", "expected"),
        (text, [], "k=", "k="),
        (text, ["none"], "", "none"),
    ]:
        with pytest.raises(kas.Error, match=message):
            module._handle.substitute(operator, space, layers, binding)
        assert str(module) == before
    assert module._handle.substitute(text, space, [], "k=3") == []
    assert module.operators == [f"{space}_0"] and f"kas.apply @{space}_0" in str(module)
    module.verify()
