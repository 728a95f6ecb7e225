# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks of one's own: losses, metrics, steps, optimizers, data, networks that functions make, chosen layers."""

import dataclasses
import json
import math
import pathlib
import pickle
import subprocess
import sys

import pytest
import torch
from own_tasks import QUICK, SEARCH, Moments, Nearness, load, make_data, make_network, noise
from test_docs import run_page
from torch import nn
from torch.nn import functional

import kas
import kas.distributed
import kas.report
import kas.torch
from kas import cli, evaluate
from kas._search_setup import fit_limits
from kas.evaluate._workers import Job, Pool


class Renamed(Moments):
    """Another task with the same metrics."""


class OnlyLoss(evaluate.Task):
    def loss(self, outputs, targets):
        return functional.l1_loss(outputs, targets)


@pytest.fixture(scope="module")
def page():
    return run_page("guide/own-tasks.md")


def test_regression(page):
    outcome = page["angles"]
    assert outcome.is_complete and len(outcome.finalists) == 1
    assert set(outcome.dense) == {"degrees", "loss", "test_degrees"}
    # Of angles between -45 and 45 the mean is off by 22.5.
    assert 0 < outcome.dense["degrees"] < 15 and outcome.best.metrics["final_degrees"] < 20
    assert [e.id for e in outcome.fully_trained] == sorted(
        (e.id for e in outcome.trained), key=lambda id: outcome.trained[id].metrics["degrees"]
    )
    assert page["trainer"].data.loader is page["load"]


def test_segmentation(page):
    outcome = page["segments"]
    assert outcome.is_complete and outcome.best is outcome.finalists[0]
    # The last layer and the first one are no sites.
    assert sorted(outcome.trainer.sites.sites) == ["3", "6"]
    assert 0.3 < outcome.dense["iou"] <= 1
    ranked = [entry.metrics["iou"] for entry in outcome.fully_trained]
    assert ranked == sorted(ranked, reverse=True)
    training = outcome.trainer.start(None)
    groups = training.optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [1e-3, 0]
    assert {parameter.dim() for parameter in groups[1]["params"]} == {1}


def test_language_model(page):
    outcome = page["outcome"]
    assert outcome.is_complete and not outcome.failures
    assert set(outcome.trainer.sites.sites) == {
        f"blocks.{block}.{name}" for block in range(2) for name in ("attend", "project", "up", "down")
    }
    chance = math.log2(len(page["ALPHABET"]))
    for metrics in [outcome.dense, outcome.best.metrics]:
        prefix = "" if metrics is outcome.dense else "final_"
        assert metrics[f"{prefix}test_bits_per_character"] < 0.7 * chance
        assert metrics[f"{prefix}bits_per_character"] == pytest.approx(metrics[f"{prefix}loss"] / math.log(2), rel=1e-5)
    network = outcome.trainer.network(outcome.best.operator)
    replaced = [name for name, module in network.named_modules() if isinstance(module, kas.torch.KasModule)]
    assert len(replaced) == 8 and isinstance(network.last, nn.Linear)


def sees_the_future(network, inputs):
    """By gradients: whether what is given at a place depends on the embedding of a later one."""
    embedded = (network.letters(inputs) + network.places).detach().requires_grad_()
    outputs = network.last(network.blocks(embedded))
    for place in range(inputs.shape[1] - 1):
        (gradient,) = torch.autograd.grad(outputs[:, place].square().sum(), embedded, retain_graph=True)
        if gradient[:, place + 1 :].abs().max() > 0:
            return True
    return False


def test_operators_of_the_language_model_do_not_see_the_future(page):
    """None of the space that is searched; of the whole space of such layers those that the task rejects."""
    trainer, inputs = page["outcome"].trainer, page["texts"]().validation[0]
    whole = trainer.sites.spaces["batched_linear"]
    candidates = fit_limits(whole, {"shift": 0, "weights_by_position": 0, "equivariant": 1}).list()
    assert len(candidates) > 20
    for candidate in candidates:
        trainer.task.check(trainer.network(candidate.operator).eval(), inputs)
    seeing = []
    for candidate in whole.list(40)[::2]:
        network = trainer.network(candidate.operator).eval()
        seeing.append(sees_the_future(network, inputs[:1]))
        if seeing[-1]:
            with pytest.raises(evaluate.TrainingFailure, match=r"it sees the characters"):
                trainer.task.check(network, inputs)
        else:
            trainer.task.check(network, inputs)
    assert len(set(seeing)) == 2
    # Before anything is trained.
    cheat = whole.list(40)[2 * seeing.index(True)]
    training = trainer.start(cheat.text)
    with pytest.raises(evaluate.TrainingFailure, match=r"it sees the characters"):
        training.advance(1)
    assert training.step == 0


def test_in_turn(page):
    first, second = page["outcomes"]
    assert (first.trainer.space, second.trainer.space) == ("conv2d", "conv1x1")
    network = second.network(backend="pytorch")
    operators = {m.text for m in network.modules() if isinstance(m, kas.torch.KasModule)}
    assert operators == {str(one.best.operator.alone()) for one in (first, second)}
    # What the second search compares with has the operator of the first.
    assert sum(isinstance(m, kas.torch.KasModule) for m in second.trainer.network(None).modules()) == 4


def make_mixed():
    """Layers of two kinds."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 1),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 1),
        nn.Flatten(),
        nn.Linear(256, 2),
    )


def test_in_turn_goes_on(tmp_path):
    options = {**SEARCH, "spaces": ["conv2d", "conv1x1"], "database": tmp_path / "found.db", "final": 0}
    options.pop("space")
    first = kas.search_in_turn(make_mixed(), make_data(), "1 candidate", **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found-conv1x1.db", "found-conv2d.db"]
    again = kas.search_in_turn(make_mixed(), make_data(), "1 candidate", **options)
    assert [outcome.best.metrics for outcome in again] == [outcome.best.metrics for outcome in first]
    # Of other operators before, the second search is another one.
    options["limits"] = {"shift": 0, "weights": 1}
    (tmp_path / "found-conv2d.db").unlink()
    with pytest.raises(kas.Error, match=r"found before"):
        kas.search_in_turn(make_mixed(), make_data(), "1 candidate", **options)

    class Stop(kas.SearchCallback):
        def candidate(self, entry):
            raise KeyboardInterrupt

    options["database"] = tmp_path / "stopped.db"
    (only,) = kas.search_in_turn(make_mixed(), make_data(), "1 candidate", callbacks=[Stop()], **options)
    assert not only.is_complete
    with pytest.raises(ValueError, match=r"requires each space once, got conv2d, conv2d"):
        kas.search_in_turn(make_network(), make_data(), 1, spaces=["conv2d", "conv2d"])
    for wrong in ([], "conv2d"):
        with pytest.raises(TypeError, match=r"requires a list of at least one space, got"):
            kas.search_in_turn(make_network(), make_data(), 1, spaces=wrong)
    with pytest.raises(TypeError, match=r"'space' is of one search"):
        kas.search_in_turn(make_network(), make_data(), 1, spaces=["conv2d"], space="conv2d")


def test_a_search_by_a_metric(tmp_path, capsys):
    """Less is better in halving, the final round and the database, and the same call goes on."""
    options = {**SEARCH, "halving": kas.Halving(4, (1, None), 0.5), "final": 2, "database": tmp_path / "search.db"}
    outcome = kas.search(make_network(), make_data(), "4 candidates", **options)
    by_epoch = {entry.id: entry.metrics["error"] for entry in outcome.trained if entry.metrics["epochs"] == 1}
    assert len(by_epoch) == 2 and len(outcome.fully_trained) == 2
    errors = [entry.metrics["final_error"] for entry in outcome.finalists]
    assert errors == sorted(errors)
    again = kas.search(make_network(), make_data(), "4 candidates", **options)
    assert [entry.metrics for entry in again.trained] == [entry.metrics for entry in outcome.trained]
    assert again.dense == outcome.dense and "test_error" in outcome.dense
    with pytest.raises(kas.Error, match=r"task"):
        kas.search(make_network(), make_data(), "4 candidates", **{**options, "task": Renamed()})
    with pytest.raises(kas.Error, match=r"version"):
        kas.search(make_network(), make_data(), "4 candidates", **options, settings={"version": "2"})
    assert cli.main(["show", str(tmp_path / "search.db")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].split()[:4] == ["candidate", "error", "epochs", "final_test_error"]
    values = [float(line.split()[1]) for line in shown[2:4]]
    assert values == sorted(values)


@pytest.mark.parametrize("task, better", [(Moments(), min), (Nearness(), max)])
def test_a_report(tmp_path, task, better):
    """The metrics of a task are compared after as many epochs."""
    file, metric = tmp_path / "search.db", task.metric
    options = {**SEARCH, "task": task, "halving": kas.Halving(4, (1, None), 0.5), "final": 0, "sites": "2"}
    outcome = kas.search(make_network(), make_data(), "4 candidates", database=file, **options)
    summary = kas.report.Database(file).read_summary()
    assert set(summary["mixed"]) == set(outcome.trainer.metrics)
    first, last = (summary["metrics"][f"{metric} after {epochs}"] for epochs in ("1 epoch", "2 epochs"))
    assert None not in first and sum(value is not None for value in last) == 2
    assert summary["axes"] == ["flops", f"{metric} after 2 epochs"]
    chosen = last[summary["ids"].index(summary["best"])]
    assert chosen == better(value for value in last if value is not None)
    (dense,) = summary["baselines"]
    assert dense["metrics"][f"{metric} after 2 epochs"] == pytest.approx(outcome.dense[metric])
    assert f"{outcome.dense[metric]:.5g} (network itself)" in summary["verdict"]["text"]
    assert not any("loss" in name for name in summary["units"])
    command = summary["command"]
    assert f"task=task,  # {type(task).__name__}" in command and "sites=['2']," in command


def test_more_may_be_better():
    less = evaluate.Trainer(make_network(), make_data(), QUICK, task=Moments()).evaluate(None)
    more = evaluate.Trainer(make_network(), make_data(), QUICK, task=Nearness()).evaluate(None)
    assert more["nearness"] == pytest.approx(-less["error"]) and more["test_nearness"] == pytest.approx(
        -less["test_error"]
    )
    assert Nearness().objective == "-nearness" and Moments().objective == "error"
    assert Nearness().is_better(2, 1) and Moments().is_better(1, 2)


def test_the_loss_is_enough():
    metrics = evaluate.Trainer(make_network(), make_data(), QUICK, task=OnlyLoss(), seeds=2).evaluate(None)
    assert set(metrics) == {
        *("loss", "test_loss", "loss_deviation", "test_loss_deviation"),
        *("epochs", "train_seconds"),
    }


def test_milestones_have_the_direction_of_the_metric():
    for task, bound, text in ((Moments(), 1e-6, "the error after 1 epochs must be at most"), (Nearness(), 1, "least")):
        recipe = dataclasses.replace(QUICK, milestones={1: bound})
        with pytest.raises(evaluate.TrainingFailure, match=text):
            evaluate.Trainer(make_network(), make_data(), recipe, task=task).evaluate(None)
        recipe = dataclasses.replace(QUICK, milestones={1: 100 if bound < 1 else -100})
        evaluate.Trainer(make_network(), make_data(), recipe, task=task).evaluate(None)


class Counting(Moments):
    """A step that descends twice, and an optimizer of groups."""

    def __init__(self):
        self.steps, self.rates = 0, []

    def make_optimizer(self, network, recipe):
        head, *rest = network.parameters()
        return torch.optim.SGD([{"params": [head], "lr": recipe.learning_rate / 10}, {"params": rest}], 1e-2)

    def training_step(self, training, inputs, targets):
        self.steps += 1
        self.rates.append([group["lr"] for group in training.optimizer.param_groups])
        super().training_step(training, inputs, targets)
        return super().training_step(training, inputs, targets)


def test_steps_and_optimizers():
    task = Counting()
    recipe = dataclasses.replace(QUICK, learning_rate=1e-2, warmup_steps=0)
    training = evaluate.Training(make_network(), make_data(), recipe, 0, task=task)
    training.advance(1)
    assert task.steps == training.step == 3
    for first, second in task.rates:
        assert first == pytest.approx(second / 10)
    # A cosine: from the rate of each group.
    assert task.rates[0] == pytest.approx([1e-3, 1e-2]) and task.rates[2][1] < task.rates[1][1] < 1e-2


def test_a_checkpoint_of_a_task(tmp_path):
    trainer = evaluate.Trainer(make_network(), make_data(), QUICK, task=Moments())
    whole, _ = trainer.train_once(None, 1)
    assert trainer.train_once(None, 1, epochs=1, checkpoint=tmp_path / "t.pt")[0]["epochs"] == 1
    rest, curve = trainer.train_once(None, 1, checkpoint=tmp_path / "t.pt")
    assert rest["error"] == whole["error"] and {name for _, name, _ in curve} == {"train_loss", "loss", "error", "mean"}
    # What was evaluated on the way is known.
    training = trainer.start(None, 1)
    training.advance(2)
    training.evaluate()
    assert training.known(2)["error"] == whole["error"] and training.known(1) == {}


class Squares:
    """A map-style dataset."""

    def __len__(self):
        return 25

    def __getitem__(self, index):
        image = noise(1, 4, 4, seed=index)
        return image, torch.stack([image.mean(), image.std()])


def test_data():
    data = make_data()
    batches = list(data.batches(7, torch.Generator().manual_seed(0)))
    assert len(batches) == data.num_batches(7) == 4 and batches[0][0].shape == (7, 1, 4, 4)
    assert [len(inputs) for inputs, _ in data.in_order(data.test, 8)] == [8, 8, 8, 6]
    assert data.describe() == "noise 30/30/30" and data.example.shape == (1, 1, 4, 4)
    squares = evaluate.TaskData("squares", Squares(), Squares(), Squares())
    inputs, targets = next(squares.batches(10, torch.Generator().manual_seed(0)))
    assert inputs.shape == (10, 1, 4, 4) and targets.shape == (10, 2)
    metrics = evaluate.Trainer(make_network(), squares, QUICK, task=Moments()).evaluate(None)
    assert metrics == evaluate.Trainer(make_network(), squares, QUICK, task=Moments()).evaluate(None) | {
        "train_seconds": metrics["train_seconds"]
    }
    loaded = make_data(load)
    assert loaded.num_batches(7) == 5  # with the rest
    assert [len(inputs) for inputs, _ in loaded.batches(7, torch.Generator().manual_seed(0))] == [7, 7, 7, 7, 2]
    training = evaluate.Trainer(make_network(), loaded, QUICK, task=Moments()).start(None)
    training.advance(1)
    assert training.step == 3


class TwoArguments(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = make_network()

    def forward(self, image, factor):
        return self.network(image) * factor[:, None]


def test_several_inputs():
    parts = [((images, torch.ones(len(images))), targets) for images, targets in [make_data().train] * 3]
    data = evaluate.TaskData("two", *parts)
    two = evaluate.Trainer(TwoArguments(), data, QUICK, task=Moments())
    assert two.evaluate(kas.operator("conv2d"))["error"] > 0
    assert data.count(data.train) == 30 and [t.shape[0] for t in data.example] == [1, 1]


def test_classes_in_data_of_a_task():
    """Classification takes them; and a task of one's own takes a `Data`."""
    digits = evaluate.digits(train=40, validation=40)
    test = tuple(part[:40] for part in digits.test)
    plain = evaluate.Data("digits", digits.train, digits.validation, test, 10)
    general = evaluate.TaskData("digits", digits.train, digits.validation, test)
    results = [evaluate.Trainer(evaluate.DigitsNetwork(8), data, QUICK).evaluate(None) for data in (plain, general)]
    assert results[0] | {"train_seconds": 0} == results[1] | {"train_seconds": 0}

    class Smooth(evaluate.Classification):
        def loss(self, outputs, targets):
            return functional.cross_entropy(outputs, targets, label_smoothing=0.5)

        def training_step(self, training, inputs, targets):
            return evaluate.Task.training_step(self, training, inputs, targets)

    own = evaluate.Trainer(evaluate.DigitsNetwork(8), plain, QUICK, task=Smooth())
    assert own.describe()["task"] == "Smooth" and own.evaluate(None)["loss"] != results[0]["loss"]
    assert "task" not in evaluate.Trainer(evaluate.DigitsNetwork(8), plain, QUICK).describe()


class Special(nn.Module):
    """Parameters that no `reset_parameters` knows."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(2))
        self.network = make_network()
        nn.init.constant_(self.network[0].bias, 3.0)

    def forward(self, x):
        return self.network(x) * self.scale


def test_networks_of_functions():
    trainer = evaluate.Trainer(Special, make_data(), QUICK, task=Moments(), space="conv2d")
    one, same, other = trainer.network(None, 1), trainer.network(None, 1), trainer.network(None, 2)
    assert torch.equal(one.scale, same.scale) and not torch.equal(one.scale, other.scale)
    assert one.network[0].bias.eq(3).all()
    conv = kas.operator("conv2d")
    first, second = trainer.network(conv, 1), trainer.network(conv, 1)
    for a, b in zip(first.parameters(), second.parameters()):
        assert torch.equal(a, b)
    assert isinstance(first.network[2], kas.torch.KasModule) and torch.equal(first.scale, one.scale)
    # A module instead of a function: its layers are initialized, its parameter stays.
    module = Special()
    drawn = evaluate.Trainer(module, make_data(), QUICK, task=Moments(), space="conv2d").network(None, 1)
    assert torch.equal(drawn.scale, module.scale) and not drawn.network[0].bias.eq(3).all()
    state = torch.get_rng_state()
    trainer.network(None, 5)
    assert torch.equal(state, torch.get_rng_state())
    assert trainer.describe()["initialization"] == "of the network"
    heir = evaluate.Trainer(Special, make_data(), QUICK, task=Moments(), space="conv2d", inherit=True)
    assert torch.equal(heir.network(conv, 7).scale, heir.model.scale)
    with pytest.raises(TypeError, match=r"the function must make a torch.nn.Module, got int"):
        evaluate.Trainer(lambda: 3, make_data(), QUICK, task=Moments())


def test_chosen_layers():
    network, example = make_network(), torch.zeros(1, 1, 4, 4)
    names = lambda choice: list(kas.torch.extract(network, example, sites=choice).sites)  # noqa: E731
    assert names(None) == ["0", "2", "4"]
    assert names("2") == ["2"] and names(["0", "[4-9]"]) == ["0", "4"]
    assert names(lambda name, module: isinstance(module, nn.Conv2d) and module.in_channels > 1) == ["2"]
    # Its bindings are those of the chosen layers alone.
    wide = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1))
    sites = kas.torch.extract(wide, torch.zeros(1, 8, 4, 4), sites="1")
    assert sites.spaces["conv2d"].multiplicities == [1] and not sites.misses
    with pytest.raises(ValueError, match=r"requires the name or pattern of a layer of 0, 2, 4, got '7'"):
        names(["2", "7"])
    with pytest.raises(ValueError, match=r"requires a predicate that chooses a layer, got none of 0, 2, 4"):
        names(lambda name, module: False)
    with pytest.raises(TypeError, match=r"layers must be chosen by names, patterns .* got int"):
        names([2])
    outcome = kas.search(make_network, make_data(), "1 candidate", sites="2", final=0, **SEARCH)
    assert list(outcome.trainer.sites.sites) == ["2"] and outcome.best is not None


def test_a_database_knows_the_layers(tmp_path):
    """Those of other names are another search, even where they are alike."""
    file = tmp_path / "search.db"
    alike = nn.Sequential(*[nn.Conv2d(8, 8, 3, padding=1) for _ in range(2)], nn.Flatten(), nn.Linear(128, 2))
    whole = make_data()
    parts = [(images.repeat(1, 8, 1, 1), targets) for images, targets in (whole.train, whole.validation, whole.test)]
    data = evaluate.TaskData("wide", *parts)
    kas.search(alike, data, "1 candidate", sites="0", final=0, database=file, **SEARCH)
    with pytest.raises(kas.Error, match=r"sites"):
        kas.search(alike, data, "1 candidate", sites="1", final=0, database=file, **SEARCH)


def test_pickles():
    trainer = evaluate.Trainer(Special, make_data(load), QUICK, task=Moments(), space="conv2d")
    other = pickle.loads(pickle.dumps(trainer))
    first, second = (one.train_once(kas.operator("conv2d"), 1)[0] for one in (trainer, other))
    assert first | {"train_seconds": 0} == second | {"train_seconds": 0}


def test_workers_of_other_processes():
    trainer = evaluate.Trainer(make_network, make_data(load), QUICK, task=Moments())
    with Pool(trainer, 1, start_method="spawn") as pool:
        pool.submit(Job(0, None))
        done = []
        while not done:
            done = pool.wait(1)
    expected = trainer.train_once(None)[0]
    assert done[0].metrics["error"] == pytest.approx(expected["error"], rel=1e-4)


FILE = """
import torch
from torch import nn
from kas import evaluate

def network():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.Flatten(), nn.Linear(128, 1)
    )

def data():
    parts = []
    for seed in range(3):
        images = torch.randn(30, 1, 4, 4, generator=torch.Generator().manual_seed(seed))
        parts.append((images, images.mean((1, 2, 3))))
    return evaluate.TaskData("means", *parts)

class Means(evaluate.Task):
    metric = "nearness"
    maximize = True
    def loss(self, outputs, targets):
        return (outputs[:, 0] - targets).square().mean()
    def metrics(self, outputs, targets):
        return {"nearness": 1 - (outputs[:, 0] - targets).abs().mean()}
"""


def test_command_line(tmp_path, monkeypatch, capsys):
    pathlib.Path(tmp_path / "own.py").write_text(FILE)
    common = ["--network=own.py:network", "--data=own.py:data", "--task=own.py:Means", "--epochs=1", "--sites=2"]
    options = ["--limit=shift=0", "--budget=2 candidates", "--no-halving", "--final-seeds=1", "--workers=1"]
    monkeypatch.chdir(tmp_path)
    assert cli.main(["search", *common, *options, "--database=own.db", "--json"]) == 0
    printed = capsys.readouterr()
    assert "the network itself: test nearness" in printed.err
    found = json.loads(printed.out)
    assert found["network itself"].keys() == {"nearness", "loss", "test_nearness"}
    values = [candidate["nearness"] for candidate in found["candidates"]]
    assert cli.main(["show", "own.db", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [one["metrics"]["nearness"] for one in shown["candidates"]] == sorted(values, reverse=True)
    conv = json.dumps({"id": 0, "operator": str(kas.operator("conv2d"))})
    command = [sys.executable, "-m", "kas.evaluate", *common]
    answer = subprocess.run(command, input=conv, capture_output=True, text=True)
    assert json.loads(answer.stdout)["metrics"].keys() >= {"nearness", "test_nearness"}, answer.stderr
    for option, message in (
        ("--task=none.py:Means", "the task must be FILE.py:NAME with a file that exists, got 'none.py:Means'"),
        ("--task=own.py:network", "'own.py:network' must give a kas.evaluate.Task, got Sequential"),
        ("--sites=9", "requires the name or pattern of a layer of 0, 2, 4, got '9'"),
        ("--objective=iou", "the objective must be made of nearness, loss, epochs"),
    ):
        assert cli.main(["search", *common, option]) == 1
        assert message in capsys.readouterr().err


def test_a_data_set_of_a_task_is_none_for_classification(tmp_path):
    (tmp_path / "own.py").write_text(FILE)
    with pytest.raises(ValueError, match=r"must give a kas.evaluate.Data, got TaskData"):
        evaluate.load_data(f"{tmp_path / 'own.py'}:data")
