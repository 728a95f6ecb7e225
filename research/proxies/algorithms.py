#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares algorithms of the search on the space of research/proxies/digits.mlir at the same training effort.

For each algorithm and seed one `kas.search`, whose best is trained again. Prints a table.
The databases stay in the folder of --output; the same command goes on.
"""

import argparse
import pathlib
import statistics

import kas
from kas import evaluate

ROOT = pathlib.Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", default="random,mcts")
    parser.add_argument("--seeds", type=int, default=3, help="searches with each algorithm (default 3)")
    parser.add_argument("--trainings", type=float, default=12, help="effort of each, in whole trainings (default 12)")
    parser.add_argument("--candidates", type=int, help="instead: so many, each trained to the end")
    parser.add_argument("--train", type=int, default=300, help="training images (default 300)")
    parser.add_argument("--epochs", type=int, default=20, help="of the recipe (default 20)")
    parser.add_argument("--batch-size", type=int, default=50, help="of the recipe (default 50)")
    parser.add_argument(
        "--final-seeds", type=int, default=3, help="trainings of the best, for its test accuracy (default 3)"
    )
    parser.add_argument("--no-tree", action="store_true", help="do not list the space first")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", default="algorithms", help="a folder for the databases")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    space = kas.SearchSpace((ROOT / "digits.mlir").read_text())
    recipe = evaluate.Recipe(epochs=arguments.epochs, batch_size=arguments.batch_size)
    budget = (
        kas.Budget(candidates=arguments.candidates) if arguments.candidates else kas.Budget(epochs=arguments.trainings)
    )
    rows: dict[str, list] = {}
    # Seed by seed, so that what an interrupted run leaves can be compared.
    for seed in range(1, arguments.seeds + 1):
        for algorithm in arguments.algorithms.split(","):
            database = folder / f"{algorithm}-{seed}.db"
            finished = folder / f"{algorithm}-{seed}.txt"
            if not finished.exists():
                # The effort of earlier calls does not count against the budget: a run that was cut off starts again.
                database.unlink(missing_ok=True)
                outcome = kas.search(
                    evaluate.DigitsNetwork(), evaluate.digits(train=arguments.train), budget, space=space,
                    halving=kas.Halving.off() if arguments.candidates else kas.Halving(), recipe=recipe,
                    binding={"k1": 3, "k2": 5, "s": 2, "g": 4}, algorithm=algorithm, seed=seed,
                    parameters={"tree-expansions": 0} if arguments.no_tree else {},
                    final=1, final_seeds=arguments.final_seeds,
                    database=database, workers=arguments.workers, progress=False,
                )  # fmt: skip
                if not outcome.is_complete:
                    return
                best = outcome.best
                failed = sum(entry.failure is not None for entry in outcome.trained)
                numbers = (
                    len(outcome.trained), failed, len(outcome.fully_trained),
                    max(e.metrics["accuracy"] for e in outcome.fully_trained),
                    best.metrics["final_test_accuracy"], best.metrics["flops_ratio"], outcome.dense["test_accuracy"],
                )  # fmt: skip
                finished.write_text(" ".join(map(str, numbers)) + "\n")
            rows.setdefault(algorithm, []).append([float(number) for number in finished.read_text().split()])
            print(algorithm, seed, *rows[algorithm][-1], flush=True)
    print(
        "\n| algorithm | candidates (failed) | trained to the end | best validation accuracy, by seed | its test "
        "accuracy, by seed | mean |"
    )
    print("|---|---|---|---|---|---|")
    for algorithm, runs in rows.items():
        columns = list(zip(*runs))
        percent = lambda values: ", ".join(f"{100 * value:.1f}" for value in values)  # noqa: E731
        print(
            f"| `{algorithm}` | {', '.join(f'{int(a)} ({int(b)})' for a, b in zip(columns[0], columns[1]))} | "
            f"{', '.join(str(int(n)) for n in columns[2])} | {percent(columns[3])} | {percent(columns[4])} | "
            f"{100 * statistics.fmean(columns[4]):.1f} |"
        )


if __name__ == "__main__":
    main()
