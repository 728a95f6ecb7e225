# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables and plots of a study."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence

from ._spec import SCHEDULES, Configuration
from ._store import Outcome

THESIS = {
    ("untuned", "weight-pruning"): "11.5 / 21.8",
    ("untuned", "channel-pruning"): "77.9 / 83.9",
    ("untuned", "int8"): "33.6 / 157.2",
    ("untuned", "f16"): "slower than f32",
    ("tuned", "weight-pruning"): "9.5 / 6.9",
    ("tuned", "channel-pruning"): "39.8 / 26.6",
    ("tuned", "int8"): "twice as slow (i7)",
    ("tuned", "f16"): "slower than f32",
}
"""Percent of the expected speed-up for CIFAR-10 on the CPUs of a HiKey board and an i7-8700: Gibson, "Across-stack
optimization of deep learning inference", chapter 4 and appendix A."""

COLORS = {
    "weight-pruning": "#b45309",
    "channel-pruning": "#047857",
    "f16": "#9333ea",
    "bf16": "#1d4ed8",
    "int8": "#be123c",
}


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def _fastest(outcomes: Iterable[Outcome]) -> Outcome | None:
    timed = [outcome for outcome in outcomes if outcome.ms is not None]
    return min(timed, key=lambda outcome: outcome.ms or 0.0) if timed else None


def get_best(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Of configurations that differ by the algorithm alone, the fastest; in the order of the study."""
    groups: dict[Configuration, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.configuration._replace(algorithm=""), []).append(outcome)
    return [best for group in groups.values() if (best := _fastest(group)) is not None]


def _label(outcome: Outcome) -> str:
    configuration = outcome.configuration
    return configuration.compression + (f" {100 * configuration.ratio:g} %" if configuration.ratio else "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _schedules(outcomes: Sequence[Outcome]) -> list[str]:
    found = {outcome.configuration.schedule for outcome in outcomes}
    return [schedule for schedule in SCHEDULES if schedule in found]


def _summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Percent of the expected speed-up, over all models."""
    groups: dict[tuple[str, str, str, str], list[Outcome]] = {}
    for best in get_best(outcomes):
        if best.share is not None:
            c = best.configuration
            groups.setdefault((c.target, c.schedule, _label(best), c.compression), []).append(best)
    rows = []
    for (target, schedule, label, compression), group in groups.items():
        shares = [100 * (outcome.share or 0.0) for outcome in group]
        algorithms = sorted({outcome.configuration.algorithm for outcome in group})
        rows.append(
            (
                target,
                schedule,
                label,
                str(len(group)),
                f"{geometric_mean(outcome.expected or 1 for outcome in group):.2f}",
                f"{geometric_mean(outcome.achieved or 1 for outcome in group):.2f}",
                f"**{geometric_mean(shares):.0f}**",
                f"{min(shares):.0f} to {max(shares):.0f}",
                ", ".join(algorithms),
                THESIS.get((schedule, compression), ""),
            )
        )
    head = (
        "target",
        "schedule",
        "compression",
        "models",
        "expected",
        "achieved",
        "% of expected",
        "least to most",
        "algorithms",
        "thesis, %",
    )
    yield from _table(head, rows)


def _dense(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Milliseconds of the dense networks."""
    dense = [outcome for outcome in outcomes if outcome.configuration.compression == "dense"]
    kinds = list(dict.fromkeys((o.configuration.schedule, o.configuration.algorithm) for o in dense))
    rows = []
    for target, model in dict.fromkeys((o.configuration.target, o.configuration.model) for o in dense):
        own = {
            (o.configuration.schedule, o.configuration.algorithm): o
            for o in dense
            if (o.configuration.target, o.configuration.model) == (target, model)
        }
        best = {schedule: _fastest(o for (s, _), o in own.items() if s == schedule) for schedule, _ in kinds}
        rows.append(
            (
                target,
                model,
                *(
                    ("**%s**" if own[kind] is best[kind[0]] else "%s") % _ms(own[kind].ms)
                    if kind in own and own[kind].ms is not None
                    else ""
                    for kind in kinds
                ),
            )
        )
    yield from _table(("target", "model", *(f"{schedule}, {algorithm}" for schedule, algorithm in kinds)), rows)


def _models(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The fastest algorithm of each compression, model by model."""
    rows = []
    for best in get_best(outcomes):
        c = best.configuration
        if c.compression == "dense":
            continue
        rows.append(
            (
                c.target,
                c.model,
                c.schedule,
                _label(best),
                c.algorithm,
                _ms(best.ms),
                _ms(best.baseline_ms),
                "" if best.expected is None else f"{best.expected:.2f}",
                "" if best.achieved is None else f"{best.achieved:.2f}",
                "" if best.share is None else f"{100 * best.share:.0f}",
            )
        )
    head = (
        "target",
        "model",
        "schedule",
        "compression",
        "fastest algorithm",
        "ms",
        "dense, ms",
        "expected",
        "achieved",
        "% of expected",
    )
    yield from _table(head, rows)


def _all(outcomes: Sequence[Outcome]) -> Iterator[str]:
    rows = []
    for outcome in outcomes:
        c = outcome.configuration
        rows.append(
            (
                c.target,
                c.model,
                _label(outcome),
                c.algorithm,
                c.schedule,
                outcome.failure.splitlines()[0][:80].replace("|", "\\|") if outcome.failure else _ms(outcome.ms),
                _ms(outcome.baseline_ms),
                "" if outcome.achieved is None else f"{outcome.achieved:.2f}",
                "" if outcome.share is None else f"{100 * outcome.share:.0f}",
                "" if outcome.error is None else f"{outcome.error:.0e}",
            )
        )
    yield from _table(
        (
            "target",
            "model",
            "compression",
            "algorithm",
            "schedule",
            "ms",
            "dense, ms",
            "achieved",
            "% of expected",
            "error",
        ),
        rows,
    )


SECTIONS = {"summary": _summary, "dense": _dense, "models": _models, "all": _all}
"""The tables by name, as marks in a page call them."""


def write_tables(outcomes: Sequence[Outcome]) -> str:
    """All tables in Markdown."""
    titles = {
        "summary": "Achieved over expected speed-up",
        "dense": "Dense networks, milliseconds",
        "models": "The fastest algorithm of each model and compression",
        "all": "All configurations",
    }
    return "\n".join(
        f"## {titles[name]}\n\n" + "\n".join(section(outcomes)) + "\n" for name, section in SECTIONS.items()
    )


def update_page(page: str, outcomes: Sequence[Outcome]) -> str:
    """The page with its tables again: what is between `<!-- study: NAME -->` and `<!-- end of study -->`."""
    for name, section in SECTIONS.items():
        mark, end = f"<!-- study: {name} -->", "<!-- end of study -->"
        if mark in page:
            before, after = page.split(mark, 1)
            page = before + mark + "\n" + "\n".join(section(outcomes)) + "\n" + end + after.split(end, 1)[1]
    return page


def write_plot(outcomes: Sequence[Outcome]) -> str:
    """An SVG: percent of the expected speed-up of each compression, by schedule and model."""
    best = [outcome for outcome in get_best(outcomes) if outcome.share is not None]
    targets = list(dict.fromkeys(outcome.configuration.target for outcome in best))
    panels = [
        (target, schedule)
        for target in targets
        for schedule in _schedules(best)
        if any((o.configuration.target, o.configuration.schedule) == (target, schedule) for o in best)
    ]
    models = list(dict.fromkeys(outcome.configuration.model for outcome in best))
    labels = list(dict.fromkeys(_label(outcome) for outcome in best))
    compression = {_label(outcome): outcome.configuration.compression for outcome in best}
    width, height, left, top, bottom = 860, 210, 56, 34, 30
    plot_height, bar = height - top - bottom, (width - left - 20) / max(1, len(models)) / (len(labels) + 1)
    most = max([100.0, *(100 * (outcome.share or 0.0) for outcome in best)])
    most = math.ceil(most / 50) * 50
    seen: dict[str, int] = {}
    opacity = {}
    for label in labels:
        seen[compression[label]] = seen.get(compression[label], 0) + 1
        opacity[label] = (1.0, 0.55, 0.3)[min(seen[compression[label]] - 1, 2)]
    total = height * len(panels) + 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{width}" height="{total}" fill="#ffffff"/>',
    ]

    def text(x: float, y: float, content: str, anchor: str = "middle", color: str = "#374151", extra: str = "") -> None:
        out.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}"{extra}>{html.escape(content)}</text>'
        )

    for number, (target, schedule) in enumerate(panels):
        above = number * height
        floor = above + top + plot_height
        text(
            left,
            above + 20,
            f"{schedule}, {target}: achieved over expected speed-up, %",
            "start",
            "#111827",
            ' font-size="14"',
        )
        for level in range(0, most + 1, 50):
            y = floor - plot_height * level / most
            out.append(
                f'<line x1="{left}" x2="{width - 20}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{"#6b7280" if level == 100 else "#e5e7eb"}"/>'
            )
            text(left - 8, y + 4, str(level), "end")
        for column, model in enumerate(models):
            start = left + column * bar * (len(labels) + 1) + bar / 2
            text(start + bar * len(labels) / 2, floor + 18, model)
            for outcome in best:
                c = outcome.configuration
                if (c.target, c.schedule, c.model) != (target, schedule, model):
                    continue
                share, place = 100 * (outcome.share or 0.0), labels.index(_label(outcome))
                size = plot_height * share / most
                out.append(
                    f'<rect x="{start + place * bar:.1f}" y="{floor - size:.1f}" width="{bar - 1:.1f}" '
                    f'height="{size:.1f}" '
                    f'fill="{COLORS[c.compression]}" opacity="{opacity[_label(outcome)]}"><title>'
                    f"{html.escape(c.name)}: {share:.0f} %, {outcome.achieved:.2f} of "
                    f"{outcome.expected:.2f}</title></rect>"
                )
    x = float(left)
    for label in labels:
        out.append(
            f'<rect x="{x:.1f}" y="{total - 26}" width="12" height="12" fill="{COLORS[compression[label]]}" '
            f'opacity="{opacity[label]}"/>'
        )
        text(x + 17, total - 16, label, "start")
        x += 26 + 6.1 * len(label)
    out.append("</svg>")
    return "\n".join(out) + "\n"
