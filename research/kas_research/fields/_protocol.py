# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the experiments with fields train and by which rules they are decided, and the file that says it."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kas.evaluate._task_data import TaskData

from .._spec import Reader, compose, describe, read_text
from ..protocol._store import make_key
from ._candidates import Candidate
from ._data import KINDS, Batches, Kind
from ._families import FAMILIES, Grid, Network, make_network

VERSION = 1
"""Of networks and trainer: a change that results follow from raises it, and nothing of before is used."""
MOST = 10**6
COMPILERS = ("kas", "torchscript", "inductor")


@dataclass(frozen=True)
class Equation:
    """An equation with the settings of its data."""

    name: str
    """Of `KINDS`, or any other with a kind."""
    size: int = 32
    train: int = 1000
    validation: int = 200
    test: int = 2000
    seed: int = 0
    kind_name: str | None = None
    high: float | None = None
    """The larger coefficient of `darcy`; None: the default."""
    like: str | None = None
    """The equation whose learning rates it gets; None: its own."""

    @property
    def kind(self) -> Kind:
        """What it is."""
        return KINDS[self.kind_name or self.name]

    @property
    def grid(self) -> Grid:
        """Its fields."""
        return Grid(self.kind.inputs, 1, self.size, self.kind.periodic)

    def load(self) -> TaskData:
        """The data, with batches for training."""
        options = {} if self.high is None else {"high": self.high}
        data = self.kind.make(self.size, self.train, self.validation, self.test, self.seed, **options)
        return replace(data, loader=functools.partial(Batches, self.kind))


class Job(NamedTuple):
    """A training."""

    equation: str
    family: str
    width: int
    seed: int
    epochs: int
    learning_rate: float


class Best(NamedTuple):
    """The families of another experiment with the best mean rank, by validation."""

    most: int
    experiment: str


@dataclass(frozen=True)
class Experiment:
    """Trainings with a common question: all combinations."""

    name: str
    equations: tuple[str, ...]
    families: tuple[str | Best, ...]
    """Families and candidates."""
    budgets: tuple[float, ...]
    """Milliseconds of a field, of the whole network."""
    seeds: tuple[int, ...]
    epochs: int
    learning_rates: tuple[float, ...] = ()
    rates_of: tuple[str, ...] = ()
    """Instead: the experiments whose best one, by validation, each equation and family gets."""
    compilers: tuple[str, ...] = COMPILERS
    """Of which the best one counts for the times."""
    rounds: tuple[int, ...] = ()
    """Of successive halving: epochs, with the first seed, after each of which a third goes on."""

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
            assert isinstance(family, str), "families are known where there are jobs"
            width = widths.get((equation, family, budget))
            rates = self.learning_rates
            if self.rates_of:
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
class Roles:
    """The experiments that the verdict is made from."""

    baselines: str
    finalists: str
    replications: str


@dataclass(frozen=True)
class Protocol:
    """All experiments with what they have in common."""

    name: str
    equations: Mapping[str, Equation]
    experiments: Mapping[str, Experiment]
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    batch: int = 16
    """Fields of a call that is timed."""
    batch_size: int = 20
    """Of trainings."""
    weight_decay: float = 1e-3
    warmup: float = 0.15
    """The share of the steps in which the learning rate rises."""
    rules: Rules = Rules()
    verdict: Roles | None = None

    def make_network(self, equation: str, family: str, width: int, seed: int = 0) -> Network:
        """That of a family or a candidate for an equation."""
        candidate = self.candidates.get(family)
        return make_network(family, width, self.equations[equation].grid, seed, candidate.make if candidate else None)

    def settings(self, job: Job) -> dict[str, Any]:
        """All that the result of a training follows from."""
        equation = self.equations[job.equation]
        data = [equation.size, equation.train, equation.validation, equation.test, equation.seed]
        changed = {"kind": equation.kind_name, "high": equation.high}
        return {
            "version": VERSION,
            **job._asdict(),
            "data": data + [value for value in changed.items() if value[1] is not None],
            "recipe": [self.batch_size, self.weight_decay, self.warmup],
            **self._describe_layer(job.family),
        }

    def _describe_layer(self, family: str) -> dict[str, Any]:
        """Families are known by their names; of a candidate what it is."""
        return {"layer": self.candidates[family].settings} if family in self.candidates else {}

    def key(self, job: Job) -> str:
        """Of the record of a training."""
        return make_key(self.settings(job))

    def time_key(self, equation: str, family: str, width: int, compilers: Sequence[str]) -> str:
        """Of the record of a time: of the network, the batch and the compilers, whatever the data."""
        grid = vars(self.equations[equation].grid)
        settings = {"grid": grid, "family": family, "width": width, "batch": self.batch, "compilers": list(compilers)}
        return make_key({"version": VERSION, **settings, **self._describe_layer(family)})


class _Reader(Reader):
    def protocol(self, node: Any) -> Protocol:
        names = ("name", "equations", "timing", "recipe", "candidates", "experiments", "rules", "verdict")
        keys = self.mapping(node, names, "a protocol of fields")
        for key in ("equations", "experiments"):
            if key not in keys:
                raise self.fail(node, f"requires the key '{key}' in a protocol of fields, got none")
        equations = self.by_name(keys["equations"], "an equation", self.equation)
        for node, equation in zip(keys["equations"].value, equations.values()):
            if equation.like is not None and equation.like not in equations:
                raise self.fail(node, f"requires the rates of {', '.join(equations)}, got those of '{equation.like}'")
        values: dict[str, Any] = {"candidates": {}}
        if "candidates" in keys and keys["candidates"].value:
            values["candidates"] = self.by_name(keys["candidates"], "a candidate", self.candidate)
        read = functools.partial(self.experiment, equations=list(equations), candidates=list(values["candidates"]))
        experiments = self.by_name(keys["experiments"], "an experiment", read)
        for node, experiment in zip(keys["experiments"].value, experiments.values()):
            for name in (
                *experiment.rates_of,
                *(one.experiment for one in experiment.families if isinstance(one, Best)),
            ):
                if name not in experiments:
                    known = ", ".join(experiments)
                    raise self.fail(node, f"requires the best of {known}, got that of '{name}'")
        if "verdict" in keys:
            values["verdict"] = self.roles(keys["verdict"], list(experiments))
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
        ranges: dict[str, tuple[float, float, Any]] = {"size": (8, 4096, int), "seed": (0, MOST, int)}
        ranges |= {part: (1, MOST, int) for part in ("train", "validation", "test")}
        ranges |= {"high": (1e-9, 1e9, float)}
        texts = ("name", "kind", "like")
        keys = self.mapping(node, (*texts, *ranges), "an equation")
        if "name" not in keys:
            raise self.fail(node, "requires the key 'name' in an equation, got none")
        kind = self.choice(keys.get("kind", keys["name"]), list(KINDS), "an equation")
        if "high" in keys and kind != "darcy":
            raise self.fail(keys["high"], f"requires 'high' in a darcy, got it in a {kind}")
        return Equation(
            self.text(keys["name"], "'name'"),
            kind_name=kind if "kind" in keys else None,
            like=self.text(keys["like"], "'like'") if "like" in keys else None,
            **{key: self.number(keys[key], f"'{key}'", *ranges[key]) for key in keys if key not in texts},
        )

    def candidate(self, node: Any) -> Candidate:
        """A layer that is no family; a `file` is beside the protocol's."""
        kinds = ("module", "operator", "file")
        keys = self.mapping(node, ("name", "nearest", *kinds, "binding"), "a candidate")
        for key in ("name", "nearest"):
            if key not in keys:
                raise self.fail(node, f"requires the key '{key}' in a candidate, got none")
        name = self.text(keys["name"], "'name'")
        if name in FAMILIES:
            raise self.fail(keys["name"], f"requires a candidate that is no family, got '{name}'")
        given = {kind: self.text(keys[kind], f"'{kind}'") for kind in kinds if kind in keys}
        if "file" in given:
            given["text"] = read_text(os.path.join(os.path.dirname(self.path), given.pop("file")))
        binding = {}
        if "binding" in keys:
            symbols = [key.value for key, _ in keys["binding"].value]
            binding = self.numbers(keys["binding"], dict.fromkeys(symbols, (1, MOST, int)), "a binding")
        nearest = self.choice(keys["nearest"], FAMILIES, "a family")
        try:
            return Candidate(name, nearest, **given, binding=binding)
        except ValueError as error:
            raise self.fail(node, str(error)) from error

    def roles(self, node: Any, experiments: list[str]) -> Roles:
        """The experiments of the verdict."""
        wanted = ("baselines", "finalists", "replications")
        keys = self.mapping(node, wanted, "a verdict")
        for key in wanted:
            if key not in keys:
                raise self.fail(node, f"requires the key '{key}' in a verdict, got none")
        return Roles(**{key: self.choice(keys[key], experiments, "an experiment") for key in wanted})

    def experiment(self, node: Any, equations: list[str], candidates: list[str]) -> Experiment:
        wanted = ("name", "equations", "families", "budgets", "seeds", "epochs", "learning-rates")
        keys = self.mapping(node, (*wanted, "compilers"), "an experiment")
        for key in wanted:
            if key not in keys:
                raise self.fail(node, f"requires the key '{key}' in an experiment, got none")
        return Experiment(
            self.text(keys["name"], "'name'"),
            self.choices(keys["equations"], equations, "equations", "equation"),
            self.families(keys["families"], candidates),
            self.floats(keys["budgets"], "budgets"),
            self.seeds(keys["seeds"]),
            **self.epochs(keys["epochs"]),
            **self.rates(keys["learning-rates"]),
            compilers=(
                self.choices(keys["compilers"], COMPILERS, "compilers", "compiler")
                if "compilers" in keys
                else COMPILERS
            ),
        )

    def families(self, node: Any, candidates: list[str]) -> tuple[str | Best, ...]:
        """Names of families and candidates, `candidates` (all of them), or `best 5 of` another experiment."""
        found: list[str | Best] = []
        nodes = self.sequence(node, "'families'")
        for one in nodes:
            words = one.value.split(maxsplit=3) if one.id == "scalar" else []
            if words == ["candidates"]:
                found += candidates
            elif len(words) == 4 and (words[0], words[2]) == ("best", "of") and words[1].isdigit() and int(words[1]):
                found.append(Best(int(words[1]), words[3]))
            else:
                found.append(self.choice(one, [*FAMILIES, *candidates], "family"))
        if len(set(found)) != len(found):
            self.distinct(nodes, [one.value for one in nodes], "family")
            raise self.fail(node, "requires each family once, got one again")
        return tuple(found)

    def epochs(self, node: Any) -> dict[str, Any]:
        """A number, or those of the rounds of successive halving."""
        nodes = self.sequence(node, "'epochs'") if node.id == "sequence" else [node]
        numbers = [self.number(one, "'epochs'", 1, 10000) for one in nodes]
        if sorted(set(numbers)) != numbers:
            raise self.fail(node, f"requires more epochs in each round, got {', '.join(map(str, numbers))}")
        return {"epochs": numbers[-1], "rounds": tuple(numbers[:-1])}

    def rates(self, node: Any) -> dict[str, Any]:
        """Numbers, or `best of` other experiments: `best of rates, more-rates`."""
        if node.id == "scalar" and node.value.startswith("best of "):
            names = node.value.removeprefix("best of ").split(",")
            return {"rates_of": tuple(name.strip() for name in names)}
        return {"learning_rates": self.floats(node, "learning-rates")}

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
