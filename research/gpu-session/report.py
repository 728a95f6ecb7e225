# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of what a GPU session found."""

import math
from collections import defaultdict

from peers import PEERS

LIBRARY_HEADER = ["with libraries", "ratio", "launches"]
"""Of kas where it leaves to cuBLASLt and cuDNN what these are expected to be faster at, in the unit of the table."""


def write_table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def get_best_peer(results: dict, name: str) -> float | None:
    """Milliseconds of the fastest of PyTorch's forms."""
    found = results.get(f"peers/{name}", {}) | results.get(f"compiled/{name}", {})
    times = [found[peer] for peer in PEERS if peer in found]
    return min(times) if times else None


def get_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def write_machine(results: dict) -> str:
    machine = results.get("machine", {})
    rows = [["device", f"{machine.get('device', '?')}, {machine.get('architecture', '?')}"]]
    if "torch" in machine:
        rows.append(["PyTorch", machine["torch"]])
        rows.append(["copy of 1 GiB, both ways counted", f"{machine['copy_gb_per_s']:.0f} GB/s"])
        for precision in ("f32", "tf32", "f16", "bf16"):
            rate = machine[f"peak_{precision}_tflops"]
            rows.append([f"cuBLAS, product of 8192^3, {precision}", f"{rate:.0f} TFLOP/s"])
    return write_table(["machine", ""], rows)


def write_values(results: dict) -> str:
    counts: dict = defaultdict(lambda: [0, 0])
    wrong = []
    for unit, result in results.items():
        if unit.startswith("values/"):
            _, name, precision, strategy = unit.split("/")
            kind = "named" if name.startswith("kas.") else name.rstrip("0123456789")
            count = counts[(kind, precision, strategy)]
            count[0] += 1
            count[1] += result["ok"]
            if not result["ok"]:
                wrong.append(unit)
    rows = [[*key, str(count[0]), str(count[1])] for key, count in sorted(counts.items())]
    text = write_table(["operators", "precision", "strategy", "compared", "right"], rows)
    return text + "".join(f"\nWrong: `{unit}`\n" for unit in wrong)


def get_library_cells(results: dict, name: str, best: float | None, factor: float, digits: int) -> list[str]:
    """Time with libraries (its ratio to PyTorch's), and how many launches were theirs."""
    found = results.get(f"libraries/{name}")
    if not found:
        return ["", "", ""]
    counts = [f"{text.partition(':')[0]}: {count}" for text, count in found["libraries"].items()]
    right = "" if found["ok"] else " (wrong)"
    ratio = f"{best / found['ms']:.2f}" if best else ""
    return [f"{factor * found['ms']:.{digits}f}{right}", ratio, ", ".join(counts)]


def write_networks(results: dict) -> str:
    rows = []
    for unit, result in results.items():
        if unit.startswith("network/"):
            name = unit.split("/", 1)[1]
            best = get_best_peer(results, name)
            peer = [f"{best:.3f}", f"{best / result['ms']:.2f}"] if best else ["", ""]
            libraries = get_library_cells(results, name, best, 1, 3)
            right = "yes" if result["ok"] else "no"
            rows.append([name, f"{result['error']:.1e}", right, f"{result['ms']:.3f}", *peer, *libraries])
    header = ["network", "error", "right", "kas, ms", "PyTorch, ms", "ratio", *LIBRARY_HEADER]
    return write_table(header, rows)


def get_schedules(results: dict, name: str) -> list[dict]:
    return [result for unit, result in results.items() if unit.startswith(f"schedule/{name}/")]


def write_times(results: dict) -> str:
    rows: list = []
    ratios, with_libraries, regrets = defaultdict(list), defaultdict(list), defaultdict(list)
    for unit, result in results.items():
        if not unit.startswith("time/"):
            continue
        name = unit.split("/", 1)[1]
        precision = name.rsplit("/", 1)[1]
        strategy = result.get("schedule", "").partition("strategy = ")[2].split(",")[0]
        best = get_best_peer(results, name)
        others = [entry["ms"] for entry in get_schedules(results, name) if entry["ok"]]
        least = min([result["ms"], *others])
        regrets[precision].append(result["ms"] / least)
        if best:
            ratios[precision].append(best / result["ms"])
        cells = [f"{1e3 * best:.1f}", f"{best / result['ms']:.2f}"] if best else ["", ""]
        right = "yes" if result["ok"] else "no"
        libraries = get_library_cells(results, name, best, 1e3, 1)
        if best:
            # With libraries where the cost model leaves it to one.
            chosen = results.get(f"libraries/{name}", result)
            with_libraries[precision].append(best / chosen["ms"])
        row = [f"`{name}`", strategy, right, f"{1e3 * result['ms']:.1f}", *cells, f"{1e3 * least:.1f}", *libraries]
        rows.append(row)
    header = ["case", "strategy", "right", "kas, us", "PyTorch, us", "ratio", "best schedule of those packed, us",
              *LIBRARY_HEADER]  # fmt: skip
    means = [
        [precision, *(f"{get_mean(kind[precision]):.2f}" if kind[precision] else "" for kind in
                      (ratios, with_libraries, regrets))]
        for precision in regrets
    ]  # fmt: skip
    columns = ["precision", "PyTorch's time over ours", "with libraries", "the cost model's choice over the best"]
    summary = write_table(columns, means)
    return summary + "\n" + write_table(header, rows)


def write_failures(lines: list[dict]) -> str:
    failed = [line for line in lines if line["status"] in ("error", "lost")]
    return "".join(f"- `{line['unit']}`: {line['status']}, {line.get('text', '')}\n" for line in failed) or "None.\n"


def write(lines: list[dict]) -> str:
    """The page, in Markdown."""
    results = {line["unit"]: line for line in lines if line["status"] == "done"}
    parts = {
        "Values": write_values(results), "Networks": write_networks(results), "Times": write_times(results),
        "Failures": write_failures(lines),
    }  # fmt: skip
    return write_machine(results) + "".join(f"\n## {title}\n{text}" for title, text in parts.items())
