# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is trained and compared, and under which conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

from kas.evaluate._data import Data
from kas.evaluate._data_sets import load_data
from kas.evaluate._training import Recipe
from kas.zoo._backbones import NETWORKS
from kas.zoo._contenders import Contender

from ._store import make_key

VERSION = 1
"""Of networks, layers and of how trainings run: results of another one are not compared."""


_FIELDS = (
    "epochs",
    "batch_size",
    "optimizer",
    "learning_rate",
    "weight_decay",
    "warmup_steps",
    "label_smoothing",
    "clip_gradients",
    "recalibrate",
)


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """What trainings follow from.

    Fields that recipes get later count where they have another value than by default: keys of stored trainings stay
    what they are.
    """
    defaults = {entry.name: entry.default for entry in fields(Recipe) if entry.name not in (*_FIELDS, "milestones")}
    found = {name: getattr(recipe, name) for name in _FIELDS}
    return found | {name: getattr(recipe, name) for name, value in defaults.items() if getattr(recipe, name) != value}


def identify(data: Data) -> str:
    """Name, checksum and augmentation of data."""
    return f"{data.name} {data.checksum()} {data.augmentation}"


@dataclass(frozen=True)
class StageSearch:
    """A search for operators that differ between stages."""

    pool: tuple[Contender, ...]
    """The candidates for the layers of a stage."""
    trainings: int = 200
    widths: tuple[int, ...] = ()
    """Those of the protocol where there are none."""
    seed: int = 0
    finalists: int = 5
    recalls: bool = False
    """Begins with all trainings that the store has, which count: then results depend on what else was trained."""

    def __post_init__(self) -> None:
        names = [contender.name for contender in self.pool]
        if len(set(names)) != len(names) or len(names) < 2 or any(contender.stages for contender in self.pool):
            found = ", ".join(names) or "none"
            raise ValueError(f"requires two or more different operators without stages in a search's pool, got {found}")
        if self.trainings < 1 or self.finalists < 1:
            raise ValueError(f"requires at least one training and finalist, got {self.trainings} and {self.finalists}")


class Point(NamedTuple):
    """A network with a contender in it."""

    network: str
    contender: str
    width: int


class Job(NamedTuple):
    """One training."""

    point: Point
    seed: int
    is_reported: bool
    """With a seed for reporting: the test sets are looked at."""


def make_latency_key(contender: Mapping[str, Any], network: str, width: int, batch: int = 1, threads: int = 1) -> str:
    """Of the record of a latency; `contender` are its settings."""
    settings = {"contender": contender, "network": network, "width": width}
    return make_key({"version": VERSION, "batch": batch, "threads": threads, **settings})


@dataclass(frozen=True)
class Protocol:
    """Which networks, widths and contenders are trained with which seeds, by which recipe, on which data.

    `choosing` are the seeds by which candidates are chosen, by their validation accuracy; `reporting` those of what is
    reported, of baselines and chosen candidates. No seed is in both. `hours` limits the effort in CPU hours, all
    records of the store counted: then no further training starts.
    """

    contenders: tuple[Contender, ...]
    networks: tuple[str, ...] = ("pooled",)
    widths: tuple[int, ...] = (16, 32, 48, 64)
    dense: str = "dense"
    """The contender of the width curve."""
    control: str = "pointwise"
    """The one that sees no neighbours: see `statistics.measures_operators`."""
    choosing: tuple[int, ...] = (0, 1, 2)
    reporting: tuple[int, ...] = tuple(range(100, 110))
    recipe: Recipe = Recipe(
        epochs=6, batch_size=64, learning_rate=4e-3, weight_decay=0.02, warmup_steps=100, recalibrate=False
    )
    data: str = "fashion-mnist"
    data_path: str | None = None
    data_options: Mapping[str, Any] = field(default_factory=lambda: {"train": 12000, "validation": 5000, "seed": 0})
    checksum: str | None = None
    """The value that `Data.checksum` must have."""
    hours: float | None = None
    backend: str = "native"
    name: str = "protocol"
    search: StageSearch | None = None

    def __post_init__(self) -> None:
        if both := sorted(set(self.choosing) & set(self.reporting)):
            raise ValueError(
                f"requires seeds for choosing and others for reporting, got {', '.join(map(str, both))} in both"
            )
        if not self.reporting:
            raise ValueError("requires a seed for reporting, got none")
        for name in self.networks:
            if name not in NETWORKS:
                raise ValueError(f"requires networks of {', '.join(NETWORKS)}, got '{name}'")
        names = [contender.name for contender in self.contenders]
        if again := [name for name, count in Counter(names).items() if count > 1]:
            raise ValueError(f"requires each contender once, got '{again[0]}' again")
        if self.dense not in names:
            raise ValueError(f"requires the contender '{self.dense}' of the width curve, got none")
        if self.backend not in ("native", "pytorch"):
            raise ValueError(f"the backend must be 'native' or 'pytorch', got {self.backend!r}")

    def __getitem__(self, name: str) -> Contender:
        """The contender of that name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> Mapping[str, Contender]:
        return {contender.name: contender for contender in self.contenders}

    def load_data(self) -> Data:
        """The data; a `ValueError` where they are not those of the protocol."""
        data = load_data(self.data, self.data_path, **self.data_options)
        if self.checksum is not None and data.checksum() != self.checksum:
            raise ValueError(
                f"requires data with the checksum {self.checksum}, got {data.checksum()}: "
                "results on other data are not compared"
            )
        return data

    def settings(self, job: Job, identity: str) -> dict[str, Any]:
        """All that the result of a training follows from; `identity` is that of the data."""
        return {
            "version": VERSION,
            "network": job.point.network,
            "contender": self[job.point.contender].settings,
            "width": job.point.width,
            "seed": job.seed,
            "recipe": settings_of(self.recipe),
            "data": identity,
        }

    def key(self, job: Job, identity: str) -> str:
        """Of the record of a training."""
        return make_key(self.settings(job, identity))

    def latency_key(self, point: Point, batch: int = 1, threads: int = 1) -> str:
        """Of the record of a latency."""
        return make_latency_key(self[point.contender].settings, point.network, point.width, batch, threads)

    def points(self) -> Iterator[Point]:
        """All, in the order of contenders, then networks, then widths."""
        for contender in self.contenders:
            for network in self.networks:
                for width in contender.widths or self.widths:
                    yield Point(network, contender.name, width)

    def jobs(self, chosen: Sequence[str] = ()) -> Iterator[Job]:
        """The trainings in their order: for each contender all widths with the first seed, then with the second ...

        Baselines and the candidates `chosen` are trained with the seeds for reporting, other candidates with those for
        choosing.
        """
        points = list(self.points())
        for contender in self.contenders:
            is_reported = not contender.is_candidate or contender.name in chosen
            seeds = self.reporting[: contender.num_seeds] if is_reported else self.choosing
            for seed in seeds:
                for point in points:
                    if point.contender == contender.name:
                        yield Job(point, seed, is_reported)
