# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A search database in the form that the page takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._errors import Error
from .._search import SearchSpace
from .._search_database import SearchDatabase
from . import _comparison as comparison
from ._command import get_command
from ._texts import Parsed, parse_texts

_FIELDS = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')

# Operators in one module are parsed many times faster than alone.
_BATCH = 256


class Database:
    """A search database, read-only, also while a search writes it.

    Raises `FileNotFoundError` or `ValueError` when the file is not a search database of this version.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._database = SearchDatabase(path)
        self.path = self._database.path
        self.settings = self._database.settings
        # What the metric `flops` of databases counts that do not say so.
        if not {"network_search", "kernel_search"} & self.settings.keys():
            self.settings.setdefault("flops_of", "weights one by one")
        self.layers = self._read_layers()
        self._known: dict[int, tuple[str, list[str]]] = {}

    def _read_layers(self) -> list[tuple[dict[str, int], int]]:
        """The bindings of the space with their multiplicities."""
        try:
            space = SearchSpace(self.settings.get("space", ""))
        except Error:
            return []
        return list(zip(space.bindings, space.multiplicities))

    def get_version(self) -> str:
        """Changes when something that the page shows does."""
        with self._database.snapshot() as snapshot:
            return snapshot.read_version()

    def read_summary(self) -> dict[str, Any]:
        """All candidates in columns, in the order of their proposal, and what the search was."""
        with self._database.snapshot() as snapshot:
            version = snapshot.read_version()
            rows = snapshot.read_rows()
            metrics = snapshot.read_metrics()
            # A candidate that failed in the final round, too, is shown with that reason.
            failures = {candidate: reasons[-1] for candidate, reasons in snapshot.read_failures().items()}
            statistics = snapshot.read_statistics()
            curves = snapshot.read_trainings()
            baselines = snapshot.read_baselines()
        position = {row.id: index for index, row in enumerate(rows)}
        columns: comparison.Columns = {
            name: [None] * len(rows) for name in sorted({name for own in metrics.values() for name in own})
        }
        for candidate, own in metrics.items():
            for name, value in own.items():
                columns[name][position[candidate]] = value
        reasons, reason_of = _group(failures)
        start = min((row.asked_at for row in rows), default=0)
        marks = self._read_marks([row.id for row in rows])
        return {
            "version": version,
            "name": os.path.basename(self.path),
            "settings": self.settings,
            "statistics": statistics,
            "command": get_command(
                self.settings, len(rows), [baselines[id][0] for id in sorted(baselines, reverse=True)]
            ),
            "start": start,
            "ids": [row.id for row in rows],
            "parents": [row.parent for row in rows],
            "states": "".join({"asked": "a", "evaluated": "e", "failed": "f"}[row.state] for row in rows),
            "times": [round(row.asked_at - start, 3) for row in rows],
            "seconds": [row.seconds for row in rows],
            "reasons": reasons,
            "reason": [reason_of.get(row.id, -1) for row in rows],
            "formulas": [formula for formula, _ in marks],
            "warnings": [warnings for _, warnings in marks],
            "warning_texts": comparison.WARNINGS,
            **self._compare(columns, curves, position, baselines),
        }

    def _compare(
        self,
        columns: comparison.Columns,
        curves: dict[int, list[comparison.Curve]],
        position: dict[int, int],
        baselines: dict[int, tuple[str, str]],
    ) -> dict[str, Any]:
        """The metrics in columns that are compared, what they are compared with, and the best candidate."""
        objective = self.settings.get("objective", "")
        rungs = comparison.find_rungs(columns)
        own = {position[candidate]: curve for candidate, curve in curves.items() if candidate in position}
        trained = comparison.find_trained(self.settings, columns, own)
        after = comparison.split_rungs(columns, own, rungs, trained)
        shown = self._describe_baselines(curves, rungs, baselines, trained)
        # `accuracy_3` is a column of its own now; `accuracy` has the last rung that each one reached.
        mixed = [name for name in trained if name in columns and rungs]
        columns = {name: values for name, values in columns.items() if not _is_of_rung(name, rungs)} | after
        names = [name for name in columns if name not in mixed]
        maximized = _get_maximized(objective, list(columns))
        axes = _get_axes(objective, names, rungs, trained)
        plotted = {name: columns[name] for name in names}
        y = axes[1] if axes else None
        best = comparison.choose_candidate(objective, plotted, y, maximized)
        ids = list(position)
        for baseline in shown:
            baseline["metrics"] = {name: value for name, value in baseline["metrics"].items() if name in columns}
        shown = [baseline for baseline in shown if baseline["metrics"]]
        known = {baseline["name"]: baseline["metrics"] for baseline in shown}
        chosen = None if best is None else (ids[best], best)
        return {
            "metrics": columns,
            "mixed": mixed,
            "units": {name: unit for name in columns if (unit := self._get_unit(name))},
            "maximized": maximized,
            "axes": axes,
            "baselines": shown,
            "verdict": comparison.compare_with_baselines(objective, plotted, known, chosen, y, maximized, trained),
            "best": None if best is None else ids[best],
        }

    def _get_unit(self, name: str) -> str:
        """The unit of a metric; the loss of a task of the caller's own has none that is known."""
        return "" if "task" in self.settings and "loss" in name else comparison.get_unit(name)

    def _describe_baselines(
        self,
        curves: dict[int, list[comparison.Curve]],
        rungs: list[int],
        baselines: dict[int, tuple[str, str]],
        trained: Sequence[str],
    ) -> list[dict[str, Any]]:
        """What candidates are compared with, the network itself first."""
        costs = comparison.find_costs(self.settings.get("space", ""))
        everything = {_NETWORK_ID: (comparison.NETWORK, ""), **baselines}
        texts = {id: text for id, (_, text) in everything.items() if text}
        parsed = parse_texts(texts)
        result = []
        for id in sorted(everything, reverse=True):
            name, text = everything[id]
            metrics = comparison.find_baseline(costs if id == _NETWORK_ID else {}, curves.get(id, []), rungs, trained)
            if id == _NETWORK_ID:
                costs = {**costs, **{cost: metrics[cost] for cost in ("flops", "params") if cost in metrics}}
            if "flops" in metrics and costs.get("flops"):
                metrics["flops_ratio"] = metrics["flops"] / costs["flops"]
            formula, warnings = _get_marks(parsed.get(id), text)
            result.append({"name": name, "metrics": metrics, "formula": formula, "warnings": warnings, "text": text})
        return result

    def _read_marks(self, ids: list[int]) -> list[tuple[str, list[str]]]:
        """Formula and warnings of each; what was read before is kept, as an operator does not change."""
        missing = [id for id in ids if id not in self._known]
        with self._database.snapshot() as snapshot:
            for start in range(0, len(missing), _BATCH):
                texts = snapshot.read_texts(missing[start : start + _BATCH])
                parsed = parse_texts(texts)
                for id, text in texts.items():
                    self._known[id] = _get_marks(parsed.get(id), text)
        return [self._known[id] for id in ids]

    def read_details(self, ids: Iterable[int], drawn: set[int] | None = None) -> Iterator[dict[str, Any]]:
        """Of each candidate what the page shows when it is chosen; a picture of its graph if it is in `drawn` (all)."""
        ids = list(ids)
        with self._database.snapshot() as snapshot:
            for start in range(0, len(ids), _BATCH):
                batch = ids[start : start + _BATCH]
                texts = snapshot.read_texts(batch)
                failures = snapshot.read_failures(batch)
                curves = snapshot.read_curves(batch)
                parsed = parse_texts(texts)
                wanted = {id: one for id, one in parsed.items() if drawn is None or id in drawn}
                graphs = _lay_out({id: [operator.graph for operator in one.operators] for id, one in wanted.items()})
                for candidate in batch:
                    yield {
                        "text": texts[candidate],
                        "failures": failures.get(candidate, []),
                        "curves": curves.get(candidate, []),
                        **(parsed[candidate].describe(self.layers) if candidate in parsed else {}),
                        **({"pictures": graphs[candidate]} if candidate in graphs else {}),
                    }


def _get_marks(parsed: Parsed | None, text: str) -> tuple[str, list[str]]:
    """Formula and warnings."""
    return (parsed.formula, parsed.find_warnings(text)) if parsed else ("", [])


_NETWORK_ID = -1


def _is_of_rung(name: str, rungs: list[int]) -> bool:
    return any(name == f"{one}_{rung}" for one in comparison.TRAINED for rung in rungs)


def _group(failures: dict[int, str]) -> tuple[list[list[str | int]], dict[int, int]]:
    """Reasons that differ in numbers only are one: `[reason, count]`, the most frequent first."""
    kinds: dict[str, list[int]] = {}
    for candidate, failure in failures.items():
        line = failure.strip().split("\n")[0] or "no reason given"
        kinds.setdefault(re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "#", line)[:200], []).append(candidate)
    ordered = sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))
    index = {candidate: number for number, (_, members) in enumerate(ordered) for candidate in members}
    return [[reason, len(members)] for reason, members in ordered], index


def _get_maximized(objective: str, names: list[str]) -> list[str]:
    """Metrics that are better when larger: those that the objective subtracts, and accuracies."""
    subtracted = re.findall(r"-\s*(?:[\d.e+]+\s*\*\s*)?([A-Za-z_]\w*)", objective)
    return [name for name in names if name in subtracted or ("accuracy" in name and not name.endswith("_deviation"))]


def _get_axes(objective: str, names: list[str], rungs: list[int], trained: Sequence[str]) -> list[str]:
    """The two metrics of the front; of those of trainings what was trained longest."""
    words = re.findall(r"[A-Za-z_]\w*", objective)
    columns = [name_of_last(word, rungs) if word in trained else word for word in words]
    mentioned = [name for name in dict.fromkeys(columns) if name in names]
    last = name_of_last("accuracy", rungs)
    wishes = [*mentioned, last, "latency_ms", "predicted_ms", "params", *names]
    costs = [name for name in ("latency_ms", "predicted_ms", "flops", "params", *names) if name in names]
    if not costs:
        return []
    x = mentioned[0] if len(mentioned) > 1 else costs[0]
    y = next((name for name in wishes if name in names and name != x), x)
    return [x, y]


def name_of_last(name: str, rungs: list[int]) -> str:
    """The column of a metric of a training with what was trained longest."""
    return comparison.name_rung(name, rungs[-1]) if rungs else name


def choose_best(summary: dict[str, Any], count: int) -> set[int]:
    """The identifiers of those that people look at: the best in each metric in turn, then the first."""
    ids = summary["ids"]
    if len(ids) <= count:
        return set(ids)
    rankings = []
    for name, values in summary["metrics"].items():
        sign = -1 if name in summary["maximized"] else 1
        known = [index for index, value in enumerate(values) if value is not None]
        rankings.append(sorted(known, key=lambda index: sign * values[index]))
    chosen: dict[int, None] = {}
    for position in range(len(ids)):
        for ranking in rankings:
            if position < len(ranking) and len(chosen) < count:
                chosen[ids[ranking[position]]] = None
    return set(chosen) | set(ids[: count - len(chosen)])


def _lay_out(graphs: dict[int, list[str]]) -> dict[int, list[Any]]:
    """Places for the nodes and edges, by Graphviz: of each graph `[width, height, nodes, edges]`.

    These are points, down from the top. A node is `[label, x, y, width, height, kind]`, an edge
    `[label, x, y, points]`. Empty where `dot` is not installed.
    """
    dot = shutil.which("dot")
    if not dot or not graphs:
        return {}
    try:
        output = subprocess.run(
            [dot, "-Tplain"],
            input="\n".join(text for texts in graphs.values() for text in texts),
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    pictures = output.split("\nstop")
    if len(pictures) != sum(map(len, graphs.values())) + 1:
        return {}
    left = iter(pictures)
    return {candidate: [_read_picture(next(left)) for _ in texts] for candidate, texts in graphs.items()}


def _read_picture(text: str) -> list[Any]:
    width = height = 0.0
    nodes, edges = [], []

    def point(x: str, y: str) -> list[int]:
        return [round(72 * float(x)), round(72 * (height - float(y)))]

    for line in text.strip().splitlines():
        # There are quotes where a field has other characters than letters and digits.
        kind, *fields = (
            quoted[1:-1].replace('\\"', '"') if quoted[0] == '"' else quoted for quoted in _FIELDS.findall(line)
        )
        if kind == "graph":
            width, height = float(fields[1]), float(fields[2])
        elif kind == "node":
            size = [round(72 * float(value)) for value in fields[3:5]]
            shape = 1 if fields[7] == "ellipse" else 2 if fields[7] == "box3d" else 0
            nodes.append([fields[5].replace("\\N", fields[0]), *point(*fields[1:3]), *size, shape])
        elif kind == "edge":
            count = int(fields[2])
            points = [number for i in range(count) for number in point(*fields[3 + 2 * i : 5 + 2 * i])]
            rest = fields[3 + 2 * count :]
            label = [rest[0], *point(*rest[1:3])] if len(rest) == 5 else ["", 0, 0]
            edges.append([*label, points])
    return [round(72 * width), round(72 * height), nodes, edges]


__all__ = ["Database", "choose_best"]
