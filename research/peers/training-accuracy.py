#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the accuracy of whole trainings by `kas-train` with that of PyTorch's.

    training-accuracy.py --out=accuracy.jsonl                  five seeds, 20 000 images, 6 epochs
    training-accuracy.py --out=accuracy.jsonl --seeds=10       five more: what is in the file is not trained again
    training-accuracy.py --out=accuracy.jsonl --products       besides, `kas-train --winograd=false`

A ResNet-8 on Fashion-MNIST (Debian's package dataset-fashion-mnist): SGD with Nesterov momentum, weight decay of
matrices, a cosine, images that are flipped at random. Of a seed both begin with the same parameters; the order of the
examples and what is flipped are each one's own. Both train with the same examples and normalize them alike.

Prints a line of JSON for each training (accuracy on the validation and the test set, seconds), then one for each other
trainer with the means, the difference (kas less the other) and its standard error. It needs PyTorch and
torch-mlir (`tools/python.sh`), and `kas-train` in PATH or KAS_BIN.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import torch
from torch import nn

import kas.torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peerbench.fashionmnist import make_network, read_part

BATCH, LEARNING_RATE, MOMENTUM, WEIGHT_DECAY, VALIDATION = 64, 0.1, 0.9, 5e-4, 5000


def train_kas(seed: int, options: argparse.Namespace, folder: Path, winograd: bool = True) -> dict:
    network = make_network(seed)
    exported = kas.torch.to_mlir(network, torch.zeros(BATCH, 1, 28, 28), fold_batch_norms=False)
    (folder / "network.mlir").write_text(str(exported.module))
    numpy.savez(folder / "weights.npz", **{name: value.detach().numpy() for name, value in exported.tensors.items()})
    command = [str(Path(os.environ.get("KAS_BIN", "")) / "kas-train"), str(folder / "network.mlir"), "--json"]
    command += ["--data=fashion-mnist", f"--validation={VALIDATION}", f"--limit={options.limit}"]
    command += [f"--weights={folder / 'weights.npz'}", f"--seed={seed}", f"--epochs={options.epochs}"]
    command += [
        f"--learning-rate={LEARNING_RATE}",
        f"--momentum={MOMENTUM}",
        "--nesterov",
        f"--weight-decay={WEIGHT_DECAY}",
    ]
    command.append(f"--winograd={winograd}".lower())
    output = subprocess.run([*command, "--augment=flip"], check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines()]
    return {"validation": lines[-2]["accuracy"], "test": lines[-1]["test_accuracy"]}


def train_torch(seed: int, options: argparse.Namespace) -> dict:
    images, labels = read_part("train")
    parts = {
        "train": (images[: options.limit], labels[: options.limit]),
        "validation": (images[-VALIDATION:], labels[-VALIDATION:]),
        "test": read_part("t10k"),
    }
    mean, deviation = parts["train"][0].mean(), parts["train"][0].std(unbiased=False)
    network = make_network(seed).train()
    matrices = [parameter for parameter in network.parameters() if parameter.dim() >= 2]
    others = [parameter for parameter in network.parameters() if parameter.dim() < 2]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": others}]
    optimizer = torch.optim.SGD(groups, lr=LEARNING_RATE, momentum=MOMENTUM, nesterov=True)
    steps = options.limit // BATCH * options.epochs
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(options.epochs):
        order = torch.randperm(options.limit, generator=generator)
        for start in range(0, options.limit - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            batch = (parts["train"][0][chosen] - mean) / deviation
            flips = torch.rand(BATCH, generator=generator) < 0.5
            batch = torch.where(flips[:, None, None, None], batch.flip(3), batch)
            loss = nn.functional.cross_entropy(network(batch), parts["train"][1][chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()
    result = {}
    with torch.no_grad():
        for name in ("validation", "test"):
            inputs, classes = parts[name]
            found = torch.cat([network((batch - mean) / deviation).argmax(1) for batch in inputs.split(500)])
            result[name] = float((found == classes).float().mean())
    return result


def train(by: str, seed: int, options: argparse.Namespace) -> dict:
    if by == "torch":
        return train_torch(seed, options)
    with tempfile.TemporaryDirectory() as folder:
        return train_kas(seed, options, Path(folder), by == "kas")


def summarize(records: list[dict], other: str) -> dict:
    """Means of kas and the other, their difference (kas less the other) and its standard error."""
    kinds = ("kas", other)
    summary = {"seeds": sum(record["by"] == "kas" for record in records)}
    for part in ("validation", "test"):
        values = {kind: [record[part] for record in records if record["by"] == kind] for kind in kinds}
        for kind, accuracies in values.items():
            summary[f"{part}_{kind}"] = round(statistics.fmean(accuracies), 5)
        summary[f"{part}_difference"] = round(statistics.fmean(values["kas"]) - statistics.fmean(values[other]), 5)
        if min(len(accuracies) for accuracies in values.values()) > 1:
            variances = [statistics.variance(accuracies) / len(accuracies) for accuracies in values.values()]
            summary[f"{part}_standard_error"] = round(math.sqrt(sum(variances)), 5)
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the trainings that are done, a line of JSON for each")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=20000, help="images to train with")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--products", action="store_true", help="also train by `kas-train --winograd=false`")
    options = parser.parse_args()
    if options.seeds < 1 or options.epochs < 1 or not BATCH <= options.limit <= 60000 - VALIDATION:
        parser.error(f"requires 1 <= seeds, {BATCH} <= limit <= {60000 - VALIDATION} and 1 <= epochs")
    torch.set_num_threads(1)
    # A file that cannot be written is to be known before the first training.
    options.out.open("a").close()
    setting = {"limit": options.limit, "epochs": options.epochs}
    known = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    records = []
    others = ["torch", *(["kas-products"] if options.products else [])]
    for seed in range(options.seeds):
        for by in ("kas", *others):
            key = {"by": by, "seed": seed, **setting}
            record = next((line for line in known if key.items() <= line.items()), None)
            if record is None:
                start = time.perf_counter()
                result = train(by, seed, options)
                record = {**key, **result, "seconds": round(time.perf_counter() - start, 1)}
                with options.out.open("a") as stream:
                    stream.write(json.dumps(record) + "\n")
            print(json.dumps(record), flush=True)
            records.append(record)
    for other in others:
        print(json.dumps(summarize(records, other)), flush=True)


if __name__ == "__main__":
    main()
