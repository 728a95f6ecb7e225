# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trainings whose steps are compiled by kas."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .._errors import Error, need

need("torch", "torch")

import torch
from torch import nn

import kas.torch

from .._function import BoundCall, Function
from .._module import Module, Operator
from .._sequence import OperatorSequence
from ._data import Data
from ._task_data import Part
from ._training import Recipe, Training, TrainingFailure


class UnsupportedNetworkError(ValueError):
    """The network cannot be trained by compiled steps; the message is the reason."""


@dataclass(frozen=True)
class Replacement:
    """What takes the place of layers of an exported network."""

    form: Operator | OperatorSequence
    sites: Sequence[kas.torch.Site]
    """Layers of one space."""
    binding: dict[str, int] = field(default_factory=dict)
    """Sizes before those of the layers."""


def _options(recipe: Recipe) -> str:
    """The recipe as options of `-kas-training-step`."""
    if recipe.optimizer == "adamw":
        optimizer = "optimizer=adamw"
    else:
        optimizer = f"momentum={recipe.momentum} nesterov={int(recipe.momentum > 0)}"
    # Of all parameters, as PyTorch's optimizers do it.
    decay = f"weight-decay={recipe.weight_decay} decay-all=true"
    return f"{optimizer} {decay} label-smoothing={recipe.label_smoothing} clip-norm={recipe.clip_gradients}"


def _check(model: nn.Module, data: Data, recipe: Recipe) -> None:
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0:
            raise UnsupportedNetworkError(f"requires a network without dropout, got one in '{name}'")
    for name, tensor in model.named_parameters():
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
            raise UnsupportedNetworkError(
                f"requires parameters of float32 on the CPU, got {tensor.dtype} on {tensor.device} in '{name}'"
            )
    if len(data.train[0]) < recipe.batch_size:
        raise UnsupportedNetworkError(
            f"requires at least one whole batch of {recipe.batch_size} examples, got {len(data.train[0])}"
        )


def substitute_sites(module: Module, replacements: Sequence[Replacement]) -> Module:
    """The exported network with operators or sequences in the place of its layers."""
    module.run("kas-extract")
    for replacement in replacements:
        _substitute(module, replacement)
    return module


def _substitute(module: Module, replacement: Replacement) -> None:
    operator, sites = replacement.form, replacement.sites
    # What differs between layers is a size of their data.
    same = {
        name: value
        for name, value in sites[0].binding.items()
        if all(s.binding.get(name, value) == value for s in sites)
    }
    same.update(replacement.binding)
    symbols = [name for name in operator.symbols[1] if name in same]
    binding = ",".join(f"{name}={same[name]}" for name in symbols)
    module._handle.substitute(str(operator.alone()), sites[0].space, [site.name for site in sites], binding)


def _names(network: nn.Module, arguments: Sequence[str]) -> dict[str, str]:
    """For each parameter and buffer of the network, the argument of the function that is it."""
    known = set(arguments)
    names: dict[str, str] = {}
    tensors = [*network.named_parameters(), *network.named_buffers()]
    for name, _ in tensors:
        if name.endswith("num_batches_tracked"):
            continue
        # A weight of an operator, which has the name of the layer's where it is as large.
        weight = re.fullmatch(r"(.*\.|)weight(\d+)", name)
        choices = [name] + ([f"{weight[1]}weight.{weight[2]}", f"{weight[1]}weight"] if weight else [])
        # The bias of a layer, which the last operator of a sequence in its place has.
        if bias := re.fullmatch(r"(.*\.|)\d+\.bias", name):
            choices.append(f"{bias[1]}bias")
        found = [choice for choice in choices if choice in known]
        if not found:
            raise UnsupportedNetworkError(f"requires '{name}' among the arguments of the exported network, got none")
        names[name] = found[0]
    if unknown := known - set(names.values()):
        raise UnsupportedNetworkError(f"the exported network has a parameter '{min(unknown)}' that the network has not")
    return names


class Program:
    """The functions of a network with its operators, for batches of one size: the same for all seeds."""

    def __init__(
        self,
        model: nn.Module,
        data: Data,
        recipe: Recipe,
        replacements: Sequence[Replacement],
        threads: int = 1,
    ):
        _check(model, data, recipe)
        self.evaluator: BoundCall | None = None
        """The one whose weights `forward` has packed."""
        try:
            exported = kas.torch.to_mlir(model, data.train[0][: recipe.batch_size], fold_batch_norms=False)
            module = exported.module
            if replacements:
                module = substitute_sites(module, replacements)
                module.run("kas-specialize,kas-rfactor{cost=training traffic=8}")
            step = module.clone().run(f"kas-training-step{{{_options(recipe)}}}")
            # Faster, and as accurate after a whole training (research/reports/training.md).
            step.run(f"kas-attach-cpu-target,kas-winograd{{threads={threads}}}")
            self.step: Function = step.compile("train_step", threads=threads)
            self.forward: Function = module.compile("forward", threads=threads, prepack_weights=True)
        except (Error, ValueError) as error:
            raise UnsupportedNetworkError(str(error)) from error


class NativeTraining(Training):
    """A training whose steps and evaluations are compiled.

    Everything else, such as the order of the examples, is that of `Training`: both give the same but for rounding.
    `network` gets the weights when the training is evaluated or saved. `program` is that of another training that
    differs in its seed alone: then nothing is compiled.
    """

    def __init__(
        self,
        network: nn.Module,
        data: Data,
        recipe: Recipe,
        seed: int,
        model: nn.Module,
        replacements: Sequence[Replacement],
        program: Program | None = None,
    ):
        super().__init__(network, data, recipe, seed, "cpu")
        self.program = program = program or Program(model, data, recipe, replacements)
        self._step_function, self._forward = program.step, program.forward
        arguments = self._step_function.arguments[3:]
        network_names = {name for name, _ in self._forward.arguments[1:]}
        self._names = _names(network, [name for name, _ in arguments if name in network_names])
        self._state = {name: torch.zeros(shape) for name, shape in arguments}
        self._spare = {name: torch.zeros(shape) for name, shape in arguments}
        inputs, targets = self._step_function.arguments[:2]
        self._batch = torch.zeros(inputs[1]), torch.zeros(targets[1]), torch.zeros(())
        """Inputs, targets and the learning rate of the step at hand."""
        self._outcome = torch.zeros(()), torch.zeros(())
        """Its loss, and how many outputs were right."""
        self._steps = self._bind_step(self._state, self._spare), self._bind_step(self._spare, self._state)
        """The next step, and the one after it."""
        self._evaluator: BoundCall | None = None
        """Of the weights at hand, once they are packed; it takes the inputs of `_batch`."""
        self._load_network()

    def _tensors(self) -> dict[str, torch.Tensor]:
        """The parameters and buffers by the names of arguments."""
        tensors = dict(self.network.named_parameters()) | dict(self.network.named_buffers())
        return {argument: tensors[name].detach() for name, argument in self._names.items()}

    def _bind_step(self, state: dict[str, torch.Tensor], new: dict[str, torch.Tensor]) -> BoundCall:
        return self._step_function.bind(*self._batch, *state.values(), out=[*self._outcome, *new.values()])

    def _load_network(self) -> None:
        self._evaluator = None
        for name, tensor in self._tensors().items():
            self._state[name].copy_(tensor.reshape(self._state[name].shape))

    def _store_network(self) -> None:
        for name, tensor in self._tensors().items():
            tensor.copy_(self._state[name].reshape(tensor.shape))

    def _step(self, inputs: Any, targets: Any, rate: float) -> float:
        for kept, value in zip(self._batch, (inputs, targets, torch.tensor(rate))):
            kept.copy_(value)
        self._evaluator = None
        try:
            self._steps[0]()
        except Error as error:
            raise TrainingFailure(str(error)) from error
        self._steps = self._steps[::-1]
        self._state, self._spare = self._spare, self._state
        return self._outcome[0].item()

    def _get_evaluator(self) -> BoundCall:
        # Another training with the same program may have packed its weights meanwhile.
        if self._evaluator is None or self.program.evaluator is not self._evaluator:
            tensors = [self._state[name] for name, _ in self._forward.arguments[1:]]
            self._evaluator = self._forward.bind(self._batch[0], *tensors)
            self._evaluator.prepack()
            self.program.evaluator = self._evaluator
        return self._evaluator

    def _outputs(self, inputs: Any) -> Any:
        evaluator, whole = self._get_evaluator(), self._batch[0]
        parts = []
        for part in inputs.split(len(whole)):
            whole[: len(part)].copy_(part)
            parts.append(evaluator()[: len(part)].clone())
        return torch.cat(parts)

    def evaluate_on(self, part: Part, split: str) -> dict[str, float]:
        """See `Training.evaluate_on`."""
        self._store_network()
        return super().evaluate_on(part, split)

    def _recalibrate(self) -> None:
        super()._recalibrate()
        self._load_network()

    def save(self, path: str | os.PathLike[str]) -> None:
        """See `Training.save`."""
        self._store_network()
        super().save(path)

    def _get_optimizer_state(self) -> dict[str, Any]:
        kept = set(self._names.values())
        return {name: tensor for name, tensor in self._state.items() if name not in kept}

    def _set_optimizer_state(self, state: dict[str, Any]) -> None:
        self._load_network()
        for name, tensor in state.items():
            self._state[name].copy_(tensor)
