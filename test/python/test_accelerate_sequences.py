# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.accelerate: sequences of two operators in the place of layers and of runs of layers."""

import copy
import functools
import json
import subprocess
import types

import onnxruntime
import pytest
import torch
from c_compiler import C_COMPILER
from torch import nn

import kas
from kas._accelerate import (
    _contest,
    _distill,
    _files,
    _found,
    _imitation,
    _learnt,
    _library,
    _problem,
    _run,
    _sequences,
    _spaces,
    _times,
    _units,
)
from kas._accelerate._knapsack import choose, find_front
from kas._accelerate._progress import Clock, Ending, Reporter
from kas._accelerate._store import Store

torch.set_num_threads(1)
SHAPE = (16, 8, 8)


class Run(nn.Module):
    """relu(x + second(relu(norm(first(x))))), or without x."""

    def __init__(self, channels, between, has_shortcut=True):
        super().__init__()
        self.first = nn.Conv2d(channels, between, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(between)
        self.second = nn.Conv2d(between, channels, 3, padding=1)
        self.has_shortcut = has_shortcut

    def forward(self, x):
        y = self.second(self.norm(self.first(x)).relu())
        return (x + y).relu() if self.has_shortcut else y


class Tokens(nn.Module):
    """Rows of channels, of which a run of linear layers keeps the number."""

    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x):
        return self.mlp(x.flatten(2).transpose(1, 2)).mean(1)


def make_separable_run(has_shortcut=True):
    """A run that a window for each channel, a rectifier and 1x1 compute, though neither layer is of such a form.

    The second layer takes a quarter of the channels between, each of which sees one channel; all others are noise.
    """
    generator = torch.Generator().manual_seed(0)
    run = Run(16, 64, has_shortcut)
    order = torch.randperm(64, generator=generator)[:16]
    with torch.no_grad():
        nn.init.normal_(run.first.weight, std=0.1, generator=generator)
        run.first.weight[order] = 0
        run.first.weight[order, torch.arange(16)] = torch.randn(16, 3, 3, generator=generator)
        run.second.weight.zero_()
        run.second.weight[:, order, 1, 1] = 0.3 * torch.randn(16, 16, generator=generator)
    return run.eval()


def make_network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Sequential(nn.Conv2d(16, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 16, 1)),
        Run(16, 16),
        Tokens(),
        nn.Linear(16, 10),
    ).eval()


def make_problem(network, folder=None, seconds=1000.0, precision="f32"):
    problem = types.SimpleNamespace(
        model=network,
        example=torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(0)),
        options=_problem.Options(seed=3, workers=1),
        precision=precision,
        store=Store(folder, {}),
        reporter=types.SimpleNamespace(show=lambda *_: None, message=lambda *_: None),
        ending=Ending(),
    )
    problem.map = functools.partial(_problem.Problem.map, problem)
    return problem


def find(problem, wins=()):
    """What is listed for all layers and runs, and the finder."""
    finder = _found.Finder(problem, _found.Allowance(1000.0), wins)
    units = _units.find_units(problem.model, problem.example)
    jobs = finder.find([*units.layers, *units.blocks])
    return [(unit, form, make) for unit, form, make in jobs if form.startswith("sequence ")], finder


@pytest.fixture(scope="module", autouse=True)
def sequences_alone():
    """Few of them, and none of the single operators, which have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_found, "CANDIDATES", 80)
        patch.setattr(_found, "list_spaces", lambda kind, units: {})
        yield


@pytest.fixture(scope="module")
def found():
    network = make_network()
    problem = make_problem(network)
    jobs, finder = find(problem)
    seen = _imitation.observe_units(network, [unit for unit, _, _ in jobs], [torch.randn(64, *SHAPE)])
    return types.SimpleNamespace(network=network, finder=finder, jobs=jobs, seen=seen)


def test_layers_and_runs_have_sequences_that_fit_them(found):
    assert {unit.name for unit, _, _ in found.jobs} == {
        "0",
        "2",
        "2.0",
        "2.3",
        "3",
        "3.first",
        "3.second",
        "4.mlp",
        "4.mlp.0",
        "4.mlp.2",
        "5",
    }
    kinds = {one.properties for one in found.finder.operators.values()}
    assert kinds == set(_spaces.SEQUENCES)
    for unit, form, make in found.jobs:
        module = make()
        assert isinstance(module, _sequences.RunModule) == unit.is_block
        seen = found.seen[unit.name]
        assert module(seen.data).shape == seen.output.shape
        # The same for a seed, whatever was drawn before.
        assert all(torch.equal(*pair) for pair in zip(module.parameters(), make().parameters()))
        inner = module.inner if unit.is_block else module
        assert len(inner.stages) == 2 and any(isinstance(one, nn.ReLU) for one in inner)
        assert _units.count_macs(inner, seen.data[:1]) <= _found.SHARE * unit.macs
        entry = found.finder.operators[form]
        assert entry.form == form and entry.formula.count("Y[") == 2 and "; normalize, relu; " in entry.formula
        assert str(_sequences.find_sequence(entry.text)).strip() == entry.text
    assert {module.is_rectified for module in (make() for unit, _, make in found.jobs if unit.name == "3")} == {True}


def test_few_of_each_class_are_taken_the_fastest_first(monkeypatch):
    unit = _units.Unit("0", SHAPE, SHAPE, 9 * 16 * 16 * 64)
    for name, text in _spaces.write_sequence_spaces("window 3", [unit]).items():
        front = _sequences.list_sequences(text, 0, 100.0, 60)
        assert [one.milliseconds for one in front] == sorted(one.milliseconds for one in front), name
        assert [one.params for one in front] == sorted({one.params for one in front})
        again = _sequences.list_sequences(text, 0, 100.0, 60)
        assert [one.describe() for one in front] == [one.describe() for one in again]
        assert len({one.describe() for one in front}) == len(front)
    unit = _units.Unit("0", (64,), (64,), 1)
    (text,) = _spaces.write_sequence_spaces("rows", [unit]).values()
    # All of a small space: the one of most parameters, too.
    assert _sequences.list_sequences(text, 0, 100.0, 1000)[-1].params == 16 * 64 + 16 * 64 + 2 * 64
    assert len(_sequences.list_sequences(text, 0, -1.0, 1000)) <= 2, "time that has passed is no error"
    monkeypatch.setattr(_found, "MOST_OF_CLASS", 3)
    assert _found._spread([1.0, 1.1, 2.0, 3.0, 4.0]) == [0, 2, 4]
    assert _found._spread([1.0, 2.0]) == [0, 1] and _found._spread([]) == []


def test_layers_that_a_form_by_name_has_are_left_out(found):
    for unit, form, make in found.jobs:
        if not unit.is_block:
            stages = _sequences.bind_stages(_sequences.find_sequence(found.finder.operators[form].text), make.args[2])
            assert not _sequences.is_separable(stages), form


def test_sequences_learn_what_layers_do(found):
    # One of each layer, and all of a run.
    jobs = {unit.name: (unit, form, make) for unit, form, make in found.jobs if unit.name != "3"}
    for unit, form, make in [*jobs.values(), *(job for job in found.jobs if job[0].name == "3")]:
        module, seen = make(), found.seen[unit.name]
        before = _imitation._get_error(module, seen)
        after = _imitation.imitate(module, seen, 4)
        # Without a bias, the mean of the layer's output is not learnt.
        has_bias = unit.is_block or found.network.get_submodule(unit.name).bias is not None
        assert after < before and (after < 1.05 or not has_bias), (unit.name, form)
    assert after == _imitation.imitate(make(), seen, 4)


@pytest.mark.parametrize("has_shortcut", [True, False])
def test_a_run_that_is_a_sequence_is_found_again(has_shortcut):
    network = nn.Sequential(make_separable_run(has_shortcut), nn.Flatten(), nn.Linear(16 * 64, 4)).eval()
    problem = make_problem(network)
    jobs, _ = find(problem)
    units = [unit for unit in _units.find_units(network, problem.example).blocks if unit.name == "0"]
    data = torch.randn(256, *SHAPE, generator=torch.Generator().manual_seed(1)).relu()
    seen = _imitation.observe_units(network, units, [data])["0"]
    errors = [_imitation.imitate(make(), seen, 40) for unit, _, make in jobs if unit.is_block]
    # Of the means alone, 1.
    assert min(errors) < 0.4


def write_all(network, x, folder):
    """All files of a network, what each gives, and what PyTorch gives."""
    with torch.no_grad():
        expected = network(x)
    program = _times.compile_network(network, x, 1)
    problem = types.SimpleNamespace(batch=x, options=_problem.Options())
    best = types.SimpleNamespace(program=program, precision="f32")
    _files._write_pytorch(copy.deepcopy(network), problem, str(folder))
    _files._write_onnx(network, problem, str(folder))
    _files._write_object(types.SimpleNamespace(best=best), problem, str(folder))
    with torch.no_grad():
        plain = torch.export.load(folder / "model.pt2").module()(x)
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    onnx = torch.from_numpy(session.run(None, {"data": x.numpy()})[0])
    sources = [folder / "c" / name for name in ("main.c", "example.S", "model_weights.S", "model.o")]
    subprocess.run([C_COMPILER, f"-I{folder / 'c'}", *sources, "-lm", "-o", folder / "main"], check=True)
    printed = subprocess.run([folder / "main"], check=True, capture_output=True, text=True).stdout
    assert "largest difference from the example: 0 of the largest value" in printed
    return expected, {"kas": program.predict(x), "pt2": plain, "onnx": onnx}


def test_a_network_with_sequences_is_compiled_trained_and_written(found, tmp_path):
    changed = copy.deepcopy(found.network)
    for unit, _, make in found.jobs:
        if unit.name in ("0", "2", "3", "4.mlp", "5"):
            _units.set_module(changed, unit.name, make())
    assert sum(isinstance(one, _sequences.FoundSequence) for one in changed.modules()) == 5
    x = torch.randn(1, *SHAPE)
    expected, outputs = write_all(changed, x, tmp_path)
    for name, output in outputs.items():
        assert torch.allclose(output, expected, atol=1e-4 * float(expected.abs().max())), name
    quantized = _times.compile_network(changed, x, 1, "int8", [x]).predict(x)
    assert torch.allclose(quantized, expected, atol=0.15 * float(expected.abs().max()))
    batch = torch.randn(8, *SHAPE)
    steps = _distill.NativeSteps(changed, batch, _distill.Schedule(1.0))
    stepper = steps.start(copy.deepcopy(changed))
    losses = [stepper.step(batch, None, found.network(batch).detach(), 1e-2) for _ in range(20)]
    assert losses[-1] < 0.7 * losses[0]


def test_modules_of_different_sequences_have_times_of_their_own(found):
    times = _times.LayerTimes(1, 1)
    keys = {times.get_key(make(), unit.data_shape) for unit, form, make in found.jobs}
    sizes = {(form, unit.data_shape, unit.output_shape, unit.is_block) for unit, form, _ in found.jobs}
    # But where the operators of two are one layer of PyTorch.
    assert 0.7 * len(sizes) <= len(keys) <= len(found.jobs)


def test_what_was_listed_is_not_listed_again(tmp_path, monkeypatch):
    network = nn.Sequential(Run(16, 16)).eval()
    problem = make_problem(network, tmp_path)
    first = [(unit.name, form) for unit, form, _ in find(problem)[0]]
    problem.store.close()
    monkeypatch.setattr(_found, "list_sequences", None)
    again = [(unit.name, form) for unit, form, _ in find(make_problem(network, tmp_path))[0]]
    assert first and again == first


def test_sequences_that_won_are_known_next_time(found, tmp_path, monkeypatch):
    monkeypatch.setenv("KAS_LAYERS", str(tmp_path / "layers.jsonl"))
    for name in ("0", "2", "3"):
        unit, form = next((unit, form) for unit, form, _ in found.jobs if unit.name == name)
        layer = found.network.get_submodule(name)
        entry = _learnt.Learnt(
            *_learnt.describe_layer(layer, unit), form, 1, 2.0, 1.0, 0.1, "f32", "x", "1",
            found.finder.describe([form])[form],
        )  # fmt: skip
        _learnt.add([entry])
        finder = _found.Finder(make_problem(found.network, seconds=0.0), _found.Allowance(0.0), _learnt.read_all())
        (made,) = finder.recall(unit).values()
        assert made()(torch.randn(1, *unit.data_shape)).shape[1:] == unit.output_shape


class Network(nn.Module):
    """A classifier of digits with a run that a sequence computes."""

    def __init__(self):
        super().__init__()
        self.stem, self.run, self.classify = nn.Conv2d(1, 16, 1), make_separable_run(), nn.Linear(16, 10)

    def forward(self, x):
        return self.classify(self.run(self.stem(x).relu()).mean((2, 3)))


def make_digits_network():
    torch.manual_seed(0)
    network = Network()
    nn.init.normal_(network.classify.weight)
    return network.eval()


def leave_few_forms(monkeypatch):
    """Of those by name."""
    monkeypatch.setattr(_library, "LEAST_SHARE", 0.05)
    names, list_forms = ("depthwise", "depthwise-separable-relu", "low-rank-8", "pointwise"), _library.list_forms
    monkeypatch.setattr(
        _library,
        "list_forms",
        lambda *layer: {name: make for name, make in list_forms(*layer).items() if name in names},
    )


def test_a_sequence_that_is_the_best_choice_is_chosen(monkeypatch):
    leave_few_forms(monkeypatch)
    data, task, clock = kas.evaluate.digits(), kas.evaluate.Classification(), Clock(1e6)
    store = Store(None, {})
    try:
        problem = _problem.Problem(
            make_digits_network(), data, task, _problem.Options(), store, clock, Reporter(clock, True)
        )
        library = _library.Library(problem)
        library.build()
        place = library.get_place()
        front = find_front(place)
        # In a third of the time of the run, nothing by name is as near to the network.
        chosen = choose(place, front[-1].ms / 3)
        forms = {option.place: option.name for option in chosen.options}
        assert forms.get("run", "").startswith("sequence "), front
        losses = [one.loss for one in library.alternatives if one.form == "skip"]
        assert chosen.loss < 0.3 * min(losses)
        changed = library.put(chosen.options)
        assert isinstance(changed.run, _sequences.RunModule)
        (learnt,) = library.list_learnt(forms, "1")
        assert learnt.kind == "block" and "kas.sequence" in learnt.operator["text"]
    finally:
        store.close()


@pytest.mark.slow
def test_a_whole_run_takes_the_sequence(tmp_path, monkeypatch):
    leave_few_forms(monkeypatch)
    monkeypatch.setenv("KAS_LAYERS", str(tmp_path / "layers.jsonl"))
    for name, value in (("MOST_EPOCHS", 1.0), ("SECOND", 1), ("KEPT", 1)):
        monkeypatch.setattr(_run, name, value)
    data = kas.evaluate.digits()
    # No decision is one about time.
    options = {"max_drop": 20, "minutes": 1e4, "precision": "f32", "progress": False, "out": tmp_path / "out"}
    outcome = kas.accelerate(make_digits_network(), data, **options)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert any(form.startswith("sequence ") for point in results["front"] for form in point["layers"].values())
    assert all("kas.sequence" in one["text"] for form, one in results["operators"].items() if "sequence" in form)
    assert {"model.pt2", "model.onnx", "c"} <= {path.name for path in (tmp_path / "out").iterdir()}
    monkeypatch.setattr(_contest, "train", None)
    again = kas.accelerate(make_digits_network(), data, **options)
    assert {one.name: one.metric for one in again.results} == {one.name: one.metric for one in outcome.results}
