"""The steps of tools/demo/accelerate.sh.

usage: accelerate.py train DIRECTORY SEED whole|short
       accelerate.py accelerate DIRECTORY SEED whole|short SECONDS
       accelerate.py show DIRECTORY
"""

import json
import os
import sys
import time
from pathlib import Path

import torch

import kas
from kas.evaluate import Recipe, fashion_mnist
from kas.evaluate._native import NativeTraining, Program
from kas.zoo._contenders import Contender, make_network

WIDTH = 48
SIZES = {"whole": (20000, 10000, 6), "short": (640, 1000, 1)}
"""Images for training and validation, and epochs."""
MAX_DROP = 0.5
"""Points of accuracy on validation data: its standard error is some 0.2, so that 1 point is ruled out."""


def load(size):
    """The network without its weights, and the data."""
    train, validation, epochs = SIZES[size]
    network = make_network("pooled", WIDTH, Contender("dense"))
    recipe = Recipe(epochs=epochs, batch_size=64, learning_rate=4e-3, weight_decay=0.02, warmup_steps=100)
    return network, fashion_mnist(train=train, validation=validation), recipe


def train(directory, seed, size):
    """Trains the network as anybody would, and keeps its weights."""
    network, data, recipe = load(size)
    torch.manual_seed(int(seed))
    network = make_network("pooled", WIDTH, Contender("dense"))
    program = Program(network, data, recipe, [], threads=len(os.sched_getaffinity(0)))
    training = NativeTraining(network, data, recipe, int(seed), network, [], program)
    for epoch in range(1, recipe.epochs + 1):
        start = time.monotonic()
        training.advance(epoch)
        loss = training.curve[-1][2]
        print(f"epoch {epoch}: loss {loss:.3f}, {time.monotonic() - start:.0f} s", flush=True)
    print(f"validation accuracy {100 * training.evaluate()['accuracy']:.2f} %")
    torch.save(network.state_dict(), directory / "dense.pt")


def accelerate(directory, seed, size, seconds):
    """The main job."""
    network, data, _ = load(size)
    network.load_state_dict(torch.load(directory / "dense.pt", weights_only=True))
    outcome = kas.accelerate(
        network,
        data,
        max_drop=MAX_DROP,
        minutes=float(seconds) / 60,
        seed=int(seed),
        out=directory,
        command=f"tools/demo.sh --seconds={seconds} --seed={seed}",
    )
    if not outcome.is_complete:
        sys.exit(130)
    (directory / "table.txt").write_text(f"{outcome.table()}\n")


def show(directory):
    """The table, the front, the layers and the verdict."""
    results = json.loads((directory / "results.json").read_text())
    print((directory / "table.txt").read_text(), end="")
    print("\nChoices of the exact solver, predicted and measured:")
    for point in results["front"]:
        layers = ", ".join(f"{name}: {form}" for name, form in point["layers"].items())
        times = f"{point['predicted_ms']:9.4f}{point['ms']:9.4f}"
        print(f"  {point['name']:9}{times} ms, loss {point['predicted_loss']:.3f}; {layers}")
    best = next(one for one in results["networks"] if one["name"] == results["best"])
    if best["layers"]:
        print(f"\nLayers of '{best['name']}':")
        for name, form in best["layers"].items():
            computes = results["operators"].get(form, {}).get("formula", "")
            print(f"  {name:20} {form:28} {computes}".rstrip())
    print(
        "\nThe network that was taken runs in PyTorch without kas, on images of 1x1x32x32, normalized as for training:"
    )
    print(f"  torch.export.load('{directory}/model.pt2').module()(image)")
    print(f"and in C: {directory}/c has the object, its weights and a program (main.c, CMakeLists.txt).")
    print(f"The page is {directory}/report.html.\n")
    print(results["verdict"])


if __name__ == "__main__":
    torch.set_flush_denormal(True)
    steps = {"train": train, "accelerate": accelerate, "show": show}
    steps[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
