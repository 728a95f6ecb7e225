# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of fields as SVG: rows of images, each point of a field a square of one colour."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy

Array: TypeAlias = Any
SIDE, GAP, TOP, LEFT = 150, 14, 44, 12
COLORS = ((38, 70, 140), (235, 238, 242), (176, 42, 48))
"""Of the least value, of the middle and of the largest one."""


class Image(NamedTuple):
    """A field with the values that its colours go from and to."""

    title: str
    field: Array
    """`[n, n]`."""
    low: float
    high: float


def draw(rows: Sequence[Sequence[Image]]) -> str:
    """An SVG with the images of each row beside each other; titles have two lines at most."""
    width = LEFT + max(len(row) for row in rows) * (SIDE + GAP)
    height = len(rows) * (SIDE + TOP) + GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="11" fill="#374151">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for line, row in enumerate(rows):
        for place, image in enumerate(row):
            x, y = LEFT + place * (SIDE + GAP), line * (SIDE + TOP) + TOP
            for number, text in enumerate(image.title.split("\n")):
                out.append(f'<text x="{x}" y="{y - 20 + 14 * number}">{html.escape(text)}</text>')
            out.append(
                f'<image x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" style="image-rendering:pixelated" '
                f'href="data:image/png;base64,{base64.b64encode(write_png(color(image))).decode()}"/>'
            )
    return "\n".join([*out, "</svg>"]) + "\n"


def color(image: Image) -> Array:
    """The pixels `[n, n, 3]` of an image."""
    span = image.high - image.low
    share = numpy.clip((numpy.asarray(image.field, float) - image.low) / (span or 1), 0, 1)
    levels = numpy.linspace(0, 1, len(COLORS))
    channels = [numpy.interp(share, levels, [one[place] for one in COLORS]) for place in range(3)]
    return numpy.stack(channels, -1).round().astype(numpy.uint8)


def write_png(pixels: Array) -> bytes:
    """The PNG of pixels `[rows, columns, 3]` (W3C, Portable Network Graphics, third edition)."""
    rows, columns, _ = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    # Each line begins with the filter that it has: none.
    lines = b"".join(b"\0" + line.tobytes() for line in numpy.ascontiguousarray(pixels))
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines, 9)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
