# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a task of one's own, its data and its network require, and what they say where they got something else."""

import copy
import math

import pytest
import torch
from own_tasks import QUICK, SEARCH, Moments, load, make_data, make_network
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import kas
import kas.distributed
from kas import evaluate
from kas.evaluate import proxies
from kas.evaluate._workers import Job, Pool


class Wrong(Moments):
    """What `metrics` gives, or how the loss is."""

    def __init__(self, metrics=None, loss=None):
        self.given, self.given_loss = metrics, loss

    def metrics(self, outputs, targets):
        return super().metrics(outputs, targets) if self.given is None else self.given

    def loss(self, outputs, targets):
        return super().loss(outputs, targets) if self.given_loss is None else self.given_loss(outputs, targets)


@pytest.mark.parametrize(
    "task, error, message",
    [
        (Wrong({"error": "small"}), TypeError, r"the metric 'error' must be a number, got 'small'"),
        (Wrong({"error": torch.zeros(3)}), TypeError, r"the metric 'error' must be a number, got \(3,\) of float32"),
        (Wrong({"error": None}), TypeError, r"the metric 'error' must be a number, got None"),
        (Wrong(0.5), TypeError, r"the metrics of a task must be a dictionary of numbers, got float"),
        (Wrong({"loss": 1.0}), TypeError, r"must have other names than its loss, got 'loss'"),
        (
            Wrong({"mistake": 1.0}),
            ValueError,
            r"requires the metric 'error' among those of the task Wrong, got mistake",
        ),
        (Wrong({"error": 1, "a b": 1.0}), ValueError, r"the name of a metric must be an identifier .* got 'a b'"),
        (Wrong({"error": 1, "test_x": 1.0}), ValueError, r"without the prefixes test_ and final_, .* got 'test_x'"),
        (Wrong({"error": 1, "flops": 1.0}), ValueError, r"none of epochs, .*; got 'flops'"),
        (
            Wrong(None, lambda outputs, targets: outputs),
            TypeError,
            r"the metric 'loss' must be a number, got \(10, 2\)",
        ),
        (Wrong(None, lambda outputs, targets: 0.5), TypeError, r"a loss that is a tensor with one number, got float"),
        (
            Wrong(None, lambda outputs, targets: functional.cross_entropy(outputs, targets.flatten())),
            ValueError,
            r"the task 'Wrong' does not take outputs of shape \(10, 2\) of float32 for targets of shape \(10, 2\)",
        ),
        (evaluate.Task(), NotImplementedError, r"requires a method 'loss' of the task Task, got none"),
        (Moments, TypeError, r"the task must be an object of a class .* got the class Moments"),
        ("mse", TypeError, r"derives from kas.evaluate.Task, got str"),
    ],
)
def test_a_task_that_does_not_fit(task, error, message):
    with pytest.raises(error, match=message):
        evaluate.Trainer(make_network(), make_data(), QUICK, task=task)
    with pytest.raises(error, match=message):
        kas.search(make_network(), make_data(), 1, **{**SEARCH, "task": task})


def test_errors_before_anything_is_trained(tmp_path):
    file = tmp_path / "search.db"
    with pytest.raises(ValueError, match=r"made of error, mean, loss, epochs, .* latency_ms, got 'accuracy'"):
        kas.search(make_network(), make_data(), 1, **SEARCH, objective="-accuracy", database=file)
    with pytest.raises(ValueError, match=r"made of accuracy, loss, epochs, .* got 'error'"):
        kas.search(evaluate.DigitsNetwork(), "digits", 1, objective="error", database=file)
    with pytest.raises(ValueError, match=r"got 'acuracy' \(did you mean 'accuracy'\?\)"):
        kas.search(evaluate.DigitsNetwork(), "digits", 1, objective="-acuracy", database=file)
    assert not file.exists()
    with pytest.raises(ValueError, match=r"the network does not take a batch of shape \(10, 1, 4, 4\) of float32: "):
        evaluate.Trainer(nn.Linear(3, 2), make_data(), QUICK, task=Moments())
    for data in (make_data(), evaluate.digits()):
        with pytest.raises(ValueError, match=r"'native' requires classification .* the task 'Moments'"):
            evaluate.Trainer(make_network(), data, QUICK, task=Moments(), backend="native")
    odd = copy.copy(Moments())
    odd.metric = 3
    with pytest.raises(TypeError, match=r"requires the name of a metric and a bool .* got 3 and False"):
        evaluate.Trainer(make_network(), make_data(), QUICK, task=odd)
    trainer = evaluate.Trainer(make_network(), make_data(), QUICK, task=Moments())
    for use in (
        lambda: proxies.initialization_scores(trainer, kas.operator("conv2d")),
        lambda: proxies.make_teacher(trainer),
    ):
        with pytest.raises(ValueError, match=r"proxies require a trainer for classification, got the task 'Moments'"):
            use()


class Infinite(Moments):
    def metrics(self, outputs, targets):
        return {"error": math.inf}


class NoStep(Moments):
    def training_step(self, training, inputs, targets):
        return None


class NoOptimizer(Moments):
    def make_optimizer(self, network, recipe):
        return "adam"


def test_errors_in_training():
    with pytest.raises(evaluate.TrainingFailure, match=r"the validation error is inf after 2 epochs"):
        evaluate.Trainer(make_network(), make_data(), QUICK, task=Infinite()).evaluate(None)
    with pytest.raises(TypeError, match=r"requires a number of the training step of the task 'NoStep', got NoneType"):
        evaluate.Trainer(make_network(), make_data(), QUICK, task=NoStep()).evaluate(None)
    with pytest.raises(TypeError, match=r"requires a torch.optim.Optimizer of the task 'NoOptimizer', got str"):
        evaluate.Trainer(make_network(), make_data(), QUICK, task=NoOptimizer()).evaluate(None)
    training = evaluate.Trainer(make_network(), make_data(), QUICK, task=Moments()).start(None)
    with pytest.raises(TypeError, match=r"requires a loss that is a tensor with one number, got \(2,\) of float32"):
        training.descend(torch.zeros(2))
    with pytest.raises(ValueError, match=r"the network itself cannot be trained: TypeError: requires a number of the"):
        kas.search(make_network(), make_data(), 1, **{**SEARCH, "task": NoStep()})


def test_wrong_data():
    images, targets = make_data().train
    pair = images, targets
    with pytest.raises(ValueError, match=r"'test' must have at least one input .* \(30, 1, 4, 4\) .* shape \(3, 2\)"):
        evaluate.TaskData("x", pair, pair, (images, targets[:3]))
    with pytest.raises(ValueError, match=r"'train' must have at least one input"):
        evaluate.TaskData("x", (images[:0], targets[:0]), pair, pair)
    with pytest.raises(TypeError, match=r"'validation' must be a pair of tensors or a dataset .* got list"):
        evaluate.TaskData("x", pair, [1, 2, 3], pair)
    with pytest.raises(
        TypeError, match=r"'train' must be a pair of tensors or a dataset with len\(\) .* got generator"
    ):
        evaluate.TaskData("x", (one for one in pair), pair, pair)
    with pytest.raises(ValueError, match=r"'train' must have at least one example, got none"):
        evaluate.TaskData("x", TensorDataset(images[:0]), pair, pair)
    with pytest.raises(TypeError, match=r"the loader must be a function, got int"):
        evaluate.TaskData("x", pair, pair, pair, 3)

    def trainer(loader):
        return evaluate.Trainer(make_network(), evaluate.TaskData("x", pair, pair, pair, loader), QUICK, task=Moments())

    with pytest.raises(TypeError, match=r"requires batches that are pairs of inputs and targets, got \(30, 1, 4, 4\)"):
        trainer(lambda part, size, generator: [part[0]])
    with pytest.raises(ValueError, match=r"requires batches with a length of at least 1 of the loader, got generator"):
        trainer(lambda part, size, generator: (one for one in [part])).evaluate(None)

    class Lying(list):
        def __len__(self):
            return 5

    with pytest.raises(ValueError, match=r"as many batches of the loader as its length says, 5, got 1"):
        trainer(lambda part, size, generator: Lying([part])).evaluate(None)
    with pytest.raises(TypeError, match=r"requires batches that are pairs of inputs and targets, got .* and .* and "):
        evaluate.TaskData("x", TensorDataset(images, images, targets), pair, pair).example  # noqa: B018


@pytest.mark.parametrize("what", ["task", "data", "function"])
def test_what_other_processes_cannot_have(what):
    class Local(Moments):
        pass

    trainer = evaluate.Trainer(
        (lambda: make_network()) if what == "function" else make_network(),
        make_data((lambda *options: load(*options)) if what == "data" else None),
        QUICK,
        task=Local() if what == "task" else Moments(),
    )
    names = {"task": "the task", "data": "the data", "function": "the function that makes the network"}
    message = rf"workers of other processes require {names[what]} to be picklable, .*: .*local"
    with pytest.raises(TypeError, match=message):
        Pool(trainer, 1, start_method="spawn")
    with pytest.raises(TypeError, match=r"require an evaluator that can be pickled, .* got TrainJob"):
        kas.distributed.LocalPool(kas.distributed.TrainJob(trainer), 1)
    # Forks take it as it is.
    with Pool(trainer, 1) as pool:
        pool.submit(Job(0, None))
        done = []
        while not done:
            done = pool.wait(1)
        assert done[0].metrics["error"] > 0, done
