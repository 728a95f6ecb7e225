# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Statistics of kas.batch_norm in f32 against those in f64."""

import numpy
import pytest

import kas

MODULE = """
func.func @f(%x: tensor<{shape}xf32>, %s: tensor<{c}xf32>, %o: tensor<{c}xf32>)
    -> (tensor<{shape}xf32>, tensor<{c}xf32>, tensor<{c}xf32>) {{
  %y, %mean, %variance = kas.batch_norm %x, %s, %o epsilon 1.0e-05 : tensor<{shape}xf32>, tensor<{c}xf32>
  return %y, %mean, %variance : tensor<{shape}xf32>, tensor<{c}xf32>, tensor<{c}xf32>
}}
"""


# Images, lines that are no multiple of a vector, one place, no places.
@pytest.mark.parametrize("shape", [(16, 3, 16, 16), (5, 4, 7, 7), (8, 3, 1, 1), (6, 5), (4, 3, 9)])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mean", [0, 1000])
def test_statistics(shape, threads, mean):
    generator = numpy.random.default_rng(sum(shape))
    data = (generator.standard_normal(shape) + mean).astype(numpy.float32)
    # Each sample has a mean of its own, and the place in the middle is far from the others.
    data += generator.standard_normal(shape[:1] + (1,) * (len(shape) - 1)).astype(numpy.float32)
    if len(shape) == 4:
        data[:, :, shape[2] // 2, shape[3] // 2] += 10
    channels = shape[1]
    scale, offset = generator.standard_normal((2, channels)).astype(numpy.float32)
    text = MODULE.format(shape="x".join(map(str, shape)), c=channels)
    result, means, variances = kas.Module(text).compile("f", threads=threads)(data, scale, offset)
    others = (0, *range(2, len(shape)))
    exact = data.astype(numpy.float64)
    numpy.testing.assert_allclose(means, exact.mean(others), rtol=1e-6, atol=1e-6)
    # A difference of 1000 and a mean that is rounded to f32 costs some bits where each row has one element.
    numpy.testing.assert_allclose(variances, exact.var(others), rtol=5e-5 if mean == 0 else 1e-4)
    broadcast = (1, channels, *[1] * (len(shape) - 2))
    expected = (exact - exact.mean(others, keepdims=True)) / numpy.sqrt(exact.var(others, keepdims=True) + 1e-5)
    expected = expected * scale.reshape(broadcast) + offset.reshape(broadcast)
    numpy.testing.assert_allclose(result, expected, atol=1e-4 if mean == 0 else 1e-3)
