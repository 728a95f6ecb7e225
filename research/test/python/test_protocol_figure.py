# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas_research.protocol.figure: what is where in the picture."""

from __future__ import annotations

import math
import xml.etree.ElementTree

import pytest

pytest.importorskip("torch")

from kas_research.protocol import figure
from kas_research.protocol.statistics import Deviation, Measured

SVG = "{http://www.w3.org/2000/svg}"
DEVIATION = Deviation(0.02, 8)


def make_panel(curves, deviation=DEVIATION, **options):
    return figure.Panel("Bits", "ms & more", curves, "dense", deviation, "{:.2f} bits".format, "ms", **options)


def test_values_may_have_a_fine_grid_and_texts_of_their_own():
    curves = {"dense": [Measured(1, -2.75, 2), Measured(4, -2.48, 2)], "found": [Measured(2, -2.52, 1)]}
    panel = make_panel(curves, tick=lambda value: f"{abs(value):.1f}", step=0.1)
    root = xml.etree.ElementTree.fromstring(figure.draw([panel]))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert texts[:6] == ["Bits", "2.8", "2.7", "2.6", "2.5", "2.4"]
    assert texts[6:] == ["1", "2", "ms & more", "dense", "found"]
    # The higher value is higher, each twice as slow one equally further right.
    points = [element for element in root.iter(f"{SVG}circle") if element.find(f"{SVG}title") is not None]
    x, y = ([float(point.get(name)) for point in points] for name in ("cx", "cy"))
    assert y[1] < y[2] < y[0]
    assert x[2] - x[0] == pytest.approx(x[1] - x[2], abs=0.2)
    # The bar of one seed is longer than that of two.
    bars = [line for line in root.iter(f"{SVG}line") if line.get("x1") == line.get("x2")]
    lengths = [float(bar.get("y1")) - float(bar.get("y2")) for bar in bars]
    assert lengths[2] == pytest.approx(math.sqrt(2) * lengths[0], abs=0.2)


def test_there_are_no_bars_without_a_deviation():
    picture = figure.draw([make_panel({"dense": [Measured(1, 80, 1)]}, Deviation(math.nan, 0))])
    root = xml.etree.ElementTree.fromstring(picture)
    assert not [line for line in root.iter(f"{SVG}line") if line.get("x1") == line.get("x2")]


def test_panels_without_points_are_left_out():
    panel = make_panel({"dense": [Measured(1, 80, 1)]})
    assert figure.draw([make_panel({}), panel, make_panel({"dense": []})]) == figure.draw([panel])
    with pytest.raises(ValueError, match="requires a point, got none"):
        figure.draw([make_panel({"dense": []})])
