# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page on an accelerated network: the verdict, all networks in a table and a plot, the layers that were chosen."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._statistics import get_unit

if TYPE_CHECKING:
    from ._contest import Result
    from ._outcome import Accelerated

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% } td, th { padding: .2rem .5rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr { border-bottom: 1px solid #8884 } tr.best { font-weight: 600 }
pre { overflow-x: auto; padding: .6rem; background: #8881 } svg { width: 100%; height: auto }
svg text { fill: currentColor; font-size: 12px }
.verdict { font-size: 1.15rem } .wide { overflow-x: auto }
"""
_COLOURS = {"dense": "#666", "ours": "#0a7", "narrower": "#c60", "swap": "#36c", "pruned": "#a3a"}
WIDTH, HEIGHT, LEFT, BOTTOM = 760, 340, 60, 40


def write_page(outcome: Accelerated, files: Sequence[str]) -> str:
    """The page as HTML that needs nothing else."""
    unit = get_unit(outcome._problem.task)
    best = outcome.best
    parts = [
        f'<p class="verdict">{html.escape(outcome.verdict)}</p>',
        _write_conditions(outcome),
        "<h2>Networks</h2>",
        _write_plot(outcome, unit),
        _write_table(outcome, unit),
        f"<p>Drops are {unit} of {html.escape(outcome._problem.task.metric)} below the model, on test data, on which "
        "nothing was chosen; the best network is chosen on validation data. Intervals are of the examples, and of the "
        "seeds where there are several.</p>",
    ]
    if best is not None and best.layers:
        parts += ["<h2>Layers that were replaced</h2>", _write_layers(outcome, best)]
    if outcome.front:
        parts += ["<h2>The front of the exact choice</h2>", _write_front(outcome)]
    if outcome.command:
        parts += ["<h2>Again</h2>", f"<pre>{html.escape(outcome.command)}</pre>"]
    parts += ["<h2>Files</h2>", "<ul>", *(f"<li>{html.escape(name)}</li>" for name in files), "</ul>"]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>kas accelerate</title><style>{_STYLE}</style></head><body>\n<h1>kas accelerate</h1>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _write_conditions(outcome: Accelerated) -> str:
    problem = outcome._problem
    options = problem.options
    examples, threads = (
        f"{count}{what}{'s' * (count > 1)}"
        for count, what in ((options.batch, " example"), (options.threads, " thread"))
    )
    data = html.escape(problem.data.describe())
    return f"<p>{data}; times are the least of many calls with {examples} on {threads} of this machine.</p>"


def _write_table(outcome: Accelerated, unit: str) -> str:
    dense = outcome.dense
    head = (
        "network",
        outcome._problem.task.metric,
        f"drop, {unit}",
        "95 % interval",
        "ms",
        "times",
        "MB",
        "parameters",
    )
    rows = ["<tr>" + "".join(f"<th>{html.escape(one)}</th>" for one in head) + "</tr>"]
    for one in outcome.results:
        times = dense.ms / one.ms if dense is not None else 1.0
        interval = "" if one is dense else f"{one.drop.low:+.2f} to {one.drop.high:+.2f}"
        cells = (
            one.name + (f" ({one.note})" if one.note else ""),
            f"{one.metric:.4f}",
            f"{one.drop.value:+.2f}",
            interval,
            f"{one.ms:.4g}",
            f"{times:.2f}",
            f"{one.megabytes:.2f}",
            f"{one.parameters:,}",
        )
        mark = ' class="best"' if one is outcome.best else ""
        rows.append(f"<tr{mark}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return '<div class="wide"><table>\n' + "\n".join(rows) + "\n</table></div>"


def _write_layers(outcome: Accelerated, best: Result) -> str:
    operators = outcome.operators
    computes = {form: f"<td><code>{html.escape(one['formula'])}</code></td>" for form, one in operators.items()}
    heads = ["layer", "is now", *(["computes"] if any(form in operators for form in best.layers.values()) else [])]
    rows = ["<tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"]
    for name, form in best.layers.items():
        cells = "".join(f"<td>{html.escape(text)}</td>" for text in (name, form))
        rows.append(f"<tr>{cells}{computes.get(form, '')}</tr>")
    return "<table>" + "\n".join(rows) + "</table>"


def _write_front(outcome: Accelerated) -> str:
    head = ("network", "predicted ms", "measured ms", "predicted loss", "layers")
    rows = ["<tr>" + "".join(f"<th>{one}</th>" for one in head) + "</tr>"]
    for point in outcome.front:
        layers = ", ".join(f"{name}: {form}" for name, form in point.layers.items())
        measured = "" if point.ms is None else f"{point.ms:.4g}"
        cells = (point.name, f"{point.predicted_ms:.4g}", measured, f"{point.predicted_loss:.4g}", layers)
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return '<div class="wide"><table>' + "\n".join(rows) + "</table></div>"


def _write_plot(outcome: Accelerated, unit: str) -> str:
    """Drops over times, with intervals; the axis of time is logarithmic."""
    results = outcome.results
    if len(results) < 2:
        return ""
    low, high = (function(one.ms for one in results) for function in (min, max))
    low, high = low / 1.15, high * 1.15
    drops = [bound for one in results for bound in (max(one.drop.low, -5), min(one.drop.high, one.drop.value + 5))]
    bottom, top = min(*drops, 0.0), max(*drops, 1.0)

    def place(ms: float, drop: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - 20) * math.log(ms / low) / math.log(high / low)
        y = 10 + (HEIGHT - BOTTOM - 10) * (drop - bottom) / max(top - bottom, 1e-9)
        return x, y

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="drops over times">']
    zero = place(low, 0.0)[1]
    parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="#8886"/>')
    parts.append(f'<text x="4" y="{zero + 4:.1f}">0 {unit}</text>')
    parts.append(f'<text x="4" y="{HEIGHT - BOTTOM:.1f}">{top:+.1f}</text>')
    for one in sorted(results, key=lambda one: one.ms):
        x, y = place(one.ms, one.drop.value)
        colour = _COLOURS.get(one.kind, "#666")
        if one is not outcome.dense:
            ends = [place(one.ms, min(max(bound, bottom), top))[1] for bound in (one.drop.low, one.drop.high)]
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}" stroke="{colour}"/>')
        radius = 6 if one is outcome.best else 4
        title = html.escape(f"{one.name}: {one.ms:.4g} ms, {one.drop.value:+.2f} {unit}")
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"><title>{title}</title></circle>')
        parts.append(f'<text x="{x + 7:.1f}" y="{y - 7:.1f}">{html.escape(one.name)}</text>')
    for ms in (min(one.ms for one in results), max(one.ms for one in results)):
        parts.append(f'<text x="{place(ms, 0)[0] - 12:.1f}" y="{HEIGHT - 12}">{ms:.3g} ms</text>')
    return "\n".join([*parts, "</svg>"])
