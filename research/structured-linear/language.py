#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Language models with dense and with structured projections: research/reports/language-models.md.

usage: PYTHONPATH=build/python $(tools/python.sh) research/structured-linear/language.py COMMAND STORE [options]

  tune     finds a learning rate for dense networks of each width, and for each operator at one width
  train    trains what STORE has not: each network with several seeds
  time     times each network for one token and for a prompt
  report   what is above the envelope of the others, the tables of the report, and its picture (`--plot=FILE.svg`)
  predict  how the order of operators in each task is that in the others

The text is the GNU version of the Collaborative International Dictionary of English, as Debian's package `dict-gcide`
has it (`tools/setup.sh --package=dict-gcide`): training, validation and test are three parts of it, in this order, by
characters or by byte pairs (`--task=pairs`, which needs the Python package sentencepiece); the other tasks are made by
a procedure (sequences.py). Bits are those for each character, of the other tasks for each answer. Networks are
Transformers of four blocks (`research/peers/networks.py`), dense ones of several widths, and at some of the widths
with operators of the complete list in the place of all projections, whose weights have at most a quarter of the
elements. All are trained by one recipe: AdamW, each character of the training part at most once, a learning rate that
falls with the width, and for the weights of operators what `kas.torch.parameter_groups` makes of it. The rate is the
best on the validation part with a seed that nothing else uses. STORE is a file of lines of JSON, one for each training
and each time; any number of processes may add to it, one part each (`--part=1/2`).
"""

import argparse
import functools
import json
import math
import statistics
import sys
import time
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import torch
from gpt2 import Compiled, find_operator, replace
from sequences import BATCH, FACTORIES, LENGTH, TEXT, NextToken
from structured_linear import ROOT
from times import list_bindings

import kas.torch
from kas.evaluate._training import Recipe, Training, TrainingFailure, initialize
from kas.evaluate.proxies import rank_correlation
from kas_research.protocol import figure
from kas_research.protocol.statistics import Measured, decide, pool
from kas_research.structured import Structure

sys.path.insert(0, str(ROOT / "research" / "peers"))
from networks import LanguageModel
from option_values import read_part, read_positive, read_positives

BLOCKS = 4
STEPS = 400
"""Batches of 16 times 128 tokens."""
TEXTS = ("characters", "pairs")
WIDTHS = (64, 128, 192, 256, 320)
REPLACED = (192, 256)
NARROW_WIDTHS, NARROW_REPLACED = (64, 128), (128,)
"""Of the tasks that are no texts."""
TUNED = 128
"""Of the networks with operators that are tuned (where one does not fit, those of its own widths are): their rates fall
with the width, as those of dense ones nearly do."""
TUNING_SEED = 100
RATE = 0.8
"""The first rate that is tried, over the width: then half and twice the best, until both are worse."""
PART, LEAST = Fraction(1, 4), 0.3
"""Of the elements of each dense projection an operator's weights have at most so many, and at least so many of them."""
PROJECTIONS = ((1, 3), (1, 1), (1, 4), (4, 1))
"""Inputs and outputs of a block's projections, over the width."""
NAMED = {"low rank": "12f20b39", "Monarch": "ccd8cd3c", "BTT": "814a9570", "BLAST": "052a9234"}
FOUND = ("2e06d08d", "2b14cf1b", "5b9f7d5b")


def make_recipe(width, rate):
    """The learning rate falls with the width, as the steps of Adam add up over the inputs of a layer."""
    return Recipe(
        epochs=1,
        batch_size=BATCH,
        learning_rate=rate / width,
        weight_decay=0.01,
        warmup_steps=60,
        clip_gradients=1.0,
        recalibrate=False,
    )


def draw(network, seed):
    """Weights of the seed: of the embedding and of places small, others as PyTorch or the structure has them."""
    initialize(network, seed)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        torch.nn.init.normal_(network.words.weight, std=network.words.weight.shape[1] ** -0.5)
        torch.nn.init.normal_(network.places, std=0.02)
        # As dense layers of PyTorch start, with a third of the variance that would keep that of their data.
        kas.torch.scale_weights(network, gain=3**-0.5)


def make_network(kinds, width, operator, length, backend="pytorch"):
    """The network and the number of its parameters."""
    network = LanguageModel(True, BLOCKS, width, kinds, length)
    if operator != "dense":
        tokens = torch.zeros(1, length, dtype=torch.int64)
        network, _ = replace(network, find_operator(operator)[1], PART, tokens, LEAST, backend)
    return network, sum(parameter.numel() for parameter in network.parameters())


@functools.cache
def fits(operator, width):
    """Whether there are sizes of blocks at which its weights have as many elements as they may have."""
    structure = Structure.of(find_operator(operator)[1])
    shapes = ((inputs * width, outputs * width) for inputs, outputs in PROJECTIONS)
    return all(list_bindings(structure, *shape, PART, LEAST) for shape in shapes)


def list_points(task):
    """Width and operator of each network."""
    widths, replaced = (WIDTHS, REPLACED) if task in TEXTS else (NARROW_WIDTHS, NARROW_REPLACED)
    yield from ((width, "dense") for width in widths)
    operators = (*NAMED.values(), *FOUND)
    yield from ((width, operator) for operator in operators for width in replaced if fits(operator, width))


def read_store(path, task):
    """The records of one task."""
    if not path.exists():
        return []
    records = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise SystemExit(f"requires lines of JSON, got line {number} of {path}: {error}") from error
    return [record for record in records if record["task"] == task]


def add(path, record):
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def train_one(options, sequences, width, operator, seed, rate, splits):
    """The network's parameters and loss in training, and its metrics by split, bits for each character."""
    network, parameters = make_network(sequences.kinds, width, operator, LENGTH, "compiled")
    draw(network, seed)
    start = time.process_time()
    training = Training(network, sequences.data, make_recipe(width, rate), seed, task=NextToken())
    training.advance(1)
    found = {split: training.evaluate(split) for split in splits}
    for split, metrics in found.items():
        metrics["bits"] = round(metrics["bits"] * sequences.tokens[split], 4)
    facts = {
        "parameters": parameters,
        "steps": options.steps,
        "train_loss": round(training.curve[0][2], 4),
        "cpu_seconds": round(time.process_time() - start, 1),
    }
    return facts, found


def list_tuned(task):
    """Width and operator of each network whose rate is looked for."""
    return list(dict.fromkeys((get_tuned_width(width, operator), operator) for width, operator in list_points(task)))


def get_tuned_width(width, operator):
    """Where the rate of a network of this width is looked for."""
    return TUNED if operator != "dense" and fits(operator, TUNED) else width


def get_rates(records, width, operator):
    """The bits in the validation part by the rate; as many as can be where the training failed."""
    own = [r for r in records if (r["width"], r["operator"]) == (width, operator) and "tuned_bits" in r]
    return {r["rate"]: math.inf if r["tuned_bits"] is None else r["tuned_bits"] for r in own}


def propose_rate(bits):
    """The next rate to try, if any."""
    if not bits:
        return RATE
    best = min(bits, key=bits.get)
    return next((rate for rate in (best / 2, best * 2) if rate not in bits), None)


def tune(options):
    torch.set_num_threads(options.threads)
    sequences = FACTORIES[options.task](options.text, options.steps)
    first, count = options.part
    for width, operator in list_tuned(options.task)[first - 1 :: count]:
        while (rate := propose_rate(get_rates(read_store(options.store, options.task), width, operator))) is not None:
            record = {"task": options.task, "width": width, "operator": operator, "seed": TUNING_SEED, "rate": rate}
            try:
                facts, found = train_one(options, sequences, width, operator, TUNING_SEED, rate, ["validation"])
                record |= {**facts, "tuned_bits": found["validation"]["bits"]}
            except TrainingFailure as failure:
                record |= {"tuned_bits": None, "failure": str(failure)}
            add(options.store, record)
            print(json.dumps(record), flush=True)


def choose_rate(records, width, operator):
    """The best one that `tune` has found."""
    bits = get_rates(records, get_tuned_width(width, operator), operator)
    if propose_rate(bits) is not None or min(bits.values()) == math.inf:
        raise SystemExit(f"requires the rate of '{operator}' for width {width} by the command tune, got none")
    return min(bits, key=bits.get)


def train(options):
    torch.set_num_threads(options.threads)
    records = read_store(options.store, options.task)
    known = {(r["width"], r["operator"], r["seed"]) for r in records if "bits" in r}
    sequences = FACTORIES[options.task](options.text, options.steps)
    first, count = options.part
    jobs = [(seed, width, operator) for seed in range(options.seeds) for width, operator in list_points(options.task)]
    own = [job for job in jobs[first - 1 :: count] if (job[1], job[2], job[0]) not in known]
    # A rate that is missing is said before hours of training.
    rates = [choose_rate(records, width, operator) for _, width, operator in own]
    for (seed, width, operator), rate in zip(own, rates, strict=True):
        facts, found = train_one(options, sequences, width, operator, seed, rate, ["validation", "test"])
        record = {
            "task": options.task,
            "width": width,
            "operator": operator,
            "seed": seed,
            "rate": rate,
            **facts,
            "bits": found["validation"]["bits"],
            "test_bits": found["test"]["bits"],
            "test_right": round(found["test"]["right"], 4),
        }
        add(options.store, record)
        print(json.dumps(record), flush=True)


def measure(options):
    torch.set_num_threads(1)
    records = read_store(options.store, options.task)
    known = {(r["width"], r["operator"], r["tokens"]) for r in records if "least_ms" in r}
    kinds = FACTORIES[options.task](options.text, options.steps).kinds
    for tokens in options.tokens:
        timers = {}
        for width, operator in list_points(options.task):
            if (width, operator, tokens) not in known:
                torch.manual_seed(0)
                network, _ = make_network(kinds, width, operator, tokens)
                words = torch.randint(0, kinds, (1, tokens))
                timers[width, operator] = Compiled(network.eval(), words, 1)
        samples = defaultdict(list)
        for _ in range(options.rounds):
            for key, timer in timers.items():
                samples[key].append(timer.time(options.calls) / 1e3)
        for (width, operator), values in samples.items():
            record = {"task": options.task, "width": width, "operator": operator, "tokens": tokens}
            record |= {"least_ms": round(min(values), 4), "median_ms": round(statistics.median(values), 4)}
            add(options.store, record)
            print(json.dumps(record), flush=True)


def collect(records, costs):
    """For each split the points of each operator, and the deviation of a seed: more bits are worse."""
    bits = defaultdict(lambda: defaultdict(list))
    for record in records:
        for split, name in (("validation", "bits"), ("test", "test_bits")):
            if name in record:
                bits[split][record["width"], record["operator"]].append(-record[name])
    curves = {split: defaultdict(list) for split in bits}
    for split, points in bits.items():
        for (width, operator), values in sorted(points.items()):
            if (width, operator) in costs:
                point = Measured(costs[width, operator], statistics.fmean(values), len(values), width)
                curves[split][operator].append(point)
    return curves, {split: pool(points.values()) for split, points in bits.items()}


def name_of(operator):
    known = {key: name for name, key in NAMED.items()}
    if operator == "dense":
        return operator
    return known.get(operator) or f"`{operator}` {Structure.of(find_operator(operator)[1]).pattern}"


def tabulate(records, parameters, costs):
    """A row for each network, with its times."""
    times = [(axis, cost) for cost, axis, _, tokens in costs if tokens]
    print(
        "| operator | width | parameters | " + " | ".join(axis for axis, _ in times) + " | validation | test | seeds |"
    )
    print("|---" * (6 + len(times)) + "|")
    curves, _ = collect(records, parameters)
    for operator, points in curves["test"].items():
        for point, other in zip(points, curves["validation"][operator], strict=True):
            key = point.width, operator
            cells = [name_of(operator), point.width, parameters[key]]
            cells += [f"{cost[key]:.3f}" if key in cost else "" for _, cost in times]
            cells += [f"{-other.mean:.3f}", f"{-point.mean:.3f}", point.seeds]
            print("| " + " | ".join(map(str, cells)) + " |")


def compare_curves(curves, deviations, candidates, baselines):
    """Whether candidates are above the envelope of the baselines, on both splits."""
    for split in ("validation", "test"):
        own, others = (
            {key: curves[split][key] for key in keys if key in curves[split]} for keys in (candidates, baselines)
        )
        for key, verdict in decide(own, others, deviations[split]).items():
            parts = [
                f"{d.point.width}: {d.difference:+.3f} ({d.ratio:+.1f}) to {name_of(d.baseline)}"
                for d in verdict.differences
            ]
            above = "above" if verdict.is_above else "not above"
            print(f"{split}: {name_of(key)} {above} (p = {verdict.probability:.2g}); {'; '.join(parts)}")


def make_panel(curves, deviation, axis, unit):
    """Bits of the test part over a cost; fewer are higher."""
    return figure.Panel(
        title="Bits for each character of the test part, fewer are higher",
        axis=axis,
        curves={name_of(operator).replace("`", ""): points for operator, points in curves.items()},
        thick="dense",
        deviation=deviation,
        write=lambda value: f"{-value:.3f} bits",
        unit=unit,
        tick=lambda value: f"{abs(value):.1f}",
        step=0.1,
    )


def report(options):
    records = read_store(options.store, options.task)
    parameters = {(r["width"], r["operator"]): r["parameters"] for r in records if "parameters" in r}
    costs = [
        (
            {(r["width"], r["operator"]): r["least_ms"] for r in records if r.get("tokens") == tokens},
            f"ms of {tokens} token{'s' if tokens > 1 else ''}, one thread",
            "ms",
            tokens,
        )
        for tokens in options.tokens
    ]
    costs.append(({key: number / 1e3 for key, number in parameters.items()}, "parameters, thousands", "thousand", None))
    for cost, _, _, tokens in costs:
        curves, _ = collect(records, cost)
        if not curves or not curves["test"]:
            raise SystemExit(
                f"requires trainings and times of {tokens} tokens, got none of both of '{options.task}' "
                f"in {options.store}"
            )
    tabulate(records, parameters, costs)
    panels = []
    for cost, axis, unit, _ in costs:
        curves, deviations = collect(records, cost)
        print(f"\n{axis}; a seed's deviation: {deviations['test'].value:.4f} bits\n")
        compare_curves(curves, deviations, FOUND, ("dense", *NAMED.values()))
        compare_curves(curves, deviations, NAMED.values(), ("dense",))
        panels.append(make_panel(curves["test"], deviations["test"], axis, unit))
    if options.plot:
        try:
            options.plot.write_text(figure.draw(panels))
        except OSError as error:
            raise SystemExit(f"requires a file that can be written, got {options.plot}: {error.strerror}") from error


def predict(options):
    """Rank correlations of the operators' mean bits at the largest width that both tasks have operators at."""
    means = {}
    for task in FACTORIES:
        bits = defaultdict(list)
        for record in read_store(options.store, task):
            if "test_bits" in record and record["operator"] != "dense":
                bits[record["width"], record["operator"]].append(record["test_bits"])
        if bits:
            widest = max(width for width, _ in bits)
            means[task] = {key: statistics.fmean(own) for (width, key), own in bits.items() if width == widest}
    if len(means) < 2:
        raise SystemExit(f"requires trainings of two tasks, got {', '.join(means) or 'none'} in {options.store}")
    print("| task | " + " | ".join(means) + " |\n|---|" + "---|" * len(means))
    for task, own in means.items():
        cells = []
        for other in means.values():
            common = sorted(own.keys() & other.keys())
            cells.append(f"{rank_correlation([own[key] for key in common], [other[key] for key in common]):.2f}")
        print(f"| {task} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("tune", "train", "time", "report", "predict"))
    parser.add_argument("store", type=Path)
    parser.add_argument("--task", choices=tuple(FACTORIES), default="characters")
    parser.add_argument("--text", type=Path, default=TEXT, help="a text that gzip has compressed")
    parser.add_argument("--seeds", type=read_positive, default=3)
    parser.add_argument("--steps", type=read_positive, default=STEPS)
    parser.add_argument("--part", type=read_part, default=(1, 1), help="I/N: every N-th training from the I-th on")
    parser.add_argument("--threads", type=read_positive, default=1, help="of a training")
    parser.add_argument("--tokens", type=read_positives, default=[1, 512])
    parser.add_argument("--plot", type=Path, help="where report draws its picture")
    parser.add_argument("--rounds", type=read_positive, default=5)
    parser.add_argument("--calls", type=read_positive, default=20)
    options = parser.parse_args()
    {"tune": tune, "train": train, "time": measure, "report": report, "predict": predict}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
