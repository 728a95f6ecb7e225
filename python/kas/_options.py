# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of commands; they need neither torch nor other packages."""

from __future__ import annotations

import argparse

from ._search import ALGORITHMS


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """The options of the network, the data and the recipe."""
    parser.add_argument(
        "--network", default="digits", help="'digits' or FILE.py:NAME, a callable that gives a torch.nn.Module"
    )
    parser.add_argument(
        "--data",
        default="digits",
        help="digits, moved_digits, fashion-mnist, mnist-5000, mnist1d, mnist, npz, cifar10, cifar100, folder, or "
        "FILE.py:NAME, a callable that gives a kas.evaluate.Data or TaskData (default digits)",
    )
    parser.add_argument(
        "--task", help="FILE.py:NAME, a callable that gives a kas.evaluate.Task (default: classification)"
    )
    parser.add_argument(
        "--sites",
        action="append",
        metavar="PATTERN",
        help="replace only layers of this name, e.g. 'blocks.*.mlp*'; may be repeated",
    )
    parser.add_argument("--data-path", help="the file or folder of the data set, where it is not part of a package")
    parser.add_argument("--space", help="the kind of layers to replace (default: the one with the most FLOPs)")
    parser.add_argument(
        "--binding", help="values for symbols of operators, e.g. g=4,k=3 (default: those of the layers)"
    )
    parser.add_argument(
        "--recipe", choices=("default", "cifar"), default="default", help="where the options below start from"
    )
    parser.add_argument("--epochs", type=int, help="passes over the training set")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--optimizer", choices=("adamw", "sgd"))
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--label-smoothing", type=float)
    parser.add_argument(
        "--milestone", action="append", default=[], metavar="EPOCH=ACCURACY", help="stop below it; may be repeated"
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default cpu)")


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """Those of `kas search` beside those of trainings."""
    add = parser.add_argument
    add("--space-file", help="a file with the kas.space to search, in place of that of the layers")
    add("--budget", default="15m", help="such as 90s, '15 min', 8h, '500 candidates' or '40 trainings' (default 15m)")
    add("--database", help="the file that keeps the search; the same command goes on")
    add(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="a limit of the space, e.g. shift=0; may be repeated",
    )
    add("--algorithm", default="surrogate", choices=ALGORITHMS, help="how candidates are chosen (default surrogate)")
    add("--parameter", action="append", default=[], metavar="NAME=NUMBER", help="a constant of the algorithm")
    add("--objective", help="what is to be small (default: the metric of the task, -accuracy)")
    add("--no-halving", action="store_true", help="train every candidate to the end")
    add("--translation-equivariant", action="store_true", help="leave out operators whose weights depend on a position")
    add("--flops-ratio", type=float, default=0.5, help="at most so many of the layers' FLOPs (default 0.5)")
    add("--min-flops-ratio", type=float, default=0.1, help="at least so many of them (default 0.1)")
    add("--seed", type=int, default=0)
    add("--final", type=int, default=5, help="train so many of the best with several seeds (default 5)")
    add("--final-seeds", type=int, default=3, help="how many seeds (default 3)")
    add("--latency", action="store_true", help="compile and time those")
    add(
        "--baseline",
        action="append",
        default=[],
        metavar="OPERATOR",
        help="compare with an operator of the library, or with those of a file of MLIR, too; may be repeated",
    )
    add("--json", action="store_true", help="print all that was found as JSON")
    add("--workers", type=int, help="processes that train (default: the number of cores)")
    add("--time-limit", type=float, help="seconds for a training (default: ten times the network's own)")
    add("--memory-limit", type=int, help="MiB of address space of a process")
    add("--quiet", action="store_true")


def add_accelerate_options(parser: argparse.ArgumentParser) -> None:
    """Those of `kas accelerate`."""
    add = parser.add_argument
    add("network", help="FILE.py:NAME, a callable that gives the trained torch.nn.Module")
    add("--weights", help="its weights, a .pt file with a state dictionary or a .safetensors file")
    add(
        "--data",
        default="digits",
        help="the name of a data set, or FILE.py:NAME, a callable that gives a kas.evaluate.Data or TaskData "
        "(default digits)",
    )
    add("--data-path", help="the file or folder of the data set, where it is not part of a package")
    add("--task", help="FILE.py:NAME, a callable that gives a kas.evaluate.Task (default: classification)")
    add(
        "--max-drop",
        type=float,
        default=0.5,
        help="what the metric may lose: points of accuracy, percent of another metric (default 0.5)",
    )
    add("--confidence", type=float, default=0.5, help="that the drop is not larger (default 0.5: what was measured)")
    add("--target", help="the time that is wanted instead, such as 0.5ms or 3x")
    add("--minutes", type=float, default=15.0, help="for all of it (default 15)")
    add("--threads", type=int, default=1, help="of a call that is timed (default 1)")
    add("--batch", type=int, default=1, help="examples of a call that is timed (default 1)")
    add("--precision", choices=("auto", "f32", "bf16", "int8"), default="auto", help="(default auto: the fastest)")
    add("--seed", type=int, default=0)
    add("--workers", type=int, help="trainings at once (default: the number of cores)")
    add("-o", "--output", help="the folder for the result; the same command goes on")
    add("--json", action="store_true", help="print what was measured as JSON")
    add("--quiet", action="store_true")


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Those of `kas report`."""
    parser.add_argument("database", nargs="?", help="the SQLite file of a search")
    parser.add_argument(
        "--layers", action="store_true", help="print the layers that won in runs of kas accelerate instead"
    )
    parser.add_argument("-o", "--output", help="where to write (default: the database's name with .html)")
    parser.add_argument("--live", action="store_true", help="serve the page instead, and follow the search")
    parser.add_argument("--port", type=int, default=0, help="the port to serve at (default: any that is free)")
    parser.add_argument(
        "--json", action="store_true", help="print what the page says as JSON, too; with --live its address"
    )


def add_c_options(parser: argparse.ArgumentParser) -> None:
    """The options of `--format=c` and `--format=compiled`."""
    group = parser.add_argument_group("--format=c and --format=compiled, of a network (FILE.py:NAME or FILE.onnx)")
    group.add_argument("--weights", help="for FILE.py:NAME: a state dictionary (.pt) or .safetensors")
    group.add_argument(
        "--shape",
        action="append",
        help="for FILE.py:NAME: the shape of an input, such as 1x3x32x32, or with a type 1x12:int64",
    )
    group.add_argument("--name", default="model", help="what functions and files are called (default: model)")
    group.add_argument("--precision", choices=("f32", "bf16", "int8"), default="f32", help="(default: f32)")
    group.add_argument(
        "--calibration", metavar="FILE.npy", help="with int8: examples [count, ...], which ranges are measured on"
    )
    group.add_argument("--triple", default="", help="the target; without --cpu for any CPU of it")
    group.add_argument("--cpu", default="", help="a CPU that LLVM knows, such as neoverse-n1")
    group.add_argument("--features", default="", help="changes to what the CPU has, such as +avx512f,-fma")
