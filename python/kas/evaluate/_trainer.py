# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The evaluator that trains: from an operator to the accuracy of a network with it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping, Sequence

from .._errors import Error, need

need("torch", "torch")

import torch
from torch import nn

import kas.torch

from .._module import Binding, Module, Operator
from .._request import Request
from .._sequence import OperatorSequence
from ..torch._sites import LayerChoice
from ._data import Data
from ._data_sets import load_any_data
from ._probe import check_task, choose_task, make_network, probe
from ._task import Classification, NetworkFactory, Task, map_tensors
from ._task_data import TaskData
from ._training import Recipe, Training, TrainingFailure, initialize


def read_operator(text: str) -> Operator | OperatorSequence:
    """The one operator of a text, or its one sequence of operators."""
    module = Module(text, "<candidate>")
    if sequences := list(module.sequences.values()):
        if len(sequences) != 1:
            raise ValueError(f"requires one kas.sequence in the text of a candidate, got {len(sequences)}")
        return sequences[0]
    if len(module.operators) != 1:
        raise ValueError(f"requires one kas.operator in the text of a candidate, got {len(module.operators)}")
    return module[module.operators[0]]


def main_space(sites: kas.torch.Sites) -> str:
    """The search problem whose layers have the most FLOPs."""
    flops: dict[str, int] = {}
    for site in sites.sites.values():
        flops[site.space] = flops.get(site.space, 0) + site.flops
    return max(flops, key=lambda name: flops[name])


class Trainer:
    """Trains a network with an operator in place of some layers, and measures its accuracy.

    `model` is the network, `data` a `Data` or the name of one. The layers are those of `space` (a name of
    `kas.torch.extract`; without it, the one with the most FLOPs); `binding` gives symbols of operators other values
    than the layers do. All layers are initialized by the seed; with `inherit` those that stay keep the weights of
    `model`. `backend` is that of `kas.torch.KasModule`, or "native": steps and evaluations are compiled as a whole, for
    one thread of the CPU, which takes seconds and pays off for longer trainings; a network that cannot be compiled so
    (with dropout, or one that torch-mlir does not export) is a `TrainingFailure`.

    `task` is what is trained for, by default that of the data, else `Classification`; with another one the data may be
    a `TaskData`, and the metrics are those of the task. `model` may also be a function without arguments that makes the
    network: it is called for each training under the seed, and layers that stay begin as it makes them. `sites` are
    layers by their names or by a predicate, as for `kas.torch.extract`, or what that gave.

    Called with a `Request` (or an operator, or its text) it trains `seeds` times by the whole recipe and gives the
    means of `accuracy` and `loss` on the validation set, of `test_accuracy`, and `accuracy_deviation` over seeds,
    `epochs` and `train_seconds`. A failure (a loss that is NaN, memory or time that is not enough, an operator
    that does not fit) is a `TrainingFailure`. It can be pickled and sent to other processes, with its task, data and
    function.
    """

    def __init__(
        self,
        model: nn.Module | NetworkFactory,
        data: str | Data | TaskData = "digits",
        recipe: Recipe = Recipe(),
        *,
        task: Task | None = None,
        space: str | None = None,
        sites: kas.torch.Sites | LayerChoice | None = None,
        binding: Binding = None,
        seeds: int = 1,
        inherit: bool = False,
        backend: str = "pytorch",
        device: str = "cpu",
        time_limit: float | None = None,
    ):
        if not callable(model):
            raise TypeError(f"the model must be a torch.nn.Module, got {type(model).__name__}")
        if isinstance(data, str):
            data = load_any_data(data)
        if not isinstance(data, (Data, TaskData)):
            raise TypeError(
                f"the data must be a kas.evaluate.Data or the name of a data set, got {type(data).__name__}"
            )
        if not isinstance(recipe, Recipe):
            raise TypeError(f"the recipe must be a kas.evaluate.Recipe, got {type(recipe).__name__}")
        if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
            raise ValueError(f"the number of seeds must be a positive integer, got {seeds!r}")
        if time_limit is not None and not (isinstance(time_limit, (int, float)) and time_limit > 0):
            raise ValueError(f"the time limit must be a positive number of seconds, got {time_limit!r}")
        task = choose_task(task, data)
        check_task(task, data, backend)
        self.factory = None if isinstance(model, nn.Module) else model
        self.model = model if isinstance(model, nn.Module) else make_network(model, 0)
        self.data, self.recipe, self.task = data, recipe, task
        self.seeds, self.inherit, self.backend, self.device, self.time_limit = (
            seeds,
            inherit,
            backend,
            device,
            time_limit,
        )
        device_of_model = next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))
        example = map_tensors(lambda tensor: tensor.to(device_of_model), data.example)
        self.metrics = probe(self.model, data, task, example, recipe.batch_size)
        """The names of the metrics of the task."""
        self.binding = kas.torch.parse_binding(binding) if binding is not None else None
        if isinstance(sites, kas.torch.Sites):
            self.sites = sites
        else:
            self.sites = kas.torch.extract(self.model, example, sites=sites)
        self.space = space or main_space(self.sites)
        if self.space not in self.sites.spaces:
            raise ValueError(
                f"the network has no layers of the space '{self.space}', only of {', '.join(self.sites.spaces)}"
            )

    @property
    def test_metrics(self) -> list[str]:
        """The names of the metrics that are measured on the test set: those of the task but for its loss."""
        return [name for name in self.metrics if name != "loss" or self.task.metric == "loss"]

    @property
    def replaced(self) -> list[kas.torch.Site]:
        """The layers that candidates take the place of."""
        return [site for site in self.sites.sites.values() if site.space == self.space]

    def describe(self) -> dict[str, str]:
        """What the outcomes follow from, for the settings of a search database."""
        task = {} if type(self.task) is Classification else {"task": self.task.describe()}
        return {
            "evaluator": "train",
            "recipe": self.recipe.to_text(),
            "data": self.data.describe(),
            "network": f"{type(self.model).__name__} {sum(p.numel() for p in self.model.parameters())} parameters",
            "inherit": str(self.inherit),
            **task,
            **({} if self.factory is None else {"initialization": "of the network"}),
        }

    def network(self, operator: Operator | OperatorSequence | str | None, seed: int = 0) -> nn.Module:
        """The network with the operator, initialized; without an operator, the network itself."""
        import copy

        if isinstance(operator, str):
            operator = read_operator(operator)
        # Normalizations may be measured again by PyTorch, which any operator can be.
        backend = "pytorch" if self.backend == "native" else self.backend

        def put_in(model: nn.Module) -> nn.Module:
            if operator is None:
                return model
            return kas.torch.substitute(
                model, operator, self.sites, space=self.space, binding=self.binding, backend=backend
            )

        if self.factory is not None and not self.inherit:
            return make_network(self.factory, seed, put_in)
        network = copy.deepcopy(self.model) if operator is None else put_in(self.model)
        network.requires_grad_(True)
        initialize(network, seed, [site.name for site in self.replaced] if self.inherit else None)
        return network

    def start(self, operator: Operator | OperatorSequence | str | None, seed: int = 0) -> Training:
        """A training that has not begun."""
        if isinstance(operator, str):
            operator = read_operator(operator)
        try:
            network = self.network(operator, seed)
        except (Error, ValueError) as error:
            raise TrainingFailure(f"the operator does not fit: {error}") from error
        if self.backend != "native":
            return Training(network, self.data, self.recipe, seed, self.device, self.task)
        from ._native import NativeTraining, Replacement, UnsupportedNetworkError

        replacements = []
        if operator is not None:
            replacements.append(Replacement(operator, self.replaced, dict(self.binding or {})))
        assert isinstance(self.data, Data)
        try:
            return NativeTraining(network, self.data, self.recipe, seed, self.model, replacements)
        except UnsupportedNetworkError as error:
            raise TrainingFailure(f"the network cannot be trained by compiled steps: {error}") from error

    def train_once(
        self,
        operator: Operator | OperatorSequence | str | None,
        seed: int = 0,
        epochs: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        test: bool = False,
    ) -> tuple[dict[str, float], list[tuple[int, str, float]]]:
        """One training to the end of `epochs` (all): its metrics and its curve.

        Goes on from the file `checkpoint` where there is one, and leaves one there unless all epochs are done; what it
        passed before comes from its curve.
        """
        deadline = None if self.time_limit is None else time.monotonic() + self.time_limit
        training = self.start(operator, seed)
        if checkpoint is not None and os.path.exists(checkpoint):
            training.load(checkpoint)
            if epochs is not None and training.epoch > epochs and (known := training.known(epochs)):
                return known, [point for point in training.curve if point[0] <= epochs]
        training.advance(epochs or self.recipe.epochs, deadline)
        metrics = {**training.evaluate(), "epochs": training.epoch, "train_seconds": training.seconds}
        if test:
            tested = training.evaluate("test")
            metrics.update((f"test_{name}", tested[name]) for name in self.test_metrics)
        if checkpoint is not None and not training.is_done:
            training.save(checkpoint)
        return metrics, training.curve

    def evaluate(
        self, operator: Operator | OperatorSequence | str | None, seeds: Sequence[int] | None = None
    ) -> dict[str, float]:
        """Whole trainings with all seeds; see the class."""
        runs = [
            self.train_once(operator, seed, test=True)[0] for seed in (range(self.seeds) if seeds is None else seeds)
        ]
        return summarize(runs, self.deviating)

    @property
    def deviating(self) -> list[str]:
        """The names of the metrics whose deviation over seeds is of interest."""
        return [*self.test_metrics, *(f"test_{name}" for name in self.test_metrics)]

    def __call__(self, request: Request | Operator | str) -> dict[str, float]:
        """The metrics of whole trainings; see the class."""
        return self.evaluate(request.operator if isinstance(request, Request) else request)


def summarize(
    runs: Sequence[Mapping[str, float]], deviating: Sequence[str] = ("accuracy", "test_accuracy")
) -> dict[str, float]:
    """Means over seeds, and the sample standard deviations of some metrics where there are several."""
    result = {name: statistics.fmean(run[name] for run in runs) for name in runs[0]}
    if len(runs) > 1:
        for name in deviating:
            if name in runs[0]:
                result[f"{name}_deviation"] = statistics.stdev(run[name] for run in runs)
    return result
