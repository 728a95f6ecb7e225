#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plots what `kas-bench search` says about its algorithms.

usage: kas-bench search --filter=tabulated/ | plot-search.py > search-algorithms.svg
"""

import json
import math
import sys

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 110, 44, 52
COLORS = {"uniform": "#6b7280", "random": "#9333ea", "evolution": "#b45309", "mcts": "#1d4ed8", "surrogate": "#047857"}


def read(lines):
    """Curves by algorithm: evaluations -> metric -> value; and the best reward of all."""
    curves, best = {}, 0.0
    for line in lines:
        entry = json.loads(line)
        parts = entry["case"].split("/")
        if entry["suite"] != "search" or parts[0] != "tabulated":
            continue
        if len(parts) == 1 and entry["metric"] == "best_reward":
            best = entry["value"]
        if len(parts) == 3:
            curve = curves.setdefault(parts[1], {})
            curve.setdefault(int(parts[2]), {})[entry["metric"]] = entry["value"]
    return curves, best


def main():
    try:
        curves, best = read(sys.stdin)
    except (ValueError, LookupError, TypeError) as error:
        sys.exit(f"plot-search.py: expected lines of `kas-bench search`, got {error!r}")
    if not curves:
        sys.exit("plot-search.py: expected lines of `kas-bench search`, got none of a tabulated space")
    last = max(max(curve) for curve in curves.values())
    top = math.ceil(best * 10) / 10

    def x(evaluations):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(evaluations) / math.log(last)

    def y(reward):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * reward / top

    def text(px, py, content, anchor="middle", color="#374151", extra=""):
        return f'<text x="{px:.1f}" y="{py:.1f}" text-anchor="{anchor}" fill="{color}"{extra}>{content}</text>'

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(
            LEFT,
            22,
            "Best reward after so many evaluations: median and quartiles over seeds",
            "start",
            "#111827",
            ' font-size="14"',
        ),
    ]
    for step in range(round(top * 10) + 1):
        level = step / 10
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(level):.1f}" y2="{y(level):.1f}" stroke="#e5e7eb"/>')
        out.append(text(LEFT - 8, y(level) + 4, f"{level:.1f}", "end"))
    for tick in (1, 10, 100, 1000):
        if tick <= last:
            out.append(text(x(tick), HEIGHT - BOTTOM + 18, f"{tick}"))
            out.append(
                f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#f3f4f6"/>'
            )
    aim = 0.99 * best
    out.append(
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(aim):.1f}" y2="{y(aim):.1f}" stroke="#9ca3af" '
        'stroke-dasharray="4 4"/>'
    )
    out.append(text(LEFT + 4, y(aim) - 6, "99 % of the best", "start", "#6b7280"))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "evaluations (logarithmic)"))
    for place, (name, curve) in enumerate(curves.items()):
        color = COLORS.get(name, "#111827")
        points = sorted(curve)
        low = [f"{x(p):.1f},{y(curve[p]['best_reward_q25']):.1f}" for p in points]
        high = [f"{x(p):.1f},{y(curve[p]['best_reward_q75']):.1f}" for p in points]
        line = [f"{x(p):.1f},{y(curve[p]['best_reward']):.1f}" for p in points]
        out.append(f'<polygon points="{" ".join(high + low[::-1])}" fill="{color}" opacity="0.10"/>')
        out.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="{color}" stroke-width="2"/>')
        py = HEIGHT - BOTTOM - 20 - 20 * (len(curves) - 1 - place)
        out.append(
            f'<line x1="{WIDTH - RIGHT - 120}" x2="{WIDTH - RIGHT - 92}" y1="{py - 4}" y2="{py - 4}" stroke="{color}" '
            'stroke-width="2"/>'
        )
        out.append(text(WIDTH - RIGHT - 86, py, name, "start", color))
    out.append("</svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()
