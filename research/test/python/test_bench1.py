# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas_research.bench1: the tables, replays, the commands on few operators, files that are wrong."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import lzma
import pathlib
import random
import subprocess
import sys

import pytest

import kas
from kas_research import bench1
from kas_research.bench1 import Latency, Row, Table, TableError, Training, _command, _list, _space

ROOT = pathlib.Path(__file__).resolve().parents[3]
ABOUT = {"tasks": {"task": {}, "other": {}}, "licence": "none"}


@pytest.fixture(scope="module")
def made(table):
    """The operators that see a whole window, with accuracies of their own making; every seventh cannot be trained."""

    def make(row):
        if row.number % 7 == 0:
            return dataclasses.replace(row, trainings=(Training("task", 0, "no reason"),), latencies=())
        best = 60 + 30 * random.Random(row.key).random()
        trainings = tuple(
            Training(
                "task", seed, None, best + seed, best - seed, 50.0, 40.0, (best - 9, best - 2, best + seed), (2.0, 1.0)
            )
            for seed in range(3)
        )
        return dataclasses.replace(row, trainings=trainings, latencies=())

    rows = [make(row) for row in table if "sees" in row.properties]
    return Table([dataclasses.replace(row, number=place) for place, row in enumerate(rows)], {}, ABOUT)


@pytest.fixture
def folder(made, tmp_path):
    """Files of four operators."""
    latency = Latency("64x56", 2, "a processor, of sorts", 120.5, 482.0)
    rows = [made[0], *(dataclasses.replace(made[number], latencies=(latency,)) for number in (1, 2, 3))]
    references = {"dense": Row(-1, "", "", frozenset(), trainings=made[1].trainings[:1])}
    bench1.write_tables(rows, references, ABOUT, tmp_path)
    return tmp_path


def rewrite(folder, name, change):
    """Changes the text of a file, and the manifest with it."""
    path = folder / name
    content = lzma.compress(change(lzma.decompress(path.read_bytes()).decode()).encode())
    path.write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name]["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


# What is there


def test_the_list_is_that_of_the_published_space(table):
    published = ROOT / "tools" / "kas-bench" / "spaces" / "syno-resnet18.mlir"
    assert _space.read_text() == published.read_text(encoding="utf-8")
    assert len(table) == 13965 and len(table.by_key) == 13965
    assert sum({"sees", "reaches"} <= row.properties for row in table) == 522
    flops = [row.costs["network"].flops for row in table]
    assert flops == sorted(flops)
    space = _space.make_space("sees", "reaches")
    assert {c.key for c in space.list()} == {row.key for row in table if {"sees", "reaches"} <= row.properties}


def test_costs_are_those_of_the_operators(table):
    for number in (0, 4711, 13964):
        assert dict(table[number].costs) == _list.compute_costs(table[number].operator, _space.read_space())
    row = table[4711]
    assert list(row.costs) == ["network", "trained", *bench1.LAYERS]
    binding = {name: bench1.LAYERS["64x56"][name] for names in row.operator.symbols for name in names}
    assert row.costs["64x56"].flops == row.operator.cost(binding).flops


def test_import_is_light():
    code = (
        "import sys, kas_research.bench1; dir(kas_research.bench1); assert not {'torch', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names():
    for name in bench1.__all__:
        getattr(bench1, name)
    with pytest.raises(AttributeError, match=r"module 'kas_research\.bench1' has no attribute 'lod'"):
        _ = bench1.lod


# Looking operators up


@pytest.mark.parametrize("name", ["syno_operator1", "syno_operator2", "kernel_07923", "conv1x1"])
def test_named_operators_are_found(table, name):
    operator = kas.operator(name)
    found = table.find(operator, {"k": "k1"})
    assert found.reason is None
    sizes = {**bench1.LAYERS["64x56"], "W": 56, "k": 3}
    cost = operator.cost({name: sizes[name] for names in operator.symbols for name in names})
    costs = table[found.number].costs["64x56"]
    assert (costs.flops, costs.parameters) == (cost.flops, cost.parameters)


def test_each_operator_is_found(table):
    for row in random.Random(0).sample(list(table), 20):
        assert table.find(row.text).number == row.number
        # Other names of values, and other primary symbols.
        text = row.text.replace("%r", "%x").replace("Cin", "A").replace("Cout", "B")
        assert table.find(text).number == row.number


@pytest.mark.parametrize(
    ("name", "symbols", "reason"),
    [
        ("conv2d", {"k": "k1"}, "it has 3699376128 FLOPs, the budget 'flops' is 3026400000"),
        ("conv2d_grouped", {"k": "k1"}, "it has 115605504 FLOPs, the budget 'min_flops' is 291000000"),
        ("conv2d", {}, "requires the coefficients k1, k2, s, g, got 'k': say which it is by symbols="),
        ("linear", {}, "its output is [N, Cout], that of the space is [N, Cout, H, H]"),
        ("conv2d_depthwise_separable", {"k": "k1"}, "not listed"),
    ],
)
def test_reasons_why_an_operator_is_not_there(table, name, symbols, reason):
    found = table.find(kas.operator(name), symbols)
    assert found.number is None and found.reason == reason
    assert str(found) == f"not in the space: {reason}"


def test_find_takes_one_operator(table):
    with pytest.raises(ValueError, match="requires one operator, got 0"):
        table.find("module {}")


def test_queries(table):
    found = table.query(flops=(4e8, 5e8), sees=True, same_everywhere=False)
    assert found and all(4e8 <= row.costs["network"].flops <= 5e8 for row in found)
    assert all("sees" in row.properties and "same_everywhere" not in row.properties for row in found)
    assert table.query(layer="512x7", parameters=0) == []
    assert len(table.query()) == len(table)
    with pytest.raises(ValueError, match=r"requires a layer of network, trained, 64x56, .*, got '3x3'"):
        table.query(layer="3x3")
    with pytest.raises(ValueError, match=r"requires numbers for flops, .* and True or False for sees, .*got sees=3"):
        table.query(sees=3)


def test_accuracies_and_ratios(made, folder):
    row = next(row for row in made if row.number % 7 and row.trainings[0].failure is None)
    assert row.get_accuracy("task") == pytest.approx(row.trainings[0].test - 1)
    assert row.get_accuracy("task", "validation") == pytest.approx(row.trainings[0].test + 1)
    assert row.get_accuracy("other") is None and row.get_ratio("64x56") is None
    assert bench1.load(folder)[1].get_ratio("64x56", threads=2) == pytest.approx(0.25)


# Files


def test_files_keep_everything(made, folder):
    table = bench1.load(folder)
    assert repr(table) == "<kas_research.bench1.Table: 4 operators, 3 with latencies, 3 with accuracies>"
    for number in range(4):
        assert (table[number].text, table[number].costs) == (made[number].text, made[number].costs)
        for mine, theirs in zip(table[number].trainings, made[number].trainings, strict=True):
            assert mine.failure == theirs.failure and mine.curve == pytest.approx(theirs.curve)
            assert mine.test == theirs.test and mine.losses == theirs.losses
    assert table.references["dense"].trainings[0].test == made[1].trainings[0].test
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    bench1.write_tables(list(table), table.references, ABOUT, folder)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_damaged_files(folder):
    path = folder / "costs.csv.xz"
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"requires a file '.*costs\.csv\.xz' with the checksum \w{64}, got \w{64}"):
        bench1.load(folder)
    path.unlink()
    with pytest.raises(TableError, match=r"requires the file 'costs\.csv\.xz' in '.*', got none"):
        bench1.load(folder)


def test_foreign_files(folder, tmp_path):
    with pytest.raises(TableError, match=r"requires the file 'manifest\.json' of the tables in '.*', got none"):
        bench1.load(tmp_path / "none")
    manifest = folder / "manifest.json"
    good = json.loads(manifest.read_text())
    for text, message in (
        ("{", r"requires JSON in '.*manifest\.json', got another text"),
        ("[]", r"requires tables of format 2 \(version 2\.1\) in '.*', got None$"),
        (json.dumps({**good, "format": 3}), r"requires tables of format 2 \(version 2\.1\) in '.*', got 3$"),
        (json.dumps({**good, "format": 1}), "got 1: its costs and times are of other sizes than its accuracies, and"),
        (json.dumps({**good, "files": 3}), "requires an object 'files' in '.*', got 3"),
        (json.dumps({**good, "files": {}}), r"requires the file 'operators\.csv\.xz' among those of '.*', got none"),
    ):
        manifest.write_text(text)
        with pytest.raises(TableError, match=message):
            bench1.load(folder)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("operators.csv.xz", "number,key", "key,number", "requires the columns number, key, .*, got key, number,"),
        ("operators.csv.xz", "\n1,", "\n7,", r"requires operators 0, 1, 2, \.\.\. in '.*', got others"),
        ("costs.csv.xz", "network", "netwerk", r"entry 1: requires a layer of network, .*, got 'netwerk'"),
        ("latencies.csv.xz", "120.5", "fast", r"entry 1: requires what its columns say, got \['1', '64x56', '2'"),
        ("latencies.csv.xz", "\n1,", "\n9,", "requires an operator from 0 to 3, got 9"),
    ],
)
def test_entries_that_are_wrong(folder, name, old, new, message):
    rewrite(folder, name, lambda text: text.replace(old, new, 1))
    with pytest.raises(TableError, match=message):
        bench1.load(folder)


# Replays


@pytest.mark.parametrize("algorithm", ["uniform", "evolution", "mcts", "surrogate", "halving"])
def test_replays_repeat_and_keep_their_budget(made, algorithm):
    pytest.importorskip("torch")
    first, again = (made.replay(algorithm, seed=3, budget=20) for _ in range(2))
    assert first == again and first.algorithm == algorithm
    assert 19 < first.steps[-1].trainings <= 20 + 1e-9
    assert len(set(first.numbers)) == len(first.numbers)
    assert 0 <= first.regret(20) < 30 and first.regret(0.1) == float("inf")
    assert made.replay(algorithm, seed=4, budget=20).numbers != first.numbers


def test_replays_look_up_what_is_there(made):
    pytest.importorskip("torch")
    whole = made.replay("uniform", seed=0, budget=1000)
    known = [row for row in made if {"sees", "reaches"} <= row.properties]
    assert len(whole.numbers) == len(known) == 522
    assert whole.failures == sum(row.trainings[0].failure is not None for row in known)
    assert whole.steps[-1].trainings == pytest.approx(522 - whole.failures)
    # With all of them trained, what is left is that one seed is not the mean.
    assert whole.regret(1000) < 3
    # In halving, three epochs are two rungs: one, and all.
    halved = made.replay("halving", seed=0, budget=20)
    assert halved.steps[0].trainings == pytest.approx(1 / 3) and halved.steps[0].best is None
    assert len(halved.numbers) > 30


def test_regrets_and_errors_of_replays(made):
    pytest.importorskip("torch")
    regrets = bench1.get_regrets(made, ["uniform", "mcts"], range(3), (2, 10))
    assert [(r.algorithm, r.trainings) for r in regrets] == [("uniform", 2), ("uniform", 10), ("mcts", 2), ("mcts", 10)]
    assert all(r.lower <= r.median <= r.upper for r in regrets)
    with pytest.raises(ValueError, match=r"the algorithm must be one of random, .*, halving, got 'luck'"):
        made.replay("luck")
    with pytest.raises(ValueError, match="the task must be one of task, other, got 'chess'"):
        made.replay(task="chess")
    with pytest.raises(ValueError, match="requires trainings on 'other' of operators with sees, reaches, got none"):
        made.replay(task="other")
    few = Table(list(made)[:50], {}, ABOUT)
    with pytest.raises(ValueError, match="requires operators of the table, got one with the key"):
        few.replay("uniform", budget=100)


# The commands


@pytest.fixture
def small_task(tmp_path, monkeypatch):
    """Trainings of two epochs on few images of noise."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    del torch
    from kas.evaluate import Recipe
    from kas_research.bench1 import _tasks

    path = tmp_path / "noise.py"
    path.write_text(
        "import torch\n"
        "from kas.evaluate import Data\n"
        "def make(seed=0):\n"
        "    generator = torch.Generator().manual_seed(seed)\n"
        "    part = lambda n: (torch.randn(n, 1, 32, 32, generator=generator), torch.arange(n) % 10)\n"
        "    return Data('noise', part(64), part(32), part(32), 10)\n"
    )
    recipe = Recipe(epochs=2, batch_size=32, warmup_steps=1, recalibrate=False)
    task = _tasks.Task(f"{path}:make", recipe)
    monkeypatch.setattr(_tasks, "TASKS", {"noise": task})
    for module in ("_train", "_pack"):
        monkeypatch.setattr(f"kas_research.bench1.{module}.TASKS", {"noise": task})
    return task


def test_trainings_go_on_and_are_packed(untrained, small_task, tmp_path, monkeypatch):
    from kas_research.bench1 import _pack, _tasks, _train
    from kas_research.protocol import Store

    rows = _tasks.order(untrained, drawn=1)
    assert len(rows) == 528 and all("sees" in row.properties for row in rows[:-1])
    chosen = [rows[0], rows[-1]]
    dense = {"dense": _train.UNTRAINED["dense"]}
    monkeypatch.setattr(_tasks, "WIDTHS", (16,))
    store = Store(tmp_path / "first.jsonl")
    options = {"tasks": ["noise"], "seeds": (0, 1), "references": dense, "niceness": 0}

    def count_missing():
        return len(_train.plan("noise", chosen, store, seeds=(0, 1), references=dense)[1])

    _train.train(chosen, store, limit=1, **options)
    assert [(record["contender"], record["seed"]) for record in store] == [("dense", 0)]
    assert count_missing() == 5
    # Another machine takes the second half.
    other = Store(tmp_path / "second.jsonl")
    _train.train(chosen, other, part=(2, 2), **options)
    _train.train(chosen, store, part=(1, 2), processes=2, **options)
    assert count_missing() == 2
    # What is packed first stays, and is not trained again.
    begun = Table(*_pack.pack(untrained, [other]))
    assert sum(bool(row.trainings) for row in begun) == 1
    empty = Store(tmp_path / "empty.jsonl")
    left = [begun[row.number] for row in chosen]
    assert len(_train.plan("noise", left, empty, seeds=(0, 1), references=dense)[1]) == 4
    packed, references, about = _pack.pack(begun, [store])
    assert (packed, references, about) == _pack.pack(untrained, [store, other])
    moved = Table(begun, {}, {**about, "tasks": {"noise": {"data": "others"}}})
    with pytest.raises(ValueError, match="requires trainings on 'noise' with the data others of the table, got noise"):
        _pack.pack(moved, [store])
    for row in chosen:
        trainings = packed[row.number].get_trainings("noise")
        assert [one.seed for one in trainings] == [0, 1]
        for one in trainings:
            assert one.failure is None and len(one.curve) == len(one.losses) == 2
            assert one.curve[-1] == one.validation and one.parameters > 1000
    assert len(references["dense"].trainings) == 2
    assert sum(bool(row.trainings) for row in packed) == 2
    assert about["tasks"]["noise"]["data"].startswith("noise ") and about["licence"] == "CC-BY-4.0"


@pytest.mark.slow
def test_trainings_are_those_of_each_seed(untrained, small_task, tmp_path):
    """A program that seeds share gives each of them what it gives alone."""
    from kas_research.bench1 import _tasks, _train
    from kas_research.protocol import Store

    row = _tasks.order(untrained, drawn=0)[0]
    together, alone = Store(tmp_path / "together.jsonl"), Store(tmp_path / "alone.jsonl")
    _train.train([row], together, tasks=["noise"], seeds=(0, 1), references={}, niceness=0)
    _train.train([row], alone, tasks=["noise"], seeds=(1,), references={}, niceness=0)
    ((second,), (single,)) = ([r for r in store if r["seed"] == 1] for store in (together, alone))
    assert second["backend"] == "native"
    for name in ("accuracies", "curve", "validation", "shifted"):
        assert second[name] == single[name]


def test_costs_go_on(table):
    rows = [dataclasses.replace(table[number], costs=table[number].costs if number else {}) for number in range(3)]
    found, is_complete = _list.add_costs(rows)
    assert is_complete and [row.costs for row in found] == [table[number].costs for number in range(3)]


# Measuring again


def test_values_that_differ_are_found(table):
    pytest.importorskip("torch")
    from kas_research.bench1 import _reproduce

    latencies = (Latency("512x7", 1, "another", 1.0, 1e6), Latency("256x14", 1, "another", 1e6, 1.0))
    row = dataclasses.replace(table[0], latencies=latencies)
    checks = list(_reproduce.check_latencies([row]))
    assert [check.what for check in checks] == [
        f"time in {layer} on 1 thread over that of the dense layer (table: another machine)"
        for layer in ("256x14", "512x7")
    ]
    assert not any(check.holds for check in checks)
    (known,) = _reproduce.check_latencies(
        [dataclasses.replace(row, latencies=(Latency("512x7", 1, "this", checks[1].found, 1.0),))]
    )
    assert known.known == checks[1].found and known.tolerance == pytest.approx(0.15 * known.known)


def test_deviation_of_a_seed(made):
    pytest.importorskip("torch")
    from kas_research.bench1 import _reproduce

    # Three seeds, one point apart.
    assert _reproduce.get_deviation(made, "task") == pytest.approx(1)
    with pytest.raises(ValueError, match="requires operators with two trainings on 'other' in the table, got none"):
        _reproduce.get_deviation(made, "other")


@pytest.mark.slow
def test_accuracies_are_trained_again(untrained, small_task, tmp_path):
    from kas_research.bench1 import _pack, _reproduce, _tasks, _train
    from kas_research.protocol import Store

    row = _tasks.order(untrained, drawn=0)[0]
    store = Store(tmp_path / "store.jsonl")
    _train.train([row], store, tasks=["noise"], references={}, niceness=0)
    rows, references, about = _pack.pack(untrained, [store])
    packed = Table(rows, references, about)
    (check,) = _reproduce.check_accuracies(packed, _reproduce.draw(packed, 5, 0, lambda one: bool(one.trainings)))
    assert check.number == row.number and check.found == rows[row.number].trainings[0].test
    assert check.holds and str(check).endswith(": ok")
    assert not dataclasses.replace(check, found=check.known + 1.01 * check.tolerance).holds


# The command


def test_command(folder, capsys):
    assert _command.main(["--tables", str(folder), "check"]) == 0
    assert "4 operators, 3 with latencies" in capsys.readouterr().out
    assert _command.main(["--tables", str(folder), "show", "1"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("number 1\n") and '"layer": "64x56"' in output
    assert _command.main(["--tables", str(folder), "show", "4"]) == 1
    assert capsys.readouterr().err == "error: requires an operator from 0 to 3, got 4\n"
    assert _command.main(["show", "conv2d", "--symbol=k=k1"]) == 1
    assert "the budget 'flops'" in capsys.readouterr().out
    assert _command.main(["show", "conv1x1"]) == 0
    assert capsys.readouterr().out.startswith("number ")
    assert _command.main(["--tables", str(folder), "pack", "none.jsonl"]) == 1
    assert "requires a store of trainings or times in 'none.jsonl', got no file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        _command.main(["train", "--part=3/2"])
    assert "requires I/N with 1 <= I <= N, got '3/2'" in capsys.readouterr().err
    for arguments in (["time", "--threads=0"], ["train", "--processes=-1"]):
        with pytest.raises(SystemExit):
            _command.main(arguments)
        assert "requires an integer of at least 1, got '" in capsys.readouterr().err
