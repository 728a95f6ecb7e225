#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws docs/images/*.svg, or with --check says whether they are up to date.

usage: tools/docs/draw-pictures.py [--check]

The pictures have a background of their own and follow the color scheme of the system, so they can be read on light and
on dark pages.
"""

import html
import pathlib
import sys

import pictures

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "images"

STYLE = """
  .ground { fill: #f7f9fa; stroke: #d5dde1 }
  .box { fill: #ffffff; stroke: #8aa3b0; stroke-width: 1.2 }
  .mark { fill: #d5efe9; stroke: #1f8a78; stroke-width: 1.2 }
  .new { fill: #fbe3cf; stroke: #c96a1b; stroke-width: 1.2 }
  .dot { fill: #8aa3b0 }
  .best { fill: #c96a1b }
  .line { fill: none; stroke: #54707f; stroke-width: 1.6 }
  .front { fill: none; stroke: #c96a1b; stroke-width: 1.6 }
  text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #22313a }
  .title { font-weight: 600; font-size: 15px }
  .small { font-size: 11.5px; fill: #54707f }
  .code { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre }
  .step { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; fill: #1f6f62 }
  .number { font-weight: 600; fill: #ffffff }
  .badge { fill: #37596b }
  .head { fill: #54707f }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1d262b; stroke: #37474f }
    .box { fill: #263238; stroke: #607d8b }
    .mark { fill: #1c423c; stroke: #4db6a4 }
    .new { fill: #4a331f; stroke: #e39a5c }
    .dot { fill: #78909c }
    .best { fill: #e39a5c }
    .line { stroke: #90a4ae }
    .front { stroke: #e39a5c }
    text { fill: #e4eaed }
    .small { fill: #a9bac3 }
    .step { fill: #7fd0c2 }
    .head { fill: #90a4ae }
    .badge { fill: #546e7a }
  }
"""


class Picture:
    """Lines of SVG."""

    def __init__(self, width, height, title):
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{STYLE}</style>",
            (
                '<defs><marker id="head" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" '
                'orient="auto">'
                '<path class="head" d="M0 0L10 5L0 10z"/></marker></defs>'
            ),
        ]
        self.box(0.5, 0.5, width - 1, height - 1, "ground", 10)

    def box(self, x, y, width, height, kind="box", radius=6):
        self.lines.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>')

    def text(self, x, y, text, kind="", anchor="start"):
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        style = f' class="{kind}"' if kind else ""
        self.lines.append(f'<text{style} x="{x}" y="{y}"{place}>{html.escape(text)}</text>')

    def line(self, *points, kind="line", arrow=True):
        path = "M" + "L".join(f"{x} {y}" for x, y in points)
        self.lines.append(f'<path class="{kind}" d="{path}"' + (' marker-end="url(#head)"' if arrow else "") + "/>")

    def circle(self, x, y, radius, kind):
        self.lines.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="{radius}"/>')

    def get_text(self):
        return "\n".join([*self.lines, "</svg>"]) + "\n"


def draw_stations(title, stations):
    """Up to six stations of one thing, each (name, caption lines, code lines, the function to the next)."""
    assert len(stations) <= 6, "more than six stations"
    heights = [max(30 + 18 * len(code), 42 + 16 * len(captions)) for _, captions, code, _ in stations]
    picture = Picture(900, 24 + sum(heights) + 38 * (len(stations) - 1), title)
    y = 12
    for number, ((name, captions, code, step), height) in enumerate(zip(stations, heights), 1):
        picture.circle(32, y + 22, 13, "badge")
        picture.text(32, y + 26.5, str(number), "number", "middle")
        picture.text(56, y + 27, name, "title")
        for row, caption in enumerate(captions):
            picture.text(56, y + 47 + 16 * row, caption, "small")
        picture.box(290, y, 596, height, "mark" if number in (1, len(stations)) else "box")
        top = y + (height - 18 * len(code)) / 2 + 13
        for row, text in enumerate(code):
            picture.text(304, top + 18 * row, text, "code")
        y += height
        if step:
            picture.line((330, y + 3), (330, y + 34))
            picture.text(346, y + 24, step, "step")
            y += 38
    return picture.get_text()


def draw_overview():
    """A network, an operator as a graph, the search, the compiled network."""
    picture = Picture(960, 330, "kas finds an operator for the layers of a network and compiles the changed network")
    for x, title in (
        (24, "a network"),
        (262, "a space of operators"),
        (500, "the search"),
        (738, "the network, compiled"),
    ):
        picture.text(x, 36, title, "title")
        picture.box(x, 48, 198, 214)
    for x in (232, 470, 708):
        picture.line((x - 8, 155), (x + 26, 155))
    draw_layers(picture, 24, "mark")
    draw_graph(picture, 262)
    draw_search(picture, 500)
    draw_layers(picture, 738, "new")
    for x, text in (
        (24, "convolutions to replace"),
        (262, "primitives, output to data"),
        (500, "FLOPs, time, accuracy, ..."),
        (738, "cheaper operators inside"),
    ):
        picture.text(x + 99, 252, text, "small", "middle")
    for x, text in ((241, "kas-extract"), (479, "kas-search"), (717, "kas-substitute")):
        picture.text(x, 284, text, "step", "middle")
        picture.line((x, 272), (x, 168), arrow=False)
    picture.text(936, 306, "for CPUs, CUDA and Vulkan; as C and PyTorch code", "small", "end")
    return picture.get_text()


def draw_layers(picture, x, kind):
    for row in range(6):
        y = 64 + 29 * row
        is_site = row in (1, 2, 4)
        picture.box(x + 44, y, 110, 22, kind if is_site else "box", 4)
        label = ("3x3" if kind == "mark" else "new operator") if is_site else ("linear" if row == 5 else "...")
        picture.text(x + 99, y + 15.5, label, "small", "middle")
        if row:
            picture.line((x + 99, y - 7), (x + 99, y), arrow=False)
    picture.line((x + 44, 104), (x + 26, 104), (x + 26, 191), (x + 44, 191), arrow=False)


def draw_graph(picture, x):
    for place, name in ((22, "co"), (104, "h"), (150, "w"), (180, "n")):
        picture.circle(x + place, 76, 12, "mark")
        picture.text(x + place, 80, name, "small", "middle")
    for place, y, name in ((52, 118, "reduce"), (108, 118, "unfold"), (161, 118, "shift"), (52, 162, "share")):
        picture.box(x + place - 24, y - 11, 48, 22, "box", 4)
        picture.text(x + place, y + 4, name, "small", "middle")
    for points in (
        ((104, 88), (107, 106)),
        ((150, 88), (158, 106)),
        ((76, 118), (83, 118)),
        ((52, 129), (52, 150)),
        ((52, 173), (52, 201)),
        ((76, 166), (124, 201)),
        ((110, 129), (136, 201)),
        ((160, 129), (146, 201)),
        ((22, 88), (14, 110), (14, 180), (34, 201)),
        ((182, 88), (191, 106), (191, 180), (166, 201)),
    ):
        picture.line(*((x + across, down) for across, down in points))
    for place, name in ((50, "weight"), (142, "data")):
        picture.box(x + place - 34, 202, 68, 24, "new", 4)
        picture.text(x + place, 218, name, "small", "middle")


def draw_search(picture, x):
    picture.line((x + 26, 226), (x + 26, 66))
    picture.line((x + 26, 226), (x + 182, 226))
    front = [(40, 96), (58, 134), (84, 166), (120, 188), (168, 204)]
    state = 7
    for _ in range(90):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        across = 40 + (state >> 8) % 134
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        up = 70 + (state >> 8) % 132
        (a, b), (c, d) = next(
            (first, second) for first, second in zip(front, [*front[1:], (200, 204)]) if across < second[0]
        )
        if up < b + (d - b) * (across - a) / (c - a) - 9:
            picture.circle(x + across, up, 2.4, "dot")
    picture.line(*[(x + a, b) for a, b in front], kind="front", arrow=False)
    for a, b in front:
        picture.circle(x + a, b, 3.6, "best")


def main():
    wanted = {f"{name}.svg": draw_stations(*content) for name, content in pictures.STATIONS.items()}
    wanted["overview.svg"] = draw_overview()
    stale = []
    for name, text in wanted.items():
        path = FOLDER / name
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_text() != text:
                stale.append(name)
        else:
            path.write_text(text)
    if stale:
        sys.exit(f"error: {', '.join(stale)}: not what tools/docs/draw-pictures.py draws")


if __name__ == "__main__":
    main()
