#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains and scores operators drawn uniformly from the space of research/proxies/space.mlir, on two tasks.

Writes one JSON object per line and training (or set of scores) to the output file. It may be killed at any time: the
same command goes on. Several processes may share the work, each with an --output and a --first of its own (all but one
with --dense-seeds=0): the files in sequence are the table. research/proxies/analyse.py makes the tables of
research/reports/proxies.md from it.
"""

import argparse
import json
import math
import pathlib
import re
import time
from functools import partial

import torch

import kas
from kas import evaluate
from kas.evaluate import proxies

ROOT = pathlib.Path(__file__).resolve().parent
BINDING = {"k1": 3, "k2": 5, "s": 2, "g": 4}
PROBES = (1, 3, 6)
# Operators whose PyTorch code needs more CPU seconds for the first epoch are left out.
SLOWEST_EPOCH = 0.6


def make_trainer(task: str) -> evaluate.Trainer:
    return evaluate.Trainer(evaluate.DigitsNetwork(), task, binding=BINDING)


def train(trainer: evaluate.Trainer, operator: str | None, seed: int) -> dict:
    """One training, with the validation accuracy and the CPU seconds after some epochs."""
    training = trainer.start(operator, seed)
    row, start = {}, time.process_time()
    for epoch in PROBES:
        training.advance(epoch)
        if time.process_time() - start > SLOWEST_EPOCH and epoch == 1:
            raise evaluate.TrainingFailure(f"the first epoch needs more than {SLOWEST_EPOCH} CPU seconds")
        row[f"validation{epoch}"] = training.evaluate()["accuracy"]
        row[f"seconds{epoch}"] = time.process_time() - start
    training.advance(trainer.recipe.epochs)
    row["validation"] = training.evaluate()["accuracy"]
    row["seconds"] = time.process_time() - start
    row["test"] = training.evaluate("test")["accuracy"]
    return row


def score(
    trainer: evaluate.Trainer, teacher: proxies.Teacher, candidate: kas.Candidate, space: kas.SearchSpace
) -> dict:
    """All scores, those at initialization as means of three, and what each group costs in CPU seconds."""
    clock = time.process_time
    start = clock()
    row: dict = proxies.static_features(candidate.operator, space.bindings, space.multiplicities)
    row["static_seconds"], start = clock() - start, clock()
    several = [proxies.initialization_scores(trainer, candidate.text, seed) for seed in range(3)]
    row |= {name: math.fsum(scores[name] for scores in several) / 3 for name in several[0]}
    row["initialization_seconds"], start = (clock() - start) / 3, clock()
    row["fit25"] = proxies.fit_error(trainer, candidate.text, teacher, steps=25)
    row["fit_seconds"] = clock() - start
    return row


def tidy(row: dict) -> dict:
    return {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", type=int, default=300, help="how many operators to draw (default 300)")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each on each task (default 3)")
    parser.add_argument("--dense-seeds", type=int, default=10, help="trainings of the network itself (default 10)")
    parser.add_argument(
        "--first", type=int, default=0, help="go on from this operator; for processes with outputs of their own"
    )
    parser.add_argument("--tasks", default="digits,moved_digits", help="data sets (default digits,moved_digits)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start nothing after so many seconds")
    parser.add_argument("--output", default=str(ROOT.parents[1] / "research" / "data" / "proxies.jsonl"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    end = time.monotonic() + arguments.seconds

    output = pathlib.Path(arguments.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    done, failed = set(), set()
    if output.exists():
        for line in output.read_text().splitlines():
            row = json.loads(line)
            done.add((row["task"], row["operator"], row["what"]))
            if "failure" in row:
                failed.add(row["operator"])
    space = kas.SearchSpace((ROOT / "space.mlir").read_text())
    with kas.Searcher(space, "uniform", seed=7) as searcher:
        candidates = searcher.ask(arguments.operators)
    trainers = {task: make_trainer(task) for task in arguments.tasks.split(",")}
    teachers: dict[str, proxies.Teacher] = {}

    with open(output, "a") as stream:

        def record(task: str, index: int, key: str, what: str, compute) -> bool:
            """False when the time is up; a failure is recorded, too."""
            if (task, key, what) in done or key in failed:
                return True
            if time.monotonic() > end:
                return False
            try:
                row = compute()
            except evaluate.TrainingFailure as failure:
                row = {"failure": re.sub(r"\s+", " ", str(failure))[:200]}
                failed.add(key)
            stream.write(json.dumps({"task": task, "index": index, "operator": key, "what": what, **tidy(row)}) + "\n")
            stream.flush()
            return True

        for task, trainer in trainers.items():
            for seed in range(arguments.dense_seeds):
                record(task, -1, "dense", f"seed{seed}", partial(train, trainer, None, seed))
        for index, candidate in enumerate(candidates):
            if index < arguments.first:
                continue
            for task, trainer in trainers.items():
                if task not in teachers:
                    teachers[task] = proxies.make_teacher(trainer)
                for seed in range(arguments.seeds):
                    if not record(
                        task, index, candidate.key, f"seed{seed}", partial(train, trainer, candidate.text, seed)
                    ):
                        return
                if not record(
                    task, index, candidate.key, "scores", partial(score, trainer, teachers[task], candidate, space)
                ):
                    return


if __name__ == "__main__":
    main()
