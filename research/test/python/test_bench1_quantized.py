# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of KAS-Bench-1 whose layers multiply int8."""

import numpy
import pytest

import kas
from kas._quantize import measure_ranges


@pytest.mark.parametrize("count", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_found_operators_are_exact(table, count):
    """Random operators of KAS-Bench-1 on bytes equal the evaluator bit by bit, where all numbers are integers.

    Stages after the first one read sums, which bytes do not hold exactly: they stay f32, and round large sums.
    """
    binding = {"N": 2, "Cin": 16, "Cout": 16, "H": 4, "k1": 3, "k2": 4, "s": 2, "g": 8}
    generator = numpy.random.default_rng(count)
    exact = quantized = 0
    for number in generator.permutation(len(table))[:count]:
        operator = table[number].operator
        own = {name: binding[name] for name in (*operator.symbols[0], *operator.symbols[1])}
        shapes = operator.shapes(own)
        x = generator.integers(0, 4, shapes.data).astype(numpy.float32)
        # The step of a weight is 1.
        weights = [generator.choice([-127, 127], shape).astype(numpy.float32) for shape in shapes.weights]
        types = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (shapes.data, *shapes.weights, shapes.output)]
        arguments = [f"%argument{number}" for number in range(len(types) - 1)]
        module = kas.parse(
            f"{operator.alone()}\n"
            f"func.func @forward({', '.join(map(': '.join, zip(arguments, types)))}) -> {types[-1]} {{\n"
            f"  %result = kas.apply @{operator.name}<{', '.join(f'{name} = {value}' for name, value in own.items())}>"
            f"({', '.join(arguments)})\n      : ({', '.join(types[:-1])}) -> {types[-1]}\n"
            f"  return %result : {types[-1]}\n}}\n"
        )
        # Stages for new weights: products of weights have other steps.
        module.run("kas-specialize,kas-rfactor")
        try:
            ranges = measure_ranges(module, [x], weights)
        except kas.Error as error:
            # Nothing is summed over channels.
            assert "requires a function with layers" in str(error)
            continue
        if ranges[0][0] < 0 or ranges[0][1] > 255:
            continue
        options = f"ranges={','.join(['0,255'] * len(ranges))}"
        if len(ranges) > 1:
            options += f" kept={','.join(map(str, range(1, len(ranges))))}"
        on_bytes = module.run(f"kas-to-linalg,kas-quantize{{{options}}}")
        assert str(on_bytes).count("arith.extui") == 1
        found = on_bytes.compile("forward", threads=1)(x, *weights)
        expected = operator.evaluate(own, x, *weights)
        largest = numpy.abs(expected).max()
        label = f"operator {number}, seed {count}"
        if largest < 2**24 and len(ranges) == 1:
            assert numpy.array_equal(found, expected), label
            exact += 1
        else:
            assert numpy.abs(found - expected).max() <= 1e-5 * largest, label
        quantized += 1
    assert exact >= 0.1 * count
    assert quantized >= 0.4 * count
