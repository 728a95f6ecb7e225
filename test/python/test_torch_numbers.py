# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers beside tensors of every type, and tensors of one type beside another: what PyTorch gives."""

import operator
import warnings

import pytest
import torch

import kas.torch  # noqa: F401

KINDS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
FEW = ["bool", "uint8", "int32"]
NUMBERS = [-1, -2, 0, 1, 3, 127, 200, 256, -129, 1000, 70000, 2**31, 2**33, True, 0.5, -0.5, 2.0, -3.0, 1e10]
NUMBERS += [float("inf"), float("nan")]
OPERATIONS = {
    **{
        name: getattr(operator, name)
        for name in ["lt", "le", "gt", "ge", "eq", "ne", "add", "sub", "mul", "floordiv", "mod", "lshift", "rshift"]
    },
    **{name: getattr(operator, name) for name in ["truediv", "and_", "or_", "xor"]},
    "from a number": lambda x, number: number - x,
    "quotient of a number": lambda x, number: number // x,
    "remainder of a number": lambda x, number: torch.remainder(number, x),
    "fmod": torch.fmod,
    "truncated": lambda x, number: torch.div(x, number, rounding_mode="trunc"),
    "at least": lambda x, number: x.clamp(min=number),
    "at most": lambda x, number: x.clamp(max=number),
    "where": lambda x, number: torch.where(x > 0, x, number),
    "masked": lambda x, number: x.masked_fill(x > 0, number),
    "filled": lambda x, number: torch.full_like(x, number),
    "threshold": lambda x, number: torch.nn.functional.threshold(x, number, 2),
    "isin": torch.isin,
    "less than a tensor": lambda x, number: x < torch.tensor(number),
    "plus a tensor": lambda x, number: x + torch.tensor(number),
    "largest": lambda x, number: torch.maximum(x, torch.tensor(number)),
    "alpha": lambda x, number: torch.add(x, x, alpha=number),
}


def make_data(kind):
    dtype = getattr(torch, kind)
    numbers = [0, 1, 2, 3, 5, 100, 127, 7, 64]
    numbers += [200, 255] if kind == "uint8" else [-1, -7, 120] if kind != "bool" else []
    return torch.tensor(numbers).to(dtype)


def check(kind, name):
    if kind == "bool" and name in ("lshift", "rshift"):
        return  # PyTorch has them of tensors with values alone
    data, operation = make_data(kind), OPERATIONS[name]
    numbers, expected = [], []
    for number in NUMBERS:
        try:
            expected.append(operation(data, number))
        except (RuntimeError, OverflowError, TypeError):
            continue  # an error of PyTorch, too
        numbers.append(number)
    if not numbers:
        return
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is left to PyTorch
        results = torch.compile(lambda x: [operation(x, number) for number in numbers], backend="kas")(data)
    for number, wanted, result in zip(numbers, expected, results, strict=True):
        assert result.dtype == wanted.dtype, (kind, name, number)
        tolerance = {torch.float16: 1e-3, torch.bfloat16: 1e-2}.get(wanted.dtype, 1e-5)
        torch.testing.assert_close(
            *(result, wanted),
            **{"rtol": tolerance, "atol": 1e-37, "equal_nan": True},
            msg=f"{kind} {name} {number}: {result} instead of {wanted}",
        )


@pytest.mark.parametrize("kind", FEW)
def test_numbers(kind):
    for name in OPERATIONS:
        check(kind, name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in FEW])
def test_numbers_of_other_types(kind):
    for name in OPERATIONS:
        check(kind, name)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("shift", [operator.lshift, operator.rshift])
def test_shifts_by_tensors(kind, shift):
    """A count outside of the bits is no undefined result."""
    data = make_data(kind)
    counts = torch.tensor([0, 1, 2, 7, 8, 31, 32, 63, 64, -1, -2, 33]).to(data.dtype)[: len(data)]
    torch._dynamo.reset()
    for one, other in ((data, counts), (data[:, None], counts), (data, counts[3])):
        assert torch.equal(torch.compile(shift, backend="kas")(one, other), shift(one, other))


@pytest.mark.parametrize("kind", ["bool", "uint8", "int8", "int64", "float16"])
def test_comparisons_of_two_types(kind):
    data, others = make_data(kind)[:6], []
    for other in KINDS:
        numbers = make_data(other).flip(0)
        others += [numbers[:6], numbers[0], numbers[-1]]

    def compare(x, *others):
        return [result for y in others for result in (x < y, x <= y, x == y, x != y, x > y, x >= y)]

    expected = compare(data, *others)
    for number, result in enumerate(torch.compile(compare, backend="kas")(data, *others)):
        assert torch.equal(result, expected[number]), (kind, others[number // 6], number % 6)
