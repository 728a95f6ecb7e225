# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables and the figure of a protocol."""

from __future__ import annotations

import html
import math
import statistics as numbers
from collections.abc import Iterator, Sequence

from . import statistics
from ._results import NetworkResults, Result

COLORS = (
    "#2563eb",
    "#dc2626",
    "#059669",
    "#d97706",
    "#7c3aed",
    "#0891b2",
    "#be185d",
    "#65a30d",
    "#92400e",
    "#4f46e5",
    "#0d9488",
    "#ea580c",
)
BEGIN, END = "<!-- protocol: written by kas compare -->", "<!-- end of protocol -->"


def _number(value: float | None, digits: int = 2, sign: bool = False) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:{'+' if sign else ''}.{digits}f}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def _row(network: NetworkResults, result: Result, deviations: dict[str, statistics.Deviation]) -> list[str]:
    latency = result.latency
    cells = [
        result.point.contender,
        str(result.point.width),
        _number(latency[0], 1) if latency else "",
        latency[1] if latency else "",
        str(result.parameters or ""),
    ]
    for metric in ("validation", "test"):
        values = result.values(metric)
        if not values:
            cells.append("")
            continue
        error = deviations[metric].value / math.sqrt(len(values))
        cells.append(_number(numbers.fmean(values)) + (f" ± {error:.2f}" if math.isfinite(error) else ""))
    cells.append(str(len(result.values("validation"))))
    difference = None
    point = result.measured("test")
    if point is not None and result.point.contender != network.protocol.dense:
        level = statistics.interpolate(network.curve(network.protocol.dense, "test"), point.latency)
        if level is not None:
            difference = statistics.compare(point, network.protocol.dense, level, deviations["test"])
    cells += [
        _number(difference.difference if difference else None, 2, True),
        _number(difference.ratio if difference else None, 1, True),
    ]
    for metric in ("shifted", "rotated"):
        values = result.values(metric)
        cells.append(_number(numbers.fmean(values)) if values else "")
    cells.append(_number(numbers.median(result.cpu_seconds), 0) if result.cpu_seconds else "")
    return cells


HEAD = (
    "contender",
    "width",
    "µs",
    "by",
    "parameters",
    "validation %",
    "test %",
    "seeds",
    "minus dense curve",
    "in standard errors",
    "shifted %",
    "rotated %",
    "CPU s",
)


def _table(network: NetworkResults) -> Iterator[str]:
    deviations = {metric: network.deviation(metric) for metric in ("validation", "test")}
    yield "| " + " | ".join(HEAD) + " |"
    yield "|" + "---|" * len(HEAD)
    for result in network.results.values():
        if result.values("validation"):
            yield "| " + " | ".join(_row(network, result, deviations)) + " |"


def _say_runs(network: NetworkResults) -> list[str]:
    """Where latencies were measured: those of one run are compared best."""
    runs = sorted({result.run for result in network.results.values() if result.run is not None})
    if not runs:
        return []
    machines = sorted({machine for machine, _ in runs})
    return [f"Latencies were measured in {len(runs)} run{'s' if len(runs) > 1 else ''} on {', '.join(machines)}.", ""]


def _say_control(network: NetworkResults) -> str:
    answer = network.measures_operators("test")
    control, dense = network.protocol.control, network.protocol.dense
    if answer is None:
        return f"Whether the network measures operators is not known: '{control}' has no point beside '{dense}' yet."
    passed, differences = answer
    ratios = ", ".join(f"{difference.ratio:+.1f} at width {difference.point.width}" for difference in differences)
    if passed:
        return f"The network measures operators: '{control}' less the curve of '{dense}', in standard errors: {ratios}."
    return (
        f"The network **does not measure operators**: '{control}' must be {statistics.CONTROL:g} standard errors below "
        f"the curve of '{dense}', got {ratios}."
    )


def _say_candidates(network: NetworkResults) -> Iterator[str]:
    if not network.candidates:
        return
    yield from _say_verdicts(network, True)
    if afterthoughts := [baseline.name for baseline in network.baselines if baseline.is_afterthought]:
        yield ""
        yield f"The same without the baselines that a search had found before: {', '.join(afterthoughts)}."
        yield ""
        yield from _say_verdicts(network, False)


def _say_verdicts(network: NetworkResults, afterthoughts: bool) -> Iterator[str]:
    verdicts = {metric: network.decide(metric, afterthoughts) for metric in ("validation", "test")}
    head = ("candidate", "on", "over the envelope, by width: points, standard errors", "p, corrected", "above")
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for candidate in network.candidates:
        for metric in ("validation", "test"):
            verdict = verdicts[metric].get(candidate.name)
            if verdict is None:
                continue
            differences = "; ".join(
                f"{d.point.width}: {d.difference:+.2f}, {d.ratio:+.1f} ({d.baseline})" for d in verdict.differences
            )
            above = "**yes**" if verdict.is_above else "no"
            yield f"| {candidate.name} | {metric} | {differences} | {verdict.probability:.2g} | {above} |"


def _say_equal_accuracy(network: NetworkResults) -> Iterator[str]:
    """How much faster candidates are than the dense curve where it is as accurate on the test images."""
    conditions = network.conditions
    rows = []
    for candidate in network.candidates:
        ratios = {c: {p.width: (p, r) for p, r in network.equal_accuracy(candidate.name, c)} for c in conditions}
        for width, (point, _) in ratios[conditions[0]].items():
            cells = [f"{ratios[c][width][1]:.2f}" if width in ratios[c] else "" for c in conditions]
            rows.append(f"| {candidate.name} | {width} | {point.mean:.2f} | " + " | ".join(cells) + " |")
    if not rows:
        return
    names = [f"{_count(c.batch, 'image')}, {_count(c.threads, 'thread')}" for c in conditions]
    yield f"Times of the curve of '{network.protocol.dense}' at the same accuracy, in those of the candidate:"
    yield ""
    yield "| candidate | width | test % | " + " | ".join(names) + " |"
    yield "|" + "---|" * (3 + len(names))
    yield from rows


def write_tables(networks: Sequence[NetworkResults]) -> str:
    """Markdown: for each network all points, whether it measures operators, and the verdicts on candidates."""
    lines: list[str] = []
    for network in networks:
        count = sum(len(result.values("validation")) for result in network.results.values())
        seconds = sum(sum(result.cpu_seconds) for result in network.results.values())
        deviation = network.deviation("test")
        lines += [f"### Network `{network.network}`", ""]
        lines += [f"{count} trainings in {seconds / 3600:.1f} CPU hours."]
        if deviation.freedom:
            lines[-1] += (
                f" Deviation of a seed, pooled: {deviation.value:.2f} points on the test images "
                f"({deviation.freedom} degrees of freedom)."
            )
        lines += ["", *_say_runs(network), _say_control(network), "", *_table(network), ""]
        if verdicts := list(_say_candidates(network)):
            lines += [*verdicts, ""]
        if speeds := list(_say_equal_accuracy(network)):
            lines += [*speeds, ""]
        failed = {(r.point.contender, r.point.width): r.failures[-1] for r in network.results.values() if r.failures}
        lines += [f"- {name}, width {width}, failed: {reason}" for (name, width), reason in failed.items()]
        if failed:
            lines.append("")
    return "\n".join(lines)


def update_page(page: str, networks: Sequence[NetworkResults]) -> str:
    """The page with the tables between its two marks."""
    begin, end = page.find(BEGIN), page.find(END)
    if begin < 0 or end < begin:
        raise ValueError(f"requires '{BEGIN}' and, below it, '{END}' in the page, got none")
    return page[: begin + len(BEGIN)] + "\n\n" + write_tables(networks).rstrip() + "\n\n" + page[end:]


class _Panel:
    """One network: accuracy on the test images over microseconds, which have a logarithmic axis."""

    WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 860, 430, 62, 40, 48, 230

    def __init__(self, network: NetworkResults, above: int):
        self.network, self.above, self.out = network, above, list[str]()
        names = [contender.name for contender in network.protocol.contenders]
        self.curves = {name: points for name in names if (points := network.curve(name, "test"))}
        self.color = {name: COLORS[place % len(COLORS)] for place, name in enumerate(self.curves)}
        every = [point for points in self.curves.values() for point in points]
        self.deviation = network.deviation("test")
        self.low, self.high = min(p.latency for p in every) / 1.1, max(p.latency for p in every) * 1.1
        self.least = math.floor(min(p.mean for p in every) - 0.5)
        self.most = math.ceil(max(p.mean for p in every) + 0.5)

    def x(self, latency: float) -> float:
        share = math.log(latency / self.low) / math.log(self.high / self.low)
        return self.LEFT + (self.WIDTH - self.LEFT - self.RIGHT) * share

    def y(self, accuracy: float) -> float:
        share = (accuracy - self.least) / (self.most - self.least)
        return self.above + self.HEIGHT - self.BOTTOM - (self.HEIGHT - self.TOP - self.BOTTOM) * share

    def text(self, x: float, y: float, content: str, anchor: str = "middle", size: int = 12) -> None:
        self.out.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#374151">'
            f"{html.escape(content)}</text>"
        )

    def draw(self) -> list[str]:
        self.text(self.LEFT, self.above + 22, f"{self.network.network}: test accuracy, %", "start", 14)
        for level in range(self.least, self.most + 1):
            y = self.y(level)
            right = self.WIDTH - self.RIGHT
            self.out.append(f'<line x1="{self.LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>')
            self.text(self.LEFT - 8, y + 4, str(level), "end")
        bottom = self.above + self.HEIGHT - self.BOTTOM
        for power in range(-1, 7):
            for digit in (1, 2, 5):
                if self.low <= (tick := digit * 10.0**power) <= self.high:
                    self.text(self.x(tick), bottom + 18, f"{tick:g}")
        middle = (self.LEFT + self.WIDTH - self.RIGHT) / 2
        self.text(middle, bottom + 38, "µs of the whole network, batch 1, one thread, best compiler")
        for place, (name, points) in enumerate(self.curves.items()):
            self.draw_curve(name, points)
            y = self.above + self.TOP + 16 * place
            self.out.append(f'<circle cx="{self.WIDTH - 212}" cy="{y}" r="4" fill="{self.color[name]}"/>')
            self.text(self.WIDTH - 202, y + 4, name, "start")
        return self.out

    def draw_curve(self, name: str, points: Sequence[statistics.Measured]) -> None:
        color, is_dense = self.color[name], name == self.network.protocol.dense
        line = statistics.get_frontier(points) if is_dense else sorted(points, key=lambda p: p.latency)
        path = " ".join(f"{self.x(p.latency):.1f},{self.y(p.mean):.1f}" for p in line)
        stroke = 2.5 if is_dense else 1
        self.out.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{stroke}" opacity="0.6"/>'
        )
        for point in points:
            x, y = self.x(point.latency), self.y(point.mean)
            error = self.deviation.value / math.sqrt(point.seeds)
            if math.isfinite(error):
                ends = self.y(point.mean - error), self.y(point.mean + error)
                self.out.append(
                    f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}" stroke="{color}"/>'
                )
            hover = f"{name}, width {point.width}: {point.mean:.2f} %, {point.latency:.1f} µs, {point.seeds} seeds"
            self.out.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"><title>{html.escape(hover)}</title></circle>'
            )


def write_plot(networks: Sequence[NetworkResults]) -> str:
    """An SVG: accuracy on the test images (mean, standard error) over latency; the dense curve is a thick line."""
    shown = [network for network in networks if any(r.measured("test") for r in network.results.values())]
    if not shown:
        raise ValueError("requires a point with an accuracy on the test images and a latency, got none")
    height = _Panel.HEIGHT * len(shown)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_Panel.WIDTH} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{_Panel.WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for place, network in enumerate(shown):
        out += _Panel(network, place * _Panel.HEIGHT).draw()
    out.append("</svg>")
    return "\n".join(out) + "\n"
