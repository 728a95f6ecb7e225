# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `kas-research`: bench1, compare, fields, study, zoo."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from kas.cli import run_command


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def _study(arguments: argparse.Namespace) -> int:
    from . import study

    spec = study.read_spec(arguments.spec)
    plan = spec.get_configurations()
    if arguments.list and arguments.json:
        objections = [{**one._asdict(), "reason": reason} for one, reason in spec.get_objections().items()]
        _print_json({"configurations": [one._asdict() for one in plan], "left out": objections})
        return 0
    if arguments.list:
        for configuration in plan:
            print(configuration.name)
        for configuration, reason in spec.get_objections().items():
            print(f"left out: {configuration.name}: {reason}")
        return 0
    database = arguments.database or os.path.splitext(arguments.spec)[0] + ".db"

    def show(place: int, count: int, outcome: study.Outcome) -> None:
        what = f"failed: {outcome.failure.splitlines()[0]}" if outcome.failure else f"{outcome.ms:.4g} ms"
        if outcome.achieved is not None and outcome.share is not None:
            what += f", {outcome.achieved:.2f} times as fast as dense, {100 * outcome.share:.0f} % of what is expected"
        text = f"[{place + 1}/{count}] {outcome.configuration.name}: {what} ({outcome.seconds:.1f} s)"
        print(text, file=sys.stderr if arguments.json else sys.stdout, flush=True)

    outcomes = study.run(spec, database, retry=arguments.retry, progress=None if arguments.quiet else show)
    failed = sum(outcome.failure is not None for outcome in outcomes)
    if arguments.json:
        rows = [{**dataclasses.asdict(one), "configuration": one.configuration._asdict()} for one in outcomes]
        _print_json([{**row.pop("configuration"), **row, "share": one.share} for row, one in zip(rows, outcomes)])
    else:
        print(f"{len(outcomes)} configurations, {failed} failed, {sum(outcome.seconds for outcome in outcomes):.0f} s")
    for path, write in ((arguments.tables, study.write_tables), (arguments.plot, study.write_plot)):
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write(write(outcomes))
    if arguments.page:
        with open(arguments.page, encoding="utf-8") as file:
            page = study.update_page(file.read(), outcomes)
        with open(arguments.page, "w", encoding="utf-8") as file:
            file.write(page)
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    from .protocol._command import compare

    return compare(arguments)


def _add_compare_options(parser: argparse.ArgumentParser) -> None:
    """Those of `kas-research compare`."""
    add = parser.add_argument
    add("spec", help="the file that says what is compared (research/guide/discovery.md)")
    add("--store", help="the file that keeps trainings and times; the same command goes on (default: SPEC.jsonl)")
    add("--list", action="store_true", help="list the trainings that are missing, and train nothing")
    add("--search", action="store_true", help="look for operators for each stage of the network; print candidates")
    add("--chosen", action="append", default=[], metavar="NAME", help="a candidate that is to be reported")
    add("--processes", type=int, help="trainings at once (default: the number of cores)")
    add("--retry", action="store_true", help="train those again that failed")
    add("--latency", action="store_true", help="time all points again")
    add("--batch", type=int, default=1, help="images of a call that is timed; other than 1: of 'dense' and candidates")
    add("--threads", type=int, default=1, help="threads of a call that is timed, likewise")
    add("--peers", metavar="PYTHON", help="an interpreter that has ONNX Runtime or OpenVINO, to time them as well")
    add("--no-training", action="store_true", help="train nothing: for times, on a machine that is quiet now")
    add("--report-only", action="store_true", help="train and time nothing")
    add("--tables", metavar="FILE.md", help="write the tables")
    add("--plot", metavar="FILE.svg", help="write the figure")
    add("--page", metavar="FILE.md", help="write the tables where a page has marks for them")
    add("--json", action="store_true", help="print what was found as JSON; progress is on the standard error stream")
    add("--quiet", action="store_true")


def _add_fields_options(parser: argparse.ArgumentParser) -> None:
    """Those of `kas-research fields`."""
    add = parser.add_argument
    add("spec", help="the file that says what is trained (research/guide/fields.md)")
    add("--experiment", default="pilot", metavar="NAME", help="one of the file (default: pilot)")
    add("--store", help="the file that keeps times and trainings; the same command goes on (default: SPEC.jsonl)")
    add("--checkpoints", metavar="FOLDER", help="of trainings that have not ended (default: STORE.checkpoints)")
    add("--list", action="store_true", help="list the trainings that are missing, and time and train nothing")
    add("--no-training", action="store_true", help="time what is missing and train nothing")
    add("--report-only", action="store_true", help="time and train nothing")
    add("--verdict", action="store_true", help="decide on the finalists by what the store has")
    add("--use", metavar="FAMILY", help="put its trained networks beside solvers of the equations (-o)")
    add("-o", "--output", metavar="FOLDER", help="for --use: networks, files for C, pictures, a page")
    add("--plot", metavar="FILE.svg", help="write the figure")
    add("--page", metavar="FILE.md", help="write the tables where a page has marks for them")
    add("--quiet", action="store_true")


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    """Those of `kas-research study`."""
    parser.add_argument("spec", help="the file that says what to run (research/guide/studies.md)")
    parser.add_argument("--database", help="the file that keeps the study; the same command goes on (default: SPEC.db)")
    parser.add_argument(
        "--list", action="store_true", help="list the configurations, and which make no sense, and measure nothing"
    )
    parser.add_argument("--retry", action="store_true", help="measure those again that failed")
    parser.add_argument("--tables", metavar="FILE.md", help="write the tables")
    parser.add_argument("--plot", metavar="FILE.svg", help="write the plot")
    parser.add_argument("--page", metavar="FILE.md", help="write the tables where a page has marks for them")
    parser.add_argument(
        "--json", action="store_true", help="print the outcomes as JSON; progress is on the standard error stream"
    )
    parser.add_argument("--quiet", action="store_true")


def _fields(arguments: argparse.Namespace) -> int:
    from .fields._command import run

    return run(arguments)


_OTHER = {
    "bench1": "make and read KAS-Bench-1",
    "zoo": "train networks of a comparison and add them to kas.zoo",
}
"""Commands with parsers of their own."""


def make_parser() -> argparse.ArgumentParser:
    """The parser of the commands but those of `_OTHER`, which it only lists."""
    parser = argparse.ArgumentParser(
        prog="kas-research", description="Experiments with kas. 'kas-research COMMAND --help' has the options."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in _OTHER.items():
        commands.add_parser(name, help=text)
    compare = commands.add_parser("compare", help="train and time operators in networks beside baselines")
    _add_compare_options(compare)
    compare.set_defaults(run=_compare)
    fields = commands.add_parser("fields", help="train and time layers in networks from fields to fields")
    _add_fields_options(fields)
    fields.set_defaults(run=_fields)
    study = commands.add_parser("study", help="measure models x compressions x algorithms x schedules x targets")
    _add_study_options(study)
    study.set_defaults(run=_study)
    return parser


def _run_other(name: str, arguments: list[str]) -> int:
    if name == "bench1":
        from .bench1 import _command

        return _command.main(arguments)
    from . import zoo

    return zoo.main(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code.

    That is 0; 1 for an error, whose message is on the standard error stream; 2 for wrong arguments; 130 for what Ctrl-C
    ended.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)

    def run() -> int:
        if arguments and arguments[0] in _OTHER:
            return _run_other(arguments[0], arguments[1:])
        options = make_parser().parse_args(arguments)
        code: int = options.run(options)
        return code

    return run_command(run)


if __name__ == "__main__":
    sys.exit(main())
