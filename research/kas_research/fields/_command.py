# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas-research fields`."""

from __future__ import annotations

import argparse
import os
from typing import Any

import torch

from ..protocol._store import Store
from ._protocol import Experiment, Job, Protocol, read_protocol
from ._report import update_page, write_plot, write_tables
from ._results import get_jobs, read_points
from ._time import Widths
from ._train import Trainer


def run(arguments: argparse.Namespace) -> int:
    """Times what has no width yet, trains what is missing, and prints the report: from any stage on."""
    protocol = read_protocol(arguments.spec)
    if arguments.experiment not in protocol.experiments:
        known = ", ".join(protocol.experiments)
        raise ValueError(f"requires an experiment of {known}, got '{arguments.experiment}'")
    experiment = protocol.experiments[arguments.experiment]
    store = Store(arguments.store or os.path.splitext(arguments.spec)[0] + ".jsonl")

    def say(text: str) -> None:
        if not arguments.quiet:
            print(text, flush=True)

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if not (arguments.report_only or arguments.list):
        find_widths(protocol, experiment, store, say)
    jobs = get_jobs(protocol, experiment, store)
    if arguments.list:
        known_keys = store.read_trainings()
        for job in jobs:
            if protocol.key(job) not in known_keys:
                print(_describe(job))
        return 0
    if not (arguments.report_only or arguments.no_training):
        folder = arguments.checkpoints or f"{store.path}.checkpoints"
        Trainer(protocol, store, folder).run(jobs, lambda record, left: say(_describe_training(record, left)))
    return _report(protocol, experiment, store, arguments)


def find_widths(protocol: Protocol, experiment: Experiment, store: Store, say: Any) -> None:
    """Measures until the width for each budget is known."""

    def show(record: dict[str, Any]) -> None:
        times = ", ".join(f"{name} {ms:.4g}" for name, ms in record["ms"].items())
        say(f"{record['family']}, width {record['width']}: {times} ms")

    widths = Widths(protocol, experiment, store, show)
    for equation in experiment.equations:
        for family in experiment.families:
            for budget in experiment.budgets:
                if widths.find(equation, family, budget) is None:
                    say(f"{family} takes more than {budget:g} ms at any width")


def _describe(job: Job) -> str:
    return (
        f"{job.equation}, {job.family}, width {job.width}, seed {job.seed}, {job.epochs} epochs at "
        f"{job.learning_rate:g}"
    )


def _describe_training(record: dict[str, Any], left: int) -> str:
    fields = {name: record["settings"][name] for name in Job._fields}
    what = f"failed: {record['failure']}" if record["failure"] else f"error {record['error']:.3f} %"
    return f"{_describe(Job(**fields))}: {what} ({record.get('cpu_seconds', 0):.0f} CPU s, {left} left)"


def _report(protocol: Protocol, experiment: Experiment, store: Store, arguments: argparse.Namespace) -> int:
    points = read_points(protocol, experiment, store)
    tables = write_tables(points, protocol.rules, len(experiment.seeds))
    if not arguments.quiet:
        print(tables)
    if arguments.plot:
        with open(arguments.plot, "w", encoding="utf-8") as file:
            file.write(write_plot(points))
    if arguments.page:
        with open(arguments.page, encoding="utf-8") as file:
            page = update_page(file.read(), tables)
        with open(arguments.page, "w", encoding="utf-8") as file:
            file.write(page)
    return 0
