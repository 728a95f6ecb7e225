# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plan of the trainings of `kas.accelerate`: which networks are trained, for how long, with how many seeds."""

import types

import pytest
from torch import nn

from kas._accelerate import _contest, _problem, _run, _statistics
from kas._accelerate._knapsack import Choice
from kas.evaluate import Classification, Task


class Regression(Task):
    metric = "error"
    maximize = False


@pytest.mark.parametrize(
    ("task", "options", "limit"),
    [
        (Classification(), {"max_drop": 0.0}, 0.05),
        (Classification(), {"max_drop": 0.5}, 0.15),
        (Classification(), {"max_drop": 50}, 0.5),
        (Classification(), {"target": "2x"}, 0.5),
        (Regression(), {"max_drop": 0.5}, 1.0),
    ],
)
def test_more_may_be_lost_before_training_where_more_may_be_lost_after_it(task, options, limit):
    problem = types.SimpleNamespace(task=task, options=_problem.Options(**options))
    assert _run.get_loss_limit(problem) == pytest.approx(limit)


@pytest.mark.parametrize(
    ("target_ms", "losses", "first"),
    [
        (None, (0.14, 0.08, 0.02, 0.001), (0.08, 0.02)),
        (None, (0.001, 0.0005), (0.001, 0.0005)),
        (1.0, (0.14, 0.02, 0.001), (0.14, 0.02, 0.001)),
    ],
)
def test_training_begins_with_what_loses_about_as_much_as_may_be(target_ms, losses, first):
    run = types.SimpleNamespace(useful=[Choice(1.0, loss, ()) for loss in losses], target_ms=target_ms)
    assert [one.loss for one in _run._Run._list_first(run, 0.15)] == list(first)


@pytest.mark.parametrize(
    ("drops", "expected"),
    [
        # Between the slowest that does not hold the limit and the fastest that does.
        ((3.0, 0.2), (2.0, 3.0)),
        # Slower than all that do not hold it, faster than all that do.
        ((3.0, 2.0), (5.0, 6.0)),
        ((0.1, 0.2), ()),
        # What may come to the limit does not hold it yet.
        ((0.55, 0.2), (2.0, 3.0)),
        ((3.0, 0.55), (2.0, 3.0, 5.0)),
    ],
)
def test_more_are_taken_near_the_limit(drops, expected):
    run = make_run(100, [{}, {}])
    run.useful = [Choice(float(ms), 1.0 / ms, ()) for ms in (1, 2, 3, 4, 5, 6)]
    run.library = types.SimpleNamespace(predict_ms=lambda choice: choice.ms)
    for one, ms, drop in zip(run.contenders, (1.0, 4.0), drops):
        one.predicted_ms, one.predicted_loss, one.drop = ms, 1.0 / ms, _statistics.Drop(drop, 0.1)
    assert tuple(one.ms for one in run._choose_next()) == expected


def test_more_are_not_next_to_those_that_were_trained():
    run = make_run(100, [{}, {}])
    run.useful = [Choice(2.0 ** (number / 16), 1.0 - number / 64, ()) for number in range(33)]
    run.library = types.SimpleNamespace(predict_ms=lambda choice: choice.ms)
    for one, choice, drop in zip(run.contenders, (run.useful[0], run.useful[-1]), (3.0, 0.2)):
        one.predicted_ms, one.predicted_loss, one.drop = choice.ms, choice.loss, _statistics.Drop(drop, 0.1)
    for run.second in (1, 2, 3):
        times = [one.ms for one in run._choose_next()]
        assert len(times) == run.second and all(1.3 < ms < 3.1 for ms in times)


# ---- The plan of trainings


class FakeTrainings:
    """Trainings that take a second for each epoch."""

    steps_of_epoch, drop_seconds = 100, 0.1

    def __init__(self):
        self.jobs = []

    def predict_seconds(self, jobs):
        return sum(job.epochs for job in jobs)

    def run(self, jobs, phase, seconds):
        self.jobs.append([(job.one.name, job.seed, job.epochs) for job in jobs])
        return [(job.one.network, _statistics.Drop(job.one.drops[job.seed], 0.1)) for job in jobs]

    def take(self, jobs, results):
        pass


def make_run(left, drops):
    """A run with so many seconds left; `drops` has those of each network by the seed."""

    def make(name, kind, number, own):
        one = _contest.Contender(name, kind, nn.Identity())
        one.ms, one.step_seconds, one.drop, one.drops = 1.0 + number, 1.0, _statistics.Drop(0.0, 0.1), own
        return one

    names = [f"front-{number}" for number in range(len(drops))]
    contenders = [make(name, "ours", number, own) for number, (name, own) in enumerate(zip(names, drops))]
    run = _run._Run.__new__(_run._Run)
    run.options = _problem.Options(seed=0)
    run.contenders, run.baselines = contenders, [make("narrower", "narrower", 9, {0: 0.0})]
    run.second, run.kept, run.seeds, run.target_ms, run.add_seconds = 3, 2, 2, None, 0.0
    run.winner, run.final, run.report_seconds = None, [], 0.0
    reporter = types.SimpleNamespace(message=lambda text: None)
    run.problem = types.SimpleNamespace(
        clock=types.SimpleNamespace(left=left, total=0.0),
        reporter=reporter,
        dense_ms=1.0,
        precision="f32",
        task=Classification(),
        store=types.SimpleNamespace(remember=lambda step, make: make()),
    )
    run.options = _problem.Options()
    run.model_in = {"f32": None, "int8": None}
    return run


def test_all_trainings_fit_into_the_time():
    run, trainings = make_run(100, [{}, {}, {}, {}]), FakeTrainings()
    epochs = run._plan(trainings)
    # Four short ones and three that are added, two whole ones and one again, the baseline.
    seconds = epochs * (0.2 * 7 + 0.8 * 3 + 1) + 0.1 * (7 + 4)
    assert seconds == pytest.approx(100 - _run.FILES)


@pytest.mark.parametrize(
    ("drops", "winner", "seeds"),
    [
        ([{1000: 0.3, 1001: 0.4}, {1000: 0.1}], "front-0", 2),
        ([{1000: 0.9}, {1000: 0.1, 1001: 0.2}], "front-1", 2),
        # The second seed does not hold the limit, and another network does.
        ([{1000: 0.4, 1001: 0.9}, {1000: 0.1}], "front-1", 1),
    ],
)
def test_the_one_that_is_taken_has_a_second_seed(drops, winner, seeds):
    run, trainings = make_run(100, drops), FakeTrainings()
    run._finish_trainings(trainings, run.contenders, 1.0)
    assert run.winner.name == winner and len(run.final) == seeds
    first, second = trainings.jobs
    assert [name for name, _, _ in first] == ["front-0", "front-1"]
    assert [name for name, _, _ in second][-1] == "narrower" and len(second) == 2
    # Baselines learn as long in all.
    assert second[-1][2] == pytest.approx(1.0 + first[0][2])
