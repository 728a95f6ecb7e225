# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""That a search with a budget of time ends in time: whole searches on a virtual clock."""

import random
import types

import pytest

import kas
from kas import _model_search, evaluate
from kas.evaluate._workers import Done, Pool


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
