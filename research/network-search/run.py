#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches transformations of ResNet-34 for images of CIFAR's size and measures the best that Fisher Potential leaves.

    run.py                              1000 random configurations, the 5 with the least time of layers measured
    run.py --algorithms=random,mcts:300,evolution:300
    run.py --peers=PYTHON               and next to them the best compiler's dense network (research/peers/peers.py)
    run.py --peers=PYTHON --prepare     everything that needs no quiet machine; without it, the rest

A run that was stopped goes on; the time of a search is that of all runs that it took. What survivors are chosen by is
the metric layer_latency_ms, in which each program of a layer is timed once, alone; what they are worth is the time of
the whole network.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "Search" / "Networks" / "Inputs"))

import cifar  # noqa: E402

ALGORITHMS = ("random", "mcts", "evolution", "surrogate")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=34, choices=(4, 18, 34))
    parser.add_argument("--width", type=int, default=64, help="channels of the first stage (default: %(default)s)")
    parser.add_argument("--image", type=int, default=32, help="size of the images (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=4, help="samples of Fisher Potential (default: %(default)s)")
    parser.add_argument(
        "--evaluations",
        type=int,
        default=1000,
        help="configurations of algorithms that say no number of their own (default: %(default)s)",
    )
    parser.add_argument(
        "--survivors", type=int, default=5, help="how many of the best of each are measured (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--threads", type=int, default=2, help="of the search; networks are measured on one (default: %(default)s)"
    )
    parser.add_argument(
        "--algorithms",
        default="random",
        help=f"some of {', '.join(ALGORITHMS)}, with or without :configurations (default: %(default)s)",
    )
    parser.add_argument("--limits", default="normalize=1", help="network-limits of the search (default: %(default)s)")
    parser.add_argument("--peers", metavar="PYTHON", help="the interpreter that has the others' packages")
    parser.add_argument(
        "--others", default="pytorch,onnxruntime,openvino,iree", help="which of them (default: %(default)s)"
    )
    parser.add_argument(
        "--prepare", action="store_true", help="compile for the comparison with the others, but do not measure it"
    )
    parser.add_argument(
        "--rounds", type=int, default=6, help="how often the turn comes to each network there (default: %(default)s)"
    )
    parser.add_argument("--tools", type=Path, default=ROOT / "build" / "bin")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "network-search")
    options = parser.parse_args()
    counts = {}
    for text in options.algorithms.split(","):
        name, _, count = text.partition(":")
        if name not in ALGORITHMS or not (count or "1").isdigit():
            parser.error(
                f"--algorithms: expected some of {', '.join(ALGORITHMS)}, with or without :configurations, got '{text}'"
            )
        counts[name] = int(count or options.evaluations)
    options.algorithms = counts
    options.tools, options.work = options.tools.resolve(), options.work.resolve()
    if not (options.tools / "kas-opt").is_file():
        parser.error(f"--tools: expected a folder with kas-opt, got '{options.tools}'")
    if options.peers and not shutil.which(options.peers):
        parser.error(f"--peers: expected a Python interpreter, got '{options.peers}'")
    return options


class Search:
    """One algorithm's search, in a database of its own."""

    def __init__(self, options, network, algorithm):
        self.options, self.network, self.algorithm, self.evaluations = (
            options,
            network,
            algorithm,
            options.algorithms[algorithm],
        )
        stem = options.work / f"resnet{options.depth}-{algorithm}-{options.seed}"
        self.database, self.log, self.found = (stem.with_suffix(suffix) for suffix in (".db", ".json", ".mlir"))

    def run(self, final):
        options = self.options
        text = (
            f"network=@forward scored-network=@forward_batch network-limits={options.limits} "
            f"algorithm={self.algorithm} seed={options.seed} "
            f"evaluations={self.evaluations} threads={1 if final else options.threads} "
            "evaluators=flops,params,fisher,layer_latency "
            f"limits=fisher_ratio>=1 objective=layer_latency_ms database={self.database} "
            f"top={max(options.survivors, 1)}"
        )
        if final:
            text += f" final={options.survivors} final-evaluators=latency time-limit=120"
        subprocess.run(
            [
                options.tools / "kas-opt",
                self.network,
                f"-kas-search={text}",
                "-mlir-print-local-scope",
                "-o",
                self.found,
            ],
            check=True,
        )

    def read(self):
        """(failure, metrics) of each configuration."""
        if not self.database.exists():
            return []
        listed = subprocess.run(
            [self.options.tools / "kas-search-db", "list", "--json", self.database],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        return [
            (candidate.get("failure"), candidate.get("metrics", {}))
            for candidate in map(json.loads, listed.splitlines())
            if candidate["state"] != "asked"
        ]

    def finish(self):
        """Goes on until there are enough configurations; seconds of all runs."""
        seconds = json.loads(self.log.read_text())["seconds"] if self.log.exists() else 0
        if len(self.read()) < self.evaluations:
            start = time.time()
            self.run(final=False)
            seconds += time.time() - start
            self.log.write_text(json.dumps({"seconds": seconds}))
        return seconds

    def measure(self):
        """Metrics of the survivors with the least layer_latency_ms, in this order."""

        def read():
            scores = [
                {name: float(value) for name, value in re.findall(r"(\w+) = (\S+) : ", text)}
                for text in re.findall(r"kas\.score = \{(.*?)\}", self.found.read_text())
            ]
            return scores if all("latency_ms" in score for score in scores) else []

        is_new = self.found.exists() and self.found.stat().st_mtime > self.database.stat().st_mtime
        if not is_new or len(read()) < self.options.survivors:
            self.run(final=True)
        return read()[: self.options.survivors]

    def describe(self, seconds):
        """Rows of the table: name -> text."""
        results = self.read()
        rejected = sum(failure is not None and "fisher_ratio" in failure for failure, _ in results)
        failed = sum(failure is not None for failure, _ in results) - rejected
        rows = {
            "configurations": f"{len(results)}, seed {self.options.seed}",
            "search": f"{seconds:.0f} s, {self.options.threads} threads",
            "rejected by Fisher Potential": f"{rejected} ({100 * rejected / len(results):.1f} %)",
            "failed otherwise": f"{failed}",
        }
        times = sorted(metrics["layer_latency_ms"] for failure, metrics in results if failure is None)
        if times:
            dense = next(
                metrics["layer_latency_ms"] / metrics["layer_latency_ratio"]
                for failure, metrics in results
                if failure is None
            )
            rows["time of layers: the network's"] = f"{dense:.4g} ms"
            rows["least of the survivors"] = f"{times[0]:.4g} ms ({times[0] / dense:.3f} of it)"
            for count in sorted(set(self.options.algorithms.values())):
                first = [metrics["layer_latency_ms"] for failure, metrics in results[:count] if failure is None]
                if count < len(results):
                    rows[f"least of the first {count}"] = (
                        f"{min(first):.4g} ms ({min(first) / dense:.3f})" if first else "none"
                    )
            rows["median of the survivors"] = (
                f"{statistics.median(times):.4g} ms ({statistics.median(times) / dense:.3f})"
            )
        return rows


def describe_best(scores):
    best = min(scores, key=lambda score: score["latency_ms"])
    return (
        f"{best['latency_ms']:.4g} ms; {best['flops'] / 2e6:.4g} million multiply-adds, {best['params'] / 1e6:.3g} "
        "million parameters, "
        f"Fisher {best['fisher_ratio']:.3f} of the network's"
    )


def print_table(columns):
    names = list(dict.fromkeys(name for rows in columns.values() for name in rows))
    print(f"| | {' | '.join(f'`{algorithm}`' for algorithm in columns)} |\n|---|{'---|' * len(columns)}")
    for name in names:
        print(f"| {name} | {' | '.join(rows.get(name, '') for rows in columns.values())} |")
    print(flush=True)


def join_networks(searches, path):
    """The network and what all searches have made of it, in one file."""
    functions = []
    for search in searches:
        for source, name in re.findall(r"^  (func\.func @(\w+)\(.*?^  \})$", search.found.read_text(), re.S | re.M):
            number = re.fullmatch(r"forward_(\d+)", name)
            if number and int(number[1]) < search.options.survivors:
                functions.append(source.replace(f"@{name}(", f"@forward_{search.algorithm}{number[1]}(", 1))
            elif name == "forward" and search is searches[0]:
                functions.insert(0, source)
    path.write_text("module {\n" + "".join(f"  {source}\n" for source in functions) + "}\n")


def run_peers(options, found, *more):
    command = [
        sys.executable,
        ROOT / "research" / "peers" / "peers.py",
        f"--transformed={found}",
        f"--python={options.peers}",
        f"--tools={options.tools}",
        f"--work={options.work / 'peers'}",
        f"--peers={options.others}",
        f"--rounds={options.rounds}",
        *more,
    ]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def print_peers(options, found):
    """All networks in turn in one run."""
    lines = run_peers(options, found)
    (options.work / "peers.jsonl").write_text(lines)
    entries = [entry for entry in map(json.loads, lines.splitlines()) if entry["metric"] == "time_ms"]
    times = {entry["impl"]: entry for entry in entries}
    ours = min(
        (name for name in times if name.startswith("kas/") and times[name]["ok"]),
        key=lambda name: times[name]["value"],
        default=None,
    )
    others = [name for name in times if not name.startswith("kas")]
    print("| network | milliseconds, median | least | dense time over it |\n|---|---|---|---|")
    for name, entry in sorted(times.items(), key=lambda item: item[1]["value"]):
        dense = "" if "/" in name else ", dense"
        wrong = "" if entry["ok"] else f", error {entry['max_rel_err']}"
        print(
            f"| {name}{dense}{wrong} | {entry['value']:.4g} | {entry['min']:.4g} | "
            f"{times['kas']['value'] / entry['value']:.2f} |"
        )
    print()
    right = [name for name in others if times[name]["ok"]]
    if right and ours:
        peer = min(right, key=lambda name: times[name]["value"])
        print(
            f"speed-up of {ours} over the best other compiler's dense network ({peer}): "
            f"{times[peer]['value'] / times[ours]['value']:.2f}"
        )
        best = min((peer, "kas"), key=lambda name: times[name]["value"])
        print(f"over the best dense network ({best}): {times[best]['value'] / times[ours]['value']:.2f}")


def main():
    options = parse()
    options.work.mkdir(parents=True, exist_ok=True)
    network = options.work / f"resnet{options.depth}.mlir"
    sizes = (options.width, options.image)
    network.write_text(
        cifar.write("forward", options.depth, 1, *sizes)
        + cifar.write("forward_batch", options.depth, options.batch, *sizes)
    )
    searches, columns = [Search(options, network, algorithm) for algorithm in options.algorithms], {}
    for search in searches:
        columns[search.algorithm] = search.describe(search.finish())
        scores = search.measure() if options.survivors else []
        if scores:
            columns[search.algorithm]["best of those measured"] = describe_best(scores)
    print_table(columns)
    if not options.peers or not any("best of those measured" in rows for rows in columns.values()):
        return
    found = options.work / "found.mlir"
    join_networks(searches, found)
    if options.prepare:
        run_peers(options, found, "--warm")
    else:
        print_peers(options, found)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as problem:
        # It has said why.
        sys.exit(f"error: {Path(problem.cmd[0]).name} {Path(problem.cmd[1]).name} ended with {problem.returncode}")
