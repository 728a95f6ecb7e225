# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file that keeps every training and every time: JSON, one record in a line, which are only added."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any


class StoreError(ValueError):
    """A file that is no store."""


def make_key(settings: Mapping[str, Any]) -> str:
    """16 digits that tell settings apart; the same on any machine."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Store:
    """The records of a file; several processes, also of several protocols, may add to it at once."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The records, in the order in which they were added. A last line that a process was killed at is left out."""
        if not os.path.exists(self.path):
            return
        with open(self.path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith("\n"):
                    return
                try:
                    record = json.loads(line)
                except json.JSONDecodeError as error:
                    raise StoreError(f"{self.path}:{number}: requires JSON, got {error.msg}") from error
                if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
                    raise StoreError(f"{self.path}:{number}: requires an object with a 'kind', got another value")
                yield record

    def add(self, record: Mapping[str, Any]) -> None:
        """Writes a record at the end, whole or not at all."""
        line = json.dumps(record, sort_keys=True) + "\n"
        with open(self.path, "ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # What a killed process has left of a line.
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    file.seek(0)
                    file.truncate(file.read().rfind(b"\n") + 1)
            file.write(line.encode())

    def read_trainings(self) -> dict[str, dict[str, Any]]:
        """Trainings by key. Where one is there twice, such as after a failure that was tried again, the last counts."""
        return {record["key"]: record for record in self if record["kind"] == "training"}
