# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers for fields: families, batches, widths, the queue of trainings, results."""

from __future__ import annotations

import math
import pathlib
import xml.etree.ElementTree

import numpy
import pytest
import torch

from kas.evaluate import RelativeError
from kas.evaluate._fields import solve_darcy
from kas_research._spec import SpecError
from kas_research.cli import main
from kas_research.fields import _report, _results, _stages, _time, _train
from kas_research.fields._data import KINDS, Batches, turn
from kas_research.fields._families import FAMILIES, Grid, make_network, set_by_matrix, set_statistics
from kas_research.fields._protocol import COMPILERS, Rules, parse_protocol, read_protocol
from kas_research.protocol._store import Store

ROOT = pathlib.Path(__file__).resolve().parents[3]
WALLS, TORUS = Grid(3, 1, 32, False), Grid(3, 1, 32, True)
GLOBAL = {"axial", "low-rank-axial", "fno-4", "fno-8", "fno-12"}


# ---- Families


@pytest.mark.parametrize("grid", [WALLS, TORUS], ids=["walls", "torus"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_of_each_family(family, grid):
    network = make_network(family, 4, grid, seed=1)
    same = make_network(family, 4, grid, seed=1)
    assert all(torch.equal(one, other) for one, other in zip(network.parameters(), same.parameters()))
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(4, 3, 32, 32, generator=generator)
    targets = 5 + torch.randn(4, 1, 32, 32, generator=generator)
    set_statistics(network, targets)
    loss = RelativeError().loss(network(inputs), targets)
    loss.backward()
    assert all(parameter.grad.isfinite().all() and parameter.grad.any() for parameter in network.parameters())
    with torch.no_grad():
        for parameter in network.parameters():
            parameter -= 1e-3 * parameter.grad / parameter.grad.norm()
    assert RelativeError().loss(network(inputs), targets) < loss


@pytest.mark.parametrize("grid", [WALLS, TORUS], ids=["walls", "torus"])
@pytest.mark.parametrize("family", ["low-rank-axial", "fno-4", "fno-12"])
def test_fourier_transforms_by_matrices_are_fast_ones(family, grid):
    network = make_network(family, 8, grid).eval()
    inputs = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    found = []
    for by_matrix in (False, True):
        assert set_by_matrix(network, by_matrix)
        with torch.no_grad():
            found.append(network(inputs))
    assert torch.allclose(*found, atol=1e-5) and found[0].std() > 0.01
    assert not set_by_matrix(make_network("dense", 4, grid), True)


@pytest.mark.parametrize(
    ("family", "radius"), [("pointwise", 0), ("dense", 4), ("depthwise-3", 4), ("depthwise-7", 12), ("dilated", 15)]
)
def test_how_far_windows_see(family, radius):
    assert find_seen(family)[:, 16].nonzero().flatten().tolist() == list(range(16 - radius, min(17 + radius, 32)))


@pytest.mark.parametrize("family", sorted(GLOBAL | {"unet", "large-kernel-attention"}))
def test_who_sees_the_whole_field(family):
    assert find_seen(family).all()


def find_seen(family):
    """The points that the output at the point (16, 16) depends on."""
    network = make_network(family, 4, WALLS).double().eval()
    inputs = torch.randn(1, 3, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    network(inputs.requires_grad_())[0, 0, 16, 16].backward()
    return inputs.grad[0].abs().sum(0) > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_on_a_torus_move_with_their_fields(family):
    network = make_network(family, 4, TORUS).eval()
    inputs = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    # A unet has grids of points that are eight apart.
    moves = (8, 16) if family == "unet" else (3, 10)
    with torch.no_grad():
        one, other = network(inputs.roll(moves, (2, 3))), network(inputs).roll(moves, (2, 3))
    assert torch.allclose(one, other, atol=1e-5) == (family != "axial")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("conv", 4, WALLS), "requires a family of pointwise, .*, got 'conv'"),
        (("dense", 6, WALLS), "requires a width that is a multiple of 4, got 6"),
        (("unet", 4, Grid(1, 1, 12, False)), "requires a size that is a multiple of 8 of a unet, got 12"),
        (("fno-12", 4, Grid(1, 1, 16, True)), "requires at most 8 modes of a grid of 16 points, got 12"),
    ],
)
def test_networks_that_cannot_be_made(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_network(*arguments)


# ---- Data


def test_turned_samples_are_solutions():
    generator = numpy.random.default_rng(0)
    a = torch.from_numpy(numpy.where(generator.standard_normal((1, 8, 8)) > 0, 12.0, 3.0))
    u = torch.from_numpy(solve_darcy(a.numpy()))
    seen = set()
    for kind in range(8):
        turned = turn(a, kind)
        seen.add(tuple(turned.flatten().tolist()))
        assert numpy.allclose(solve_darcy(turned.numpy()), turn(u, kind), rtol=1e-6)
    assert len(seen) == 8


def test_batches_turn_fields_with_their_targets_and_leave_coordinates():
    scalars = torch.randn(40, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    coordinates = torch.arange(128.0).reshape(1, 2, 8, 8).expand(40, 2, 8, 8)
    part = torch.cat([scalars, coordinates], 1), 2 * scalars
    kept = part[0].clone()
    batches = Batches(KINDS["darcy"], part, 16, torch.Generator().manual_seed(0))
    assert len(batches) == 2
    found = list(batches)
    assert [len(inputs) for inputs, _ in found] == [16, 16]
    for inputs, targets in found:
        assert torch.equal(2 * inputs[:, :1], targets) and torch.equal(inputs[:, 1:], coordinates[:16])
    ours = {tuple(fields.flatten().tolist()) for fields in scalars}
    unturned = sum(tuple(one.flatten().tolist()) in ours for inputs, _ in found for one in inputs[:, 0])
    assert 0 < unturned < 16 and torch.equal(part[0], kept)
    in_order = Batches(KINDS["darcy"], part, 16, None)
    assert len(in_order) == 3 and torch.equal(torch.cat([inputs for inputs, _ in in_order]), part[0])


# ---- Widths


@pytest.mark.parametrize("budget", [0.25, 0.5, 1.5])
@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_widths_are_found_in_few_measurements(budget, power):
    times = {}
    while (width := _time.get_next_width(times, budget)) is not None:
        assert width % 4 == 0 and width not in times
        times[width] = 0.004 * width**power * (1.1 if width % 16 else 1.0)
    chosen = max(width for width, ms in times.items() if ms <= budget)
    assert len(times) <= 7
    assert times[chosen] >= 0.9 * budget or times[chosen + 4] > budget


def test_a_network_that_is_never_fast_enough_has_no_width():
    times = {}
    while (width := _time.get_next_width(times, 0.25)) is not None:
        times[width] = 1.0 + width
    assert min(times) == 4


# ---- The queue

SPEC = """
equations: [{name: darcy, size: 8, train: 40, validation: 20, test: 30}]
experiments:
  - {name: pilot, equations: [darcy], families: [pointwise, dense], budgets: [1, 2], seeds: 0-1, epochs: 3, learning-rates: [4e-3]}
  - {name: more, equations: [darcy], families: [pointwise, dense], budgets: [1], seeds: 5, epochs: 1, learning-rates: best of pilot}
"""  # noqa: E501
WIDTHS = {("darcy", family, budget): 4 * int(budget) for family in ("pointwise", "dense") for budget in (1.0, 2.0)}


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A protocol, a store and a function that makes trainers; steps are PyTorch's, which need no compilation."""
    monkeypatch.setattr(_train, "_CompiledRelativeError", lambda network: RelativeError())
    protocol, store = parse_protocol(SPEC), Store(tmp_path / "store.jsonl")
    return protocol, store, lambda store=store: _train.Trainer(protocol, store, tmp_path / "checkpoints")


def without_times(record):
    return {name: value for name, value in record.items() if name not in ("time", "cpu_seconds")}


def test_trainings_that_were_killed_go_on(queue, tmp_path, monkeypatch):
    protocol, store, make = queue
    jobs = list(protocol.experiments["pilot"].get_jobs(WIDTHS))
    assert [(job.family, job.width, job.seed) for job in jobs[:5]] == [
        ("pointwise", 4, 0), ("dense", 4, 0), ("pointwise", 8, 0), ("dense", 8, 0), ("pointwise", 4, 1)
    ]  # fmt: skip
    whole = Store(tmp_path / "whole.jsonl")
    make(whole).run(jobs[:3])
    epochs = 0
    advance = _train.Training.advance

    def advance_until_killed(training, *arguments):
        nonlocal epochs
        epochs += 1
        if epochs == 5:
            raise KeyboardInterrupt
        advance(training, *arguments)

    monkeypatch.setattr(_train.Training, "advance", advance_until_killed)
    with pytest.raises(KeyboardInterrupt):
        make().run(jobs[:3])
    assert len(list(store)) == 1 and len(list((tmp_path / "checkpoints").glob("*.pt"))) == 1
    seen = []
    make().run(jobs[:3], lambda record, left: seen.append((record["settings"]["family"], left)))
    # One of three epochs was not lost: 3 + 1 before, one that was killed, 2 + 3 after.
    assert epochs == 3 + 1 + 1 + 2 + 3 and seen == [("dense", 1), ("pointwise", 0)]
    assert list(map(without_times, store)) == list(map(without_times, whole))
    assert not list((tmp_path / "checkpoints").iterdir())
    make().run(jobs[:3])
    assert epochs == 10


def test_a_training_has_one_process(queue):
    protocol, store, make = queue
    jobs = list(protocol.experiments["pilot"].get_jobs(WIDTHS))[:2]
    with make()._lock(jobs[0]) as is_mine:
        assert is_mine
        make().run(jobs)
    assert [record["settings"]["family"] for record in store] == ["dense"]


def test_trainings_that_fail_are_records(queue):
    protocol, store, make = queue
    (job,) = list(protocol.experiments["pilot"].get_jobs(WIDTHS))[:1]
    make().run([job._replace(learning_rate=1e30)])
    (record,) = store
    assert "the loss is" in record["failure"] and "error" not in record


def test_records_have_the_errors_of_all_fields(queue):
    protocol, store, make = queue
    make().run(list(protocol.experiments["pilot"].get_jobs(WIDTHS))[:1])
    (record,) = store
    errors = _train.unpack(record["errors"])
    assert errors.shape == (30,) and errors.mean() == pytest.approx(record["error"], rel=1e-3)
    assert len(record["curve"]) == 3 and 0 < record["error"] < 100


def test_compiled_steps_are_pytorchs(tmp_path, monkeypatch):
    protocol = parse_protocol(SPEC)
    job = next(protocol.experiments["pilot"].get_jobs(WIDTHS))._replace(epochs=1)
    trainer = _train.Trainer(protocol, Store(tmp_path / "s"), tmp_path)
    compiled = trainer.train(job)
    monkeypatch.setattr(_train, "_CompiledRelativeError", lambda network: RelativeError())
    assert compiled["curve"] == pytest.approx(trainer.train(job)["curve"], rel=1e-4)
    assert compiled["error"] == pytest.approx(trainer.train(job)["error"], rel=1e-3)


# ---- The file


def test_the_protocol_of_the_report():
    protocol = read_protocol(str(ROOT / "research/data/fields.yaml"))
    pilot = protocol.experiments["pilot"]
    assert len(pilot.families) >= 10 and len(pilot.budgets) == 2 and pilot.seeds == (0, 1, 2)
    assert protocol.rules == Rules(2, 3, 0.15, 0.9, 0.95, 0.05, 4000)
    page = (ROOT / "research/guide/fields.md").read_text(encoding="utf-8")
    assert all(f"`{family}`" in page for family in FAMILIES)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("size: 8,", "size: 4,", r"t:2: requires 'size' from 8 to 4096, got '4'"),
        ("name: darcy", "name: heat", r"t:2: requires an equation of darcy, navier-stokes, waves, relief, got 'heat'"),
        ("dense]", "conv]", r"t:4: requires family of pointwise, .*, got 'conv'"),
        ("0-1", "1-0", r"t:4: requires seeds such as 3 or 100-104, got '1-0'"),
        ("[1, 2]", "[1, 1]", r"t:4: requires each budget once, got '1' again"),
        ("best of pilot", "best of none", r"t:5: requires the best of pilot, more, got that of 'none'"),
        ("name: more", "name: pilot", r"t:5: requires an experiment of each name once, got 'pilot' again"),
        ("epochs: 3, ", "compilers: [gcc], epochs: 3, ", r"t:4: requires compiler of kas, .*, got 'gcc'"),
        ("epochs: 3, ", "", r"t:4: requires the key 'epochs' in an experiment, got none"),
        ("equations: [{", "rules: {win: x}\nequations: [{", r"t:2: requires 'win' from 0 to 1e\+06, got 'x'"),
    ],
)
def test_files_that_are_refused(old, new, message):
    with pytest.raises(SpecError, match=message):
        parse_protocol(SPEC.replace(old, new, 1), "t")


# ---- Results


def make_point(family, error, budget=0.25, seeds=3, spread=0.02, width=16, ms=0.24):
    generator = numpy.random.default_rng([seeds, *family.encode()])
    # Some fields are harder than others, for all families.
    fields = numpy.exp(0.3 * numpy.random.default_rng(7).standard_normal(500))
    errors = {
        seed: error * fields * numpy.exp(spread * generator.standard_normal() + 0.1 * generator.standard_normal(500))
        for seed in range(seeds)
    }
    return _results.Point("darcy", family, budget, width, ms, "kas", 100, errors, {}, [1.0] * seeds)


def test_ratios_have_intervals_over_seeds_and_fields():
    base, worse, same = make_point("fno-8", 2.0), make_point("dense", 3.0), make_point("axial", 2.0)
    ratios = _results.compare([base, worse, same, make_point("unet", 1.0, seeds=0)], base, 2000)
    assert ratios[0] == (1.0, 1.0, 1.0, 1.0) and ratios[3] is None
    assert ratios[1].low < 1.5 < ratios[1].high and ratios[1].high - ratios[1].low < 0.2
    assert ratios[2].low < 1.0 < ratios[2].high
    assert ratios == _results.compare([base, worse, same, make_point("unet", 1.0, seeds=0)], base, 2000)
    # More deviation over seeds is a wider interval.
    wide = _results.compare([make_point("dense", 3.0, spread=0.3)], base, 2000)[0]
    assert wide.high - wide.low > 2 * (ratios[1].high - ratios[1].low)


def test_rules_to_stop():
    good = [make_point("pointwise", 16), make_point("dense", 5), make_point("fno-8", 2)]

    def decide(points, seeds=3):
        return _report.decide(_results.check_rules(points, Rules(), seeds))

    assert decide(good) == "The search goes on."
    assert decide([make_point("pointwise", 3.5), *good[1:]]) == "The search is given up."
    assert decide([good[0], make_point("dense", 6.5), good[2]]) == "The search is given up."
    assert decide([*good[:2], make_point("unet", 2, spread=0.8)]) == "The search is given up."
    more = [make_point("pointwise", 3, budget=0.5), make_point("unet", 2, budget=0.5)]
    assert decide([*good, *more]) == "The search is given up."
    # Nothing is decided before the last training.
    assert decide(good, seeds=4) == decide(good[1:]) == "Open: trainings are missing."
    failed = make_point("unet", 4, seeds=2)
    assert decide([*good, failed]) == "Open: trainings are missing."
    failed.failures[2] = "the loss is nan"
    assert decide([*good, failed]) == "The search goes on."


def test_the_report_has_all_points():
    points = [make_point("pointwise", 16), make_point("dense", 5), make_point("unet", 4, seeds=0)]
    points += [make_point("pointwise", 15, 0.5, width=32, ms=0.47)]
    tables = _report.write_tables(points, Rules(), 3)
    rows = [line for line in tables.splitlines() if line.startswith("| 0.")]
    assert [row.split(" | ")[1] for row in rows] == ["dense", "pointwise", "unet", "pointwise"]
    assert "9 of 12 trainings" in tables and "| stop |" not in rows
    page = f"# Page\n{_report.BEGIN}\nold\n{_report.END}\nrest\n"
    assert _report.update_page(page, "new") == f"# Page\n{_report.BEGIN}\nnew\n{_report.END}\nrest\n"
    with pytest.raises(ValueError, match="requires a page with the lines"):
        _report.update_page("# Page", "new")
    root = xml.etree.ElementTree.fromstring(_report.write_plot(points))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "dense" in texts and "unet" not in texts and any(text.startswith("16 %") for text in texts)


def test_learning_rates_are_the_best_of_an_experiment(queue):
    protocol, store, _ = queue
    width = 4
    for family in ("pointwise", "dense"):
        key = protocol.time_key("darcy", family, width, COMPILERS)
        grid = vars(protocol.equations["darcy"].grid)
        ms = {"kas": 0.95}
        store.add({"kind": "time", "key": key, "family": family, "width": width, "grid": grid, "batch": 16, "ms": ms})
    more = protocol.experiments["more"]
    assert _stages.get_jobs(protocol, more, store) == []
    pilot = protocol.experiments["pilot"]
    for job in _stages.get_jobs(protocol, pilot, store)[:2]:
        store.add({"kind": "training", "key": protocol.key(job), "failure": None, "validation": math.pi})
    jobs = _stages.get_jobs(protocol, more, store)
    assert [(job.family, job.learning_rate) for job in jobs] == [("pointwise", 4e-3), ("dense", 4e-3)]


# ---- The command


@pytest.mark.usefixtures("queue")
def test_the_command_goes_on_from_any_stage(tmp_path, monkeypatch, capsys):
    measured = []

    def measure(protocol, equation, family, width, compilers):
        measured.append((family, width))
        key, grid = protocol.time_key(equation, family, width, compilers), vars(protocol.equations[equation].grid)
        ms = {"kas": 0.25 * width, "torchscript": 0.5 * width}
        return {"kind": "time", "key": key, "family": family, "width": width, "grid": grid, "batch": 16, "ms": ms}

    monkeypatch.setattr(_time, "measure", measure)
    spec = tmp_path / "tiny.yaml"
    spec.write_text(SPEC)
    page, plot = tmp_path / "page.md", tmp_path / "plot.svg"
    page.write_text(f"{_report.BEGIN}\n{_report.END}\n")
    assert main(["fields", str(spec), "--no-training"]) == 0
    assert "0 of 8 trainings" in capsys.readouterr().out and {width for _, width in measured} >= {4, 8}
    count = len(measured)
    assert main(["fields", str(spec), "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 8 and listed[0] == "darcy, pointwise, width 4, seed 0, 3 epochs at 0.004"
    assert main(["fields", str(spec), f"--page={page}", f"--plot={plot}"]) == 0
    out = capsys.readouterr().out
    assert "0 left" in out and "8 of 8 trainings" in out and "8 of 8 trainings" in page.read_text()
    assert plot.read_text().startswith("<svg")
    trained = len(Store(tmp_path / "tiny.jsonl").read_trainings())
    assert main(["fields", str(spec), "--experiment=more"]) == 0
    assert "width 4, seed 5, 1 epochs at 0.004" in capsys.readouterr().out
    assert main(["fields", str(spec)]) == 0
    assert len(measured) == count and len(Store(tmp_path / "tiny.jsonl").read_trainings()) == trained + 2
    assert main(["fields", str(spec), "--experiment=none"]) == 1
    assert "requires an experiment of pilot, more, got 'none'" in capsys.readouterr().err


def test_networks_are_timed_by_all_compilers():
    protocol = parse_protocol("timing: {batch: 2}" + SPEC.replace("size: 8", "size: 16"))
    record = _time.measure(protocol, "darcy", "low-rank-axial", 4, ("kas", "torchscript"))
    assert record["failures"] == {"kas": "requires no fast Fourier transforms"}
    assert sorted(record["ms"]) == ["kas, by matrices", "torchscript", "torchscript, by matrices"]
    assert all(0 < ms < 1000 for ms in record["ms"].values())
