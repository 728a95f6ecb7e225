#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches transformations of ResNet-34 for images of CIFAR's size, measures the best that Fisher Potential leaves, and prints a table.

    tools/network-search/run.py                              1000 configurations, 10 survivors measured
    tools/network-search/run.py --peers=PYTHON               and them beside the best compiler's dense network (tools/kas-bench/peers.py)
    tools/network-search/run.py --algorithm=mcts --objective=-fisher_ratio

A run that was stopped goes on. Times of the search are those of this run, with what was known before left out.
"""

import argparse
import json
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import cifar

ROOT = Path(__file__).resolve().parents[2]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=34, choices=(4, 18, 34))
    parser.add_argument("--width", type=int, default=64, help="channels of the first stage (default: %(default)s)")
    parser.add_argument("--image", type=int, default=32, help="size of the images (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=4, help="samples of Fisher Potential (default: %(default)s)")
    parser.add_argument("--evaluations", type=int, default=1000, help="configurations (default: %(default)s)")
    parser.add_argument("--survivors", type=int, default=10, help="how many of the best are measured (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2, help="of the search; networks are measured on one (default: %(default)s)")
    parser.add_argument("--algorithm", default="random")
    parser.add_argument("--objective", default="flops", help="what survivors are chosen by (default: %(default)s)")
    parser.add_argument("--limits", default="normalize=1", help="network-limits of the search (default: %(default)s)")
    parser.add_argument("--peers", metavar="PYTHON", help="the interpreter that has the others' packages")
    parser.add_argument("--tools", type=Path, default=ROOT / "build" / "bin")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "network-search")
    return parser.parse_args()


def search(options, network, database, final):
    """Seconds of a search; its result is in found.mlir."""
    evaluators = "flops,params,fisher"
    text = (f"network=@forward scored-network=@forward_batch network-limits={options.limits} algorithm={options.algorithm} seed={options.seed} "
            f"evaluations={options.evaluations} threads={1 if final else options.threads} evaluators={evaluators} limits=fisher_ratio>=1 "
            f"objective={options.objective} database={database} top={options.survivors}")
    if final:
        text += f" final={options.survivors} final-evaluators=latency time-limit=120"
    start = time.time()
    subprocess.run([options.tools / "kas-opt", network, f"-kas-search={text}", "-o", options.work / "found.mlir"], check=True)
    return time.time() - start


def read_candidates(database):
    """How many there are, and how many of them were rejected and failed otherwise."""
    with sqlite3.connect(database) as connection:
        reasons = [reason for reason, in connection.execute("SELECT failure FROM candidate")]
    rejected = sum(reason is not None and "fisher_ratio" in reason for reason in reasons)
    return len(reasons), rejected, sum(reason is not None for reason in reasons) - rejected


def read_scores(path):
    """The metrics of the functions that were found, the best first."""
    scores = []
    for text in re.findall(r"kas\.score = \{(.*?)\}", path.read_text()):
        scores.append({name: float(value) for name, value in re.findall(r"(\w+) = (\S+) : ", text)})
    return scores


def measure_peers(options):
    """Variant -> milliseconds, all in turn in one run."""
    command = [sys.executable, ROOT / "tools" / "kas-bench" / "peers.py", f"--transformed={options.work / 'found.mlir'}", f"--python={options.peers}",
               f"--tools={options.tools}", f"--work={options.work / 'peers'}"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    (options.work / "peers.jsonl").write_text("\n".join(lines) + "\n")
    entries = [json.loads(line) for line in lines]
    return {entry["impl"]: entry["value"] for entry in entries if entry["metric"] == "time_ms"}


def main():
    options = parse()
    options.tools, options.work = options.tools.resolve(), options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    network = options.work / f"resnet{options.depth}.mlir"
    sizes = (options.width, options.image)
    network.write_text(cifar.write("forward", options.depth, 1, *sizes) + cifar.write("forward_batch", options.depth, options.batch, *sizes))
    database = options.work / f"resnet{options.depth}-{options.algorithm}-{options.seed}.db"
    seconds = search(options, network, database, final=False)
    count, rejected, failed = read_candidates(database)
    print("| | |\n|---|---|")
    print(f"| configurations | {count}, `{options.algorithm}`, seed {options.seed} |")
    print(f"| search | {seconds:.0f} s, {options.threads} threads |")
    print(f"| rejected by Fisher Potential | {rejected} ({100 * rejected / count:.1f} %) |")
    if failed:
        print(f"| failed | {failed} |")
    if not options.survivors:
        return
    seconds = search(options, network, database, final=True)
    scores = read_scores(options.work / "found.mlir")
    print(f"| survivors measured | {len(scores)}, {seconds:.0f} s |", flush=True)
    if not scores:
        return
    best = scores[0]
    print(f"| best survivor | {best['flops'] / 2e6:.0f} million multiply-adds, {best['params'] / 1e6:.2f} million parameters, "
          f"Fisher {best['fisher_ratio']:.3f} of the network's, {best['latency_ms']:.2f} ms in the search |")
    if options.peers:
        times = measure_peers(options)
        others = {name: value for name, value in times.items() if not name.startswith("kas")}
        ours = {name: value for name, value in times.items() if name.startswith("kas/")}
        peer, chosen = min(others, key=others.get), min(ours, key=ours.get)
        for name, value in sorted(times.items(), key=lambda item: item[1]):
            print(f"| {name}{' (dense)' if '/' not in name else ''} | {value:.2f} ms |")
        print(f"| speed-up of {chosen} over the best dense network ({min(peer, 'kas', key=times.get)}) | "
              f"{min(times[peer], times['kas']) / times[chosen]:.2f} |")
        print(f"| over the best other compiler's ({peer}) | {times[peer] / times[chosen]:.2f} |")


if __name__ == "__main__":
    main()
