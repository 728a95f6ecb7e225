# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators and sequences of two that the search lists for the layers of a network, as alternatives of these."""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from .._errors import Error
from .._module import Operator, named_operators
from .._module import operator as named_operator
from .._search import Candidate, Searcher, SearchSpace
from ..evaluate._training import seed_of
from ..torch._modules import KasModule
from ..torch._sites import Site, fit_strides
from ..torch._sites import get_binding as get_site_binding
from ..torch._sizes import find_operator
from ._alternatives import SHARE, Factory
from ._learnt import Learnt, describe_layer
from ._problem import Problem
from ._progress import Ending
from ._sequences import (
    RunModule,
    Stage,
    bind_stages,
    count_flops,
    find_sequence,
    is_separable,
    list_sequences,
    make_sequence,
)
from ._spaces import CLASSES, SEQUENCES, find_kind, get_binding, list_spaces, write_sequence_spaces
from ._units import Unit, get_module

TIME_SHARE, LEAST_SECONDS = 0.1, 10.0
"""The share of the time that all of it may take, and where that is less than so many seconds, there are none."""
LISTING, TIMING, LEARNING = 0.3, 0.5, 0.75
"""The shares of that after which nothing more is listed, timed and learnt."""
CANDIDATES, MOST_OF_CLASS = 240, 3
"""Operators that are listed for each class, of sequences half as many, and those that are taken of it."""
LARGEST = {"f32": SHARE, "bf16": SHARE / 2, "int8": SHARE / 3}
"""The largest share of the multiply-adds of a layer: not all stages of an operator gain by other precisions."""


@dataclass(frozen=True)
class FoundOperator:
    """An operator for the layers of one kind."""

    form: str
    """How the table calls it: its name in the library, or the first digits of its key."""
    text: str
    """The operator as MLIR, in canonical form."""
    formula: str
    properties: str
    """Its class."""
    named: str | None
    """The operator of the library that is the same."""


class Allowance:
    """The seconds that operators of the search may take; what runs on several threads counts by their number."""

    def __init__(self, total: float):
        self.seconds = TIME_SHARE * total if TIME_SHARE * total >= LEAST_SECONDS else 0.0
        self.spent = 0.0
        self._lock = threading.Lock()

    def is_spent(self, share: float) -> bool:
        """Whether so large a share has passed."""
        return self.spent >= share * self.seconds

    @contextlib.contextmanager
    def count_if(self, is_operator: bool, threads: int = 1) -> Iterator[None]:
        """Counts what is done meanwhile, of so many threads at work, where it is for such an operator."""
        start = time.monotonic()
        try:
            yield
        finally:
            if is_operator:
                with self._lock:
                    self.spent += (time.monotonic() - start) / threads


# ---- Listing


def list_operators(space: SearchSpace, seed: int, seconds: float, ending: Ending) -> list[Candidate]:
    """Some of a space, always the same for a seed; fewer where that takes more than `seconds`."""
    with Searcher(space, "random", seed=seed) as searcher, ending.calling(searcher.stop):
        timer = threading.Timer(seconds, searcher.stop)
        timer.daemon = True
        timer.start()
        try:
            return searcher.ask(CANDIDATES)
        finally:
            timer.cancel()


def choose_operators(space: SearchSpace, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The fastest, and those that are slower but have more parameters than all that are as fast; few of them."""
    timed = []
    for one in candidates:
        with contextlib.suppress(Error):
            timed.append((_predict(one.operator, space), -one.params, one.key, one))
    front: list[tuple[float, Candidate]] = []
    for milliseconds, _, _, one in sorted(timed, key=lambda entry: entry[:3]):
        if not front or one.params > front[-1][1].params:
            front.append((milliseconds, one))
    return [front[at][1] for at in _spread([milliseconds for milliseconds, _ in front])]


def _spread(times: Sequence[float]) -> list[int]:
    """The numbers of a few of ascending times: both ends, and what is between them in equal ratios."""
    if len(times) <= MOST_OF_CLASS:
        return list(range(len(times)))
    low, high = math.log(times[0]), math.log(times[-1])
    wanted = [low + (high - low) * number / (MOST_OF_CLASS - 1) for number in range(MOST_OF_CLASS)]
    return sorted({min(range(len(times)), key=lambda at: abs(math.log(times[at]) - value)) for value in wanted})


def _predict(operator: Operator, space: SearchSpace) -> float:
    """The milliseconds of all layers of the space."""
    pairs = zip(space.bindings, space.multiplicities)
    return math.fsum(count * operator.predict_milliseconds(binding) for binding, count in pairs)


def _describe(candidate: Candidate, properties: str, names: Mapping[str, str]) -> FoundOperator:
    named = names.get(candidate.key)
    form = named or f"operator {candidate.key[:8]}"
    # Modules of operators are distinguished by the names that these have.
    name = named or f"found_{candidate.key[:8]}"
    canonical = candidate.operator.canonical()
    text = re.sub(rf"@{re.escape(canonical.name)}\b", f"@{name}", str(canonical), count=1)
    return FoundOperator(form, text, canonical.formula, properties, named)


def _find_names(space: SearchSpace) -> dict[str, str]:
    """The operators of the library by the keys that they have in the space."""
    found: dict[str, str] = {}
    for name in named_operators():
        with contextlib.suppress(Error, KeyError, ValueError):
            key = space.find(named_operator(name)).key
            if key is not None:
                found.setdefault(key, name)
    return found


# ---- Modules


def make_module(operator: FoundOperator, site: Site, layer: nn.Conv2d | nn.Linear, seed: int) -> nn.Module:
    """The operator at a layer, with the bias of that and weights that follow from the seed."""
    found, values = fit_strides(find_operator(operator.text), site, {})
    bias_dim = None if layer.bias is None else (-1 if isinstance(layer, nn.Linear) else 1)
    make = partial(KasModule, found, get_site_binding(found, site, layer, values), threads=1, bias_dim=bias_dim)
    try:
        # One convolution is faster than the code of the operator, where it is one.
        module = make("effective")
    except (Error, ValueError):
        module = make("pytorch")
    module.reset_parameters(torch.Generator().manual_seed(seed_of(seed, operator.form, site.name)))
    if module.bias is not None and layer.bias is not None:
        with torch.no_grad():
            module.bias.copy_(layer.bias)
    return module.eval()


def make_stages(form: str, stages: list[Stage], site: Site, layer: nn.Module, unit: Unit, seed: int) -> nn.Module:
    """The sequence at a layer, with the bias of that, or at a run of layers; weights follow from the seed."""
    generator = torch.Generator().manual_seed(seed_of(seed, form, site.name))
    bias = layer.bias if isinstance(layer, (nn.Conv2d, nn.Linear)) else None
    module = make_sequence(stages, unit.is_block or bias is not None, generator)
    if unit.is_block:
        channels = site.binding["Cin"]
        scale = torch.ones(channels if site.space == "rows" else (channels, 1, 1)) if unit.keeps_shape else None
        return RunModule(module, scale, unit.is_rectified).eval()
    if isinstance(bias, torch.Tensor):
        with torch.no_grad():
            last = module.stages[-1]
            last.get_parameter("bias").copy_(bias)
    return module


class Finder:
    """Lists operators for layers, as long as the allowance lasts; those that won before come first."""

    def __init__(self, problem: Problem, allowance: Allowance, wins: Sequence[Learnt] = ()):
        self.problem, self.allowance, self.wins = problem, allowance, wins
        self.operators: dict[str, FoundOperator] = {}
        """All that were taken for a layer, by their form."""

    def find(self, units: Sequence[Unit]) -> list[tuple[Unit, str, Factory]]:
        """Operators and sequences for layers, and sequences for runs of layers.

        One after the other of each, so that where the time is short all have some; those of the first one first.
        """
        if not self.allowance.seconds and "operators" not in self.problem.store:
            return []
        kinds: dict[str, list[Unit]] = {}
        for unit in units:
            if kind := find_kind(get_module(self.problem.model, unit.name), unit):
                kinds.setdefault(kind, []).append(unit)
        found = self._list(kinds)
        jobs: list[tuple[int, int, tuple[Unit, str, Factory]]] = []
        for kind, own in kinds.items():
            for unit in own:
                known = self.recall(unit)
                listed = [one for one in found[kind] if one.form not in known]
                number = units.index(unit)
                jobs += [(place, number, job) for place, job in enumerate(self._fit(listed, kind, unit))]
        return [job for _, _, job in sorted(jobs, key=lambda entry: entry[:2])]

    def recall(self, unit: Unit) -> dict[str, Factory]:
        """Operators that won for such a layer before, those for one of the same sizes first, the latest of them."""
        layer = get_module(self.problem.model, unit.name)
        if (found_kind := find_kind(layer, unit)) is None:
            return {}
        space, kind = describe_layer(layer, unit)

        def choose() -> list[dict[str, Any]]:
            own = [one for one in reversed(self.wins) if one.kind == kind]
            entries: dict[str, dict[str, Any]] = {}
            for one in sorted(own, key=lambda one: one.space != space):
                if one.operator is not None:
                    entries.setdefault(one.form, one.operator)
            return list(entries.values())[:MOST_OF_CLASS]

        # What another run keeps meanwhile changes nothing in a call that goes on.
        entries = self.problem.store.remember(f"operators that won for {space}", choose)
        jobs = self._fit([FoundOperator(**one) for one in entries], found_kind, unit)
        return {form: make for _, form, make in jobs}

    def _list(self, kinds: Mapping[str, Sequence[Unit]]) -> dict[str, list[FoundOperator]]:
        """Operators and sequences by the kind of layer that they are for: of each class one after the other."""
        jobs: list[tuple[str, str, SearchSpace | str]] = []
        for kind, units in kinds.items():
            if layers := [unit for unit in units if not unit.is_block]:
                jobs += [(kind, name, space) for name, space in list_spaces(kind, layers).items()]
            texts = write_sequence_spaces(kind, units, LARGEST[self.problem.precision])
            jobs += [(kind, name, text) for name, text in texts.items()]
        jobs.sort(key=lambda job: [*CLASSES, *SEQUENCES].index(job[1]))
        store = self.problem.store

        def work(job: tuple[str, str, SearchSpace | str]) -> list[FoundOperator]:
            kind, properties, space = job
            step = f"operators of {kind}: {properties}"
            if step not in store:
                if "operators" in store or self.allowance.is_spent(LISTING):
                    return []
                with self.allowance.count_if(True, self.problem.options.workers):
                    found = self._list_class(space, properties)
                store.put(step, [asdict(one) for one in found])
            return [FoundOperator(**entry) for entry in store[step]]

        results = self.problem.map(work, jobs, "listing operators")
        # What there was the time for; another call with the same folder lists no more.
        store.remember("operators", lambda: sum(map(len, results)))
        found: dict[str, dict[str, FoundOperator]] = {kind: {} for kind in kinds}
        for place in range(MOST_OF_CLASS):
            for (kind, _, _), operators in zip(jobs, results):
                # What is neither fast alone nor alone large comes first.
                order = sorted(range(len(operators)), key=lambda at: (abs(at - len(operators) // 2), -at))
                for one in [operators[at] for at in order][place : place + 1]:
                    found[kind].setdefault(one.form, one)
        return {kind: list(own.values()) for kind, own in found.items()}

    def _list_class(self, space: SearchSpace | str, properties: str) -> list[FoundOperator]:
        """What is taken of a space of operators, or of the text of one of sequences."""
        seed, ending = self.problem.options.seed, self.problem.ending
        seconds = self.problem.options.workers * (LISTING * self.allowance.seconds - self.allowance.spent)
        if isinstance(space, str):
            front = list_sequences(space, seed, seconds, CANDIDATES // 2)
            ending.check()
            taken = [front[at].describe() for at in _spread([one.milliseconds for one in front])]
            return [FoundOperator(f"sequence {key}", text, formula, properties, None) for key, text, formula in taken]
        names = _find_names(space)
        listed = list_operators(space, seed, seconds, ending)
        ending.check()
        return [_describe(one, properties, names) for one in choose_operators(space, listed)]

    def _fit(self, operators: Sequence[FoundOperator], kind: str, unit: Unit) -> Iterator[tuple[Unit, str, Factory]]:
        """Those that fit a layer or a run, with few enough multiply-adds for it."""
        layer, seed = get_module(self.problem.model, unit.name), self.problem.options.seed
        shapes = (1, *unit.data_shape), (1, *unit.output_shape)
        site = Site(unit.name, kind, get_binding(kind, unit), *shapes, 2 * unit.macs, 0, 1)
        for operator in operators:
            try:
                if (sequence := find_sequence(operator.text)) is not None:
                    stages = bind_stages(sequence, site)
                    if not unit.is_block and is_separable(stages):
                        continue
                    flops = count_flops(stages)
                    make = partial(make_stages, operator.form, stages, site, layer, unit, seed)
                elif isinstance(layer, (nn.Conv2d, nn.Linear)):
                    fitting, values = fit_strides(find_operator(operator.text), site, {})
                    flops = fitting.cost(get_site_binding(fitting, site, layer, values)).flops
                    make = partial(make_module, operator, site, layer, seed)
                else:
                    # Without anything between its sums, an operator is no run of layers.
                    continue
            except (ValueError, Error):
                continue
            if flops <= LARGEST[self.problem.precision] * site.flops:
                self.operators[operator.form] = operator
                yield unit, operator.form, make

    def describe(self, forms: Any) -> dict[str, dict[str, Any]]:
        """What is known of those of the forms that are operators of the search."""
        return {form: asdict(self.operators[form]) for form in sorted(set(forms)) if form in self.operators}
