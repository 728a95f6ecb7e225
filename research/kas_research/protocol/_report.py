# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables and the figure of a protocol."""

from __future__ import annotations

import math
import statistics as numbers
from collections.abc import Iterator, Sequence

from . import figure, statistics
from ._results import NetworkResults, Result

BEGIN, END = "<!-- protocol: written by kas-research compare -->", "<!-- end of protocol -->"


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


def _say_images(network: NetworkResults) -> Iterator[str]:
    """Differences whose standard errors contain the test images, of what has kept which images are right."""
    if not (comparisons := network.compare_images()):
        return
    yield "Points on the test images over the best baseline that takes no longer, by a bootstrap over seeds and images:"
    yield ""
    yield "| candidate | width | baseline | width | difference | 95 % |"
    yield "|---|---|---|---|---|---|"
    for one in comparisons:
        d = one.difference
        yield (
            f"| {one.point.contender} | {one.point.width} | {one.baseline.contender} | {one.baseline.width} "
            f"| {d.value:+.2f} ± {d.error:.2f} | {d.low:+.2f} to {d.high:+.2f} |"
        )


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
        if images := list(_say_images(network)):
            lines += [*images, ""]
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


def _make_panel(network: NetworkResults) -> figure.Panel:
    names = [contender.name for contender in network.protocol.contenders]
    return figure.Panel(
        title=f"{network.network}: test accuracy, %",
        axis="µs of the whole network, batch 1, one thread, best compiler",
        curves={name: points for name in names if (points := network.curve(name, "test"))},
        thick=network.protocol.dense,
        deviation=network.deviation("test"),
        write="{:.2f} %".format,
        unit="µs",
    )


def write_plot(networks: Sequence[NetworkResults]) -> str:
    """An SVG: accuracy on the test images (mean, standard error) over latency; the dense curve is a thick line."""
    panels = [_make_panel(network) for network in networks]
    if not any(panel.curves for panel in panels):
        raise ValueError("requires a point with an accuracy on the test images and a latency, got none")
    return figure.draw(panels)
