# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of the benchmark as objects."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kas._module import Module, Operator

from ._find import Found, find
from ._space import DEFAULT, NETWORK, PROPERTIES, SIZES, WIDTH, read_space

if TYPE_CHECKING:
    from kas.evaluate._halving import Halving

    from ._replay import Replay


@dataclass(frozen=True)
class Costs:
    """The cost of an operator in a layer, exactly; see `kas.Cost` and `kas.Operator.existing_flops`."""

    flops: int
    """Two per multiply-add, weights being prepared."""
    unprepared_flops: int
    training_flops: int
    existing_flops: int
    """The part of `flops` that has no zero of a padding."""
    parameters: int
    bytes: int
    """Of data, weights and output in f32."""


@dataclass(frozen=True)
class Latency:
    """How long an operator took in a layer, compiled by kas."""

    layer: str
    """Of `LAYERS`, or `trained`: the whole network that is trained."""
    threads: int
    machine: str
    """The processor, as the system names it."""
    microseconds: float
    """The least of all calls."""
    dense_microseconds: float
    """Of the 3x3 convolution of the layer, or of the network of width 16 with such, measured interleaved with it."""
    width: int | None = None
    """Of the network that is trained."""

    @property
    def ratio(self) -> float:
        """To the dense layer: what is compared between machines."""
        return self.microseconds / self.dense_microseconds


@dataclass(frozen=True)
class Training:
    """The outcome of one training."""

    task: str
    seed: int
    failure: str | None = None
    """Why there is nothing else."""
    validation: float | None = None
    """Accuracy in percent, as the next three."""
    test: float | None = None
    shifted: float | None = None
    """On the test images, each moved by up to three pixels."""
    rotated: float | None = None
    """On the test images, each turned by up to 20 degrees."""
    curve: tuple[float, ...] = ()
    """The validation accuracy after each epoch."""
    losses: tuple[float, ...] = ()
    """The mean training loss of each epoch, in nats."""
    parameters: int | None = None
    """Of the network."""
    cpu_seconds: float = 0.0
    width: int = WIDTH
    """Channels of the first stage of the network."""
    correct: str = ""
    """Which test images are classified right, as text of `kas_research.protocol.bootstrap.pack_bits`; empty where that
    was not kept."""


@dataclass(frozen=True)
class Row:
    """An operator and all that is known of it."""

    number: int
    """Its place in the list of the space, from 0 on."""
    key: str
    """Of its canonical form: see `kas.Candidate.key`."""
    text: str
    """The file of the operator `candidate`."""
    properties: frozenset[str]
    """Of `PROPERTIES`."""
    costs: Mapping[str, Costs] = field(default_factory=dict)
    """By layer, summed over the layers of ResNet-18 as `network`, over those of what is trained as `trained`."""
    latencies: Sequence[Latency] = ()
    trainings: Sequence[Training] = ()

    def __repr__(self) -> str:
        return f"<operator {self.number} of KAS-Bench-1>"

    @cached_property
    def operator(self) -> Operator:
        """The operator."""
        return Module(self.text, f"<operator {self.number}>")["candidate"]

    def get_trainings(self, task: str, width: int = WIDTH) -> list[Training]:
        """Those of a task that came to an end, by seed."""
        found = [one for one in self.trainings if (one.task, one.width, one.failure) == (task, width, None)]
        return sorted(found, key=lambda one: one.seed)

    def get_accuracy(self, task: str, part: str = "test") -> float | None:
        """The mean over the seeds of `validation`, `test`, `shifted` or `rotated`; None where there is no training."""
        values = [getattr(one, part) for one in self.get_trainings(task)]
        return statistics.fmean(values) if values else None

    def get_ratio(self, layer: str, threads: int = 1, machine: str | None = None, width: int = WIDTH) -> float | None:
        """The median over machines (or that of one) of the latency, over that of the dense layer; None without any.

        `width` is that of the network where `layer` is `trained`.
        """
        values = [
            one.ratio
            for one in self.latencies
            if (one.layer, one.threads) == (layer, threads)
            and machine in (None, one.machine)
            and one.width in (None, width)
        ]
        return statistics.median(values) if values else None


Condition = bool | float | tuple[float, float]


class Table(Sequence[Row]):
    """All operators of the space, in the order of the list: those with the fewest FLOPs in ResNet-18 come first.

    >>> table = kas_research.bench1.load()
    >>> table[4711].get_accuracy("fashion-mnist"), table[4711].get_ratio("64x56", threads=2)
    """

    def __init__(self, rows: Sequence[Row], references: Mapping[str, Row], manifest: Mapping[str, Any]):
        self._rows = list(rows)
        self.references = references
        """Layers made by hand that were trained in the same way, by name; they have no number (-1) and no text."""
        self.manifest = manifest
        """How the tables were made: `tasks`, `versions`, `machines`, `licence`, checksums of `files`."""

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __getitem__(self, number: Any) -> Any:
        return self._rows[number]

    def __repr__(self) -> str:
        trained = sum(any(one.failure is None for one in row.trainings) for row in self._rows)
        timed = sum(bool(row.latencies) for row in self._rows)
        return f"<kas_research.bench1.Table: {len(self)} operators, {timed} with latencies, {trained} with accuracies>"

    @cached_property
    def by_key(self) -> Mapping[str, Row]:
        """The rows by their keys."""
        return {row.key: row for row in self._rows}

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks that operators are trained on."""
        return list(self.manifest["tasks"])

    def find(self, operator: Operator | str, symbols: Mapping[str, str] = {}) -> Found:
        """The place of an operator in the list, by its canonical form, or why it is not there.

        It may be written in another way, with other names of primary symbols, and with one symbol for height and width
        or two. `symbols` says which coefficients of the space those of the operator are.

        >>> table.find(kas.operator("conv2d_grouped"), {"k": "k1"})
        """
        return find(operator, read_space(), self.by_key, symbols)

    def query(self, *, layer: str = NETWORK, **conditions: Condition) -> list[Row]:
        """The rows that meet all conditions.

        A condition is a cost (a field of `Costs`, in `layer`) with its most or a pair of its least and most, or a
        property (of `PROPERTIES`) with whether the operator has it.

        >>> table.query(flops=1e9, parameters=(1e5, 1e6), sees=True)
        """
        costs = [entry.name for entry in fields(Costs)]
        if layer not in SIZES:
            raise ValueError(f"requires a layer of {', '.join(SIZES)}, got '{layer}'")
        found = self._rows
        for name, condition in conditions.items():
            if name in PROPERTIES and isinstance(condition, bool):
                found = [row for row in found if (name in row.properties) == condition]
            elif name in costs and not isinstance(condition, bool):
                least, most = condition if isinstance(condition, tuple) else (0, condition)
                found = [row for row in found if least <= getattr(row.costs[layer], name) <= most]
            else:
                raise ValueError(
                    f"requires numbers for {', '.join(costs)} and True or False for {', '.join(PROPERTIES)}, "
                    f"got {name}={condition!r}"
                )
        return list(found)

    def replay(
        self,
        algorithm: str = "surrogate",
        seed: int = 0,
        budget: float = 100,
        *,
        task: str | None = None,
        properties: Sequence[str] = DEFAULT,
        halving: Halving | None = None,
        objective: str = "-accuracy",
        parameters: Mapping[str, float] = {},
    ) -> Replay:
        """A search among the operators with the properties, whose trainings are looked up.

        `algorithm` is one of `kas.ALGORITHMS`, or `halving`: `random` under successive halving. With `halving` (a
        `kas.Halving`) any of them trains most candidates for a few epochs only. `budget` is in whole trainings, of
        `task` (the first one); operators that cannot be trained cost none. The search sees the validation accuracy of
        one training, drawn by the seed for each operator; what it finds is evaluated by the mean test accuracy of all.
        `objective` is one of `accuracy`, `epochs`, `flops` and `params`. Needs the extra `torch`.

        >>> table.replay("mcts", seed=1, budget=50).regret(50)
        """
        from ._replay import replay

        return replay(
            self,
            algorithm,
            seed,
            budget,
            task=task,
            properties=properties,
            halving=halving,
            objective=objective,
            parameters=parameters,
        )
