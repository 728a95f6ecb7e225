# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command that makes a search again, from the settings of its database."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from ._comparison import NETWORK

# Settings that are options of -kas-search.
_OPTIONS = (
    "algorithm",
    "evaluators",
    "external",
    "limits",
    "objective",
    "parameters",
    "rungs",
    "seed",
    "training",
)


def get_command(settings: Mapping[str, str], count: int, baselines: Sequence[str] = ()) -> str:
    """What makes the same search again; `space.mlir` is the setting `space`.

    `baselines` are names of what candidates are compared with, beside the network itself.
    """
    baselines = [name for name in baselines if name != NETWORK]
    if "command" in settings:
        return settings["command"]
    if settings.get("evaluator") == "train":
        return _get_model_search(settings, count, baselines)
    if "evaluators" in settings:
        return _get_engine_search(settings, count, baselines)
    options = [repr(settings.get("algorithm", "")), f"seed={settings.get('seed', '0')}", *_get_objective(settings)]
    return f"kas.Searcher(space, {', '.join(options)})"


def _get_engine_search(settings: Mapping[str, str], count: int, baselines: Sequence[str]) -> str:
    options = [f"evaluations={count}", "threads=1"]
    for name in _OPTIONS:
        if value := settings.get(name):
            options.append(f"{name}='{value}'" if re.search(r"[\s{}]", value) else f"{name}={value}")
    if baselines:
        # They are kept in a database.
        options.append(f"baselines={','.join(baselines)} database=again.db")
    text = " ".join(options)
    quoted = shlex.quote(text) if re.search(r"[\"$`\\!]", text) else f'"{text}"'
    # The network that is trained is in the file that the space was extracted into.
    file = "sites.mlir" if "training" in settings or not all(map(is_named, baselines)) else "space.mlir"
    return f"kas-opt {file} -kas-search={quoted}"


def is_named(baseline: str) -> bool:
    """It is an operator of the library."""
    return baseline.startswith("kas.")


def _get_model_search(settings: Mapping[str, str], count: int, baselines: Sequence[str]) -> str:
    """A call of `kas.search`. The network is the caller's: a comment says which one it was."""
    data = settings.get("data", "").split(" ")[0]
    options = [
        f"data={data!r}",
        f"budget=kas.Budget(candidates={count})",
        "space=kas.SearchSpace(open('space.mlir').read())",
        f"recipe={settings.get('recipe', 'kas.Recipe()')}",
        f"halving={settings.get('halving', 'kas.Halving()')}",
        f"algorithm={settings.get('algorithm', 'surrogate')!r}",
        f"seed={settings.get('seed', '0')}",
        *_get_objective(settings),
        *([f"sites={settings['sites'].split(', ')!r}"] if "sites" in settings else []),
        *(["inherit=True"] if settings.get("inherit") == "True" else []),
        *(["translation_equivariant=True"] if settings.get("translation_equivariant") == "True" else []),
        "workers=1",
    ]
    if named := [name for name in baselines if is_named(name)]:
        options.append(f"baselines={named!r}")
    lines = "".join(f"    {option},\n" for option in options)
    if own := [name for name in baselines if not is_named(name)]:
        lines += f"    # baselines of its own: {', '.join(own)}\n"
    if "task" in settings:
        lines = f"    task=task,  # {settings['task']}\n{lines}"
    imports = "import kas\nfrom kas import Halving\nfrom kas.evaluate import Recipe\n"
    return f"{imports}# model: {settings.get('network', 'the network')}\nkas.search(\n    model,\n{lines})"


def _get_objective(settings: Mapping[str, str]) -> list[str]:
    return [f"objective={settings['objective']!r}"] if "objective" in settings else []
