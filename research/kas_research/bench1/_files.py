# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of the tables: compressed CSV with checksums, and a manifest that says how they were made."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import lzma
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields, replace
from pathlib import Path
from typing import Any

from ._space import DATA, PROPERTIES, SIZES
from ._table import Costs, Latency, Row, Table, Training

FORMAT = 2
"""Of the files: others are not read."""
VERSION = "2.1"
"""Of the benchmark."""
REFUSED: Mapping[Any, str] = {
    1: "its costs and times are of other sizes than its accuracies, and its layers made by hand have one width"
}
"""Why earlier formats are not read."""
MANIFEST = "manifest.json"
OPERATORS, COSTS, LATENCIES, TRAININGS = (f"{name}.csv.xz" for name in ("operators", "costs", "latencies", "trainings"))
COLUMNS: Mapping[str, tuple[str, ...]] = {
    OPERATORS: ("number", "key", *PROPERTIES, "text"),
    COSTS: ("number", "layer", *(entry.name for entry in fields(Costs))),
    LATENCIES: ("operator", *(entry.name for entry in fields(Latency))),
    TRAININGS: ("operator", *(entry.name for entry in fields(Training))),
}
"""By file. `operator` is a number or the name of a layer made by hand."""


class TableError(ValueError):
    """Files that are no tables of the benchmark, or damaged."""


# Writing


def _pack(lines: Iterable[Sequence[Any]], columns: Sequence[str]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    return lzma.compress(text.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME)


def _to_text(value: Any) -> Any:
    if isinstance(value, tuple):
        return " ".join(f"{number:.10g}" for number in value)
    return "" if value is None else value


def _operator_lines(rows: Iterable[Row]) -> Iterator[Sequence[Any]]:
    for row in rows:
        yield row.number, row.key, *(int(name in row.properties) for name in PROPERTIES), row.text


def _cost_lines(rows: Iterable[Row]) -> Iterator[Sequence[Any]]:
    for row in rows:
        for layer, costs in row.costs.items():
            yield row.number, layer, *astuple(costs)


def _latency_lines(rows: Mapping[Any, Row]) -> Iterator[Sequence[Any]]:
    for name, row in rows.items():
        for latency in row.latencies:
            yield name, *map(_to_text, astuple(latency))


def _training_lines(rows: Mapping[Any, Row]) -> Iterator[Sequence[Any]]:
    for name, row in rows.items():
        for training in row.trainings:
            yield name, *map(_to_text, astuple(training))


def write_tables(
    rows: Sequence[Row], references: Mapping[str, Row], about: Mapping[str, Any], path: str | Path = DATA
) -> None:
    """Writes the tables to a folder; `about` is what the manifest says beside the files."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    named: dict[Any, Row] = {**references, **{row.number: row for row in rows}}
    contents = {
        OPERATORS: _operator_lines(rows),
        COSTS: _cost_lines(rows),
        LATENCIES: _latency_lines(named),
        TRAININGS: _training_lines(named),
    }
    files = {}
    for name, lines in contents.items():
        listed = list(lines)
        content = _pack(listed, COLUMNS[name])
        (folder / name).write_bytes(content)
        files[name] = {"rows": len(listed), "sha256": hashlib.sha256(content).hexdigest()}
    manifest = {"format": FORMAT, "version": VERSION, **about, "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


# Reading


class _Reader:
    """The lines of a file, whose errors have the line."""

    def __init__(self, folder: Path, name: str, entry: Mapping[str, Any]):
        self.path = folder / name
        if not self.path.is_file():
            raise TableError(f"requires the file '{name}' in '{folder}', got none")
        content = self.path.read_bytes()
        if (found := hashlib.sha256(content).hexdigest()) != entry["sha256"]:
            raise TableError(f"requires a file '{self.path}' with the checksum {entry['sha256']}, got {found}")
        try:
            self._lines = csv.reader(io.StringIO(lzma.decompress(content).decode(), newline=""))
            columns = tuple(next(self._lines, ()))
        except (lzma.LZMAError, UnicodeDecodeError) as error:
            raise TableError(f"requires a text compressed by xz in '{self.path}', got another file") from error
        if columns != COLUMNS[name]:
            raise TableError(
                f"requires the columns {', '.join(COLUMNS[name])} in '{self.path}', got {', '.join(columns)}"
            )

    def read(self, make: Callable[[list[str]], Any]) -> Iterator[Any]:
        for number, line in enumerate(self._lines, 1):
            try:
                yield make(line)
            except (ValueError, TypeError) as error:
                reason = error if isinstance(error, TableError) else f"requires what its columns say, got {line[:5]}"
                raise TableError(f"{self.path}: entry {number}: {reason}") from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """The description that a folder has of its tables; a `TableError` where it has none of this format."""
    path = folder / MANIFEST
    if not path.is_file():
        raise TableError(f"requires the file '{MANIFEST}' of the tables in '{folder}', got none")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TableError(f"requires JSON in '{path}', got another text") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        reason = f": {REFUSED[found]}" if found in REFUSED else ""
        raise TableError(f"requires tables of format {FORMAT} (version {VERSION}) in '{path}', got {found}{reason}")
    for key in ("files", "tasks"):
        if not isinstance(manifest.get(key), dict):
            raise TableError(f"requires an object '{key}' in '{path}', got {manifest.get(key)!r}")
    if missing := [name for name in COLUMNS if name not in manifest["files"]]:
        raise TableError(f"requires the file '{missing[0]}' among those of '{path}', got none")
    result: dict[str, Any] = manifest
    return result


def _make_row(line: list[str]) -> Row:
    number, key, *flags, text = line
    names = [name for name, flag in zip(PROPERTIES, flags, strict=True) if int(flag)]
    return Row(int(number), key, text, frozenset(names))


def _make_costs(line: list[str]) -> tuple[int, str, Costs]:
    number, layer, *values = line
    if layer not in SIZES:
        raise TableError(f"requires a layer of {', '.join(SIZES)}, got '{layer}'")
    return int(number), layer, Costs(*map(int, values))


def _make_latency(line: list[str]) -> tuple[str, Latency]:
    operator, layer, threads, machine, microseconds, dense, width = line
    values = layer, int(threads), machine, float(microseconds), float(dense), int(width) if width else None
    return operator, Latency(*values)


def _make_training(line: list[str]) -> tuple[str, Training]:
    operator, task, seed, failure, *values, curve, losses, parameters, seconds, width, correct = line
    validation, test, shifted, rotated = (float(value) if value else None for value in values)
    return operator, Training(
        task,
        int(seed),
        failure or None,
        validation,
        test,
        shifted,
        rotated,
        curve=tuple(map(float, curve.split())),
        losses=tuple(map(float, losses.split())),
        parameters=int(parameters) if parameters else None,
        cpu_seconds=float(seconds),
        width=int(width),
        correct=correct,
    )


def _read_rows(folder: Path, files: Mapping[str, Any]) -> list[Row]:
    rows: list[Row] = list(_Reader(folder, OPERATORS, files[OPERATORS]).read(_make_row))
    if [row.number for row in rows] != list(range(len(rows))):
        raise TableError(f"requires operators 0, 1, 2, ... in '{folder / OPERATORS}', got others")
    return rows


def load(path: str | Path | None = None) -> Table:
    """The tables of a folder, by default those that are part of kas.

    Raises a `TableError` for files that are damaged, missing, or no such tables.
    """
    folder = DATA if path is None else Path(path)
    manifest = read_manifest(folder)
    files = manifest["files"]
    rows = _read_rows(folder, files)

    def check(number: int) -> int:
        if not 0 <= number < len(rows):
            raise TableError(f"requires an operator from 0 to {len(rows) - 1}, got {number}")
        return number

    costs: dict[int, dict[str, Costs]] = defaultdict(dict)
    for number, layer, one in _Reader(folder, COSTS, files[COSTS]).read(_make_costs):
        costs[check(number)][layer] = one
    latencies: dict[str, list[Latency]] = defaultdict(list)
    trainings: dict[str, list[Training]] = defaultdict(list)
    for found, file, make in ((latencies, LATENCIES, _make_latency), (trainings, TRAININGS, _make_training)):
        for name, one in _Reader(folder, file, files[file]).read(make):
            if name.lstrip("-").isdigit():
                check(int(name))
            found[name].append(one)
    rows = [
        replace(
            row,
            costs=costs[row.number],
            latencies=tuple(latencies.pop(str(row.number), ())),
            trainings=tuple(trainings.pop(str(row.number), ())),
        )
        for row in rows
    ]
    references = {
        name: Row(-1, "", "", frozenset(), latencies=tuple(latencies[name]), trainings=tuple(trainings[name]))
        for name in dict.fromkeys([*trainings, *latencies])
    }
    return Table(rows, references, manifest)
