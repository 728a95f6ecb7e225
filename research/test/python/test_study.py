# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Studies: what files may say, that every program computes what it should, and that nothing is lost."""

import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys

import numpy
import pytest

from kas import _kas
from kas_research import study
from kas_research.study import _run, _worker
from kas_research.study._data import (
    compress_places,
    compress_rows,
    convolve,
    from_bf16,
    get_error,
    make_data,
    pack_dot_products,
    to_bf16,
)
from kas_research.study._dot_tiles import INSTRUCTIONS, Tile, get_tiles, write_dot_tiles
from kas_research.study._models import Layer, prune_channels
from kas_research.study._programs import write_dense
from kas_research.study._sparse import SPARSE_PASSES, write_sparse
from kas_research.study._spec import PIPELINE_ALGORITHMS

TINY = """models: [tiny]
compressions: [dense, {name: weight-pruning, ratios: [0.9]}, {name: channel-pruning, ratios: [0.5]}, int8]
algorithms: [im2col]
schedules: [untuned]
runs: 2
"""


# What a file says


def test_spec_is_the_product_of_its_axes():
    spec = study.parse_spec(
        "models: [vgg16, {name: resnet18, image: 64, width: 0.5}]\n"
        "compressions: [dense, {name: channel-pruning, ratios: [0.5, 0.8]}]\n"
        "algorithms: [auto, im2col]\nschedules: [untuned, model]\ntargets: [cpu, x86-64-v3]\n",
        "s.yaml",
    )
    plan = spec.get_configurations()
    # Plain loops have no `auto`.
    assert len(plan) == 2 * 3 * (2 + 1) * 2
    assert len(spec.get_objections()) == 2 * 3 * 2
    assert [c.compression for c in plan[:12]] == ["dense"] * 12
    assert plan[0].name == "vgg16, dense, im2col, untuned, cpu"
    assert plan[-1].name == "resnet18@64*0.5, channel-pruning 0.8, im2col, model, x86-64-v3"


@pytest.mark.parametrize("name, least", [("cifar", 144), ("targets", 60)])
def test_specs_of_the_page(name, least):
    path = pathlib.Path(__file__).resolve().parents[3] / "research" / "data" / f"{name}-study.yaml"
    spec = study.read_spec(str(path))
    assert spec.name == name and len(spec.get_configurations()) >= least


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "s.yaml:1: requires a study, got an empty file"),
        ("models: [", "s.yaml:1: requires YAML, got expected the node content, but found '<stream end>'"),
        ("- a", "s.yaml:1: requires a study to be a mapping, got a list"),
        ("compressions: [dense]", "s.yaml:1: requires the key 'models' in a study, got none"),
        (
            "models: [tiny]\ncompresions: [dense]",
            "s.yaml:2: requires a key of name, models, compressions, algorithms, schedules, targets, "
            "threads, runs, trials, limit, seed in a study, got 'compresions'",
        ),
        ("models: [tiny]\nmodels: [tiny]", "s.yaml:2: requires the key 'models' once in a study, got it twice"),
        (
            "models: []\ncompressions: [dense]",
            "s.yaml:1: requires 'models' to be a list of at least one, got an empty list",
        ),
        (
            "models:\n- resnet19\ncompressions: [dense]",
            "s.yaml:2: requires a model of resnet18, vgg16, mobilenet_v1, mobilenet_v2, tiny, got 'resnet19'",
        ),
        ("models:\n- tiny\n- tiny\ncompressions: [dense]", "s.yaml:3: requires each model once, got 'tiny' again"),
        (
            "models: [{name: tiny, image: 4}]\ncompressions: [dense]",
            "s.yaml:1: requires an image from 8 to 512, got '4'",
        ),
        ("models: [{image: 32}]\ncompressions: [dense]", "s.yaml:1: requires the key 'name' in a model, got none"),
        (
            "models: [tiny]\ncompressions: [weight-pruning]",
            "s.yaml:2: requires ratios of 'weight-pruning', got none: {name: weight-pruning, ratios: [0.5]}",
        ),
        (
            "models: [tiny]\ncompressions: [{name: f16, ratios: [0.5]}]",
            "s.yaml:2: requires a compression with ratios of weight-pruning, channel-pruning, got 'f16'",
        ),
        (
            "models: [tiny]\ncompressions:\n- name: weight-pruning\n  ratios: [1]",
            "s.yaml:4: requires a ratio from 0.01 to 0.999, got '1'",
        ),
        (
            "models: [tiny]\ncompressions: [dense]\nalgorithms: [gemm]",
            "s.yaml:3: requires an algorithm of auto, direct, im2col, spatial-pack, winograd, got 'gemm'",
        ),
        (
            "models: [tiny]\ncompressions: [dense]\nschedules: tuned",
            "s.yaml:3: requires 'schedules' to be a list of at least one, got 'tuned'",
        ),
        (
            "models: [tiny]\ncompressions: [dense]\nruns: 0",
            "s.yaml:3: requires a number of runs from 1 to 10000, got '0'",
        ),
        ("models: [tiny]\ncompressions: [dense]\nseed: x", "s.yaml:3: requires a seed from 0 to 4.29497e+09, got 'x'"),
    ],
)
def test_errors_of_a_spec(text, message):
    with pytest.raises(study.SpecError) as error:
        study.parse_spec(text, "s.yaml")
    assert str(error.value) == message


# Networks and data


@pytest.mark.parametrize(
    "network, macs, weights",
    [
        ("resnet18", 555_422_720, 11_164_352),
        ("vgg16", 313_201_664, 14_715_584),
        ("mobilenet_v1", 46_354_432, 3_195_328),
    ],
)
def test_networks(network, macs, weights):
    layers = study.get_layers(network)
    assert sum(layer.macs * layer.count for layer in layers) == macs
    assert sum(layer.weights * layer.count for layer in layers) == weights
    pruned = prune_channels(layers, 0.75)
    assert [(p.size, p.kernel, p.stride, p.count) for p in pruned] == [
        (d.size, d.kernel, d.stride, d.count) for d in layers
    ]
    assert pruned[0].inputs == 3 and pruned[-1].outputs == 10
    assert 0.24 < sum(p.weights * p.count for p in pruned) / weights < 0.27


def test_reference_convolution():
    layer = Layer(2, 3, 5, 3, 2)
    data = make_data(layer, "f32", 0.5, 1)
    assert numpy.count_nonzero(data.weights) == data.weights.size - round(data.weights.size * 0.5)
    padded = numpy.pad(data.image[0], ((0, 0), (1, 1), (1, 1))).astype(float)
    for f, h, w in numpy.ndindex(3, 3, 3):
        window = padded[:, 2 * h : 2 * h + 3, 2 * w : 2 * w + 3]
        assert abs((window * data.weights[f]).sum() - data.expected[0, f, h, w]) < 1e-9
    assert get_error(data.expected, data, "f32") == 0


def test_bf16_rounds_to_nearest_even():
    values = numpy.array([1.0, 1.00390625, 1.01171875, -3.0e38, 1e-30], dtype=numpy.float32)
    assert from_bf16(to_bf16(values))[:3].tolist() == [1.0, 1.0, 1.015625]
    assert numpy.all(abs(from_bf16(to_bf16(values)) / values - 1) <= 2.0**-8)


def test_compressed_weights():
    weights = make_data(Layer(4, 6, 5, 3), "f32", 0.9, 0).weights
    (count,), (positions, coordinates, values) = compress_rows(weights.reshape(6, -1))
    dense = numpy.zeros((6, 36), dtype=numpy.float32)
    for row in range(6):
        for place in range(positions[row], positions[row + 1]):
            dense[row, coordinates[place]] = values[place]
    assert count == len(values) == 22 and numpy.array_equal(dense.reshape(weights.shape), weights)

    layer = Layer(4, 6, 5, 3, 2)
    counts, arrays = compress_places(layer, weights)
    places = numpy.zeros_like(weights)
    for place in range(9):
        positions, coordinates, values = arrays[3 * place : 3 * place + 3]
        i, j = divmod(place, 3)
        for f in range(6):
            for n in range(positions[f], positions[f + 1]):
                # Of the four phases that a stride of 2 makes.
                assert coordinates[n] // 4 == i % 2 * 2 + j % 2
                places[f, coordinates[n] % 4, i, j] = values[n]
    assert sum(counts) == 22 and numpy.array_equal(places, weights)


# Programs

LAYERS = [
    Layer(5, 6, 6, 3),
    Layer(3, 4, 7, 3, 2),
    Layer(8, 12, 4),
    Layer(6, 6, 8, 1, 2),
    Layer(6, 6, 5, 3, 2, depthwise=True),
]


def run_program(layer, data, element, text, passes, arguments):
    kernel = _worker.Kernel(_worker.Variant(text, passes, arguments), data.expected.shape, element)
    kernel.run(1)
    return get_error(kernel.output, data, element)


@pytest.mark.parametrize("algorithm", ["direct", "im2col"])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_programs(layer, algorithm):
    data = make_data(layer, "f32", 0.8, 0)
    text = write_dense(layer, algorithm)
    assert run_program(layer, data, "f32", text, "kas-cpu-pipeline{threads=1}", [data.image, data.weights]) < 1e-5
    if not layer.depthwise:
        rows = (
            compress_rows(data.weights.reshape(layer.outputs, -1))
            if algorithm == "im2col"
            else compress_places(layer, data.weights)
        )
        passes = SPARSE_PASSES.format(lanes=8) + ",kas-cpu-pipeline{threads=1}"
        assert (
            run_program(layer, data, "f32", write_sparse(layer, algorithm, rows[0]), passes, [data.image, *rows[1]])
            < 1e-5
        )
    data = make_data(layer, "i8", 0, 0)
    text = write_dense(layer, algorithm, "i8")
    assert run_program(layer, data, "i8", text, "kas-cpu-pipeline{threads=1}", [data.image, data.weights]) == 0


@pytest.mark.parametrize("algorithm", PIPELINE_ALGORITHMS)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_algorithms_of_the_pipeline(layer, algorithm):
    data, passes = make_data(layer, "f32", 0, 0), f"kas-cpu-pipeline{{threads=1 algorithm={algorithm}}}"
    assert run_program(layer, data, "f32", write_dense(layer, algorithm), passes, [data.image, data.weights]) < 1e-4


@pytest.mark.parametrize("tile", [Tile(2, 2), Tile(1, 3), Tile(4, 1, True), Tile(3, 2, True)], ids=str)
@pytest.mark.parametrize("layer", LAYERS[:4], ids=lambda layer: layer.name)
@pytest.mark.parametrize("element", ["i8", "bf16"])
def test_tiles_of_dot_products(tmp_path, element, layer, tile):
    """On a processor without the instruction there is nothing to run: the text alone is lowered."""
    instruction = INSTRUCTIONS[element]
    data = make_data(layer, element, 0, 0)
    text, passes = write_dot_tiles(layer, instruction, tile), "kas-cpu-pipeline{threads=1}"
    target = json.loads(_kas.open_tuning_database(str(tmp_path / "t.db")))["target"]
    if f"+{instruction.feature}" not in target:
        assert instruction.intrinsic in str(_worker.Module(text).run(passes))
        return
    arguments = [data.image, *pack_dot_products(layer, instruction, tile, data.weights)]
    assert run_program(layer, data, element, text, passes, arguments) <= _worker.TOLERANCE[element]


def test_tiles_fit_registers():
    for layer in (*LAYERS[:4], Layer(512, 512, 4, 3), Layer(1024, 10, 1)):
        tiles = get_tiles(layer, INSTRUCTIONS["i8"])
        assert tiles and all(tile.rows * tile.vectors <= 24 for tile in tiles)
        assert all(tile.swapped or layer.outputs % tile.rows == 0 for tile in tiles)
    # Images of few pixels would leave lanes empty.
    assert get_tiles(Layer(1024, 1024, 2), INSTRUCTIONS["i8"])[0].swapped
    assert not get_tiles(Layer(64, 64, 32, 3), INSTRUCTIONS["i8"])[0].swapped


def make_request(database, **changes):
    configuration = {
        "compression": "dense",
        "ratio": 0,
        "algorithm": "auto",
        "schedule": "model",
        "target": "cpu",
        **changes,
    }
    layers = [(layer.to_json(), layer.to_json()) for layer in study.get_layers("tiny")]
    return {
        "configuration": configuration,
        "baseline": None,
        "layers": layers,
        "seed": 0,
        "runs": 1,
        "trials": 2,
        "threads": 1,
        "database": str(database),
        "features": [],
    }


def test_wrong_results_are_failures(tmp_path, monkeypatch):
    job = _worker.Job(make_request(tmp_path / "x.db"))
    assert [layer["error"] < 1e-5 for layer in job.run()] == [True] * 4

    def make_wrong(*arguments):
        data = make_data(*arguments)
        data.expected[..., -1] += 1
        return data

    monkeypatch.setattr(_worker, "make_data", make_wrong)
    with pytest.raises(_worker.JobError, match=r"c3_3_16@32: expected an error of at most 0.0001, got 0\.\d+"):
        job.run()


# Running


def test_failures_of_workers(tmp_path, monkeypatch):
    spec = study.parse_spec("models: [tiny]\ncompressions: [dense]\nlimit: 1\n", "s.yaml")
    configuration = spec.get_configurations()[0]

    def measure(code):
        monkeypatch.setattr(_run, "WORKER", ["-c", code])
        outcome, layers = _run.measure(spec, configuration, None, str(tmp_path / "x.db"))
        assert layers == [] and outcome.ms is None
        return outcome.failure

    assert measure("import os; os.kill(os.getpid(), 11)") == "the worker died: SIGSEGV"
    assert measure("import time; time.sleep(60)") == "expected an end within 1 s, got none"
    assert measure("raise SystemExit('no')") == "the worker ended with 1 and without an answer: no"
    assert measure("""print('{"failure": "why"}')""") == "why"


def start(spec, *arguments):
    command = [sys.executable, "-m", "kas_research", "study", str(spec), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy())


def read_rows(database):
    with sqlite3.connect(database) as connection:
        return connection.execute(
            "SELECT compression, measured_at, ms, failure FROM study_configuration ORDER BY id"
        ).fetchall()


def test_killed_and_resumed(tmp_path):
    spec, database = tmp_path / "tiny.yaml", tmp_path / "tiny.db"
    spec.write_text(TINY)
    first = start(spec)
    lines = [first.stdout.readline() for _ in range(2)]
    # A second one is refused as long as the first one runs.
    other = start(spec)
    assert (
        other.communicate()[1]
        == f"error: '{database}' requires one study at a time, got another process that runs one\n"
    )
    assert other.returncode == 1
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert lines[0].startswith("[1/4] tiny, dense, im2col, untuned, cpu: ")
    before = read_rows(database)
    assert len(before) >= 2

    rest = start(spec, "--tables", str(tmp_path / "t.md"), "--plot", str(tmp_path / "p.svg"))
    output, errors = rest.communicate()
    assert rest.returncode == 0 and errors == ""
    assert f"[{len(before)}/4]" not in output and output.splitlines()[-1].startswith("4 configurations, 0 failed, ")
    after = read_rows(database)
    assert after[: len(before)] == before
    assert [row[0] for row in after] == ["dense", "weight-pruning", "channel-pruning", "int8"]
    assert all(row[2] > 0 and row[3] is None for row in after)
    assert "| cpu | untuned | weight-pruning 90 % | 1 |" in (tmp_path / "t.md").read_text()
    assert (tmp_path / "p.svg").read_text().count("<title>") == 3

    # Nothing is left to do, and times of another machine are not mixed in.
    assert start(spec).communicate()[0].count("\n") == 1
    found = json.loads(start(spec, "--json").communicate()[0])
    assert [one["compression"] for one in found] == [row[0] for row in after]
    assert [one["ms"] for one in found] == [row[2] for row in after]
    assert found[0]["model"] == "tiny" and found[0]["failure"] is None and found[1]["share"] > 0
    listed = json.loads(start(spec, "--list", "--json").communicate()[0])
    assert [one["compression"] for one in listed["configurations"]] == [row[0] for row in after]
    assert all(one["reason"] for one in listed["left out"])
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE study SET toolchain = 'kas 0.0.1, LLVM 1'")
    last = start(spec)
    assert (
        "requires the toolchain that study 'tiny' began with, 'kas 0.0.1, LLVM 1', got 'kas " in last.communicate()[1]
    )
    assert last.returncode == 1 and read_rows(database) == after
    ((name, environment, outcomes),) = study.read_studies(str(database))
    assert name == "tiny" and environment["toolchain"] == "kas 0.0.1, LLVM 1" and len(outcomes) == 4


def test_databases_of_other_kinds(tmp_path):
    path = tmp_path / "other.db"
    path.write_text("no database at all, but long enough to be taken for one" * 20)
    spec = study.parse_spec(TINY, "tiny.yaml")
    with pytest.raises(Exception, match=r"other.db"):
        study.run(spec, str(path))
    with pytest.raises(study.StudyError, match=r"is not the database of a study"):
        list(study.read_studies(str(path)))


# Reports


def make_outcomes():
    def outcome(model, compression, algorithm, ms, expected=None, achieved=None, failure=None):
        configuration = study.Configuration(
            model, compression, 0.5 if "pruning" in compression else 0.0, algorithm, "tuned", "cpu"
        )
        return study.Outcome(configuration, failure, ms, None, None, expected, achieved)

    return [
        outcome("vgg16", "dense", "auto", 2.0),
        outcome("vgg16", "channel-pruning", "auto", 1.0, 2.0, 2.0),
        outcome("vgg16", "channel-pruning", "im2col", 2.0, 2.0, 1.0),
        outcome("resnet18", "channel-pruning", "im2col", 2.0, 2.0, 0.5),
        outcome("resnet18", "int8", "auto", None, failure="the worker died: SIGSEGV"),
    ]


def test_tables_take_the_fastest_algorithm():
    outcomes = make_outcomes()
    assert [o.configuration.algorithm for o in study.get_best(outcomes)] == ["auto", "auto", "im2col"]
    tables = study.write_tables(outcomes)
    # Of 100 and 25 % the geometric mean.
    assert (
        "| cpu | tuned | channel-pruning 50 % | 2 | 2.00 | 1.00 | **50** | 25 to 100 | auto, im2col | 39.8 / 26.6 |"
        in tables
    )
    assert "| cpu | resnet18 | int8 | auto | tuned | the worker died: SIGSEGV |" in tables
    page = "a\n<!-- study: summary -->\nold\n<!-- end of study -->\nb\n"
    new = study.update_page(page, outcomes)
    assert "old" not in new and "**50**" in new and new.startswith("a\n") and new.endswith("<!-- end of study -->\nb\n")
    assert study.update_page(new, outcomes) == new


def test_plot_is_xml():
    import xml.etree.ElementTree

    root = xml.etree.ElementTree.fromstring(study.write_plot(make_outcomes()))
    assert len([e for e in root.iter() if e.tag.endswith("title")]) == 2


def test_convolve_is_used_for_depthwise():
    layer = LAYERS[4]
    data = make_data(layer, "f32", 0, 0)
    own = convolve(Layer(1, 1, 5, 3, 2), data.image[:, 2:3], data.weights[2:3])
    assert numpy.allclose(own[0, 0], data.expected[0, 2])
