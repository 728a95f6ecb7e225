# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmark of `kas accelerate`: its methods on tiny networks, rows that a kill cut off, what the numbers say."""

import argparse
import importlib
import json
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "accelerate"))
bench, contenders = map(importlib.import_module, ("bench", "contenders"))


def point(drop, ms):
    return {"network": "some", "tool": "kas", "drop": drop, "error": 0.1, "ms": ms}


@pytest.mark.parametrize(
    ("points", "times"),
    [
        ([], 1.0),
        ([point(0.4, 0.5), point(0.2, 0.8)], 2.0),
        # What is slower is worth nothing, however accurate it is.
        ([point(-1.0, 2.0)], 1.0),
        # Half of the way from the network itself to one that is four times as fast.
        ([point(1.0, 0.25)], 2.0),
        # From the fastest that holds the limit on.
        ([point(0.0, 0.5), point(1.0, 0.125)], 4.0),
    ],
)
def test_times_are_those_at_the_limit(points, times):
    assert bench.find_times(points, 1.0, 0.5) == pytest.approx(times)


def make_row(method, seed, points, precision="f32", dense_ms=1.0):
    found = {precision: {"dense_ms": dense_ms, "dense_tools": {"kas": dense_ms}, "metric": 0.9, "points": points}}
    return {"task": "residual", "method": method, "seed": seed, "limit": 0.5, "settings": {}, "found": found}


def test_the_page_compares_seed_by_seed():
    rows = [make_row(bench.OURS, seed, [point(0.1, 0.25)]) for seed in range(2)]
    rows += [make_row("narrower", seed, [point(0.1, ms)]) for seed, ms in enumerate((0.5, 0.125))]
    # A method without a network, and one that is not done with all seeds.
    rows += [make_row("pruned", seed, []) for seed in range(2)] + [make_row("swap", 0, [point(0.1, 0.1)])]
    known = {(row["task"], row["method"], row["seed"]): row for row in rows}
    page = bench.make_page(known, 2)
    assert "| kas accelerate | 4.00 | 4.00 to 4.00 |" in page and "| narrower | 4.00 |" in page
    assert "pruned" not in page and "swap" not in page
    assert "kas accelerate over the best of the others: 1.00 (0.00 to " in page
    assert bench.make_plot(known).count("<circle") == 5 + 3


def test_methods_that_are_not_timed_have_no_row():
    made = {("residual", method, 0): {"limit": 0.5, "settings": {}} for method in ("narrower", "swap")}
    part = {"f32": {"dense_ms": 1.0, "points": []}}
    times = {("residual", 0): {"found": {"narrower": part, "gone": part}}}
    assert bench.join(made, times) == {("residual", "narrower", 0): {"limit": 0.5, "settings": {}, "found": part}}


def test_the_network_in_int8_is_one_of_each_method():
    rows = [make_row("narrower", 0, [point(9.0, 0.1)], "int8"), make_row(bench.INT8, 0, [point(0.1, 0.5)], "int8")]
    summary = bench.summarize({(row["task"], row["method"], row["seed"]): row for row in rows}, 1)
    assert summary["residual", "int8"]["narrower"][0] == pytest.approx(2.0, rel=0.1)


def test_a_line_that_was_cut_off_is_no_row(tmp_path):
    path = tmp_path / "rows.jsonl"
    bench.add_row(path, make_row("narrower", 0, []))
    with path.open("a") as file:
        file.write('{"task": "residual", "meth')
    bench.add_row(path, make_row("swap", 0, []))
    bench.add_row(path, {"task": "residual", "seed": 0, "found": {}})
    assert set(bench.read_rows(path)) == {("residual", "narrower", 0), ("residual", "swap", 0), ("residual", 0)}


def test_minutes_are_those_of_the_processor():
    case = contenders.Case(None, None, 0.5, 1.0, 0, workers=2)
    with case.counting():
        clock = contenders.Clock(1.0)
        now = time.monotonic()
        # What another process has of the processor does not count.
        time.sleep(0.2)
        assert clock.seconds < 0.1 < time.monotonic() - now
        start = time.process_time()
        while time.process_time() - start < 0.2:
            pass
        assert 0.1 <= clock.seconds < 0.2
    assert contenders.Clock(1.0).start == pytest.approx(time.monotonic(), abs=60)


def test_a_tiny_run_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(contenders, "SHARES", (0.5,))
    arguments = ["--size=tiny", "--minutes=0.01", "--seeds=1", "--tasks", "darcy-32", "-o", str(tmp_path)]
    arguments += [f"--page={tmp_path}/page.md", f"--plot={tmp_path}/plot.svg", "--methods", "narrower"]
    # What was interrupted begins again; networks are made first, and timed later.
    (tmp_path / "darcy-32-0-narrower").mkdir()
    assert bench.main([*arguments, "--make-only"]) == 0
    assert (tmp_path / "darcy-32-0.pt").exists() and not (tmp_path / "times.jsonl").exists()
    assert not (tmp_path / "darcy-32-0-narrower").exists()
    before = (tmp_path / "rows.jsonl").read_text()
    assert bench.main(arguments) == 0 and (tmp_path / "rows.jsonl").read_text() == before
    options = argparse.Namespace(output=str(tmp_path), times="times.jsonl")
    (row,) = bench.read(options).values()
    for precision in ("f32", "int8"):
        part = row["found"][precision]
        assert part["dense_ms"] == min(part["dense_tools"].values())
        assert {one["tool"] for one in part["points"]} == {"kas", "ONNX Runtime", "OpenVINO"}
        assert all(one["ms"] > 0 for one in part["points"])
    # In f32 the tools compute the same.
    assert len({one["drop"] for one in row["found"]["f32"]["points"]}) == 1
    times = (tmp_path / "times.jsonl").read_text()
    with monkeypatch.context() as patch:
        patch.setattr(bench, "measure", None)
        assert bench.main(arguments) == 0 and (tmp_path / "times.jsonl").read_text() == times
    assert "### darcy-32, int8" in (tmp_path / "page.md").read_text() and "<svg" in (tmp_path / "plot.svg").read_text()
    # Times of a quiet machine are others, of the same networks.
    assert bench.main([*arguments, "--times=quiet.jsonl"]) == 0 and (tmp_path / "rows.jsonl").read_text() == before
    assert len((tmp_path / "quiet.jsonl").read_text().splitlines()) == 1
    assert bench.main([*arguments, "--minutes=7"]) == 1
    assert "requires a folder with {'minutes': 0.01" in capsys.readouterr().err


@pytest.mark.slow
def test_all_methods_run_on_all_tasks(tmp_path, monkeypatch):
    monkeypatch.setattr(contenders, "SHARES", (0.5,))
    monkeypatch.setattr(contenders, "SWAPS", (1.0,))
    assert bench.main(["--size=tiny", "--minutes=0.05", "--seeds=1", "-o", str(tmp_path)]) == 0
    rows = bench.read(argparse.Namespace(output=str(tmp_path), times="times.jsonl"))
    assert len(rows) == len(bench.TASKS) * len(bench.METHODS)
    for (task, method, _), row in rows.items():
        # torch-pruning may be missing; networks of depthwise layers alone have nothing to swap.
        if method in (bench.OURS, "narrower", bench.INT8):
            assert row["found"]["int8"]["points"] or method == bench.OURS, (task, method)
    json.dumps(bench.summarize(rows, 1)["residual", "f32"])
