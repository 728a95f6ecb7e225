"""Reads what the steps of tools/demo/training.sh left in a directory, and says what it shows.

usage: training_report.py DIRECTORY STEP [argument...]
"""

import json
import math
import re
import statistics
from pathlib import Path

from demo_common import fail, read_candidates, read_space, run_step

NETWORKS = ("dense", "separable", "found")


def sites(directory, space):
    """Says which layers are replaced."""
    for sizes, count in read_space(directory, space)[1]:
        print(f"{count} of {sizes['Cin']} channels, {sizes['H']}x{sizes['W']}")


def progress(directory):
    """Passes on what the search says: each improvement, and how far it is."""
    best = -math.inf
    for count, event in enumerate(read_candidates(directory), 1):
        metrics = event.get("metrics")
        if metrics and metrics["accuracy"] > best:
            best = metrics["accuracy"]
            print(
                f"candidate {count:3}: {100 * best:5.2f} % after {metrics['epochs']:.0f} epochs, "
                f"{metrics['flops'] / 64e6:5.1f} MFLOP an image, the most accurate so far",
                flush=True,
            )
        elif count % 10 == 0:
            print(f"candidate {count:3}", flush=True)


def read_events(directory):
    lines = (directory / "search.log").read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def chosen(directory, space):
    """Writes the best sequence of the search as @chosen, with its operators."""
    text = (directory / "found.mlir").read_text()
    match = re.search(rf"  kas\.sequence @({space}_sequences_0) \[(.*?)\] between (\[.*?\]).*\n", text)
    if not match:
        fail(f"the search found nothing; see {directory / 'search.log'}")
    stages = re.findall(r"@([\w$.]+)", match.group(2))
    parts = []
    for number, stage in enumerate(stages):
        body = re.search(rf"  kas\.operator @{re.escape(stage)}<.*?\n  }}\n", text, re.DOTALL)
        parts.append(body.group(0).replace(f"@{stage}<", f"@chosen_{number}<"))
    names = ", ".join(f"@chosen_{number}" for number in range(len(stages)))
    parts.append(f"  kas.sequence @chosen [{names}] between {match.group(3)}\n")
    (directory / "found.txt").write_text("".join(parts))
    candidates = [event for event in read_events(directory) if event["event"] == "candidate"]
    failed = sum("metrics" not in event for event in candidates)
    print(f"{len(candidates)} candidates trained, {failed} failed; the best one, its operators one after the other:")
    print("".join(parts), end="")


def join(directory, network, name, output):
    """Adds the sequence of `name` to a network."""
    text = Path(network).read_text().rstrip()
    if not text.endswith("}"):
        fail(f"{network} is no module")
    source = directory / ("found.txt" if name == "found" else "separable.mlir")
    Path(output).write_text(f"{text[:-1]}{source.read_text()}}}\n")


def read_training(directory, network, seed):
    lines = (directory / f"{network}-{seed}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def trained(directory, network, seed):
    *epochs, test = read_training(directory, network, seed)
    print(
        f"{network:10} seed {seed}: validation {100 * epochs[-1]['accuracy']:.2f} %, "
        f"test {100 * test['test_accuracy']:.2f} %, {sum(epoch.get('seconds', 0) for epoch in epochs):.0f} s",
        flush=True,
    )


def read_network(directory, name):
    accuracies = [
        100 * read_training(directory, name, path.stem.rsplit("-", 1)[1])[-1]["test_accuracy"]
        for path in sorted(directory.glob(f"{name}-*.jsonl"))
    ]
    rounds = [json.loads(line) for line in (directory / f"{name}.jsonl").read_text().splitlines()]
    return {
        "test": accuracies,
        "mean": statistics.fmean(accuracies),
        "ms": min(entry["min_ms"] for entry in rounds),
        "flops": rounds[0]["flops"],
        "params": rounds[0]["params"],
    }


def compare(found, other, error):
    """What the found network is worth beside another one, and whether it is better."""
    points, speed = found["mean"] - other["mean"], other["ms"] / found["ms"]
    text = f"{points:+.2f} points (standard error {error:.2f}), {speed:.2f} times as fast"
    if points > 2 * error and speed >= 1:
        return f"{text}: better", True
    if points >= -error and error < 0.5 and speed > 1.03:
        return f"{text}: as accurate within one standard error, and faster", True
    if points < -2 * error and speed <= 1:
        return f"{text}: worse", False
    return f"{text}: not shown to be better", False


def table(directory):
    networks = {name: read_network(directory, name) for name in NETWORKS}
    count = len(networks["found"]["test"])
    variance = statistics.fmean(statistics.variance(network["test"]) for network in networks.values())
    error = math.sqrt(2 * variance / count)
    candidates = sum(event["event"] == "candidate" for event in read_events(directory))
    print("Fashion-MNIST, a residual network of width 32, its four 3x3 layers as named")
    print(f"{'':12}{'test %':>8}{'±':>7}{'ms':>9}{'MFLOP':>8}{'parameters':>12}")
    for name, network in networks.items():
        deviation = statistics.stdev(network["test"])
        print(
            f"{name:12}{network['mean']:8.2f}{deviation:7.2f}{network['ms']:9.4f}"
            f"{network['flops'] / 1e6:8.2f}{network['params']:12,.0f}"
        )
    print(f"±: deviation of {count} seeds. ms: one image, one thread, the least of all runs. {candidates} candidates.")
    verdicts = {name: compare(networks["found"], networks[name], error) for name in NETWORKS[:2]}
    for name, (text, _) in verdicts.items():
        print(f"found against {name}: {text}")
    better = [name for name, (_, is_better) in verdicts.items() if is_better]
    if len(better) == len(verdicts):
        print("The layer that was found is better than both.")
    elif better:
        print(f"The layer that was found is better than the {better[0]} one, not shown to be better than both.")
    else:
        print("Nothing better than the dense or the depthwise-separable layer was found in this time.")
    results = {name: {**network, "against": dict(verdicts).get(name, [None])[0]} for name, network in networks.items()}
    (directory / "results.json").write_text(
        json.dumps({"candidates": candidates, "networks": results}, indent=2) + "\n"
    )
    print("The trained network runs on an image of 1x1x32x32, normalized as for training:")
    print(f"  kas-run {directory}/found-1.mlir --function=forward --args={directory}/found-100.npz --input=image.npy")


if __name__ == "__main__":
    run_step((sites, progress, chosen, join, trained, table), __doc__)
