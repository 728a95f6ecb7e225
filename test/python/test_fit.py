# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators whose weights are fitted to layers, and operators of rows in the place of layers of tokens."""

import pytest
import torch
from torch import nn

import kas
import kas.torch


class Tokens(nn.Module):
    """Two layers of tokens with something between them."""

    def __init__(self, bias=True):
        super().__init__()
        self.up, self.down = nn.Linear(24, 48, bias=bias), nn.Linear(48, 24, bias=bias)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))


@pytest.fixture
def network():
    torch.manual_seed(1)
    return Tokens()


def substitute(network, example, name, **coefficients):
    return kas.torch.substitute(
        network, kas.operator(name), example=example, binding=coefficients, backend="pytorch", strict=False
    )


@pytest.mark.parametrize("backend", ["compiled", "pytorch"])
def test_rows_of_tokens(network, backend):
    """A row operator takes data of any rank, as `nn.Linear` does."""
    example = torch.randn(2, 3, 24)
    other = kas.torch.substitute(
        network, kas.operator("linear_monarch"), example=example, binding={"g": 4, "p": 2}, backend=backend
    )
    assert isinstance(other.up, kas.torch.KasModule)
    with torch.no_grad():
        other.up.bias.normal_()
    output = other(example)
    assert output.shape == (2, 3, 24)
    rows = other(example.reshape(6, 24))
    assert torch.allclose(output, rows.reshape(2, 3, 24), atol=1e-6)
    assert torch.allclose(other(example[:, None]), output[:, None], atol=1e-6)
    output.square().sum().backward()
    assert all(parameter.grad is not None for parameter in other.parameters())


def test_lines_of_images_are_no_rows():
    network, example = nn.Conv1d(6, 6, 3, padding=1), torch.randn(2, 6, 6)
    with pytest.raises(ValueError, match="requires rank 2 for the data, got 3"):
        kas.torch.substitute(network, kas.operator("linear"), example=example)


@pytest.mark.parametrize("rows", [5, 200])
def test_low_rank_is_that_of_the_largest_singular_values(network, rows):
    """Eckart and Young: nothing of that rank is nearer, for the rows that the layer sees."""
    data = torch.randn(4, rows, 24) @ torch.randn(24, 24)
    other = substitute(network, data[:1], "linear_low_rank", r=4)
    errors = kas.torch.fit(other, network, data, tolerance=1e-5, rounds=200)
    with torch.no_grad():
        seen = {"up": data.flatten(0, 1), "down": torch.nn.functional.gelu(network.up(data)).flatten(0, 1)}
        for name, rows_seen in seen.items():
            layer, module = getattr(network, name), getattr(other, name)
            target = rows_seen @ layer.weight.T
            values = torch.linalg.svdvals(target)
            best = float(values[4:].square().sum().sqrt() / values.norm())
            actual = float((module(rows_seen) - module.bias - target).norm() / target.norm())
            assert errors[name] == pytest.approx(actual, rel=0.02, abs=1e-3)
            assert best * 0.999 <= actual <= best * 1.02 + 1e-3
            deviations = [float(weight.square().mean().sqrt()) for weight in module.weights]
            assert deviations[0] == pytest.approx(deviations[1], rel=1e-3)
            assert module.bias is not layer.bias or torch.equal(module.bias, layer.bias)


def test_the_same_operator_is_exact():
    torch.manual_seed(2)
    network = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1))
    data = torch.randn(8, 3, 6, 6)
    other = kas.torch.substitute(network, kas.operator("conv2d"), example=data, backend="pytorch", binding={"k": 3})
    errors = kas.torch.fit(other, network, [data[:4], data[4:]])
    assert set(errors) == {"0", "2"}
    assert max(errors.values()) < 1e-3
    with torch.no_grad():
        assert torch.allclose(other(data), network(data), atol=1e-3)


def test_monarch_comes_nearer_by_the_fit(network):
    data = torch.randn(64, 24)
    other = substitute(network, data, "linear_monarch", g=2, p=2)
    errors = kas.torch.fit(other, network, data)
    assert all(0.1 < error < 0.9 for error in errors.values())


def test_layers_that_see_zeros():
    """Nothing to come near to: the error is 0, and weights stay numbers."""
    data = torch.zeros(100, 24)
    network = Tokens(bias=False)
    other = substitute(network, data, "linear_monarch", g=2, p=2)
    assert set(kas.torch.fit(other, network, data).values()) == {0.0}
    assert all(parameter.isfinite().all() for parameter in other.parameters())


def test_the_original_stays_as_it_was(network):
    network.train()
    network.up.eval()
    data = torch.randn(64, 24)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    kas.torch.fit(substitute(network, data, "linear_monarch", g=2, p=2), network, data)
    assert network.training and not network.up.training and network.down.training
    assert not network.up._forward_hooks and not network.down._forward_hooks
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_bad_input(network):
    data = torch.randn(4, 24)
    other = substitute(network, data, "linear_monarch", g=2, p=2)
    with pytest.raises(ValueError, match="requires a network with operators"):
        kas.torch.fit(network, network, data)
    with pytest.raises(ValueError, match="requires a convolution or linear layer 'up' in the original, got none"):
        kas.torch.fit(other, nn.Sequential(), data)
    with pytest.raises(ValueError, match="requires data for which the original runs its layer 'up'"):
        kas.torch.fit(other, network, [])
    for rows in (4, 100):
        with pytest.raises(ValueError, match="requires finite data of the layer 'up', got infinity"):
            kas.torch.fit(other, network, torch.full((rows, 24), float("inf")))
