# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas-research compare`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from kas.zoo._contenders import Contender

from . import _report
from ._latency import measure
from ._protocol import Protocol
from ._results import METRICS, Condition, NetworkResults, read_results
from ._run import plan, run
from ._spec import read_files, read_protocol
from ._stage_search import Found, search_stages
from ._store import Store


def _say(text: str, arguments: argparse.Namespace) -> None:
    """Progress, which is no part of JSON."""
    print(text, file=sys.stderr if arguments.json else sys.stdout, flush=True)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def _train(protocol: Protocol, store: Store, arguments: argparse.Namespace) -> None:
    def show(record: dict[str, Any], left: int) -> None:
        what = f"failed: {record['failure']}" if record["failure"] else f"validation {record['validation']:.2f} %"
        if "test" in record:
            what += f", test {record['test']:.2f} %"
        name = f"{record['network']}, {record['contender']}, width {record['width']}, seed {record['seed']}"
        _say(f"{name}: {what} ({record['cpu_seconds']:.0f} CPU s, {left} to start)", arguments)

    run(
        protocol,
        store,
        chosen=arguments.chosen,
        processes=arguments.processes,
        retry=arguments.retry,
        progress=None if arguments.quiet else show,
    )


def _time(protocol: Protocol, store: Store, arguments: argparse.Namespace) -> None:
    """All points again where one has no latency: times of one run are compared.

    Other conditions than one image and one thread are for what is compared at equal accuracy.
    """
    condition = Condition(arguments.batch, arguments.threads)
    points = list(protocol.points())
    if condition != Condition():
        points = [p for p in points if p.contender == protocol.dense or protocol[p.contender].is_candidate]
    known = {record["key"] for record in store if record["kind"] == "latency"}
    if all(protocol.latency_key(point, *condition) in known for point in points) and not arguments.latency:
        return
    show = None if arguments.quiet else lambda text: _say(f"compiled {text}", arguments)
    for record in measure(protocol, points, **condition._asdict(), python=arguments.peers, progress=show):
        store.add(record)


def _describe_found(found: Found) -> dict[str, Any]:
    """Operators for the stages, and numbers by width."""
    stages = [
        {"name": stage.name, "operator": stage.text, "binding": dict(stage.binding)} for stage in found.contender.stages
    ]
    return {"stages": stages, **{name: value for name, value in found._asdict().items() if name != "contender"}}


def _describe_network(network: NetworkResults) -> dict[str, Any]:
    """Points and verdicts."""
    points = []
    for point, result in network.results.items():
        others = [{**condition._asdict(), "microseconds": dict(times)} for condition, times in result.others.items()]
        points.append(
            {
                **point._asdict(),
                "accuracies": result.accuracies,
                "parameters": result.parameters,
                "cpu_seconds": result.cpu_seconds,
                "microseconds": dict(result.microseconds),
                "other_conditions": others,
                "failures": result.failures,
            }
        )
    verdicts = {metric: _describe_verdicts(network, metric) for metric in METRICS}
    return {"network": network.network, "points": points, "verdicts": {m: v for m, v in verdicts.items() if v}}


def _describe_verdicts(network: NetworkResults, metric: str) -> dict[str, Any]:
    """By candidate; against all baselines."""
    found = {}
    for name, verdict in network.decide(metric).items():
        differences = [
            {
                "width": one.point.width,
                "baseline": one.baseline,
                "difference": one.difference,
                "error": one.error,
                "probability": one.probability,
            }
            for one in verdict.differences
        ]
        found[name] = {
            "is_above": verdict.is_above,
            "probability": verdict.probability,
            "differences": differences,
        }
    return found


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
        _say(f"{name}: {what} ({record['cpu_seconds']:.0f} CPU s, {left} left)", arguments)

    found = search_stages(
        protocol,
        store,
        processes=arguments.processes,
        progress=None if arguments.quiet else show,
        compiled=None if arguments.quiet else lambda text: _say(f"compiled {text}", arguments),
    )
    if arguments.json:
        _print_json([_describe_found(one) for one in found])
        return
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
        jobs = plan(protocol, store, arguments.chosen, arguments.retry)
        if arguments.json:
            _print_json([{**job.point._asdict(), "seed": job.seed} for job in jobs])
            return 0
        for job in jobs:
            print(f"{job.point.network}, {job.point.contender}, width {job.point.width}, seed {job.seed}")
        return 0
    if not arguments.report_only:
        if not arguments.no_training:
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
    if arguments.json:
        _print_json([_describe_network(network) for network in networks])
    elif not (arguments.tables or arguments.page):
        print(tables)
    return 0


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
