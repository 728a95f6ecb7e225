# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of training by compiled programs and by PyTorch, and how far they are apart."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy
import torch
from torch import nn

import kas
import kas.torch


class Training(NamedTuple):
    """How a network is trained; the options of the pass say the same."""

    options: str
    learning_rate: float
    adamw: bool = False
    clip_norm: float = 0.0
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    epsilon: float = 1e-8


SGD = Training(
    "momentum=0.9 nesterov=1 weight-decay=0.01 label-smoothing=0.1", 0.01, weight_decay=0.01, label_smoothing=0.1
)
# With the usual epsilon, whatever is nothing but rounding in a gradient becomes a step of full size.
ADAMW = Training(
    "optimizer=adamw weight-decay=0.05 clip-norm=0.5 epsilon=1e-3",
    1e-3,
    adamw=True,
    clip_norm=0.5,
    weight_decay=0.05,
    epsilon=1e-3,
)


class Outcome(NamedTuple):
    """Losses and right answers of each step, and all parameters and statistics after the last one."""

    losses: list[float]
    correct: list[float]
    values: dict[str, numpy.ndarray]


def by_kas(
    module: kas.Module,
    tensors: Mapping[str, torch.Tensor],
    training: Training,
    batches: Sequence[tuple[torch.Tensor, torch.Tensor]],
) -> Outcome:
    """`tensors`: the arguments of `@forward` after the data."""
    function = module.run(f"kas-training-step{{{training.options}}}").compile("train_step", threads=1)
    values = {name: tensor.detach().numpy().astype(numpy.float32) for name, tensor in tensors.items()}
    for name, shape in function.arguments[3:]:
        values.setdefault(name, numpy.zeros(shape, numpy.float32))
    assert {name for name, _ in function.arguments[3:]} == set(values)
    losses, correct = [], []
    for data, labels in batches:
        given = {
            "input": data.numpy().astype(numpy.float32),
            "labels": labels.numpy().astype(numpy.float32),
            "learning_rate": numpy.array(training.learning_rate, numpy.float32),
        }
        results = function(*((given | values)[name] for name, _ in function.arguments))
        losses.append(float(results[0]))
        correct.append(float(results[1]))
        values |= dict(zip((name for name, _ in function.results[2:]), results[2:]))
    return Outcome(losses, correct, values)


def by_torch(
    network: nn.Module,
    training: Training,
    batches: Sequence[tuple[torch.Tensor, torch.Tensor]],
    dtype: torch.dtype = torch.float64,
) -> Outcome:
    network = copy.deepcopy(network).to(dtype).train()
    matrices = [parameter for parameter in network.parameters() if parameter.dim() >= 2]
    others = [parameter for parameter in network.parameters() if parameter.dim() < 2]
    groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    optimizer: torch.optim.Optimizer
    if training.adamw:
        optimizer = torch.optim.AdamW(
            groups, lr=training.learning_rate, weight_decay=training.weight_decay, eps=training.epsilon
        )
    else:
        optimizer = torch.optim.SGD(
            groups, lr=training.learning_rate, momentum=0.9, nesterov=True, weight_decay=training.weight_decay
        )
    losses, correct = [], []
    for data, labels in batches:
        optimizer.zero_grad()
        logits = network(data.to(dtype) if data.is_floating_point() else data)
        loss = nn.functional.cross_entropy(logits, labels, label_smoothing=training.label_smoothing)
        loss.backward()
        if training.clip_norm:
            torch.nn.utils.clip_grad_norm_(network.parameters(), training.clip_norm)
        optimizer.step()
        losses.append(loss.item())
        correct.append(float((logits.argmax(1) == labels).sum()))
    state = {
        name: value.numpy() for name, value in network.state_dict().items() if not name.endswith("num_batches_tracked")
    }
    return Outcome(losses, correct, state)


def get_error(actual: Mapping[str, numpy.ndarray], expected: Mapping[str, numpy.ndarray]) -> tuple[float, str]:
    """The largest difference of a tensor over its largest magnitude (at least a hundredth), and the tensor's name."""
    worst = (0.0, "")
    for name, value in expected.items():
        wanted, found = value, actual[name]
        assert wanted.size == found.size, name
        found = found.reshape(wanted.shape)
        if name.endswith("in_proj_bias"):
            # Softmax does not see a bias of the keys: its gradient is nothing but rounding.
            third = len(wanted) // 3
            wanted, found = (numpy.delete(array, numpy.s_[third : 2 * third]) for array in (wanted, found))
        error = numpy.abs(found - wanted).max() / max(numpy.abs(wanted).max(), 1e-2)
        worst = max(worst, (float(error), name))
    return worst


@torch.no_grad()
def _perturb(network: nn.Module, seed: int) -> nn.Module:
    """The network with parameters that differ by some units in the last place of single precision."""
    network = copy.deepcopy(network).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        parameter *= 1 + 2e-7 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return network


def get_condition(
    network: nn.Module,
    training: Training,
    batches: Sequence[tuple[torch.Tensor, torch.Tensor]],
    expected: Outcome,
) -> float:
    """How far PyTorch's own parameters are apart when it rounds otherwise.

    Where an element is next to the corner of a rectifier, rounding decides which way its gradient goes, and steps
    multiply that.
    """
    others = [by_torch(network, training, batches, torch.float32)]
    others += [by_torch(_perturb(network, seed), training, batches) for seed in range(2)]
    return max(get_error(other.values, expected.values)[0] for other in others)
