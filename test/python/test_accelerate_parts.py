# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.accelerate: the parts, without trainings of whole networks."""

import itertools
import json
import math
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import types

import pytest
import torch
from torch import nn

import kas
from kas import cli
from kas._accelerate import (
    _alternatives,
    _baselines,
    _contest,
    _distill,
    _imitation,
    _knapsack,
    _learnt,
    _library,
    _narrow,
    _outcome,
    _precision,
    _statistics,
    _times,
    _units,
)
from kas._accelerate._problem import Options
from kas._accelerate._progress import EndedError, Ending
from kas._accelerate._store import Store
from kas.zoo._backbones import NETWORKS
from kas.zoo._layers import LAYERS, Shuffle


def list_choices(place):
    """All choices of a place, by brute force."""
    found = [(option,) for option in place.options]
    if place.parts:
        for parts in itertools.product(*(list_choices(part) for part in place.parts)):
            found.append(tuple(itertools.chain(*parts)))
    return found


def make_place(generator, depth=0):
    """Options with ties, and blocks with parts."""

    def make_options(count):
        return tuple(
            _knapsack.Option(
                "place",
                str(number),
                generator.choice([generator.random(), generator.randint(0, 3)]),
                generator.choice([generator.random(), generator.randint(0, 3)]),
            )
            for number in range(count)
        )

    if depth == 2 or (depth and generator.random() < 0.4):
        return _knapsack.Place(make_options(generator.randint(1, 4)))
    parts = tuple(make_place(generator, depth + 1) for _ in range(generator.randint(1, 3)))
    return _knapsack.Place(make_options(generator.randint(0, 2)), parts)


@pytest.mark.parametrize("seed", range(60))
def test_the_choice_is_that_of_brute_force(seed):
    place = make_place(random.Random(seed))
    every = [(sum(one.ms for one in own), sum(one.loss for one in own)) for own in list_choices(place)]
    limit = random.Random(-seed).uniform(0, max(ms for ms, _ in every))
    front = _knapsack.find_front(place, limit)
    for choice in front:
        assert math.isclose(choice.ms, sum(one.ms for one in choice.options), abs_tol=1e-9)
        assert math.isclose(choice.loss, sum(one.loss for one in choice.options), abs_tol=1e-9)
        assert choice.ms <= limit + 1e-9
    assert all(a.ms < b.ms and a.loss > b.loss for a, b in itertools.pairwise(front))
    for part in range(6):
        budget = limit * part / 5
        best = min((loss for ms, loss in every if ms <= budget + 1e-12), default=None)
        chosen = _knapsack.choose(place, budget)
        assert (chosen is None) == (best is None)
        assert best is None or math.isclose(chosen.loss, best, abs_tol=1e-9)


def test_many_places_are_no_problem():
    generator = random.Random(0)
    parts = tuple(
        _knapsack.Place(
            tuple(_knapsack.Option(f"{n}", f"{k}", generator.random(), generator.random()) for k in range(10))
        )
        for n in range(30)
    )
    front = _knapsack.find_front(_knapsack.Place((), parts))
    assert len(front) > 100
    few = _knapsack.thin_out(front, 5)
    assert len(few) == 5 and few[0] == front[0] and few[-1] == front[-1]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="requires finite times and losses, got"):
        _knapsack.find_front(_knapsack.Place((_knapsack.Option("a", "b", value, 0.0),)))
    with pytest.raises(ValueError, match="requires at least one option for each place, got none"):
        _knapsack.find_front(_knapsack.Place((), (_knapsack.Place(),)))


LAYERS_OF_USERS = {
    "plain": (nn.Conv2d(16, 16, 3, padding=1), (16, 9, 9)),
    "strided": (nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False), (16, 9, 8)),
    "dilated": (nn.Conv2d(16, 32, 3, padding=2, dilation=2), (16, 9, 9)),
    "grouped": (nn.Conv2d(32, 32, 3, padding=1, groups=2), (32, 7, 7)),
    "uneven": (nn.Conv2d(16, 24, (3, 5), stride=(2, 1), padding=(0, 2)), (16, 9, 9)),
    "pointwise": (nn.Conv2d(32, 64, 1, stride=2), (32, 8, 8)),
    "depthwise": (nn.Conv2d(32, 32, 5, padding=2, groups=32), (32, 8, 8)),
    "linear": (nn.Linear(64, 64), (64,)),
    "rows": (nn.Linear(64, 32), (10, 64)),
}


def find_unit(layer, shape):
    (unit,) = _units.find_units(nn.Sequential(layer), torch.randn(1, *shape)).layers
    return unit


@pytest.mark.parametrize("name", LAYERS_OF_USERS)
def test_every_alternative_fits_the_layer(name):
    layer, shape = LAYERS_OF_USERS[name]
    unit = find_unit(layer, shape)
    forms = _alternatives.list_forms(layer, unit)
    assert len(forms) >= {"depthwise": 2, "linear": 2, "rows": 1, "pointwise": 3}.get(name, 6)
    for form, make in forms.items():
        module = make()
        assert module(torch.randn(2, *shape)).shape == (2, *unit.output_shape), form
        assert _units.count_macs(module, torch.randn(1, *shape)) <= _alternatives.SHARE * unit.macs, form


def test_layers_that_are_of_a_form_are_found_again():
    torch.manual_seed(0)
    layer = nn.Conv2d(16, 16, 3, padding=1)
    x = torch.randn(8, 16, 6, 6)
    unit = find_unit(layer, (16, 6, 6))
    window, mix = torch.randn(16, 3, 3), torch.randn(16, 16)
    weights = {
        "depthwise-separable": mix[:, :, None, None] * window,
        "pointwise": nn.functional.pad(mix[:, :, None, None], (1, 1, 1, 1)),
        "depthwise": torch.eye(16)[:, :, None, None] * window,
        "low-rank-8": torch.einsum("or,rchw->ochw", torch.randn(16, 8), torch.randn(8, 16, 3, 3)),
    }
    for form, weight in weights.items():
        with torch.no_grad():
            layer.weight.copy_(weight)
            found = _alternatives.list_forms(layer, unit)[form]()
            assert torch.allclose(found(x), layer(x), atol=1e-4), form


def test_groups_of_shuffled_channels_are_found_again():
    torch.manual_seed(0)
    grouped = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, groups=4), Shuffle(4))
    layer, x = nn.Conv2d(16, 16, 3, padding=1), torch.randn(4, 16, 6, 6)
    with torch.no_grad():
        # The responses to single elements are the weight.
        weight = torch.zeros(16, 16, 3, 3)
        for c, i, j in itertools.product(range(16), range(3), range(3)):
            probe = torch.zeros(1, 16, 3, 3)
            probe[0, c, i, j] = 1
            weight[:, c, i, j] = grouped(probe)[0, :, 1, 1] - grouped(torch.zeros(1, 16, 3, 3))[0, :, 1, 1]
        layer.weight.copy_(weight)
        layer.bias.copy_(grouped(torch.zeros(1, 16, 3, 3))[0, :, 1, 1])
        assert torch.allclose(layer(x), grouped(x), atol=1e-5)
        found = _alternatives.list_forms(layer, find_unit(layer, (16, 6, 6)))["grouped-4-shuffle"]()
        assert torch.allclose(found(x), layer(x), atol=1e-5)


@pytest.mark.parametrize("name", ["plain", "strided", "dilated", "grouped", "uneven", "pointwise", "rows"])
def test_imitation_makes_errors_smaller_and_is_repeatable(name):
    layer, shape = LAYERS_OF_USERS[name]
    unit, generator = find_unit(layer, shape), torch.Generator().manual_seed(0)
    # Smooth data, as layers see them: white noise has nothing that less than the layer could know.
    data = torch.randn(64, *shape, generator=generator)
    if data.ndim == 4:
        data = nn.functional.avg_pool2d(data, 3, 1, 1)
    with torch.no_grad():
        seen = _imitation.Seen(data, layer(data))
    for form, make in _alternatives.list_forms(layer, unit).items():
        if form == "skip":
            continue
        first = make()
        before = _imitation._get_error(first, seen)
        after = _imitation.imitate(first, seen, 4)
        assert after <= before and after < 1.05, form
        if form.startswith("depthwise-separable"):
            assert after < 0.99 * before
            second = make()
            assert _imitation.imitate(second, seen, 4) == after


def test_least_squares_find_a_convolution_again():
    torch.manual_seed(0)
    for layer in (nn.Conv2d(8, 12, 3, stride=2, padding=1, groups=2), nn.Conv2d(8, 12, 1, stride=2), nn.Linear(6, 3)):
        shape = (64, 6) if isinstance(layer, nn.Linear) else (64, 8, 7, 7)
        data = torch.randn(shape)
        with torch.no_grad():
            seen = _imitation.Seen(data, layer(data))
        other = type(layer)(*((6, 3) if isinstance(layer, nn.Linear) else (8, 12, layer.kernel_size, 2, layer.padding)))
        if isinstance(layer, nn.Conv2d):
            other = nn.Conv2d(8, 12, layer.kernel_size, 2, layer.padding, groups=layer.groups)
        assert _imitation.solve_last(other, seen)
        assert torch.allclose(other.weight, layer.weight, atol=1e-2)


def test_units_and_blocks_of_a_network():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.twice, self.once = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
            self.reflected = nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect")
            self.block = nn.Sequential(nn.Conv2d(4, 8, 1), nn.ReLU(), nn.Conv2d(8, 4, 1))

        def forward(self, x):
            return self.block(self.reflected(self.once(self.twice(self.twice(x)))))

    units = _units.find_units(Odd(), torch.randn(1, 4, 6, 6))
    assert [unit.name for unit in units.layers] == ["once", "block.0", "block.2"]
    assert [block.name for block in units.blocks] == ["block"]
    assert set(units.misses) == {"twice", "reflected"}
    assert units.misses["twice"] == "requires a layer that runs once, got 2 times"
    blocks, layers = units.get_parts(None)
    assert [one.name for one in blocks] == ["block"] and [one.name for one in layers] == ["once"]
    assert units.macs == 36 * (3 * 4 * 4 * 9 + 4 * 4 * 9 + 2 * 32)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("layer", ["dense", "depthwise"])
def test_networks_become_narrower(name, layer):
    network, x = NETWORKS[name](16, LAYERS[layer]).eval(), torch.randn(2, 1, 32, 32)
    narrower = _narrow.narrow(network, x, 0.5)
    assert narrower(x).shape == (2, 10)
    counts = [sum(p.numel() for p in one.parameters()) for one in (network, narrower)]
    assert counts[1] < 0.4 * counts[0]


def test_channels_without_weights_are_those_that_go():
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.Conv2d(16, 16, 1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16 * 9, 5),
    ).eval()  # fmt: skip
    x = torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        for place, keeps in ((0, range(0, 16, 2)), (4, range(8))):
            gone = [channel for channel in range(16) if channel not in keeps]
            network[place].weight[gone] = 0
            network[place].bias[gone] = 0
        network[3].weight[1::2] = 0
        network[3].bias[1::2] = 0
        narrower = _narrow.narrow(network, x, 0.5)
        assert narrower[0].out_channels == narrower[3].groups == 8 and narrower[8].in_features == 8 * 9
        assert torch.allclose(narrower(x), network(x), atol=1e-5)


class NormWithActivation(nn.BatchNorm2d):
    """A layer that others have derived, as timm does."""

    def __init__(self, channels):
        super().__init__(channels)
        self.act = nn.SiLU()

    def forward(self, x):
        torch._assert(x.ndim == 4, "requires images")
        return self.act(super().forward(x))


class ScaledConv(nn.Conv2d):
    """One with parameters that are not known."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.gain = nn.Parameter(torch.rand(self.out_channels, 1, 1))

    def forward(self, x):
        return super().forward(x) * self.gain


class Mixed(nn.Module):
    """Channels that are known, beside others: gates, tokens, sizes, operations that see all channels."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.stem, self.norm = nn.Conv2d(3, 16, 3, padding=1), NormWithActivation(16)
        self.down, self.up, self.scaled = nn.Conv2d(16, 16, 1), nn.Conv2d(16, 16, 1), ScaledConv(16, 16, 1)
        self.scale = nn.Parameter(torch.rand(16, 1, 1))
        self.project, self.back = nn.Linear(16, 32), nn.Linear(32, 16)
        self.act, self.pool, self.layer_norm = nn.GELU(), nn.AvgPool2d(2), nn.LayerNorm(16)
        self.last = nn.Linear(16, 5)

    def forward(self, x):
        x = self.norm(self.stem(x))
        if self.kind == "gate":
            x = x * torch.sigmoid(self.up(torch.relu(self.down(x.mean((2, 3), keepdim=True)))))
        elif self.kind == "tokens":
            tokens = x.flatten(2).transpose(1, 2)
            x = (tokens + self.back(self.act(self.project(tokens)))).transpose(1, 2).reshape(x.shape)
        elif self.kind == "channels last":
            x = self.pool(self.act(self.project(x.permute(0, 2, 3, 1))))
            x = x.mean((1, 2))[:, :, None, None].repeat(1, 1, 6, 6)
        elif self.kind == "norm":
            x = self.layer_norm(x.movedim(1, -1)).movedim(-1, 1)
        elif self.kind == "twice":
            x = self.up(torch.relu(self.up(x)))
        elif self.kind == "shuffle":
            x = x.view(x.shape[0], 2, 8, 6, 6).transpose(1, 2).flatten(1, 2)
        else:
            x = self.scaled(x) * self.scale
        return self.last(x.mean((2, 3)))


@pytest.mark.parametrize("kind", ["gate", "tokens", "channels last", "norm", "twice", "shuffle", "parameters"])
def test_where_something_else_is_done_with_channels_they_stay(kind):
    """What goes has weights of 0, so that networks compute the same: any channel that is taken for another is seen."""
    torch.manual_seed(0)
    network, x = Mixed(kind).eval(), torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        for layer in (network.stem, network.down, network.project, *([network.up] if kind == "gate" else [])):
            layer.weight[::2] = 0
            layer.bias[::2] = 0
        try:
            narrower = _narrow.narrow(network, x, 0.5)
        except _narrow.NotNarrowableError as error:
            narrower, reason = network, str(error)
            assert reason == "requires channels that can be cut, got none"
        assert torch.allclose(narrower(x), network(x), atol=1e-5)
    cut = {name for name, p in narrower.named_parameters() if p.shape != network.get_parameter(name).shape}
    expected = {"gate": "down", "tokens": "project", "channels last": "", "twice": "", "norm": "", "shuffle": ""}
    assert (expected.get(kind, "") + ".weight" in cut) == bool(expected.get(kind))
    assert ("up.bias" in cut) == (kind == "gate") and "scaled.weight" not in cut


def test_what_cannot_be_narrower_says_why():
    x = torch.randn(1, 4, 6, 6)
    with pytest.raises(_narrow.NotNarrowableError, match="requires channels that can be cut, got none"):
        _narrow.narrow(nn.Sequential(nn.Conv2d(4, 8, 3), nn.LayerNorm(4)), x, 0.5)
    with pytest.raises(_narrow.NotNarrowableError, match="requires channels that can be cut, got none"):
        _narrow.narrow(nn.Sequential(nn.Conv2d(4, 8, 3)), x, 0.5)


@pytest.mark.parametrize(("kept", "is_there"), [(4, True), (5, False)])
def test_a_pruned_network_has_to_run(monkeypatch, kept, is_there):
    class Pruner:
        """Cuts the outputs of the first layer; the second one takes four."""

        def __init__(self, network, example, ignored_layers, **options):
            assert ignored_layers == [network[1]]
            self.network = network

        def step(self):
            self.network[0].weight = nn.Parameter(self.network[0].weight[:kept])
            self.network[1] = nn.Conv2d(4, 3, 1)

    fake = types.SimpleNamespace(
        pruner=types.SimpleNamespace(MagnitudePruner=Pruner),
        importance=types.SimpleNamespace(GroupMagnitudeImportance=lambda p: p),
    )
    monkeypatch.setitem(sys.modules, "torch_pruning", fake)
    said = []
    model = nn.Sequential(nn.Conv2d(2, 8, 3, bias=False), nn.Conv2d(8, 3, 1)).eval()
    reporter = types.SimpleNamespace(message=said.append)
    found = _baselines.make_pruned(
        types.SimpleNamespace(model=model, batch=torch.randn(1, 2, 8, 8), reporter=reporter), [0.5]
    )
    assert [one.kind for one in found] == ["pruned"] * is_there and model[0].weight.shape[0] == 8
    assert len(said) == (not is_there) and all(
        "torch-pruning cannot prune the network: RuntimeError" in s for s in said
    )


def test_drops_of_classes_are_paired():
    task = kas.evaluate.Classification()
    classes = torch.arange(400) % 4
    right = torch.eye(4)[classes]
    wrong = right.roll(1, 1)
    one = torch.where((torch.arange(400) < 40)[:, None], wrong, right)  # 90 %
    two = torch.where((torch.arange(400) < 60)[:, None], wrong, right)  # 85 %, wrong wherever the first is
    drop = _statistics.compare(task, *(_statistics.Outputs([(x, classes)]) for x in (one, two)))
    assert drop.value == pytest.approx(5.0)
    assert drop.error == pytest.approx(100 * math.sqrt(0.05 * 0.95 / 399), rel=1e-6)
    assert drop.get_bound(0.5) == pytest.approx(5.0) and drop.get_bound(0.975) == pytest.approx(drop.high, rel=1e-3)


class Topic(kas.evaluate.Task):
    metric = "accuracy"
    maximize = True

    def loss(self, outputs, targets):
        return nn.functional.cross_entropy(outputs, targets)

    def metrics(self, outputs, targets):
        return {"accuracy": (outputs.argmax(1) == targets).float().mean()}


def test_accuracies_of_tasks_of_users_are_in_points():
    classes = torch.arange(400) % 4
    generator = torch.Generator().manual_seed(0)
    outputs = [_statistics.Outputs([(torch.randn(400, 4, generator=generator), classes)]) for _ in range(2)]
    drops = [_statistics.compare(task, *outputs) for task in (Topic(), kas.evaluate.Classification())]
    assert drops[0].value == pytest.approx(drops[1].value, abs=1e-4) and drops[0].value != 0
    assert {_statistics.get_unit(task) for task in (Topic(), kas.evaluate.Classification())} == {"points"}
    assert _statistics.get_unit(Regression()) == "%"


class Regression(kas.evaluate.Task):
    def loss(self, outputs, targets):
        return nn.functional.mse_loss(outputs, targets)


def test_drops_of_other_metrics_are_relative_with_an_error_of_the_examples():
    generator = torch.Generator().manual_seed(0)
    targets = torch.randn(2000, 1, generator=generator)
    noise = torch.randn(2000, 1, generator=generator)
    task = Regression()
    model, other = (_statistics.Outputs([(targets + size * noise, targets)]) for size in (1.0, 1.1))
    drop = _statistics.compare(task, model, other)
    assert drop.value == pytest.approx(21, abs=0.01) and drop.error < 0.01
    free = _statistics.Outputs([(targets + torch.randn(2000, 1, generator=generator), targets)])
    drop = _statistics.compare(task, model, free)
    assert 3 < drop.error < 7  # the root of 2 / 2000, twice, is 4.5 %
    assert abs(drop.value) < 3 * drop.error


def make_contender(name, ms, value):
    contender = _contest.Contender(name, "ours", nn.Identity())
    contender.ms, contender.drop = ms, _statistics.Drop(value, 0.1)
    return contender


def test_the_fastest_that_may_still_come_to_the_limit_is_first():
    contenders = [make_contender(*one) for one in (("a", 1, 3.0), ("b", 2, 0.9), ("c", 3, 0.1), ("d", 0.5, 9.0))]
    assert [one.name for one in _contest.rank(contenders, 0.5, 0.5, 0.5)] == ["b", "c", "a", "d"]
    assert [one.name for one in _contest.rank(contenders, 0.5, 0.5, 1.0)] == ["c", "b", "a", "d"]
    assert [one.name for one in _contest.rank_for_time(contenders, 2.0)] == ["b", "a", "d", "c"]


def test_a_confidence_leaves_room_for_the_error_of_the_examples():
    contenders = [make_contender(*one) for one in (("a", 1, 0.45), ("b", 2, 0.3), ("c", 3, 0.1))]
    assert [one.name for one in _contest.rank(contenders, 0.5, 0.5, 1.0)] == ["a", "b", "c"]
    assert [one.name for one in _contest.rank(contenders, 0.5, 0.9, 1.0)] == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("target_ms", "names", "is_reached"),
    [
        (None, ["model"], False),
        (None, ["model", "model, bf16"], True),
        (None, ["model", "narrower"], False),
        (0.6, ["model", "narrower"], True),
        (0.4, ["model", "narrower", "model, bf16"], False),
    ],
)
def test_a_faster_precision_or_baseline_is_a_success_too(target_ms, names, is_reached):
    def make(name):
        drop = _statistics.Drop(9.0 if name == "narrower" else 0.0, 0.1)
        precision, kind = ("bf16" if "bf16" in name else "f32"), ("narrower" if name == "narrower" else "dense")
        return _contest.Result(name, kind, precision, None, 0.9, drop, drop, 1.0 if name == "model" else 0.5, 1, 1.0)

    problem = types.SimpleNamespace(options=Options(), task=kas.evaluate.Classification(), model=nn.Identity())
    outcome = _outcome.Accelerated(problem, [make(name) for name in names], [], True, target_ms, None)
    assert outcome.is_reached == is_reached and outcome.verdict


def measure_model(ms, drop):
    return _precision.ModelInPrecision(None, ms, _statistics.Drop(drop, 0.01))


@pytest.mark.parametrize(
    ("wanted", "found", "chosen"),
    [
        ("auto", {"bf16": (0.9, 0.0), "int8": (0.5, 0.1)}, "int8"),
        ("auto", {"bf16": (0.9, 0.0), "int8": (0.5, 0.4)}, "bf16"),
        ("auto", {"bf16": (0.99, 0.0), "int8": (1.5, 0.0)}, "f32"),
        ("auto", {}, "f32"),
        ("f32", {}, "f32"),
        ("int8", {"int8": (1.5, 0.0)}, "int8"),
    ],
)
def test_networks_are_chosen_in_the_precision_that_pays(wanted, found, chosen):
    said = []
    problem = types.SimpleNamespace(
        options=Options(precision=wanted), reporter=types.SimpleNamespace(message=said.append)
    )
    models = {"f32": measure_model(1.0, 0.0), **{name: measure_model(*one) for name, one in found.items()}}
    assert _precision.choose_precision(problem, models) == chosen
    assert [text.split(":")[0] for text in said] == (["int8 is not faster here"] if wanted == "int8" else [])


def test_the_time_of_a_layer_that_does_not_multiply_bytes_is_that_of_f32():
    times = _times.LayerTimes(1, 1, "int8")
    for layer in (nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.Conv2d(8, 8, 1)):
        assert times.measure(layer, (layer.in_channels, 8, 8)) > 0, times.failures


class SlowSteps(_distill.Steps):
    """Steps of two milliseconds that keep their rates."""

    def __init__(self, size, rates):
        super().__init__(nn.Identity(), size, None)
        self.rates = rates

    def start(self, network):
        return types.SimpleNamespace(step=self.step, finish=lambda: None)

    def step(self, inputs, targets, outputs, rate):
        time.sleep(2e-3)
        self.rates.append(rate)
        return 0.0


@pytest.fixture
def user_layers(tmp_path, monkeypatch):
    monkeypatch.setenv("KAS_LAYERS", str(tmp_path / "mine" / "layers.jsonl"))
    return tmp_path / "mine" / "layers.jsonl"


def make_learnt(layer, form, shape=(16, 8, 8), **changes):
    unit = find_unit(layer, shape)
    values = {"macs": unit.macs, "own_ms": 2.0, "ms": 1.0, "loss": 0.01, "precision": "f32", "data": "mine", **changes}
    return _learnt.Learnt(*_learnt.describe_layer(layer, unit), form, **values)


def test_what_won_before_is_tried_first(user_layers):
    same, wider, strided = (nn.Conv2d(16, n, 3, s, padding=1) for n, s in ((16, 1), (32, 1), (16, 2)))
    forms = list(_alternatives.list_forms(same, find_unit(same, (16, 8, 8))))
    space, kind = _learnt.describe_layer(same, find_unit(same, (16, 8, 8)))
    plain = _library.order_forms(forms, [], space, kind)
    assert plain[0] == _library.PREFERRED[0] and sorted(plain) == sorted(forms)
    # What won for the same layer comes before what won more often for others of its kind; other kinds do not count.
    wins = [make_learnt(wider, "shift-pointwise")] * 2 + [
        make_learnt(strided, "pointwise"),
        make_learnt(same, "low-rank-8"),
    ]
    _learnt.add(wins)
    _learnt.add(wins[:1])
    assert _learnt.read(user_layers) == [*wins, wins[0]]
    order = _library.order_forms(forms, _learnt.read(user_layers), space, kind)
    assert order == [
        "low-rank-8",
        "shift-pointwise",
        *(one for one in plain if one not in ("low-rank-8", "shift-pointwise")),
    ]


def test_the_layers_that_come_with_kas_are_some_that_are_faster():
    entries = _learnt.read(_learnt.SHIPPED)
    assert len(entries) == len(_learnt.SHIPPED.read_text().splitlines()) > 0
    assert all(0 < one.ms < one.own_ms and 0 < one.loss < 0.5 for one in entries)


def test_a_file_of_layers_that_is_damaged_costs_no_more_than_its_lines(user_layers):
    good = make_learnt(nn.Conv2d(16, 16, 3, padding=1), "depthwise")
    _learnt.add([good])
    line = user_layers.read_text()
    wrong = ["{", "[1]", "7", '{"space": "a"}', line.replace("2.0", "NaN"), line.replace('"depthwise"', "3"), "\0" * 9]
    user_layers.write_text("\n".join([*wrong, line]))
    assert _learnt.read(user_layers) == [good]
    _learnt.add([good] * (_learnt.MOST + 5))
    assert len(_learnt.read(user_layers)) == _learnt.MOST and len(list(user_layers.parent.iterdir())) == 1


def test_a_full_disk_leaves_the_layers_that_are_there(user_layers, monkeypatch):
    good = make_learnt(nn.Conv2d(16, 16, 3, padding=1), "depthwise")
    _learnt.add([good])

    def fill_disk(*arguments):
        raise OSError("No space left on device")

    monkeypatch.setattr(_learnt.os, "replace", fill_disk)
    with pytest.raises(OSError, match="No space left"):
        _learnt.add([good])
    assert _learnt.read(user_layers) == [good] and len(list(user_layers.parent.iterdir())) == 1


ADD = """
import dataclasses, sys
from kas._accelerate import _learnt
entry = _learnt.read(_learnt.SHIPPED)[0]
for number in range(20):
    name = f"{sys.argv[1]} {number}"
    _learnt.add([dataclasses.replace(entry, form=name, run=name)])
"""


def test_runs_that_end_at_once_keep_the_layers_of_all(user_layers):
    processes = [subprocess.Popen([sys.executable, "-c", ADD, name]) for name in "abc"]
    assert [one.wait() for one in processes] == [0, 0, 0]
    kept = [one.form for one in _learnt.read(user_layers)]
    assert sorted(kept) == sorted(f"{name} {number}" for name in "abc" for number in range(20))
    assert list(user_layers.parent.iterdir()) == [user_layers]


def test_a_run_keeps_its_layers_once(user_layers):
    layer = nn.Conv2d(16, 16, 3, padding=1)
    own = [make_learnt(layer, form, run="1") for form in ("depthwise", "pointwise")]
    other = make_learnt(layer, "depthwise", run="2")
    _learnt.add(own)
    _learnt.add([other])
    # It was killed before it noted that they are kept, and goes on; a later version of kas had written a line, too.
    with user_layers.open("a") as file:
        file.write('{"space": "of a later version"}\n')
    _learnt.add(own)
    assert _learnt.read(user_layers) == [other, *own]
    assert "of a later version" in user_layers.read_text()


def test_the_report_shows_layers(user_layers, capsys):
    _learnt.add([make_learnt(nn.Linear(64, 32), "low-rank-8", (64,), own_ms=50.0)])
    assert cli.main(["report", "--layers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(_learnt.read(_learnt.SHIPPED))
    assert "linear 64 to 32, [64]" in lines[1] and lines[1].endswith("you") and lines[2].endswith("kas")
    assert cli.main(["report", "--layers", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[-1]["form"] == "low-rank-8"
    for arguments in (["report"], ["report", "--layers", "search.db"]):
        assert cli.main(arguments) == 1
    assert "requires the database of a search or --layers, got both" in capsys.readouterr().err


def test_trainings_end_in_time_with_a_small_rate(monkeypatch):
    data, rates = kas.evaluate.digits(), []
    monkeypatch.setattr(_distill, "recalibrate", lambda *arguments: None)
    teacher = _distill.Teacher(nn.Flatten(), data)
    schedule = _distill.Schedule(100, batch_size=50)
    start = time.monotonic()
    found = _distill.train(nn.Identity(), teacher, None, schedule, 0, SlowSteps(50, rates), seconds=0.3)
    assert time.monotonic() - start < 0.6
    assert found.steps == len(rates) < schedule.epochs * data.num_batches(50)
    assert rates[-1] < 0.01 * max(rates)


def test_an_interrupt_ends_trainings(monkeypatch):
    data, rates, ending = kas.evaluate.digits(), [], Ending()
    monkeypatch.setattr(_distill, "recalibrate", lambda *arguments: None)
    teacher = _distill.Teacher(nn.Flatten(), data)
    with ending.calling(lambda: rates.append("heard")):
        timer = threading.Timer(0.2, ending.set)
        timer.start()
        with pytest.raises(EndedError):
            _distill.train(
                nn.Identity(),
                teacher,
                None,
                _distill.Schedule(1e4, batch_size=50),
                0,
                SlowSteps(50, rates),
                ending=ending,
            )
        timer.join()
    assert 0 < len(rates) < 1000 and rates.count("heard") == 1
    # What begins later hears of it at once.
    with ending.calling(lambda: rates.append("heard")):
        assert rates[-1] == "heard"


def test_a_store_goes_on_and_refuses_another_run(tmp_path):
    store = Store(tmp_path, {"model": "1"})
    store.put("a", [1.5, "x"])
    layer = nn.Linear(2, 3)
    store.put_state("weights", layer)
    # The process ended in the middle of a line.
    with open(tmp_path / "state" / "steps.jsonl", "a") as file:
        file.write('{"step": "b", "va')
    with pytest.raises(ValueError, match=f"requires a folder that no other run is at work in, got '{tmp_path}'"):
        Store(tmp_path, {"model": "1"})
    store.close()
    again = Store(tmp_path, {"model": "1"})
    assert "a" in again and again["a"] == [1.5, "x"] and "b" not in again
    other = nn.Linear(2, 3)
    assert again.get_state("weights", other) and torch.equal(other.weight, layer.weight)
    assert not again.get_state("others", other)
    again.put("b", 2)
    again.close()
    last = Store(tmp_path, {"model": "1"})
    assert last["b"] == 2
    last.close()
    with pytest.raises(ValueError, match="holds another run: model is '1' there, '2' here"):
        Store(tmp_path, {"model": "2"})


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path):
    store = Store(tmp_path, {})
    store.put("a", 1)
    log = tmp_path / "state" / "steps.jsonl"
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 20, limits[1]))
    try:
        with pytest.raises(OSError):
            store.put("b", "x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    # As another thread, which has the space.
    store.put("c", 2)
    store.close()
    again = Store(tmp_path, {})
    assert "b" not in again and (again["a"], again["c"]) == (1, 2)
    again.close()


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    store, layer = Store(tmp_path, {}), nn.Linear(2, 3)
    store.put_state("weights", layer)

    def fill_disk(state, path):
        with open(path, "wb") as file:
            file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", fill_disk)
    with pytest.raises(OSError, match=r"cannot keep what was trained .* No space left on device"):
        store.put_state("weights", nn.Linear(2, 3))
    other = nn.Linear(2, 3)
    assert store.get_state("weights", other) and torch.equal(other.weight, layer.weight)
    assert not list(tmp_path.rglob("*.new"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_drop": -1}, "'max_drop' must be a number of at least 0, got -1"),
        ({"max_drop": math.nan}, "'max_drop' must be a number of at least 0, got nan"),
        ({"minutes": 0}, "'minutes' must be more than 0, got 0"),
        ({"confidence": 1.0}, "'confidence' must be at least 0.5 and less than 1, got 1.0"),
        ({"threads": 0}, "'threads' must be an integer of at least 1, got 0"),
        ({"batch": True}, "'batch' must be an integer of at least 1, got True"),
        ({"precision": "fp4"}, "'precision' must be auto, f32, bf16, int8, got 'fp4'"),
        ({"target": "soon"}, "'target' must be milliseconds such as '0.5ms' or a factor such as '3x', got 'soon'"),
        ({"target": 0}, "'target' must be milliseconds such as '0.5ms' or a factor such as '3x', got 0"),
    ],
)
def test_wrong_options_are_refused(change, message):
    with pytest.raises(ValueError) as error:
        Options(**change)
    assert str(error.value) == message


def test_targets_are_milliseconds_or_factors():
    assert Options().get_target(3.0) is None
    assert Options(target="2x").get_target(3.0) == 1.5
    assert Options(target="0.4ms").get_target(3.0) == Options(target=0.4).get_target(3.0) == 0.4


def test_networks_that_are_near_learn_in_small_steps():
    rates = [_distill.choose_rate(loss) for loss in (0.0, 0.002, 0.02, 0.1, 0.5, None)]
    assert rates == sorted(rates)
    assert (rates[0], rates[3], rates[5]) == (_distill.LEAST_RATE, _distill.MOST_RATE, _distill.MOST_RATE)
    assert rates[1] < 0.2 * _distill.MOST_RATE < rates[2] < 0.5 * _distill.MOST_RATE
