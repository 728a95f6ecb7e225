# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.accelerate: operators that the search lists for layers, as alternatives of these."""

import copy
import dataclasses
import functools
import threading
import time
import types

import numpy
import onnxruntime
import pytest
import torch
from torch import nn

import kas
from kas._accelerate import _distill, _files, _found, _imitation, _learnt, _library, _page, _problem, _times, _units
from kas._accelerate._progress import Clock, EndedError, Ending, Reporter
from kas._accelerate._store import Store
from kas.torch import KasModule

torch.set_num_threads(1)
SHAPE = (16, 8, 8)


def make_network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.Conv2d(32, 32, 3, padding=2, dilation=2),
        nn.Conv2d(32, 32, 3, padding=1, groups=4),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 16),
    ).eval()


def make_problem(network, folder=None, seconds=1000.0, precision="f32", wins=()):
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
    return problem, _found.Finder(problem, _found.Allowance(seconds), wins)


@pytest.fixture(scope="module", autouse=True)
def few_candidates():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_found, "CANDIDATES", 60)
        # Sequences have tests of their own.
        patch.setattr(_found, "write_sequence_spaces", lambda *_: {})
        yield


@pytest.fixture(scope="module")
def found():
    network = make_network()
    problem, finder = make_problem(network)
    units = _units.find_units(network, problem.example).layers
    return types.SimpleNamespace(network=network, finder=finder, units=units, jobs=finder.find(units))


def test_every_kind_of_layer_has_operators_that_fit_it(found):
    seen = _imitation.observe_units(found.network, found.units, [torch.randn(32, *SHAPE)])
    assert {unit.name for unit, _, _ in found.jobs} == {"0", "2", "4", "5", "8"}
    assert any(one.named is None for one in found.finder.operators.values())
    assert {one.properties for one in found.finder.operators.values()} == set(_found.CLASSES)
    for unit, form, make in found.jobs:
        module = make()
        assert module(seen[unit.name].data).shape == seen[unit.name].output.shape
        # The same for a seed, whatever was drawn before.
        assert all(torch.equal(*pair) for pair in zip(module.weights, make().weights))
        operator = found.finder.operators[form]
        assert operator.named == (None if form.startswith("operator ") else form) and operator.formula.startswith("Y[")


def test_a_window_stays_where_the_class_says_so(found):
    classes = {
        unit.name: {found.finder.operators[form].properties for one, form, _ in found.jobs if one is unit}
        for unit in found.units
    }
    assert "window, all channels" in classes["0"] and "all channels" in classes["8"]
    for unit, form, make in found.jobs:
        if unit.name != "0":
            continue
        # What an output in the middle depends on: all neighbours, all channels, or both.
        x = torch.randn(1, *SHAPE, requires_grad=True)
        make()(x)[0, 0, 4, 4].backward()
        properties = found.finder.operators[form].properties
        if "window" in properties:
            assert bool((x.grad[0, :, 3:6, 3:6].abs().sum(0) > 0).all()), form
        if "all channels" in properties:
            assert bool((x.grad[0].abs().sum((1, 2)) > 0).all()), form


def test_operators_learn_what_the_layer_does(found):
    data = nn.functional.avg_pool2d(torch.randn(64, *SHAPE, generator=torch.Generator().manual_seed(1)), 3, 1, 1)
    seen = _imitation.observe_units(found.network, found.units, [data])
    for unit, form, make in found.jobs:
        module = make()
        before = _imitation._get_error(module, seen[unit.name])
        after = _imitation.imitate(module, seen[unit.name], 4)
        # Without a bias, the mean of the layer's output is not learnt.
        assert after < before and (after < 1.05 or module.bias is None), form
    assert after == _imitation.imitate(make(), seen[unit.name], 4)


def test_weights_that_an_operator_has_are_found_again(found):
    make = next(
        make
        for unit, form, make in found.jobs
        if unit.name == "0" and found.finder.operators[form].properties == "window, one weight"
    )
    wanted, other = make(), make()
    data = torch.randn(64, *SHAPE, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        for weight in wanted.weights:
            weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(3)))
        wanted.bias.uniform_(-1, 1)
        seen = _imitation.Seen(data, wanted(data))
    assert _imitation.solve_last(other, seen)
    assert _imitation._get_error(other, seen) < 1e-3


def test_a_network_with_operators_is_compiled_trained_and_written(found, tmp_path):
    changed = copy.deepcopy(found.network)
    for unit, form, make in reversed(found.jobs):
        if found.finder.operators[form].named is None:
            _units.set_module(changed, unit.name, make())
    assert sum(isinstance(one, KasModule) for one in changed.modules()) == 5
    x = torch.randn(1, *SHAPE)
    with torch.no_grad():
        expected = changed(x)
    for precision, tolerance in (("f32", 1e-4), ("int8", 0.1)):
        program = _times.compile_network(changed, x, 1, precision, [x])
        assert torch.allclose(program.predict(x), expected, atol=tolerance * float(expected.abs().max()))
    assert "kas.apply" in str(_times.export(changed, x).module)
    batch = torch.randn(8, *SHAPE)
    steps = _distill.NativeSteps(changed, batch, _distill.Schedule(1.0))
    stepper = steps.start(copy.deepcopy(changed))
    losses = [stepper.step(batch, None, found.network(batch).detach(), 1e-2) for _ in range(20)]
    assert losses[-1] < 0.7 * losses[0]
    written = types.SimpleNamespace(batch=x)
    assert _files._write_pytorch(copy.deepcopy(changed), written, str(tmp_path)) == ["model.pt2"]
    assert _files._write_onnx(changed, written, str(tmp_path)) == ["model.onnx"]
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert numpy.allclose(session.run(None, {"data": x.numpy()})[0], expected, atol=1e-4)
    program = torch.export.load(tmp_path / "model.pt2").module()
    with torch.no_grad():
        assert torch.allclose(program(x), expected, atol=1e-4)
    targets = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert targets and not any("kas" in target for target in targets)


def test_modules_of_different_operators_have_times_of_their_own(found):
    times = _times.LayerTimes(1, 1)
    keys = {times.get_key(make(), unit.data_shape) for unit, form, make in found.jobs}
    assert len(keys) == len({(form, unit.data_shape, unit.output_shape) for unit, form, _ in found.jobs})


def test_what_was_listed_is_not_listed_again(tmp_path, monkeypatch):
    network = nn.Sequential(nn.Conv2d(16, 32, 1), nn.ReLU(), nn.Conv2d(32, 16, 1)).eval()
    problem, finder = make_problem(network, tmp_path)
    units = _units.find_units(network, problem.example).layers
    first = [form for _, form, _ in finder.find(units)]
    monkeypatch.setattr(_found, "list_operators", None)
    problem.store.close()
    _, again = make_problem(network, tmp_path, seconds=1.0)
    assert first and [form for _, form, _ in again.find(units)] == first


def test_operators_that_won_are_known_next_time(found, tmp_path, monkeypatch):
    monkeypatch.setenv("KAS_LAYERS", str(tmp_path / "layers.jsonl"))
    unit, other = found.units[0], found.units[-1]
    forms = [form for one, form, _ in found.jobs if one is unit and found.finder.operators[form].named is None]
    described = found.finder.describe(forms)
    learnt = [
        _learnt.Learnt(
            *_learnt.describe_layer(found.network[0], unit), form, 1, 2.0, 1.0, 0.1, "f32", "x", "1", described[form]
        )
        for form in forms
    ]
    broken = dataclasses.replace(learnt[0], form="operator x", operator={**learnt[0].operator, "text": "kas.operator"})
    _learnt.add([*learnt, broken])
    # Without the time to list any: those of the same kind of layer, with their weights.
    _, finder = make_problem(found.network, seconds=0.0, wins=_learnt.read_all())
    recalled = finder.recall(unit)
    assert set(recalled) <= set(forms) and len(recalled) == min(len(forms), _found.MOST_OF_CLASS - 1)
    assert finder.recall(other) == {} and set(finder.describe(recalled)) == set(recalled)
    for make in recalled.values():
        assert make()(torch.randn(1, *unit.data_shape)).shape[1:] == unit.output_shape
    library = _library.order_forms([*recalled, "depthwise"], _learnt.read_all(), learnt[0].space, learnt[0].kind)
    assert library[-1] == "depthwise"


def test_an_interrupt_ends_the_listing_of_operators(tmp_path):
    wide = _units.Unit("0", (8, 224, 224), (64, 224, 224), 8 * 64 * 49 * 224 * 224)
    space = _found.list_spaces("window 7", [wide])["window, one weight"]
    problem, finder = make_problem(make_network(), tmp_path)
    timer = threading.Timer(0.2, problem.ending.set)
    timer.start()
    start = time.monotonic()
    assert _found.list_operators(space, 0, 1000.0, problem.ending) == []
    assert time.monotonic() - start < 5
    # What ended early is no list to go on with.
    with pytest.raises(EndedError):
        finder.find(_units.find_units(problem.model, problem.example).layers)
    assert "operators" not in problem.store and len(problem.store.values) == 1
    problem.store.close()


def test_where_layers_are_faster_in_int8_operators_are_smaller(found):
    units = [unit for unit in found.units if unit.name == "0"]
    forms = {}
    for precision in ("f32", "int8"):
        problem, finder = make_problem(found.network, precision=precision)
        forms[precision] = {form for _, form, _ in finder.find(units)}
        problem.store.close()
    assert forms["int8"] < forms["f32"] and forms["int8"]


def test_where_the_time_is_short_there_are_none():
    network = make_network()
    problem, finder = make_problem(network, seconds=60.0)
    assert finder.find(_units.find_units(network, problem.example).layers) == []
    assert "operators" not in problem.store
    allowance = _found.Allowance(200.0)
    assert not allowance.is_spent(0.5)
    with allowance.count_if(False):
        pass
    assert allowance.spent == 0
    allowance.spent = 10.0
    assert allowance.is_spent(0.5) and not allowance.is_spent(0.6)


def test_operators_of_the_library_have_their_names():
    space = kas.SearchSpace.parse(
        "kas.space @s<N, Cin, Cout, H, W | k> [N, Cout unordered, H, W] from [N, Cin unordered, H, W] "
        "bindings [<N = 1, Cin = 8, Cout = 8, H = 8, W = 8, k = 3>] limits {depth = 10, weights = 1, unfold = 2}"
    )
    names = _found._find_names(space)
    candidates = {one.key: one for one in space.list()}
    found = [_found._describe(candidates[key], "window", names) for key in names if key in candidates]
    assert {"conv1x1", "conv2d", "shift_conv2d"} <= {one.form for one in found}
    for one in found:
        assert one.form == one.named and f"@{one.named}<" in one.text


def test_operators_are_chosen_between_as_other_alternatives(monkeypatch):
    monkeypatch.setattr(_library, "list_forms", lambda layer, unit: {})
    monkeypatch.setattr(_library, "LEAST_SHARE", 0.3)
    # How fast they are depends on the machine: half as fast as a layer is fast enough.
    monkeypatch.setattr(_library, "GAIN", 2.0)
    data, task, clock = kas.evaluate.digits(), kas.evaluate.Classification(), Clock(1e6)
    torch.manual_seed(0)
    network = kas.evaluate.DigitsNetwork(16, blocks=1).eval()
    store = Store(None, {})
    try:
        problem = _problem.Problem(network, data, task, _problem.Options(), store, clock, Reporter(clock, True))
        library = _library.Library(problem)
        library.build()
        options = [one for one in library.alternatives if one.is_operator]
        assert options and all(one.ms > 0 and one.loss >= 0 and one.error < 1.5 for one in options)
        described = library.finder.describe([one.form for one in options])
        assert set(described) == {one.form for one in options}
        assert all(f"name={one.form!r}" in str(library.get_place()) for one in options)
        changed = library.put([_library.Option(options[0].unit.name, options[0].form, 0.0, 0.0)])
        assert isinstance(changed.get_submodule(options[0].unit.name), KasModule)
        assert library.allowance.spent > 0
    finally:
        store.close()


def test_the_page_says_what_an_operator_computes():
    best = types.SimpleNamespace(layers={"a": "operator 1", "b": "skip"})
    operators = {"operator 1": {"formula": "Y[i] = X[i<j]"}}
    page = _page._write_layers(types.SimpleNamespace(operators=operators), best)
    assert "<th>computes</th>" in page and "X[i&lt;j]" in page
    assert "computes" not in _page._write_layers(types.SimpleNamespace(operators={}), best)
