# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Findings of KAS-Bench-1: operators beside layers made by hand of other widths, on tables whose findings are known."""

from __future__ import annotations

import dataclasses
import math

import numpy
import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

from kas_research.bench1 import Latency, Row, Table, Training, _findings, _list, _space, _tasks, load, write_tables
from kas_research.bench1._command import main
from kas_research.bench1._findings import Point
from kas_research.protocol.bootstrap import pack_bits, unpack_bits

IMAGES = 1001


def make_trainings(task, mean, parameters, width=16, keep=True, noise=0.0):
    """Seeds are a point apart, for all networks alike; `noise` is the seed's own."""
    found = []
    for seed, shift in enumerate((-1.0, 0.0, 1.0)):
        test = mean + shift + noise * (-2, 1, 1)[seed]
        right = pack_bits(numpy.arange(IMAGES) < round(IMAGES * test / 100)) if keep else ""
        found.append(
            Training(task, seed, None, test, test, parameters=parameters, width=width, correct=right, cpu_seconds=1.0)
        )
    return found


def get_level(parameters):
    """The accuracy of layers made by hand: 2 points more for twice the parameters."""
    return 80 + 2 * math.log2(parameters / 10000)


def make_references(tasks, widths=_tasks.WIDTHS, keep=True):
    found = {}
    for name in _tasks.REFERENCES:
        lost = 0 if name == "depthwise-separable" else 3
        trainings = []
        for task in tasks:
            for width in widths:
                parameters = 20 * width**2
                trainings += make_trainings(task, get_level(parameters) - lost, parameters, width, keep)
        found[name] = Row(-1, "", "", frozenset(), trainings=tuple(trainings))
    return found


@pytest.fixture(scope="module")
def rows(table):
    """Thirty convolutions and thirty others."""
    convolutions = [row for row in table if _findings.is_convolution(row)][:30]
    others = [row for row in table if not _findings.is_convolution(row)][:30]
    chosen = [dataclasses.replace(row, trainings=(), latencies=()) for row in (*convolutions, *others)]
    return [dataclasses.replace(row, number=place) for place, row in enumerate(chosen)]


def make_table(rows, gains, tasks=("task", "other"), references=None):
    """Operators are so many points above the curve of what was made by hand; each has noise of its own."""
    made = []
    for row, by_task in zip(rows, gains):
        parameters = 6000 + 500 * row.number
        trainings = [
            one
            for task, gain in zip(tasks, by_task)
            for one in make_trainings(task, get_level(parameters) + gain, parameters, noise=0.1 * (-1) ** row.number)
        ]
        made.append(dataclasses.replace(row, trainings=tuple(trainings)))
    about = {"tasks": {task: {} for task in tasks}}
    return Table(made, make_references(tasks) if references is None else references, about)


def test_costs_of_layers_made_by_hand_are_exact():
    for width in (8, 16, 48):
        dense = sum(count * 9 * (width * scale) ** 2 for count, scale in ((2, 1), (1, 2), (1, 4)))
        pointwise = dense // 9
        windows = sum(count * 9 * width * scale for count, scale in ((2, 1), (1, 2), (1, 4)))
        found = {name: _findings.get_reference_costs(name, width) for name in _tasks.REFERENCES}
        assert found["dense"].parameters == dense and found["pointwise"].parameters == pointwise
        assert found["depthwise-separable"].parameters == pointwise + windows
        assert found["depthwise-separable-relu"] == found["depthwise-separable"]
        # Two for each weight and pixel.
        flops = 2 * 9 * sum(n * (width * s) ** 2 * size**2 for n, s, size in ((2, 1, 16), (1, 2, 8), (1, 4, 4)))
        assert found["dense"].flops == flops and found["pointwise"].flops == flops // 9


def test_costs_of_operators_are_those_of_what_is_trained(table):
    # Number 1605 sees four of eight groups where it is trained, 7 of 32 in ResNet-18.
    row = table[1605]
    dense = _findings.get_reference_costs("dense", 16)
    assert row.costs[_space.TRAINED].parameters == dense.parameters // 4
    assert row.costs[_space.TRAINED].flops / dense.flops == pytest.approx(0.255, abs=0.001)
    assert row.costs["network"].flops / 3699376128 == pytest.approx(0.110, abs=0.001)
    # The layers are the only difference between networks.
    known = table.references["dense"].get_trainings("fashion-mnist")[0].parameters - dense.parameters
    for number in (1605, 12109, 11460):
        training = table[number].get_trainings("fashion-mnist")[0]
        assert training.parameters == known + table[number].costs["trained"].parameters


def test_costs_at_the_trained_sizes_are_computed_again(table):
    for number in (3, 1605):
        again = _list.compute_costs(table[number].operator, _space.read_space())
        assert again["trained"] == table[number].costs["trained"]


def test_the_envelope_is_paired_by_seed():
    def make(name, parameters, *accuracies):
        return Point(name, 16, parameters, 1, dict(enumerate(accuracies)))

    cost = _findings.AXES["parameters"]
    curve = [make("dense", 100, 80, 81, 82), make("dense", 400, 84, 85, 86), make("other", 200, 70, 70, 99)]
    points = [make(str(x), x, 90, 90, 90) for x in (50, 100, 200, 400, 401)]
    found = _findings.subtract_envelope(points, curve, cost)
    # Nothing left of the narrowest and right of the widest; the best by its mean in between.
    assert found == {"100": [10, 9, 8], "200": [pytest.approx(8), pytest.approx(7), pytest.approx(6)], "400": [6, 5, 4]}
    assert _findings.subtract_envelope(points[2:3], curve[2:], cost) == {"200": [20, 20, -9]}


def test_nothing_is_above(rows):
    table = make_table(rows, [(-1.0, -1.0)] * len(rows))
    points, references = _findings.get_operators(table, "task"), _findings.get_references(table, "task")
    tested = _findings.compare_operators(points, references, _findings.AXES["parameters"], 0.2)
    assert (
        len(tested.differences) == 60
        and tested.num_above == tested.num_discovered == 0
        and not tested.get_significant()
    )
    # Seeds that all networks share do not count: 0.1 * (-2, 1, 1) is left.
    assert tested.deviation == pytest.approx(math.sqrt(0.03)) and all(
        value == pytest.approx(-1.0, abs=0.03) for value in tested.differences.values()
    )
    assert tested.error == pytest.approx(math.sqrt(0.03 / 3 + 0.04))


def test_what_is_above_is_found(rows):
    table = make_table(rows, [(3.0, -1.0) if row.number == 5 else (-1.0, 3.0) for row in rows])
    references = _findings.get_references(table, "task")
    tested = _findings.compare_operators(
        _findings.get_operators(table, "task"), references, _findings.AXES["parameters"], 0.2
    )
    assert tested.get_names() == tested.get_significant() == {"5"} and tested.num_above == tested.num_discovered == 1
    text = _findings.write_findings(table)
    assert (
        "| all | parameters | task | 60 | 1 | +3.0" in text and "| all | parameters | all of these | | | | 0 |" in text
    )
    assert "| convolutions | parameters | other | 30 | 29 | +3.0" in text and "**Open" not in text
    assert "- `task`, operators: above the best layer made by hand are 1 of 60 with as many parameters and" in text


def test_errors_contain_the_images():
    references = make_references(["task"])
    table = Table([], references, {"tasks": {"task": {}}})
    error = _findings.get_image_error(table, "task")
    # Of two networks that are d points apart, d percent of the images are right in one of them alone.
    assert 0.2 < error < 100 * math.sqrt(0.03 / IMAGES) + 0.01
    lost = Table([], make_references(["task"], keep=False), {"tasks": {"task": {}}})
    assert math.isnan(_findings.get_image_error(lost, "task"))
    assert _findings.list_missing(lost) == ["the images that are classified right on task"]


def test_reliabilities_and_correlations(rows):
    points = _findings.get_operators(make_table(rows, [(-1.0, -1.0)] * len(rows)), "task")
    assert _findings.get_reliability(points) > 0.99
    noisy = [
        Point("", 16, 1, 1, dict(enumerate(numpy.random.default_rng(place).standard_normal(3)))) for place in range(400)
    ]
    assert abs(_findings.get_reliability(noisy)) < 0.2
    assert _findings.correlate([1, 2, 3, 4], [1, 4, 9, 16]) == pytest.approx(1)


def test_what_is_missing_is_open(rows, tmp_path, capsys):
    table = make_table(rows, [(-1.0, -1.0)] * len(rows), references=make_references(["task", "other"], [8, 16]))
    text = _findings.write_findings(table)
    assert "**Open: 12 layers made by hand on task, 12 layers made by hand on other are missing.**" in text
    assert "| dense | 8 | 0.250 |" in text and "Holm" not in text
    write_tables(list(table), table.references, {"tasks": {"task": {}, "other": {}}}, tmp_path / "tables")
    page = tmp_path / "page.md"
    page.write_text(f"a\n{_findings.BEGIN}\n{_findings.END}\nb\n")
    assert main(["--tables", str(tmp_path / "tables"), "findings", f"--page={page}"]) == 0
    assert capsys.readouterr().out == text + "\n"
    assert page.read_text() == f"a\n{_findings.BEGIN}\n{text}\n{_findings.END}\nb\n"
    page.write_text("none")
    assert main(["--tables", str(tmp_path / "tables"), "findings", f"--page={page}"]) == 1
    assert "requires a page with the lines" in capsys.readouterr().err


def test_files_keep_widths_images_and_times_of_networks(rows, tmp_path):
    references = make_references(["task"])
    latencies = (Latency("trained", 1, "M", 80.0, 100.0, 24), Latency("trained", 1, "M", 90.0, 100.0, 16))
    references["dense"] = dataclasses.replace(references["dense"], latencies=latencies)
    table = make_table(rows[:2], [(0.0,)] * 2, ["task"], references)
    write_tables(list(table), table.references, {"tasks": {"task": {}}}, tmp_path)
    found = load(tmp_path)
    assert dict(found.references) == references and [*found] == [*table]
    dense = found.references["dense"]
    assert dense.get_ratio("trained") == 0.9 and dense.get_ratio("trained", width=24) == 0.8
    assert [one.width for one in dense.get_trainings("task", 24)] == [24] * 3 and len(dense.get_trainings("task")) == 3
    bits = unpack_bits(dense.get_trainings("task")[0].correct)
    assert len(bits) == IMAGES and 100 * bits.mean() == pytest.approx(dense.get_trainings("task")[0].test, abs=0.1)


@pytest.mark.slow
def test_networks_are_timed_and_go_on(table, tmp_path):
    from kas_research.bench1 import _pack, _time_networks
    from kas_research.protocol import Store

    rows, store = [table[1605]], Store(tmp_path / "s.jsonl")
    _time_networks.measure_networks(rows, store, limit=2)
    assert [(record["contender"], record["width"]) for record in store] == [("dense", 8), ("dense", 16)]
    networks = _time_networks.list_networks(rows)
    assert len(networks) == 21 and networks[-1].contender == "operator-1605"
    for record in list(store):
        assert record["failure"] is None and record["microseconds"] > 0 and record["layer"] == "trained"
    _time_networks.measure_networks(rows, store)
    assert len(list(store)) == 21
    _time_networks.measure_networks(rows, store)
    assert len(list(store)) == 21
    packed = Table(*_pack.pack(Table(list(table)[:1606], {}, table.manifest), [store]))
    assert packed[1605].get_ratio("trained") > 0 and packed.references["pointwise"].get_ratio("trained", width=48) > 0
