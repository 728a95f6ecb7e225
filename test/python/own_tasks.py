# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A task of one's own that is trained in milliseconds."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from kas import evaluate

QUICK = evaluate.Recipe(epochs=2, batch_size=10, recalibrate=False)


def noise(count, *shape, seed=0):
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


def make_data(loader=None, count=30):
    """Images, and their means and deviations."""
    parts = []
    for seed in range(3):
        images = noise(count, 1, 4, 4, seed=seed)
        parts.append((images, torch.stack([images.mean((1, 2, 3)), images.std((1, 2, 3))], 1)))
    return evaluate.TaskData("noise", *parts, loader)


def make_network():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.Flatten(), nn.Linear(128, 2)
    )


class Moments(evaluate.Task):
    metric = "error"

    def loss(self, outputs, targets):
        return functional.mse_loss(outputs, targets)

    def metrics(self, outputs, targets):
        return {"error": (outputs - targets).abs().mean(), "mean": float(outputs.mean())}


class Nearness(Moments):
    """The same, but more is better."""

    metric = "nearness"
    maximize = True

    def metrics(self, outputs, targets):
        return {"nearness": -(outputs - targets).abs().mean()}


def load(part, batch_size, generator):
    return DataLoader(TensorDataset(*part), batch_size, shuffle=generator is not None, generator=generator)


SEARCH = {
    "task": Moments(),
    "space": "conv2d",
    "recipe": QUICK,
    "limits": {"shift": 0},
    "algorithm": "random",
    "final_seeds": 1,
    "workers": 1,
    "progress": False,
}
