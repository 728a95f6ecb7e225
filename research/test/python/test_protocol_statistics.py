# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas_research.protocol.statistics on numbers whose results are known."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

from kas_research.protocol import statistics
from kas_research.protocol.statistics import Deviation, Measured

DEVIATION = Deviation(0.3, 60)


def test_the_deviation_is_pooled_by_degrees_of_freedom():
    # Variances 2 (one degree) and 1 (two degrees): (2 + 2) / 3.
    assert statistics.pool([[1.0, 3.0], [0.0, 1.0, 2.0]]) == (pytest.approx(math.sqrt(4 / 3)), 3)


def test_there_is_no_deviation_without_two_seeds():
    assert math.isnan(statistics.pool([[1.0], [2.0], []]).value)
    point = Measured(10, 90, 1)
    assert statistics.compare(point, "dense", statistics.Level(80, 1), statistics.pool([[1.0]])) is None
    assert statistics.compare(point, "dense", statistics.Level(80, 1), statistics.pool([[1.0, 1.0]])) is None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_errors(value):
    with pytest.raises(ValueError, match="requires finite accuracies, got"):
        statistics.pool([[1.0, value]])
    with pytest.raises(ValueError, match="requires a finite accuracy, got"):
        Measured(1, value, 1)
    with pytest.raises(ValueError, match="requires a latency above 0, got"):
        Measured(value, 1, 1)
    with pytest.raises(ValueError, match="requires a latency above 0, got 0"):
        Measured(0, 1, 1)
    with pytest.raises(ValueError, match="requires at least one seed, got 0"):
        Measured(1, 1, 0)


def test_the_frontier_leaves_out_what_a_faster_point_is_as_good_as():
    points = [Measured(40, 89, 1), Measured(10, 85, 1), Measured(20, 88, 1), Measured(25, 87.5, 1), Measured(30, 88, 1)]
    assert [point.latency for point in statistics.get_frontier(points)] == [10, 20, 40]
    # Of two at the same latency the better one.
    assert statistics.get_frontier([Measured(10, 1, 1), Measured(10, 2, 1)]) == [Measured(10, 2, 1)]


def test_a_curve_is_linear_in_the_logarithm_of_the_latency():
    points = [Measured(10, 80, 4), Measured(40, 90, 2)]
    assert statistics.interpolate(points, 10) == (80, 0.25)
    assert statistics.interpolate(points, 20) == (pytest.approx(85), pytest.approx(0.25 / 4 + 0.25 / 2))
    assert statistics.interpolate(points, 40) == (90, 0.5)
    assert statistics.interpolate(points, 1000) == (90, 0.5)
    assert statistics.interpolate(points, 9.9) is None
    assert statistics.interpolate([], 10) is None
    assert statistics.interpolate(points[:1], 11) == (80, 0.25)


def test_a_curve_reaches_an_accuracy_at_a_latency():
    points = [Measured(10, 80, 4), Measured(40, 90, 2), Measured(30, 79, 2)]
    assert statistics.find_latency(points, 80) == pytest.approx(10)
    assert statistics.find_latency(points, 85) == pytest.approx(20)
    assert statistics.find_latency(points, 90) == pytest.approx(40)
    assert statistics.find_latency(points, 90.1) is None
    assert statistics.find_latency(points, 79.9) is None
    assert statistics.find_latency(points[:1], 80) == 10
    assert statistics.find_latency([], 80) is None


def test_the_envelope_is_the_best_curve_and_ends_with_the_slowest_baseline():
    curves = {"dense": [Measured(10, 80, 1), Measured(40, 90, 1)], "other": [Measured(20, 86, 5)]}
    assert statistics.get_envelope(curves, 10) == ("dense", (80, 1))
    assert statistics.get_envelope(curves, 20) == ("other", (86, 0.2))
    assert statistics.get_envelope(curves, 40)[0] == "dense"
    assert statistics.get_envelope(curves, 41) is None
    assert statistics.get_envelope(curves, 5) is None
    assert statistics.get_envelope({}, 5) is None


def test_a_difference_has_the_error_of_both_sides():
    found = statistics.compare(Measured(10, 90, 4), "dense", statistics.Level(89, 0.5), DEVIATION)
    assert found.difference == 1
    assert found.error == pytest.approx(0.3 * math.sqrt(0.75))
    assert found.ratio == pytest.approx(1 / (0.3 * math.sqrt(0.75)))
    # Student's distribution: 2.000 leaves 2.5 % above with 60 degrees of freedom, 12.706 with one.
    exact = statistics.compare(Measured(10, 2.0003, 1), "dense", statistics.Level(0, 0), Deviation(1, 60))
    assert exact.probability == pytest.approx(0.025, rel=1e-3)
    exact = statistics.compare(Measured(10, 12.706, 1), "dense", statistics.Level(0, 0), Deviation(1, 1))
    assert exact.probability == pytest.approx(0.025, rel=1e-3)


def test_holm_multiplies_by_the_number_of_those_that_are_left():
    assert statistics.correct([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert statistics.correct([0.6, 0.9]) == [1.0, 1.0]
    assert statistics.correct([]) == []
    for value in (math.nan, -0.1, 1.1):
        with pytest.raises(ValueError, match="requires probabilities from 0 to 1"):
            statistics.correct([value])


def curve(*means, seeds=10):
    return [Measured(10 * 2**place, mean, seeds, 16 * (place + 1)) for place, mean in enumerate(means)]


def test_one_width_is_no_win():
    baselines = {"dense": curve(85, 88, 89)}
    (one,) = statistics.decide({"found": curve(85, 90, 89)}, baselines, DEVIATION).values()
    assert [difference.ratio >= 2 for difference in one.differences] == [False, True, False]
    assert not one.is_above
    (two,) = statistics.decide({"found": curve(85, 90, 91)}, baselines, DEVIATION).values()
    assert two.is_above
    (single,) = statistics.decide({"found": curve(99)}, baselines, DEVIATION).values()
    assert single.probability == 1
    assert not single.is_above


def test_the_number_of_candidates_counts():
    baselines = {"dense": curve(85, 88, 89)}
    # 2.2 standard errors at two of two widths: p = 0.016.
    error = 0.3 * math.sqrt(0.2)
    good = curve(85 + 2.2 * error, 88 + 2.2 * error)
    assert statistics.decide({"good": good}, baselines, DEVIATION)["good"].is_above
    others = {f"other{index}": curve(80, 80) for index in range(5)}
    verdict = statistics.decide({"good": good, **others}, baselines, DEVIATION)["good"]
    assert verdict.probability == pytest.approx(6 * 0.0158, rel=0.02)
    assert not verdict.is_above


def test_nothing_is_above_without_baselines_or_deviation():
    found = {"found": curve(99, 99, 99)}
    assert not statistics.decide(found, {}, DEVIATION)["found"].is_above
    assert not statistics.decide(found, {"dense": curve(1, 2, 3)}, Deviation(math.nan, 0))["found"].is_above
    assert statistics.decide({}, {"dense": curve(1, 2, 3)}, DEVIATION) == {}


def test_the_control_must_be_clearly_below_dense():
    dense = curve(85, 88, 89)
    error = 0.3 * math.sqrt(0.2)
    assert statistics.measures_operators(curve(85 - 5.1 * error, 88 - 5.1 * error), dense, DEVIATION)[0]
    assert not statistics.measures_operators(curve(85 - 5.1 * error, 88 - 4.9 * error), dense, DEVIATION)[0]
    assert not statistics.measures_operators(curve(86, 89), dense, DEVIATION)[0]
    assert statistics.measures_operators([], dense, DEVIATION) is None
    assert statistics.measures_operators([Measured(1, 85, 10)], dense, DEVIATION) is None
    assert statistics.measures_operators(curve(80), dense, Deviation(math.nan, 0)) is None
