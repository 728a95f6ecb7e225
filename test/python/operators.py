# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators and inputs for the tests."""

import functools
import itertools
import json
import os
import subprocess

import numpy

import kas


@functools.cache
def small_binding(name):
    """A small binding at which the named operator is legal."""
    op = kas.operator(name)
    primaries, coefficients = op.symbols
    fixed = {symbol: value for symbol, value in zip(primaries, itertools.cycle((2, 8, 4, 8, 8)))}
    fixed.update({symbol: 2 for symbol in ("N", "B") if symbol in fixed})
    for scale in (1, 2):
        for values in itertools.product((3, 2, 1, 4), repeat=len(coefficients)):
            binding = {symbol: value * (1 if value == 2 else scale) for symbol, value in fixed.items()}
            binding.update(zip(coefficients, values))
            try:
                op.cost(binding)
            except kas.Error:
                continue
            return binding
    raise AssertionError(f"no small binding of {name}")


@functools.cache
def random_operators(count, seed=0):
    """(operator, binding) of random operators."""
    tool = os.path.join(os.environ["KAS_BUILD"], "bin", "kas-random-operators")
    lines = subprocess.check_output([tool, f"--count={count}", f"--seed={seed}"], text=True).splitlines()
    entries = [json.loads(line) for line in lines]
    assert len(entries) == count
    return [(kas.parse(entry["text"], entry["name"])[entry["name"]], entry["binding"]) for entry in entries]


def random_kernels(count, seed=0, max_elements=256):
    """Random kernels; each has a binding of its own."""
    tool = os.path.join(os.environ["KAS_BUILD"], "bin", "kas-random-operators")
    command = [tool, "--kernels", f"--count={count}", f"--seed={seed}", f"--max-elements={max_elements}"]
    entries = [json.loads(line) for line in subprocess.check_output(command, text=True).splitlines()]
    assert len(entries) == count
    return [kas.parse(entry["text"], entry["name"]).kernels[entry["name"]] for entry in entries]


def named_cases():
    return [(kas.operator(name), small_binding(name)) for name in kas.named_operators()]


def make_arrays(op, binding, seed=0):
    generator = numpy.random.default_rng(seed)
    shapes = op.shapes(binding)
    return [generator.standard_normal(shape, dtype=numpy.float32) for shape in (shapes.data, *shapes.weights)]


def relative_error(actual, expected):
    """The largest difference over the largest magnitude."""
    actual, expected = numpy.asarray(actual, dtype=float), numpy.asarray(expected, dtype=float)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    scale = numpy.abs(expected).max(initial=0)
    return numpy.abs(actual - expected).max(initial=0) / (scale if scale > 0 else 1)
