# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `kas`: accelerate, search, report, show, export, bench, doctor, cache, completion."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from . import _cache
from ._completion import SHELLS, write_completion
from ._doctor import examine, render
from ._errors import Error, MissingExtraError
from ._module import Binding, Module, Operator
from ._module import operator as named_operator
from ._options import (
    add_accelerate_options,
    add_c_options,
    add_report_options,
    add_search_options,
    add_training_options,
)
from ._search import SearchSpace
from ._search_database import SearchDatabase
from ._sequence import OperatorSequence


class UsageError(Exception):
    """Something that the caller can put right; the message says how."""


# Reading databases


def _is_database(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _find_operator(source: str, candidate: int | None) -> tuple[Operator, SearchSpace | None, dict[str, float]]:
    """An operator of a database, of a file of MLIR, or of the library; its space and metrics where it has them."""
    if not os.path.isfile(source):
        if source.endswith((".db", ".mlir")) or os.sep in source:
            raise UsageError(f"there is no file '{source}'")
        try:
            return named_operator(source), None, {}
        except KeyError as error:
            raise UsageError(error.args[0]) from error
    if not _is_database(source):
        try:
            with open(source, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError as error:
            raise UsageError(f"'{source}' is neither a search database nor text") from error
        module = Module(text, source)
        names = module.operators
        if not names:
            raise UsageError(f"'{source}' has no kas.operator")
        index = candidate or 0
        if not 0 <= index < len(names):
            raise UsageError(f"'{source}' has operators 0 to {len(names) - 1}, got {index}")
        return module[names[index]].alone(), None, {}
    database = SearchDatabase(source)
    if candidate is None:
        raise UsageError("requires the number of a candidate of the database; kas show DATABASE lists the best")
    with database.snapshot() as snapshot:
        texts = snapshot.read_texts([candidate])
        if candidate not in texts:
            raise UsageError(f"the database has no candidate {candidate}")
        metrics = snapshot.read_metrics([candidate]).get(candidate, {})
    return Module(texts[candidate])["candidate"], SearchSpace(database.settings["space"]), metrics


# Commands


def _accelerate(arguments: argparse.Namespace) -> int:
    from ._accelerate import _command

    return _command.run(arguments)


def _search(arguments: argparse.Namespace) -> int:
    from . import _model_search
    from .evaluate.__main__ import load_network, load_task, make_recipe
    from .evaluate._data_sets import load_any_data
    from .evaluate._halving import Halving

    def numbers(entries: Sequence[str], what: str) -> dict[str, float]:
        result: dict[str, float] = {}
        for entry in entries:
            name, separator, value = entry.partition("=")
            try:
                result[name] = int(value) if value.lstrip("-").isdigit() else float(value)
            except ValueError:
                separator = ""
            if not separator:
                raise UsageError(f"{what} must be NAME=NUMBER, got '{entry}'")
        return result

    space: Any = arguments.space
    if arguments.space_file:
        with open(arguments.space_file, encoding="utf-8") as file:
            space = SearchSpace(Module(file.read(), arguments.space_file), arguments.space)
    network, data = load_network(arguments.network), load_any_data(arguments.data, arguments.data_path)
    outcome = _model_search.search(
        network,
        data,
        arguments.budget,
        task=load_task(arguments.task, data),
        space=space,
        sites=arguments.sites,
        limits=numbers(arguments.limit, "a limit"),
        binding=arguments.binding,
        recipe=make_recipe(arguments),
        algorithm=arguments.algorithm,
        parameters=numbers(arguments.parameter, "a parameter"),
        objective=arguments.objective,
        halving=Halving.off() if arguments.no_halving else Halving(),
        translation_equivariant=arguments.translation_equivariant,
        flops_ratio=arguments.flops_ratio,
        min_flops_ratio=arguments.min_flops_ratio,
        seed=arguments.seed,
        final=arguments.final,
        final_seeds=arguments.final_seeds,
        latency=arguments.latency,
        database=arguments.database,
        workers=arguments.workers,
        time_limit=arguments.time_limit,
        memory_limit=arguments.memory_limit,
        device=arguments.device,
        baselines=_read_baselines(arguments.baseline),
        progress=not arguments.quiet,
    )
    if arguments.json:
        _print_json(
            {
                "complete": outcome.is_complete,
                "best": None if outcome.best is None else outcome.best.id,
                "network itself": outcome.dense,
                "baselines": outcome.baselines,
                "candidates": outcome.rows(),
            }
        )
    elif outcome.best is not None:
        print(outcome.best.candidate.text, end="")
    return 0 if outcome.is_complete else 130


def _read_baselines(sources: Sequence[str]) -> dict[str, str | Operator | OperatorSequence]:
    """Operators of the library by their names; of files the sequences or, where there is none, the operators."""
    found: dict[str, str | Operator | OperatorSequence] = {}
    for source in sources:
        if not os.path.isfile(source):
            if source.endswith(".mlir") or os.sep in source:
                raise UsageError(f"there is no file '{source}'")
            found[f"kas.{source.removeprefix('kas.')}"] = source
            continue
        with open(source, encoding="utf-8") as file:
            module = Module(file.read(), source)
        found.update(module.sequences)
        if not module.sequences:
            found.update((name, module[name]) for name in module.operators)
    return found


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def _doctor(arguments: argparse.Namespace) -> int:
    findings = examine()
    if arguments.json:
        _print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        print(render(findings))
    return 0


def _cache_command(arguments: argparse.Namespace) -> int:
    if arguments.clear:
        _cache.clear()
    state = _cache.get_state()
    if arguments.json:
        _print_json(state._asdict())
    else:
        print(f"{state.directory}: {state.entries} entries, {state.bytes / 2**20:.1f} of {state.limit >> 20} MB")
    return 0


def _report(arguments: argparse.Namespace) -> int:
    if arguments.layers == (arguments.database is not None):
        raise UsageError(f"requires the database of a search or --layers, got {'both' if arguments.layers else 'none'}")
    if arguments.layers:
        from ._accelerate import _learnt

        return _learnt.report(arguments.json)
    from . import report

    return report.run(arguments)


def _show(arguments: argparse.Namespace) -> int:
    if arguments.candidate is None and os.path.isfile(arguments.source) and _is_database(arguments.source):
        return _list(arguments)
    operator, space, metrics = _find_operator(arguments.source, arguments.candidate)
    costs = []
    for binding in [arguments.bind] if arguments.bind else (space.bindings if space else []):
        if not isinstance(binding, str):
            binding = {name: binding[name] for name in (*operator.symbols[0], *operator.symbols[1])}
        costs.append((binding, operator.cost(binding)))
    by_position = operator.weights_indexed_by_position
    if arguments.json:
        rows = [{"binding": binding, **cost._asdict()} for binding, cost in costs]
        facts = {"formula": operator.formula, "weights_indexed_by_position": by_position, "metrics": metrics}
        _print_json({**facts, "costs": rows})
        return 0
    print(operator.formula)
    print(f"weights indexed by a position: {'yes' if by_position else 'no'}")
    for name, value in sorted(metrics.items()):
        print(f"{name}: {value:.6g}")
    for binding, cost in costs:
        print(f"{binding}: {cost.flops} FLOPs, {cost.parameters} parameters, {cost.bytes} bytes")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    """The best of a database."""
    database = SearchDatabase(arguments.source)
    with database.snapshot() as snapshot:
        known, values = snapshot.read_rows(), snapshot.read_metrics()
    counts = dict(sorted(Counter(row.state for row in known).items()))
    rows = [(row.id, values.get(row.id, {})) for row in known if row.state == "evaluated"]
    objective = database.settings.get("objective", "")
    wishes = ["accuracy", objective.removeprefix("-")]
    own = next((name for name in wishes if any(name in metrics for _, metrics in rows)), "flops")
    name = arguments.sort or own
    if rows and not any(name in metrics for _, metrics in rows):
        raise UsageError(f"no candidate has the metric '{name}', only {', '.join(sorted(rows[0][1]))}")
    is_maximized = "accuracy" in name or (objective == f"-{own}" and name.endswith(own))
    sign = -1 if is_maximized else 1
    rows = [row for row in rows if name in row[1]]
    # Of those trained longest first: the others' accuracies are of another training.
    rows.sort(key=lambda row: (-row[1].get("epochs", 0), sign * row[1][name], row[0]))
    if arguments.json:
        _print_json({"states": counts, "candidates": [{"id": id, "metrics": all} for id, all in rows[: arguments.top]]})
        return 0
    print(", ".join(f"{count} {state}" for state, count in counts.items()) or "no candidates")
    columns = [
        c
        for c in dict.fromkeys(
            (own, "epochs", f"final_test_{own}", "flops_ratio", "flops", "params", "latency_ms", "final_latency_ms")
        )
        if any(c in metrics for _, metrics in rows)
    ]
    print("".join(f"{column:>20}" for column in ("candidate", *columns)))
    for id, metrics in rows[: arguments.top]:
        print(f"{id:>20}" + "".join(f"{metrics[c]:>20.6g}" if c in metrics else f"{'':>20}" for c in columns))
    return 0


def _export(arguments: argparse.Namespace) -> int:
    if arguments.format == "c":
        from ._export_c import export_c

        files = export_c(arguments)
        if arguments.json:
            _print_json({"format": "c", "output": arguments.output, "files": files})
        else:
            with open(os.path.join(arguments.output, "memory.txt"), encoding="utf-8") as file:
                print(file.read(), end="")
        return 0
    if arguments.format == "compiled":
        from ._export_c import export_compiled

        export_compiled(arguments)
        if arguments.json:
            _print_json({"format": "compiled", "output": arguments.output})
        return 0
    operator, space, _ = _find_operator(arguments.source, arguments.candidate)
    binding: Any = arguments.bind
    if arguments.format in ("pytorch", "loops", "onnx") and binding is None:
        if space is None:
            raise UsageError(f"--format={arguments.format} requires sizes: --bind=N=1,...")
        binding = {name: space.bindings[0][name] for name in (*operator.symbols[0], *operator.symbols[1])}
    facts = {"formula": operator.formula, "format": arguments.format, "output": arguments.output}
    if arguments.format == "onnx":
        if arguments.output is None:
            raise UsageError("--format=onnx requires a file: -o FILE.onnx")
        from .onnx import export

        export(operator, binding, arguments.output)
        if arguments.json:
            _print_json(facts)
        return 0
    writers: dict[str, Callable[[], str]] = {
        "mlir": lambda: str(operator),
        "pytorch": lambda: operator.to_pytorch(binding),
        "loops": lambda: operator.loop_nest(binding),
        "graph": lambda: operator.graph,
    }
    text = writers[arguments.format]()
    if arguments.output is not None:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text)
    if arguments.json:
        _print_json({**facts, "text": text} if arguments.output is None else facts)
    elif arguments.output is None:
        print(text, end="" if text.endswith("\n") else "\n")
    return 0


def _bench(arguments: argparse.Namespace) -> int:
    import numpy

    operator, space, _ = _find_operator(arguments.source, arguments.candidate)
    names = [*operator.symbols[0], *operator.symbols[1]]
    bindings: list[Binding]
    if arguments.bind is not None:
        bindings = [arguments.bind]
    elif space is not None:
        bindings = [{name: binding[name] for name in names} for binding in space.bindings]
    else:
        raise UsageError("requires sizes: --bind=N=1,...")
    results = []
    for binding in bindings:
        function = operator.compile(binding, threads=arguments.threads)
        generator = numpy.random.default_rng(0)
        arrays = [generator.standard_normal(shape, dtype=numpy.float32) for _, shape in function.arguments]
        out = function(*arrays)
        times = []
        for _ in range(arguments.runs):
            start = time.perf_counter()
            function(*arrays, out=out)
            times.append(1e3 * (time.perf_counter() - start))
        flops = operator.existing_flops(binding)
        median = statistics.median(times)
        results.append(
            {
                "binding": binding,
                "runs": arguments.runs,
                "median_ms": median,
                "min_ms": min(times),
                "gflops": flops / median / 1e6,
                "compile_ms": function.compile_milliseconds,
            }
        )
        if arguments.json:
            continue
        print(
            f"{binding}: {median:.4g} ms (median of {arguments.runs}, least {min(times):.4g}), "
            f"{flops / median / 1e6:.3g} GFLOP/s, compiled in {function.compile_milliseconds:.0f} ms"
        )
    if arguments.json:
        _print_json(results)
    return 0


def _complete(arguments: argparse.Namespace) -> int:
    print(write_completion(make_parser(), arguments.shell), end="")
    return 0


# The parser

_GROUPS = {
    "make networks faster": {
        "accelerate": "from a trained network and its data to a faster one that is as accurate",
    },
    "find operators": {
        "search": "look for operators for a network, by training it with them",
        "report": "write the page on a search, or serve it",
        "show": "the best of a search, or one operator",
    },
    "use operators": {
        "export": "write an operator as a file, or a network as a folder for C or a compiled file",
        "bench": "compile an operator for this CPU and time it",
    },
    "this machine": {
        "doctor": "what is there, what is missing, and how to get it",
        "cache": "how much of what was compiled is kept for later, and where",
        "completion": "print what lets a shell complete commands and options",
    },
}
_HELP = {name: text for commands in _GROUPS.values() for name, text in commands.items()}
_COMPLETION = """Prints a script for the shell. Once for all later shells:

  bash  kas completion bash > ~/.local/share/bash-completion/completions/kas
  zsh   kas completion zsh > FOLDER/_kas, with a FOLDER of $fpath
  fish  kas completion fish > ~/.config/fish/completions/kas.fish"""
_OF_RESEARCH = ("bench1", "compare", "study")
"""Commands of the package kas-research."""
_EXIT_CODES = """exit codes:
  0    done
  1    an error, whose message is on the standard error stream
  2    wrong arguments
  3    kas accelerate: no network is as fast, or as accurate, as requested
  130  ended by Ctrl-C; with a database or a folder the same command goes on"""


def _describe_commands() -> str:
    """All commands in groups, and the exit codes."""
    lines = []
    for group, commands in _GROUPS.items():
        lines += [f"{group}:", *(f"  {name:<12}{text}" for name, text in commands.items()), ""]
    return "\n".join([*lines, _EXIT_CODES])


def _count_from(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) < 1 << 31:
            raise argparse.ArgumentTypeError(f"requires an integer of at least {least}, got '{text}'")
        return int(text)

    return read


def _add_accelerate(commands: Any) -> None:
    parser = commands.add_parser("accelerate", help=_HELP["accelerate"])
    add_accelerate_options(parser)
    parser.set_defaults(run=_accelerate)


def _add_search(commands: Any) -> None:
    parser = commands.add_parser("search", help=_HELP["search"])
    add_training_options(parser)
    add_search_options(parser)
    parser.set_defaults(run=_search)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = argparse.ArgumentParser(
        prog="kas",
        usage="kas [-h] COMMAND ...",
        description="Discovers and compiles new neural-network operators. 'kas COMMAND --help' has the options.",
        epilog=_describe_commands(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", help=argparse.SUPPRESS)
    _add_accelerate(commands)
    _add_search(commands)
    report = commands.add_parser("report", help=_HELP["report"])
    add_report_options(report)
    report.set_defaults(run=_report)
    show = commands.add_parser("show", help=_HELP["show"])
    show.add_argument(
        "--sort", help="the metric to sort by (default: accuracy, else that of the objective, else flops)"
    )
    show.add_argument("--top", type=_count_from(1), default=20, help="how many candidates (default 20)")
    show.set_defaults(run=_show)
    export = commands.add_parser("export", help=_HELP["export"])
    export.add_argument(
        "--format", choices=("mlir", "pytorch", "loops", "graph", "onnx", "c", "compiled"), default="mlir"
    )
    export.add_argument("-o", "--output", help="the file (default: the standard output); for c the folder")
    add_c_options(export)
    export.set_defaults(run=_export)
    bench = commands.add_parser("bench", help=_HELP["bench"])
    bench.add_argument("--runs", type=_count_from(1), default=21)
    bench.add_argument("--threads", type=_count_from(0), default=1, help="0 leaves the number to OpenMP (default 1)")
    bench.set_defaults(run=_bench)
    doctor = commands.add_parser("doctor", help=_HELP["doctor"])
    doctor.set_defaults(run=_doctor)
    cache = commands.add_parser("cache", help=_HELP["cache"], description=_cache.__doc__.partition("\n\n")[2])
    cache.add_argument("--clear", action="store_true", help="remove all of it")
    cache.set_defaults(run=_cache_command)
    completion = commands.add_parser(
        "completion",
        help=_HELP["completion"],
        description=_COMPLETION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", choices=tuple(SHELLS), help="the shell")
    completion.set_defaults(run=_complete)
    for command in (show, export, bench, doctor, cache):
        command.add_argument("--json", action="store_true", help="print JSON")
    for command in (show, export, bench):
        what = "the database of a search, a file of MLIR, or the name of an operator"
        what += "; for c and compiled a network: FILE.py:NAME or FILE.onnx" if command is export else ""
        command.add_argument("source", help=what)
        command.add_argument("candidate", type=int, nargs="?", help="its number in the database or file")
        command.add_argument(
            "--bind", help="values for the symbols, e.g. N=1,Cin=64 (default: the bindings of the search)"
        )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code.

    That is 0; 1 for an error, whose message is on the standard error stream; 2 for wrong arguments; 3 for `accelerate`
    without a network as requested; 130 for what Ctrl-C ended.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments and arguments[0] in _OF_RESEARCH:
        name = arguments[0]
        print(f"error: 'kas {name}' is now 'kas-research {name}', of the package kas-research", file=sys.stderr)
        return 2

    def run() -> int:
        if arguments[:1] in (["accelerate"], ["search"]):
            from ._errors import need

            need("torch", "torch")
        options = make_parser().parse_args(arguments)
        code: int = options.run(options)
        return code

    return run_command(run)


def run_command(command: Callable[[], int]) -> int:
    """Runs a command and returns its exit code, or the one of what it raises, whose message is printed."""
    try:
        return command()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever reads has enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    except (UsageError, MissingExtraError, OSError, ValueError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
