#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times training steps of kas and PyTorch (eager and compiled) in one run.

    training-peers.py                       all networks, one thread, batch 64
    training-peers.py --filter='^resnet8-'  some of them
    training-peers.py --batch=32 --size=28  other shapes
    training-peers.py --products            convolutions of kas without Winograd's algorithm
    training-peers.py --isa=avx2            as on a processor without AVX-512
    training-peers.py --memory              the peak of memory, too: each implementation in a process of its own

A step is forward, backward and SGD with Nesterov momentum and weight decay. The networks are residual ones as they
train on CIFAR, dense, with depthwise separable layers and in four groups. The implementations take turns until
`--seconds` are over; the least time of each counts, and memory is the growth of the largest resident set since the
packages were loaded. The loss of the first step is compared with PyTorch's.

Prints a line of JSON for each network: step_ms and images_per_second of each implementation, and ratio_to_best_peer
(above 1 kas is faster). It needs PyTorch and torch-mlir (`tools/python.sh`).
"""

import argparse
import copy
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy
import torch
from torch import nn

import kas
import kas.torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peerbench import isa
from peerbench.residual import make_residual

IMPLEMENTATIONS = ["kas", "eager", "compiled"]


NETWORKS = {
    "resnet8-dense": ("dense", 16, [1, 1, 1]),
    "resnet8-separable": ("separable", 16, [1, 1, 1]),
    "resnet8-groups": ("groups", 16, [1, 1, 1]),
    "resnet8-wide": ("dense", 32, [1, 1, 1]),
    "resnet18-dense": ("dense", 64, [2, 2, 2, 2]),
}
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.1, 0.9, 5e-4


def make_kas_step(network: nn.Module, images: torch.Tensor, labels: torch.Tensor, products: bool, cpu: str):
    exported = kas.torch.to_mlir(network, images, fold_batch_norms=False)
    options = f"momentum={MOMENTUM} nesterov=1 weight-decay={WEIGHT_DECAY}"
    passes = f"kas-training-step{{{options}}},kas-attach-cpu-target{{{f'cpu={cpu}' if cpu else ''}}}"
    if not products:
        passes += ",kas-winograd{threads=1}"
    step = exported.module.run(passes).compile("train_step", threads=1)
    values = {name: tensor.detach().numpy().copy() for name, tensor in exported.tensors.items()}
    arguments = [images.numpy(), labels.numpy().astype(numpy.float32), numpy.array(LEARNING_RATE, numpy.float32)]
    for name, shape in step.arguments[3:]:
        arguments.append(values.get(name, numpy.zeros(shape, numpy.float32)))
    return lambda: float(step(*arguments)[0])


def make_torch_step(network: nn.Module, images: torch.Tensor, labels: torch.Tensor, compiles: bool):
    network = copy.deepcopy(network).train()
    matrices = [parameter for parameter in network.parameters() if parameter.dim() >= 2]
    others = [parameter for parameter in network.parameters() if parameter.dim() < 2]
    optimizer = torch.optim.SGD(
        [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": others}],
        lr=LEARNING_RATE,
        momentum=MOMENTUM,
        nesterov=True,
    )
    forward = torch.compile(network) if compiles else network

    def step() -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(forward(images), labels)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def make_step(implementation: str, name: str, options: argparse.Namespace):
    torch.manual_seed(0)
    network = make_residual(*NETWORKS[name])
    images = torch.randn(options.batch, 3, options.size, options.size)
    labels = torch.randint(0, 10, (options.batch,))
    if implementation == "kas":
        return make_kas_step(network, images, labels, options.products, isa.CPUS[options.isa])
    return make_torch_step(network, images, labels, implementation == "compiled")


def get_peak() -> int:
    """Megabytes. What `getrusage` says begins with the memory of the process that started this one."""
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) // 1024


def measure_times(name: str, options: argparse.Namespace) -> dict:
    steps = {kind: make_step(kind, name, options) for kind in options.implementations}
    losses = {kind: step() for kind, step in steps.items()}
    for kind, loss in losses.items():
        if abs(loss - losses["eager"]) > 1e-4 * abs(losses["eager"]):
            raise SystemExit(f"training-peers.py: error: expected a loss of {losses['eager']}, got {loss} of {kind}")
    times = dict.fromkeys(steps, float("inf"))
    end, rounds = time.monotonic() + options.seconds, 0
    while rounds < 3 or time.monotonic() < end:
        for kind, step in steps.items():
            start = time.perf_counter()
            step()
            times[kind] = min(times[kind], time.perf_counter() - start)
        rounds += 1
    best = min(value for kind, value in times.items() if kind != "kas")
    return {
        "step_ms": {kind: round(value * 1e3, 3) for kind, value in times.items()},
        "images_per_second": {kind: round(options.batch / value, 1) for kind, value in times.items()},
        "ratio_to_best_peer": round(best / times["kas"], 3),
        "rounds": rounds,
    }


def measure_memory(name: str, options: argparse.Namespace) -> dict:
    """Megabytes of each implementation."""
    peaks = {}
    for kind in options.implementations:
        command = [sys.executable, __file__, f"--worker={kind}", f"--filter=^{name}$"]
        command += [f"--batch={options.batch}", f"--size={options.size}"]
        command += [f"--isa={options.isa}", *(["--products"] if options.products else [])]
        peaks[kind] = int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return {"peak_mb": peaks}


def run_worker(kind: str, name: str, options: argparse.Namespace) -> None:
    before = get_peak()
    step = make_step(kind, name, options)
    for _ in range(3):
        step()
    print(get_peak() - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="only networks whose name matches")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=32, help="height and width of the images")
    parser.add_argument("--seconds", type=float, default=20, help="for each network")
    parser.add_argument("--products", action="store_true", help="no Winograd")
    parser.add_argument("--memory", action="store_true", help="measure the peak of memory, too")
    parser.add_argument("--without-compiled", action="store_true", help="leave torch.compile out")
    parser.add_argument("--worker", choices=IMPLEMENTATIONS, help=argparse.SUPPRESS)
    isa.add_option(parser)
    options = parser.parse_args()
    options.implementations = IMPLEMENTATIONS[:2] if options.without_compiled else IMPLEMENTATIONS
    isa.restart_limited(options.isa)
    torch.set_num_threads(1)
    names = [name for name in NETWORKS if re.search(options.filter, name)]
    if not names:
        parser.error("expected networks that match --filter, got none")
    for name in names:
        if options.worker:
            run_worker(options.worker, name, options)
            continue
        result = {"suite": "training-steps", "network": name, "isa": options.isa, "batch": options.batch}
        result["size"] = options.size
        result["winograd"] = not options.products
        result.update(measure_times(name, options))
        if options.memory:
            result.update(measure_memory(name, options))
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
