#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small network on scikit-learn's digits and records what one of its convolutions computes.

usage: record-activations.py FOLDER

Needs torch 2.13.0 (the wheel for CPUs) and scikit-learn 1.9.1. Writes FOLDER/inputs.npy and FOLDER/outputs.npy, float32
of shape [16, 8, 6, 6]: what goes into the second convolution (8 channels to 8, 3x3, of images of 6x6) for 16 test
images, and what comes out of it before its bias. `kas-bench search-table --activations=FOLDER` imitates it.
"""

import pathlib
import sys

import numpy
import torch
from sklearn.datasets import load_digits
from torch import nn

SAMPLES = 16


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3)  # 8x8 to 6x6
        self.inner = nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Conv2d(8, 16, 3, stride=2)
        self.classes = nn.Linear(64, 10)

    def forward(self, images):
        hidden = torch.relu(self.inner(torch.relu(self.first(images))))
        return self.classes(torch.relu(self.last(hidden)).flatten(1))


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    digits = load_digits()
    order = numpy.random.default_rng(0).permutation(len(digits.images))
    images = torch.tensor(digits.images[order, None] / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target[order])
    train, test = slice(0, 1400), slice(1400, None)
    network = Network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-2)
    for _ in range(40):
        for batch in torch.randperm(1400).split(50):
            loss = nn.functional.cross_entropy(network(images[train][batch]), labels[train][batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        right = (network(images[test]).argmax(1) == labels[test]).float().mean()
        inputs = torch.relu(network.first(images[test][:SAMPLES]))
        outputs = network.inner(inputs) - network.inner.bias[:, None, None]
    print(f"test accuracy {right:.3f}")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in (("inputs", inputs), ("outputs", outputs)):
        numpy.save(folder / f"{name}.npy", values.numpy().astype(numpy.float32))


if __name__ == "__main__":
    main()
