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
from ._report import VERDICT, update_page, write_plot, write_tables, write_verdict
from ._results import read_points
from ._stages import get_jobs, resolve
from ._time import Widths
from ._train import Trainer
from ._use import find_uses
from ._verdict import read_verdict

PILOT = "pilot"
"""The experiment whose report has the rules to stop."""


def run(arguments: argparse.Namespace) -> int:
    """Times what has no width yet, trains what is missing, and prints the report: from any stage on."""
    protocol = read_protocol(arguments.spec)
    store = Store(arguments.store or os.path.splitext(arguments.spec)[0] + ".jsonl")
    if arguments.verdict:
        return _decide(protocol, store, arguments)
    if arguments.experiment not in protocol.experiments:
        known = ", ".join(protocol.experiments)
        raise ValueError(f"requires an experiment of {known}, got '{arguments.experiment}'")
    experiment = resolve(protocol, protocol.experiments[arguments.experiment], store)

    def say(text: str) -> None:
        if not arguments.quiet:
            print(text, flush=True)

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if not (arguments.report_only or arguments.list):
        find_widths(protocol, experiment, store, say)
    if arguments.use:
        if not arguments.output:
            raise ValueError("--use requires a folder: -o FOLDER")
        find_uses(protocol, experiment, store, arguments.use, arguments.output, say)
        return 0
    jobs = get_jobs(protocol, experiment, store)
    if arguments.list:
        known_keys = store.read_trainings()
        for job in jobs:
            if protocol.key(job) not in known_keys:
                print(_describe(job))
        return 0
    if not (arguments.report_only or arguments.no_training):
        trainer = Trainer(protocol, store, arguments.checkpoints or f"{store.path}.checkpoints")
        done: list[Job] = []
        # Each round of successive halving follows from the one before.
        while jobs != done:
            trainer.run(jobs, lambda record, left: say(_describe_training(record, left)))
            done, jobs = jobs, get_jobs(protocol, experiment, store)
    return _report(protocol, experiment, store, arguments)


def find_widths(protocol: Protocol, experiment: Experiment, store: Store, say: Any) -> None:
    """Measures until the width for each budget is known."""

    def show(record: dict[str, Any]) -> None:
        times = ", ".join(f"{name} {ms:.4g}" for name, ms in record["ms"].items())
        say(f"{record['family']}, width {record['width']}: {times} ms")

    widths = Widths(protocol, experiment, store, show)
    for equation in experiment.equations:
        for family in map(str, experiment.families):
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
    tables = write_tables(points, protocol.rules, len(experiment.seeds), arguments.experiment == PILOT)
    if not arguments.quiet:
        print(tables)
    if arguments.plot:
        with open(arguments.plot, "w", encoding="utf-8") as file:
            file.write(write_plot(points))
    if arguments.page:
        _update(arguments.page, tables)
    return 0


def _decide(protocol: Protocol, store: Store, arguments: argparse.Namespace) -> int:
    tables = write_verdict(read_verdict(protocol, store))
    print(tables)
    if arguments.page:
        _update(arguments.page, tables, VERDICT)
    return 0


def _update(path: str, tables: str, *marks: tuple[str, str]) -> None:
    with open(path, encoding="utf-8") as file:
        page = update_page(file.read(), tables, *marks)
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)
