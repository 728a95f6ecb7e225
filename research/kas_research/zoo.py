# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains networks of a comparison and writes them into the zoo of the sources.

`kas-research zoo research/data/discovery.yaml pooled:found-1:64 ...` trains each NETWORK:CONTENDER:WIDTH with the first
seed for reporting, unless the zoo has it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import asdict

import torch

from kas._errors import need
from kas.zoo._cards import CARDS, DATA, Card, load_cards

from .protocol import NETWORKS, Job, Point, Worker, read_protocol
from .protocol._protocol import settings_of

LICENCES = {"fashion-mnist": "MIT"}
"""Of the data."""


def make_name(point: Point, data: str) -> str:
    """As in pooled64_fashion_found_1."""
    return f"{point.network}{point.width}_{data.split('-')[0]}_{point.contender}".replace("-", "_")


def train(worker: Worker, point: Point) -> Card:
    """Trains a network, writes its weights and returns its card."""
    protocol = worker.protocol
    job = Job(point, protocol.reporting[0], True)
    training, _ = worker.start(job)
    training.advance(protocol.recipe.epochs)
    accuracy = {"validation": training.evaluate()["accuracy"]}
    for name, part in {"test": worker.data.test, **worker.unseen}.items():
        accuracy[name] = training.evaluate_on(part, name)["accuracy"]
    tensors = {name: tensor.contiguous() for name, tensor in training.network.state_dict().items()}
    content: bytes = need("safetensors.torch", "torch").save(tensors)
    # Pixels go from 0 to 255.
    black, white = (extreme.item() for extreme in worker.data.test[0].aminmax())
    deviation = 255 / (white - black)
    name = make_name(point, worker.data.name)
    (DATA / f"{name}.safetensors").write_bytes(content)
    return Card(
        name=name,
        network=point.network,
        width=point.width,
        contender=point.contender,
        settings=protocol[point.contender].settings,
        data=worker.identity,
        data_licence=LICENCES[worker.data.name],
        mean=round(-black * deviation, 4),
        deviation=round(deviation, 4),
        recipe=settings_of(protocol.recipe),
        seed=job.seed,
        parameters=sum(parameter.numel() for parameter in training.network.parameters()),
        accuracy={name: round(100 * value, 2) for name, value in accuracy.items()},
        sha256=hashlib.sha256(content).hexdigest(),
    )


def parse_point(text: str) -> Point:
    """NETWORK:CONTENDER:WIDTH."""
    parts = text.split(":")
    if len(parts) != 3 or parts[0] not in NETWORKS or not parts[2].isdecimal() or int(parts[2]) == 0:
        raise argparse.ArgumentTypeError(f"requires NETWORK:CONTENDER:WIDTH, got '{text}'")
    return Point(parts[0], parts[1], int(parts[2]))


def main(arguments: list[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="kas-research zoo", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("spec", help="of a comparison (research/guide/discovery.md)")
    parser.add_argument("points", nargs="+", metavar="NETWORK:CONTENDER:WIDTH", type=parse_point)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    protocol = read_protocol(options.spec)
    names = [contender.name for contender in protocol.contenders]
    for point in options.points:
        if point.contender not in names:
            parser.error(f"requires a contender of {', '.join(names)}, got '{point.contender}'")
    worker = Worker(protocol)
    if worker.data.name not in LICENCES:
        parser.error(f"requires data with a known licence, of {', '.join(LICENCES)}, got '{worker.data.name}'")
    cards = dict(load_cards()) if CARDS.exists() else {}
    for point in options.points:
        if make_name(point, worker.data.name) in cards:
            continue
        card = train(worker, point)
        cards[card.name] = card
        CARDS.write_text(json.dumps([asdict(cards[name]) for name in sorted(cards)], indent=1) + "\n")
        print(f"{card.name}: test {card.accuracy['test']:.2f} %", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
