# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of a study in the database of tunings."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kas import _kas

from ._spec import Configuration, Spec

# The columns are described in research/guide/studies.md.
SCHEMA = """
CREATE TABLE IF NOT EXISTS study(
  name TEXT PRIMARY KEY NOT NULL, target TEXT NOT NULL, toolchain TEXT NOT NULL, protocol TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS study_schedule(program TEXT PRIMARY KEY NOT NULL, choice TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS study_configuration(
  id INTEGER PRIMARY KEY NOT NULL, study TEXT NOT NULL REFERENCES study(name), model TEXT NOT NULL,
  compression TEXT NOT NULL, ratio REAL NOT NULL, algorithm TEXT NOT NULL, schedule TEXT NOT NULL, target TEXT NOT NULL,
  failure TEXT, ms REAL, baseline_ms REAL, baseline TEXT, expected REAL,
  achieved REAL, error REAL, seconds REAL NOT NULL,
  measured_at REAL NOT NULL, UNIQUE (study, model, compression, ratio, algorithm, schedule, target)
);
CREATE TABLE IF NOT EXISTS study_layer(
  configuration INTEGER NOT NULL REFERENCES study_configuration(id), layer TEXT NOT NULL, count INTEGER NOT NULL,
  macs INTEGER NOT NULL, dense_macs INTEGER NOT NULL, ms REAL NOT NULL, baseline_ms REAL, error REAL NOT NULL,
  schedule TEXT NOT NULL
);
"""

COLUMNS = ("failure", "ms", "baseline_ms", "baseline", "expected", "achieved", "error", "seconds")


class StudyError(ValueError):
    """Why a study cannot run or be read."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a configuration."""

    configuration: Configuration
    failure: str | None = None
    """Why there are no times."""
    ms: float | None = None
    """Milliseconds of all layers, each as often as the network has it."""
    baseline_ms: float | None = None
    """Those of the dense network, in turn with it."""
    baseline: str | None = None
    """The algorithm of that."""
    expected: float | None = None
    """The speed-up if multiply-adds, or bits, were all that counts."""
    achieved: float | None = None
    """The measured one."""
    error: float | None = None
    """The largest of a layer's output, relative to its largest magnitude."""
    seconds: float = 0.0

    @property
    def share(self) -> float | None:
        """Achieved over expected speed-up."""
        return self.achieved / self.expected if self.achieved and self.expected else None


class Store:
    """The database of one study; each outcome is a transaction."""

    def __init__(self, path: str, spec: Spec):
        self.path, self.spec = path, spec
        environment = json.loads(_kas.open_tuning_database(path))
        self.features: list[str] = environment["target"].rsplit("; ", 1)[-1].split(",")
        self.connection = sqlite3.connect(path, timeout=60)
        self.connection.executescript(SCHEMA)
        own = (environment["target"], environment["toolchain"], spec.protocol)
        with self.connection:
            self.connection.execute("INSERT OR IGNORE INTO study VALUES (?, ?, ?, ?)", (spec.name, *own))
        row = self.connection.execute(
            "SELECT target, toolchain, protocol FROM study WHERE name = ?", (spec.name,)
        ).fetchone()
        for what, kept, now in zip(("processor", "toolchain", "protocol"), row, own):
            if kept != now:
                raise StudyError(
                    f"'{path}': requires the {what} that study '{spec.name}' began with, '{kept}', got '{now}'; "
                    "give it another name or database, or finish it as it began"
                )

    def close(self) -> None:
        self.connection.close()

    def read(self) -> dict[Configuration, Outcome]:
        """What is there, in the order of measuring."""
        return read_outcomes(self.connection, self.spec.name)

    def record(self, outcome: Outcome, layers: list[dict[str, Any]]) -> None:
        values = (self.spec.name, *outcome.configuration, *(getattr(outcome, name) for name in COLUMNS), time.time())
        names = f"study, {', '.join(Configuration._fields)}, {', '.join(COLUMNS)}, measured_at"
        with self.connection:
            old = "SELECT id FROM study_configuration WHERE study = ? AND " + " AND ".join(
                f"{name} = ?" for name in Configuration._fields
            )
            key = (self.spec.name, *outcome.configuration)
            self.connection.execute(f"DELETE FROM study_layer WHERE configuration IN ({old})", key)
            self.connection.execute(f"DELETE FROM study_configuration WHERE id IN ({old})", key)
            cursor = self.connection.execute(
                f"INSERT INTO study_configuration ({names}) VALUES ({', '.join('?' * len(values))})", values
            )
            columns = ("layer", "count", "macs", "dense_macs", "ms", "baseline_ms", "error", "schedule")
            self.connection.executemany(
                "INSERT INTO study_layer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(cursor.lastrowid, *(layer[name] for name in columns)) for layer in layers],
            )


def read_outcomes(connection: sqlite3.Connection, study: str) -> dict[Configuration, Outcome]:
    """The outcomes of a study, in the order of measuring."""
    count = len(Configuration._fields)
    rows = connection.execute(
        f"SELECT {', '.join((*Configuration._fields, *COLUMNS))} FROM study_configuration WHERE study = ? ORDER BY id",
        (study,),
    )
    found = (Outcome(Configuration(*row[:count]), *row[count:]) for row in rows)
    return {outcome.configuration: outcome for outcome in found}


def read_studies(path: str) -> Iterator[tuple[str, dict[str, str], dict[Configuration, Outcome]]]:
    """The studies of a file: their name, where and how they were measured, and the outcomes."""
    connection = sqlite3.connect(
        f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=ro", uri=True
    )
    try:
        for name, *rest in connection.execute(
            "SELECT name, target, toolchain, protocol FROM study ORDER BY name"
        ).fetchall():
            yield name, dict(zip(("target", "toolchain", "protocol"), rest)), read_outcomes(connection, name)
    except sqlite3.DatabaseError as error:
        raise StudyError(f"'{path}' is not the database of a study: {error}") from error
    finally:
        connection.close()
