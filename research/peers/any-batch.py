#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures functions for batches of any size beside those that were compiled for one size.

    any-batch.py > any-batch.jsonl                        eight networks, one thread
    any-batch.py --networks=resnet18 --sizes=1,5,8,64 --threads=2

A program for the Python of the build (`tools/python.sh`), with torchvision beside it for all networks but the small
ones (`small-dense`, `small-separable`). Each network is compiled once for batches of any size, made for the largest of
the sizes, and once for each size; both are called in turn. One line of JSON for each network: seconds to compile, the
largest difference of results over the largest value, the least milliseconds of each, and `any_to_fixed`, the least time
of the function for one size over that of the function for any (below 1 any size costs something). At the end the least
and the geometric mean of all ratios for each size.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import networks
import numpy
import torch
from torch import nn

import kas.torch
from kas_research.protocol._latency import describe_machine

NETWORKS = [
    "small-dense",
    "small-separable",
    "resnet18",
    "mobilenet_v3_large",
    "mnasnet1_0",
    "regnet_y_400mf",
    "squeezenet1_1",
    "vit_b_32",
]


def small(separable: bool) -> nn.Module:
    """A residual network for images of 28x28, as those that searches train."""

    def convolution(inputs: int, outputs: int) -> nn.Module:
        if not separable:
            return nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        return nn.Sequential(
            nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False),
            nn.Conv2d(inputs, outputs, 1, bias=False),
        )

    class Residual(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.body = nn.Sequential(
                convolution(width, width),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                convolution(width, width),
                nn.BatchNorm2d(width),
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x + self.body(x))

    layers: list[nn.Module] = [nn.Conv2d(1, 32, 3, padding=1)]
    for width in (32, 64, 128):
        layers += [Residual(width), nn.AvgPool2d(2), nn.Conv2d(width, 2 * width, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


def make_network(name: str, batch: int) -> tuple[nn.Module, torch.Tensor]:
    if name.startswith("small-"):
        torch.manual_seed(0)
        return small(name == "small-separable").eval(), torch.randn(batch, 1, 28, 28)
    return networks.make_network(name, batch)


class Compiled:
    """A compiled function with the weights that it has packed."""

    def __init__(self, exported: Any, threads: int, any_batch: bool):
        start = time.perf_counter()
        self.function = exported.module.compile("forward", threads=threads, prepack_weights=True, any_batch=any_batch)
        self.seconds = round(time.perf_counter() - start, 2)
        self.weights = [tensor.detach().numpy() for tensor in exported.tensors.values()]
        self.prepared = False

    def bind(self, data: numpy.ndarray) -> Any:
        bound = self.function.bind(data, *self.weights)
        if not self.prepared:
            bound.prepack()
            self.prepared = True
        bound()
        return bound


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    most = max(options.sizes)
    network, data = make_network(name, most)
    if not data.is_floating_point():
        raise SystemExit(f"expected networks on numbers, got '{name}' on tokens")
    exported = kas.torch.to_mlir(network, data)
    any_batch = Compiled(exported, options.threads, any_batch=True)
    record: dict[str, Any] = {
        "network": name,
        "threads": options.threads,
        "made_for": most,
        "compile_s": {"any": any_batch.seconds},
        "error": {},
        "any_ms": {},
        "fixed_ms": {},
        "any_to_fixed": {},
    }
    for size in options.sizes:
        part = data[:size].clone()
        fixed = Compiled(kas.torch.to_mlir(network, part), options.threads, any_batch=False)
        calls = {"any": any_batch.bind(part.numpy()), "fixed": fixed.bind(part.numpy())}
        results = {key: numpy.array(call.results) for key, call in calls.items()}
        scale = numpy.abs(results["fixed"]).max()
        record["error"][size] = float(f"{numpy.abs(results['any'] - results['fixed']).max() / scale:.2g}")
        record["compile_s"][size] = fixed.seconds
        least = dict.fromkeys(calls, float("inf"))
        end, rounds = time.monotonic() + options.seconds, 0
        while time.monotonic() < end or rounds < options.rounds:
            rounds += 1
            for key, call in calls.items():
                start = time.perf_counter_ns()
                call()
                least[key] = min(least[key], (time.perf_counter_ns() - start) / 1e6)
        for key, value in least.items():
            record[f"{key}_ms"][size] = round(value, 4)
        record["any_to_fixed"][size] = round(least["fixed"] / least["any"], 3)
    return record


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measures functions for batches of any size",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--networks", default=",".join(NETWORKS), help="separated by commas")
    parser.add_argument("--sizes", default="1,8,64", help="of batches, separated by commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4, help="for each network and size")
    parser.add_argument("--rounds", type=int, default=5, help="of both functions in turn, at least")
    options = parser.parse_args()
    options.networks = list(filter(None, options.networks.split(",")))
    sizes = list(filter(None, options.sizes.split(",")))
    if not sizes or not all(size.isdigit() and 0 < int(size) <= 4096 for size in sizes):
        parser.error(f"argument --sizes: expected numbers from 1 to 4096, got '{options.sizes}'")
    options.sizes = [int(size) for size in sizes]
    if max(options.sizes) < 2:
        parser.error(f"argument --sizes: expected one of at least 2, got '{options.sizes[0]}'")
    if not options.networks:
        parser.error("argument --networks: expected at least one name, got none")
    return options


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    torch.backends.mha.set_fastpath_enabled(False)
    records = []
    for name in options.networks:
        records.append(measure(name, options))
        print(json.dumps(records[-1]), flush=True)
    summary: dict[str, Any] = {"machine": describe_machine(), "networks": len(records), "sizes": {}}
    for size in options.sizes:
        ratios = [record["any_to_fixed"][size] for record in records]
        summary["sizes"][size] = {
            "geometric_mean": round(statistics.geometric_mean(ratios), 3),
            "least": min(ratios),
        }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
