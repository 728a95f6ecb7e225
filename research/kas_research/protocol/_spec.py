# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file that says what a protocol compares."""

from __future__ import annotations

import os
from typing import Any

from kas.evaluate._training import Recipe
from kas.zoo._backbones import NETWORKS, SIZES
from kas.zoo._contenders import Contender
from kas.zoo._layers import LAYERS, OPERATORS

from .._spec import Reader, compose, describe, read_text
from ._protocol import Protocol, StageSearch

KEYS = (
    "name",
    "networks",
    "widths",
    "dense",
    "control",
    "contenders",
    "candidates",
    "seeds",
    "recipe",
    "data",
    "hours",
    "backend",
    "search",
)
SEARCH = ("pool", "trainings", "widths", "seed", "finalists", "recalls")
RECIPE = {
    "epochs": (1, 10000, int),
    "batch-size": (1, 65536, int),
    "learning-rate": (0.0, 1e6, float),
    "weight-decay": (0.0, 1e6, float),
    "warmup-steps": (0, 1000000, int),
    "label-smoothing": (0.0, 1.0, float),
    "clip-gradients": (0.0, 1e6, float),
}


class _Reader(Reader):
    def protocol(self, node: Any) -> Protocol:
        keys = self.mapping(node, KEYS, "a protocol")
        if "contenders" not in keys:
            raise self.fail(node, "requires the key 'contenders' in a protocol, got none")
        values: dict[str, Any] = {"name": os.path.splitext(os.path.basename(self.path))[0]}
        for key in ("name", "dense", "control"):
            if key in keys:
                values[key] = self.text(keys[key], f"'{key}'")
        if "networks" in keys:
            values["networks"] = self.choices(keys["networks"], list(NETWORKS), "networks", "a network")
        if "widths" in keys:
            values["widths"] = self.numbers(keys["widths"], "'widths'", "a width", 1, 4096)
        if "backend" in keys:
            values["backend"] = self.choice(keys["backend"], ("native", "pytorch"), "a backend")
        if "hours" in keys:
            values["hours"] = self.number(keys["hours"], "CPU hours", 0, 1e6, float)
        contenders = [self.contender(entry, False) for entry in self.sequence(keys["contenders"], "'contenders'")]
        if "candidates" in keys:
            contenders += [self.contender(entry, True) for entry in self.sequence(keys["candidates"], "'candidates'")]
        values["contenders"] = tuple(contenders)
        if "seeds" in keys:
            values.update(self.seeds(keys["seeds"]))
        if "recipe" in keys:
            values["recipe"] = self.recipe(keys["recipe"])
        if "data" in keys:
            values.update(self.data(keys["data"]))
        if "search" in keys:
            values["search"] = self.search(keys["search"])
        try:
            return Protocol(**values)
        except ValueError as error:
            raise self.fail(node, str(error)) from error

    def text(self, node: Any, what: str) -> str:
        if node.id != "scalar" or not node.value:
            raise self.fail(node, f"requires {what} to be a text, got {describe(node)}")
        value: str = node.value
        return value

    def flag(self, node: Any, what: str) -> bool:
        return self.choice(node, ("true", "false"), what) == "true"

    def numbers(self, node: Any, what: str, entry: str, least: float, most: float) -> tuple[int, ...]:
        nodes = self.sequence(node, what)
        return self.distinct(nodes, [self.number(one, entry, least, most) for one in nodes], entry.removeprefix("a "))

    def contender(self, node: Any, is_candidate: bool) -> Contender:
        known = [*LAYERS, *OPERATORS]
        if node.id == "scalar":
            return Contender(self.choice(node, known, "a contender"), is_candidate=is_candidate)
        allowed = ("name", "file", "binding", "stages", "widths", "seeds", *(() if is_candidate else ("afterthought",)))
        keys = self.mapping(node, allowed, "a contender")
        if "name" not in keys:
            raise self.fail(node, "requires the key 'name' in a contender, got none")
        values: dict[str, Any] = {"is_candidate": is_candidate}
        if "stages" in keys:
            for key in ("file", "binding"):
                if key in keys:
                    raise self.fail(keys[key], f"requires '{key}' in a stage, got it beside 'stages'")
            nodes = self.sequence(keys["stages"], "'stages'")
            if len(nodes) != len(SIZES):
                raise self.fail(keys["stages"], f"requires {len(SIZES)} stages, got {len(nodes)}")
            values["stages"] = tuple(self.stage(entry) for entry in nodes)
            name = self.text(keys["name"], "'name'")
        elif "file" in keys:
            path = os.path.join(os.path.dirname(self.path), self.text(keys["file"], "'file'"))
            if not os.path.isfile(path):
                raise self.fail(keys["file"], f"requires a file with an operator, got '{path}', which is none")
            values["text"] = read_text(path)
            name = self.text(keys["name"], "'name'")
        else:
            name = self.choice(keys["name"], known, "a contender")
        if "binding" in keys:
            entries = keys["binding"].value if keys["binding"].id == "mapping" else []
            names = [key.value for key, _ in entries if key.id == "scalar"]
            found = self.mapping(keys["binding"], names, "a binding")
            values["binding"] = {key: self.number(one, "a size", 1, 2**31 - 1) for key, one in found.items()}
        if "widths" in keys:
            values["widths"] = self.numbers(keys["widths"], "'widths'", "a width", 1, 4096)
        if "seeds" in keys:
            values["num_seeds"] = self.number(keys["seeds"], "a number of seeds", 1, 10000)
        if "afterthought" in keys:
            values["is_afterthought"] = self.flag(keys["afterthought"], "'afterthought'")
        return Contender(name, **values)

    def stage(self, node: Any) -> Contender:
        """What takes the places of one stage."""
        if node.id == "mapping":
            self.mapping(node, ("name", "file", "binding"), "a stage")
        return self.contender(node, False)

    def search(self, node: Any) -> StageSearch:
        """What may take the places of stages, and how long is looked for it."""
        keys = self.mapping(node, SEARCH, "a search")
        if "pool" not in keys:
            raise self.fail(node, "requires the key 'pool' in a search, got none")
        values: dict[str, Any] = {"pool": tuple(self.stage(entry) for entry in self.sequence(keys["pool"], "'pool'"))}
        for key, least, most in (("trainings", 1, 10**6), ("seed", 0, 2**31 - 1), ("finalists", 1, 1000)):
            if key in keys:
                values[key] = self.number(keys[key], f"'{key}'", least, most)
        if "widths" in keys:
            values["widths"] = self.numbers(keys["widths"], "'widths'", "a width", 1, 4096)
        if "recalls" in keys:
            values["recalls"] = self.flag(keys["recalls"], "'recalls'")
        try:
            return StageSearch(**values)
        except ValueError as error:
            raise self.fail(node, str(error)) from error

    def seeds(self, node: Any) -> dict[str, tuple[int, ...]]:
        keys = self.mapping(node, ("choosing", "reporting"), "'seeds'")
        return {name: self.range(one, f"'{name}'") for name, one in keys.items()}

    def range(self, node: Any, what: str) -> tuple[int, ...]:
        """A list of seeds, or FIRST-LAST."""
        if node.id != "scalar":
            return self.numbers(node, what, "a seed", 0, 2**31 - 1)
        first, dash, last = node.value.partition("-")
        if not (dash and first.isdigit() and last.isdigit() and int(first) <= int(last) < int(first) + 10000):
            raise self.fail(node, f"requires {what} to be a list of seeds, or FIRST-LAST, got {describe(node)}")
        return tuple(range(int(first), int(last) + 1))

    def recipe(self, node: Any) -> Recipe:
        from dataclasses import replace

        found = self.mapping(node, ("optimizer", *RECIPE), "a recipe")
        default: Recipe = Protocol.__dataclass_fields__["recipe"].default  # type: ignore[assignment]
        values: dict[str, Any] = {
            key.replace("-", "_"): self.number(one, f"'{key}'", *RECIPE[key])
            for key, one in found.items()
            if key in RECIPE
        }
        if "optimizer" in found:
            values["optimizer"] = self.choice(found["optimizer"], ("adamw", "sgd"), "an optimizer")
        return replace(default, **values)

    def data(self, node: Any) -> dict[str, Any]:
        keys = self.mapping(node, ("name", "path", "train", "validation", "seed", "augmentation", "checksum"), "'data'")
        values: dict[str, Any] = {}
        if "name" in keys:
            # The networks take 1x32x32.
            values["data"] = self.choice(keys["name"], ("fashion-mnist",), "data")
        if "path" in keys:
            values["data_path"] = self.text(keys["path"], "'path'")
        if "checksum" in keys:
            values["checksum"] = self.text(keys["checksum"], "'checksum'")
        options: dict[str, Any] = {"train": 12000, "validation": 5000, "seed": 0}
        for key, least in (("train", 1), ("validation", 1), ("seed", 0)):
            if key in keys:
                options[key] = self.number(keys[key], f"'{key}'", least, 2**31 - 1)
        if "augmentation" in keys:
            options["augmentation"] = self.choice(
                keys["augmentation"], ("none", "flip", "crop_flip"), "an augmentation"
            )
        return {**values, "data_options": options}


def parse_protocol(text: str, path: str) -> Protocol:
    """Reads a protocol; a `kas_research.study.SpecError` says the line of what is wrong. Files are beside `path`."""
    return _Reader(path).protocol(compose(text, path, "a protocol"))


def read_protocol(path: str) -> Protocol:
    """`parse_protocol` of a file."""
    return parse_protocol(read_text(path), path)


def read_files(path: str) -> dict[str, str]:
    """The files of the operators in the pool of a search, by name, as they are written."""
    reader = _Reader(path)
    node = reader.mapping(compose(read_text(path), path, "a protocol"), KEYS, "a protocol").get("search")
    pool = node and reader.mapping(node, SEARCH, "a search")["pool"]
    entries = (
        [dict((key.value, value.value) for key, value in e.value) for e in pool.value if e.id == "mapping"]
        if pool
        else []
    )
    return {entry["name"]: entry["file"] for entry in entries if "file" in entry}
