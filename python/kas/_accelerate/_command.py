# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `kas accelerate`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from functools import partial

import torch
from torch import nn

from .._export_c import check_folder
from ..evaluate.__main__ import load_network, load_task
from ..evaluate._data_sets import load_any_data
from ._run import accelerate

UNREACHED = 3
"""The exit status where no network is as fast, or as accurate, as requested."""


def load_weights(network: nn.Module, path: str) -> None:
    """Gives the network the tensors of a `.pt` file with a state dictionary, or of a `.safetensors` file."""
    if path.endswith(".safetensors"):
        from .._errors import need

        read = need("safetensors.torch", "torch").load_file
    else:
        read = partial(torch.load, map_location="cpu", weights_only=True)
    try:
        state = read(path)
    except OSError:
        raise
    except Exception as error:
        # Whatever is wrong with it, of many kinds.
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"requires a file of tensors that can be read, got '{path}': {reason}") from error
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    if not isinstance(state, dict):
        raise ValueError(f"requires a file of tensors by their names, got {type(state).__name__} in '{path}'")
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"the weights of '{path}' do not fit the network: {' '.join(str(error).split())}") from error


def run(arguments: argparse.Namespace) -> int:
    """Runs the command and returns its exit code."""
    if arguments.output is not None:
        check_folder(arguments.output)
    network = load_network(arguments.network)
    if arguments.weights:
        load_weights(network, arguments.weights)
    command = "kas " + " ".join(map(shlex.quote, sys.argv[1:])) if sys.argv[1:2] == ["accelerate"] else None
    data = load_any_data(arguments.data, arguments.data_path)
    outcome = accelerate(
        network,
        data,
        max_drop=arguments.max_drop,
        confidence=arguments.confidence,
        target=arguments.target,
        minutes=arguments.minutes,
        threads=arguments.threads,
        batch=arguments.batch,
        precision=arguments.precision,
        task=load_task(arguments.task, data),
        seed=arguments.seed,
        workers=arguments.workers,
        out=arguments.output,
        command=command,
        progress=not arguments.quiet,
    )
    if arguments.json:
        print(json.dumps(outcome.to_json(), indent=2))
    elif outcome.results:
        print(outcome.table())
        print(outcome.verdict)
    if not outcome.is_complete:
        return 130
    return 0 if outcome.is_reached else UNREACHED
