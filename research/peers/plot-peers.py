#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes tables and a roofline of what peers.py and networks.py have measured.

usage: plot-peers.py --tables=research/reports/cpu-avx512.md FILE...  replaces what is between the marks there
       plot-peers.py --roofline FILE... > roofline.svg       each operator of kas under the roofs of the machine

The files are outputs of peers.py, of one instruction set for a page, and of networks.py, whose records have a table for
each instruction set; `-` is the standard input.
"""

import json
import math
import re
import statistics
import sys

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 44, 52
COLORS = {
    "dense": "#1d4ed8",
    "wide": "#047857",
    "thin": "#b45309",
    "depthwise": "#9333ea",
    "new": "#dc2626",
    "searched": "#6b7280",
}
COLUMNS = [
    ("eager", "pytorch-eager"),
    ("compiled", "pytorch-compiled"),
    ("ONNX Runtime", "onnxruntime"),
    ("OpenVINO", "openvino"),
    ("IREE", "iree"),
]


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


class Case:
    """What was measured of one operator or network with one number of threads."""

    def __init__(self, name, threads):
        self.name, self.threads = name, threads
        self.times, self.metrics, self.machine = {}, {}, {}
        self.unlimited = set()  # implementations that use more than the instruction set of the run
        self.flops = self.bytes = 0
        self.group = self.subgroup = ""

    def add(self, entry):
        if entry["metric"] == "time_ms":
            if entry["ok"]:
                self.times[entry["impl"]] = entry["value"]
            if not entry.get("limited", True):
                self.unlimited.add(entry["impl"])
            self.group, self.subgroup, self.flops, self.bytes = (
                entry["class"],
                entry["subclass"],
                entry["flops"],
                entry["bytes"],
            )
        elif entry["impl"] == "machine":
            self.machine[entry["metric"]] = entry["value"]
        elif entry["impl"] == "kas":
            self.metrics[entry["metric"]] = entry["value"]

    def best(self, prefix, by_hand=False):
        """The best time of an implementation's variants."""
        return min(
            (
                time
                for impl, time in self.times.items()
                if impl.startswith(prefix) and impl.endswith("/by-hand") == by_hand
            ),
            default=None,
        )

    def peers(self, by_hand=False):
        return min(
            (
                time
                for impl, time in self.times.items()
                if impl != "kas" and impl not in self.unlimited and impl.endswith("/by-hand") == by_hand
            ),
            default=None,
        )

    def share(self, time):
        return self.flops / time * 1e-6 / (self.machine["peak_gflops"] * self.threads)


def read(files):
    """Cases by name and threads, in order, what the runs say about themselves, and the records of networks.py."""
    cases, runs, records = {}, [], []
    for name in files:
        try:
            with sys.stdin if name == "-" else open(name) as stream:
                for line in stream:
                    entry = json.loads(line)
                    if "network" in entry:
                        records.append(entry)
                    elif "networks" in entry:  # the summary of a run of networks.py
                        continue
                    elif entry["case"] == "run":
                        runs.append(entry)
                    elif not entry["case"].startswith("geomean/"):
                        key = entry["case"], entry.get("threads", 1)
                        cases.setdefault(key, Case(*key)).add(entry)
        except (OSError, ValueError, LookupError, TypeError) as error:
            sys.exit(f"plot-peers.py: {name}: expected lines of peers.py, got {error!r}")
    cases = {key: case for key, case in cases.items() if "kas" in case.times}
    if not cases and not records:
        sys.exit("plot-peers.py: expected lines of peers.py, got none of kas")
    return cases, runs, records


def percent(case, time):
    return "-" if time is None else f"{100 * case.share(time):.0f}"


def ratio(value):
    return "-" if value is None else f"{value:.2f}"


def operators(cases):
    """Share of the peak of everyone, by operator."""
    lines = [
        "| operator | MFLOP | kas, ms | kas | "
        + " | ".join(title for title, _ in COLUMNS)
        + " | to the best | by hand |",
        "|---|---|---|---|" + "---|" * (len(COLUMNS) + 2),
    ]
    for case in cases.values():
        if case.group not in ("dense", "grouped", "new"):
            continue
        ours, best, by_hand = case.times["kas"], case.peers(), case.peers(by_hand=True)
        row = [f"`{case.name}`", f"{case.flops / 1e6:.1f}", f"{ours:.3f}", f"**{percent(case, ours)}**"]
        for _, prefix in COLUMNS:
            limited = not any(impl.startswith(prefix) for impl in case.unlimited)
            row.append(percent(case, case.best(prefix)) if limited else f"({percent(case, case.best(prefix))})")
        row += [ratio(best and best / ours), ratio(by_hand and by_hand / ours)]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def classes(cases):
    """Geometric means by class."""
    lines = [
        "| class | operators | kas, % of the peak | to the best peer | least | to the best by hand |",
        "|---|---|---|---|---|---|",
    ]
    titles = {
        "dense": "dense",
        "wide": "2 and 4 groups, dilated, shifts",
        "thin": "8 to 32 groups",
        "depthwise": "depthwise",
        "sequence": "NAS-PTE sequences",
        "op1": "Operator 1",
        "op2": "Operator 2",
        "searched": "found by the search",
    }
    for subgroup, title in titles.items():
        chosen = [case for case in cases.values() if case.subgroup == subgroup]
        if not chosen:
            continue
        ratios = [case.peers() / case.times["kas"] for case in chosen if case.peers()]
        by_hand = [case.peers(True) / case.times["kas"] for case in chosen if case.peers(True)]
        row = [
            title,
            str(len(chosen)),
            f"{100 * geomean([case.share(case.times['kas']) for case in chosen]):.0f}",
            ratio(geomean(ratios) if ratios else None),
            ratio(min(ratios) if ratios else None),
            ratio(geomean(by_hand) if by_hand else None),
        ]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def is_memory_bound(case):
    """Below the ridge: even at full speed the arithmetic takes less time than a copy of the tensors."""
    copy = case.bytes / case.machine["copy_bandwidth"] * 1e-6
    return case.flops / (case.machine["peak_gflops"] * case.threads) * 1e-6 < copy


def searched(cases):
    """What is there to say about the operators of the search."""
    chosen = [case for case in cases.values() if case.group == "searched"]
    lines = ["| found operators | number | share | to the best peer |", "|---|---|---|---|"]
    for title, bound in (
        ("bound by arithmetic: % of the peak", False),
        ("bound by memory: % of the copy bandwidth", True),
    ):
        part = [case for case in chosen if is_memory_bound(case) == bound]
        if part:
            shares = [
                case.metrics["share_of_copy_bandwidth"] if bound else case.share(case.times["kas"]) for case in part
            ]
            ratios = [case.peers() / case.times["kas"] for case in part if case.peers()]
            lines.append(
                f"| {title} | {len(part)} | {100 * geomean(shares):.0f} | "
                f"{ratio(geomean(ratios) if ratios else None)} |"
            )
    return lines


def networks(cases):
    """Milliseconds of whole networks."""
    lines = [
        "| network | threads | GFLOP | kas, ms | "
        + " | ".join(title for title, _ in COLUMNS)
        + " | to the best | speed-up / FLOP ratio |",
        "|---|---|---|---|" + "---|" * (len(COLUMNS) + 2),
    ]
    for case in cases.values():
        if case.group != "network":
            continue

        def fastest(prefix, case=case):
            times = [time for time in (case.best(prefix), case.best(prefix, True)) if time]
            return f"{min(times):.1f}" if times else "-"

        others = [time for impl, time in case.times.items() if impl != "kas"]
        row = [
            f"`{case.name}`",
            str(case.threads),
            f"{case.flops / 1e9:.2f}",
            f"**{case.times['kas']:.1f}**",
            *(fastest(prefix) for _, prefix in COLUMNS),
            ratio(min(others) / case.times["kas"] if others else None),
            ratio(case.metrics.get("speedup_over_flop_ratio")),
        ]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def format_ms(time):
    return "-" if time is None else f"{time:.1f}" if time >= 10 else f"{time:.2f}"


def whole_networks(records, isa):
    """Least milliseconds of networks.py's networks for one sample, with one thread and with two."""
    peers = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "pytorch": "PyTorch compiled"}
    records = [entry for entry in records if entry["isa"] == isa and entry.get("batch", 1) == 1]
    records = {(entry["network"], entry["threads"]): entry for entry in records}
    columns = ["kas", *peers.values(), "to the best"]
    lines = [
        "| network | " + " | ".join(columns) + " | " + " | ".join(f"{name}, 2 threads" for name in columns) + " |",
        "|---|" + "---|" * (2 * len(columns)),
    ]
    ratios = {1: [], 2: []}
    for name in dict.fromkeys(name for name, _ in records):
        row = [f"`{name}`"]
        for threads, found in ratios.items():
            entry = records.get((name, threads), {})
            times, aside = entry.get("least_ms", {}), entry.get("not_limited", [])
            row.append(f"**{format_ms(times.get('kas'))}**")
            row += [
                f"({format_ms(times.get(peer))})" if peer in aside else format_ms(times.get(peer)) for peer in peers
            ]
            row.append(ratio(entry.get("to_best_peer")))
            found += [entry["to_best_peer"]] if "to_best_peer" in entry else []
        lines.append("| " + " | ".join(row) + " |")
    for title, combine in (("geometric mean", geomean), ("least", min)):
        cells = [[""] * (len(columns) - 1) + [ratio(combine(found)) if found else "-"] for found in ratios.values()]
        lines.append(f"| {title} | " + " | ".join(cells[0] + cells[1]) + " |")
    return lines


def machine(cases, runs):
    """What it was measured on."""
    versions = {name: version for run in runs for name, version in run["versions"].items()}
    peak = statistics.median(case.machine["peak_gflops"] for case in cases.values() if "peak_gflops" in case.machine)
    names = ", ".join(f"{name} {version}" for name, version in versions.items())
    dates = sorted({run["date"] for run in runs})
    return [f"Measured on {' and '.join(dates)}: {runs[0]['machine']}; {peak:.1f} GFLOP/s of f32 on one core. {names}."]


def write_tables(page, cases, runs, records):
    parts = {
        "machine": machine(cases, runs) if cases else [],
        "classes": classes(cases),
        "operators": operators(cases),
        "searched": searched(cases),
        "networks": networks(cases),
    }
    for isa in sorted({entry["isa"] for entry in records}):
        parts[f"whole networks, {isa}"] = whole_networks(records, isa)
    try:
        with open(page) as stream:
            text = stream.read()
    except (OSError, ValueError) as error:
        sys.exit(f"plot-peers.py: {page}: expected a page with marks, got {error!r}")
    for name, lines in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        if begin in text and len(lines) not in (0, 2):  # a table without rows says nothing new
            head, rest = text.split(begin, 1)
            text = head + begin + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1]
    with open(page, "w") as stream:
        stream.write(text)


def roofline(cases):
    """Arithmetic intensity and speed, both logarithmic."""
    chosen = [
        case for case in cases.values() if case.group in ("dense", "grouped", "new", "searched") and case.threads == 1
    ]
    if not chosen:
        sys.exit("plot-peers.py: expected operators on one thread, got none")
    peak = statistics.median(case.machine["peak_gflops"] for case in chosen)
    bandwidth = statistics.median(case.machine["copy_bandwidth"] for case in chosen)
    points = [(case, case.flops / case.bytes, case.flops / case.times["kas"] * 1e-6) for case in chosen]
    low_x, high_x = min(0.25, *(x for _, x, _ in points)) / 1.3, max(x for _, x, _ in points) * 1.5
    low_y, high_y = min(y for _, _, y in points) / 1.5, peak * 1.6

    def px(value):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / low_x) / math.log(high_x / low_x)

    def py(value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(value / low_y) / math.log(high_y / low_y)

    def text(x, y, content, anchor="middle", color="#374151", extra=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}"{extra}>{content}</text>'

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(LEFT, 22, "Operators compiled by kas under the roofs of one core", "start", "#111827", ' font-size="14"'),
    ]
    for power in range(-3, 6):
        value = 10.0**power
        if low_x < value < high_x:
            out += [
                f'<line x1="{px(value):.1f}" x2="{px(value):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#f3f4f6"/>',
                text(px(value), HEIGHT - BOTTOM + 18, f"{value:g}"),
            ]
        if low_y < value < high_y:
            out += [
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py(value):.1f}" y2="{py(value):.1f}" stroke="#e5e7eb"/>',
                text(LEFT - 8, py(value) + 4, f"{value:g}", "end"),
            ]
    ridge = peak / bandwidth
    start = max(low_x, low_y / bandwidth)
    out.append(
        f'<polyline points="{px(start):.1f},{py(start * bandwidth):.1f} {px(ridge):.1f},{py(peak):.1f} '
        f'{px(high_x):.1f},{py(peak):.1f}" fill="none" stroke="#111827" stroke-width="1.5"/>'
    )
    out.append(text(WIDTH - RIGHT - 4, py(peak) - 6, f"{peak:.0f} GFLOP/s", "end", "#111827"))
    out.append(text(px(ridge) + 4, py(peak) - 6, f"copy: {bandwidth:.0f} GB/s", "end", "#111827"))
    for case, x, y in points:
        color = COLORS.get(case.subgroup, COLORS.get(case.group, "#111827"))
        size = 2.2 if case.group == "searched" else 4
        out.append(
            f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="{size}" fill="{color}" opacity="0.75"><title>{case.name}: '
            f"{y:.1f} GFLOP/s</title></circle>"
        )
    present = [name for name in COLORS if any(name in (case.subgroup, case.group) for case in chosen)]
    for place, name in enumerate(present):
        y = HEIGHT - BOTTOM - 14 - 18 * (len(present) - 1 - place)
        out += [
            f'<circle cx="{WIDTH - RIGHT - 96}" cy="{y - 4}" r="4" fill="{COLORS[name]}"/>',
            text(WIDTH - RIGHT - 86, y, name, "start", COLORS[name]),
        ]
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "FLOP per byte of all tensors once (logarithmic)"))
    out.append(
        text(
            16,
            (TOP + HEIGHT - BOTTOM) / 2,
            "GFLOP/s",
            "middle",
            "#374151",
            f' transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2:.0f})"',
        )
    )
    out.append("</svg>")
    print("\n".join(out))


def main():
    if len(sys.argv) < 3 or not re.match(r"--(tables=.+|roofline$)", sys.argv[1]):
        sys.exit(__doc__)
    cases, runs, records = read(sys.argv[2:])
    if sys.argv[1] == "--roofline":
        roofline(cases)
    else:
        write_tables(sys.argv[1].removeprefix("--tables="), cases, runs, records)


if __name__ == "__main__":
    main()
