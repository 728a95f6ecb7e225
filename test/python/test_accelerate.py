# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.accelerate as a whole: tiny networks, some seconds."""

import json
import math
import os
import subprocess
import sys
import types

import numpy
import onnxruntime
import pytest
import torch
from c_compiler import C_COMPILER
from torch import nn

import kas
from kas import cli
from kas._accelerate import _baselines, _command, _contest, _distill, _learnt, _library, _peer, _problem, _run, _times
from kas._accelerate._statistics import Drop
from kas._c_folder import find_program
from kas.evaluate import DigitsNetwork, Recipe, Task, TaskData, Training

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def data():
    return kas.evaluate.digits()


@pytest.fixture(scope="module")
def network(data):
    training = Training(DigitsNetwork(16, blocks=1), data, Recipe(epochs=8))
    training.advance(8)
    training.evaluate()
    return training.network.eval()


@pytest.fixture(scope="module", autouse=True)
def few_networks():
    """As many as have to be for all that is done with them."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("FIRST", 2), ("SECOND", 1), ("KEPT", 1)):
            patch.setattr(_run, name, value)
        patch.setattr(_baselines, "WIDTHS", (0.5,))
        yield


@pytest.fixture(scope="module")
def at_work():
    """What is trained, and what is compiled meanwhile."""
    return {"trained": 0, "compiled": 0, "at once": 0}


@pytest.fixture(scope="module")
def outcome(network, data, tmp_path_factory, at_work):
    folder = tmp_path_factory.mktemp("faster")
    train, compile_network = _contest.train, _problem.compile_network

    def watch_training(*arguments):
        at_work["trained"] += 1
        try:
            return train(*arguments)
        finally:
            at_work["trained"] -= 1

    def watch_compilation(*arguments):
        at_work["compiled"] += 1
        at_work["at once"] += at_work["trained"]
        return compile_network(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_contest, "train", watch_training)
        patch.setattr(_problem, "compile_network", watch_compilation)
        # How much is reported must not depend on the machine.
        patch.setattr(_run._Run, "_is_late", lambda _: False)
        patch.setenv("KAS_LAYERS", str(folder / "layers.jsonl"))
        found = kas.accelerate(
            network, data, max_drop=100, minutes=0.2, out=folder, progress=False, command="kas <again>"
        )
    return found, folder


def test_nothing_is_traced_while_modules_are_called(outcome, at_work):
    # Tracers of PyTorch replace the call of all modules, in all threads.
    assert at_work["compiled"] > 3 and at_work["at once"] == 0


def test_a_network_becomes_faster(outcome, network, data):
    found, folder = outcome
    assert found.is_complete and found.is_reached and found.speedup > 1
    assert found.best.ms < found.dense.ms
    assert found.model(data.example).shape == network(data.example).shape
    kinds = {one.kind for one in found.results}
    assert {"dense", "narrower", "swap", "ours"} <= kinds and found.best.kind != "peer"
    assert {one.precision for one in found.results} == {"f32", "bf16", "int8"}
    results = json.loads((folder / "results.json").read_text())
    assert results["best"] == found.best.name and len(results["networks"]) == len(found.results)
    for one in results["networks"]:
        assert one["drop_low"] <= one["drop"] <= one["drop_high"] and one["ms"] > 0
    assert found.verdict in repr(found) and f"{found.speedup:.2f} times as fast" in found.verdict
    assert found.table().count("<- best") == 1


def test_the_layers_that_won_are_known_later(outcome):
    found, folder = outcome
    kept = _learnt.read(folder / "layers.jsonl")
    taken = found.best.layers if found.best.kind == "ours" else {}
    assert sorted(one.form for one in kept) == sorted(taken.values())
    assert all(one.ms < one.own_ms and one.data == "digits" for one in kept)


def test_the_page_escapes_what_it_is_given(outcome):
    page = (outcome[1] / "report.html").read_text()
    assert "kas &lt;again&gt;" in page and "<again>" not in page and "<svg" in page
    assert page.count('class="best"') == 1


def test_the_files_run_without_kas(outcome, data):
    found, folder = outcome
    image = data.test[0][:1]
    program = torch.export.load(folder / "model.pt2").module()
    with torch.no_grad():
        expected = program(image)
    assert torch.allclose(expected, found.model(image), atol=1e-4)
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    (output,) = session.run(None, {"data": image.numpy()})
    assert numpy.allclose(output, expected, atol=1e-4)


def test_the_folder_for_c_runs(outcome, tmp_path):
    folder = outcome[1] / "c"
    binary = tmp_path / "main"
    sources = [folder / name for name in ("main.c", "example.S", "model_weights.S", "model.o")]
    subprocess.run([C_COMPILER, "-Wall", "-Werror", f"-I{folder}", *sources, "-lm", "-o", binary], check=True)
    printed = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    assert "largest difference from the example: 0 of the largest value" in printed
    symbols = subprocess.run(["nm", "-u", folder / "model.o"], check=True, capture_output=True, text=True).stdout
    assert "malloc" not in symbols and "free" not in symbols


def test_the_same_call_goes_on(outcome, network, data, monkeypatch):
    found, folder = outcome

    def refuse(*arguments, **keywords):
        raise AssertionError("what is known is not trained again")

    monkeypatch.setattr(_contest, "train", refuse)
    # With more time, which is not used: the same result.
    again = kas.accelerate(network, data, max_drop=100, minutes=2, out=folder, progress=False)
    known = {one.name: one.metric for one in found.results}
    assert {one.name: one.metric for one in again.results} == known


def test_another_model_needs_another_folder(outcome, data):
    with pytest.raises(ValueError, match="holds another run: model is"):
        kas.accelerate(DigitsNetwork(8, blocks=1), data, minutes=0.1, out=outcome[1], progress=False)


@pytest.mark.slow
def test_a_time_that_is_too_short_leaves_the_least(network, data, tmp_path, monkeypatch):
    trained = []
    train = _contest.train

    def count(*arguments):
        trained.append(arguments[3].epochs)
        return train(*arguments)

    monkeypatch.setattr(_contest, "train", count)
    options = {"max_drop": 100, "precision": "f32", "out": tmp_path, "progress": False}
    found = kas.accelerate(network, data, minutes=1e-3, **options)
    steps = [json.loads(line)["step"] for line in (tmp_path / "state" / "steps.jsonl").read_text().splitlines()]
    kinds = {kind: sum(step.startswith(kind) for step in steps) for kind in ("imitation ", "loss ")}
    assert 0 < kinds["loss "] <= kinds["imitation "] == _library.LEAST_ALTERNATIVES
    # Two networks for a short time, one of them to the end with one seed, and the baselines.
    assert len(trained) == 3 + sum(one.kind not in ("dense", "ours") for one in found.results)
    assert found.is_complete and found.is_reached and (tmp_path / "report.html").exists()
    # The same decisions with more time.
    monkeypatch.setattr(_contest, "train", None)
    assert kas.accelerate(network, data, minutes=2, **options).is_complete


@pytest.mark.slow
def test_an_interrupt_ends_with_what_is_there(network, data, tmp_path, monkeypatch, capsys):
    train = _contest.train
    calls = []

    def interrupt(*arguments, **keywords):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return train(*arguments, **keywords)

    monkeypatch.setattr(_contest, "train", interrupt)
    found = kas.accelerate(network, data, minutes=0.1, out=tmp_path, workers=1)
    assert not found.is_complete and not found.is_reached
    assert f"interrupted: the same call with '{tmp_path}' goes on" in capsys.readouterr().err
    assert any("training" in line for line in (tmp_path / "state" / "steps.jsonl").read_text().splitlines())


class Mean(Task):
    """Which mean an image has."""

    def loss(self, outputs, targets):
        return nn.functional.mse_loss(outputs, targets)


def make_regression():
    images = torch.randn(400, 1, 10, 10, generator=torch.Generator().manual_seed(0))
    targets = images[:, :, 2:8, 2:8].mean((2, 3)) * 6
    parts = [(images[place], targets[place]) for place in (slice(0, 256), slice(256, 320), slice(320, 400))]
    return TaskData("means", *parts)


@pytest.mark.slow
def test_regression(tmp_path):
    found_data = make_regression()
    training = Training(DigitsNetwork(16, 1, 1), found_data, Recipe(epochs=6), task=Mean())
    training.advance(6)
    training.evaluate()
    found = kas.accelerate(
        training.network, found_data, task=Mean(), max_drop=1e9, minutes=0.1, progress=False, precision="f32"
    )
    assert found.is_complete and found.speedup > 1 and "%" in found.verdict
    assert all(math.isfinite(one.drop.value) for one in found.results)


@pytest.mark.slow
def test_a_target_that_nothing_reaches(network, data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_contest, "train", lambda network, *rest, **other: _distill.Trained(network, 0.0, 1, 0.0))
    file = tmp_path / "net.py"
    torch.save(network.state_dict(), tmp_path / "net.pt")
    file.write_text("import kas\n\n\ndef make():\n    return kas.evaluate.DigitsNetwork(16, blocks=1)\n")
    arguments = [f"{file}:make", f"--weights={tmp_path}/net.pt", "--target=1000x", "--minutes=0.05", "--quiet"]
    assert cli.main(["accelerate", *arguments]) == 3
    assert "no network takes" in capsys.readouterr().out


@pytest.mark.parametrize(("complete", "reached", "code"), [(True, True, 0), (True, False, 3), (False, False, 130)])
def test_the_exit_status_says_what_became_of_it(tmp_path, monkeypatch, capsys, complete, reached, code):
    found = types.SimpleNamespace(
        is_complete=complete, is_reached=reached, results=[1], verdict="so it is", table=lambda: "a table"
    )
    given = {}
    monkeypatch.setattr(_command, "accelerate", lambda network, data, **options: given.update(options) or found)
    file = tmp_path / "net.py"
    file.write_text("import kas\n\n\ndef make():\n    return kas.evaluate.DigitsNetwork(4, blocks=1)\n")
    assert cli.main(["accelerate", f"{file}:make", "--target=3x", "--minutes=2", "--precision=int8"]) == code
    assert capsys.readouterr().out == "a table\nso it is\n"
    assert (given["target"], given["minutes"], given["precision"], given["max_drop"]) == ("3x", 2.0, "int8", 0.5)


def test_weights_that_do_not_fit_are_an_error(tmp_path, capsys):
    file = tmp_path / "net.py"
    file.write_text("import kas\n\n\ndef make():\n    return kas.evaluate.DigitsNetwork(4, blocks=1)\n")
    torch.save({"other": torch.zeros(1)}, tmp_path / "net.pt")
    torch.save([1], tmp_path / "list.pt")
    for name, message in (
        ("net.pt", "do not fit the network"),
        ("list.pt", "requires a file of tensors by their names"),
    ):
        assert cli.main(["accelerate", f"{file}:make", f"--weights={tmp_path}/{name}"]) == 1
        assert message in capsys.readouterr().err


def test_help_names_it_first(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert text.index("accelerate") < text.index("search")


class Named(nn.Module):
    """Gives what it computes by its name, as models of text do."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return {"logits": self.model(x)}


def test_outputs_that_are_no_tensors_are_said_first(data):
    model = Named(DigitsNetwork(8, blocks=1)).train()
    with pytest.raises(ValueError, match=r"a tensor or a tuple of tensors, got dict: .*'self.model\(x\).logits'"):
        kas.accelerate(model, data, minutes=0.1, progress=False)
    assert all(module.training for module in model.modules())


class Untraceable(nn.Module):
    def forward(self, x):
        return torch.linalg.eigvals(x).real


def test_a_model_that_cannot_be_compiled_names_the_module(data):
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.Sequential(nn.ReLU(), Untraceable()), nn.Flatten(), nn.Linear(32, 10)
    )
    with pytest.raises(
        ValueError, match=r"cannot be compiled because of '1.1' \(Untraceable\): .*\n.*write that module"
    ):
        kas.accelerate(network, data, minutes=0.1, progress=False)


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.scale * x.flatten(1)[:, :10]


class Broken(Task):
    metric = "ratio"

    def loss(self, outputs, targets):
        return outputs.square().mean()

    def metrics(self, outputs, targets):
        return {"ratio": float("nan")}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"task": Broken()}, ValueError, "requires a finite number for the metric 'ratio' of the model, got nan"),
        ({"data": [1, 2]}, TypeError, "the data must be a kas.evaluate.Data, .* with parts for training, validation"),
        ({"model": 3}, TypeError, "the model must be a torch.nn.Module, got int"),
        ({"model": First()}, ValueError, "requires a network with torch.nn.Conv2d or Linear layers that run once, got"),
        ({"minutes": -1}, ValueError, "'minutes' must be a number of at least 0, got -1"),
    ],
)
def test_what_cannot_work_is_said_first(network, data, change, error, message):
    arguments = {"model": network, "data": data, "progress": False, **change}
    if "task" in change:
        arguments["data"] = make_regression()
        arguments["model"] = DigitsNetwork(8, 1, 1)
    with pytest.raises(error, match=message):
        kas.accelerate(arguments.pop("model"), arguments.pop("data"), **arguments)


def test_a_full_disk_loses_nothing(network, data, tmp_path, monkeypatch):
    save, calls = torch.save, []

    def fill_disk(state, path):
        calls.append(path)
        if len(calls) > 5:
            raise OSError(28, "No space left on device")
        save(state, path)

    monkeypatch.setattr(torch, "save", fill_disk)
    with pytest.raises(OSError, match="No space left on device"):
        kas.accelerate(network, data, minutes=0.1, out=tmp_path, progress=False, workers=1)
    kept = (tmp_path / "state" / "steps.jsonl").read_text().splitlines()
    assert sum("imitation" in line for line in kept) == 5


def test_times_are_of_each_kind_once(network):
    times = _times.LayerTimes(1, 1)
    layer, same = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
    first = times.measure(layer, (4, 8, 8))
    assert first > 0 and times.measure(same, (4, 8, 8)) == first and len(times.known) == 1
    assert times.measure(nn.Identity(), (4, 8, 8)) == 0


def test_what_is_late_is_not_reported():
    network, better = nn.Identity(), nn.Identity()
    problem = types.SimpleNamespace(model=network, program=None, precision="bf16", batch=())
    baseline = types.SimpleNamespace(name="narrower", kind="narrower", network=network, layers={}, failure=None, drop=1)
    run = types.SimpleNamespace(
        problem=problem,
        options=types.SimpleNamespace(precision="auto"),
        baselines=[baseline],
        model_in={"f32": None, "bf16": types.SimpleNamespace(program=None)},
        final=[(network, Drop(0.3, 0.1)), (better, Drop(0.2, 0.1))],
        winner=types.SimpleNamespace(layers={}),
    )
    kinds = {late: [(r.kind, r.precision) for r in _run._Run._list_rows(run, late)] for late in (False, True)}
    both = [("dense", "f32"), ("narrower", "bf16"), ("dense", "bf16"), ("ours", "f32"), ("ours", "bf16")]
    assert kinds[True] == both
    assert set(kinds[False]) - set(both) == {("narrower", "f32"), ("ours", "int8")}
    # All seeds in the precision of the choice, the better one in others.
    ours = {r.precision: r.networks for r in _run._Run._list_rows(run, False) if r.kind == "ours"}
    assert ours == {"f32": [better], "bf16": [network, better], "int8": [better]}


def test_int8_of_onnx_runtime_is_a_baseline(network, data):
    said = []
    problem = types.SimpleNamespace(
        model=network,
        batch=data.example,
        options=types.SimpleNamespace(threads=1),
        get_calibration=lambda: list(data.train[0][:32].split(1)),
        reporter=types.SimpleNamespace(message=said.append),
    )
    peer = _peer.make_peer(problem)
    images, classes = data.test
    own, other = ((one(images).argmax(1) == classes).double().mean() for one in (network, peer.predict))
    assert abs(float(own - other)) < 0.03 and not said
    tokens = torch.randint(0, 9, (1, 6))
    problem.model = nn.Sequential(nn.Embedding(9, 16), nn.Flatten(), nn.Linear(96, 5)).eval()
    problem.batch, problem.get_calibration = tokens, lambda: [tokens]
    assert torch.allclose(_peer.make_peer(problem).predict(tokens), problem.model(tokens), atol=0.05) and not said
    problem.model, problem.batch = nn.Sequential(nn.Flatten(), Untraceable()), data.example
    assert _peer.make_peer(problem) is None and said[0].startswith("ONNX Runtime has no int8: ")


def test_networks_with_dropout_learn_by_compiled_steps_without_it(data):
    torch.manual_seed(0)
    size = data.example.numel()
    plain = nn.Sequential(nn.Flatten(), nn.Linear(size, 16), nn.ReLU(), nn.Linear(16, 10))
    dropping = nn.Sequential(nn.Flatten(), nn.Linear(size, 16), nn.Sequential(nn.ReLU(), nn.Dropout(0.5)), plain[3])
    dropping.load_state_dict(plain.state_dict())
    schedule, task = _distill.Schedule(0.5, batch_size=50), kas.evaluate.Classification()
    teacher = _distill.Teacher(plain, data)
    steps = [_distill.compile_steps(one, data, task, schedule) for one in (plain, dropping)]
    assert steps[1].is_native
    losses = [_distill.train(one, teacher, task, schedule, 0, own).loss for one, own in zip((plain, dropping), steps)]
    assert losses[0] == losses[1]


def test_native_distillation_is_that_of_pytorch(data):
    torch.manual_seed(0)
    teacher_network, student = DigitsNetwork(8, 1).eval(), DigitsNetwork(8, 1)
    teacher = _distill.Teacher(teacher_network, data)
    schedule = _distill.Schedule(2, batch_size=50)
    task = kas.evaluate.Classification()
    native = _distill.compile_steps(student, data, task, schedule)
    assert native.is_native
    plain = _distill.TorchSteps(student, 50, task, schedule)
    losses = [_distill.train(student, teacher, task, schedule, 0, steps).loss for steps in (native, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    first = _distill.train(student, teacher, task, schedule, 0, native)
    again = _distill.train(student, teacher, task, schedule, 0, native)
    assert (
        first.loss == again.loss
        and first.loss
        < 0.9
        * _distill.train(
            student, teacher, task, _distill.Schedule(0.2, batch_size=50, learning_rate=0.0), 0, plain
        ).loss
    )


def test_the_programs_are_there():
    assert find_program("kas-translate") is not None, os.environ.get("PATH")
    assert sys.version_info >= (3, 10)
