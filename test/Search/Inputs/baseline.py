"""Prints what the database of a search has of what its candidates are compared with: seed, epoch, name, value."""

import contextlib
import sqlite3
import sys

with contextlib.closing(sqlite3.connect(sys.argv[1])) as connection:
    query = "SELECT seed, epoch, name, value FROM training WHERE candidate = -1 ORDER BY seed, epoch, name"
    for row in connection.execute(query):
        print(*row)
