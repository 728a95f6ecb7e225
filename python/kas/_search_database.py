# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reader of search databases: all that Python knows of the tables that `SearchStore` of C++ writes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

APPLICATION_ID = 0x6B617353
SCHEMA_VERSION = 1


class Row(NamedTuple):
    """A candidate without its operator, which is long."""

    id: int
    parent: int | None
    state: str
    """asked, evaluated or failed."""
    asked_at: float
    seconds: float | None


class Curve(NamedTuple):
    """A metric of one training of a candidate, after each epoch."""

    name: str
    rung: int
    seed: int
    epochs: list[int]
    values: list[float]


class Snapshot:
    """The tables at one time."""

    def __init__(self, connection: sqlite3.Connection):
        self._query = connection.execute

    def read_rows(self) -> list[Row]:
        """All candidates, in the order of their proposal."""
        query = "SELECT id, parent, state, asked_at, seconds FROM candidate ORDER BY ask_event"
        return [Row(*row) for row in self._query(query)]

    def read_texts(self, ids: Sequence[int]) -> dict[int, str]:
        """The operators of those candidates that there are."""
        return dict(self._query(f"SELECT id, operator FROM candidate WHERE id IN ({_marks(ids)})", ids))

    def read_metrics(self, ids: Sequence[int] | None = None) -> dict[int, dict[str, float]]:
        """By candidate, of all or of some; of a name in both, that of the final round."""
        result: dict[int, dict[str, float]] = {}
        some = "" if ids is None else f" WHERE candidate IN ({_marks(ids)})"
        for table in ("metric", "final_metric"):
            for candidate, name, value in self._query(f"SELECT candidate, name, value FROM {table}{some}", ids or ()):
                result.setdefault(candidate, {})[name] = value
        return result

    def read_failures(self, ids: Sequence[int] | None = None) -> dict[int, list[str]]:
        """Why candidates, all or some, failed: in the search, then in the final round."""
        result: dict[int, list[str]] = {}
        some = "" if ids is None else f" AND id IN ({_marks(ids)})"
        for source in ("candidate", "(SELECT candidate AS id, failure FROM final_candidate)"):
            query = f"SELECT id, failure FROM {source} WHERE failure IS NOT NULL{some}"
            for candidate, failure in self._query(query, ids or ()):
                result.setdefault(candidate, []).append(failure)
        return result

    def read_statistics(self) -> dict[str, int]:
        return dict(self._query("SELECT name, value FROM statistic"))

    def read_baselines(self) -> dict[int, tuple[str, str]]:
        """Name and IR of what candidates are compared with, by number."""
        if not self._has_table("baseline"):
            return {}
        return {id: (name, text) for id, name, text in self._query("SELECT id, name, operator FROM baseline")}

    def read_trainings(self) -> dict[int, list[tuple[int, int, str, float]]]:
        """Seed, epoch, metric and value of what trainings gave, by candidate; those of baselines are negative."""
        result: dict[int, list[tuple[int, int, str, float]]] = {}
        if self._has_table("training"):
            for candidate, *number in self._query("SELECT candidate, seed, epoch, name, value FROM training"):
                if all(isinstance(value, (int, float)) for value in (number[0], number[1], number[3])):
                    result.setdefault(candidate, []).append((number[0], number[1], number[2], number[3]))
        return result

    def read_curves(self, ids: Sequence[int]) -> dict[int, list[Curve]]:
        """The trainings of some candidates, each curve in the order of its epochs."""
        if not self._has_table("training"):
            return {}
        # Databases of before successive halving have no rungs.
        columns = {row[1] for row in self._query("PRAGMA table_info(training)")}
        rung = "rung" if "rung" in columns else "0"
        query = (
            f"SELECT candidate, name, {rung} AS rung, seed, epoch, value FROM training"
            f" WHERE candidate IN ({_marks(ids)}) ORDER BY candidate, name, rung, seed, epoch"
        )
        result: dict[int, dict[tuple[str, int, int], Curve]] = {}
        for candidate, name, rung, seed, epoch, value in self._query(query, ids):
            curve = result.setdefault(candidate, {}).setdefault((name, rung, seed), Curve(name, rung, seed, [], []))
            curve.epochs.append(epoch)
            curve.values.append(value)
        return {candidate: list(curves.values()) for candidate, curves in result.items()}

    def read_version(self) -> str:
        """Changes when something else does."""
        numbers = self._query(
            "SELECT count(*), total(ask_event), count(tell_event), total(tell_event),"
            " (SELECT count(*) FROM final_candidate) FROM candidate"
        ).fetchone()
        for table in ("training", "baseline"):
            if self._has_table(table):
                numbers += self._query(f"SELECT count(*) FROM {table}").fetchone()
        return "-".join(f"{number:.0f}" for number in numbers)

    def _has_table(self, name: str) -> bool:
        query = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
        return bool(self._query(query, (name,)).fetchone())


def _marks(values: Sequence[int]) -> str:
    return ",".join("?" * len(values))


class SearchDatabase:
    """A search database, read-only, also while a search writes it; several threads may read.

    Raises `FileNotFoundError` or `ValueError` when the file is not a search database of this version.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        if not os.path.isfile(self.path):
            raise FileNotFoundError(f"there is no search database '{self.path}'")
        self._uri = "file:" + self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=ro"
        try:
            ((kind,),) = self._query("PRAGMA application_id")
            ((version,),) = self._query("PRAGMA user_version")
        except sqlite3.DatabaseError as error:
            raise ValueError(f"'{self.path}' is not a search database: {error}") from error
        if kind != APPLICATION_ID:
            raise ValueError(f"'{self.path}' is not a search database: it is of another program")
        if version != SCHEMA_VERSION:
            raise ValueError(f"'{self.path}' has tables of version {version}; this kas reads version {SCHEMA_VERSION}")
        self.settings: dict[str, str] = dict(self._query("SELECT name, value FROM setting"))

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """What the database holds at one time, so that what is read fits together while a search writes."""
        # A connection of its own for each use: those of SQLite belong to one thread.
        with contextlib.closing(sqlite3.connect(self._uri, uri=True, timeout=10, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            yield Snapshot(connection)

    def _query(self, query: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self._uri, uri=True, timeout=10)) as connection:
            return connection.execute(query).fetchall()
