# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An evaluator for `kas-opt -kas-search="evaluators=external external='python -m kas.evaluate'"`.

Reads one JSON object per line, trains the network with the operator in it, and answers each with one line; see
"Evaluating candidates" in docs/guide/searching.md for the protocol. The metrics are those of `kas.evaluate.Trainer`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import torch
from torch import nn

from .._errors import Error
from .._options import add_training_options
from . import Data, DigitsNetwork, Recipe, Task, TaskData, Trainer, TrainingFailure
from ._data_sets import call_from_file, load_any_data
from ._probe import choose_task


def load_network(text: str) -> nn.Module:
    """`digits`, or `FILE.py:NAME` with a function or class without arguments that gives a torch.nn.Module."""
    if text == "digits":
        return DigitsNetwork()
    path, _, name = text.rpartition(":")
    if not path or not os.path.isfile(path):
        raise ValueError(f"the network must be 'digits' or FILE.py:NAME with a file that exists, got '{text}'")
    network = call_from_file(path, name)
    if not isinstance(network, nn.Module):
        raise ValueError(f"'{text}' must give a torch.nn.Module, got {type(network).__name__}")
    return network


def load_task(text: str | None, data: Data | TaskData) -> Task:
    """The task `FILE.py:NAME`, a class or function without arguments; without a text that of the data.

    Data that have none are classified.
    """
    if text is None:
        return choose_task(None, data)
    path, _, name = text.rpartition(":")
    if not path or not os.path.isfile(path):
        raise ValueError(f"the task must be FILE.py:NAME with a file that exists, got '{text}'")
    task = call_from_file(path, name)
    if not isinstance(task, Task):
        raise ValueError(f"'{text}' must give a kas.evaluate.Task, got {type(task).__name__}")
    return task


def make_recipe(arguments: argparse.Namespace) -> Recipe:
    """The recipe that the options of `add_training_options` describe."""
    recipe = Recipe.cifar() if arguments.recipe == "cifar" else Recipe()
    names = ("epochs", "batch_size", "optimizer", "learning_rate", "label_smoothing")
    changes: dict[str, Any] = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    if arguments.milestone:
        try:
            pairs = [entry.split("=") for entry in arguments.milestone]
            changes["milestones"] = {int(epoch): float(accuracy) for epoch, accuracy in pairs}
        except ValueError as error:
            raise ValueError(f"a milestone must be EPOCH=ACCURACY such as 3=0.2, got {arguments.milestone}") from error
    return dataclasses.replace(recipe, **changes)


def answer(trainer: Trainer, line: str) -> dict[str, Any]:
    """What to say to one request."""
    try:
        request = json.loads(line)
        identifier, operator = request["id"], request.get("operator")
    except (ValueError, TypeError, KeyError, AttributeError):
        return {"id": None, "error": "requires a JSON object with 'id' and 'operator' in each line"}
    if not isinstance(operator, str):
        return {
            "id": identifier,
            "error": "requires an operator, got " + ("a kernel" if "kernel" in request else "none"),
        }
    try:
        return {"id": identifier, "metrics": trainer.evaluate(operator)}
    except (TrainingFailure, Error, ValueError, MemoryError) as failure:
        return {"id": identifier, "error": " ".join(str(failure).split()) or type(failure).__name__}


def serve(trainer: Trainer, requests: Iterable[str], answers: TextIO) -> None:
    """Answers each line of `requests` by a line, until there are no more."""
    for line in requests:
        if line.strip():
            # What a network prints is not to be taken for an answer.
            with contextlib.redirect_stdout(sys.stderr):
                result = answer(trainer, line)
            print(json.dumps(result), file=answers, flush=True)


def main() -> int:
    """Runs the evaluator and returns its exit code: 1 where the network, the data or the recipe are wrong."""
    parser = argparse.ArgumentParser(prog="python -m kas.evaluate", description=__doc__.split("\n\n")[0])
    add_training_options(parser)
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each candidate (default 1)")
    parser.add_argument("--time-limit", type=float, help="seconds for one training")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch (default 1)")
    arguments = parser.parse_args()
    torch.set_num_threads(max(1, arguments.threads))
    torch.set_flush_denormal(True)
    try:
        data = load_any_data(arguments.data, arguments.data_path)
        trainer = Trainer(
            load_network(arguments.network),
            data,
            make_recipe(arguments),
            task=load_task(arguments.task, data),
            sites=arguments.sites,
            space=arguments.space,
            binding=arguments.binding,
            seeds=arguments.seeds,
            device=arguments.device,
            time_limit=arguments.time_limit,
        )
    except (Error, ValueError, TypeError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    serve(trainer, sys.stdin, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
