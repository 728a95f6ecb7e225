# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments and results of `kas.search`: budgets, candidates with their metrics, outcomes, callbacks."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import kas.torch

from ._errors import need
from ._module import Operator
from ._search import Candidate
from .evaluate import Trainer

if TYPE_CHECKING:
    import pandas
    from torch import nn


_UNITS = {
    name: unit
    for unit, names in {
        "seconds": ("s", "sec", "secs", "second", "seconds"),
        "minutes": ("m", "min", "mins", "minute", "minutes"),
        "hours": ("h", "hr", "hrs", "hour", "hours"),
        "days": ("d", "day", "days"),
        "candidates": ("candidate", "candidates"),
        "trainings": ("training", "trainings"),
    }.items()
    for name in names
}
"""The quantities of budgets, by the words of their texts."""


@dataclass(frozen=True)
class Budget:
    """When a search ends: whatever comes first. At least one limit is needed."""

    seconds: float | None = None
    """Of this call: start no training of a new candidate after so many, less what the final trainings take."""
    candidates: int | None = None
    """How many operators are proposed, those of earlier calls on the database included."""
    epochs: float | None = None
    """Training effort of this call in whole trainings (an epoch counts 1 / epochs of the recipe), final ones not
    included."""

    @staticmethod
    def of(value: Any) -> Budget:
        """A `Budget`; a number of seconds; or text such as `90s`, `15m`, `10 min`, `8 hours` or `500 candidates`."""
        if isinstance(value, Budget):
            budget = value
        elif isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise TypeError(
                "the budget must be a number of seconds, text such as '15m' or a kas.Budget, got "
                f"{type(value).__name__}"
            )
        elif isinstance(value, str):
            match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", value)
            unit = _UNITS.get(match[2]) if match else None
            if match is None or unit is None or (unit == "candidates" and "." in match[1]):
                raise ValueError(
                    "the budget must be text such as '90s', '15m', '8h', '500 candidates' or '40 trainings', got "
                    f"{value!r}"
                )
            number = float(match[1])
            if unit == "candidates":
                budget = Budget(candidates=int(number))
            elif unit == "trainings":
                budget = Budget(epochs=number)
            else:
                budget = Budget(seconds=number * {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}[unit])
        else:
            budget = Budget(seconds=float(value))
        limits = [limit for limit in dataclasses.astuple(budget) if limit is not None]
        if not limits or any(
            isinstance(limit, (bool, str)) or not math.isfinite(limit) or limit <= 0 for limit in limits
        ):
            raise ValueError(f"the budget must have at least one limit, each a finite number above 0, got {budget}")
        return budget


def front(points: Sequence[Sequence[float]]) -> list[int]:
    """The indices of the points that no other dominates; less is better in each coordinate."""

    def dominates(a: Sequence[float], b: Sequence[float]) -> bool:
        return all(x <= y for x, y in zip(a, b)) and any(x < y for x, y in zip(a, b))

    return [index for index, point in enumerate(points) if not any(dominates(other, point) for other in points)]


@dataclass(frozen=True)
class Trained:
    """A candidate and what became of it."""

    candidate: Candidate
    metrics: dict[str, float] = field(default_factory=dict)
    """`accuracy` and `loss`, or those of the task, on the validation set after `epochs` epochs, `flops` and `params` of
    the replaced layers, `flops_ratio` to the network's own, `train_seconds`; of those in the final round also means
    over its seeds, each name with `final_` before it."""
    failure: str | None = None

    @property
    def id(self) -> int:
        """The number of the candidate."""
        return self.candidate.id

    @property
    def operator(self) -> Operator:
        """The operator of the candidate."""
        return self.candidate.operator


@dataclass
class SearchOutcome:
    """The outcome of a search. `best` is the best of the final round, or of those trained longest without one."""

    trainer: Trainer
    database: str | None
    trained: list[Trained]
    dense: dict[str, float]
    """The network itself: means over the seeds of the final round."""
    is_complete: bool
    """Not interrupted: the budget was used up, or the space."""
    baselines: dict[str, dict[str, float]] = field(default_factory=dict)
    """The other baselines of candidates, by name: the same means, `flops`, `params` and `flops_ratio`, and
    `latency_ms` where it was measured. Those that could not be trained are left out."""
    _networks: dict[tuple[int, int], nn.Module] = field(default_factory=dict, repr=False)
    """Trained networks by candidate and seed."""

    def __repr__(self) -> str:
        failed = sum(entry.failure is not None for entry in self.trained)
        return (
            f"<kas.SearchOutcome: {len(self.trained) - failed} trained, {failed} failed, {len(self.front)} on the "
            "front>"
        )

    @property
    def failures(self) -> dict[str, int]:
        """How often each reason occurred, numbers in it left out."""
        return dict(
            Counter(re.sub(r"\d[\d.e+-]*", "#", entry.failure) for entry in self.trained if entry.failure is not None)
        )

    @property
    def finalists(self) -> list[Trained]:
        """Those of the final round, the most accurate first: by the metric of the task."""
        task = self.trainer.task
        finals = [entry for entry in self.trained if f"final_{task.metric}" in entry.metrics]
        return sorted(finals, key=lambda entry: (-task.score(entry.metrics, "final_"), entry.id))

    @property
    def fully_trained(self) -> list[Trained]:
        """Those that were trained by the whole recipe, the most accurate first."""
        whole = [entry for entry in self.trained if entry.metrics.get("epochs") == self.trainer.recipe.epochs]
        return sorted(whole, key=lambda entry: (-self.trainer.task.score(entry.metrics), entry.id))

    @property
    def best(self) -> Trained | None:
        """The best candidate: see the class; None where no training came to an end."""
        ranked = self.finalists or self.fully_trained
        if not ranked:
            ranked = [entry for entry in self.trained if entry.failure is None]
            task = self.trainer.task
            ranked.sort(key=lambda entry: (-entry.metrics.get("epochs", 0), -task.score(entry.metrics), entry.id))
        return ranked[0] if ranked else None

    @property
    def front(self) -> list[Trained]:
        """The Pareto front of FLOPs and accuracy (the metric of the task), the candidate with the fewest FLOPs first.

        Of the candidates of the final round or, without one, of those trained by the whole recipe.
        """
        prefix, task = "final_" if self.finalists else "", self.trainer.task
        entries = self.finalists or self.fully_trained
        chosen = front([(entry.metrics["flops"], -task.score(entry.metrics, prefix)) for entry in entries])
        return sorted((entries[index] for index in chosen), key=lambda entry: (entry.metrics["flops"], entry.id))

    def network(self, entry: Trained | None = None, *, backend: str = "compiled", seed: int = 0) -> nn.Module:
        """The network with the operator of `entry` (the best) in its place as `kas.torch.KasModule`s, trained.

        It is trained once more by the whole recipe, as in the search, with `seed` (the first of the final round): that
        takes as long as a training did. A second call for the same gives a copy. `trainer.network` is the same
        untrained. Raises `ValueError` where nothing was found, `kas.evaluate.TrainingFailure` as the search does.
        """
        entry = entry or self.best
        if entry is None:
            raise ValueError("the search found no operator")
        trainer, key = self.trainer, (entry.id, seed)
        if key not in self._networks:
            training = trainer.start(entry.operator, seed)
            training.advance(trainer.recipe.epochs)
            training.evaluate()
            self._networks[key] = training.network.eval()
        network = kas.torch.substitute(
            trainer.model, entry.operator, trainer.sites, space=trainer.space, binding=trainer.binding, backend=backend
        )
        network.load_state_dict(self._networks[key].state_dict())
        return network.eval()

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per candidate."""
        return [
            {
                "id": entry.id,
                "formula": entry.operator.formula,
                "weights_indexed_by_position": entry.candidate.weights_indexed_by_position,
                **entry.metrics,
                "failure": entry.failure,
            }
            for entry in self.trained
        ]

    def frame(self) -> pandas.DataFrame:
        """The same as a pandas.DataFrame."""
        need("pandas", "torch")
        import pandas

        return pandas.DataFrame(self.rows(), columns=None if self.trained else ["id", "failure"]).set_index("id")


class SearchCallback:
    """Receives reports of a search while it runs; derive from it. An exception ends the search, as Ctrl-C does."""

    def candidate(self, entry: Trained) -> None:
        """A candidate has its outcome."""

    def epoch(self, candidate: int, seed: int, epoch: int, metrics: Mapping[str, float]) -> None:
        """A candidate (-1: the network itself) was trained to the end of `epoch`."""
