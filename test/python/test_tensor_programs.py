# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline for CPUs on programs of others: random ones beside NumPy, and those that were once wrong."""

import numpy
import pytest
from tensor_programs import make_example

import kas


def run(text, arguments, *, threads, prepack_weights):
    call = kas.Module(text).compile("f", threads=threads, prepack_weights=prepack_weights).bind(*arguments)
    call.prepack()
    results = call()
    return results if isinstance(results, list) else [results]


def check(seed):
    example = make_example(seed)
    results = run(
        example.text,
        [numpy.array(array, order="C") for array in example.arguments],
        threads=1 + seed % 2,
        prepack_weights=seed % 3 == 0,
    )
    for number, (result, expected) in enumerate(zip(results, example.results, strict=True)):
        assert result.dtype == expected.dtype and numpy.array_equal(result, expected), (
            f"result {number} of program {seed} is wrong:\n{example.text}"
        )


@pytest.mark.parametrize("start", range(0, 120, 30))
def test_programs(start):
    for seed in range(start, start + 30):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1_000, 11_000, 100))
def test_many_programs(start):
    for seed in range(start, start + 100):
        check(seed)


def test_programs_are_determined_by_the_seed():
    one, other = make_example(7), make_example(7)
    assert one.text == other.text and all(map(numpy.array_equal, one.results, other.results))


@pytest.mark.parametrize("chosen", [True, False])
def test_weights_that_a_condition_chooses(chosen):
    """What is computed from weights alone is prepacked, unless it is read by another name."""
    text = """
func.func @f(%x: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %e = tensor.extract %x[%first] : tensor<2xf32>
  %p = arith.cmpf ogt, %e, %zero : f32
  %n = arith.negf %w : tensor<2xf32>
  %y = scf.if %p -> (tensor<2xf32>) {
    %t = arith.addf %n, %w : tensor<2xf32>
    scf.yield %t : tensor<2xf32>
  } else {
    scf.yield %n : tensor<2xf32>
  }
  return %y : tensor<2xf32>
}"""
    x, w = numpy.array([1, 1] if chosen else [-1, -1], numpy.float32), numpy.array([2, 3], numpy.float32)
    (result,) = run(text, [x, w], threads=1, prepack_weights=True)
    assert numpy.array_equal(result, 0 * w if chosen else -w)


def test_slices_that_drop_dimensions_by_stride():
    text = """
func.func @f(%x: tensor<17x1x17xf32>, %y: tensor<3x4x1xf32>) -> (tensor<4x1xf32>, tensor<17x1x17xf32>) {
  %0 = tensor.extract_slice %x[2, 0, 14] [4, 1, 1] [3, 1, 2] : tensor<17x1x17xf32> to tensor<4x1xf32>
  %1 = tensor.extract_slice %y[2, 0, 0] [1, 2, 1] [1, 3, 3] : tensor<3x4x1xf32> to tensor<2x1xf32>
  %2 = tensor.insert_slice %1 into %x[3, 0, 5] [2, 1, 1] [7, 1, 1] : tensor<2x1xf32> into tensor<17x1x17xf32>
  return %0, %2 : tensor<4x1xf32>, tensor<17x1x17xf32>
}"""
    x = numpy.arange(289, dtype=numpy.float32).reshape(17, 1, 17)
    y = -numpy.arange(1, 13, dtype=numpy.float32).reshape(3, 4, 1)
    inserted = x.copy()
    inserted[3:11:7, 0, 5] = y[2, 0::3, 0]
    results = run(text, [x, y], threads=1, prepack_weights=False)
    assert numpy.array_equal(results[0], x[2:12:3, :, 14]) and numpy.array_equal(results[1], inserted)
