# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fields as data: solvers beside exact solutions, by how their errors shrink; the data sets by their seeds."""

from __future__ import annotations

import dataclasses
import itertools

import numpy
import pytest

torch = pytest.importorskip("torch")

import kas._cache  # noqa: E402
import kas.evaluate  # noqa: E402
from kas.evaluate import _fields  # noqa: E402
from kas.evaluate.__main__ import load_task  # noqa: E402
from kas.evaluate._data_sets import load_any_data  # noqa: E402


def cells(n):
    x = (numpy.arange(n) + 0.5) / n
    return x[:, None], x[None]


def get_error(found, expected):
    return float(numpy.linalg.norm(found - expected) / numpy.linalg.norm(expected))


def get_orders(errors):
    """The orders that errors show, where each grid has cells of half the size."""
    return [numpy.log2(first / second) for first, second in itertools.pairwise(errors)]


def test_darcy_converges_to_a_solution_that_was_chosen():
    errors = []
    for n in (16, 32, 64):
        x, y = cells(n)
        pi = numpy.pi
        u = numpy.sin(pi * x) * numpy.sin(2 * pi * y)
        a = 1.5 + numpy.cos(pi * x) * numpy.sin(pi * y) / 2
        ax, ay = -pi * numpy.sin(pi * x) * numpy.sin(pi * y) / 2, pi * numpy.cos(pi * x) * numpy.cos(pi * y) / 2
        ux, uy = pi * numpy.cos(pi * x) * numpy.sin(2 * pi * y), 2 * pi * numpy.sin(pi * x) * numpy.cos(2 * pi * y)
        source = 5 * pi**2 * a * u - ax * ux - ay * uy
        errors.append(get_error(_fields.solve_darcy(a[None], source[None])[0], u))
    assert min(get_orders(errors)) > 1.9 and errors[-1] < 2e-3, errors


def test_darcy_with_a_jump_solves_its_equations():
    generator = numpy.random.default_rng(0)
    a = numpy.where(generator.standard_normal((3, 24, 24)) > 0, 12.0, 3.0)
    loose, tight = (_fields.solve_darcy(a, tolerance=tolerance) for tolerance in (1e-9, 1e-13))
    assert get_error(loose, tight) < 1e-8
    # What flows out through the walls is what comes in.
    flow = sum((2 * a[line] * tight[line]).sum() for line in (numpy.s_[:, 0], numpy.s_[:, -1]))
    flow += sum((2 * a[line] * tight[line]).sum() for line in (numpy.s_[:, :, 0], numpy.s_[:, :, -1]))
    assert flow == pytest.approx(3.0, rel=1e-9)


def test_burgers_is_the_solution_of_cole_and_hopf():
    # u = -2 nu p_x / p, where p solves the heat equation.
    viscosity, x = 0.02, numpy.arange(256) / 256

    def exact(time):
        k = 2 * numpy.pi
        decay = numpy.exp(-viscosity * k * k * time)
        return 2 * viscosity * k * decay * numpy.sin(k * x) / (2 + decay * numpy.cos(k * x))

    for steps, limit in ((20, 1e-6), (40, 1e-7)):
        found = _fields.solve_burgers(exact(0.0)[None], viscosity, 1.0, steps)[0]
        assert get_error(found, exact(1.0)) < limit


def test_flows_of_taylor_and_green_decay():
    n, viscosity = 32, 0.01
    x = numpy.arange(n) / n
    vortices = numpy.cos(2 * numpy.pi * x)[:, None] + numpy.cos(2 * numpy.pi * x)
    expected = vortices * numpy.exp(-viscosity * (2 * numpy.pi) ** 2 * 2.0)
    found = _fields.solve_navier_stokes(vortices[None], viscosity, 2.0, 50, force=False)[0]
    assert get_error(found, expected) < 1e-10


def test_flows_converge_in_time_and_are_carried_along():
    generator = numpy.random.default_rng(1)
    states = _fields._draw_gaussian(generator, (2, 32, 32), lambda k: 7**1.5 * (k + 49) ** -1.25)
    runs = [_fields.solve_navier_stokes(states, 1e-3, 1.0, steps) for steps in (20, 40, 80, 320)]
    errors = [get_error(run, runs[-1]) for run in runs[:-1]]
    assert min(get_orders(errors)) > 3.5, errors
    # A vortex in a uniform flow would only move; without viscosity and force the mean square stays.
    still = _fields.solve_navier_stokes(states, 0.0, 0.2, 100, force=False)
    filtered = _fields.solve_navier_stokes(states, 0.0, 0.0, 1, force=False)
    assert (still**2).sum() == pytest.approx((filtered**2).sum(), rel=1e-6)
    assert get_error(still, filtered) > 0.01


def test_waves_converge_to_a_standing_one():
    errors = []
    for n in (16, 32, 64):
        x, y = cells(n)
        shape = numpy.sin(numpy.pi * x) * numpy.sin(2 * numpy.pi * y)
        speeds = numpy.full((1, n, n), 1.5)
        found = _fields.solve_waves(shape[None], speeds, 0.4, 2 * n)[0]
        errors.append(get_error(found, shape * numpy.cos(1.5 * numpy.sqrt(5) * numpy.pi * 0.4)))
    assert min(get_orders(errors)) > 1.9, errors
    with pytest.raises(ValueError, match=r"requires steps in which waves pass at most 0.7 cells, got 1.2"):
        _fields.solve_waves(numpy.zeros((1, 8, 8)), numpy.ones((1, 8, 8)), 1.5, 10)


DATA = {
    "darcy": (kas.evaluate.darcy, {"size": 16}, (3, 16, 16), (1, 16, 16)),
    "burgers": (kas.evaluate.burgers, {"size": 32}, (1, 32), (1, 32)),
    "navier_stokes": (kas.evaluate.navier_stokes, {"size": 16}, (1, 16, 16), (1, 16, 16)),
    "waves": (kas.evaluate.waves, {"size": 8}, (2, 8, 8), (1, 8, 8)),
}


@pytest.mark.parametrize("name", DATA)
def test_data_follow_from_their_seeds(name):
    make, options, inputs, targets = DATA[name]
    data = make(train=6, validation=3, test=2, **options)
    assert [tuple(part[0].shape) for part in (data.train, data.validation, data.test)] == [
        (count, *inputs) for count in (6, 3, 2)
    ]
    assert data.train[1].shape == (6, *targets) and data.train[0].dtype == data.train[1].dtype == torch.float32
    again, other = (
        make(train=8, validation=2, test=1, **options),
        make(seed=1, train=6, validation=3, test=2, **options),
    )
    assert torch.equal(again.train[0][:6], data.train[0]) and torch.equal(again.train[1][:6], data.train[1])
    assert not torch.allclose(other.train[0], data.train[0]) and other.name != data.name
    for part in (data.train, data.validation, data.test):
        assert all(bool(side.isfinite().all()) for side in part)
    assert 0.05 < float(data.train[1].std()) < 20
    with pytest.raises(ValueError, match="requires at least a sample for each part"):
        make(train=4, validation=0, test=1, **options)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (kas.evaluate.darcy, {"size": 0}, "requires a size from 4 to 512, got 0"),
        (kas.evaluate.burgers, {"size": 8193}, "requires a size from 4 to 8192, got 8193"),
        (kas.evaluate.waves, {"size": 8.5}, "requires a size from 4 to 512, got 8.5"),
        (kas.evaluate.navier_stokes, {"train": -1}, "requires at least a sample for each part, got -1"),
        (kas.evaluate.burgers, {"viscosity": -1.0}, "requires a positive viscosity, got -1.0"),
        (kas.evaluate.burgers, {"viscosity": float("nan")}, "requires a positive viscosity, got nan"),
        (kas.evaluate.darcy, {"high": -1.0}, "requires a positive coefficient, got -1.0"),
        (kas.evaluate.darcy, {"high": 3.0}, "requires another coefficient than the lower one, 3, got 3"),
    ],
)
def test_data_that_cannot_be_made(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


SUMS = {
    "darcy": (-1.562640084616189, -0.047388175792524787),
    "burgers": (-0.9532584335699077, 0.18383717676547295),
    "navier_stokes": (-0.5286740444686391, -0.12590241554236237),
    "waves": (-2.07638706341229, -1.7876700399319267),
}


@pytest.mark.parametrize("name", DATA)
def test_data_are_the_same_on_any_machine(name):
    # Within 1e-4: orders of sums in transforms and products of matrices are those of the machine.
    make, options, *_ = DATA[name]
    data = make(train=6, validation=3, test=2, **options)
    weights = (
        torch.arange(data.train[0].numel(), dtype=torch.float64).cos(),
        torch.arange(data.train[1].numel(), dtype=torch.float64).cos(),
    )
    found = [float((side.double().flatten() * weight).sum()) for side, weight in zip(data.train, weights)]
    assert found == pytest.approx(SUMS[name], rel=1e-4, abs=1e-4), found


def test_relative_errors_train_a_network():
    data = kas.evaluate.burgers(size=32, train=64, validation=16, test=16)
    task = kas.evaluate.RelativeError()
    targets = data.train[1]
    assert float(task.loss(1.1 * targets, targets)) == pytest.approx(0.1, rel=1e-5)
    assert float(task.metrics(0 * targets, targets)["relative_error"]) == pytest.approx(1.0)
    torch.manual_seed(0)
    layers = [torch.nn.Conv1d(1, 16, 7, padding=3, padding_mode="circular"), torch.nn.GELU()]
    network = torch.nn.Sequential(*layers, torch.nn.Conv1d(16, 1, 7, padding=3, padding_mode="circular"))
    recipe = kas.evaluate.Recipe(epochs=8, batch_size=16, learning_rate=1e-2)
    training = kas.evaluate.Training(network, data, recipe, task=task)
    before = training.evaluate()["relative_error"]
    training.advance(8)
    assert training.evaluate()["relative_error"] < 0.7 * before


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KAS_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("KAS_CACHE_MB", "64")
    return tmp_path


def count_solutions(monkeypatch):
    solved = []
    solve = _fields.solve_darcy
    monkeypatch.setattr(_fields, "solve_darcy", lambda a: solved.append(len(a)) or solve(a))
    return solved


def test_data_are_kept_by_their_settings(cache, monkeypatch):
    solved = count_solutions(monkeypatch)
    counts = {"train": 4, "validation": 2, "test": 1}
    first = kas.evaluate.darcy(8, **counts)
    assert len(solved) == 1
    again = kas.evaluate.darcy(8, **counts)
    assert len(solved) == 1
    for part in ("train", "validation", "test"):
        for one, other in zip(getattr(first, part), getattr(again, part)):
            assert torch.equal(one, other)
            other.zero_()  # Nobody else has this memory.
    assert float(kas.evaluate.darcy(8, **counts).train[1].abs().max()) > 0
    # Each setting is another entry, also where it is the same in six digits.
    for number, options in enumerate(({"seed": 1}, {"high": 12.5}, {"high": 12.0000001}, {"train": 5}), 2):
        kas.evaluate.darcy(8, **{**counts, **options})
        assert len(solved) == number
    assert len(list(cache.iterdir())) == 5


@pytest.mark.parametrize("damage", ["truncated", "empty", "changed"])
def test_damaged_data_are_made_again(cache, monkeypatch, damage):
    solved = count_solutions(monkeypatch)
    counts = {"train": 4, "validation": 2, "test": 1}
    first = kas.evaluate.darcy(8, **counts)
    (path,) = (path for path in cache.rglob("*") if path.is_file())
    content = path.read_bytes()
    wrong = {"truncated": content[:-7], "empty": b"", "changed": content[:-1] + bytes([content[-1] ^ 1])}[damage]
    path.write_bytes(wrong)
    again = kas.evaluate.darcy(8, **counts)
    assert len(solved) == 2 and torch.equal(first.train[1], again.train[1])
    assert path.read_bytes() == content


def test_data_larger_than_half_of_the_cache_are_not_kept(cache, monkeypatch):
    monkeypatch.setattr(kas._cache, "get_limit", lambda: 5000)
    solved = count_solutions(monkeypatch)
    for _ in range(2):
        kas.evaluate.darcy(8, train=30, validation=2, test=2)
    assert len(solved) == 2 and not list(cache.iterdir())


def test_fields_by_name():
    options = {"train": 2, "validation": 1, "test": 1}
    for name in ("darcy-8", "burgers-8", "navier-stokes-8", "waves-8"):
        data = load_any_data(name, **options)
        assert data.train[1].shape[-1] == 8 and data.name.startswith(name) and data.task.metric == "relative_error"
        assert load_task(None, data) is data.task
    assert load_any_data("darcy", **options).train[0].shape == (2, 3, 32, 32)
    with pytest.raises(ValueError, match="requires a size from 4 to 512, got 2"):
        load_any_data("darcy-2")
    with pytest.raises(ValueError, match="requires a size from 4 to 512, got 999999"):
        load_any_data("darcy-999999")
    with pytest.raises(ValueError, match=r"must be one of .*, darcy, burgers, navier-stokes, waves, .* got 'darcy-'"):
        load_any_data("darcy-")
    with pytest.raises(ValueError, match="requires no path for the data set 'darcy-8', got 'x'"):
        load_any_data("darcy-8", "x")
    with pytest.raises(ValueError, match=r"'darcy-8' must give a kas.evaluate.Data, got TaskData"):
        kas.evaluate.load_data("darcy-8", **options)
    with pytest.raises(TypeError, match=r"the task must be a kas.evaluate.Task, got str"):
        dataclasses.replace(load_any_data("darcy-8", **options), task="relative_error")


def test_fields_are_learned_by_their_error_in_python_too():
    """A name is enough: nobody takes fields for classes."""
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 1, 1))
    data = kas.evaluate.darcy(8, train=16, validation=8, test=8)
    trainer = kas.evaluate.Trainer(network, data, kas.evaluate.Recipe(epochs=1, batch_size=8))
    assert trainer.task is data.task and trainer.metrics == ["relative_error", "loss"]
    text = r"classification requires classes as targets, integers of shape \[examples\], got \(16, 1, 8, 8\) of float32"
    for call in (
        lambda: kas.evaluate.Trainer(network, data, task=kas.evaluate.Classification()),
        lambda: kas.accelerate(network, data, task=kas.evaluate.Classification(), progress=False),
        lambda: kas.search(network, dataclasses.replace(data, task=None), "1 trainings", progress=False),
    ):
        with pytest.raises(ValueError, match=text):
            call()
