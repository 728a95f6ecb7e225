"""Prints what the database of a search has of its baselines: number, name, evaluators, and their metrics."""

import contextlib
import sqlite3
import sys

with contextlib.closing(sqlite3.connect(sys.argv[1])) as connection:
    for number, name, evaluators in connection.execute("SELECT id, name, evaluators FROM baseline ORDER BY id DESC"):
        query = "SELECT name, value FROM training WHERE candidate = ? ORDER BY name"
        print(
            number, name, f"({evaluators})", *(f"{key}={value:g}" for key, value in connection.execute(query, [number]))
        )
