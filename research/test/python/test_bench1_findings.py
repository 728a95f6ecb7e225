# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Findings of KAS-Bench-1: operators beside layers made by hand of other widths, on tables whose findings are known."""

from __future__ import annotations

import dataclasses
import math
import pathlib

import numpy
import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

from kas_research.bench1 import Latency, Row, Table, Training, _findings, _list, _space, _tasks, load, write_tables
from kas_research.bench1._command import main
from kas_research.bench1._findings import Point
from kas_research.protocol.bootstrap import pack_bits, unpack_bits

ROOT = pathlib.Path(__file__).resolve().parents[3]
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


def make_times(name, width):
    """Beside dense layers that take 200 us; those that learn as well as others at once are fast and slow alike."""
    return Latency("trained", 1, "M", 0.2 * width**2 * (1 if name == "depthwise-separable" else 2), 200.0, width)


def make_references(tasks, widths=_tasks.WIDTHS, keep=True, timed=True):
    found = {}
    for name in _tasks.REFERENCES:
        lost = 0 if name == "depthwise-separable" else 3
        times = [make_times(name, width) for width in _tasks.WIDTHS] if timed else []
        trainings = []
        for task in tasks:
            for width in widths:
                parameters = 20 * width**2
                trainings += make_trainings(task, get_level(parameters) - lost, parameters, width, keep)
        found[name] = Row(-1, "", "", frozenset(), latencies=tuple(times), trainings=tuple(trainings))
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
        # At the time of layers made by hand with as many parameters.
        latency = Latency("trained", 1, "M", parameters / 100, 200.0, 16)
        made.append(dataclasses.replace(row, latencies=(latency,), trainings=tuple(trainings)))
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
    assert "- `task`, operators: above the best layer made by hand are 1 of 60 with as many parameters, " in text
    (claim,) = (line for line in text.splitlines() if line.startswith("- `task`, operators: "))
    assert " and 1 of 60 in as much time; shown are 5 with as many parameters and " in claim
    assert claim.endswith(" and 5 in as much time (Holm, 5 %).")


def test_times_are_an_axis(rows):
    """Number 5 learns better than others, number 9 is faster than what learns as well: parameters do not show it."""
    table = make_table(rows, [(3.0, -1.0) if row.number == 5 else (-1.0, -1.0) for row in rows])
    changed = list(table)
    changed[9] = dataclasses.replace(changed[9], latencies=(Latency("trained", 1, "M", 14.0, 200.0, 16),))
    table = Table(changed, table.references, table.manifest)
    timer, missing = _findings.find_timer(table)
    assert timer == ("M", 1) and not missing
    references = _findings.get_references(table, "task", timer=timer)
    assert {(point.name, point.width): point.time for point in references}["dense", 24] == pytest.approx(1.152)
    points = _findings.get_operators(table, "task", timer)
    assert points[3].time == pytest.approx(0.375)
    tested = _findings.compare_operators(points, references, _findings.AXES["time"], 0.2)
    assert tested.get_significant() == {"5", "9"} and tested.num_above == 2
    # As many points as a layer made by hand with so much more time has more.
    assert tested.differences["9"] == pytest.approx(-1.0 + 2 * math.log2(105 / 14), abs=0.01)
    text = _findings.write_findings(table)
    assert "| parameters | time over dense 16 | task % | other % |" in text
    assert "| dense | 24 | 2.250 | 11520 | 1.152 |" in text and "| all | time | task | 60 | 2 | +4.8" in text
    assert "\nTimes are of whole networks on the processor M, 1 thread.\n" in text
    # 60 + 5 n us beside 200, number 9 excepted: those up to number 27 are faster.
    dense = _findings.get_reference_costs("dense", 16).flops
    fewer = [row.costs["trained"].flops < dense for row in table]
    assert (
        f"| all | 60 of 60 | {207.5 / 200:.2f} (0.07 to {355 / 200:.2f}) | 28 | {sum(fewer[29:])} of {sum(fewer)} | "
        in text
    )
    shown = f"{132.5 / 200:.2f} (0.07 to {205 / 200:.2f})"
    assert f"| convolutions | 30 of 30 | {shown} | 28 | {sum(fewer[29:30])} of {sum(fewer[:30])} | " in text
    (claim,) = (line for line in text.splitlines() if line.startswith("- `task`, operators: "))
    assert " and 2 of 60 in as much time; shown are 5 with as many parameters" in claim
    assert claim.endswith(" and 5, 9 in as much time (Holm, 5 %).")
    assert "| rank correlation with parameters | with FLOPs | with time |" in text


def test_operators_without_a_time_are_left_out_of_that_axis_alone(rows):
    table = make_table(rows, [(-1.0, -1.0)] * len(rows))
    # Of the convolutions ten have a time.
    changed = [row if row.number < 10 else dataclasses.replace(row, latencies=()) for row in table]
    table = Table(changed, table.references, table.manifest)
    timer, _ = _findings.find_timer(table)
    points = _findings.get_operators(table, "task", timer)
    assert [point.name for point in points if not math.isnan(point.time)] == [str(number) for number in range(10)]
    text = _findings.write_findings(table)
    assert "| all | time | task | 10 | 0 | -1.0" in text and "| all | parameters | task | 60 | 0 | -" in text
    assert "| all | 10 of 60 | " in text and " and 0 of 10 in as much time; " in text
    assert "nan" not in text and "**Open" not in text
    # A group of which nothing has a time.
    made = make_table(rows, [(-1.0, -1.0)] * len(rows))
    changed = [row if row.number >= 30 else dataclasses.replace(row, latencies=()) for row in made]
    text = _findings.write_findings(Table(changed, made.references, made.manifest))
    assert "| convolutions | 0 of 30 |  | 0 | 0 of 0 |  |  |" in text
    assert "| all | time | task | 30 |" in text and "| convolutions | time | task | 0 | 0 |  | 0 | 0 | 0 |" in text


def test_times_of_several_machines_are_not_mixed(rows):
    """Taken is the one that has timed all layers made by hand, however many operators others have."""
    made = make_table(rows, [(-1.0, -1.0)] * len(rows))
    made = Table([*made[:59], dataclasses.replace(made[59], latencies=())], made.references, made.manifest)

    def add(row, *others):
        return dataclasses.replace(row, latencies=(*others, *row.latencies))

    part = {name: add(row, Latency("trained", 1, "L", 1.0, 1.0, 16)) for name, row in made.references.items()}
    table = Table(
        [add(row, Latency("trained", 1, "L", 1.0, 1.0, 16), Latency("64x56", 1, "M", 1.0, 1.0)) for row in made],
        part,
        made.manifest,
    )
    assert _findings.find_timer(table) == (_findings.Timer("M", 1), "")
    assert _findings.write_findings(table) == _findings.write_findings(made)
    # Of several the one with most operators, and of equal ones the first by name.
    others = {
        name: add(row, *(dataclasses.replace(one, machine="N", threads=2) for one in row.latencies))
        for name, row in made.references.items()
    }
    for first, second, expected in ((5, 6, ("N", 2)), (6, 6, ("M", 1)), (6, 0, ("M", 1))):
        some = [
            dataclasses.replace(
                row,
                latencies=(
                    *(row.latencies if row.number < first else ()),
                    *([Latency("trained", 2, "N", 1.0, 2.0, 16)] if row.number < second else []),
                ),
            )
            for row in made
        ]
        timer, missing = _findings.find_timer(Table(some, others, made.manifest))
        assert timer == expected and missing == ""
        count = sum(not math.isnan(point.time) for point in _findings.get_operators(some, "task", timer))
        assert count == max(first, second)


def test_errors_contain_the_images():
    references = make_references(["task"])
    table = Table([], references, {"tasks": {"task": {}}})
    error = _findings.get_image_error(table, "task")
    # Of two networks that are d points apart, d percent of the images are right in one of them alone.
    assert 0.2 < error < 100 * math.sqrt(0.03 / IMAGES) + 0.01
    lost = Table([], make_references(["task"], keep=False), {"tasks": {"task": {}}})
    assert math.isnan(_findings.get_image_error(lost, "task"))
    assert _findings.list_missing(lost) == ["the images that are classified right on task", "the times of operators"]


def test_reliabilities_and_correlations(rows):
    points = _findings.get_operators(make_table(rows, [(-1.0, -1.0)] * len(rows)), "task")
    assert _findings.get_reliability(points) > 0.99
    noisy = [
        Point("", 16, 1, 1, dict(enumerate(numpy.random.default_rng(place).standard_normal(3)))) for place in range(400)
    ]
    assert abs(_findings.get_reliability(noisy)) < 0.2
    assert _findings.correlate([1, 2, 3, 4], [1, 4, 9, 16]) == pytest.approx(1)


def test_what_is_missing_is_open(rows, tmp_path, capsys):
    table = make_table(
        rows, [(-1.0, -1.0)] * len(rows), references=make_references(["task", "other"], [8, 16], timed=False)
    )
    text = _findings.write_findings(table)
    missing = [f"12 layers made by hand on {task}" for task in ("task", "other")]
    assert f"**Open: {', '.join(missing)}, the times of 20 layers made by hand are missing.**" in text
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


def test_missing_times_are_open(rows):
    """The other axes are there without them."""
    made = make_table(rows, [(-1.0, -1.0)] * len(rows))
    part = dict(made.references)
    part["dense"] = dataclasses.replace(part["dense"], latencies=part["dense"].latencies[:2])
    untimed = [dataclasses.replace(row, latencies=()) for row in made]
    for table, expected in (
        (Table(list(made), part, made.manifest), "the times of 3 layers made by hand"),
        (Table(untimed, made.references, made.manifest), "the times of operators"),
        (
            Table(untimed, make_references(["task", "other"], timed=False), made.manifest),
            "the times of 20 layers made by hand",
        ),
    ):
        assert _findings.find_timer(table) == (None, expected) and _findings.list_missing(table) == [expected]
        text = _findings.write_findings(table)
        assert f"**Open: {expected} are missing.**" in text and "| all | FLOPs | task | 60 |" in text
        assert "| time |" not in text and "time over" not in text and "in as much time" not in text


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


def test_the_page_says_what_the_tables_do(table):
    page = (ROOT / "research" / "reports" / "kas-bench-1.md").read_text(encoding="utf-8")
    assert _findings.update_page(page, _findings.write_findings(table)) == page


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
