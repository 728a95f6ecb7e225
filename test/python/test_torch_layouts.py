# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in memory of what compiled networks give to callers, and to operations that stay with PyTorch."""

import copy

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import kas.torch  # noqa: E402, F401
from kas.torch._layouts import find_order  # noqa: E402


@pytest.fixture(autouse=True)
def forget():
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(
    ("tensor", "order"),
    [
        (torch.empty(2, 3), (0, 1)),
        (torch.empty(3, 2).t(), (1, 0)),
        (torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last), (0, 2, 3, 1)),
        (torch.empty(()), ()),
        (torch.empty(2, 4)[:, ::2], None),
        (torch.empty(2, 1).expand(2, 3), None),
        (torch.empty(0, 3), None),
    ],
)
def test_orders_of_dense_tensors(tensor, order):
    assert find_order(tensor) == order


NETWORKS = {
    "convolution": (lambda: nn.Conv2d(3, 4, 3), (2, 3, 6, 6)),
    "of rows": (lambda: nn.Conv1d(3, 4, 3), (2, 3, 8)),
    "transposed": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2), (2, 3, 4, 4)),
    "linear": (lambda: nn.Linear(6, 5), (2, 3, 6)),
    "recurrent": (lambda: nn.LSTM(4, 5, batch_first=True), (2, 3, 4)),
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)),
}


@pytest.mark.parametrize(
    ("name", "is_last"),
    [(name, False) for name in NETWORKS] + [("convolution", True), ("transposed", True)],
)
def test_results_and_gradients_have_the_strides_of_pytorch(name, is_last):
    make, shape = NETWORKS[name]
    network, data = make(), torch.randn(shape)
    if is_last:
        data = data.to(memory_format=torch.channels_last)

    def compute(network):
        given = data.clone().requires_grad_()
        result = network(given)
        result = result[0] if isinstance(result, tuple) else result
        gradients = torch.autograd.grad(result.square().sum(), [given, *network.parameters()])
        return [result, *gradients]

    expected = compute(network)
    for got, wanted in zip(compute(torch.compile(copy.deepcopy(network), backend="kas")), expected):
        assert got.stride() == wanted.stride()
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-4)


def test_kernels_of_pytorch_that_ignore_strides_get_rows():
    # The gradient of the convolution is a transpose where it is decomposed, and PyTorch's of the norm reads rows.
    network = nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 3))
    data = torch.randn(2, 3, 9)
    gradients = []
    for tried in (network, torch.compile(copy.deepcopy(network), backend="kas")):
        gradients.append(torch.autograd.grad(tried(data).square().sum(), list(tried.parameters())))
    for got, wanted in zip(*gradients):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-3)


def test_operations_of_users_get_the_strides_that_pytorch_gives():
    seen = []

    @torch.library.custom_op("kas_test_layouts::look", mutates_args=())
    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.stride())
        return x.clone()

    @look.register_fake
    def _(x):
        return torch.empty_like(x)

    def compute(x, weight):
        (gradient,) = torch.autograd.grad(F.conv2d(x, weight).square().sum(), weight)
        return look(gradient) * 2

    x, weight = torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3, requires_grad=True)
    expected = compute(x, weight)
    results = F.conv2d(x, weight.detach()) * 2

    def backward(x, weight, results):
        gradient = torch.ops.aten.convolution_backward(
            results, x, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [False, True, False]
        )[1]
        return look(gradient) * 2

    with torch.no_grad():
        got = torch.compile(backward, backend="kas")(x, weight.detach(), results)
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)
    assert seen[0] == seen[1] == (27, 9, 3, 1)
