# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas compare`."""

from __future__ import annotations

import argparse
import os
from typing import Any

from . import _report
from ._latency import measure
from ._protocol import Contender, Protocol
from ._results import Condition, read_results
from ._run import plan, run
from ._spec import read_files, read_protocol
from ._stage_search import search_stages
from ._store import Store


def _train(protocol: Protocol, store: Store, arguments: argparse.Namespace) -> None:
    def show(record: dict[str, Any], left: int) -> None:
        what = f"failed: {record['failure']}" if record["failure"] else f"validation {record['validation']:.2f} %"
        if "test" in record:
            what += f", test {record['test']:.2f} %"
        name = f"{record['network']}, {record['contender']}, width {record['width']}, seed {record['seed']}"
        print(f"{name}: {what} ({record['cpu_seconds']:.0f} CPU s, {left} to start)", flush=True)

    run(
        protocol,
        store,
        chosen=arguments.chosen,
        processes=arguments.processes,
        retry=arguments.retry,
        progress=None if arguments.quiet else show,
    )


def _time(protocol: Protocol, store: Store, arguments: argparse.Namespace) -> None:
    """All points anew where one has no latency: times of one run are compared.

    Other conditions than one image and one thread are for what is compared at equal accuracy.
    """
    condition = Condition(arguments.batch, arguments.threads)
    points = list(protocol.points())
    if condition != Condition():
        points = [p for p in points if p.contender == protocol.dense or protocol[p.contender].is_candidate]
    known = {record["key"] for record in store if record["kind"] == "latency"}
    if all(protocol.latency_key(point, *condition) in known for point in points) and not arguments.latency:
        return
    show = None if arguments.quiet else lambda text: print(f"compiled {text}", flush=True)
    for record in measure(protocol, points, **condition._asdict(), python=arguments.peers, progress=show):
        store.add(record)


def _write_stage(stage: Contender, files: dict[str, str]) -> str:
    """A stage as a specification has it."""
    if stage.text is None and not stage.binding:
        return stage.name
    file = f", file: {files[stage.name]}" if stage.name in files else ""
    binding = ", ".join(f"{name}: {value}" for name, value in stage.binding.items())
    return f"{{name: {stage.name}{file}, binding: {{{binding}}}}}"


def _search(protocol: Protocol, store: Store, arguments: argparse.Namespace) -> None:
    def show(record: dict[str, Any], left: int) -> None:
        what = f"failed: {record['failure']}" if record["failure"] else f"validation {record['validation']:.2f} %"
        name = f"{record['contender']}, width {record['width']}, seed {record['seed']}"
        print(f"{name}: {what} ({record['cpu_seconds']:.0f} CPU s, {left} left)", flush=True)

    found = search_stages(
        protocol,
        store,
        processes=arguments.processes,
        progress=None if arguments.quiet else show,
        compiled=None if arguments.quiet else lambda text: print(f"compiled {text}", flush=True),
    )
    files = read_files(arguments.spec)
    print("# by width: points of validation accuracy above the baselines at the same time, and microseconds")
    print("candidates:")
    for number, entry in enumerate(found, 1):
        stages = ", ".join(_write_stage(stage, files) for stage in entry.contender.stages)
        gains = "; ".join(
            f"{width}: {gain:+.2f} ± {entry.deviations[width]:.2f} at {entry.microseconds[width]:.1f}"
            for width, gain in entry.gains.items()
        )
        print(f"  - {{name: found-{number}, stages: [{stages}]}}  # {gains}; {entry.trainings} trainings")


def compare(arguments: argparse.Namespace) -> int:
    """Trains and times what the store does not have, and writes tables and figure."""
    protocol = read_protocol(arguments.spec)
    for name in ("batch", "threads"):
        if getattr(arguments, name) < 1:
            raise ValueError(f"--{name} requires a number of at least 1, got {getattr(arguments, name)}")
    for name in arguments.chosen:
        if name not in [contender.name for contender in protocol.contenders if contender.is_candidate]:
            raise ValueError(f"--chosen requires a candidate of the protocol, got '{name}'")
    store = Store(arguments.store or os.path.splitext(arguments.spec)[0] + ".jsonl")
    if arguments.search:
        _search(protocol, store, arguments)
        return 0
    if arguments.list:
        for job in plan(protocol, store, arguments.chosen, arguments.retry):
            print(f"{job.point.network}, {job.point.contender}, width {job.point.width}, seed {job.seed}")
        return 0
    if not arguments.report_only:
        _train(protocol, store, arguments)
        _time(protocol, store, arguments)
    networks = read_results(protocol, store)
    tables = _report.write_tables(networks)
    if arguments.tables:
        _write(arguments.tables, tables)
    if arguments.plot:
        _write(arguments.plot, _report.write_plot(networks))
    if arguments.page:
        with open(arguments.page, encoding="utf-8") as file:
            page = file.read()
        _write(arguments.page, _report.update_page(page, networks))
    if not (arguments.tables or arguments.page):
        print(tables)
    return 0


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
