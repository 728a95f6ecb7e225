# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of grouped convolutions by their weights, which sum along the lines of images, against sums in float64."""

import numpy
import pytest

import kas

GRADIENT = """
#data = affine_map<(n, g, k, y, x, c, i, j) -> (n, g, c, y * {s} + i, x * {s} + j)>
#gradient = affine_map<(n, g, k, y, x, c, i, j) -> (n, g, k, y, x)>
#result = affine_map<(n, g, k, y, x, c, i, j) -> (g, k, c, i, j)>
func.func @f(%x: tensor<{n}x{g}x{c}x{h}x{w}xf32>, %dy: tensor<{n}x{g}x{k}x{h1}x{w1}xf32>)
    -> tensor<{g}x{k}x{c}x3x3xf32> {{
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 0, 1, 1] high[0, 0, 0, 1, 1] {{
  ^bb0(%a: index, %b: index, %d: index, %e: index, %f: index):
    tensor.yield %zero : f32
  }} : tensor<{n}x{g}x{c}x{h}x{w}xf32> to tensor<{n}x{g}x{c}x{h2}x{w2}xf32>
  %empty = tensor.empty() : tensor<{g}x{k}x{c}x3x3xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<{g}x{k}x{c}x3x3xf32>) -> tensor<{g}x{k}x{c}x3x3xf32>
  %z = linalg.generic {{indexing_maps = [#data, #gradient, #result], iterator_types = ["reduction", "parallel",
      "parallel", "reduction", "reduction", "parallel", "parallel", "parallel"]}}
      ins(%p, %dy : tensor<{n}x{g}x{c}x{h2}x{w2}xf32>, tensor<{n}x{g}x{k}x{h1}x{w1}xf32>)
      outs(%fill : tensor<{g}x{k}x{c}x3x3xf32>) {{
  ^bb0(%a: f32, %b: f32, %d: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %d, %0 : f32
    linalg.yield %1 : f32
  }} -> tensor<{g}x{k}x{c}x3x3xf32>
  return %z : tensor<{g}x{k}x{c}x3x3xf32>
}}
"""


# One image at a time, some, and all; lines of whole and of partial vectors; one tile, and a number that threads do not
# divide.
@pytest.mark.parametrize(
    ("n", "g", "k", "c", "h", "w", "s"),
    [
        (6, 4, 4, 4, 32, 32, 1),
        (64, 3, 4, 2, 9, 21, 1),
        (12, 8, 1, 1, 32, 48, 1),
        (9, 1, 1, 1, 17, 16, 1),
        (8, 5, 2, 4, 32, 32, 2),
    ],
)
@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"])
def test_agrees_with_sums(n, g, k, c, h, w, s, cpu):
    h1, w1 = (h - 1) // s + 1, (w - 1) // s + 1
    sizes = {"n": n, "g": g, "k": k, "c": c, "h": h, "w": w, "s": s}
    text = GRADIENT.format(**sizes, h1=h1, w1=w1, h2=h + 2, w2=w + 2)
    generator = numpy.random.default_rng(n)
    x = generator.standard_normal((n, g, c, h, w)).astype(numpy.float32)
    dy = generator.standard_normal((n, g, k, h1, w1)).astype(numpy.float32)
    padded = numpy.pad(x.astype(numpy.float64), ((0, 0),) * 3 + ((1, 1),) * 2)
    exact = numpy.empty((g, k, c, 3, 3))
    for i in range(3):
        for j in range(3):
            window = padded[..., i : i + h1 * s : s, j : j + w1 * s : s][..., :h1, :w1]
            exact[..., i, j] = numpy.einsum("ngchw,ngkhw->gkc", window, dy, optimize=True)
    results = []
    for threads in (1, 2, 3):
        module = kas.Module(text).run(f"kas-attach-cpu-target{{cpu={cpu}}}")
        results.append(module.compile("f", threads=threads)(x, dy))
        assert numpy.abs(results[-1] - exact).max() <= 1e-5 * numpy.abs(exact).max()
    # Threads never share a sum.
    assert all(numpy.array_equal(results[0], result) for result in results[1:])
