#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the tables of research/reports/proxies.md from what research/proxies/run.py wrote.

They say how well each proxy ranks operators, what picking by it costs, and which policy finds the best operator for the
same training time.
"""

import argparse
import itertools
import json
import math
import pathlib
import statistics

import numpy

from kas.evaluate.proxies import Combination, rank_correlation

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATIC = (
    "params",
    "flops",
    "nest_flops",
    "bytes",
    "points_seen",
    "positions_seen",
    "channels_seen",
    "data_used",
    "points_seen_twice",
    "weights_indexed_by_position",
)
INITIAL = ("grad_norm", "snip", "synflow", "fisher", "naswot")
SHUFFLES = 20
DRAWS = 1000


def kendall(a, b) -> float:
    """Tau-b."""
    a, b = numpy.asarray(a, float), numpy.asarray(b, float)
    da, db = numpy.sign(a[:, None] - a), numpy.sign(b[:, None] - b)
    upper = numpy.triu_indices(len(a), 1)
    da, db = da[upper], db[upper]
    scale = math.sqrt(float((da != 0).sum()) * float((db != 0).sum()))
    return float((da * db).sum()) / scale if scale else math.nan


def bootstrap(a, b) -> tuple[float, float]:
    """The 95 % interval of Spearman's correlation over operators."""
    generator = numpy.random.RandomState(0)
    a, b = numpy.asarray(a, float), numpy.asarray(b, float)
    draws = [rank_correlation(a[chosen], b[chosen]) for chosen in generator.randint(0, len(a), (DRAWS, len(a)))]
    draws = [draw for draw in draws if math.isfinite(draw)]
    return tuple(numpy.percentile(draws, (2.5, 97.5))) if draws else (math.nan, math.nan)


class Task:
    """The rows of one task, for operators with all seeds and scores on all tasks."""

    def __init__(self, rows, operators, seeds):
        self.operators, self.seeds = operators, seeds
        self.runs = [[rows[key, f"seed{seed}"] for seed in range(seeds)] for key in operators]
        self.scores = [
            {name: value for name, value in rows[key, "scores"].items() if isinstance(value, (int, float))}
            for key in operators
        ]
        self.test = numpy.array([[run["test"] for run in runs] for runs in self.runs])
        self.mean = self.test.mean(1)
        self.dense = [row["test"] for (key, _), row in rows.items() if key == "dense"]

    def regret(self, scores, count: int) -> float:
        """Points of accuracy between the best of all and the best of the `count` ranked first.

        Equal scores count by chance.
        """
        order = numpy.argsort(
            -numpy.asarray(scores, float) + 1e-12 * numpy.random.RandomState(0).rand(len(scores)), kind="stable"
        )
        return 100 * float(self.mean.max() - self.mean[order[:count]].max())

    def noise(self) -> tuple[float, float]:
        """Spearman's between two seeds (mean over pairs), and the standard deviation over seeds."""
        pairs = [
            rank_correlation(self.test[:, a], self.test[:, b]) for a, b in itertools.combinations(range(self.seeds), 2)
        ]
        return statistics.fmean(pairs), float(math.sqrt(self.test.var(1, ddof=1).mean()))


def read(path: pathlib.Path) -> tuple[dict[str, Task], int]:
    tasks: dict[str, dict] = {}
    failed = set()
    for line in path.read_text().splitlines():
        row = json.loads(line)
        tasks.setdefault(row["task"], {})[row["operator"], row["what"]] = row
        if "failure" in row:
            failed.add(row["operator"])
    seeds = 1 + max(
        int(what[4:]) for rows in tasks.values() for (key, what) in rows if what.startswith("seed") and key != "dense"
    )
    wanted = [f"seed{seed}" for seed in range(seeds)] + ["scores"]
    keys = sorted({(row["index"], key) for rows in tasks.values() for (key, _), row in rows.items() if key != "dense"})
    operators = [
        key
        for _, key in keys
        if key not in failed and all((key, what) in rows for rows in tasks.values() for what in wanted)
    ]
    return {name: Task(rows, operators, seeds) for name, rows in tasks.items()}, len(failed)


def proxy_columns(task: Task) -> dict[str, tuple[numpy.ndarray, str]]:
    """Scores by proxy, more is better, and what each costs per operator in CPU seconds."""
    scores = task.scores
    cost = lambda name: f"{statistics.fmean(row[name] for row in scores):.2f}"  # noqa: E731
    columns = {
        name: (
            numpy.array([row.get(name, math.nan) for row in scores]),
            "0"
            if name in ("params", "flops", "nest_flops", "bytes", "weights_indexed_by_position")
            else cost("static_seconds"),
        )
        for name in STATIC
    }
    columns |= {name: (numpy.array([row[name] for row in scores]), cost("initialization_seconds")) for name in INITIAL}
    columns["fit, 25 steps"] = (-numpy.array([row["fit25"] for row in scores]), cost("fit_seconds"))
    return columns


def features(task: Task, names) -> list[dict[str, float]]:
    return [{name: row[name] for name in names if name in row} for row in task.scores]


def proxies_table(tasks: dict[str, Task]) -> list[str]:
    lines = [
        "| proxy | CPU s | "
        + " | ".join(f"{name}: Spearman [95 %] | tau | regret of the top 5" for name in tasks)
        + " |"
    ]
    lines.append("|---" * (2 + 3 * len(tasks)) + "|")

    def cells(task: Task, scores) -> str:
        if numpy.ptp(scores) == 0:
            return "the same for all | | "
        low, high = bootstrap(scores, task.mean)
        return (
            f"{rank_correlation(scores, task.mean):.2f} [{low:.2f}, {high:.2f}] | {kendall(scores, task.mean):.2f} "
            f"| {task.regret(scores, 5):.1f}"
        )

    columns = {name: proxy_columns(task) for name, task in tasks.items()}
    first = next(iter(columns.values()))
    for proxy in first:
        lines.append(
            f"| {proxy} | {first[proxy][1]} | "
            + " | ".join(cells(tasks[name], columns[name][proxy][0]) for name in tasks)
            + " |"
        )
    for epochs in (1, 3, 6):
        row = []
        seconds = []
        for task in tasks.values():
            # Seed 0 predicts the means of the other seeds.
            scores = numpy.array([runs[0][f"validation{epochs}"] for runs in task.runs])
            other = task.test[:, 1:].mean(1)
            low, high = bootstrap(scores, other)
            row.append(
                f"{rank_correlation(scores, other):.2f} [{low:.2f}, {high:.2f}] | {kendall(scores, other):.2f} | "
                f"{task.regret(scores, 5):.1f}"
            )
            seconds += [runs[0][f"seconds{epochs}"] for runs in task.runs]
        lines.append(
            f"| {epochs} epoch{'s' * (epochs > 1)} | {statistics.fmean(seconds):.2f} | " + " | ".join(row) + " |"
        )
    row = []
    for task in tasks.values():
        other = task.test[:, 1:].mean(1)
        low, high = bootstrap(task.test[:, 0], other)
        row.append(
            f"{rank_correlation(task.test[:, 0], other):.2f} [{low:.2f}, {high:.2f}] | "
            f"{kendall(task.test[:, 0], other):.2f} | {task.regret(task.test[:, 0], 5):.1f}"
        )
    seconds = [run["seconds"] for task in tasks.values() for runs in task.runs for run in runs]
    lines.append(f"| a whole training (ceiling) | {statistics.fmean(seconds):.2f} | " + " | ".join(row) + " |")
    names = (*STATIC, *INITIAL, "fit25")
    row = []
    for task in tasks.values():
        learned = Combination(least=10).fit(features(task, names), task.mean)
        row.append(cells(task, learned.cross_validated) if math.isfinite(learned.rank_correlation) else " | | ")
    lines.append("| combination, cross-validated on the task | all above | " + " | ".join(row) + " |")
    return lines


def transfer_lines(tasks: dict[str, Task]) -> list[str]:
    lines = []
    names = (*STATIC, *INITIAL, "fit25")
    for a, b in itertools.permutations(tasks, 2):
        learned = Combination(least=10).fit(features(tasks[a], names), tasks[a].mean)
        scores = learned.predict(features(tasks[b], names), anyway=True)
        low, high = bootstrap(scores, tasks[b].mean)
        lines.append(
            f"* The combination of {a} (own rank correlation {learned.rank_correlation:.2f}) on {b}: "
            f"**{rank_correlation(scores, tasks[b].mean):.2f}** [{low:.2f}, {high:.2f}], regret of its top 5 "
            f"{tasks[b].regret(scores, 5):.1f} points. "
            f"The accuracies of {a} themselves on {b}: {rank_correlation(tasks[a].mean, tasks[b].mean):.2f}."
        )
    return lines


# Policies: each spends at most `budget` CPU seconds on the operators in a random order, and names one.


def trained_result(task: Task, picked) -> float:
    return (
        100 * float(task.mean.max() - task.mean[picked])
        if picked is not None
        else 100 * float(task.mean.max() - task.mean.min())
    )


def policy_random(task: Task, order, budget: float):
    best = None
    for index in order:
        run = task.runs[index][0]
        if run["seconds"] > budget:
            break
        budget -= run["seconds"]
        if best is None or run["validation"] > task.runs[best][0]["validation"]:
            best = index
    return best


def policy_halving(task: Task, order, budget: float, size: int = 9):
    """Brackets of 9 by 1-3-6-all epochs, as kas.search."""
    best = None
    rungs = [
        ("seconds1", "validation1"),
        ("seconds3", "validation3"),
        ("seconds6", "validation6"),
        ("seconds", "validation"),
    ]
    for start in range(0, len(order), size):
        alive, spent = list(order[start : start + size]), {}
        for number, (seconds, validation) in enumerate(rungs):
            kept = []
            for index in alive:
                run = task.runs[index][0]
                cost = run[seconds] - spent.get(index, 0)
                if cost > budget:
                    break
                budget -= cost
                spent[index] = run[seconds]
                kept.append(index)
            if len(kept) < len(alive):
                # The time is up: of a bracket that is cut short the best counts if nothing else does.
                if best is None and alive and spent:
                    best = max(
                        spent,
                        key=lambda index: task.runs[index][0][
                            validation if index in kept else rungs[max(0, number - 1)][1]
                        ],
                    )
                return best
            if number == len(rungs) - 1:
                for index in kept:
                    if best is None or task.runs[index][0]["validation"] > task.runs[best][0]["validation"]:
                        best = index
            else:
                kept.sort(key=lambda index: -task.runs[index][0][validation])
                alive = kept[: max(1, len(kept) // 3)]
    return best


def scored_first(policy, score: str, seconds: str, sign: float):
    """Half of the time scores, and the policy goes through what was scored, the best first."""

    def run(task: Task, order, budget: float):
        left, scored = budget / 2, []
        for index in order:
            cost = task.scores[index][seconds] if seconds else 0.0
            if cost > left:
                break
            left -= cost
            scored.append(index)
        scored.sort(key=lambda index: -sign * task.scores[index][score])
        return policy(task, scored, budget / 2 + left)

    return run


def policy_surrogate(task: Task, order, budget: float):
    """Whole trainings, in the order in which a combination of static features ranks the operators.

    The combination learns from the trainings before; the first ten are as they come.
    """
    best, known, left, learned = None, [], list(order), None
    while left:
        index = left[0]
        # It learns again after every fifth training.
        if len(known) >= 10 and len(known) % 5 == 0:
            learned = Combination(trusted_from=-1, folds=5, least=10).fit(
                features_of(task, known, STATIC), [task.runs[k][0]["validation"] for k in known]
            )
        if learned is not None and math.isfinite(learned.rank_correlation):
            index = left[int(numpy.argmax(learned.predict(features_of(task, left, STATIC), anyway=True)))]
        run = task.runs[index][0]
        if run["seconds"] > budget:
            return best
        budget -= run["seconds"]
        left.remove(index)
        known.append(index)
        if best is None or run["validation"] > task.runs[best][0]["validation"]:
            best = index
    return best


def features_of(task: Task, indices, names) -> list[dict[str, float]]:
    return [{name: task.scores[index][name] for name in names if name in task.scores[index]} for index in indices]


def policies_table(tasks: dict[str, Task], trainings=(5, 10, 20, 40)) -> list[str]:
    policies = {
        "random, whole trainings": policy_random,
        "successive halving 1-3-6-all": policy_halving,
        "parameters first, then halving": scored_first(policy_halving, "params", "", 1),
        "SNIP first, then halving": scored_first(policy_halving, "snip", "initialization_seconds", 1),
        "fit first, then halving": scored_first(policy_halving, "fit25", "fit_seconds", -1),
        "surrogate on static features": policy_surrogate,
    }
    count = min(len(task.operators) for task in tasks.values())
    trainings = [number for number in trainings if number <= count / 2]
    lines = [
        "| policy | " + " | ".join(f"{name}: {number}" for name in tasks for number in trainings) + " |",
        "|---" * (1 + len(tasks) * len(trainings)) + "|",
    ]
    for label, policy in policies.items():
        cells = []
        for task in tasks.values():
            mean = statistics.fmean(runs[0]["seconds"] for runs in task.runs)
            for number in trainings:
                regrets = [
                    trained_result(
                        task,
                        policy(
                            task,
                            list(numpy.random.RandomState(shuffle).permutation(len(task.operators))),
                            number * mean,
                        ),
                    )
                    for shuffle in range(SHUFFLES)
                ]
                cells.append(f"{statistics.fmean(regrets):.1f} ± {statistics.stdev(regrets) / math.sqrt(SHUFFLES):.1f}")
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", nargs="?", default=str(ROOT / "research" / "data" / "proxies.jsonl"))
    parser.add_argument("--shuffles", type=int, default=SHUFFLES, help="orders for each policy (default 20)")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of the bootstrap (default 1000)")
    arguments = parser.parse_args()
    globals().update(SHUFFLES=arguments.shuffles, DRAWS=arguments.draws)
    tasks, failed = read(pathlib.Path(arguments.input))
    first = next(iter(tasks.values()))
    print(
        f"{len(first.operators)} operators with {first.seeds} seeds on {len(tasks)} tasks; {failed} drawn ones left "
        "out.\n"
    )
    print("| | " + " | ".join(tasks) + " |\n|---" + "|---" * len(tasks) + "|")
    quantiles = lambda task: " / ".join(f"{100 * q:.1f}" for q in numpy.quantile(task.mean, (0, 0.25, 0.5, 0.75, 1)))  # noqa: E731
    print("| test accuracy: least / quartiles / best | " + " | ".join(map(quantiles, tasks.values())) + " |")
    print(
        "| the network itself: mean (seeds) | "
        + " | ".join(
            f"{100 * statistics.fmean(t.dense):.1f} ({len(t.dense)})" if t.dense else "" for t in tasks.values()
        )
        + " |"
    )
    print("| Spearman between two seeds | " + " | ".join(f"{t.noise()[0]:.2f}" for t in tasks.values()) + " |")
    print(
        "| standard deviation over seeds, points | "
        + " | ".join(f"{100 * t.noise()[1]:.1f}" for t in tasks.values())
        + " |"
    )
    position = [row["weights_indexed_by_position"] > 0 for row in first.scores]

    def split(task: Task) -> str:
        medians = (
            float(numpy.median(task.mean[numpy.array(position) == f])) if f in position else None for f in (True, False)
        )
        return " / ".join("-" if median is None else f"{100 * median:.1f}" for median in medians)

    print(
        f"| median with weights indexed by a position ({sum(position)}) / without | "
        + " | ".join(map(split, tasks.values()))
        + " |\n"
    )
    for line in proxies_table(tasks):
        print(line)
    print()
    for line in transfer_lines(tasks):
        print(line)
    print()
    for line in policies_table(tasks):
        print(line)


if __name__ == "__main__":
    main()
