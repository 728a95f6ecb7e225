# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kas.search compares its candidates with: operators of the library, operators, sequences."""

import contextlib
import sqlite3

import pytest

import kas
from kas import evaluate

SEPARABLE = """
kas.operator @depthwise<N, Cin, H, W | k>(%n: N, %c: Cin, %h: H, %w: W) from [N, Cin, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %h, %i_d : H, k
  %y = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %x, %y) weight(%c_w, %i_w, %j_w)
}
kas.operator @pointwise<N, Cin, Cout, H, W>(%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.sequence @separable [@depthwise, @pointwise] between [normalize_relu]
"""

TURNED = """
kas.operator @turned<N, Cin, H, W>(%n: N, %c: Cin, %h: H, %w: W) from [N, H, W, Cin] {
  kas.yield data(%n, %h, %w, %c)
}
"""


def search(candidates=1, **options):
    return kas.search(
        evaluate.DigitsNetwork(8),
        evaluate.digits(train=40, validation=40),
        kas.Budget(candidates=candidates),
        **{
            "recipe": evaluate.Recipe(epochs=1, batch_size=20),
            "limits": {"shift": 0, "weights": 1, "sees": None, "reaches": None},
            "algorithm": "random",
            "workers": 1,
            "final": 0,
            "final_seeds": 1,
            "progress": False,
            **options,
        },
    )


def read(path, query):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_baselines_are_trained_and_kept(tmp_path):
    database = tmp_path / "a.db"
    sequence = kas.parse(SEPARABLE).sequences["separable"]
    conv = kas.operator("conv2d")
    baselines = {"kas.conv2d_depthwise_separable": "conv2d_depthwise_separable", "mine": conv, "staged": sequence}
    outcome = search(database=database, baselines=baselines, latency=True)
    assert list(outcome.baselines) == list(baselines)
    dense = outcome.baselines["mine"]
    assert dense["flops_ratio"] == 1 and 0 <= dense["accuracy"] <= 1 and dense["latency_ms"] > 0
    linear, staged = outcome.baselines["kas.conv2d_depthwise_separable"], outcome.baselines["staged"]
    assert linear["flops_ratio"] < 0.5 and linear["params"] == staged["params"] < dense["params"]
    assert "latency_ms" not in staged
    # They are not among the candidates.
    assert len(outcome.trained) == 1 and len(read(database, "SELECT * FROM candidate")) == 1
    rows = read(database, "SELECT id, name, operator FROM baseline ORDER BY id DESC")
    assert [row[:2] for row in rows] == [(-2, "kas.conv2d_depthwise_separable"), (-3, "mine"), (-4, "staged")]
    assert "kas.sequence @separable" in rows[2][2]

    # The same call trains nothing again; another baseline is trained then.
    curves = read(database, "SELECT * FROM training ORDER BY candidate, seed, epoch, name")
    again = search(database=database, baselines=baselines, latency=True)
    assert again.baselines == outcome.baselines
    assert read(database, "SELECT * FROM training ORDER BY candidate, seed, epoch, name") == curves
    more = search(database=database, baselines=["conv2d"])
    assert len(more.baselines) == 1
    assert read(database, "SELECT min(id) FROM baseline") == [(-5,)]
    with pytest.raises(ValueError, match="the database has another baseline 'mine'"):
        search(database=database, baselines={"mine": "conv2d_depthwise_separable"})


def test_the_candidates_are_the_same():
    plain, compared = search(2), search(2, baselines=["conv2d"])
    assert [one.candidate.key for one in plain.trained] == [one.candidate.key for one in compared.trained]
    assert [one.metrics["accuracy"] for one in plain.trained] == [one.metrics["accuracy"] for one in compared.trained]
    assert plain.baselines == {} and plain.dense == compared.dense


def test_a_baseline_that_cannot_be_trained(capsys):
    """One whose shapes no layer has is left out, which is said; the search goes on."""
    outcome = search(baselines={"turned": kas.parse(TURNED)["turned"]}, progress="lines")
    assert len(outcome.trained) == 1 and outcome.baselines == {}
    assert "the baseline 'turned' cannot be trained: the operator does not fit" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("baselines", "error", "text"),
    [
        (["none"], ValueError, "requires the name of an operator of the library .*, got 'none'"),
        (["conv2d", "kas.conv2d"], ValueError, "requires baselines of different names, got 'kas.conv2d' twice"),
        ("conv2d", TypeError, "'baselines' must be a list or a dictionary by name, got str"),
        ([3], TypeError, "a baseline must be the name of an operator of the library, .*, got int"),
        (["bottleneck"], ValueError, "'kas.bottleneck' does not fit the layers: the space has no value for r"),
    ],
)
def test_bad_input(baselines, error, text):
    with pytest.raises(error, match=text):
        search(baselines=baselines)
