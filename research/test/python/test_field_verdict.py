# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Candidates beside the families: layers, stages that follow from others, the verdict on made-up records."""

from __future__ import annotations

import math
import re

import numpy
import pytest
import torch
from torch import nn

from kas_research._spec import SpecError
from kas_research.cli import main
from kas_research.fields import _report, _stages, _time, _verdict
from kas_research.fields._candidates import Candidate
from kas_research.fields._protocol import COMPILERS, Best, Rules, parse_protocol
from kas_research.fields._results import Point
from kas_research.fields._train import pack
from kas_research.protocol._store import Store
from kas_research.protocol.bootstrap import Bootstrap, get_ratio

FIELDS = 300
RULES = Rules(draws=500)
DIFFICULTY = numpy.exp(0.3 * numpy.random.default_rng(7).standard_normal(FIELDS))
"""Some fields are harder than others, for all networks."""


def make_errors(error, seeds, name="", spread=0.02):
    """Percent of each field by seed."""
    found = {}
    for seed in seeds:
        generator = numpy.random.default_rng([seed, *name.encode()])
        noise = spread * generator.standard_normal() + 0.1 * generator.standard_normal(FIELDS)
        found[seed] = error * DIFFICULTY * numpy.exp(noise)
    return found


def make_point(family, error, budget=0.25, equation="darcy", seeds=range(5), spread=0.02, ms=None):
    errors = make_errors(error, seeds, family + equation, spread)
    return Point(equation, family, budget, 16, ms or 0.96 * budget, "kas", 100, errors)


# ---- The bootstrap


def test_seeds_are_paired_where_both_have_them():
    bootstrap = Bootstrap(FIELDS, 500)
    one = make_errors(2.0, range(5), spread=0.5)
    other = {seed: 0.9 * values for seed, values in one.items()}
    elsewhere = {seed + 100: values for seed, values in other.items()}
    paired, unpaired = (
        get_ratio(bootstrap.draw(errors, numpy.log) - bootstrap.draw(one, numpy.log)) for errors in (other, elsewhere)
    )
    assert paired.value == unpaired.value == pytest.approx(0.9)
    assert paired.high - paired.low < 1e-5 and unpaired.low < 0.8 and unpaired.high > 1
    assert paired.probability == 1 / 501 and unpaired.probability > 0.1


def test_intervals_cover_the_truth():
    covered = 0
    for trial in range(60):
        generator = numpy.random.default_rng(trial)
        # Of two networks that are the same but for seeds and fields.
        fields = numpy.exp(0.3 * generator.standard_normal(FIELDS))
        seeds = [{seed: fields * math.exp(0.1 * generator.standard_normal()) for seed in range(8)} for _ in range(2)]
        bootstrap = Bootstrap(FIELDS, 300, trial)
        others = {100 + seed: errors for seed, errors in seeds[1].items()}
        ratio = get_ratio(bootstrap.draw(seeds[0], numpy.log) - bootstrap.draw(others, numpy.log))
        covered += ratio.low <= 1 <= ratio.high
    assert 48 <= covered < 60


# ---- The envelope


def test_the_envelope_at_equal_time():
    baselines = [
        make_point("dense", 4.0, 0.25, ms=0.2, spread=0),
        make_point("dense", 2.0, 0.35, ms=0.4, spread=0),
        make_point("unet", 3.0, 0.5, ms=0.5, spread=0),
    ]

    def compare(ms):
        ((comparison,), second) = _verdict.compare_with_envelope(
            [make_point("found", 1.0, ms=ms, spread=0)], baselines, 200
        )["found"]
        assert second == comparison.ratio
        return comparison.baseline, comparison.ratio.value

    # Between its points in logarithms, beyond them the value of the last and the first one.
    for ms, name, level in [
        (0.3, "dense", 4.0 * 0.5 ** (math.log(0.3 / 0.2) / math.log(2))),
        (0.4, "dense", 2.0),
        (0.9, "dense", 2.0),
        (0.21, "unet", 3.0),
        (0.05, "unet", 3.0),
    ]:
        found = compare(ms)
        assert found == (name, pytest.approx(1 / level, rel=0.01)), ms


def test_a_wider_network_that_is_worse_does_not_raise_the_envelope():
    baselines = [make_point("dense", error, ms=ms, spread=0) for error, ms in [(2.0, 0.2), (5.0, 0.4)]]
    found = _verdict.compare_with_envelope([make_point("found", 1.0, ms=0.4, spread=0)], baselines, 200)
    assert found["found"][1].value == pytest.approx(0.5, rel=0.01)


def test_the_second_best_budget_counts():
    baselines = [make_point("dense", 2.0, budget) for budget in (0.25, 0.5)]
    finalists = [make_point("found", 1.0, 0.25), make_point("found", 2.0, 0.5)]
    comparisons, second = _verdict.compare_with_envelope(finalists, baselines, 500)["found"]
    assert comparisons[0].ratio.high < 0.6 and second.value == pytest.approx(comparisons[1].ratio.value)


# ---- The verdict

PLACES = [(equation, budget) for equation in ("darcy", "navier-stokes") for budget in (0.25, 0.5)]


def decide(ratios, replications=(0.8, 0.8, 0.8), seeds=range(200, 208), **options):
    """The verdict on one finalist whose errors are those of the best baseline times these."""
    baselines = [make_point(family, 2.0 * factor, budget, equation, range(100, 105))
                 for equation, budget in PLACES for family, factor in (("dense", 3.0), ("unet", 1.0))]  # fmt: skip
    finalists = [
        make_point("found", 2.0 * ratio, budget, equation, seeds, **options)
        for ratio, (equation, budget) in zip(ratios, PLACES)
    ]
    replicated = {
        f"other-{place}": (
            [make_point("found", 2.0 * ratio, budget, f"other-{place}", range(300, 304)) for budget in (0.25, 0.5)],
            [make_point("unet", 2.0, budget, f"other-{place}", range(300, 304)) for budget in (0.25, 0.5)],
        )
        for place, ratio in enumerate(replications)
    }
    (found,) = _verdict.decide(finalists, baselines, replicated, RULES, (0.25, 0.5), 3)
    return found


@pytest.mark.parametrize(
    ("ratios", "replications", "verdict", "reason"),
    [
        ([0.8] * 4, [0.8] * 3, "win", "3 of 3 replications hold"),
        ([0.8] * 4, [0.8, 0.8, 1.2], "win", "2 of 3 replications hold"),
        ([0.8] * 4, [0.8, 1.0, 1.2], "neither", "1 of 3 replications hold, 2 required"),
        ([0.8] * 4, [0.8], "open", "1 of 3 replications hold, 2 required; 2 have not ended"),
        ([0.8] * 4, [1.2, 1.2], "neither", "0 of 3 replications hold, 2 required"),
        # Better everywhere, but not by a tenth.
        ([0.93] * 4, [0.8] * 3, "neither", "the ratio is 0.9.*, at most 0.9 required"),
        # At one budget, or on one equation only.
        ([0.7, 1.1, 0.7, 0.7], [0.8] * 3, "neither", "darcy, 0.5 ms: the ratio is 1.*, at most 0.9 required"),
        ([0.7, 0.7, 1.1, 1.1], [0.8] * 3, "neither", "navier-stokes, 0.25 ms: the ratio is 1.*"),
        # Surely not better by 5 %, also where it is a tie.
        ([1.0] * 4, [1.0] * 3, "no", "the ratio is .*, at most 0.9 required"),
        ([1.1] * 4, [1.1] * 3, "no", "the ratio is 1.*, at most 0.9 required"),
        ([0.8] * 3, [0.8] * 3, "neither", "it is too slow for a budget"),
    ],
)
def test_verdicts(ratios, replications, verdict, reason):
    found = decide(ratios, replications, spread=0.04)
    assert found.verdict == verdict and re.search(reason, found.reason), found.reason
    assert _verdict.combine([found]) == verdict


def test_a_tie_that_may_be_a_gain_is_no_no():
    found = decide([1.0] * 4, seeds=range(200, 203), spread=0.2)
    assert found.verdict == "neither" and found.second_best["darcy"].low < 0.95


def test_too_few_seeds_for_their_deviation_are_no_win():
    found = decide([0.85] * 4, seeds=range(200, 203), spread=0.4)
    assert found.verdict == "neither" and any(one.ratio.high > 1 for one in found.comparisons)


def test_probabilities_are_corrected_for_the_number_of_finalists():
    rules = Rules(draws=500, level=0.01)
    baselines = [make_point("unet", 2.0, budget, equation, range(100, 105)) for equation, budget in PLACES]
    names = ["found", "b", "c", "d", "e"]
    finalists = {
        name: [make_point(name, 1.6 if name == "found" else 2.4, budget, equation) for equation, budget in PLACES]
        for name in names
    }

    def get_probability(*names):
        points = [point for name in names for point in finalists[name]]
        return _verdict.decide(points, baselines, {}, rules, (0.25, 0.5), 3)[0].probability

    assert get_probability("found") == pytest.approx(1 / 501)
    assert get_probability(*names) == pytest.approx(5 / 501)


def test_failed_trainings_are_as_the_worst():
    worst = make_point("dense", 6.0, seeds=range(2))
    failed = make_point("found", 1.0, seeds=range(200, 203))
    failed.failures[203] = "the loss is nan"
    filled = _verdict.fill_failures([failed, worst, make_point("dense", 9.0, equation="waves")])
    assert sorted(filled[0].errors) == [200, 201, 202, 203] and sorted(failed.errors) == [200, 201, 202]
    largest = max(worst.errors.values(), key=lambda errors: errors.mean())
    assert numpy.array_equal(filled[0].errors[203], largest) and filled[1] is worst
    lost = make_point("found", 1.0, seeds=())
    lost.failures[0] = "the loss is nan"
    with pytest.raises(ValueError, match="requires a training on darcy that did not fail, got none"):
        _verdict.fill_failures([lost])


def test_what_a_finalist_is():
    describe = _verdict.describe_form
    assert describe(Candidate("a", "dense", operator="conv2d", binding={"k": 5})) == "the family 'dense' with k=5"
    assert describe(Candidate("a", "dense", operator="conv2d", binding={"k": 2})) == "the family 'dense' with k=2"
    outcome = _verdict.Outcome("a", verdict="win", reason="all hold", form="new")
    assert "| a | 1 | win | all hold | new |" in _report.write_verdict(_verdict.Verdict("win", [outcome], []))


def test_the_verdict_on_all_finalists():
    def make(*verdicts):
        return [_verdict.Outcome("a", verdict=verdict) for verdict in verdicts]

    combine = _verdict.combine
    assert combine(make("no", "win", "open")) == "win" and combine(make("no", "open", "neither")) == "open"
    assert combine(make("no", "neither")) == "neither" and combine(make("no", "no")) == "no" and combine([]) == "open"


# ---- Candidates and stages

SPEC = """
equations:
  - {name: darcy, size: 8, train: 40, validation: 20, test: 30}
  - {name: darcy-30, kind: darcy, high: 30, like: darcy, size: 8, train: 40, validation: 20, test: 30}
candidates:
  - {name: a, nearest: dense, operator: conv2d_depthwise, binding: {k: 3}}
  - {name: b, nearest: pointwise, module: "test_field_verdict:make_pointwise"}
  - {name: c, nearest: pointwise, module: "test_field_verdict:make_wider"}
  - {name: d, nearest: pointwise, file: d.mlir, binding: {k: 3}}
experiments:
  - {name: rates, equations: [darcy], families: [pointwise, dense], budgets: [1], seeds: 0, epochs: 1, learning-rates: [1e-3, 2e-3]}
  - {name: baselines, equations: [darcy], families: [pointwise, dense], budgets: [1, 2], seeds: 100-101, epochs: 2, learning-rates: best of rates}
  - {name: candidates, equations: [darcy], families: [candidates], budgets: [1, 2], seeds: 0-1, epochs: [1, 2, 3], learning-rates: best of rates}
  - {name: finalist-rates, equations: [darcy], families: [best 1 of candidates], budgets: [1], seeds: 0, epochs: 1, learning-rates: [4e-3]}
  - {name: finalists, equations: [darcy], families: [best 1 of candidates], budgets: [1, 2], seeds: 200-201, epochs: 2, learning-rates: "best of rates, finalist-rates"}
  - {name: replications, equations: [darcy-30], families: [best 1 of candidates, best 1 of baselines], budgets: [1, 2], seeds: 300-301, epochs: 2, learning-rates: "best of rates, finalist-rates"}
verdict: {baselines: baselines, finalists: finalists, replications: replications}
rules: {draws: 200}
"""  # noqa: E501


def make_pointwise(width, depth, grid):
    return nn.Conv2d(width, width, 1)


def make_wider(width, depth, grid):
    return nn.Sequential(nn.Conv2d(width, 2 * width, 1), nn.GELU(), nn.Conv2d(2 * width, width, 1 + depth // 9))


@pytest.fixture
def protocol(tmp_path):
    import kas

    (tmp_path / "d.mlir").write_text(str(kas.operator("conv2d_depthwise")))
    (tmp_path / "tiny.yaml").write_text(SPEC)
    return parse_protocol(SPEC, str(tmp_path / "tiny.yaml"))


def measure(protocol, equation, family, width, compilers):
    key, grid = protocol.time_key(equation, family, width, compilers), vars(protocol.equations[equation].grid)
    ms = {"kas": 0.25 * width, "torchscript": 0.5 * width}
    return {"kind": "time", "key": key, "family": family, "width": width, "grid": grid, "batch": 16, "ms": ms}


VALIDATION = {"a": 4.0, "b": 2.0, "c": 1.0, "d": 5.0, "dense": 3.0, "pointwise": 6.0}


class Trainings:
    """In place of the trainer: errors by the name of what is trained, better at the larger learning rate."""

    def __init__(self, protocol, store, folder):
        self.protocol, self.store, self.jobs = protocol, store, []

    def run(self, jobs, progress):
        known = self.store.read_trainings()
        for job in jobs:
            if self.protocol.key(job) not in known:
                self.store.add(self.train(job))
                self.jobs.append(job)

    def train(self, job):
        record = {"kind": "training", "key": self.protocol.key(job), "settings": self.protocol.settings(job)}
        if job.family == "d" and job.width == 8:
            return record | {"failure": "the loss is nan"}
        error = VALIDATION[job.family] / job.epochs + job.learning_rate
        values = make_errors(0.1 * error, [job.seed], job.family)[job.seed]
        found = {"failure": None, "validation": error, "errors": pack(values), "error": float(values.mean())}
        return record | found | {"parameters": 1, "cpu_seconds": 1.0}


def test_layers_of_candidates(protocol):
    grid = protocol.equations["darcy"].grid
    for name in protocol.candidates:
        network = protocol.make_network("darcy", name, 4, 1)
        loss = network(torch.randn(3, grid.inputs, 8, 8)).square().mean()
        loss.backward()
        assert all(parameter.grad is not None for parameter in network.parameters())
    a, d = protocol.candidates["a"].settings, protocol.candidates["d"].settings
    assert a["binding"] == {"k": 3} and a == d and "sha256" in protocol.candidates["b"].settings
    assert protocol.candidates["b"].settings != protocol.candidates["c"].settings
    times = {protocol.time_key("darcy", name, 4, COMPILERS) for name in ("a", "b", "c", "dense")}
    assert len(times) == 4
    job = next(protocol.experiments["rates"].get_jobs({("darcy", "pointwise", 1.0): 4}))
    assert protocol.settings(job)["data"] == [8, 40, 20, 30, 0] and "layer" not in protocol.settings(job)
    other = protocol.settings(job._replace(equation="darcy-30", family="b"))
    assert other["data"] == [8, 40, 20, 30, 0, ("kind", "darcy"), ("high", 30.0)] and "layer" in other
    one, two = (protocol.equations[name].load() for name in ("darcy", "darcy-30"))
    assert not torch.equal(one.train[1], two.train[1])


@pytest.mark.slow
def test_networks_of_candidates_are_timed(tmp_path, protocol):
    protocol = parse_protocol("timing: {batch: 2}" + SPEC.replace("size: 8", "size: 16"), str(tmp_path / "tiny.yaml"))
    record = _time.measure(protocol, "darcy", "a", 4, ("kas", "torchscript"))
    assert not record["failures"] and sorted(record["ms"]) == ["kas", "torchscript"]


def test_all_stages_to_the_verdict(tmp_path, protocol, monkeypatch, capsys):
    made = []
    monkeypatch.setattr(_time, "measure", measure)
    monkeypatch.setattr("kas_research.fields._command.Trainer", lambda *a: made.append(Trainings(*a)) or made[-1])
    spec, page = str(tmp_path / "tiny.yaml"), tmp_path / "page.md"

    def run(*options):
        code = main(["fields", spec, *options])
        captured = capsys.readouterr()
        assert code == (1 if captured.err else 0)
        return captured.out + captured.err

    assert "requires all trainings of 'candidates' before 'finalists', got 0 missing" in run("--experiment=finalists")
    out = run("--verdict")
    assert "Missing: baselines, darcy: 4 widths and 0 trainings." in out and "**Verdict: open.**" in out
    for name in ("rates", "baselines"):
        assert "rule" not in run(f"--experiment={name}", "--quiet")
    assert {job.learning_rate for job in made[-1].jobs} == {1e-3}
    run("--experiment=candidates", "--quiet")
    jobs = made[-1].jobs
    rounds = {epochs: sorted({job.family for job in jobs if job.epochs == epochs}) for epochs in (1, 2, 3)}
    # A failure is as the worst; a third goes on, with one seed until the last round.
    assert rounds == {1: ["a", "b", "c", "d"], 2: ["b", "c"], 3: ["c"]}
    assert [len({job.seed for job in jobs if job.epochs == epochs}) for epochs in (1, 2, 3)] == [1, 1, 2]
    assert "requires all trainings" not in run("--experiment=finalist-rates", "--quiet")
    run("--experiment=finalists", "--quiet")
    assert {(job.family, job.learning_rate) for job in made[-1].jobs} == {("c", 4e-3)}
    out = run("--verdict")
    assert "0 of 1 replications hold" in out and "Missing: replications, darcy-30: 0 widths and 8 trainings." in out
    run("--experiment=replications", "--quiet")
    assert {(job.equation, job.family, job.learning_rate) for job in made[-1].jobs} == {
        ("darcy-30", "c", 4e-3), ("darcy-30", "dense", 1e-3)
    }  # fmt: skip
    page.write_text("\n".join(_report.VERDICT) + "\n")
    assert "1 of 1 replications hold, 2 required" in run("--verdict", f"--page={page}")
    text = page.read_text()
    assert "| c | darcy | 1 | dense | 0.3" in text and "**Verdict: neither.**" in text
    assert "| not known: requires an operator or a sequence, got the module 'test_field_verdict:make_wider' |" in text
    assert run("--verdict") in text


def test_what_is_not_measured_is_missing(tmp_path, protocol, monkeypatch, capsys):
    monkeypatch.setattr(_time, "measure", measure)
    monkeypatch.setattr("kas_research.fields._command.Trainer", Trainings)
    store = Store(tmp_path / "tiny.jsonl")
    assert main(["fields", str(tmp_path / "tiny.yaml"), "--experiment=rates", "--quiet"]) == 0
    assert main(["fields", str(tmp_path / "tiny.yaml"), "--experiment=baselines", "--quiet", "--no-training"]) == 0
    assert _verdict.read_verdict(protocol, store).missing[0] == "baselines, darcy: 0 widths and 8 trainings"
    one = parse_protocol(SPEC.replace("seeds: 100-101", "seeds: 100"), str(tmp_path / "tiny.yaml"))
    with pytest.raises(ValueError, match=r"requires two seeds of 'baselines' at least, .*, got 1"):
        _verdict.read_verdict(one, store)
    none = parse_protocol(re.sub("(?ms)^candidates:.*^experiments", "candidates: []\nexperiments", SPEC))
    assert none.candidates == {} and none.experiments["candidates"].families == ()
    assert none.experiments["finalists"].families == (Best(1, "candidates"),)
    assert "finalists: no candidates" in _verdict.read_verdict(none, store).missing
    assert _stages.get_jobs(none, none.experiments["candidates"], store) == []
    with pytest.raises(ValueError, match="requires the key 'verdict' in the protocol, got none"):
        _verdict.read_verdict(parse_protocol(SPEC.replace("verdict:", "name: x #"), str(tmp_path / "x")), store)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "name: a, nearest: dense",
            "name: dense, nearest: dense",
            "requires a candidate that is no family, got 'dense'",
        ),
        ("nearest: dense", "nearest: b", "requires a family of pointwise, .*, got 'b'"),
        ("operator: conv2d_depthwise, ", "", "requires a module, an operator or a text of 'a', got 0 of them"),
        (
            'module: "test_field_verdict:make_pointwise"',
            'module: "m:f", binding: {k: 3}',
            "requires a binding of an op",
        ),
        ("{k: 3}", "{k: 0}", "requires 'k' from 1 to 1e.06, got '0'"),
        ("best 1 of candidates", "best 1 of none", "requires the best of rates, .*, got that of 'none'"),
        (
            "best 1 of candidates",
            "best 0 of candidates",
            "requires family of pointwise, .*, got 'best 0 of candidates'",
        ),
        ("best of rates, finalist-rates", "best of rates, x", "requires the best of rates, .*, got that of 'x'"),
        ("[1, 2, 3]", "[2, 1]", "requires more epochs in each round, got 2, 1"),
        ("[candidates]", "[candidates, a]", "requires each family once, got one again"),
        ("like: darcy,", "like: waves,", "requires the rates of darcy, darcy-30, got those of 'waves'"),
        ("kind: darcy,", "kind: waves,", "requires 'high' in a darcy, got it in a waves"),
        ("finalists: finalists", "finalists: x", "requires an experiment of rates, .*, got 'x'"),
        ("{baselines: baselines, ", "{", "requires the key 'baselines' in a verdict, got none"),
    ],
)
def test_files_that_are_refused(tmp_path, protocol, old, new, message):
    assert old in SPEC
    with pytest.raises(SpecError, match=f"^[^ ]*:[0-9]+: {message}"):
        parse_protocol(SPEC.replace(old, new, 1), str(tmp_path / "tiny.yaml"))


def test_functions_that_are_not_there():
    protocol = parse_protocol(re.sub(r"  - \{name: d,.*\n", "", SPEC).replace("verdict:make_wider", "verdict:none"))
    with pytest.raises(ValueError, match=r"requires a function package.module:function, got 'test_field_verdict:none'"):
        protocol.make_network("darcy", "c", 4)
