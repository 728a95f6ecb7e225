# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables and the figure of an experiment."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..protocol import figure, statistics
from ..protocol.bootstrap import Ratio
from ._protocol import Rules
from ._results import Finding, Point, check_rules, compare, get_best, get_deviation
from ._verdict import Outcome, Verdict

BEGIN, END = "<!-- fields: written by kas-research fields -->", "<!-- end of fields -->"
VERDICT = "<!-- verdict: written by kas-research fields --verdict -->", "<!-- end of verdict -->"
HEAD = (
    "| budget (ms) | family | width | ms | by | parameters | error (%) | seeds | ratio to the best | CPU s |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def write_tables(points: Sequence[Point], rules: Rules, seeds: int, stops: bool = True) -> str:
    """A table for each equation, by budget and error; with `stops` the rules to stop."""
    parts = []
    deviation = get_deviation(points)
    for equation in dict.fromkeys(point.equation for point in points):
        rows = []
        here = [point for point in points if point.equation == equation]
        for budget in dict.fromkeys(point.budget for point in here):
            rows += _write_rows([point for point in here if point.budget == budget], deviation, rules)
        done = sum(len(point.errors) + len(point.failures) for point in here)
        text = f"`{equation}`, {done} of {seeds * len(here)} trainings of these points:"
        parts.append("\n".join([text, "", HEAD, *rows]))
    findings = check_rules(points, rules, seeds) if stops else []
    if not findings:
        return "\n\n".join(parts)
    parts.append("\n".join(["| rule | |", "|---|---|", *map(_write_finding, findings)]))
    parts.append(f"**{decide(findings)}**")
    return "\n\n".join(parts)


def _write_rows(points: Sequence[Point], deviation: statistics.Deviation, rules: Rules) -> list[str]:
    best = get_best(points)
    ratios = compare(points, best, rules.draws) if best else [None] * len(points)
    order = sorted(range(len(points)), key=lambda place: points[place].error if points[place].errors else math.inf)
    rows = []
    for place in order:
        point, ratio = points[place], ratios[place]
        error = f"{point.error:.2f}" if point.errors else ", ".join(point.failures.values())
        if point.errors and math.isfinite(deviation.value):
            error += f" ± {point.error * deviation.value / math.sqrt(len(point.errors)):.2f}"
        beside = "" if ratio is None or best is None or point is best else f"{ratio.value:.2f}"
        # One seed says nothing about others.
        if beside and ratio and best and min(len(point.errors), len(best.errors)) > 1:
            beside += f" ({ratio.low:.2f} to {ratio.high:.2f})"
        seconds = f"{sum(point.cpu_seconds) / len(point.cpu_seconds):.0f}" if point.cpu_seconds else ""
        cells = [f"{point.budget:g}", point.family, point.width, f"{point.ms:.3f}", point.compiler]
        cells += [point.parameters or "", error, len(point.errors), beside, seconds]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def _write_finding(finding: Finding) -> str:
    return f"| {finding.text} | {'open' if finding.stops is None else 'stop' if finding.stops else 'go on'} |"


def decide(findings: Sequence[Finding]) -> str:
    """The decision by all rules."""
    if any(finding.stops for finding in findings):
        return "The search is given up."
    if any(finding.stops is None for finding in findings):
        return "Open: trainings are missing."
    return "The search goes on."


def write_verdict(verdict: Verdict) -> str:
    """What each finalist is beside the envelope, and the verdict."""
    parts = []
    if verdict.outcomes:
        rows = [row for one in verdict.outcomes for row in _write_outcome(one)]
        head = "| finalist | equation | budget (ms) | baseline | ratio of errors | p, one-sided |"
        parts.append("\n".join([head, "|---|---|---|---|---|---|", *rows]))
        rows = [
            f"| {one.name} | {one.probability:.2g} | {one.verdict} | {one.reason} | {one.form} |"
            for one in verdict.outcomes
        ]
        parts.append("\n".join(["| finalist | p, corrected | verdict | why | form |", "|---|---|---|---|---|", *rows]))
    parts += ["\n".join(f"- Missing: {text}." for text in verdict.missing)] if verdict.missing else []
    return "\n\n".join([*parts, f"**Verdict: {verdict.verdict}.**"])


def _write_outcome(one: Outcome) -> list[str]:
    rows: list[tuple[str, str, str, Ratio]] = [
        (c.equation, f"{c.budget:g}", c.baseline, c.ratio) for c in one.comparisons
    ]
    rows += [(equation, "second-best", "envelope", ratio) for equation, ratio in one.second_best.items()]
    rows += [(equation, "second-best", "replication", ratio) for equation, ratio in one.replications.items()]
    return [
        f"| {one.name} | {equation} | {budget} | {baseline} | {ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f}) "
        f"| {ratio.probability:.2g} |"
        for equation, budget, baseline, ratio in rows
    ]


def update_page(page: str, tables: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """The page with the tables between its marks."""
    begin, end = map(page.find, marks)
    if begin < 0 or end < begin:
        raise ValueError(f"requires a page with the lines '{marks[0]}' and '{marks[1]}', got none")
    return f"{page[: begin + len(marks[0])]}\n{tables}\n{page[end:]}"


def write_plot(points: Sequence[Point]) -> str:
    """The error over the milliseconds, a panel for each equation: each step down is half the error."""
    deviation = get_deviation(points)
    panels = []
    for equation in dict.fromkeys(point.equation for point in points):
        curves: dict[str, list[statistics.Measured]] = {}
        for point in sorted(points, key=lambda point: point.family):
            if point.equation == equation and point.errors:
                level = -math.log2(point.error)
                measured = statistics.Measured(point.ms, level, len(point.errors), point.width)
                known = curves.setdefault(point.family, [])
                if measured not in known:
                    known.append(measured)
        panels.append(
            figure.Panel(
                f"{equation}: mean relative error on test fields, logarithmic, less is higher",
                "milliseconds of a field, batches on one thread, best compiler",
                curves,
                "dense",
                statistics.Deviation(deviation.value / math.log(2), deviation.freedom),
                lambda value: f"{2**-value:.2f} %",
                "ms",
                lambda value: f"{2**-value:.3g} %",
                0.5,
            )
        )
    return figure.draw(panels)
