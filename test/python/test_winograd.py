# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions in linalg by Winograd's algorithm, forward and as gradients by the data, against contractions."""

import numpy
import pytest

import kas

NETWORK = """
#weight = affine_map<(n, i, y, x, o, ky, kx) -> (i, o, ky, kx)>
#window = affine_map<(n, i, y, x, o, ky, kx) -> (n, i, y + ky, x + kx)>
#result = affine_map<(n, i, y, x, o, ky, kx) -> (n, o, y, x)>
func.func @f(%x: tensor<{n}x{i}x{h}x{w}xf32>, %w: tensor<{o}x{i}x3x3xf32>, %v: tensor<{i}x{o}x3x3xf32>)
    -> (tensor<{n}x{o}x{h}x{w}xf32>, tensor<{n}x{o}x{h}x{w}xf32>) {{
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  }} : tensor<{n}x{i}x{h}x{w}xf32> to tensor<{n}x{i}x{h2}x{w2}xf32>
  %empty = tensor.empty() : tensor<{n}x{o}x{h}x{w}xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<{n}x{o}x{h}x{w}xf32>) -> tensor<{n}x{o}x{h}x{w}xf32>
  %y = linalg.conv_2d_nchw_fchw {{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}}
      ins(%p, %w : tensor<{n}x{i}x{h2}x{w2}xf32>, tensor<{o}x{i}x3x3xf32>)
      outs(%fill : tensor<{n}x{o}x{h}x{w}xf32>) -> tensor<{n}x{o}x{h}x{w}xf32>
  %z = linalg.generic {{indexing_maps = [#weight, #window, #result],
      iterator_types = ["parallel", "reduction", "parallel", "parallel", "parallel", "reduction", "reduction"]}}
      ins(%v, %p : tensor<{i}x{o}x3x3xf32>, tensor<{n}x{i}x{h2}x{w2}xf32>)
      outs(%fill : tensor<{n}x{o}x{h}x{w}xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  }} -> tensor<{n}x{o}x{h}x{w}xf32>
  return %y, %z : tensor<{n}x{o}x{h}x{w}xf32>, tensor<{n}x{o}x{h}x{w}xf32>
}}
"""


# Several images at a time, all at once, the last tiles partly outside, and few tiles of each image.
@pytest.mark.parametrize(
    "n, i, o, h, w", [(12, 16, 16, 32, 32), (3, 8, 24, 17, 30), (1, 32, 16, 14, 14), (9, 192, 192, 7, 8)]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_agrees_with_contractions(n, i, o, h, w, threads):
    text = NETWORK.format(n=n, i=i, o=o, h=h, w=w, h2=h + 2, w2=w + 2)
    generator = numpy.random.default_rng(n * 100 + h)
    shapes = [(n, i, h, w), (o, i, 3, 3), (i, o, 3, 3)]
    arrays = [generator.standard_normal(shape).astype(numpy.float32) for shape in shapes]
    expected = kas.Module(text).compile("f", threads=1)(*arrays)
    module = kas.Module(text).run(f"kas-winograd{{threads={threads}}}")
    assert "linalg.generic" not in str(module)
    assert "linalg.conv_2d" not in str(module)
    for value, sums in zip(module.compile("f", threads=threads)(*arrays), expected):
        assert numpy.abs(value - sums).max() <= 3e-5 * numpy.abs(sums).max()
        assert not numpy.array_equal(value, sums)


GRADIENT = """
#data = affine_map<(n, k, y, x, c, i, j) -> (n, c, y + i, x + j)>
#gradient = affine_map<(n, k, y, x, c, i, j) -> (n, k, y, x)>
#result = affine_map<(n, k, y, x, c, i, j) -> (k, c, i, j)>
func.func @f(%x: tensor<{n}x{i}x{h}x{w}xf32>, %g: tensor<{n}x{o}x{h1}x{w1}xf32>) -> tensor<{o}x{i}x3x3xf32> {{
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, {top}, {left}] high[0, 0, 1, 1] {{
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  }} : tensor<{n}x{i}x{h}x{w}xf32> to tensor<{n}x{i}x{h2}x{w2}xf32>
  %empty = tensor.empty() : tensor<{o}x{i}x3x3xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<{o}x{i}x3x3xf32>) -> tensor<{o}x{i}x3x3xf32>
  %z = linalg.generic {{indexing_maps = [#data, #gradient, #result],
      iterator_types = ["reduction", "parallel", "reduction", "reduction", "parallel", "parallel", "parallel"]}}
      ins(%p, %g : tensor<{n}x{i}x{h2}x{w2}xf32>, tensor<{n}x{o}x{h1}x{w1}xf32>)
      outs(%fill : tensor<{o}x{i}x3x3xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %c, %0 : f32
    linalg.yield %1 : f32
  }} -> tensor<{o}x{i}x3x3xf32>
  return %z : tensor<{o}x{i}x3x3xf32>
}}
"""


def get_exact_gradient(x: numpy.ndarray, g: numpy.ndarray, top: int, left: int) -> numpy.ndarray:
    """In float64, of a convolution of 3x3 with so many zeros before lines and columns, and one after them."""
    padded = numpy.pad(x.astype(numpy.float64), ((0, 0), (0, 0), (top, 1), (left, 1)))
    lines, columns = g.shape[2:]
    places = [
        numpy.einsum("nchw,nkhw->kc", padded[:, :, i : i + lines, j : j + columns], g, optimize=True)
        for i in range(3)
        for j in range(3)
    ]
    return numpy.stack(places, -1).reshape(*places[0].shape, 3, 3)


# Whole and partial lines of vectors, several lines in one, channels that fill no vectors, tiles partly outside, blocks
# of images, images smaller than a tile, and zeros on one side only.
@pytest.mark.parametrize(
    "n, i, o, h, w, top, left",
    [
        (12, 16, 16, 32, 32, 1, 1),
        (5, 24, 48, 16, 16, 1, 1),
        (8, 12, 29, 8, 8, 1, 1),
        (33, 16, 13, 4, 4, 1, 1),
        (3, 14, 40, 17, 30, 1, 1),
        (9, 32, 16, 7, 9, 0, 1),
        (4, 16, 32, 12, 19, 1, 0),
        (20, 15, 16, 3, 2, 1, 1),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"])
def test_gradient_by_weight(n, i, o, h, w, top, left, threads, cpu):
    h1, w1 = h + top - 1, w + left - 1
    text = GRADIENT.format(n=n, i=i, o=o, h=h, w=w, h1=h1, w1=w1, h2=h1 + 2, w2=w1 + 2, top=top, left=left)
    generator = numpy.random.default_rng(n * 100 + h)
    shapes = [(n, i, h, w), (n, o, h1, w1)]
    arrays = [generator.standard_normal(shape).astype(numpy.float32) for shape in shapes]
    passes = f"kas-attach-cpu-target{{cpu={cpu}}},kas-winograd{{threads={threads} min-parallel-time=0}}"
    module = kas.Module(text).run(passes)
    assert "linalg.generic" not in str(module)
    compiled = module.compile("f", threads=threads)
    exact = get_exact_gradient(*arrays, top, left)
    # A second call finds what the first one has left in its buffers.
    for _ in range(2):
        assert numpy.abs(compiled(*arrays) - exact).max() <= 5e-5 * numpy.abs(exact).max()
