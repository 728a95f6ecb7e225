# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trained layers for fields beside solvers: other grids, settings of solvers, pictures, the command."""

from __future__ import annotations

import json
import xml.etree.ElementTree
import zlib

import numpy
import pytest
import torch

from kas.evaluate import RelativeError
from kas_research.cli import main
from kas_research.fields import _classical, _pictures, _time, _train, _use
from kas_research.fields._families import set_by_matrix
from kas_research.fields._protocol import Equation, Job, parse_protocol

SPEC = """
equations:
  - {name: darcy, size: 16, train: 40, validation: 20, test: 70}
  - {name: navier-stokes, size: 16, train: 40, validation: 20, test: 70}
  - {name: waves, size: 16, train: 4, validation: 2, test: 2}
experiments:
  - {name: pilot, equations: [darcy, navier-stokes], families: [dense, axial], budgets: [1], seeds: 3-4, epochs: 1, learning-rates: [4e-3, 8e-3]}
  - {name: modes, equations: [navier-stokes], families: [fno-4], budgets: [1], seeds: 0, epochs: 1, learning-rates: [4e-3]}
  - {name: other, equations: [waves], families: [dense], budgets: [1], seeds: 0, epochs: 1, learning-rates: [4e-3]}
"""  # noqa: E501
PROTOCOL = parse_protocol(SPEC)


# ---- Solvers


def test_waves_on_other_grids_are_the_same_ones():
    x = numpy.arange(32) / 32
    fine = numpy.sin(2 * numpy.pi * (x[:, None] + 2 * x[None])) + 0.5
    assert numpy.allclose(_classical.resample(fine, 16, True), fine[::2, ::2])
    assert numpy.allclose(_classical.resample(fine[::2, ::2], 32, True), fine)


def test_lines_on_other_grids_are_the_same_ones():
    cells = (numpy.arange(32) + 0.5) / 32
    fine = numpy.broadcast_to(3 * cells[:, None] + cells, (2, 32, 32)).copy()
    coarse = _classical.resample(fine, 16, False)
    assert numpy.allclose(coarse[0, 0, 0], fine[0, :2, :2].mean()) and coarse.shape == (2, 16, 16)
    inner = numpy.s_[:, 2:-2, 2:-2]
    assert numpy.allclose(_classical.resample(coarse, 32, False)[inner], fine[inner])


@pytest.mark.parametrize("name", ["darcy", "navier-stokes"])
def test_finer_settings_have_smaller_errors(name):
    equation = PROTOCOL.equations[name]
    inputs, targets = (part[:8] for part in equation.load().test)
    solvers = _classical.list_solvers(equation, 16)
    errors = {one.solver.name: one.error for one in _classical.try_solvers(solvers, inputs, targets)}
    assert len(errors) == len(solvers)
    ends = ("4x4, tolerance 0.3", "16x16, tolerance 1e-06") if name == "darcy" else ("4x4, 1 steps", "32x32, 32 steps")
    assert errors[ends[1]] < 5 < errors[ends[0]]
    assert errors[ends[1]] <= 1.05 * min(errors.values())


def test_equations_without_a_solver_are_refused(tmp_path, monkeypatch, capsys):
    spec = tmp_path / "tiny.yaml"
    spec.write_text(SPEC)
    monkeypatch.setattr(_time, "measure", measure)
    assert main(["fields", str(spec), "--experiment=other", "--use=dense", "-o", str(tmp_path / "out")]) == 1
    assert "requires an equation with a solver, darcy or navier-stokes, got 'waves'" in capsys.readouterr().err
    assert main(["fields", str(spec), "--use=dense"]) == 1
    assert "--use requires a folder: -o FOLDER" in capsys.readouterr().err
    assert main(["fields", str(spec), "--use=unet", "-o", str(tmp_path / "out")]) == 1
    assert "requires a family of 'pilot' with a width for darcy, got 'unet'" in capsys.readouterr().err


# ---- Other grids


@pytest.mark.parametrize("equation", ["darcy", "navier-stokes"])
def test_modes_are_the_same_ones_on_other_grids(equation):
    """A network of Fourier modes is a function of fields: what has few modes, it maps alike on all grids."""
    job = Job(equation, "fno-4", 4, 0, 1, 4e-3)
    network = PROTOCOL.make_network(equation, "fno-4", 4, seed=1).eval()
    periodic = PROTOCOL.equations[equation].kind.periodic
    inputs = numpy.zeros((1, network.stem.in_channels, 32, 32), numpy.float32)
    x = (numpy.arange(32) + (0 if periodic else 0.5)) / 32
    inputs[:] = numpy.sin(2 * numpy.pi * x)[:, None] * numpy.cos(2 * numpy.pi * x)[None]
    coarse = _classical.resample(inputs, 16, periodic).astype(numpy.float32)
    fine = _use.bring(network, PROTOCOL, job, 32)
    set_by_matrix(network, True)
    with torch.no_grad():
        here, there = network(torch.from_numpy(coarse)), fine(torch.from_numpy(inputs))
    brought = torch.from_numpy(_classical.resample(there.numpy(), 16, periodic)).float()
    # Means of cells, and walls half a cell nearer, are not quite the same fields.
    assert (brought - here).norm() < (1e-2 if periodic else 0.2) * here.norm()


def test_weights_by_position_are_for_one_grid():
    network = PROTOCOL.make_network("darcy", "axial", 4)
    with pytest.raises(ValueError, match=r"'blocks.0.layer.rows' has weights for each point: \[4, 16, 16\]"):
        _use.bring(network, PROTOCOL, Job("darcy", "axial", 4, 0, 1, 4e-3), 32)


# ---- Pictures


def test_an_image_has_the_pixels():
    field = numpy.array([[-1.0, 0.0], [1.0, 9.0]])
    pixels = _pictures.color(_pictures.Image("", field, -1, 1))
    assert [tuple(pixels[0, 0]), tuple(pixels[0, 1]), tuple(pixels[1, 0])] == list(_pictures.COLORS)
    assert (pixels[1, 1] == pixels[1, 0]).all()
    png = _pictures.write_png(pixels)
    start = png.index(b"IDAT")
    length = int.from_bytes(png[start - 4 : start], "big")
    lines = zlib.decompress(png[start + 4 : start + 4 + length])
    assert lines == b"".join(b"\0" + line.tobytes() for line in pixels)
    assert int.from_bytes(png[16:20], "big") == int.from_bytes(png[20:24], "big") == 2
    constant = _pictures.color(_pictures.Image("", numpy.ones((2, 2)), 1, 1))
    assert constant.shape == (2, 2, 3)


# ---- The command


def measure(protocol, equation, family, width, compilers):
    key, grid = protocol.time_key(equation, family, width, compilers), vars(protocol.equations[equation].grid)
    ms = {"kas": 0.25 * width}
    return {"kind": "time", "key": key, "family": family, "width": width, "grid": grid, "batch": 16, "ms": ms}


@pytest.fixture
def spec(tmp_path, monkeypatch):
    """A file; widths need no times, and steps no compilation."""
    monkeypatch.setattr(_time, "measure", measure)
    monkeypatch.setattr(_train, "_CompiledRelativeError", lambda network: RelativeError())
    path = tmp_path / "tiny.yaml"
    path.write_text(SPEC)
    return path


def use(spec, family, experiment, folder):
    """What the command finds, with its page."""
    assert main(["fields", str(spec), f"--experiment={experiment}", f"--use={family}", "-o", str(folder)]) == 0
    uses = json.loads((folder / "results.json").read_text())["uses"]
    for one in uses:
        assert one["c_difference"] is None or one["c_difference"] < 1e-4
        for size in one["sizes"]:
            assert size["best_error"] <= size["error"] and size["solver_error"] <= size["error"]
            assert all(ms > 0 for name in ("ms", "solver_ms", "best_ms") for ms in size[name].values())
            assert size["solver_ms"]["1"] <= size["best_ms"]["1"]
        root = xml.etree.ElementTree.parse(folder / f"{one['equation']}.svg").getroot()
        assert len(root.findall("{http://www.w3.org/2000/svg}image")) == 2 * 6
        assert (folder / f"{one['equation']}-c" / "model.h").exists()
    return uses, (folder / "page.md").read_text()


def test_a_layer_is_put_beside_solvers(spec, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "out"
    uses, page = use(spec, "axial", "pilot", folder)
    assert "darcy: training axial, width 4, 1 epochs at 0.004" in capsys.readouterr().out
    assert [one["equation"] for one in uses] == ["darcy", "navier-stokes"]
    assert all([size["size"] for size in one["sizes"]] == [16] for one in uses)
    assert page.count("| network |") == page.count("for its own grid alone") == 2 and "![Fields of darcy" in page
    # What is trained is kept.
    monkeypatch.setattr(_train.Trainer, "start", None)
    assert use(spec, "axial", "pilot", folder)[0][0]["error"] == uses[0]["error"]
    assert not list((folder / "checkpoints").glob("*.pt"))


def test_a_layer_for_all_grids_is_put_beside_solvers_on_three(spec, tmp_path, monkeypatch):
    made, load = {}, Equation.load

    def count(equation):
        made[equation.size] = equation.train + equation.validation + equation.test
        return load(equation)

    monkeypatch.setattr(Equation, "load", count)
    uses, page = use(spec, "fno-4", "modes", tmp_path / "out")
    assert [size["size"] for size in uses[0]["sizes"]] == [8, 16, 32] and uses[0]["own_grid"] is None
    assert page.count("| network |") == 3 and "for its own grid alone" not in page
    # Few fields are made for the other grids.
    assert made == {8: _use.FIELDS + 2, 16: 130, 32: _use.FIELDS + 2}


def test_an_error_that_no_solver_reaches_is_said():
    size = _use.Size(16, 0.1, {1: 0.1, 16: 0.1}, None, None, {}, "16x16", 0.5, {1: 2.0, 16: 1.0})
    use = _use.Use("darcy", "dense", 4, 1, 99, 0.1, [size], None, None)
    page = _use.write_page([use], "some machine")
    assert "no settings of the solver reach that error" in page and "16x16: the least error | 0.5 | 2 | 1 |" in page
    assert "there is no compiler here" in page


def test_the_best_rate_is_taken(spec, tmp_path):
    from kas_research.protocol._store import Store

    store, experiment = Store(tmp_path / "tiny.jsonl"), PROTOCOL.experiments["pilot"]
    for equation in ("darcy", "navier-stokes"):
        store.add(measure(PROTOCOL, equation, "dense", 4, experiment.compilers))
    first = _use.choose_jobs(PROTOCOL, experiment, store, "dense")
    assert [(job.equation, job.seed, job.learning_rate) for job in first] == [
        ("darcy", 3, 4e-3), ("navier-stokes", 3, 4e-3)
    ]  # fmt: skip
    for rate, validation in ((4e-3, 5.0), (8e-3, 4.0)):
        key = PROTOCOL.key(first[0]._replace(learning_rate=rate))
        store.add({"kind": "training", "key": key, "failure": None, "validation": validation})
    assert _use.choose_jobs(PROTOCOL, experiment, store, "dense")[0].learning_rate == 8e-3
