# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Spaces of operators, and searchers that propose operators of them (ask) and learn what became of them (tell)."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypedDict

from . import _kas
from ._errors import Error
from ._module import Module, Operator

ALGORITHMS = ("random", "uniform", "exhaustive", "evolution", "mcts", "surrogate")
"""How candidates are chosen; docs/guide/searching.md says how each works."""


class _Description(TypedDict):
    """What the extension reports about a space, as JSON."""

    name: str
    primaries: list[str]
    coefficients: list[str]
    bindings: list[dict[str, int]]
    multiplicities: list[int]
    budget: dict[str, float]
    baseline: dict[str, float]
    named_operator: str


class SearchSpace:
    """A `kas.space`: what operators there may be, and the layers (bindings) that they are for.

    >>> space = kas.SearchSpace(text_of_a_module)       # or a kas.Module; `name` where it has several spaces
    >>> space.bindings, space.multiplicities
    """

    def __init__(self, module: str | Module, name: str | None = None):
        if isinstance(module, str):
            module = Module(module, "<space>")
        if not isinstance(module, Module):
            raise TypeError(f"expected a kas.Module or its text, got {type(module).__name__}")
        self.module = module
        self._description: _Description = json.loads(module._handle.describe_space(name))
        self.name: str = self._description["name"]

    @classmethod
    def parse(cls, text: str, name: str | None = None) -> SearchSpace:
        """The space `name`, or the only one, of MLIR text."""
        return cls(Module(text, "<space>"), name)

    def __repr__(self) -> str:
        return f"<kas.SearchSpace {self.name}>"

    @property
    def symbols(self) -> tuple[list[str], list[str]]:
        """The primary symbols and the coefficients."""
        return self._description["primaries"], self._description["coefficients"]

    @property
    def bindings(self) -> list[dict[str, int]]:
        """A value for each symbol, for each distinct layer."""
        return self._description["bindings"]

    @property
    def multiplicities(self) -> list[int]:
        """How many layers there are of each binding."""
        return self._description["multiplicities"]

    @property
    def budget(self) -> dict[str, float]:
        """Bounds on sums over all layers: `min_flops`, `flops`, `params`, those that are there."""
        return self._description["budget"]

    @property
    def baseline(self) -> dict[str, float]:
        """What the layers have together: `flops` and `params`, where the space says it."""
        return self._description["baseline"]

    @property
    def named_operator(self) -> str:
        """The operator of the library that computes what the layers compute; empty where there is none."""
        return self._description["named_operator"]

    @property
    def text(self) -> str:
        """The space alone, as MLIR."""
        return self.module.text_of(self.name)

    def list(self, limit: int = 1_000_000) -> list[Candidate]:
        """All operators within the budget, the one with the fewest FLOPs first, with exact costs.

        Small spaces only: `limit` bounds how many are taken. Every candidate's text takes some kilobytes.
        """
        with Searcher(self, "exhaustive") as searcher:
            return searcher.ask(limit)

    def count(self, limit: int = 1_000_000) -> int:
        """How many operators `list` gives."""
        return len(self.list(limit))

    def find(self, operator: Operator) -> Membership:
        """The key that a candidate has which is the same operator, and reasons why there is none.

        Primary symbols are matched by where they are in the shapes, all others by name. Steps are counted as they are
        written: another way to write the operator may have fewer, `Operator.canonical` often has. Not all limits are
        looked at, so a key without reasons does not mean that the space has the operator.
        """
        return Membership(
            **json.loads(self.module._handle.find_member(self.name, operator.module._handle, operator.name))
        )


class Membership(NamedTuple):
    """Which candidate of a space an operator is: see `SearchSpace.find`."""

    key: str | None
    """The `Candidate.key` of the candidate that is the same operator, if there is one; None where `reasons` show before
    that there is none."""
    reasons: list[str]
    """Bounds of the space that the operator is not within."""


@dataclass(frozen=True)
class Candidate:
    """A proposal of a searcher."""

    id: int
    """Counts up from 0 in the order of proposal."""
    key: str
    """Of the canonical form: equal for equal operators, on any machine."""
    text: str
    """The IR: a file with the operator `candidate`."""
    flops: int
    """Two per multiply-add with the best stages, summed over the layers."""
    params: int
    """Elements of all weights, summed over the layers."""
    parent: int | None = None
    """The candidate that it is a variation of, for algorithms that vary others."""

    @cached_property
    def operator(self) -> Operator:
        """The operator, in a module of its own."""
        return Module(self.text, f"<candidate {self.id}>")["candidate"]

    @property
    def weights_indexed_by_position(self) -> bool:
        """See `kas.Operator.weights_indexed_by_position`."""
        return self.operator.weights_indexed_by_position


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a candidate."""

    candidate: Candidate
    metrics: dict[str, float] = field(default_factory=dict)
    failure: str | None = None
    """Why it has no metrics."""

    @property
    def id(self) -> int:
        """The number of the candidate."""
        return self.candidate.id


class Searcher:
    """An algorithm on a space: `ask` proposes candidates, `tell` returns what became of them, in any order.

    With `database` everything is kept in one SQLite file (docs/guide/searching.md), and a searcher made with the same
    arguments goes on where the last one ended, however it ended: `results` has the outcomes, and candidates without
    one are proposed first. `settings` are further texts that must be the same to go on, such as how candidates are
    evaluated.

    `objective` says what is to be small, e.g. `"-accuracy"` or `"pareto(flops,-accuracy)"`; without one the algorithm
    follows `latency_ms`, then `flops`. `parameters` are constants of the algorithm. Safe to use from any thread; calls
    do not hold Python's lock. Wrong arguments, a damaged file or one of another search raise `kas.Error`.

    >>> with kas.Searcher(space, "mcts", seed=1, database="search.db", objective="-accuracy") as searcher:
    ...     for candidate in searcher.ask(4):
    ...         searcher.tell(candidate.id, {"accuracy": train(candidate.operator)})
    """

    def __init__(
        self,
        space: SearchSpace | Module | str,
        algorithm: str = "surrogate",
        *,
        seed: int = 0,
        database: str | os.PathLike[str] | None = None,
        objective: str = "",
        parameters: Mapping[str, float] = {},
        settings: Mapping[str, str] = {},
    ):
        if not isinstance(space, SearchSpace):
            space = SearchSpace(space)
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 64:
            raise ValueError(f"the seed must be an integer from 0 to 2**64 - 1, got {seed!r}")
        self.space = space
        self.algorithm = algorithm
        self.seed = seed
        self.database = None if database is None else os.fspath(database)
        flat = [text for name, value in settings.items() for text in (str(name), str(value))]
        self._handle = _kas.Searcher(
            space.module._handle,
            space.name,
            algorithm,
            seed,
            [f"{name}={value}" for name, value in parameters.items()],
            objective,
            self.database,
            flat,
        )
        self._lock = threading.Lock()
        self._in_flight: dict[int, Candidate] = {}
        self._results: dict[int, SearchResult] = {}
        for entry in json.loads(self._handle.get_replayed()):
            result = SearchResult(_candidate(entry), entry.get("metrics", {}), entry.get("failure"))
            self._results[result.id] = result
        self.num_replayed = len(self._results)
        """How many outcomes the database had."""

    def __reduce__(self) -> str:
        raise TypeError("a kas.Searcher cannot be pickled or copied; send its candidates, or open its database")

    def __enter__(self) -> Searcher:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Candidate]:
        """Candidates one by one, until there are no more."""
        while candidates := self.ask(1):
            yield candidates[0]

    def ask(self, count: int = 1) -> list[Candidate]:
        """Up to `count` candidates; fewer when the space is exhausted or the effort of a call is spent.

        Ctrl-C ends it, and stops the searcher.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"the number of candidates must be a non-negative integer, got {count!r}")
        is_main = threading.current_thread() is threading.main_thread()
        candidates = [_candidate(entry) for entry in json.loads(self._handle.ask(count, is_main))]
        with self._lock:
            self._in_flight.update((candidate.id, candidate) for candidate in candidates)
        return candidates

    def tell(self, id: int, metrics: Mapping[str, float] | None = None, *, error: str | None = None) -> SearchResult:
        """Returns the outcome of a candidate: its metrics, finite numbers by name, or the reason why it has none.

        Metrics that are NaN or infinite are an outcome, too: a failure that says which. `flops` and `params` are added
        where they are not given.
        """
        if (metrics is None) == (error is None):
            raise TypeError("tell either metrics or an error")
        with self._lock:
            candidate = self._in_flight.get(id)
        if candidate is None:
            known = "has an outcome" if id in self._results else "was not proposed"
            raise Error(f"requires the number of a candidate in flight, got {id}, which {known}")
        numbers: dict[str, float] = {}
        if metrics is not None:
            numbers = {"flops": candidate.flops, "params": candidate.params, **_numbers(metrics)}
            bad = [f"{name} is {value}" for name, value in numbers.items() if not math.isfinite(value)]
            error = ", ".join(bad) if bad else None
        if error is not None:
            numbers = {}
            self._handle.tell_failure(id, error)
        else:
            self._handle.tell_metrics(id, list(numbers), list(numbers.values()))
        result = SearchResult(candidate, numbers, error)
        with self._lock:
            self._in_flight.pop(id, None)
            self._results[id] = result
        return result

    @property
    def results(self) -> list[SearchResult]:
        """All outcomes by identifier, also those that the database had."""
        with self._lock:
            return [self._results[id] for id in sorted(self._results)]

    @property
    def num_results(self) -> int:
        """How many outcomes there are, also those that the database had."""
        with self._lock:
            return len(self._results)

    @property
    def in_flight(self) -> list[Candidate]:
        """Candidates that this object proposed and that have no outcome."""
        with self._lock:
            return [self._in_flight[id] for id in sorted(self._in_flight)]

    def record_final(
        self, id: int, metrics: Mapping[str, float] | None = None, *, error: str | None = None, seconds: float = 0.0
    ) -> None:
        """Keeps in the database what a closer look at a candidate gave, such as more trainings of the best.

        It replaces nothing, and the algorithm does not learn of it.
        """
        if (metrics is None) == (error is None):
            raise TypeError("record either metrics or an error")
        numbers = _numbers(metrics or {})
        self._handle.record_final(id, list(numbers), list(numbers.values()), error, seconds)

    @property
    def finals(self) -> dict[int, SearchResult]:
        """What `record_final` kept in the database, by identifier."""
        known = {result.id: result.candidate for result in self.results}
        return {
            int(id): SearchResult(known[int(id)], entry.get("metrics", {}), entry.get("failure"))
            for id, entry in json.loads(self._handle.get_finals()).items()
        }

    def add_baseline(self, name: str, text: str) -> int:
        """The number, -2 or less, of what candidates are compared with beside the network itself: its name and its IR.

        It stands for it in `record_training`; a database keeps it. `kas.Error` where that has another of this name.
        """
        return self._handle.add_baseline(name, text)

    def record_training(self, candidate: int, seed: int, curve: Sequence[tuple[int, str, float]]) -> None:
        """Keeps the curve of a training in the database: epoch, name and value of each of its numbers.

        `candidate` is -1 for the network that candidates are compared with, or the number of a baseline.
        """
        self._handle.record_training(
            candidate, seed, [(int(e), str(n), float(v)) for e, n, v in curve if math.isfinite(v)]
        )

    @property
    def training(self) -> list[tuple[int, int, int, str, float]]:
        """All curves in the database: candidate, seed, epoch, name, value."""
        return [tuple(row) for row in json.loads(self._handle.get_training())]

    @property
    def is_exhausted(self) -> bool:
        """Every candidate of the space has been proposed."""
        return self._handle.is_exhausted()

    @property
    def statistics(self) -> dict[str, int]:
        """Counts: `asked`, `evaluated`, `failed`, `expansions`, `rollouts`, `dead_ends`, `duplicates`."""
        statistics: dict[str, int] = json.loads(self._handle.get_statistics())
        return statistics

    def stop(self) -> None:
        """Makes a running and all later `ask` return soon."""
        self._handle.stop()

    def close(self) -> None:
        """Closes the database. Asking and telling raise `kas.Error` from then on. May be called again."""
        self._handle.close()


def read_objective(text: str) -> list[list[tuple[float, str]]]:
    """The axes of an objective: one, several of a front, none of an empty text; each is factors and metrics."""
    return [[(factor, name) for factor, name in axis] for axis in json.loads(_kas.describe_objective(text))]


def _candidate(entry: dict[str, Any]) -> Candidate:
    return Candidate(
        entry["id"], entry["key"], entry["operator"], entry.get("flops", 0), entry.get("params", 0), entry["parent"]
    )


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    numbers = {}
    for name, value in metrics.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a metric must be text, got {name!r}")
        try:
            numbers[name] = float(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"the metric '{name}' must be a number, got {value!r}") from error
    return numbers
