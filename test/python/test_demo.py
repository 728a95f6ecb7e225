# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/demo: what it reads from a search, and what it says about the networks."""

import importlib
import io
import json
import pathlib
import sys

import pytest

import kas

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "demo"))
report = importlib.import_module("training_report")
latency_report = importlib.import_module("latency_report")

FOUND = """module {
  kas.operator @conv2d_sequences_0_0<N, C, H>(%n: N, %c: C unordered, %h: H) from [N, C unordered, H] {
    %d, %w = kas.share %c : C
    kas.yield data(%n, %d, %h) weight(%w)
  }
  kas.operator @conv2d_sequences_0_1<N, C, H>(%n: N, %c: C unordered, %h: H) from [N, C unordered, H] {
    %r = kas.reduce sum : C
    %d, %w = kas.share %r : C
    kas.yield data(%n, %d, %h) weight(%c, %w)
  }
  kas.sequence @conv2d_sequences_0 [@conv2d_sequences_0_0, @conv2d_sequences_0_1] between [normalize_relu] attributes {}
}
"""


def test_the_best_sequence_joins_a_network(tmp_path, capsys):
    (tmp_path / "found.mlir").write_text(FOUND)
    events = [{"event": "candidate", "metrics": {}}, {"event": "candidate", "failure": "x"}, {"event": "end"}]
    (tmp_path / "search.log").write_text("".join(json.dumps(event) + "\n" for event in events))
    report.chosen(tmp_path, "conv2d")
    assert "2 candidates trained, 1 failed" in capsys.readouterr().out
    (tmp_path / "network.mlir").write_text("module {\n  func.func private @forward()\n}\n")
    report.join(tmp_path, tmp_path / "network.mlir", "found", tmp_path / "joined.mlir")
    sequence = kas.load(tmp_path / "joined.mlir").sequences["chosen"]
    assert [operator.name for operator in sequence.operators] == ["chosen_0", "chosen_1"]
    assert sequence.steps == ["normalize_relu"]


SITES = """module {
  kas.space @conv2d<N, Cin, H>
    [N, Cin unordered, H] from [N, Cin unordered, H]
    bindings [<Cin = 32, H = 16, N = 1> x 2, <Cin = 64, H = 8, N = 1>]
    limits {depth = 1 : i64}
    budget {baseline_flops = 12 : i64, baseline_params = 3 : i64}
  kas.space @other<N>
    [N] from [N]
    bindings [<N = 1>]
}
"""


def test_spaces_are_read(tmp_path, capsys):
    (tmp_path / "sites.mlir").write_text(SITES.replace("H = 8", "H = 8, W = 8").replace("H = 16", "H = 16, W = 16"))
    report.sites(tmp_path, "conv2d")
    assert capsys.readouterr().out == "2 of 32 channels, 16x16\n1 of 64 channels, 8x8\n"
    expected = {"layers": 3, "kinds": 2, "flops": 12, "params": 3}
    assert latency_report.read_baseline(tmp_path, "conv2d") == expected
    with pytest.raises(SystemExit, match=r"error: no kas\.space @none in "):
        report.sites(tmp_path, "none")


def test_the_events_of_a_search_are_kept_and_passed_on(tmp_path, capsys, monkeypatch):
    metrics = {"accuracy": 0.5, "epochs": 3, "flops": 64e6, "latency_ms": 2}
    lines = [
        json.dumps({"event": "candidate", "metrics": metrics}),
        "a diagnostic",
        json.dumps({"event": "candidate", "failure": "x"}),
        json.dumps({"event": "end"}),
    ]
    text = "".join(f"{line}\n" for line in lines)
    for step, expected in ((report, "candidate   1: 50.00 %"), (latency_report, "candidate    1:    64.0 MFLOP")):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        step.progress(tmp_path)
        captured = capsys.readouterr()
        assert captured.out.startswith(expected) and captured.out.count("\n") == 1
        assert captured.err == "a diagnostic\n"
        assert (tmp_path / "search.log").read_text() == text


def test_a_search_without_a_result_is_an_error(tmp_path):
    (tmp_path / "found.mlir").write_text("module {\n}\n")
    with pytest.raises(SystemExit, match="error: the search found nothing"):
        report.chosen(tmp_path, "conv2d")


@pytest.mark.parametrize(
    ("points", "speed", "error", "better"),
    [
        (0.1, 1.5, 0.3, "as accurate within one standard error, and faster"),
        (0.1, 1.5, 0.6, None),
        (-0.4, 1.5, 0.3, None),
        (0.7, 1.0, 0.3, "better"),
        (0.7, 0.9, 0.3, None),
    ],
)
def test_what_is_better(points, speed, error, better):
    text, is_better = report.compare({"mean": 90 + points, "ms": 1 / speed}, {"mean": 90, "ms": 1}, error)
    assert is_better == (better is not None)
    assert text.endswith(f": {better}" if better else "not shown to be better")


def test_what_is_worse():
    text, is_better = report.compare({"mean": 89, "ms": 2}, {"mean": 90, "ms": 1}, 0.2)
    assert (text, is_better) == ("-1.00 points (standard error 0.20), 0.50 times as fast: worse", False)
