# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""That a search with a budget of time ends in time: its plan, and whole searches on a virtual clock."""

import random
import types

import pytest

import kas
from kas import _model_search, evaluate
from kas._time_plan import TimePlan
from kas.evaluate._halving import Bracket, Halving
from kas.evaluate._workers import Done, Pool


def make_plan(**changes):
    return TimePlan(**{"policy": Halving(), "epochs": 20, "workers": 2, "final": 5, "final_seeds": 3} | changes)


def test_predictions():
    plan = make_plan()
    assert plan.predict(20) == 0
    plan.prior.append((20, 40.0))
    assert plan.predict(10) == pytest.approx(20)
    for epochs, seconds in ((1, 3.0), (2, 5.0), (14, 29.0)):
        plan.observe(epochs, seconds)
    assert [plan.predict(epochs) for epochs in (0, 1, 20)] == pytest.approx([0, 3, 41])
    # Five candidates, three seeds, two at a time.
    assert plan.predict_final(9) == pytest.approx(8 * 41) and plan.predict_final(1) == pytest.approx(2 * 41)
    # 9 jobs of an epoch, three of two, one of three, one of 14; or one candidate through all.
    work = 9 * 3 + 3 * 5 + 7 + 29
    assert plan.predict_brackets([], 9) == pytest.approx(max(work / 2, 3 + 5 + 7 + 29))
    bracket = Bracket(Halving(), {id: "" for id in range(9)})
    assert plan.predict_brackets([bracket]) == pytest.approx(plan.predict_brackets([], 9))


def test_noise_never_makes_an_epoch_cost_less_than_nothing():
    plan = make_plan()
    plan.observe(1, 9.0)
    plan.observe(3, 5.0)
    assert plan.predict(1) == plan.predict(20) == pytest.approx(7)


def test_sizes():
    plan = make_plan(workers=1)
    plan.observe(1, 1.0)
    assert plan.choose_size(1e6, [], 0) == 9
    assert plan.choose_size(32 + 60, [], 0) == 9
    # A bracket of fewer, in which as many go on.
    assert 1 <= plan.choose_size(32 + 60 - 5, [], 0) < 9
    assert plan.choose_size(20 + 60, [], 0) == 1
    assert plan.choose_size(20 + 60 - 1, [], 0) == 0


class Clock:
    """What takes the place of the module `time`."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


class VirtualPool(Pool):
    """Workers whose trainings take virtual time: `fixed` seconds and `epoch` for each epoch, more or less."""

    def __init__(self, clock, workers, fixed, epoch, epochs, seed):
        self.clock, self.fixed, self.epoch, self.epochs = clock, fixed, epoch, epochs
        self.random = random.Random(seed)
        self.running = []
        self.workers, self.done = workers, {}

    @property
    def idle(self):
        return self.workers - len(self.running)

    @property
    def busy(self):
        return len(self.running)

    def submit(self, job):
        end = job.epochs or self.epochs
        before = self.done.get(job.candidate, 0) if job.checkpoint else 0
        seconds = (self.fixed + self.epoch * (end - before)) * self.random.uniform(0.9, 1.1)
        self.running.append((self.clock.now + seconds, seconds, job, end))
        if job.checkpoint:
            self.done[job.candidate] = end

    def wait(self, timeout):
        first = min(end for end, *_ in self.running)
        self.clock.now = min(self.clock.now + timeout, max(first, self.clock.now))
        ended = [one for one in self.running if one[0] <= self.clock.now]
        self.running = [one for one in self.running if one[0] > self.clock.now]
        return [self.make_done(*one) for one in ended]

    def make_done(self, _, seconds, job, epochs):
        accuracy = self.random.uniform(0.5, 0.9)
        metrics = {"accuracy": accuracy, "loss": 1 - accuracy, "epochs": epochs, "train_seconds": self.epoch * epochs}
        if job.test:
            metrics["test_accuracy"] = accuracy
        return Done(job, metrics, [], None, seconds, seconds)

    def cancel(self):
        self.running = []
        return []

    def close(self):
        pass


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("budget", "fixed", "epoch", "epochs"), [(900, 1.0, 2.0, 12), (900, 2.0, 2.0, 20), (3600, 6.0, 5.0, 20)]
)
def test_ends_within_five_percent(monkeypatch, workers, budget, fixed, epoch, epochs):
    """As long as a training is short against the budget."""
    clock = Clock()
    monkeypatch.setattr(_model_search, "time", types.SimpleNamespace(monotonic=clock.monotonic))
    data = evaluate.digits(train=40, validation=40)
    pool = VirtualPool(clock, workers, fixed, epoch, epochs, seed=workers)
    outcome = kas.search(
        evaluate.DigitsNetwork(8), data, budget, recipe=evaluate.Recipe(epochs=epochs), algorithm="random", final=3,
        final_seeds=2, progress=False, pool=pool,
    )  # fmt: skip
    assert outcome.is_complete and len(outcome.finalists) == 3
    assert 0.95 * budget <= clock.now - 1000 <= 1.05 * budget, (clock.now - 1000, len(outcome.trained))


@pytest.mark.parametrize("name", ["latency", "acuracy", "final_accuracy"])
def test_objective_of_unknown_metrics(name):
    """Before anything is trained."""
    data = evaluate.digits(train=40, validation=40)
    with pytest.raises(ValueError, match=rf"the objective must be made of accuracy, .*, got '{name}'"):
        kas.search(evaluate.DigitsNetwork(8), data, 1000, objective=f"2*{name}-accuracy", progress=False)
