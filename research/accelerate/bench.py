#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmark of `kas accelerate`: milliseconds at the accuracy of a trained network, beside what others would do.

    bench.py --size=short --minutes=5 --workers=1 --seeds=3 -o FOLDER --page=page.md --plot=plot.svg

Four networks are trained. Each method has the same time of the processor to make faster ones of each: `kas accelerate`,
fewer channels, depthwise-separable layers, torch-pruning, all with distillation, and int8 of the network itself. Then
all networks of a trained one are timed. A method counts by the milliseconds at 0.5 points less than the network, or
1.05 times its error. FOLDER keeps what was done: the same command goes on, and repeats what was interrupted, one method
for one network. Times are kept apart, so that they can be measured where nothing else runs: first with --make-only,
then --times=FILE.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import shutil
import statistics
import sys
import time

import torch
from contenders import METHODS, Case, measure
from tasks import TASKS, Sizes, train

from kas_research.protocol import figure
from kas_research.protocol.statistics import Deviation, Measured

STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""By seeds, what has 95 % of Student's t within it."""
OURS, INT8 = "kas accelerate", "int8 of dense"


# ---- Rows


def read_rows(path):
    """The rows of a file by task, method and seed, times by task and seed; a line that was cut off is none."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
            is_time = "found" in row and "method" not in row
            key = (row["task"], row["seed"]) if is_time else (row["task"], row["method"], row["seed"])
            found[key] = row
        except (ValueError, KeyError, TypeError):
            continue
    return found


def join(made, times):
    """A row for each method that has been timed, with what was `found`."""
    rows = {}
    for (name, seed), row in times.items():
        for method, found in row["found"].items():
            if own := made.get((name, method, seed)):
                rows[name, method, seed] = {**own, "found": found}
    return rows


def add_row(path, row):
    """Adds a line; what a kill left of one before it ends there."""
    with open(path, "a+b") as file:
        if file.tell() and not _ends_a_line(file):
            file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _ends_a_line(file):
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def get_model(name, size, seed, folder):
    """The trained network and its data; trained once."""
    task, path = TASKS[name], folder / f"{name}-{seed}.pt"
    if not path.exists():
        network, data = train(task, size, seed)
        save(network.state_dict(), path)
    data = task.load(size.train)
    network = task.make(size.width, data)
    network.load_state_dict(torch.load(path, weights_only=True))
    return network.eval(), data


def save(value, path):
    """All of it or nothing."""
    torch.save(value, f"{path}.new")
    os.replace(f"{path}.new", path)


def open_case(name, seed, options):
    """A trained network as a case; it is trained here where it was not before."""
    torch.set_num_threads(1)
    model, data = get_model(name, getattr(TASKS[name].sizes, options.size), seed, pathlib.Path(options.output))
    return Case(model, data, TASKS[name].limit, options.minutes, seed, options.workers)


def make(case, name, method, seed, folder):
    """The networks of a method, into a file; what is known of them."""
    stem = folder / f"{name}-{seed}-{method.replace(' ', '-')}"
    # What was interrupted begins again: its time does, too.
    shutil.rmtree(stem, ignore_errors=True)
    start = time.process_time()
    networks = METHODS[method](case, str(stem))
    shutil.rmtree(stem, ignore_errors=True)
    save(networks, f"{stem}.networks")
    return {"networks": f"{stem.name}.networks", "cpu_minutes": round((time.process_time() - start) / 60, 2)}


def run(options):
    """Whatever is missing: networks, then their times."""
    folder = pathlib.Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"minutes": options.minutes, "workers": options.workers, "size": options.size}
    made, times = read_rows(folder / "rows.jsonl"), read_rows(folder / options.times)
    if other := [row for row in [*made.values(), *times.values()] if row["settings"] != settings]:
        raise ValueError(f"requires a folder with {other[0]['settings']}, got {settings}")
    for seed, name in itertools.product(range(options.seeds), options.tasks):
        missing = [method for method in options.methods if (name, method, seed) not in made]
        untimed = [
            method for method in options.methods if method not in times.get((name, seed), {"found": ()})["found"]
        ]
        if not missing and (options.make_only or not untimed):
            continue
        case, head = open_case(name, seed, options), {"task": name, "seed": seed, "settings": settings}
        for method in missing:
            print(f"{name}, seed {seed}: {method}", file=sys.stderr, flush=True)
            row = {**head, "method": method, "limit": TASKS[name].limit, **make(case, name, method, seed, folder)}
            add_row(folder / "rows.jsonl", row)
            made[name, method, seed] = row
        if not options.make_only:
            print(f"{name}, seed {seed}: times", file=sys.stderr, flush=True)
            # Modules of kas: files that this program wrote.
            networks = {
                method: torch.load(folder / made[name, method, seed]["networks"], weights_only=False)
                for method in METHODS
                if (name, method, seed) in made
            }
            add_row(folder / options.times, {**head, "found": measure(case, networks)})
    return read(options)


def read(options):
    """What has been timed."""
    folder = pathlib.Path(options.output)
    return join(read_rows(folder / "rows.jsonl"), read_rows(folder / options.times))


# ---- What they say


def find_times(points, dense_ms, limit):
    """How many times as fast as the network a method is at a drop of `limit`: 1 where nothing is faster.

    Between the fastest network that holds the limit, the model itself among them, and faster ones that do not, times
    are interpolated by ratio.
    """
    points = [(0.0, dense_ms), *((one["drop"], one["ms"]) for one in points)]
    drop, ms = min((one for one in points if one[0] <= limit), key=lambda one: one[1])
    best = ms
    for other_drop, other_ms in points:
        if other_drop > limit and other_ms < ms:
            share = (limit - drop) / (other_drop - drop)
            best = min(best, ms * (other_ms / ms) ** share)
    return dense_ms / best


def summarize(rows, seeds):
    """By task, precision and method: times of each seed; methods that made no network are left out, but ours.

    In int8 the network itself in int8 is one of each method.
    """
    found = {}
    for (task, method, seed), row in sorted(rows.items()):
        for precision, part in row["found"].items():
            points = part["points"]
            if not points and method != OURS:
                continue
            if precision == "int8" and (plain := rows.get((task, INT8, seed))):
                points = points + plain["found"]["int8"]["points"]
            own = found.setdefault((task, precision), {}).setdefault(method, {})
            own[seed] = find_times(points, part["dense_ms"], row["limit"])

    def is_whole(own):
        return len(own) == seeds

    return {key: {name: own for name, own in methods.items() if is_whole(own)} for key, methods in found.items()}


def get_mean(values):
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def get_interval(values):
    """The 95 % interval of the geometric mean by Student's t over seeds; both ends are the mean of one seed."""
    logs = [math.log(one) for one in values]
    if len(logs) < 2:
        return get_mean(values), get_mean(values)
    half = STUDENT[min(len(logs), 10)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(statistics.fmean(logs) - half), math.exp(statistics.fmean(logs) + half)


def make_page(rows, seeds):
    """Tables of markdown."""
    lines = []
    for (task, precision), methods in sorted(summarize(rows, seeds).items()):
        lines += [f"### {task}, {precision}", "", "| method | times as fast | 95 % |", "|---|---|---|"]
        for method, own in sorted(methods.items(), key=lambda pair: -get_mean(pair[1].values())):
            low, high = get_interval(own.values())
            lines.append(f"| {method} | {get_mean(own.values()):.2f} | {low:.2f} to {high:.2f} |")
        if (ours := methods.get(OURS)) and len(methods) > 1:
            # Of each seed the best of the others, whichever it is.
            best = {seed: max(own[seed] for method, own in methods.items() if method != OURS) for seed in ours}
            ratios = [ours[seed] / best[seed] for seed in ours]
            low, high = get_interval(ratios)
            lines += ["", f"{OURS} over the best of the others: {get_mean(ratios):.2f} ({low:.2f} to {high:.2f})"]
        lines.append("")
    return "\n".join(lines)


def make_plot(rows):
    """Drops over milliseconds, a panel for each task and precision, all seeds."""
    panels = []
    for task, precision in sorted({(row["task"], p) for row in rows.values() for p in row["found"]}):
        curves = {}
        for row in rows.values():
            if row["task"] == task and precision in row["found"]:
                for one in row["found"][precision]["points"]:
                    curves.setdefault(row["method"], []).append(Measured(one["ms"], -one["drop"], 1))
        unit = "points" if task != "darcy-32" else "%"
        panels.append(
            figure.Panel(
                f"{task}, {precision}: less than the network, {unit}",
                "milliseconds",
                curves,
                OURS,
                Deviation(math.nan, 0),
                lambda value, unit=unit: f"{value:.2f} {unit}",
                "ms",
                step=max(1.0, round(max(abs(p.mean) for own in curves.values() for p in own) / 8)) if curves else 1.0,
            )
        )
    return figure.draw(panels)


def main(arguments=None):
    """The command; its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("-o", "--output", required=True, help="the folder")
    add("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS), metavar="TASK", help=", ".join(TASKS))
    add("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD", help=", ".join(METHODS))
    add("--minutes", type=float, default=60.0, help="of each worker's processor for each method (default: %(default)s)")
    add("--workers", type=int, default=2, help="trainings at once (default: %(default)s)")
    add("--seeds", type=int, default=5, help="networks of each task (default: %(default)s)")
    add("--size", choices=Sizes._fields, default="whole", help="of networks and data (default: %(default)s)")
    add("--make-only", action="store_true", help="time nothing")
    add("--times", default="times.jsonl", metavar="FILE", help="of the folder, for times (default: %(default)s)")
    add("--report-only", action="store_true", help="run nothing")
    add("--page", help="the file for the tables")
    add("--plot", help="the SVG file for the plot")
    options = parser.parse_args(arguments)
    try:
        rows = read(options) if options.report_only else run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: the same command goes on", file=sys.stderr)
        return 130
    if not rows:
        # Nothing has been timed.
        return 0
    page = make_page(rows, options.seeds)
    print(page)
    for path, text in ((options.page, page), (options.plot, options.plot and make_plot(rows))):
        if path:
            pathlib.Path(path).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
