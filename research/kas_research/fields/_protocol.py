# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the experiments with fields train and by which rules they are decided, and the file that says it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kas.evaluate._task_data import TaskData

from .._spec import Reader, compose, describe, read_text
from ..protocol._store import make_key
from ._data import KINDS, Batches, Kind
from ._families import FAMILIES, Grid

VERSION = 1
"""Of networks and trainer: a change that results follow from raises it, and nothing of before is used."""
MOST = 10**6
COMPILERS = ("kas", "torchscript", "inductor")


@dataclass(frozen=True)
class Equation:
    """An equation with the settings of its data."""

    name: str
    size: int = 32
    train: int = 1000
    validation: int = 200
    test: int = 2000
    seed: int = 0

    @property
    def kind(self) -> Kind:
        """What it is."""
        return KINDS[self.name]

    @property
    def grid(self) -> Grid:
        """Its fields."""
        return Grid(self.kind.inputs, 1, self.size, self.kind.periodic)

    def load(self) -> TaskData:
        """The data, with batches for training."""
        data = self.kind.make(self.size, self.train, self.validation, self.test, self.seed)
        return replace(data, loader=functools.partial(Batches, self.kind))


class Job(NamedTuple):
    """A training."""

    equation: str
    family: str
    width: int
    seed: int
    epochs: int
    learning_rate: float


@dataclass(frozen=True)
class Experiment:
    """Trainings with a common question: all combinations."""

    name: str
    equations: tuple[str, ...]
    families: tuple[str, ...]
    budgets: tuple[float, ...]
    """Milliseconds of a field, of the whole network."""
    seeds: tuple[int, ...]
    epochs: int
    learning_rates: tuple[float, ...] | str
    """Or the experiment whose best one, by validation, each equation and family gets."""
    compilers: tuple[str, ...] = COMPILERS
    """Of which the best one counts for the times."""

    def get_jobs(
        self,
        widths: Mapping[tuple[str, str, float], int | None],
        best_rates: Mapping[tuple[str, str], float] = {},
    ) -> Iterator[Job]:
        """The trainings, those of the first seed first.

        `widths` by equation, family and budget, `best_rates` by equation and family where they are of another
        experiment; for what has none there is no training.
        """
        seen = set()
        for seed, equation, budget, family in itertools.product(
            self.seeds, self.equations, self.budgets, self.families
        ):
            width = widths.get((equation, family, budget))
            rates = self.learning_rates
            if isinstance(rates, str):
                rates = tuple(filter(None, [best_rates.get((equation, family))]))
            for rate in rates if width is not None else ():
                job = Job(equation, family, width or 0, seed, self.epochs, rate)
                if job not in seen:
                    seen.add(job)
                    yield job


@dataclass(frozen=True)
class Rules:
    """When to stop after the pilot, and what is a win or none."""

    pointwise: float = 2.0
    """The layer that sees no neighbours must have so many times the error of the best family."""
    ahead: float = 3.0
    """The best family has at least the error of the best one that kas expresses over this."""
    deviation: float = 0.15
    """The most over seeds, of the logarithm of the error."""
    win: float = 0.9
    """Of the ratio of errors, at both budgets."""
    none: float = 0.95
    """No: the lower bound of the best ratio is above."""
    level: float = 0.05
    draws: int = 4000
    """Of the bootstrap."""


@dataclass(frozen=True)
class Protocol:
    """All experiments with what they have in common."""

    name: str
    equations: Mapping[str, Equation]
    experiments: Mapping[str, Experiment]
    batch: int = 16
    """Fields of a call that is timed."""
    batch_size: int = 20
    """Of trainings."""
    weight_decay: float = 1e-3
    warmup: float = 0.15
    """The share of the steps in which the learning rate rises."""
    rules: Rules = Rules()

    def settings(self, job: Job) -> dict[str, Any]:
        """All that the result of a training follows from."""
        equation = self.equations[job.equation]
        return {
            "version": VERSION,
            **job._asdict(),
            "data": [equation.size, equation.train, equation.validation, equation.test, equation.seed],
            "recipe": [self.batch_size, self.weight_decay, self.warmup],
        }

    def key(self, job: Job) -> str:
        """Of the record of a training."""
        return make_key(self.settings(job))

    def time_key(self, equation: str, family: str, width: int, compilers: Sequence[str]) -> str:
        """Of the record of a time: of the network, the batch and the compilers, whatever the data."""
        grid = vars(self.equations[equation].grid)
        settings = {"grid": grid, "family": family, "width": width, "batch": self.batch, "compilers": list(compilers)}
        return make_key({"version": VERSION, **settings})


class _Reader(Reader):
    def protocol(self, node: Any) -> Protocol:
        keys = self.mapping(
            node, ("name", "equations", "timing", "recipe", "experiments", "rules"), "a protocol of fields"
        )
        for key in ("equations", "experiments"):
            if key not in keys:
                raise self.fail(node, f"requires the key '{key}' in a protocol of fields, got none")
        equations = self.by_name(keys["equations"], "an equation", self.equation)
        experiments = self.by_name(
            keys["experiments"], "an experiment", functools.partial(self.experiment, equations=list(equations))
        )
        for node, experiment in zip(keys["experiments"].value, experiments.values()):
            if isinstance(experiment.learning_rates, str) and experiment.learning_rates not in experiments:
                known = ", ".join(experiments)
                raise self.fail(node, f"requires the best of {known}, got that of '{experiment.learning_rates}'")
        values: dict[str, Any] = {}
        if "timing" in keys:
            values.update(self.numbers(keys["timing"], {"batch": (1, 4096, int)}, "a timing"))
        if "recipe" in keys:
            ranges = {"batch-size": (1, 65536, int), "weight-decay": (0.0, 1e6, float), "warmup": (0.0, 1.0, float)}
            values.update(self.numbers(keys["recipe"], ranges, "a recipe"))
        if "rules" in keys:
            ranges = {name: (0.0, 1e6, type(value)) for name, value in vars(Rules()).items()}
            values["rules"] = Rules(**self.numbers(keys["rules"], ranges, "rules"))
        name = self.text(keys["name"], "'name'") if "name" in keys else "fields"
        return Protocol(name, equations, experiments, **values)

    def text(self, node: Any, what: str) -> str:
        if node.id != "scalar" or not node.value:
            raise self.fail(node, f"requires {what} to be a text, got {describe(node)}")
        value: str = node.value
        return value

    def by_name(self, node: Any, what: str, read: Callable[[Any], Any]) -> dict[str, Any]:
        nodes = self.sequence(node, f"{what.split(maxsplit=1)[1]}s")
        entries = [read(entry) for entry in nodes]
        for place, entry in enumerate(entries):
            if entry.name in [other.name for other in entries[:place]]:
                raise self.fail(nodes[place], f"requires {what} of each name once, got '{entry.name}' again")
        return {entry.name: entry for entry in entries}

    def numbers(self, node: Any, ranges: Mapping[str, tuple[float, float, Any]], what: str) -> dict[str, Any]:
        keys = self.mapping(node, list(ranges), what)
        return {key.replace("-", "_"): self.number(keys[key], f"'{key}'", *ranges[key]) for key in keys}

    def equation(self, node: Any) -> Equation:
        ranges = {"size": (8, 4096, int), "seed": (0, MOST, int)}
        ranges |= {part: (1, MOST, int) for part in ("train", "validation", "test")}
        keys = self.mapping(node, ("name", *ranges), "an equation")
        if "name" not in keys:
            raise self.fail(node, "requires the key 'name' in an equation, got none")
        name = self.choice(keys["name"], list(KINDS), "an equation")
        return Equation(
            name, **{key: self.number(keys[key], f"'{key}'", *ranges[key]) for key in keys if key != "name"}
        )

    def experiment(self, node: Any, equations: list[str]) -> Experiment:
        wanted = ("name", "equations", "families", "budgets", "seeds", "epochs", "learning-rates")
        keys = self.mapping(node, (*wanted, "compilers"), "an experiment")
        for key in wanted:
            if key not in keys:
                raise self.fail(node, f"requires the key '{key}' in an experiment, got none")
        return Experiment(
            self.text(keys["name"], "'name'"),
            self.choices(keys["equations"], equations, "equations", "equation"),
            self.choices(keys["families"], FAMILIES, "families", "family"),
            self.floats(keys["budgets"], "budgets"),
            self.seeds(keys["seeds"]),
            self.number(keys["epochs"], "'epochs'", 1, 10000),
            self.rates(keys["learning-rates"]),
            self.choices(keys["compilers"], COMPILERS, "compilers", "compiler") if "compilers" in keys else COMPILERS,
        )

    def rates(self, node: Any) -> tuple[float, ...] | str:
        """Numbers, or `best of` another experiment."""
        if node.id == "scalar" and node.value.startswith("best of "):
            name: str = node.value.removeprefix("best of ")
            return name
        return self.floats(node, "learning-rates")

    def floats(self, node: Any, key: str) -> tuple[float, ...]:
        nodes = self.sequence(node, f"'{key}'")
        what = key.replace("-", " ").removesuffix("s")
        return self.distinct(nodes, [self.number(one, f"a {what}", 1e-9, 1e6, float) for one in nodes], what)

    def seeds(self, node: Any) -> tuple[int, ...]:
        """A number, or the first and the last one: `100-104`."""
        text = self.text(node, "seeds")
        first, _, last = text.partition("-")
        if not first.isdigit() or not (last or first).isdigit() or int(last or first) < int(first):
            raise self.fail(node, f"requires seeds such as 3 or 100-104, got '{text}'")
        return tuple(range(int(first), int(last or first) + 1))


def parse_protocol(text: str, path: str = "<text>") -> Protocol:
    """The protocol of a text; a `SpecError` has the line of what is wrong."""
    return _Reader(path).protocol(compose(text, path, "a protocol of fields"))


def read_protocol(path: str) -> Protocol:
    """The protocol of a file."""
    return parse_protocol(read_text(path), path)
