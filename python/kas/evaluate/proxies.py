# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Proxies: what can be computed about an operator before, or instead of, training a network with it.

None of the scores at initialization is a filter: in the measurements of research/reports/proxies.md their rank
correlation with the trained accuracy did not survive a change of the task. They are columns, and break ties.

>>> proxies.static_features(operator, space.bindings, space.multiplicities)
>>> proxies.initialization_scores(trainer, operator, seed=0)
>>> proxies.fit_error(trainer, operator, proxies.make_teacher(trainer), steps=25)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from .._errors import need

need("torch", "torch")

import numpy
import numpy.typing
import torch
from torch import nn
from torch.nn import functional

import kas.torch

from .._module import Operator
from ._data import Data
from ._task import Classification
from ._trainer import Trainer
from ._training import EVALUATION_BATCH, Training, seed_of

Scores: TypeAlias = dict[str, float]
Vector: TypeAlias = "numpy.typing.NDArray[numpy.float64]"

__all__ = [
    "Combination",
    "Teacher",
    "fit_error",
    "initialization_scores",
    "make_teacher",
    "rank_correlation",
    "static_features",
]

# From the operator alone


def _nest_macs(operator: Operator, binding: Mapping[str, int]) -> float:
    """Multiply-adds of one loop nest; nan where they do not fit."""
    text = operator.symbolic_cost.macs
    # The text is our own: a polynomial of the symbols.
    return math.nan if text is None else float(eval(text, {"__builtins__": {}}, dict(binding)))


def _reach(operator: Operator, binding: Mapping[str, int]) -> Scores:
    """Which elements of the data an element of the output is made of, for data [N, C, positions...].

    Weights of one and data of one element each show the pattern; it counts for operators that are linear in the data.
    """
    shapes = operator.shapes(binding)
    channels, positions = shapes.data[1], math.prod(shapes.data[2:])
    size = channels * positions
    batch = next(name for name, extent in zip(operator.sizes["data"], shapes.data))
    wide = {**binding, batch: size}
    module = kas.torch.KasModule(operator, wide, backend="pytorch")
    with torch.no_grad():
        for weight in module.weights:
            weight.fill_(1.0)
        output = module(torch.eye(size).reshape(size, *shapes.data[1:]))
    # By output element and data element.
    seen = (output.reshape(size, -1).t() != 0).float()
    by_part = seen.reshape(-1, channels, positions)
    result = {
        "points_seen": float(seen.sum(1).mean()),
        "channels_seen": float(by_part.amax(2).sum(1).mean()),
        "positions_seen": float(by_part.amax(1).sum(1).mean()),
        "data_used": float(seen.amax(0).mean()),
    }
    if len(seen) == size:
        twice = (seen @ seen > 0).float()
        result["points_seen_twice"] = float(twice.sum(1).mean())
        result["positions_seen_twice"] = float(twice.reshape(-1, channels, positions).amax(1).sum(1).mean())
    return result


def static_features(
    operator: Operator, bindings: Sequence[Mapping[str, int]], multiplicities: Sequence[int] | None = None
) -> Scores:
    """Features that need neither data nor a network.

    Summed over the layers: `flops` (of the best stages), `nest_flops` (as one loop nest), `params`, `bytes`. Of the
    operator: `weights`, `weight_outputs` (output dimensions that weights depend on, in all) and
    `weights_indexed_by_position` (0 or 1). At the layer with the least data, for data [N, C, ...]: the mean numbers of
    elements, channels and positions of the data that an element of the output sees (`points_seen`, `channels_seen`,
    `positions_seen`), those of two such layers in sequence (`..._twice`), and the share of the data that is used
    (`data_used`). Symbols of `bindings` that the operator does not have are ignored.
    """
    multiplicities = multiplicities or [1] * len(bindings)
    known = [*operator.symbols[0], *operator.symbols[1]]
    bindings = [{name: binding[name] for name in known} for binding in bindings]
    costs = [operator.cost(binding) for binding in bindings]

    def total(values: Iterable[float]) -> float:
        return float(sum(value * count for value, count in zip(values, multiplicities)))

    features = {
        "flops": total(cost.flops for cost in costs),
        "nest_flops": total(2 * _nest_macs(operator, binding) for binding in bindings),
        "params": total(cost.parameters for cost in costs),
        "bytes": total(cost.bytes for cost in costs),
        "weights": float(operator.num_weights),
        "weight_outputs": float(sum(map(len, operator.weight_outputs))),
        "weights_indexed_by_position": float(operator.weights_indexed_by_position),
    }
    sizes = operator.sizes
    if len(sizes["data"]) >= 2 and sizes["data"][:1] == sizes["output"][:1] and sizes["data"][0] in operator.symbols[0]:
        least = min(bindings, key=lambda binding: math.prod(operator.shapes(binding).data))
        features |= _reach(operator, {**least, sizes["data"][0]: 1})
    return features


# From the network at initialization


def _replaced_modules(network: nn.Module) -> list[kas.torch.KasModule]:
    return [module for module in network.modules() if isinstance(module, kas.torch.KasModule)]


def _gradient_scores(network: nn.Module, inputs: torch.Tensor, classes: torch.Tensor) -> Scores:
    modules = _replaced_modules(network)
    outputs: list[torch.Tensor] = []
    handles = [module.register_forward_hook(lambda _, __, output: outputs.append(output)) for module in modules]
    loss = functional.cross_entropy(network(inputs), classes)
    for handle in handles:
        handle.remove()
    weights = [weight for module in modules for weight in module.weights]
    tensors = [*weights, *outputs]
    found: tuple[torch.Tensor | None, ...] = torch.autograd.grad(loss, tensors, allow_unused=True)
    gradients = [torch.zeros_like(tensor) if g is None else g for tensor, g in zip(tensors, found)]
    of_weights, of_outputs = gradients[: len(weights)], gradients[len(weights) :]
    count = len(inputs)
    fisher = 0.0
    for output, gradient in zip(outputs, of_outputs):
        # By example and channel; the mean loss has divided the gradients by the number of examples.
        products = (output * gradient).flatten(2).sum(2) if output.dim() > 2 else output * gradient
        fisher += float((products.square().sum() * count / 2).item())
    return {
        "grad_norm": sum(gradient.norm().item() for gradient in of_weights),
        "snip": sum((gradient * weight).abs().sum().item() for gradient, weight in zip(of_weights, weights)),
        "fisher": fisher,
    }


def _naswot(network: nn.Module, inputs: torch.Tensor) -> float:
    """The pattern of what is positive after each normalization."""
    patterns: list[torch.Tensor] = []
    norms = [module for module in network.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]

    def keep(_: nn.Module, __: Any, output: torch.Tensor) -> None:
        patterns.append((output > 0).flatten(1).float())

    handles = [module.register_forward_hook(keep) for module in norms]
    with torch.no_grad():
        network(inputs)
    for handle in handles:
        handle.remove()
    if not patterns:
        return math.nan
    pattern = torch.cat(patterns, 1)
    kernel = (pattern @ pattern.t() + (1 - pattern) @ (1 - pattern).t()).double()
    return float(torch.linalg.slogdet(kernel)[1])


def _synflow(network: nn.Module, shape: Sequence[int]) -> float:
    weights = [weight for module in _replaced_modules(network) for weight in module.weights]
    norms = [module for module in network.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    handles = [norm.register_forward_hook(lambda _, inputs, __: inputs[0]) for norm in norms]
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.abs_()
    output = network(torch.ones(1, *shape)).sum()
    for handle in handles:
        handle.remove()
    gradients = torch.autograd.grad(output, weights, allow_unused=True)
    value = sum(float((g.double() * w.detach().double()).sum()) for g, w in zip(gradients, weights) if g is not None)
    return math.log(value + 1e-30)


def initialization_scores(trainer: Trainer, operator: Operator | str, seed: int = 0, examples: int = 100) -> Scores:
    """Scores of the network with the operator before any training: zero-cost proxies, more is taken as better.

    They are of the operator's weights, on the first `examples` training examples.

    * `grad_norm`: the norm of the loss's gradient, by weight, summed (Abdelfattah et al., "Zero-Cost Proxies for
      Lightweight NAS", ICLR 2021, section 3).
    * `snip`: |gradient * weight| (Lee et al., "SNIP", ICLR 2019, section 4).
    * `fisher`: squares of gradient * activation, summed over positions, by channel (Theis et al., "Faster gaze
      prediction with dense networks and Fisher pruning", 2018, section 2).
    * `synflow`: the logarithm of gradient * weight of the sum of the outputs at data of ones and absolute weights,
      without normalizations (Tanaka et al., "Pruning neural networks without any data", NeurIPS 2020, section 4).
    * `naswot`: the logarithm of the determinant of the kernel of activation patterns (Mellor et al., "Neural
      Architecture Search without Training", ICML 2021, section 3).
    """
    data = _get_classes(trainer)
    inputs, classes = (part[:examples] for part in data.train)
    network = trainer.network(operator, seed).train()
    scores = _gradient_scores(network, inputs, classes)
    scores["naswot"] = _naswot(network, inputs)
    scores["synflow"] = _synflow(network, data.input_shape)
    return scores


def _get_classes(trainer: Trainer) -> Data:
    """The data of a trainer for classification."""
    if type(trainer.task) is not Classification or not isinstance(trainer.data, Data):
        raise ValueError(f"proxies require a trainer for classification, got the task '{trainer.task.describe()}'")
    return trainer.data


# From the layers that it replaces


class Teacher(NamedTuple):
    """The inputs and outputs of the layers of a trained network, by the path of the layer."""

    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]
    """Each channel with mean 0 and variance 1: a normalization follows."""


def make_teacher(trainer: Trainer, seed: int = 100) -> Teacher:
    """Trains the network itself, and records its layers on the training set."""
    data = _get_classes(trainer)
    training: Training = trainer.start(None, seed)
    training.advance(trainer.recipe.epochs)
    network = training.network.eval()
    inputs: dict[str, torch.Tensor] = {}
    outputs: dict[str, torch.Tensor] = {}
    modules = dict(network.named_modules())
    handles = []
    for site in trainer.replaced:

        def record(_: nn.Module, data: tuple[torch.Tensor, ...], output: torch.Tensor, name: str = site.name) -> None:
            inputs[name], outputs[name] = data[0].detach().clone(), _standardize(output.detach())

        handles.append(modules[site.name].register_forward_hook(record))
    with torch.no_grad():
        network(data.train[0])
    for handle in handles:
        handle.remove()
    return Teacher(inputs, outputs)


def _standardize(output: torch.Tensor) -> torch.Tensor:
    dims = [0, *range(2, output.dim())]
    return (output - output.mean(dims, keepdim=True)) / output.std(dims, keepdim=True).clamp_min(1e-6)


def fit_error(
    trainer: Trainer, operator: Operator | str, teacher: Teacher, steps: int = 25, seed: int = 0, batch: int = 50
) -> float:
    """How badly the operator imitates the layers that it replaces after `steps` steps of least squares.

    The mean over the layers of the mean squared error in units of the variance: less is better.
    """
    network = trainer.network(operator, seed)
    modules = dict(network.named_modules())
    total = 0.0

    def imitate(module: nn.Module, data: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = module(data)
        dims = [0, *range(2, output.dim())]
        return (output - output.mean(dims, keepdim=True) - wanted).square().mean()

    for site in trainer.replaced:
        module, data, wanted = modules[site.name], teacher.inputs[site.name], teacher.outputs[site.name]
        optimizer = torch.optim.Adam(module.parameters(), lr=0.03)
        order = torch.Generator().manual_seed(seed_of(seed, site.name, "fit"))
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = 0.03 * 0.5 * (1 + math.cos(math.pi * step / steps))
            optimizer.zero_grad(set_to_none=True)
            chosen = torch.randperm(len(data), generator=order)[:batch]
            torch.autograd.backward(imitate(module, data[chosen], wanted[chosen]))
            optimizer.step()
        with torch.no_grad():
            total += float(imitate(module, data[:EVALUATION_BATCH], wanted[:EVALUATION_BATCH]))
    return total / len(trainer.replaced)


# A learned combination


def rank_correlation(a: Sequence[float] | Vector, b: Sequence[float] | Vector) -> float:
    """Spearman's: the correlation of the ranks, equal values sharing theirs; nan where all are equal."""
    first, second = (_ranks(numpy.asarray(values, dtype=float)) for values in (a, b))
    if first.std() == 0 or second.std() == 0:
        return math.nan
    return float(numpy.corrcoef(first, second)[0, 1])


def _ranks(values: Vector) -> Vector:
    _, inverse, counts = numpy.unique(values, return_inverse=True, return_counts=True)
    ends = numpy.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]


class Combination:
    """A linear combination of scores, learned from trained operators as they come in.

    Ridge regression on standardized logarithms (of scores that are positive; others as they are), with a penalty
    chosen by cross-validation. `rank_correlation` is Spearman's of predictions for operators that it was not fitted on
    with their accuracies; below `trusted_from` the combination `is_trusted` no more, and `predict` gives the mean.
    """

    PENALTIES = (0.1, 1.0, 10.0, 100.0)

    def __init__(self, trusted_from: float = 0.5, folds: int = 10, least: int = 10):
        if not -1 <= trusted_from <= 1 or folds < 2 or least < folds:
            raise ValueError("requires -1 <= trusted_from <= 1 and 2 <= folds <= least")
        self.trusted_from, self.folds, self.least = trusted_from, folds, least
        self.rank_correlation = math.nan
        self.num_examples = 0
        self._names: list[str] = []
        self._mean_accuracy = math.nan

    @property
    def is_trusted(self) -> bool:
        """The rank correlation reaches `trusted_from`."""
        return self.rank_correlation >= self.trusted_from

    def _matrix(self, rows: Sequence[Mapping[str, float]]) -> Vector:
        matrix = numpy.array([[row.get(name, math.nan) for name in self._names] for row in rows], dtype=float)
        logs = numpy.where(self._positive, numpy.log(numpy.clip(matrix, 1e-300, None)), matrix)
        return numpy.where(numpy.isfinite(logs), logs, self._fill)

    def fit(self, rows: Sequence[Mapping[str, float]], accuracies: Sequence[float]) -> Combination:
        """Learns from the scores and accuracies of trained operators. With fewer than `least` it stays untrusted."""
        if len(rows) != len(accuracies):
            raise ValueError(f"requires an accuracy for each row of scores, got {len(accuracies)} for {len(rows)}")
        self.num_examples = len(rows)
        target = numpy.asarray(accuracies, dtype=float)
        self._mean_accuracy = float(target.mean()) if len(rows) else math.nan
        self.rank_correlation = math.nan
        if len(rows) < self.least:
            return self
        self._names = sorted(set.intersection(*(set(row) for row in rows)))
        raw = numpy.array([[row[name] for name in self._names] for row in rows], dtype=float)
        self._positive = (numpy.nan_to_num(raw, nan=1.0) > 0).all(0)
        logs = numpy.where(self._positive, numpy.log(numpy.clip(raw, 1e-300, None)), raw)
        logs = numpy.where(numpy.isfinite(logs), logs, numpy.nan)
        self._fill = numpy.nan_to_num(numpy.nanmean(logs, 0)) if len(self._names) else numpy.zeros(0)
        matrix = self._matrix(rows)
        self._mean, self._scale = matrix.mean(0), matrix.std(0) + 1e-9
        matrix = (matrix - self._mean) / self._scale
        order = numpy.random.RandomState(0).permutation(len(rows))
        best = -math.inf
        for penalty in self.PENALTIES:
            predictions = numpy.empty(len(rows))
            for fold in range(self.folds):
                out = order[fold :: self.folds]
                kept = numpy.setdiff1d(order, out)
                weights, offset = _ridge(matrix[kept], target[kept], penalty)
                predictions[out] = matrix[out] @ weights + offset
            correlation = rank_correlation(predictions, target)
            if correlation > best:
                best = self.rank_correlation = correlation
                self.cross_validated = predictions
                self._weights, self._offset = _ridge(matrix, target, penalty)
        return self

    @property
    def weights(self) -> dict[str, float]:
        """Accuracy per standard deviation of each score."""
        return dict(zip(self._names, map(float, self._weights))) if math.isfinite(self.rank_correlation) else {}

    def predict(self, rows: Sequence[Mapping[str, float]], anyway: bool = False) -> Vector:
        """The accuracies that are expected; the mean for all while the combination is not trusted (unless `anyway`)."""
        if not (self.is_trusted or (anyway and math.isfinite(self.rank_correlation))):
            return numpy.full(len(rows), self._mean_accuracy)
        predictions: Vector = (self._matrix(rows) - self._mean) / self._scale @ self._weights + self._offset
        return predictions


def _ridge(matrix: Vector, target: Vector, penalty: float) -> tuple[Vector, float]:
    center, offset = matrix.mean(0), float(target.mean())
    shifted = matrix - center
    weights = numpy.linalg.solve(
        shifted.T @ shifted + penalty * numpy.eye(matrix.shape[1]), shifted.T @ (target - offset)
    )
    return weights, offset - float(center @ weights)
