# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command that makes the tables, looks into them, and measures rows again."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kas._errors import Error, MissingExtraError

from ._files import MANIFEST, load, write_tables
from ._list import add_costs, list_operators
from ._space import DATA, LAYERS, NETWORK, PROPERTIES
from ._table import Row, Table

if TYPE_CHECKING:
    from ..protocol import Store


def _about(table: Table) -> dict[str, Any]:
    """What the manifest says beside the files."""
    return {name: value for name, value in table.manifest.items() if name not in ("format", "version", "files")}


def _list(arguments: argparse.Namespace) -> int:
    from ._pack import describe

    rows = list_operators()
    write_tables(rows, {}, describe({}, []), arguments.tables)
    print(f"{len(rows)} operators in {arguments.tables}")
    for name in PROPERTIES:
        print(f"{sum(name in row.properties for row in rows)} have the property '{name}'")
    return 0


def _costs(arguments: argparse.Namespace) -> int:
    table = load(arguments.tables)
    rows, is_complete = add_costs(table, arguments.processes)
    write_tables(rows, table.references, _about(table), arguments.tables)
    print(f"{sum(bool(row.costs) for row in rows)} of {len(rows)} operators have costs")
    return 0 if is_complete else 130


def _parse_part(text: str) -> tuple[int, int]:
    first, _, second = text.partition("/")
    if not (first.isdigit() and second.isdigit() and 1 <= int(first) <= int(second)):
        raise argparse.ArgumentTypeError(f"requires I/N with 1 <= I <= N, got '{text}'")
    return int(first), int(second)


def _parse_positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"requires an integer of at least 1, got '{text}'")
    return int(text)


def _order(table: Table, arguments: argparse.Namespace) -> list[Row]:
    """The operators to look at: those that are trained come first."""
    from ._tasks import order

    return order(table, len(table) if arguments.all else arguments.drawn)


def _open(path: str) -> Store:
    from ..protocol import Store

    return Store(path)


def _train(arguments: argparse.Namespace) -> int:
    from ._tasks import TASKS
    from ._train import UNTRAINED, plan, train

    table, store = load(arguments.tables), _open(arguments.store)
    rows, references = _order(table, arguments), {**UNTRAINED, **table.references}
    tasks = arguments.task or list(TASKS)
    if arguments.list:
        for name in tasks:
            missing = plan(name, rows, store, references=references, retry=arguments.retry)[1]
            print(f"{name}: {len(missing)} trainings are missing")
        return 0

    def show(record: Mapping[str, Any], left: int) -> None:
        what = record["failure"] or f"validation {record['validation']:.2f} %, test {record['test']:.2f} %"
        task = record["settings"]["data"].split()[0]
        name = f"{record['contender']} on {task}, seed {record['seed']}"
        print(f"{name}: {what} ({record['cpu_seconds']:.1f} CPU s, {left} left of its group)", flush=True)

    train(
        rows,
        store,
        tasks=tasks,
        references=references,
        part=arguments.part,
        processes=arguments.processes,
        limit=arguments.limit,
        retry=arguments.retry,
        progress=None if arguments.quiet else show,
    )
    return 0


def _time(arguments: argparse.Namespace) -> int:
    if arguments.networks:
        return _time_networks(arguments)
    from ._time import measure_all

    def show(row: Row, layer: str, threads: int, found: float | str) -> None:
        what = found if isinstance(found, str) else f"{found:.1f} µs"
        print(f"operator {row.number} in {layer}, {threads} threads: {what}", flush=True)

    measure_all(
        _order(load(arguments.tables), arguments),
        _open(arguments.store),
        layers=arguments.layer or list(LAYERS),
        threads=arguments.threads or [1, 2],
        part=arguments.part,
        limit=arguments.limit,
        again=arguments.again,
        progress=None if arguments.quiet else show,
    )
    return 0


def _time_networks(arguments: argparse.Namespace) -> int:
    from ._time_networks import measure_networks

    def show(record: Mapping[str, Any]) -> None:
        what = record["failure"] or f"{record['microseconds']:.1f} µs, dense {record['dense_microseconds']:.1f} µs"
        print(f"{record['contender']}, width {record['width']}, {record['threads']} threads: {what}", flush=True)

    for threads in arguments.threads or [1]:
        measure_networks(
            _order(load(arguments.tables), arguments),
            _open(arguments.store),
            threads=threads,
            limit=arguments.limit,
            progress=None if arguments.quiet else show,
        )
    return 0


def _pack(arguments: argparse.Namespace) -> int:
    from ._pack import pack

    table = load(arguments.tables)
    for path in arguments.stores:
        if not os.path.isfile(path):
            raise FileNotFoundError(f"requires a store of trainings or times in '{path}', got no file")
    rows, references, about = pack(table, [_open(path) for path in arguments.stores])
    write_tables(rows, references, about, arguments.tables)
    print(load(arguments.tables))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    table = load(arguments.tables)
    if arguments.operator is None:
        print(table)
        return 0
    text = arguments.operator
    if text.isdigit():
        number: int | None = int(text)
        if int(text) >= len(table):
            raise ValueError(f"requires an operator from 0 to {len(table) - 1}, got {text}")
    else:
        number = _look_up(table, text, arguments.symbol)
    if number is None:
        return 1
    row = table[number]
    print(f"number {number}\n{row.operator.formula}")
    print(f"properties: {', '.join(name for name in PROPERTIES if name in row.properties) or 'none'}")
    print(json.dumps({name: asdict(costs) for name, costs in row.costs.items() if name == NETWORK}))
    for one in (*row.latencies, *row.trainings):
        print(json.dumps(asdict(one)))
    return 0


def _look_up(table: Table, text: str, symbols: Iterable[str]) -> int | None:
    """The number of a named operator, or of the one in a file."""
    from kas._module import operator as named_operator

    pairs = dict(entry.split("=", 1) for entry in symbols if "=" in entry)
    if os.path.isfile(text):
        with open(text, encoding="utf-8") as file:
            found = table.find(file.read(), pairs)
    else:
        found = table.find(named_operator(text), pairs)
    if found.number is None:
        print(found)
    return found.number


def _regret(arguments: argparse.Namespace) -> int:
    from ._replay import get_regrets

    efforts = (5.0, 10.0, 20.0, 50.0, 100.0)
    regrets = get_regrets(
        load(arguments.tables), arguments.algorithm or ALGORITHMS, range(arguments.seeds), efforts, task=arguments.task
    )
    print("| algorithm | " + " | ".join(f"after {effort:g} trainings" for effort in efforts) + " |")
    print("|" + "---|" * (1 + len(efforts)))
    for name in dict.fromkeys(regret.algorithm for regret in regrets):
        cells = [f"{r.median:.2f} ({r.lower:.2f} to {r.upper:.2f})" for r in regrets if r.algorithm == name]
        print(f"| {name} | " + " | ".join(cells) + " |")
    return 0


ALGORITHMS = ("uniform", "evolution", "mcts", "surrogate", "halving")
"""That are compared by default."""


def _reproduce(arguments: argparse.Namespace) -> int:
    from ._reproduce import reproduce

    failed = count = 0
    for check in reproduce(load(arguments.tables), arguments.rows, arguments.seed, arguments.processes):
        print(check, flush=True)
        count, failed = count + 1, failed + (not check.holds)
    print(f"{count - failed} of {count} values hold")
    return 1 if failed or not count else 0


def _find(arguments: argparse.Namespace) -> int:
    from ._findings import update_page, write_findings

    findings = write_findings(load(arguments.tables))
    print(findings)
    if arguments.page:
        with open(arguments.page, encoding="utf-8") as file:
            page = update_page(file.read(), findings)
        with open(arguments.page, "w", encoding="utf-8") as file:
            file.write(page)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    print(load(arguments.tables))
    return 0


# The parser


def _add_rows(parser: argparse.ArgumentParser, store: str) -> None:
    add = parser.add_argument
    add("--store", default=store, help=f"the file that keeps records; the same command goes on (default: {store})")
    add("--drawn", type=int, default=300, help="how many of the operators without a whole window (default 300)")
    add("--all", action="store_true", help="all operators; those that are trained come first")
    add("--part", type=_parse_part, default=(1, 1), metavar="I/N", help="part I of N: each of N machines takes one")
    add("--limit", type=int, help="at most so many trainings, or operators to time, then stop")
    add("--quiet", action="store_true")


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = argparse.ArgumentParser(prog="kas-research bench1", description="Makes and reads KAS-Bench-1.")
    parser.add_argument("--tables", default=str(DATA), metavar="FOLDER", help="those to make or to read")
    commands = parser.add_subparsers(dest="command", required=True)

    def add_command(name: str, run: Any, help: str) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = commands.add_parser(name, help=help)
        command.set_defaults(run=run)
        return command

    add_command("list", _list, "list all operators again; tables that are there are replaced")
    command = add_command("costs", _costs, "compute the costs that are missing")
    command.add_argument("--processes", type=_parse_positive, default=1)
    command = add_command("train", _train, "train what neither the tables nor the store have")
    _add_rows(command, "trainings.jsonl")
    command.add_argument("--task", action="append", choices=("fashion-mnist", "moved-mnist"))
    command.add_argument("--processes", type=_parse_positive, default=1, help="trainings at once (default 1)")
    command.add_argument("--retry", action="store_true", help="train those again that failed")
    command.add_argument("--list", action="store_true", help="say how many are missing, and train nothing")
    command = add_command("time", _time, "time what the store does not have of this machine")
    _add_rows(command, "latencies.jsonl")
    command.add_argument("--layer", action="append", choices=tuple(LAYERS))
    command.add_argument("--networks", action="store_true", help="the networks that are trained instead of layers")
    command.add_argument("--threads", action="append", type=_parse_positive)
    command.add_argument(
        "--again", type=_parse_positive, default=0, metavar="K", help="all for the K-th time after the first one"
    )
    command = add_command("pack", _pack, "add what stores have to the tables")
    command.add_argument("stores", nargs="+", metavar="STORE")
    command = add_command("show", _show, "an operator of the tables")
    command.add_argument("operator", nargs="?", help="its number, a file of MLIR, or the name of a named operator")
    command.add_argument("--symbol", action="append", default=[], metavar="OLD=NEW", help="such as k=k1")
    command = add_command("regret", _regret, "replay searches, and print what they come to")
    command.add_argument("--algorithm", action="append")
    command.add_argument("--seeds", type=int, default=50)
    command.add_argument("--task", help="the task (default: the first one)")
    command = add_command("reproduce", _reproduce, "measure random rows again, and compare")
    command.add_argument("--rows", type=int, default=20)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--processes", type=_parse_positive, default=1)
    command = add_command("findings", _find, "compare operators with layers made by hand of other widths")
    command.add_argument("--page", metavar="FILE.md", help="write it where a page has marks for it")
    add_command("check", _check, f"read all tables: whether they are those of '{MANIFEST}'")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code.

    That is 0; 1 for an error, whose message is on the standard error stream, and for values that differ; 2 for wrong
    arguments; 130 after Ctrl-C.
    """
    options = make_parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except KeyboardInterrupt:
        return 130
    except (Error, MissingExtraError, OSError, ValueError, KeyError) as error:
        print(f"error: {error.args[0] if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 1
