# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of compiled functions that share memory with arguments or with each other, as PyTorch's do."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import kas.torch  # noqa: E402, F401


def split(x):
    return (*x.split([1, x.shape[0] - 1]), x + 1)


def branch(x):
    y = x + 1
    return y.t(), y[::2], y, y.diagonal(), y.unsqueeze(1).expand(-1, 2, -1)


FUNCTIONS = {
    "split": split,
    "chunk": lambda x: (*x.chunk(2, 1), x + 1),
    "unbind": lambda x: (*x.unbind(), x + 1),
    "steps": lambda x: (x[::2], x.t()[1:, ::2], x[1:], x + 1),
    "expand": lambda x: (x.expand(2, *x.shape), x.squeeze(), x + 1),
    "select": lambda x: (x.select(0, 1), x[:, -1], x.diagonal(), x.unfold(0, 2, 1), x + 1),
    "reshape": lambda x: (x.unsqueeze(1), x.reshape(-1), x.t().reshape(-1), x + 1),
    "only": lambda x: (x.t(), x[1:]),
    "branch": branch,
    "change": lambda x: (x.t().add_(1), x[::2]),
}
LAYOUTS = {
    "rows": lambda n: torch.arange(4.0 * n).reshape(n, 4),
    "columns": lambda n: torch.arange(4.0 * n).reshape(4, n).t(),
    "steps": lambda n: torch.arange(8.0 * n).reshape(2 * n, 4)[::2],
    "part": lambda n: torch.arange(4.0 * n + 8)[2 : 4 * n + 2].reshape(n, 4),
}


def find_shared(tensors):
    """Which of them have one memory, and where in it they begin."""
    begins = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    return [(begins.index(begin), tensor.storage_offset()) for begin, tensor in zip(begins, tensors)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_views(name):
    """Of one size, of any size, and of a second and third size, after which PyTorch asks for any."""
    call = FUNCTIONS[name]
    for dynamic, sizes in ((None, (3, 3, 5, 6)), (True, (4, 3))):
        for layout, make in LAYOUTS.items():
            torch._dynamo.reset()
            compiled = torch.compile(call, backend="kas", dynamic=dynamic)
            for size in sizes:
                given, taken = make(size), make(size)
                expected, results = call(given), compiled(taken)
                where = f"{layout}, {size}, dynamic={dynamic}"
                torch.testing.assert_close(results, expected, rtol=0, atol=0, msg=where)
                torch.testing.assert_close(taken, given, rtol=0, atol=0, msg=where)
                assert [r.stride() for r in results] == [e.stride() for e in expected], where
                assert find_shared([taken, *results]) == find_shared([given, *expected]), where


@pytest.mark.parametrize("dynamic", [None, True])
def test_views_of_channels_last(dynamic):
    """With gradients PyTorch makes views of a result again, which is another one where the layouts differ."""
    weight = torch.randn(8, 3, 3, 3)

    def call(x):
        y = torch.nn.functional.conv2d(x, weight, padding=1)
        return y.permute(0, 2, 3, 1), y.flatten(2), y.flatten(2).transpose(1, 2), x.flip(1), x.unbind(1), y[:, 1:]

    torch._dynamo.reset()
    compiled = torch.compile(call, backend="kas", dynamic=dynamic)
    for size in (2, 3, 5):
        x = torch.randn(size, 3, 7, 9).contiguous(memory_format=torch.channels_last)
        given, taken = x.clone().requires_grad_(), x.clone().requires_grad_()
        expected, results = call(given), compiled(taken)
        torch.testing.assert_close(results, expected)
        for outputs in (expected, results):
            leaves = torch.utils._pytree.tree_leaves(outputs)
            sum((tensor * torch.linspace(0, 1, tensor.shape[-1])).mean() for tensor in leaves).backward()
        torch.testing.assert_close(taken.grad, given.grad)


def test_a_part_of_what_is_large_is_computed_alone():
    """Memory is shared where that keeps no more of it."""

    def call(x):
        return (x @ x.t())[:1]

    x = torch.randn(64, 64)
    (result,) = [torch.compile(call, backend="kas")(x)]
    torch.testing.assert_close(result, call(x))
    assert result.untyped_storage().nbytes() == 64 * 4


def test_views_keep_memory_that_is_used_again():
    compiled = torch.compile(branch, backend="kas", mode="reduce-overhead")
    kept = [(compiled(x)[:2], branch(x)[:2]) for x in torch.arange(64.0).reshape(4, 4, 4)]
    for results, expected in kept:
        torch.testing.assert_close(results, expected, rtol=0, atol=0)


def test_views_from_the_cache():
    def call(x):
        return (*split(x.sin()), *split(x))

    for _ in range(2):
        torch._dynamo.reset()
        x = torch.randn(5, 3)
        results = torch.compile(call, backend="kas")(x)
        torch.testing.assert_close(results, call(x))
        assert find_shared([x, *results]) == find_shared([x, *call(x)])


def test_arguments_that_swap_their_values():
    def swap(a, b):
        old = a.clone()
        a.copy_(b)
        b.copy_(old)
        return a + b, b[1:]

    torch._dynamo.reset()
    given = [torch.randn(3, 4), torch.randn(3, 4)]
    expected = [tensor.clone() for tensor in given]
    compiled = torch.compile(swap, backend="kas")
    for _ in range(2):
        with torch.no_grad():
            results = (*compiled(*given), *given)
            wanted = (*swap(*expected), *expected)
        for got, value in zip(results, wanted):
            torch.testing.assert_close(got, value)
