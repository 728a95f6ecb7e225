#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares algorithms of the search on real trainings: the search of tools/demo.sh, with several seeds of each.

    search-regret.py FOLDER run --part=1/2      the searches, each one process; of two machines or cores the first half
    search-regret.py FOLDER final               trains what the searches chose again, with seeds that they have not seen
    search-regret.py FOLDER report              what each algorithm comes to after so much effort
    search-regret.py FOLDER records             the same as lines of JSON, one for each search and effort

Networks are trained on Fashion-MNIST (Debian's package dataset-fashion-mnist). A command that is stopped goes on where
it was. Regret is what the choice of a search is worse than the best choice of all searches, by the objective of the
search, in points of accuracy; the accuracy is the mean of the test images with the fresh seeds. It needs `kas-opt`,
`kas-train` and `kas-search-db` in PATH or KAS_BIN.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from option_values import read_part, read_positive, read_positives

ROOT = Path(__file__).resolve().parents[2]
NETWORK = ROOT / "test" / "Networks" / "Training" / "Inputs" / "pooled_64.mlir"
ALGORITHMS = {
    "random": ("random", "3"),
    "evolution": ("evolution", "3"),
    "mcts": ("mcts", "3"),
    "surrogate": ("surrogate", "3"),
    "surrogate, halving": ("surrogate", "1,3"),
}
"""Name: the algorithm, and after which epochs trainings are compared."""
EPOCHS = 3
PRICE = 0.006
"""Of a millisecond, in accuracies, as in the demo."""
RECIPE = (
    "--data=fashion-mnist --validation=5000 --split-seed=0 --augment=flip --optimizer=adamw --learning-rate=4e-3 "
    f"--weight-decay=0.02 --schedule=cosine:warm-up=10% --limit=6000 --epochs={EPOCHS}"
)
FINAL_SEEDS = (100, 101, 102)


def call(tool, *arguments):
    command = [str(Path(os.environ.get("KAS_BIN", "")) / tool), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"error: requires {tool} in PATH or in the folder KAS_BIN, got {error}")
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}error: {tool} ended with code {done.returncode}")
    return done.stdout


def get_path(folder, name, seed, suffix):
    return folder / f"{re.sub('[^a-z]+', '-', name)}-{seed}.{suffix}"


def run(folder, options):
    """All searches of the part. One that was stopped goes on from its database."""
    sites = folder / "sites.mlir"
    if not sites.exists():
        call("kas-opt", NETWORK, "-kas-extract=sequences", "-o", sites)
    searches = [(seed, name) for seed in range(1, options.seeds + 1) for name in ALGORITHMS]
    first, count = options.part
    for seed, name in searches[first - 1 :: count]:
        algorithm, rungs = ALGORITHMS[name]
        output = get_path(folder, name, seed, "mlir")
        if output.exists():
            continue
        # Under halving most candidates end after the first epoch: the same number of epochs is what is compared.
        evaluations = options.trainings * (1 if rungs == "3" else 2)
        search = f"space=@conv2d_sequences algorithm={algorithm} seed={seed} evaluations={evaluations} rungs={rungs} "
        search += f"threads=1 evaluators=flops,params,predicted_ms,training objective={PRICE}*predicted_ms-accuracy "
        search += f"database='{get_path(folder, name, seed, 'db')}' training='{RECIPE} --test=none'"
        part = output.with_suffix(".part")
        call("kas-opt", sites, f"-kas-search={search}", "-o", part)
        part.rename(output)
        print(output.stem, flush=True)


def read_search(folder, name, seed):
    """The candidates in the order of proposal, each with the epochs spent up to it."""
    path = get_path(folder, name, seed, "db")
    spent = 0
    for line in call("kas-search-db", "list", path, "--json").splitlines():
        entry = json.loads(line)
        spent += entry.get("metrics", {}).get("epochs", EPOCHS)
        yield spent / EPOCHS, entry


def get_objective(metrics, accuracy=None):
    return PRICE * metrics["predicted_ms"] - (metrics["accuracy"] if accuracy is None else accuracy)


def choose(folder, name, seed, trainings):
    """What a search would return after so many whole trainings: the best of those that were trained to the end."""
    known = [
        entry
        for spent, entry in read_search(folder, name, seed)
        if spent <= trainings + 1e-9 and entry.get("metrics", {}).get("epochs") == EPOCHS
    ]
    return min(known, key=lambda entry: (get_objective(entry["metrics"]), entry["id"]), default=None)


def collect(folder, options):
    """The choice of each search after each effort. Searches that have not ended are left out."""
    return {
        (name, seed, effort): entry
        for name in ALGORITHMS
        for seed in range(1, options.seeds + 1)
        if get_path(folder, name, seed, "mlir").exists()
        for effort in options.efforts
        if (entry := choose(folder, name, seed, effort)) is not None
    }


def make_network(folder, entry):
    """The network with a candidate in the place of its 3x3 layers."""
    path = folder / f"{entry['key']}.mlir"
    if not path.exists():
        text = NETWORK.read_text().rstrip()
        joined, sites = path.with_suffix(".joined"), path.with_suffix(".sites")
        joined.write_text(f"{text[:-1]}{entry['operator']}}}\n")
        call("kas-opt", joined, "-kas-extract", "-o", sites)
        call("kas-opt", sites, "-kas-substitute=operator=@candidate space=@conv2d", "-symbol-dce", "-o", path)
        joined.unlink()
        sites.unlink()
    return path


def read_finals(folder):
    path = folder / "finals.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def final(folder, options):
    known = {(record["key"], record["seed"]) for record in read_finals(folder)}
    chosen = {entry["key"]: entry for entry in collect(folder, options).values()}
    jobs = [(key, seed) for key in sorted(chosen) for seed in FINAL_SEEDS]
    first, count = options.part
    for key, seed in jobs[first - 1 :: count]:
        if (key, seed) in known:
            continue
        output = call("kas-train", make_network(folder, chosen[key]), f"--seed={seed}", "--json", *RECIPE.split())
        record = {"key": key, "seed": seed, "test": json.loads(output.splitlines()[-1])["test_accuracy"]}
        with (folder / "finals.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(record, flush=True)


def evaluate(folder, options):
    """The records: each search's choice after each effort, what it comes to with fresh seeds, and its regret."""
    tests = {}
    for record in read_finals(folder):
        tests.setdefault(record["key"], []).append(record["test"])
    records = []
    for (name, seed, effort), entry in collect(folder, options).items():
        found = tests.get(entry["key"], [])
        if len(found) < len(FINAL_SEEDS):
            sys.exit(f"error: requires {len(FINAL_SEEDS)} trainings of {entry['key']}, got {len(found)}; see 'final'")
        record = {"algorithm": name, "seed": seed, "trainings": effort, "key": entry["key"]}
        record |= {key: round(entry["metrics"][key], 4) for key in ("accuracy", "predicted_ms", "flops", "params")}
        record |= {"tests": found, "objective": get_objective(entry["metrics"], statistics.fmean(found))}
        records.append(record)
    if not records:
        sys.exit(f"error: requires a search that has ended, got none in {folder}")
    best = min(record["objective"] for record in records)
    for record in records:
        record["regret"] = round(100 * (record.pop("objective") - best), 4)
    return records


def print_records(folder, options):
    for record in evaluate(folder, options):
        print(json.dumps(record))


def report(folder, options):
    records = evaluate(folder, options)
    print("| algorithm | " + " | ".join(f"{effort:g} trainings" for effort in options.efforts) + " |")
    print("|---|" + "---|" * len(options.efforts))
    for name in ALGORITHMS:
        cells = []
        for effort in options.efforts:
            regrets = sorted(r["regret"] for r in records if (r["algorithm"], r["trainings"]) == (name, effort))
            cells.append(
                f"{statistics.median(regrets):.2f} ({regrets[0]:.2f} to {regrets[-1]:.2f})" if regrets else "none"
            )
        print(f"| {name} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of databases and results")
    parser.add_argument("command", choices=("run", "final", "report", "records"))
    parser.add_argument("--seeds", type=read_positive, default=5, help="searches with each algorithm (default 5)")
    parser.add_argument("--trainings", type=read_positive, default=24, help="effort of each, whole ones (default 24)")
    parser.add_argument("--efforts", type=read_positives, default=[6, 12, 24], help="of the table (default 6,12,24)")
    parser.add_argument("--part", type=read_part, default=(1, 1), help="I/N: every N-th from the I-th on")
    options = parser.parse_args()
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"requires a folder, got {options.folder}: {error.strerror}")
    {"run": run, "final": final, "report": report, "records": print_records}[options.command](options.folder, options)


if __name__ == "__main__":
    main()
