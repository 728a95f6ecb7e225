# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training as an evaluator: data, recipes, failures, the JSON-lines process, proxies."""

import json
import math
import os
import pickle
import subprocess
import sys

import numpy
import pytest
import torch
from torch import nn

import kas
from kas import evaluate
from kas.evaluate import proxies

QUICK = evaluate.Recipe(epochs=3, batch_size=10)


def few(count):
    """So many images to train with, and as many for each evaluation."""
    data = evaluate.digits(train=count, validation=count)
    test = tuple(part[:count] for part in data.test)
    return evaluate.Data(data.name, data.train, data.validation, test, data.num_classes)


@pytest.fixture(scope="module")
def trainer():
    return evaluate.Trainer(evaluate.DigitsNetwork(), few(100), QUICK)


@pytest.fixture(scope="module")
def runs(trainer, conv):
    """Metrics and curve of two trainings, by seed."""
    return [trainer.train_once(conv, seed, test=True) for seed in range(2)]


@pytest.fixture(scope="module")
def conv():
    return kas.operator("conv2d")


def test_digits():
    data = evaluate.digits()
    assert data.input_shape == (1, 10, 10)
    assert [len(part[0]) for part in (data.train, data.validation, data.test)] == [300, 300, 1197]
    moved = evaluate.load_data("moved_digits")
    assert torch.equal(moved.train[1], data.train[1])
    assert not torch.equal(moved.train[0], data.train[0])
    batches = list(data.batches(50, torch.Generator().manual_seed(0)))
    assert len(batches) == 6 and batches[0][0].shape == (50, 1, 10, 10)


def test_cifar_and_folders(tmp_path):
    generator = numpy.random.default_rng(0)
    for file, count in (("train", 30), ("test", 10)):
        images = generator.integers(0, 256, (count, 3072), dtype=numpy.uint8)
        with open(tmp_path / file, "wb") as stream:
            pickle.dump({b"data": images, b"fine_labels": list(range(count))}, stream)
    data = evaluate.load_data("cifar100", tmp_path, validation=10)
    assert data.input_shape == (3, 32, 32) and data.num_classes == 100
    assert abs(float(data.train[0].mean())) < 1e-4
    inputs, _ = next(data.batches(8, torch.Generator().manual_seed(0)))
    assert inputs.shape == (8, 3, 32, 32)
    # The binary version has a coarse and a fine label before each image.
    (tmp_path / "binary").mkdir()
    for file in ("train", "test"):
        with open(tmp_path / file, "rb") as stream:
            batch = pickle.load(stream)
        records = [bytes([0, n]) + image.tobytes() for image, n in zip(batch[b"data"], batch[b"fine_labels"])]
        (tmp_path / "binary" / f"{file}.bin").write_bytes(b"".join(records))
    assert evaluate.load_data("cifar100", tmp_path / "binary", validation=10).checksum() == data.checksum()
    with pytest.raises(FileNotFoundError, match=r"requires the file 'data_batch_1' of cifar10"):
        evaluate.load_data("cifar10", tmp_path)
    with pytest.raises(ValueError, match=r"give the file or folder that it lies in as path="):
        evaluate.load_data("cifar10")
    with pytest.raises(FileNotFoundError, match=r"there is no folder"):
        evaluate.load_data("folder", tmp_path / "none")
    with pytest.raises(ValueError, match=r"requires no path for the data set 'digits', got '/tmp'"):
        evaluate.load_data("digits", "/tmp")
    with pytest.raises(ValueError, match=r"must be one of fashion-mnist, digits, .* or FILE.py:NAME, got 'x'"):
        evaluate.load_data("x")


def test_a_training_is_repeatable_and_learns(trainer, conv, runs):
    first, curve = runs[1]
    assert trainer.train_once(conv, seed=1, test=True)[0] | {"train_seconds": 0} == first | {"train_seconds": 0}
    assert runs[0][0]["loss"] != first["loss"]
    assert first["accuracy"] > 0.3 and first["epochs"] == 3
    assert [entry[0] for entry in curve if entry[1] == "train_loss"] == [1, 2, 3]


def test_the_same_layers_start_equal(trainer, conv):
    networks = [trainer.network(operator, seed=3) for operator in (None, conv, kas.operator("conv2d_depthwise"))]
    for name in ("stem.weight", "classify.weight", "stage0.1.norm.weight"):
        assert all(torch.equal(networks[0].get_parameter(name), other.get_parameter(name)) for other in networks[1:])


def test_weights_are_inherited(conv):
    model = evaluate.DigitsNetwork()
    data = few(50)
    heir = evaluate.Trainer(model, data, QUICK, inherit=True).network(conv, seed=0)
    assert torch.equal(heir.stem.weight, model.stem.weight)
    assert not torch.equal(evaluate.Trainer(model, data, QUICK).network(conv, seed=0).stem.weight, model.stem.weight)


def test_a_training_goes_on_from_a_checkpoint(trainer, conv, runs, tmp_path):
    whole, _ = runs[0]
    file = tmp_path / "training.pt"
    assert trainer.train_once(conv, epochs=1, checkpoint=file)[0]["epochs"] == 1
    rest, curve = trainer.train_once(conv, checkpoint=file)
    assert (rest["accuracy"], rest["epochs"], len(curve)) == (whole["accuracy"], 3, 7)
    assert rest["loss"] == pytest.approx(whole["loss"], rel=1e-6)


def test_seeds(trainer, conv, runs):
    metrics = evaluate.Trainer(trainer.model, trainer.data, QUICK, seeds=2)(
        evaluate.Request(0, str(conv), [{"N": 1}], [1])
    )
    one, other = (metrics for metrics, _ in runs)
    assert metrics["accuracy"] == pytest.approx((one["accuracy"] + other["accuracy"]) / 2)
    assert metrics["test_accuracy_deviation"] == pytest.approx(
        abs(one["test_accuracy"] - other["test_accuracy"]) / math.sqrt(2)
    )


class Broken(nn.Module):
    """Gives NaN, or asks for too much memory."""

    def __init__(self, how):
        super().__init__()
        self.network, self.how = evaluate.DigitsNetwork(), how

    def forward(self, x):
        y = self.network(x)
        if self.training and self.how == "nan":
            return y * math.nan
        if self.training and self.how == "memory":
            return y + torch.empty(1 << 48)[:10]
        return y


@pytest.mark.parametrize(
    "how, reason", [("nan", "the loss is nan in step 0 of epoch 0"), ("memory", "out of memory: .*alloc")]
)
def test_failures_have_reasons(how, reason):
    trainer = evaluate.Trainer(Broken(how), few(50), QUICK)
    with pytest.raises(evaluate.TrainingFailure, match=reason):
        trainer.evaluate(None)


def test_limits(trainer, conv):
    recipe = evaluate.Recipe(epochs=3, batch_size=10, milestones={1: 0.99})
    with pytest.raises(evaluate.TrainingFailure, match=r"the accuracy after 1 epochs must be at least 0.99, got 0"):
        evaluate.Trainer(trainer.model, trainer.data, recipe).evaluate(conv)
    with pytest.raises(evaluate.TrainingFailure, match=r"the time was up in epoch 1 of 3"):
        evaluate.Trainer(trainer.model, trainer.data, QUICK, time_limit=1e-3).evaluate(conv)
    with pytest.raises(evaluate.TrainingFailure, match=r"the operator does not fit: .*'linear' does not fit"):
        trainer.evaluate(kas.operator("linear"))


def test_sgd_with_label_smoothing(trainer, conv):
    recipe = evaluate.Recipe(
        epochs=3, batch_size=10, optimizer="sgd", learning_rate=0.05, label_smoothing=0.1, clip_gradients=1.0
    )
    assert evaluate.Trainer(trainer.model, trainer.data, recipe).evaluate(conv)["accuracy"] > 0.2


def test_bad_input(trainer):
    data, model = trainer.data, trainer.model
    with pytest.raises(TypeError, match=r"the model must be a torch.nn.Module, got str"):
        evaluate.Trainer("resnet18")
    with pytest.raises(TypeError, match=r"must be a kas.evaluate.Data or the name of a data set, got list"):
        evaluate.Trainer(model, [1, 2])
    with pytest.raises(ValueError, match="the network must give 10 numbers for each input, got the shape \\(3,\\)"):
        evaluate.Trainer(evaluate.DigitsNetwork(num_classes=3), data)
    wide = data.train[0].repeat(1, 3, 1, 1), data.train[1]
    with pytest.raises(ValueError, match="the network does not take data of shape \\(3, 10, 10\\)"):
        evaluate.Trainer(model, evaluate.Data("wide", wide, wide, wide, 10))
    with pytest.raises(ValueError, match="'test' must have inputs of shape \\(1, 10, 10\\), got \\(3, 10, 10\\)"):
        evaluate.Data("mixed", data.train, data.validation, wide, 10)
    with pytest.raises(ValueError, match=r"must have classes from 0 to 4, got 0 to 9"):
        evaluate.Data("few", data.train, data.validation, data.test, 5)
    with pytest.raises(ValueError, match=r"no layer that an operator can take the place of"):
        evaluate.Trainer(nn.Sequential(nn.Flatten(), nn.LayerNorm(100), nn.AdaptiveAvgPool1d(10)), data)
    with pytest.raises(ValueError, match=r"no layers of the space 'conv9d', only of conv1x1_stem, conv2d"):
        evaluate.Trainer(model, data, space="conv9d")
    with pytest.raises(ValueError, match=r"'epochs' of a recipe must be an integer of at least 1, got 0"):
        evaluate.Recipe(epochs=0)
    with pytest.raises(ValueError, match=r"'learning_rate' of a recipe must be a finite number of at least 0, got nan"):
        evaluate.Recipe(learning_rate=math.nan)


def run_process(lines, *arguments):
    command = [sys.executable, "-m", "kas.evaluate", "--epochs=1", *arguments]
    return subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)


def test_json_lines(conv):
    lines = [
        json.dumps({"id": 7, "operator": str(conv), "bindings": [{"N": 1}], "multiplicities": [1]}),
        "no JSON",
        json.dumps({"id": 8, "operator": "kas.operator @wrong"}),
        json.dumps({"id": 9, "kernel": "kas.kernel"}),
    ]
    process = run_process(lines)
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [7, None, 8, 9]
    assert 0 < answers[0]["metrics"]["accuracy"] <= 1
    assert "expected '('" in answers[2]["error"] and "got a kernel" in answers[3]["error"]


def test_kas_opt_searches_with_the_process(trainer, tmp_path):
    build = os.environ.get("KAS_BUILD", "build")
    (tmp_path / "space.mlir").write_text(trainer.sites.spaces["conv2d"].text)
    options = (
        f"evaluations=2 evaluators=flops,external objective=-accuracy algorithm=random seed=1 time-limit=120 "
        f"external='exec {sys.executable} -m kas.evaluate --epochs=1'"
    )
    command = [os.path.join(build, "bin", "kas-opt"), str(tmp_path / "space.mlir"), f"-kas-search={options}"]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("train_seconds = ") == 2
    assert process.stdout.count("test_accuracy = ") == 2


def test_proxies(trainer, conv):
    space = trainer.sites.spaces["conv2d"]
    features = proxies.static_features(conv, space.bindings, space.multiplicities)
    assert features["flops"] == features["nest_flops"] == 1843200
    assert features["params"] == 2 * (16 * 16 + 32 * 32) * 9
    # At 5x5 a window of 3x3 in a frame of zeros sees 169 of 225 neighbours.
    assert features["positions_seen"] == pytest.approx(169 / 25)
    assert features["points_seen"] == pytest.approx(32 * 169 / 25)
    assert (features["channels_seen"], features["data_used"], features["weights_indexed_by_position"]) == (32, 1, 0)
    assert features["positions_seen_twice"] == pytest.approx((3 + 4 + 5 + 4 + 3) ** 2 / 25)
    scores = proxies.initialization_scores(trainer, conv, seed=0)
    assert set(scores) == {"grad_norm", "snip", "fisher", "naswot", "synflow"}
    assert all(math.isfinite(score) for score in scores.values())
    assert scores == proxies.initialization_scores(trainer, conv, seed=0)
    teacher = proxies.make_teacher(trainer)
    dense, pool = (proxies.fit_error(trainer, op, teacher, steps=20) for op in (conv, kas.operator("conv2d_depthwise")))
    assert dense < pool < 1.5


def test_combination():
    generator = numpy.random.default_rng(0)
    rows = [{"a": float(a), "b": float(b), "noise": float(c)} for a, b, c in generator.lognormal(size=(60, 3))]
    accuracies = [math.log(row["a"]) - 0.5 * math.log(row["b"]) for row in rows]
    learned = proxies.Combination().fit(rows, accuracies)
    assert learned.is_trusted and learned.rank_correlation > 0.95
    assert learned.weights["a"] > 0 > learned.weights["b"]
    assert proxies.rank_correlation(learned.predict(rows), accuracies) > 0.95
    # Nothing to learn: not trusted, and it says the mean.
    noise = proxies.Combination().fit(rows, generator.standard_normal(60))
    assert not noise.is_trusted and numpy.ptp(noise.predict(rows)) == 0
    assert not proxies.Combination().fit(rows[:5], accuracies[:5]).is_trusted
    assert math.isnan(proxies.rank_correlation([1, 1], [1, 2]))
    assert proxies.rank_correlation([1, 2, 2, 4], [1, 2, 2, 5]) == pytest.approx(1)
