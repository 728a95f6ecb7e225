# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scripts on `kas accelerate`: predictions, other solvers, operators of the search."""

import importlib
import pathlib
import random
import sys
import types

import pytest

from kas._accelerate._knapsack import Option, Place, choose, find_front
from kas._accelerate._library import KEEP

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "accelerate"))
choices, libraries, operators, solvers = map(importlib.import_module, ("choices", "libraries", "operators", "solvers"))


def test_random_choices_are_choices():
    layers = [
        Place((Option(f"block.{n}", KEEP, 1, 0), *(Option(f"block.{n}", f"form-{m}", 1, 0) for m in range(3))))
        for n in range(2)
    ]
    block = Place((Option("block", "skip", 0, 1),), tuple(layers))
    network = Place((), (block, Place((Option("last", KEEP, 1, 0),))))
    generator = random.Random(0)
    drawn = {tuple((one.place, one.name) for one in choices.draw(network, 0.7, generator)) for _ in range(2000)}
    assert len(drawn) == 1 + 4 * 4
    assert {tuple(place for place, _ in one) for one in drawn} == {("block", "last"), ("block.0", "block.1", "last")}
    kept = {tuple(one.name for one in choices.draw(network, 0.0, generator)) for _ in range(50)}
    assert kept == {(KEEP, KEEP, KEEP)}


def test_what_replaces_one_thing_is_not_counted_with_what_replaces_more():
    rows = [choices.Row(1, loss, loss, 1.0, 2.0) for loss in (1.0, 2.0, 3.0)]
    rows += [choices.Row(2, loss, -loss, loss, loss) for loss in (1.5, 2.5)]
    lines = choices.make_table(rows, types.SimpleNamespace(base_ms=1.0, precision="f32")).splitlines()
    assert lines[-2].startswith("rank correlation of the loss: -1.000, of the time: 1.000, over 2 choices that replace")
    assert lines[-3].endswith("over 5 choices")


def test_rank_correlations():
    assert choices.correlate_ranks([1, 2, 3, 4], [10, 20, 30, 1000]) == pytest.approx(1)
    assert choices.correlate_ranks([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    # By hand: the ranks are 0.5, 0.5, 2 and 0, 2, 1.
    assert choices.correlate_ranks([1, 1, 2], [1, 3, 2]) == pytest.approx(0)


@pytest.mark.slow
def test_a_table_of_a_network(capsys):
    assert choices.main(["digits", "--count=4", "--minutes=0.5", "--precision=f32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 1 + 4 + 3 and any(line.endswith("over 4 choices") for line in lines)


def test_what_cannot_be_is_said(capsys):
    assert choices.main(["digits", "--count=1"]) == 2
    assert "--count must be at least 2, got 1" in capsys.readouterr().err


def make_place(generator, blocks):
    """A network of blocks with two layers each."""

    def make_layer(name):
        others = [Option(name, f"form-{n}", generator.random(), generator.random() ** 3) for n in range(4)]
        return Place((Option(name, KEEP, 1.0, 0.0), *others))

    parts = [
        Place((Option(f"b{n}", "skip", 0.0, 2 * generator.random()),), (make_layer(f"b{n}.0"), make_layer(f"b{n}.1")))
        for n in range(blocks)
    ]
    return Place((), (*parts, make_layer("last")))


@pytest.mark.parametrize("seed", range(10))
def test_other_solvers_make_choices_within_the_limit_that_are_no_better(seed):
    generator = random.Random(seed)
    place = make_place(generator, 4)
    fastest = find_front(place)[0].ms
    for limit in (1.1 * fastest + 0.1, 3.0, 6.0, 100.0):
        exact = choose(place, limit)
        greedy = solvers.choose_greedily(place, limit)
        evolved, count = solvers.evolve(place, limit, 0.03, seed)
        assert count > 10
        for other in (greedy, evolved):
            if other is not None:
                assert other.ms <= limit and other.loss >= exact.loss - 1e-12
                assert other == solvers.add_up(other.options)
        if limit == 100.0:
            assert greedy.loss == exact.loss == 0


def test_evolution_comes_to_the_exact_choice_of_a_small_network():
    place = make_place(random.Random(1), 1)
    exact = choose(place, 1.5)
    assert solvers.evolve(place, 1.5, 0.3, 0)[0].loss == pytest.approx(exact.loss)


def test_places_are_kept_and_compared(tmp_path, capsys):
    place = make_place(random.Random(0), 3)
    path = tmp_path / "places.json"
    libraries.write_places(place, path)
    assert libraries.read_places(path) == place
    assert solvers.main([str(path), "--budgets=3", "--efforts=1,2", "--seeds=2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 3 + 3 and "greedy finds the exact choice at" in lines[-2]


def test_the_front_without_operators_is_never_better():
    place = make_place(random.Random(2), 3)
    rows = operators.compare(place, {"form-0", "form-1"}, 6)
    assert all(row["loss"] <= row["loss_without"] for row in rows)
    assert any(row["loss"] < row["loss_without"] and row["operators"] for row in rows)
    described = {"form-0": {"named": None}, "form-1": {"named": "conv1x1"}}
    text = operators.make_table(rows, described)
    assert "2 operators in the library, 1 without a name" in text
    same = libraries.select(place, lambda option: True)
    assert same == place
