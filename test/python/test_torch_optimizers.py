# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers under torch.compile with kas: all of a step is compiled, and it is PyTorch's."""

import copy

import pytest
import torch
from torch import nn, optim

import kas
import kas.torch

OPTIMIZERS = ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]
OPTIONS = [
    *((name, {"foreach": foreach}) for name in OPTIMIZERS for foreach in (False, True)),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {"amsgrad": True, "maximize": True, "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9, "centered": True}),
]


@pytest.mark.parametrize("name, options", OPTIONS)
def test_steps(name, options):
    torch._dynamo.reset()
    torch.manual_seed(0)
    kas.torch.explain()
    first = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    second = copy.deepcopy(first)
    one, other = (getattr(optim, name)(network.parameters(), **options) for network in (first, second))
    step = torch.compile(lambda: other.step(), backend="kas")
    for number in range(4):
        x = torch.randn(4, 5)
        for network in (first, second):
            network.zero_grad()
            network(x).square().sum().backward()
        one.step()
        step()
        for value, expected in zip(second.parameters(), first.parameters()):
            assert torch.allclose(value, expected, rtol=1e-3, atol=1e-5), number
    graphs = kas.torch.explain()
    assert graphs
    for graph in graphs:
        assert graph.reason is None and graph.parts == 1 and not graph.left, graph


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_operations_on_lists(dtype):
    """Those that are written otherwise on a tensor: with numbers, tensors and options by other names."""
    torch._dynamo.reset()
    torch.manual_seed(0)

    def compute(x, y):
        positive = torch._foreach_add(torch._foreach_abs(y), 1.0)
        return [
            torch._foreach_add(x, y, alpha=2),
            torch._foreach_add(x, [1.0, 2.0]),
            torch._foreach_mul(x, torch.tensor(3.0)),
            torch._foreach_addcmul(x, y, y, 0.5),
            torch._foreach_addcdiv(x, y, positive, [0.5, 0.6]),
            torch._foreach_lerp(x, y, 0.3),
            torch._foreach_lerp(x, y, y),
            torch._foreach_maximum(x, y),
            torch._foreach_maximum(x, float("nan")),
            torch._foreach_minimum(x, 0.1),
            torch._foreach_norm(x, 1),
            torch._foreach_pow(x, 2),
            torch._foreach_pow(2.0, x),
            torch._foreach_sign(x),
        ]

    def change(x, y):
        torch._foreach_add_(x, y, alpha=3)
        torch._foreach_copy_(y, x)
        torch._foreach_zero_(x[:1])
        return torch._foreach_neg(y)

    shapes = [(4, 6), (2,)]
    lists = tuple([torch.randn(shape).to(dtype) for shape in shapes] for _ in range(2))
    for call in (compute, change):
        kas.torch.explain()
        results = []
        for function in (call, torch.compile(call, backend="kas")):
            arguments = copy.deepcopy(lists)
            results.append([function(*arguments), arguments])
        for found, expected in zip(*(torch.utils._pytree.tree_leaves(result) for result in results)):
            assert found.dtype == expected.dtype
            assert torch.allclose(found, expected, rtol=1e-2, atol=1e-2, equal_nan=True)
        for graph in kas.torch.explain():
            assert graph.reason is None and not graph.left, graph
