# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of YAML that say what to run; errors have the line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import yaml


class SpecError(ValueError):
    """An error in a file, with its line."""


class Reader:
    """Traverses the nodes of YAML, which know their lines."""

    def __init__(self, path: str):
        self.path = path

    def fail(self, node: Any, message: str) -> SpecError:
        return SpecError(f"{self.path}:{node.start_mark.line + 1}: {message}")

    def mapping(self, node: Any, keys: Sequence[str], what: str) -> dict[str, Any]:
        if node.id != "mapping":
            raise self.fail(node, f"requires {what} to be a mapping, got {describe(node)}")
        found: dict[str, Any] = {}
        for key, value in node.value:
            if key.id != "scalar" or key.value not in keys:
                raise self.fail(key, f"requires a key of {', '.join(keys)} in {what}, got {describe(key)}")
            if key.value in found:
                raise self.fail(key, f"requires the key '{key.value}' once in {what}, got it twice")
            found[key.value] = value
        return found

    def sequence(self, node: Any, what: str) -> list[Any]:
        if node.id != "sequence" or not node.value:
            raise self.fail(node, f"requires {what} to be a list of at least one, got {describe(node)}")
        entries: list[Any] = node.value
        return entries

    def choice(self, node: Any, names: Sequence[str], what: str) -> str:
        if node.id != "scalar" or node.value not in names:
            raise self.fail(node, f"requires {what} of {', '.join(names)}, got {describe(node)}")
        name: str = node.value
        return name

    def number(self, node: Any, what: str, least: float, most: float, kind: Callable[[str], Any] = int) -> Any:
        try:
            value = kind(node.value) if node.id == "scalar" else None
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            between = f"from {least:g} to {most:g}" if math.isfinite(most) else f"of at least {least:g}"
            raise self.fail(node, f"requires {what} {between}, got {describe(node)}")
        return value

    def distinct(self, nodes: Sequence[Any], values: Sequence[Any], what: str) -> tuple[Any, ...]:
        for place, value in enumerate(values):
            if value in values[:place]:
                raise self.fail(
                    nodes[place],
                    f"requires each {what} once, got '{nodes[place].value}' again"
                    if nodes[place].id == "scalar"
                    else f"requires each {what} once, got one again",
                )
        return tuple(values)

    def choices(self, node: Any, names: Sequence[str], key: str, what: str) -> tuple[str, ...]:
        nodes = self.sequence(node, f"'{key}'")
        return self.distinct(nodes, [self.choice(entry, names, what) for entry in nodes], what)


def describe(node: Any) -> str:
    """A node, for messages."""
    if node.id == "scalar":
        return f"'{node.value}'"
    return (
        f"an empty {'list' if node.id == 'sequence' else node.id}"
        if not node.value
        else f"a {'list' if node.id == 'sequence' else node.id}"
    )


def compose(text: str, path: str, what: str) -> Any:
    """The nodes of a text, which must not be empty."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SpecError(f"{path}:{line}: requires YAML, got {error.problem}") from error
    except yaml.YAMLError as error:
        raise SpecError(f"{path}: requires YAML, got {str(error).splitlines()[0]}") from error
    if node is None:
        raise SpecError(f"{path}:1: requires {what}, got an empty file")
    return node


def read_text(path: str) -> str:
    """The text of a file, which must be UTF-8."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: requires text in UTF-8, got other bytes") from error
