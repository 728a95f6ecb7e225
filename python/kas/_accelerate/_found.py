# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that the search lists for the layers of a network, as alternatives of these layers."""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections import Counter
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
from ._units import Unit, get_module

TIME_SHARE, LEAST_SECONDS = 0.1, 10.0
"""The share of the time that all of it may take, and where that is less than so many seconds, there are none."""
LISTING, TIMING, LEARNING = 0.4, 0.65, 0.9
"""The shares of that after which nothing more is listed, timed and learnt."""
CANDIDATES, MOST_OF_CLASS = 240, 3
"""Operators that are listed for each class, and those that are taken of it."""
LARGEST = {"f32": SHARE, "bf16": SHARE / 2, "int8": SHARE / 3}
"""The largest share of the multiply-adds of a layer: not all stages of an operator gain by other precisions."""
LEAST_CHANNELS = 8
"""Of the input of a layer: there is nothing to divide among fewer."""
CLASSES = {
    "window, all channels": 'depth = 8, weights = 2, sees = ["k", "k"], reaches = 1',
    "window, one weight": 'depth = 10, weights = 1, sees = ["k", "k"]',
    "all channels": "depth = 8, weights = 2, reaches = 1",
}
"""Properties of operators (docs/reference/properties.md), as limits of the spaces that they are listed from."""
_LIMITS = "expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 0, weights_by_position = 0"


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


# ---- The spaces


def find_kind(layer: nn.Module, unit: Unit) -> str | None:
    """The kind of layer whose operators fit it: a square window of so many points, or rows; None where there is none.

    Strided layers have operators of those that keep the size, which compute every so many points.
    """
    if unit.data_shape[0 if isinstance(layer, nn.Conv2d) else -1] < LEAST_CHANNELS:
        return None
    if isinstance(layer, nn.Linear):
        return "rows"
    if not isinstance(layer, nn.Conv2d) or layer.groups == layer.in_channels:
        return None
    height, width = layer.kernel_size
    pairs = list(zip(unit.data_shape[1:], unit.output_shape[1:]))
    if height != width or height % 2 == 0 or any(whole % few for whole, few in pairs):
        return None
    return None if height > 1 and min(unit.data_shape[1:]) <= height else f"window {height}"


def get_binding(kind: str, unit: Unit) -> dict[str, int]:
    """The symbols of the spaces of the kind at a layer."""
    if kind == "rows":
        rows = math.prod(unit.data_shape[:-1])
        return {"N": rows, "Cin": unit.data_shape[-1], "Cout": unit.output_shape[-1], "g": 4}
    (inputs, height, width), outputs = unit.data_shape, unit.output_shape[0]
    window = {} if kind == "window 1" else {"k": int(kind.removeprefix("window "))}
    return {"N": 1, "Cin": inputs, "Cout": outputs, "H": height, "W": width, **window, "g": 4}


def list_spaces(kind: str, units: Sequence[Unit]) -> dict[str, SearchSpace]:
    """The space of each class for layers of one kind."""
    bindings = Counter(tuple(get_binding(kind, unit).items()) for unit in units)
    names = dict(next(iter(bindings)))
    coefficients = ", ".join(name for name in ("k", "g") if name in names)
    primaries = ", ".join(name for name in names if name not in ("k", "g"))
    image = "" if kind == "rows" else ", H, W"
    rows = [f"<{', '.join(f'{n} = {v}' for n, v in binding)}> x {count}" for binding, count in bindings.items()]
    flops = params = 0
    for binding, count in bindings.items():
        values = dict(binding)
        weights = values["Cin"] * values["Cout"] * values.get("k", 1) ** 2
        params += count * weights
        flops += 2 * count * weights * values["N"] * values.get("H", 1) * values.get("W", 1)
    limits = f"{_LIMITS}, unfold = {2 if 'k' in names else 0}"
    if image:
        # What is no convolution does not learn what one does.
        limits += ", equivariant = 1"
    if "k" in names and any(min(dict(one)["H"], dict(one)["W"]) < 2 * names["k"] for one in bindings):
        limits += ", unfold_ratio = 1.33"
    found = {}
    for name, own in CLASSES.items():
        if "sees" in own and "k" not in names:
            continue
        found[name] = SearchSpace.parse(
            f"kas.space @layers<{primaries} | {coefficients}> "
            f"[N, Cout unordered{image}] from [N, Cin unordered{image}] bindings [{', '.join(rows)}] "
            f"limits {{{limits}, {own}}} budget {{flops_ratio = {SHARE}, min_flops_ratio = 0.02, "
            f"baseline_flops = {flops}, params_ratio = 1.0, baseline_params = {params}}}"
        )
    return found


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
    """The fastest, and those that are slower but have more parameters than all that are as fast.

    Few of them: both ends, and what is between them in equal ratios of predicted times.
    """
    timed = []
    for one in candidates:
        with contextlib.suppress(Error):
            timed.append((_predict(one.operator, space), -one.params, one.key, one))
    front: list[tuple[float, Candidate]] = []
    for milliseconds, _, _, one in sorted(timed, key=lambda entry: entry[:3]):
        if not front or one.params > front[-1][1].params:
            front.append((milliseconds, one))
    if len(front) <= MOST_OF_CLASS:
        return [one for _, one in front]
    low, high = math.log(front[0][0]), math.log(front[-1][0])
    wanted = [low + (high - low) * number / (MOST_OF_CLASS - 1) for number in range(MOST_OF_CLASS)]
    near = {min(range(len(front)), key=lambda at: abs(math.log(front[at][0]) - value)) for value in wanted}
    return [front[at][1] for at in sorted(near)]


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


class Finder:
    """Lists operators for layers, as long as the allowance lasts; those that won before come first."""

    def __init__(self, problem: Problem, allowance: Allowance, wins: Sequence[Learnt] = ()):
        self.problem, self.allowance, self.wins = problem, allowance, wins
        self.operators: dict[str, FoundOperator] = {}
        """All that were taken for a layer, by their form."""

    def find(self, units: Sequence[Unit]) -> list[tuple[Unit, str, Factory]]:
        """Operators for the layers, those for the first one first."""
        if not self.allowance.seconds and "operators" not in self.problem.store:
            return []
        kinds: dict[str, list[Unit]] = {}
        for unit in units:
            if kind := find_kind(get_module(self.problem.model, unit.name), unit):
                kinds.setdefault(kind, []).append(unit)
        found = self._list(kinds)
        jobs: list[tuple[Unit, str, Factory]] = []
        for kind, own in kinds.items():
            for unit in own:
                known = self.recall(unit)
                listed = [one for one in found[kind] if one.form not in known]
                jobs += self._fit(listed, kind, unit)
        return sorted(jobs, key=lambda job: units.index(job[0]))

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
        """Operators by the kind of layer that they are for."""
        jobs = [(kind, name, space) for kind in kinds for name, space in list_spaces(kind, kinds[kind]).items()]
        jobs.sort(key=lambda job: list(CLASSES).index(job[1]))
        store, workers = self.problem.store, self.problem.options.workers

        def work(job: tuple[str, str, SearchSpace]) -> list[FoundOperator]:
            kind, properties, space = job
            step = f"operators of {kind}: {properties}"
            if step not in store:
                if "operators" in store or self.allowance.is_spent(LISTING):
                    return []
                with self.allowance.count_if(True, workers):
                    seconds = workers * (LISTING * self.allowance.seconds - self.allowance.spent)
                    names = _find_names(space)
                    listed = list_operators(space, self.problem.options.seed, seconds, self.problem.ending)
                    self.problem.ending.check()
                    chosen = choose_operators(space, listed)
                store.put(step, [asdict(_describe(one, properties, names)) for one in chosen])
            return [FoundOperator(**entry) for entry in store[step]]

        results = self.problem.map(work, jobs, "listing operators")
        # What there was the time for; another call with the same folder lists no more.
        store.remember("operators", lambda: sum(map(len, results)))
        found: dict[str, list[FoundOperator]] = {kind: [] for kind in kinds}
        for (kind, _, _), operators in zip(jobs, results):
            known = {one.form for one in found[kind]}
            found[kind] += [one for one in operators if one.form not in known]
        return found

    def _fit(self, operators: Sequence[FoundOperator], kind: str, unit: Unit) -> Iterator[tuple[Unit, str, Factory]]:
        """Those that fit a layer, with few enough multiply-adds for it."""
        layer, seed = get_module(self.problem.model, unit.name), self.problem.options.seed
        assert isinstance(layer, (nn.Conv2d, nn.Linear)), "a kind is one of these layers"
        shapes = (1, *unit.data_shape), (1, *unit.output_shape)
        site = Site(unit.name, kind, get_binding(kind, unit), *shapes, 2 * unit.macs, layer.weight.numel(), 1)
        for operator in operators:
            try:
                fitting, values = fit_strides(find_operator(operator.text), site, {})
                flops = fitting.cost(get_site_binding(fitting, site, layer, values)).flops
            except (ValueError, Error):
                continue
            if flops <= LARGEST[self.problem.precision] * site.flops:
                self.operators[operator.form] = operator
                yield unit, operator.form, partial(make_module, operator, site, layer, seed)

    def describe(self, forms: Any) -> dict[str, dict[str, Any]]:
        """What is known of those of the forms that are operators of the search."""
        return {form: asdict(self.operators[form]) for form in sorted(set(forms)) if form in self.operators}
