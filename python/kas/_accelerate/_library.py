# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library of a run: what may be at each place of the network, its time, and what it costs in accuracy."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from ._alternatives import Factory, list_forms
from ._distill import draw_inputs, recalibrate
from ._found import LEARNING, TIMING, Allowance, Finder
from ._imitation import imitate, observe_units
from ._knapsack import Choice, Option, Place
from ._learnt import Learnt, count_wins, describe_layer, read_all
from ._problem import Problem
from ._remote import Imitation
from ._statistics import get_divergence, predict
from ._times import LayerTimes
from ._units import Unit, Units, find_units, get_module, set_module

LEAST_SHARE = 0.01
"""Of the multiply-adds of the network: smaller layers stay as they are."""
GAIN = 0.9
"""The largest share of the time of a layer that an alternative may take."""
PREFERRED = ("depthwise-separable-relu", "depthwise", "skip", "depthwise-2-separable-relu")
"""The forms that are looked at first where none won for such a layer before."""
LEAST_FORMS, TIMING_SHARES, LEARNING_SHARES = 3, (0.25, 0.35), (0.45, 0.5)
"""Of each layer so many forms come first. Others are looked at until the first of these shares of the time has passed,
those until the second."""
EVALUATION_SHARE = 0.6
"""Losses are measured until this share of the time has passed."""
LEAST_ALTERNATIVES = 8
"""So many, those of the layers that take longest, are looked at however short the time is."""
SEEN_BYTES = 400 << 20
"""Of what is kept of what layers see."""
SEEN, EVALUATED, LEAST_EVALUATED, RECALIBRATED = 256, 768, 128, 256
"""Examples that alternatives learn from, that a loss is measured on, at most and at least, and that normalizations see
before."""
KEEP = "as it is"
"""The name of the layer itself among its alternatives."""


@dataclass
class Alternative:
    """One form for one unit, with what is known of it."""

    unit: Unit
    form: str
    make: Factory
    ms: float
    error: float = 0.0
    """What is left after imitation."""
    loss: float = 0.0
    """How far the network is from the model with this alone."""
    module: nn.Module | None = None
    is_operator: bool = False
    """Whether the search lists it."""

    @property
    def name(self) -> str:
        """For the store."""
        return f"{self.unit.name}: {self.form}"


class Library:
    """All alternatives of a network that are faster than what is there."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.units: Units = find_units(problem.model, problem.example)
        if not self.units.layers:
            raise ValueError(
                "requires a network with torch.nn.Conv2d or Linear layers that run once, got none"
                + "".join(f"\n  {name}: {reason}" for name, reason in self.units.misses.items())
            )
        options = problem.options
        self.times = LayerTimes(options.batch, options.threads, problem.precision)
        self.times.known.update(problem.store.values.get("layer times", {}))
        self.own_ms: dict[str, float] = {}
        """Of the layers themselves."""
        self.alternatives: list[Alternative] = []
        """Those between which is chosen."""
        self.learnt: list[Alternative] = []
        """All that are there, also those that others beat."""
        self.allowance = Allowance(problem.clock.total)
        """Of operators that the search lists: they come after all others."""
        self.wins = read_all()
        self.finder = Finder(problem, self.allowance, self.wins)

    def build(self) -> None:
        """Times, imitations and losses."""
        self._measure()
        self._imitate()
        self._drop_dominated()
        self._evaluate()

    # Times

    def _measure(self) -> None:
        problem, least = self.problem, LEAST_SHARE * self.units.macs
        layers = [unit for unit in self.units.layers if unit.macs >= least]
        for unit in layers:
            ms = self.times.measure(get_module(problem.model, unit.name), unit.data_shape)
            if ms is not None:
                self.own_ms[unit.name] = ms
        timed = [unit for unit in layers if unit.name in self.own_ms]
        blocks = [block for block in self.units.blocks if any(unit.name.startswith(block.name + ".") for unit in timed)]
        for block in blocks:
            inside = [unit for unit in timed if unit.name.startswith(block.name + ".")]
            self.own_ms[block.name] = sum(self.own_ms[unit.name] for unit in inside)
        if not self._measure_forms([*timed, *blocks]) or "alternatives" in problem.store:
            self._measure_operators([*timed, *blocks])
        if problem.store.values.get("layer times") != self.times.known:
            problem.store.put("layer times", dict(self.times.known))
        problem.store.remember("alternatives", lambda: [[one.unit.name, one.form] for one in self.alternatives])
        self.alternatives += [Alternative(one, "skip", nn.Identity, 0.0) for one in blocks if one.keeps_shape]
        self.problem.reporter.message(
            f"{len(self.alternatives)} faster alternatives for {len(layers)} of {len(self.units.layers)} layers and "
            f"{len(self.units.blocks)} blocks"
        )

    def _measure_forms(self, units: Sequence[Unit]) -> int:
        """Those by name, and what won before; how many there was no time for."""
        problem, left_out = self.problem, 0
        jobs: list[tuple[int, Unit, str, Factory]] = []
        for unit in units:
            layer = get_module(problem.model, unit.name)
            forms = {**list_forms(layer, unit), **self.finder.recall(unit)}
            order = order_forms(forms, self.wins, *describe_layer(layer, unit))
            jobs += [(place, unit, form, forms[form]) for place, form in enumerate(order)]
        # What an earlier call had the time for.
        known = problem.store.values.get("alternatives")
        jobs.sort(key=lambda job: (job[0], -self.own_ms[job[1].name]))
        for done, (place, unit, form, make) in enumerate(jobs):
            problem.reporter.show("timing alternatives of layers", done, len(jobs))
            is_late = self._is_late(done, place, TIMING_SHARES)
            if [unit.name, form] not in known if known is not None else is_late:
                left_out += 1
                continue
            taken = self.times.measure(make(), unit.data_shape)
            if taken is not None and taken <= GAIN * self.own_ms[unit.name]:
                self.alternatives.append(Alternative(unit, form, make, taken))
        if left_out:
            problem.reporter.message(f"{left_out} alternatives were left out: the time is short")
        return left_out

    def _measure_operators(self, units: Sequence[Unit]) -> None:
        """What the search lists, for the layers and runs of layers that take longest first."""
        problem, left_out = self.problem, 0
        known = problem.store.values.get("alternatives")
        jobs = self.finder.find(sorted(units, key=lambda unit: -self.own_ms[unit.name]))
        for done, (unit, form, make) in enumerate(jobs):
            problem.reporter.show("timing operators", done, len(jobs))
            if [unit.name, form] not in known if known is not None else self.allowance.is_spent(TIMING):
                left_out += 1
                continue
            with self.allowance.count_if(True):
                taken = self.times.measure(make(), unit.data_shape)
            if taken is not None and taken <= GAIN * self.own_ms[unit.name]:
                self.alternatives.append(Alternative(unit, form, make, taken, is_operator=True))
        if left_out:
            problem.reporter.message(f"{left_out} operators were left out: they have a tenth of the time")

    def _is_late(self, number: int, place: int, shares: tuple[float, float]) -> bool:
        """Whether the time does not do for the alternative of this number, in this place among those of its layer."""
        clock = self.problem.clock
        return number >= LEAST_ALTERNATIVES and clock.seconds > shares[place < LEAST_FORMS] * clock.total

    def _keep_done(self, step: str, done: Sequence[Alternative], what: str) -> None:
        """Goes on with those that there was the time for; another call with the same folder does so, too."""
        if count := len(self.alternatives) - len(done):
            self.problem.reporter.message(f"{count} alternatives {what}: the time is short")
        self.alternatives = list(done)
        self.problem.store.remember(step, lambda: [one.name for one in done])

    # Imitation

    def _imitate(self) -> None:
        names = {one.unit.name for one in self.alternatives}
        units = [unit for unit in [*self.units.layers, *self.units.blocks] if unit.name in names]
        bytes_each = 4 * sum(_count(unit.data_shape) + _count(unit.output_shape) for unit in units)
        examples = max(16, min(SEEN, SEEN_BYTES // max(bytes_each, 1)))
        inputs = draw_inputs(self.problem.data, examples, min(64, examples))
        seen = observe_units(self.problem.model, units, inputs)
        steps = 40

        known = self.problem.store.values.get("learnt")
        numbers = {id(one): number for number, one in enumerate(self.alternatives)}
        places = {
            id(one): place
            for unit in units
            for place, one in enumerate(two for two in self.alternatives if two.unit is unit)
        }

        def may_learn(one: Alternative) -> bool:
            if known is not None:
                return one.name in known
            is_late = self._is_late(numbers[id(one)], places[id(one)], LEARNING_SHARES)
            return not is_late and not (one.is_operator and self.allowance.is_spent(LEARNING))

        def work(one: Alternative) -> None:
            own, step = seen[one.unit.name], f"imitation {one.name}"
            if step not in self.problem.store and not may_learn(one):
                return
            one.module = one.make()
            if step in self.problem.store and self.problem.store.get_state(step, one.module):
                one.module.eval()
                one.error = self.problem.store[step]
                return
            with self.allowance.count_if(one.is_operator, self.problem.options.workers):
                one.error = imitate(one.module, own, steps, self.problem.options.seed)
            self.problem.store.put_state(step, one.module)
            self.problem.store.put(step, one.error)

        def prepare(one: Alternative) -> Imitation | None:
            if f"imitation {one.name}" in self.problem.store or not may_learn(one):
                return None
            return Imitation(one.make(), one.unit, examples, steps, self.problem.options.seed)

        def finish(one: Alternative, answer: dict[str, Any]) -> None:
            module = one.make()
            module.load_state_dict(answer["state"])
            self.problem.store.put_state(f"imitation {one.name}", module)
            self.problem.store.put(f"imitation {one.name}", answer["error"])
            if one.is_operator:
                self.allowance.spent += answer["seconds"] / self.problem.num_learners

        if self.problem.remote is not None:
            self.problem.remote.map(self.alternatives, "imitating layers", prepare, finish)
        self.problem.map(work, self.alternatives, "imitating layers")
        self._keep_done("learnt", [one for one in self.alternatives if one.module is not None], "did not learn")
        self.learnt = self.alternatives

    def _drop_dominated(self) -> None:
        """Leaves out what is slower than another form of the unit and imitates it no better."""
        kept = []
        for one in self.alternatives:
            others = [other for other in self.alternatives if other.unit is one.unit and other is not one]
            if not any(other.ms <= one.ms and other.error < 0.9 * one.error for other in others):
                kept.append(one)
        self.alternatives = kept

    # Losses

    def put(self, choices: Sequence[Option]) -> nn.Module:
        """A copy of the model with what was chosen."""
        network = copy.deepcopy(self.problem.model)
        known = {(one.unit.name, one.form): one for one in self.learnt}
        for option in choices:
            if option.name != KEEP:
                module = known[option.place, option.name].module
                assert module is not None, "alternatives that are offered have learnt"
                set_module(network, option.place, copy.deepcopy(module))
        return network

    def _evaluate(self) -> None:
        problem, known = self.problem, self.problem.store.values.get("evaluated")
        count = problem.store.remember("examples of losses", self._count_evaluated)
        reference = predict(problem.model, problem.data, problem.data.validation, count)
        numbers = {id(one): number for number, one in enumerate(self.alternatives)}
        done: set[int] = set()

        def work(one: Alternative) -> None:
            step = f"loss {one.name}"
            is_late = self._is_late(numbers[id(one)], 0, (EVALUATION_SHARE, EVALUATION_SHARE))
            is_late |= one.is_operator and self.allowance.is_spent(1.0)
            if step not in problem.store:
                if one.name not in known if known is not None else is_late:
                    return
                with self.allowance.count_if(one.is_operator, problem.options.workers):
                    network = self.put([Option(one.unit.name, one.form, 0, 0)])
                    recalibrate(network, problem.data, RECALIBRATED)
                    outputs = predict(network, problem.data, problem.data.validation, count)
                problem.store.put(step, get_divergence(problem.task, reference, outputs))
            one.loss = problem.store[step]
            done.add(id(one))

        problem.map(work, self.alternatives, "measuring losses")
        self._keep_done("evaluated", [one for one in self.alternatives if id(one) in done], "were not measured")

    def _count_evaluated(self) -> int:
        """The examples for which the time does to measure all losses."""
        problem, start = self.problem, time.monotonic()
        predict(problem.model, problem.data, problem.data.validation, LEAST_EVALUATED)
        # Of an alternative: the same for its own network, and for its normalizations.
        each = (time.monotonic() - start) / LEAST_EVALUATED * len(self.alternatives) / problem.options.workers
        left = EVALUATION_SHARE * problem.clock.total - problem.clock.seconds
        count = left / max(each, 1e-9) - RECALIBRATED
        return int(min(EVALUATED, max(LEAST_EVALUATED, count)))

    def list_learnt(self, layers: dict[str, str], run: str) -> list[Learnt]:
        """What is worth to be known later, of alternatives that took the place of layers."""
        operators = self.finder.describe(layers.values())
        return [
            Learnt(
                *describe_layer(get_module(self.problem.model, one.unit.name), one.unit),
                one.form,
                macs=one.unit.macs,
                own_ms=self.own_ms[one.unit.name],
                ms=one.ms,
                loss=one.loss,
                precision=self.problem.precision,
                data=self.problem.data.name,
                run=run,
                operator=operators.get(one.form),
            )
            for one in self.alternatives
            if layers.get(one.unit.name) == one.form
        ]

    # The choice

    def get_place(self) -> Place:
        """The network as places with options."""
        return self._get_place(None)

    def _get_place(self, block: Unit | None) -> Place:
        blocks, layers = self.units.get_parts(block)
        parts = [self._get_place(one) for one in blocks]
        parts += [Place(self._get_options(unit, True)) for unit in layers if unit.name in self.own_ms]
        parts = [part for part in parts if part.options or part.parts]
        return Place(self._get_options(block, not parts) if block is not None else (), tuple(parts))

    def _get_options(self, unit: Unit, with_itself: bool) -> tuple[Option, ...]:
        own = [Option(unit.name, one.form, one.ms, one.loss) for one in self.alternatives if one.unit is unit]
        if with_itself and unit.name in self.own_ms:
            own.append(Option(unit.name, KEEP, self.own_ms[unit.name], 0.0))
        return tuple(own)

    def predict_ms(self, choice: Choice) -> float:
        """The time of the network: the model's, less what the choice saves in layers."""
        names = {unit.name for unit in self.units.layers}
        total = sum(ms for name, ms in self.own_ms.items() if name in names)
        return self.problem.base_ms + choice.ms - total


def order_forms(forms: Iterable[str], wins: Sequence[Learnt], space: str, kind: str) -> list[str]:
    """Those first that won for layers of the same space, then for those of the kind, then those of `PREFERRED`."""

    def get_key(form: str) -> tuple[int, int, int]:
        own, others = count_wins(wins, space, kind, form)
        return -own, -others, PREFERRED.index(form) if form in PREFERRED else len(PREFERRED)

    return sorted(forms, key=get_key)


def _count(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
