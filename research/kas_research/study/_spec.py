# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file that says what a study runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._spec import Reader, compose, describe, read_text
from ._models import NETWORKS, Layer, get_layers, prune_channels

COMPRESSIONS = ("dense", "weight-pruning", "channel-pruning", "f16", "bf16", "int8")
PRUNINGS = ("weight-pruning", "channel-pruning")
ALGORITHMS = ("auto", "direct", "im2col", "spatial-pack", "winograd")
SCHEDULES = ("untuned", "model", "tuned")
TARGETS = ("cpu", "x86-64-v2", "x86-64-v3", "x86-64-v4")

PIPELINE_ALGORITHMS = ("spatial-pack", "winograd")
"""Those for which the CPU pipeline has an option `algorithm`; `auto` is what it does by itself, im2col and direct
(without tiles) are the study's own."""


@dataclass(frozen=True)
class Model:
    """A network at a size of images and with a share of its channels."""

    network: str
    image: int = 32
    width: float = 1.0

    @property
    def name(self) -> str:
        """As the tables and the database say it."""
        return (
            self.network
            + (f"@{self.image}" if self.image != 32 else "")
            + (f"*{self.width:g}" if self.width != 1 else "")
        )

    def get_layers(self) -> list[Layer]:
        """The distinct layers; see `kas_research.study.get_layers`."""
        return get_layers(self.network, self.image, self.width)


class Configuration(NamedTuple):
    """One measurement: one row of the result."""

    model: str
    compression: str
    ratio: float
    """The share of weights that pruning takes away; 0 for the other compressions."""
    algorithm: str
    schedule: str
    target: str

    @property
    def name(self) -> str:
        """As the tables and the database say it."""
        ratio = f" {self.ratio:g}" if self.ratio else ""
        return f"{self.model}, {self.compression}{ratio}, {self.algorithm}, {self.schedule}, {self.target}"


@dataclass(frozen=True)
class Spec:
    """The contents of a file."""

    name: str
    models: tuple[Model, ...]
    compressions: tuple[tuple[str, float], ...]
    algorithms: tuple[str, ...]
    schedules: tuple[str, ...]
    targets: tuple[str, ...]
    threads: int = 1
    runs: int = 10
    trials: int = 16
    limit: float = 300.0
    seed: int = 0

    @property
    def protocol(self) -> str:
        """How is measured: times of two protocols are not compared."""
        clock = "processor" if self.threads == 1 else "wall-clock"
        return (
            f"{self.threads} threads, least {clock} time of {self.runs} runs in turn with the baseline, "
            f"{self.trials} trials, seed {self.seed}"
        )

    def get_configurations(self) -> list[Configuration]:
        """All that make sense, the dense ones first: others are compared with them."""
        found = [c for c in self._product() if get_objection(c) is None]
        return sorted(found, key=lambda c: c.compression != "dense")

    def get_objections(self) -> dict[Configuration, str]:
        """Those that make none, and why."""
        return {c: reason for c in self._product() if (reason := get_objection(c)) is not None}

    def _product(self) -> Iterator[Configuration]:
        for target in self.targets:
            for model in self.models:
                for compression, ratio in self.compressions:
                    for schedule in self.schedules:
                        for algorithm in self.algorithms:
                            yield Configuration(model.name, compression, ratio, algorithm, schedule, target)

    def get_layer_pairs(self, configuration: Configuration) -> list[tuple[Layer, Layer]]:
        """The layers of the dense network, and those that take their places."""
        (model,) = (m for m in self.models if m.name == configuration.model)
        layers = model.get_layers()
        pruned = (
            prune_channels(layers, configuration.ratio) if configuration.compression == "channel-pruning" else layers
        )
        return list(zip(layers, pruned))


def get_objection(c: Configuration) -> str | None:
    """Why a configuration makes no sense, or nothing."""
    if c.schedule == "untuned" and c.algorithm not in ("direct", "im2col"):
        return "untuned code is plain loops, of direct or im2col"
    if c.compression == "weight-pruning":
        if c.algorithm not in ("direct", "im2col"):
            return "sparse weights are compiled as direct or im2col"
        if c.schedule == "model":
            return "there is no cost model of sparse weights"
        return "the study tunes for this machine" if c.schedule == "tuned" and c.target != "cpu" else None
    if c.compression in ("f16", "bf16", "int8"):
        if c.algorithm not in ("auto", "direct") and not (
            c.compression == "int8" and c.algorithm == "im2col" and c.schedule == "untuned"
        ):
            return "images of 16 and 8 bits are compiled as auto or, untuned, direct (int8: or im2col)"
        if c.algorithm == "direct" and c.schedule != "untuned":
            return "tiles of 16 and 8 bits are chosen by auto"
        if c.compression == "int8" and c.target != "cpu" and c.schedule != "untuned":
            return "tiles of 8 bits are those of this machine"
    if c.algorithm not in ("auto", "im2col", *PIPELINE_ALGORITHMS) and c.schedule != "untuned":
        return f"the CPU pipeline has no option algorithm={c.algorithm}"
    if c.schedule == "tuned" and (c.target != "cpu" or c.algorithm not in ("auto", "im2col")):
        return "schedules are searched for this machine and for auto and im2col"
    return None


# Reading


class _Reader(Reader):
    def model(self, node: Any) -> Model:
        if node.id == "scalar":
            return Model(self.choice(node, list(NETWORKS), "a model"))
        keys = self.mapping(node, ("name", "image", "width"), "a model")
        if "name" not in keys:
            raise self.fail(node, "requires the key 'name' in a model, got none")
        return Model(
            self.choice(keys["name"], list(NETWORKS), "a model"),
            self.number(keys["image"], "an image", 8, 512) if "image" in keys else 32,
            self.number(keys["width"], "a width", 0.05, 4, float) if "width" in keys else 1.0,
        )

    def compression(self, node: Any) -> Iterator[tuple[str, float]]:
        if node.id == "scalar":
            name = self.choice(node, COMPRESSIONS, "a compression")
            if name in PRUNINGS:
                raise self.fail(node, f"requires ratios of '{name}', got none: {{name: {name}, ratios: [0.5]}}")
            yield name, 0.0
            return
        keys = self.mapping(node, ("name", "ratios"), "a compression")
        for key in ("name", "ratios"):
            if key not in keys:
                raise self.fail(node, f"requires the key '{key}' in a compression with ratios, got none")
        name = self.choice(keys["name"], PRUNINGS, "a compression with ratios")
        for entry in self.sequence(keys["ratios"], "'ratios'"):
            yield name, self.number(entry, "a ratio", 0.01, 0.999, float)

    def spec(self, node: Any) -> Spec:
        keys = self.mapping(
            node,
            (
                "name",
                "models",
                "compressions",
                "algorithms",
                "schedules",
                "targets",
                "threads",
                "runs",
                "trials",
                "limit",
                "seed",
            ),
            "a study",
        )
        for key in ("models", "compressions"):
            if key not in keys:
                raise self.fail(node, f"requires the key '{key}' in a study, got none")
        models = self.sequence(keys["models"], "'models'")
        compressions = self.sequence(keys["compressions"], "'compressions'")
        pairs = [(entry, pair) for entry in compressions for pair in self.compression(entry)]
        numbers: dict[str, Any] = {}
        for key, what, least, most, kind in (
            ("threads", "a number of threads", 1, 1024, int),
            ("runs", "a number of runs", 1, 10000, int),
            ("trials", "a number of trials", 1, 100000, int),
            ("limit", "a limit in seconds", 1, 86400, float),
            ("seed", "a seed", 0, 2**32 - 1, int),
        ):
            if key in keys:
                numbers[key] = self.number(keys[key], what, least, most, kind)
        name = os.path.splitext(os.path.basename(self.path))[0]
        if "name" in keys:
            if keys["name"].id != "scalar":
                raise self.fail(keys["name"], f"requires 'name' to be a text, got {describe(keys['name'])}")
            name = keys["name"].value

        def listed(key: str, names: Sequence[str], what: str, default: Sequence[str]) -> tuple[str, ...]:
            return self.choices(keys[key], names, key, what) if key in keys else tuple(default)

        return Spec(
            name=name,
            models=self.distinct(models, [self.model(entry) for entry in models], "model"),
            compressions=self.distinct([entry for entry, _ in pairs], [pair for _, pair in pairs], "compression"),
            algorithms=listed("algorithms", ALGORITHMS, "an algorithm", ("auto", "direct", "im2col")),
            schedules=listed("schedules", SCHEDULES, "a schedule", SCHEDULES),
            targets=listed("targets", TARGETS, "a target", ("cpu",)),
            **numbers,
        )


def parse_spec(text: str, path: str) -> Spec:
    """Reads a study; a `SpecError` says the line of what is wrong."""
    return _Reader(path).spec(compose(text, path, "a study"))


def read_spec(path: str) -> Spec:
    """`parse_spec` of a file."""
    return parse_spec(read_text(path), path)
