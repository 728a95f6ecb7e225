# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training of a protocol."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy
import torch
from torch import nn
from torch.nn import functional

import kas.torch
from kas._module import Module, Operator
from kas._sequence import OperatorSequence
from kas.evaluate._data import Data, Split
from kas.evaluate._native import NativeTraining, Program, Replacement, UnsupportedNetworkError
from kas.evaluate._trainer import main_space
from kas.evaluate._training import Training, TrainingFailure, initialize
from kas.zoo._backbones import SIZES
from kas.zoo._contenders import Contender, get_form, make_network
from kas.zoo._layers import SEQUENCES

from ._protocol import Job, Point, Protocol, identify
from .bootstrap import pack_bits


def make_unseen(test: Split, seed: int = 0) -> dict[str, Split]:
    """Tasks that nothing was trained or chosen for: the test images, each moved or turned once, by `seed`.

    `shifted`: by -3 to 3 pixels in each direction; `rotated`: about the middle by -20 to 20 degrees, with bilinear
    interpolation. Pixels from outside have the value of the first pixel of the first image, a black one.
    """
    images, classes = test
    generator = torch.Generator().manual_seed(seed)
    black = images[0, 0, 0, 0].item()
    size = images.shape[-1]
    moves = torch.randint(0, 7, (len(images), 2), generator=generator)
    padded = functional.pad(images, (3, 3, 3, 3), value=black)
    shifted = torch.stack(
        [image[:, top : top + size, left : left + size] for image, (top, left) in zip(padded, moves.tolist())]
    )
    angles = torch.deg2rad(40 * torch.rand(len(images), generator=generator) - 20)
    zeros = torch.zeros_like(angles)
    rows = torch.stack([angles.cos(), -angles.sin(), zeros, angles.sin(), angles.cos(), zeros], 1).view(-1, 2, 3)
    grid = functional.affine_grid(rows, list(images.shape), align_corners=False)
    rotated = functional.grid_sample(images - black, grid, align_corners=False) + black
    return {"shifted": (shifted, classes), "rotated": (rotated, classes)}


def _find_replacement(
    contender: Contender, as_sequences: bool
) -> tuple[Operator | OperatorSequence, dict[str, int]] | None:
    """What takes the place of dense layers, and its sizes; None where the layer itself is exported."""
    if as_sequences and contender.settings.get("layer") in SEQUENCES:
        return next(iter(Module(SEQUENCES[contender.name]).sequences.values())), {"k": 3}
    form = get_form(contender)
    if not isinstance(form, (Operator, OperatorSequence)):
        return None
    return form, dict(contender.settings["binding"])


def place(protocol: Protocol, point: Point, as_sequences: bool = False) -> tuple[nn.Module, list[Replacement]]:
    """The network that is exported, for batches of one image, and what then takes the place of its layers.

    Layers made by hand are in it; dense layers are where operators come, and with `as_sequences` where layers made by
    hand are sequences as well.
    """
    contender, dense = protocol[point.contender], protocol[protocol.dense]
    stages = contender.stages or (contender,) * len(SIZES)
    found = [_find_replacement(stage, as_sequences) for stage in stages]
    kept = tuple(stage if form is None else dense for stage, form in zip(stages, found))
    network = make_network(point.network, point.width, Contender(point.contender, stages=kept))
    if not any(found):
        return network, []
    sites = kas.torch.extract(network.eval(), torch.zeros(1, 1, 32, 32))
    replacements = []
    for form, size in zip(found, SIZES):
        if form is not None:
            here = {name: site for name, site in sites.sites.items() if site.data_shape[-1] == size}
            space = main_space(sites._replace(sites=here))
            replacements.append(Replacement(form[0], [site for site in here.values() if site.space == space], form[1]))
    return network, replacements


def find_correct(training: Training, part: Split, batch: int = 500) -> numpy.ndarray:
    """Which images of a part are classified right."""
    training.network.eval()
    with torch.no_grad():
        found = [
            training.network(images).argmax(1) == classes for images, classes in training.data.in_order(part, batch)
        ]
    training.network.train()
    correct: numpy.ndarray = torch.cat(found).numpy()
    return correct


MOST_COMPILED = 8
"""Points whose compiled functions a worker keeps."""


class Worker:
    """Trains jobs of a protocol one after another; the data are loaded once."""

    def __init__(self, protocol: Protocol):
        self.protocol = protocol
        self.data: Data = protocol.load_data()
        self.identity = identify(self.data)
        self.unseen = make_unseen(self.data.test)
        self._compiled: dict[str, Program] = {}

    def start(self, job: Job) -> tuple[Training, str]:
        """A training that has not begun, and its backend: "pytorch" where steps of the network cannot be compiled."""
        recipe = self.protocol.recipe
        contender = self.protocol[job.point.contender]
        network = make_network(job.point.network, job.point.width, contender, recipe.batch_size)
        initialize(network, job.seed)
        if self.protocol.backend == "native":
            try:
                return self._start_native(job, network), "native"
            except UnsupportedNetworkError:
                pass
        return Training(network, self.data, recipe, job.seed), "pytorch"

    def _start_native(self, job: Job, network: nn.Module) -> Training:
        program = self._get_program(job, network)
        return NativeTraining(network, self.data, self.protocol.recipe, job.seed, network, [], program)

    def _get_program(self, job: Job, network: nn.Module) -> Program:
        """The compiled functions of a job. Those used last are kept: trainings with other seeds follow."""
        key = self.protocol.key(job._replace(seed=0, is_reported=False), self.identity)
        program = self._compiled.pop(key, None)
        if program is None:
            model, replacements = place(self.protocol, job.point)
            model = model.train() if replacements else network
            program = Program(model, self.data, self.protocol.recipe, replacements)
        self._compiled[key] = program
        while len(self._compiled) > MOST_COMPILED:
            del self._compiled[next(iter(self._compiled))]
        return program

    def train(self, job: Job) -> dict[str, Any]:
        """The record of a training: settings, `failure`, or accuracies in percent, CPU seconds and the curve."""
        record: dict[str, Any] = {
            "kind": "training",
            "key": self.protocol.key(job, self.identity),
            "settings": self.protocol.settings(job, self.identity),
            **job.point._asdict(),
            "seed": job.seed,
            "reported": job.is_reported,
            "time": round(time.time()),
            "failure": None,
        }
        start = time.process_time()
        try:
            training, record["backend"] = self.start(job)
            record["parameters"] = sum(parameter.numel() for parameter in training.network.parameters())
            training.advance(self.protocol.recipe.epochs)
            record.update(self._evaluate(training, job))
        except (TrainingFailure, kas.Error, ValueError, RuntimeError, MemoryError) as failure:
            record["failure"] = " ".join(str(failure).split()) or type(failure).__name__
        record["cpu_seconds"] = round(time.process_time() - start, 2)
        return record

    def _evaluate(self, training: Training, job: Job) -> Mapping[str, Any]:
        results = training.evaluate()
        found: dict[str, Any] = {
            "validation": round(100 * results["accuracy"], 4),
            "validation_loss": round(results["loss"], 6),
        }
        if job.is_reported:
            for name, part in {"test": self.data.test, **self.unseen}.items():
                found[name] = round(100 * training.evaluate_on(part, name)["accuracy"], 4)
            found["test_correct"] = pack_bits(find_correct(training, self.data.test))
        found["curve"] = [round(value, 5) for _, name, value in training.curve if name == "train_loss"]
        return found
