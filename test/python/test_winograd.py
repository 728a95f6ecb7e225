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
