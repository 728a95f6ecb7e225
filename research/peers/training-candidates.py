#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures how many candidates are trained in an hour of CPU time: by the evaluator `training`, and by PyTorch.

    training-candidates.py                       12 candidates, 10 000 images, 12 epochs, rungs 1, 3 and 6
    training-candidates.py --candidates=30       more

`kas-opt` searches operators for the 3x3 layers of a ResNet-8 on Fashion-MNIST and trains them in compiled steps, with
successive halving. Then the same candidates are trained by `kas.evaluate.Trainer(backend="pytorch")`, each for the
epochs that it had there. CPU seconds of processes and their children count, compilation included.

Prints a line of JSON for each of both and one with the ratio. It needs PyTorch (`tools/python.sh`), and `kas-opt` and
`kas-search-db` in PATH or KAS_BIN.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import kas
import kas.evaluate
import kas.torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peerbench.fashionmnist import make_network, read_part

BATCH, VALIDATION, LEARNING_RATE = 64, 5000, 0.1


def get_cpu_seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def search(network: torch.nn.Module, options: argparse.Namespace, folder: Path) -> list[dict]:
    """The candidates of a search that trains them."""
    exported = kas.torch.to_mlir(network, torch.zeros(BATCH, 1, 28, 28), fold_batch_norms=False)
    (folder / "network.mlir").write_text(str(exported.module))
    binary = Path(os.environ.get("KAS_BIN", ""))
    subprocess.run(
        [binary / "kas-opt", folder / "network.mlir", "-kas-extract", "-o", folder / "sites.mlir"], check=True
    )
    training = f"--data=fashion-mnist --limit={options.limit} --validation={VALIDATION} --epochs={options.epochs}"
    training += f" --learning-rate={LEARNING_RATE} --nesterov --weight-decay=5e-4 --augment=flip --test=none"
    text = f"space=@conv2d seed=1 evaluations={options.candidates} evaluators=flops,training objective=-accuracy"
    text += f" rungs=1,3,6 database={folder / 'found.db'} training='{training}'"
    command = [binary / "kas-opt", folder / "sites.mlir", f"-kas-search={text}", "-o", folder / "found.mlir"]
    subprocess.run(command, check=True)
    listing = [binary / "kas-search-db", "list", "--json", folder / "found.db"]
    lines = subprocess.run(listing, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [candidate for candidate in map(json.loads, lines) if candidate["state"] == "evaluated"]


def train(network: torch.nn.Module, train: tuple, test: tuple, candidates: list[dict], options: argparse.Namespace):
    """Each candidate by PyTorch, for the epochs that it had."""
    mean, deviation = train[0][: options.limit].mean(), train[0][: options.limit].std()

    def take(part: tuple, begin: int, end: int) -> tuple:
        return (part[0][begin:end] - mean) / deviation, part[1][begin:end]

    parts = take(train, 0, options.limit), take(train, 60000 - VALIDATION, 60000), take(test, 0, 10000)
    data = kas.evaluate.Data("fashion-mnist", *parts, 10)
    recipe = kas.evaluate.Recipe(options.epochs, BATCH, "sgd", LEARNING_RATE, weight_decay=5e-4, recalibrate=False)
    trainer = kas.evaluate.Trainer(network, data, recipe, space="conv2d")
    for candidate in candidates:
        metrics, _ = trainer.train_once(candidate["operator"], epochs=int(candidate["metrics"]["epochs"]))
        print(f"{metrics['accuracy']:.4f} by PyTorch, {candidate['metrics']['accuracy']:.4f} by kas", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=12)
    parser.add_argument("--limit", type=int, default=10000, help="images to train with")
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()
    if options.candidates < 1 or options.epochs < 1 or not BATCH <= options.limit <= 60000 - VALIDATION:
        parser.error(f"requires 1 <= candidates, 1 <= epochs and {BATCH} <= limit <= {60000 - VALIDATION}")
    torch.set_num_threads(1)
    network, train_part, test_part = make_network(0), read_part("train"), read_part("t10k")
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        start = get_cpu_seconds(resource.RUSAGE_CHILDREN)
        candidates = search(network, options, Path(folder))
        seconds["kas"] = get_cpu_seconds(resource.RUSAGE_CHILDREN) - start
    start = get_cpu_seconds(resource.RUSAGE_SELF)
    train(network, train_part, test_part, candidates, options)
    seconds["torch"] = get_cpu_seconds(resource.RUSAGE_SELF) - start
    epochs = sum(int(candidate["metrics"]["epochs"]) for candidate in candidates)
    for by, spent in seconds.items():
        record = {"by": by, "candidates": len(candidates), "epochs": epochs, "cpu_seconds": round(spent, 1)}
        record["candidates_per_cpu_hour"] = round(len(candidates) / spent * 3600, 1)
        print(json.dumps(record), flush=True)
    print(json.dumps({"ratio": round(seconds["torch"] / seconds["kas"], 2)}), flush=True)


if __name__ == "__main__":
    main()
