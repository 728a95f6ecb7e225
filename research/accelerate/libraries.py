# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library of a network as a run of `kas accelerate` builds it, and what is chosen between as a file of JSON."""

import contextlib
import json
import pathlib

import torch

from kas._accelerate._command import load_weights
from kas._accelerate._knapsack import Option, Place
from kas._accelerate._library import Library
from kas._accelerate._precision import choose_precision, measure_precisions
from kas._accelerate._problem import Options, Problem, check_inputs
from kas._accelerate._progress import Clock, Reporter
from kas._accelerate._store import Store
from kas.evaluate.__main__ import load_network, load_task
from kas.evaluate._data_sets import load_any_data


def add_arguments(parser):
    """The network, its data and the time of the run."""
    add = parser.add_argument
    add("network", help="FILE.py:NAME, or digits")
    add("--weights", help="its weights, a .pt or .safetensors file")
    add("--data", default="digits", help="the name of a data set, or FILE.py:NAME (default: %(default)s)")
    add("--data-path", help="the file or folder of the data set")
    add("--task", help="FILE.py:NAME (default: classification)")
    add("--minutes", type=float, default=15.0, help="for a run, of which the library has its part (default 15)")
    add("--precision", choices=("auto", "f32", "bf16", "int8"), default="auto", help="(default: %(default)s)")
    add("--seed", type=int, default=0)
    add("-o", "--output", help="a folder that keeps the library, and places.json, what is chosen between")


@contextlib.contextmanager
def open_library(options):
    """The problem and its library, built; the folder that keeps it is closed in the end."""
    torch.set_num_threads(1)
    network = load_network(options.network)
    if options.weights:
        load_weights(network, options.weights)
    data = load_any_data(options.data, options.data_path)
    task = load_task(options.task, data)
    check_inputs(network, data, task)
    clock = Clock(options.minutes)
    store = Store(options.output, {"choices of": options.network})
    try:
        settings = Options(minutes=options.minutes, precision=options.precision, seed=options.seed)
        problem = Problem(network, data, task, settings, store, clock, Reporter(clock, False))
        found = measure_precisions(problem)
        problem.dense_ms = found["f32"].ms
        problem.precision = choose_precision(problem, found)
        problem.base_ms = found[problem.precision].ms
        library = Library(problem)
        library.build()
        if options.output:
            write_places(library.get_place(), pathlib.Path(options.output, "places.json"))
        yield problem, library
    finally:
        store.close()


def write_places(place, path):
    """What is chosen between, as JSON."""
    path.write_text(json.dumps(_to_json(place), indent=1) + "\n", encoding="utf-8")


def _to_json(place):
    return {"options": [one._asdict() for one in place.options], "parts": [_to_json(part) for part in place.parts]}


def read_places(path):
    """What `write_places` wrote."""
    return _from_json(json.loads(path.read_text(encoding="utf-8")))


def _from_json(entry):
    return Place(tuple(Option(**one) for one in entry["options"]), tuple(map(_from_json, entry["parts"])))


def select(place, is_taken):
    """The place with those options alone for which `is_taken`, and without parts that have none then."""
    parts = tuple(part for part in (select(one, is_taken) for one in place.parts) if part.options or part.parts)
    return Place(tuple(one for one in place.options if is_taken(one)), parts)
