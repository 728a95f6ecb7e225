# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions whose products may be of bf16."""

import numpy
import pytest

import kas

MODULE = """
func.func @f(%x: tensor<64x128xf32>, %w: tensor<128x96xf32>) -> tensor<64x96xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x128xf32>, tensor<128x96xf32>) outs(%init : tensor<64x96xf32>)
    -> tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}
"""


def round_to_bf16(array):
    """The nearest values with 8 bits."""
    bits = array.view(numpy.uint32).astype(numpy.uint64)
    bits += 0x7FFF + (bits >> 16 & 1)
    return (bits & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)


def run(precision, x, w):
    y = numpy.empty((64, 96), numpy.float32)
    call = kas.Module(MODULE).compile("f", threads=1, prepack_weights=True, precision=precision).bind(x, w, out=y)
    call.prepack()
    call()
    return y


def test_products_are_exact_or_of_rounded_factors():
    generator = numpy.random.default_rng(0)
    x, w = (generator.standard_normal(shape, numpy.float32) for shape in ((64, 128), (128, 96)))
    expected = [a.astype(numpy.float64) @ b for a, b in ((x, w), (round_to_bf16(x), round_to_bf16(w)))]
    errors = [numpy.abs(run("bf16", x, w) - y).max() for y in expected]
    # The second one where the processor has instructions for bf16.
    assert min(errors) < 1e-4
    assert numpy.abs(run("f32", x, w) - expected[0]).max() < 1e-4


def test_small_integers_are_exact():
    generator = numpy.random.default_rng(1)
    x, w = (generator.integers(-100, 100, shape).astype(numpy.float32) for shape in ((64, 128), (128, 96)))
    assert (run("bf16", x, w) == x @ w).all()


def test_errors():
    with pytest.raises(ValueError, match="precision requires 'f32' or 'bf16', got 'f16'"):
        kas.Module(MODULE).compile("f", precision="f16")
    with pytest.raises(ValueError, match="check='exact' requires precision='f32', got 'bf16'"):
        kas.Module(MODULE).compile("f", precision="bf16", check="exact")
