# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted and measured losses and times of random choices."""

import importlib.util
import pathlib
import random

import pytest

from kas._accelerate._knapsack import Option, Place
from kas._accelerate._library import KEEP

PATH = pathlib.Path(__file__).resolve().parents[2] / "accelerate/choices.py"
_specification = importlib.util.spec_from_file_location("accelerate_choices", PATH)
choices = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(choices)


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


def test_rank_correlations():
    assert choices.correlate_ranks([1, 2, 3, 4], [10, 20, 30, 1000]) == pytest.approx(1)
    assert choices.correlate_ranks([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    # By hand: the ranks are 0.5, 0.5, 2 and 0, 2, 1.
    assert choices.correlate_ranks([1, 1, 2], [1, 3, 2]) == pytest.approx(0)


@pytest.mark.slow
def test_a_table_of_a_network(capsys):
    assert choices.main(["digits", "--count=4", "--minutes=0.5", "--precision=f32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 4 + 3 and "over 4 choices" in lines[-2]


def test_what_cannot_be_is_said(capsys):
    assert choices.main(["digits", "--count=1"]) == 2
    assert "--count must be at least 2, got 1" in capsys.readouterr().err
