#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the search algorithms of kas at equal training seconds on imputed accuracies.

The space is research/proxies/space.mlir; accuracies are imputed instead of trained.

The algorithms choose their operators among all of the space, of which research/proxies/run.py trained a sample. An
operator outside the sample takes accuracy and training seconds from one of the three of the sample that are nearest to
it in their static features (standardized logarithms), which its key chooses: so that no operator is better than the
best that was trained, and as many are bad. How much that says is shown first: the rank correlation of the sample's
accuracies with those that the others would impute. The table shows the accuracy of the operator that each algorithm
ends with, the mean of some seeds with its standard error.
"""

import argparse
import math
import pathlib
import statistics

import analyse
import numpy

import kas
from kas.evaluate import proxies

ROOT = pathlib.Path(__file__).resolve().parent
NEIGHBORS = 3


class ImputedTask:
    """Accuracy and training seconds of any operator of the space."""

    def __init__(self, task: analyse.Task):
        self.outcomes = [
            (float(mean), statistics.fmean(run["seconds"] for run in runs)) for mean, runs in zip(task.mean, task.runs)
        ]
        self.mean_seconds = statistics.fmean(seconds for _, seconds in self.outcomes)
        self._known = dict(zip(task.operators, self.outcomes))
        points = self._get_points(analyse.features(task, analyse.STATIC))
        self._center, self._scale = points.mean(0), points.std(0) + 1e-9
        self._points = (points - self._center) / self._scale
        imputed = [
            self.outcomes[self._get_donor(key, point, index)][0]
            for index, (key, point) in enumerate(zip(task.operators, self._points))
        ]
        self.rank_correlation = analyse.rank_correlation(imputed, task.mean)

    @staticmethod
    def _get_points(rows: list[dict[str, float]]) -> numpy.ndarray:
        return numpy.array([[math.log1p(max(0.0, row.get(name, 0.0))) for name in analyse.STATIC] for row in rows])

    def _get_donor(self, key: str, point: numpy.ndarray, without: int = -1) -> int:
        distances = ((self._points - point) ** 2).sum(1)
        if without >= 0:
            distances[without] = math.inf
        return int(numpy.argsort(distances, kind="stable")[int(key, 16) % NEIGHBORS])

    def train(self, key: str, features: dict[str, float]) -> tuple[float, float]:
        if key in self._known:
            return self._known[key]
        point = (self._get_points([features])[0] - self._center) / self._scale
        return self.outcomes[self._get_donor(key, point)]


class Features:
    """Static features by key: the algorithms meet the same operators again and again."""

    def __init__(self, space: kas.SearchSpace):
        self._space, self._rows = space, {}

    def __call__(self, candidate: kas.Candidate) -> dict[str, float]:
        if candidate.key not in self._rows:
            row = proxies.static_features(candidate.operator, self._space.bindings, self._space.multiplicities)
            self._rows[candidate.key] = {name: row[name] for name in analyse.STATIC if name in row}
        return self._rows[candidate.key]


def run(
    space: kas.SearchSpace, features: Features, task: ImputedTask, algorithm: str, seed: int, trainings: list[int]
) -> list[float]:
    """The best accuracy within the seconds of so many mean trainings."""
    budgets = [count * task.mean_seconds for count in trainings]
    found, best, spent = [], 0.0, 0.0
    with kas.Searcher(space, algorithm, seed=seed, objective="-accuracy") as searcher:
        for candidate in searcher:
            accuracy, seconds = task.train(candidate.key, features(candidate))
            spent += seconds
            while len(found) < len(budgets) and spent > budgets[len(found)]:
                found.append(best)
            if len(found) == len(budgets):
                return found
            best = max(best, accuracy)
            searcher.tell(candidate.id, {"accuracy": accuracy})
    return found + [best] * (len(budgets) - len(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", nargs="?", default=str(ROOT.parents[1] / "research" / "data" / "proxies.jsonl"))
    parser.add_argument("--algorithms", default="random,uniform,evolution,mcts")
    parser.add_argument("--seeds", type=int, default=20, help="searches with each (default 20)")
    parser.add_argument("--least", type=int, default=30, help="refuse samples of fewer operators (default 30)")
    parser.add_argument(
        "--trainings", default="5,10,20,40", help="efforts, in whole trainings of mean length (default 5,10,20,40)"
    )
    arguments = parser.parse_args()
    trainings = sorted(int(count) for count in arguments.trainings.split(","))
    tasks, _ = analyse.read(pathlib.Path(arguments.input))
    for name, task in tasks.items():
        if len(task.operators) < arguments.least:
            parser.error(
                f"requires at least {arguments.least} operators with all trainings and scores on {name}, got "
                f"{len(task.operators)}"
            )
    imputed = {name: ImputedTask(task) for name, task in tasks.items()}
    for name, task in imputed.items():
        best, mean = max(task.outcomes)[0], statistics.fmean(accuracy for accuracy, _ in task.outcomes)
        print(
            f"{name}: rank correlation of imputed accuracies {task.rank_correlation:.2f}; best {100 * best:.1f}, mean "
            f"{100 * mean:.1f}."
        )
    space = kas.SearchSpace((ROOT / "space.mlir").read_text())
    features = Features(space)
    print("\n| algorithm | " + " | ".join(f"{name}: {count}" for name in imputed for count in trainings) + " |")
    print("|---" * (1 + len(imputed) * len(trainings)) + "|")
    for algorithm in arguments.algorithms.split(","):
        cells = []
        for task in imputed.values():
            runs = [run(space, features, task, algorithm, seed, trainings) for seed in range(arguments.seeds)]
            for column in zip(*runs):
                error = statistics.stdev(column) / math.sqrt(len(column)) if len(column) > 1 else math.nan
                cells.append(f"{100 * statistics.fmean(column):.1f} ± {100 * error:.1f}")
        print(f"| `{algorithm}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
