# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of what contenders reach over what they cost, as SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from . import statistics

__all__ = ["COLORS", "Panel", "draw"]

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

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 860, 430, 62, 40, 48, 230


@dataclass(frozen=True)
class Panel:
    """Means with their standard errors over a logarithmic axis, on which a point's latency, or another cost, is.

    `write` makes the text of a value, such as `89.52 %`, and `tick` that of a level of the grid.
    """

    title: str
    axis: str
    """What is on the logarithmic axis."""
    curves: Mapping[str, Sequence[statistics.Measured]]
    """By contender, whose points are joined."""
    thick: str
    """The contender whose frontier is a thick line."""
    deviation: statistics.Deviation
    write: Callable[[float], str]
    unit: str
    """Of the logarithmic axis."""
    tick: Callable[[float], str] = "{:g}".format
    step: float = 1
    """Between two levels of the grid."""


class _Drawing:
    """One panel, `above` pixels from the top of the picture."""

    def __init__(self, panel: Panel, above: int):
        self.panel, self.above, self.out = panel, above, list[str]()
        self.color = {name: COLORS[place % len(COLORS)] for place, name in enumerate(panel.curves)}
        every = [point for points in panel.curves.values() for point in points]
        self.low, self.high = min(p.latency for p in every) / 1.1, max(p.latency for p in every) * 1.1
        self.least = math.floor(min(p.mean for p in every) / panel.step - 0.5)
        self.most = math.ceil(max(p.mean for p in every) / panel.step + 0.5)

    def x(self, latency: float) -> float:
        share = math.log(latency / self.low) / math.log(self.high / self.low)
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    def y(self, value: float) -> float:
        share = (value / self.panel.step - self.least) / (self.most - self.least)
        return self.above + HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def text(self, x: float, y: float, content: str, anchor: str = "middle", size: int = 12) -> None:
        self.out.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#374151">'
            f"{html.escape(content)}</text>"
        )

    def draw(self) -> list[str]:
        self.text(LEFT, self.above + 22, self.panel.title, "start", 14)
        for level in range(self.least, self.most + 1):
            y = self.y(level * self.panel.step)
            right = WIDTH - RIGHT
            self.out.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>')
            self.text(LEFT - 8, y + 4, self.panel.tick(level * self.panel.step), "end")
        bottom = self.above + HEIGHT - BOTTOM
        for power in range(-1, 7):
            for digit in (1, 2, 5):
                if self.low <= (tick := digit * 10.0**power) <= self.high:
                    self.text(self.x(tick), bottom + 18, f"{tick:g}")
        self.text((LEFT + WIDTH - RIGHT) / 2, bottom + 38, self.panel.axis)
        for place, (name, points) in enumerate(self.panel.curves.items()):
            self.draw_curve(name, points)
            y = self.above + TOP + 16 * place
            self.out.append(f'<circle cx="{WIDTH - 212}" cy="{y}" r="4" fill="{self.color[name]}"/>')
            self.text(WIDTH - 202, y + 4, name, "start")
        return self.out

    def draw_curve(self, name: str, points: Sequence[statistics.Measured]) -> None:
        color, is_thick = self.color[name], name == self.panel.thick
        line = statistics.get_frontier(points) if is_thick else sorted(points, key=lambda p: p.latency)
        path = " ".join(f"{self.x(p.latency):.1f},{self.y(p.mean):.1f}" for p in line)
        stroke = 2.5 if is_thick else 1
        self.out.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{stroke}" opacity="0.6"/>'
        )
        for point in points:
            x, y = self.x(point.latency), self.y(point.mean)
            error = self.panel.deviation.value / math.sqrt(point.seeds)
            if math.isfinite(error):
                ends = self.y(point.mean - error), self.y(point.mean + error)
                self.out.append(
                    f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}" stroke="{color}"/>'
                )
            hover = f"{name}, width {point.width}: {self.panel.write(point.mean)}, "
            hover += f"{point.latency:.1f} {self.panel.unit}, {point.seeds} seeds"
            self.out.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"><title>{html.escape(hover)}</title></circle>'
            )


def draw(panels: Iterable[Panel]) -> str:
    """An SVG, one panel below the other; those without points are left out."""
    shown = [panel for panel in panels if any(panel.curves.values())]
    if not shown:
        raise ValueError("requires a point, got none")
    height = HEIGHT * len(shown)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for place, panel in enumerate(shown):
        out += _Drawing(panel, place * HEIGHT).draw()
    out.append("</svg>")
    return "\n".join(out) + "\n"
