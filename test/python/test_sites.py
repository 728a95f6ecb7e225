# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of networks: which are found, and operators in their place."""

import numpy
import pytest
import torch
from torch import nn

import kas
import kas.torch
from kas.zoo._layers import SEQUENCES


class Block(nn.Module):
    """A residual block after a stem, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.first = nn.Conv2d(8, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding="same", bias=False)
        self.down = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.point = nn.Conv2d(16, 16, 1)
        self.grouped = nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.dilated = nn.Conv2d(16, 16, 3, padding=2, dilation=2)
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x)))
        x = torch.relu(self.second(self.first(x)) + x)
        x = self.depthwise(self.grouped(self.point(self.down(x))))
        return self.fc(torch.relu(self.dilated(x)).mean((2, 3)))


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return Block()


@pytest.fixture(scope="module")
def example():
    torch.manual_seed(1)
    return torch.randn(2, 3, 8, 6)


@pytest.fixture(scope="module")
def sites(network, example):
    return kas.torch.extract(network, example)


def test_extract(network, sites):
    assert {name: site.space for name, site in sites.sites.items()} == {
        "stem": "conv2d_stem",
        "first": "conv2d",
        "second": "conv2d",
        "down": "conv2d_strided",
        "point": "conv1x1",
        "grouped": "conv2d_grouped",
        "depthwise": "conv2d_depthwise",
        "dilated": "conv2d_dilated",
        "fc": "linear",
    }
    conv = sites.spaces["conv2d"]
    assert conv.bindings == [{"N": 2, "Cin": 8, "Cout": 8, "H": 8, "W": 6, "g": 4, "k": 3}]
    assert conv.multiplicities == [2] and conv.named_operator == "kas.conv2d"
    for space in sites.spaces.values():
        mine = [site for site in sites.sites.values() if site.space == space.name]
        assert space.baseline["flops"] == sum(site.flops for site in mine)
        assert space.baseline["params"] == sum(site.parameters for site in mine)
        for site in mine:
            assert site.binding in space.bindings
    down = sites.sites["down"]
    assert down.data_shape == (2, 8, 8, 6) and down.output_shape == (2, 16, 4, 3)
    assert down.flops == 2 * 2 * 16 * 4 * 3 * 8 * 9 and down.parameters == 16 * 8 * 9
    # What the engine reads.
    assert sites.module.symbols.keys() == sites.spaces.keys()
    assert network.training and not network.first._forward_hooks


def test_named_operators_compute_what_the_layers_compute(network, example, sites):
    """With the weights of the layers, the network stays the same."""
    other = network
    for name, space in sites.spaces.items():
        chosen = [site for site in sites.sites.values() if site.space == name]
        other = kas.torch.substitute(other, kas.operator(space.named_operator), chosen)
    replaced = dict(other.named_modules())
    for name in sites.sites:
        old, new = dict(network.named_modules())[name], replaced[name]
        assert isinstance(new, kas.torch.KasModule)
        assert new.weight0.numel() == old.weight.numel()
        new.weight0.data.copy_(old.weight.detach().reshape(new.weight0.shape))
        assert (new.bias is None) == (old.bias is None)
    # The statistics of batch norms are part of the copy.
    assert torch.allclose(other.eval()(example), network.eval()(example), atol=1e-5)
    network.train()
    assert not any(isinstance(module, kas.torch.KasModule) for module in network.modules())


def test_substitute_trains(network, example, sites):
    torch.manual_seed(2)
    other = kas.torch.substitute(network, kas.operator("conv2d_depthwise_separable"), sites, space="conv2d")
    assert isinstance(other.first, kas.torch.KasModule) and isinstance(other.down, nn.Conv2d)
    assert torch.equal(other.first.bias, network.first.bias)
    other(example).square().sum().backward()
    assert all(parameter.grad is not None for parameter in other.parameters())
    assert all(parameter.grad is None for parameter in network.parameters())


@pytest.mark.parametrize("name", ["conv2d_depthwise_separable", "conv2d_grouped", "syno_operator2", "conv1x1"])
@pytest.mark.parametrize("stride", [2, (1, 2), (2, 4)])
def test_layers_with_strides_take_operators_of_stride_1(name, stride):
    torch.manual_seed(3)
    network, data = nn.Conv2d(16, 32, 3, stride, 1), torch.randn(2, 16, 8, 8)
    operator = kas.operator(name)
    given = {symbol: value for symbol, value in {"k": 3, "g": 4, "s": 2}.items() if symbol in operator.symbols[1]}
    few = kas.torch.substitute(network, operator, example=data, binding=given)
    all_points = kas.torch.KasModule(operator, {"N": 2, "Cin": 16, "Cout": 32, "H": 8, "W": 8, **given}, bias_dim=1)
    all_points.load_state_dict(few.state_dict())
    rows, columns = stride if isinstance(stride, tuple) else (stride, stride)
    assert torch.allclose(few(data), all_points(data)[:, :, ::rows, ::columns], atol=1e-5)


def test_selection(network, example, sites):
    # The space that the operator was found for.
    found = kas.parse(str(kas.operator("conv2d")).replace("{", 'attributes {kas.origin = "conv2d_stem"} {', 1))[
        "conv2d"
    ]
    other = kas.torch.substitute(network, found, sites)
    assert [name for name, m in other.named_modules() if isinstance(m, kas.torch.KasModule)] == ["stem"]
    # A sequence is found in a space of sequences for the layers of a space.
    text = f'{SEQUENCES["depthwise-separable"].rstrip()} attributes {{kas.origin = "conv2d_sequences"}}'
    other = kas.torch.substitute(network, next(iter(kas.parse(text).sequences.values())), sites, binding={"k": 3})
    assert [name for name, m in other.named_modules() if isinstance(m, kas.torch.SequenceModule)] == ["first", "second"]
    # All that it fits.
    other = kas.torch.substitute(network, kas.operator("conv2d"), example=example, backend="pytorch")
    names = [name for name, m in other.named_modules() if isinstance(m, kas.torch.KasModule)]
    assert names == ["stem", "first", "second", "down", "grouped", "depthwise", "dilated"]
    # Not all that were named.
    operator = kas.operator("conv2d")
    both = [sites.sites["first"], sites.sites["point"]]
    with pytest.raises(ValueError, match="does not fit these layers:\n  point: requires a value for symbol 'k'"):
        kas.torch.substitute(network, operator, both)
    other = kas.torch.substitute(network, operator, both, strict=False)
    assert isinstance(other.first, kas.torch.KasModule) and isinstance(other.point, nn.Conv2d)
    # Sizes that are no multiple of each other.
    odd = nn.Conv2d(8, 8, 3, stride=2, padding=1)
    with pytest.raises(ValueError, match="keep the size, or divide it by the stride"):
        kas.torch.substitute(odd, operator, example=torch.randn(1, 8, 7, 7))
    other = kas.torch.substitute(network, operator, [sites.sites["point"]], binding={"k": 5})
    assert other.point.weight0.shape == (16, 16, 5, 5)


def test_shared_layers_and_layers_without_a_name():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = self.b = nn.Conv1d(8, 8, 3, padding=1)

        def forward(self, x):
            return self.b(self.a(x))

    x = torch.randn(1, 8, 10)
    sites = kas.torch.extract(Twice(), x)
    assert sites.sites["a"].calls == 2 and sites.spaces["conv1d"].multiplicities == [2]
    other = kas.torch.substitute(Twice(), kas.operator("conv1d"), sites)
    assert other.a is other.b and isinstance(other.a, kas.torch.KasModule)
    linear = nn.Linear(4, 6)
    other = kas.torch.substitute(linear, kas.operator("batched_linear"), example=torch.randn(2, 5, 4))
    other.weight0.data.copy_(linear.weight)
    x = torch.randn(2, 5, 4)
    assert torch.allclose(other(x), linear(x), atol=1e-5)


def test_near_misses(example):
    class Overridden(nn.Conv2d):
        def forward(self, x):
            return super().forward(x) * 2

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.reflect = nn.Conv2d(3, 3, 3, padding=1, padding_mode="reflect")
            self.shrinks = nn.Conv2d(3, 3, 3)
            self.unused = nn.Linear(3, 3)
            self.shapes = nn.Linear(3, 3)
            self.ranks = nn.Linear(3, 3)
            self.overridden = Overridden(3, 3, 1)
            self.normed = nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 3, 1))
            self.fine = nn.Conv2d(3, 3, 1)

        def forward(self, x):
            x = self.normed(self.overridden(self.shrinks(self.reflect(self.fine(x)))))
            x = x.permute(0, 2, 3, 1)
            self.ranks(x)
            return self.shapes(x[0, 0]), self.shapes(x[0])

    sites = kas.torch.extract(Odd(), example)
    assert list(sites.sites) == ["fine"]
    assert sites.misses == {
        "reflect": "requires padding with zeros, got padding_mode='reflect'",
        "shrinks": "requires padding that gives 8 outputs for 8 inputs at stride 1, got 6",
        "unused": "the network does not call it for this example",
        "shapes": "requires data of one shape, got (4, 3) and (6, 4, 3)",
        "ranks": "requires data with 2 or 3 dimensions, got 4",
        "normed": "requires a weight that is a parameter, got a parametrization of it",
    }


def test_bad_input(network, example, sites):
    conv = kas.operator("conv2d")
    for call, error, message in [
        (lambda: kas.torch.extract("network", example), TypeError, "expected a torch.nn.Module, got str"),
        (lambda: kas.torch.extract(network, [[1.0]]), TypeError, "must be a tensor or a tuple of tensors, got list"),
        (lambda: kas.torch.extract(network, example[:, :2]), ValueError, "does not take this example: RuntimeError"),
        (
            lambda: kas.torch.extract(nn.ReLU(), example),
            ValueError,
            "has no layer that an operator can take the place of",
        ),
        (
            lambda: kas.torch.extract(nn.Conv2d(3, 3, 3), example),
            ValueError,
            "none of:\n  the network itself: requires padding that gives 8 outputs",
        ),
        (
            lambda: kas.torch.extract(network, example, coefficients="H=2"),
            kas.Error,
            "other names than the sizes of layers",
        ),
        (lambda: kas.torch.substitute(network, "conv2d", sites), TypeError, "expected a kas.Operator"),
        (lambda: kas.torch.substitute(network, conv), TypeError, "needs the sites that extract found, or an example"),
        (
            lambda: kas.torch.substitute(network, conv, sites, space="conv3d"),
            ValueError,
            "no layers of the space 'conv3d'",
        ),
        (
            lambda: kas.torch.substitute(network, conv, sites, space="conv1x1"),
            ValueError,
            "symbol 'k', which the layer",
        ),
        (
            lambda: kas.torch.substitute(network, kas.operator("conv1d"), sites),
            ValueError,
            "does not fit any of these layers",
        ),
        (
            lambda: kas.torch.substitute(nn.ReLU(), conv, sites, space="conv2d"),
            ValueError,
            "these sites are of another one",
        ),
        (
            lambda: kas.torch.substitute(network, conv, sites, backend="gpu"),
            ValueError,
            "'compiled', 'pytorch', 'effective' or 'auto'",
        ),
        (lambda: kas.torch.substitute(network, conv, sites, binding={"q": 1}), ValueError, "does not fit any of these"),
    ]:
        with pytest.raises(error, match=message):
            call()


def test_to_mlir(network, example):
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")
    network = network.eval()
    exported = kas.torch.to_mlir(network, example)
    run = exported.module.clone().compile("forward", threads=1)
    arrays = [tensor.numpy() for tensor in exported.tensors.values()]
    expected = network(example).detach().numpy()
    assert numpy.abs(run(example.numpy(), *arrays) - expected).max() < 1e-4
    exported.module.run("kas-extract")
    named = kas.torch.extract(network, example).spaces
    assert {name: (s.bindings, s.multiplicities) for name, s in exported.module.spaces.items()} == {
        name: (s.bindings, s.multiplicities) for name, s in named.items()
    }
    network.train()
    with pytest.raises(ValueError, match=r"requires data that the network takes, got \(2, 5\) torch.float32: mat1 and"):
        kas.torch.to_mlir(nn.Linear(3, 4), torch.randn(2, 5))


class _Mixed(nn.Module):
    """Operators of two kinds, one of them twice, with batch norms and other layers around them."""

    def __init__(self):
        super().__init__()
        conv = {"N": 2, "Cin": 4, "Cout": 4, "H": 6, "W": 6, "k": 3}
        self.stem, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.first = kas.torch.KasModule(kas.operator("conv2d"), conv, bias_dim=1)
        self.second = kas.torch.KasModule(kas.operator("conv2d"), conv)
        self.rows = kas.torch.KasModule(kas.operator("linear_low_rank"), {"N": 12, "Cin": 6, "Cout": 8, "r": 2})

    def forward(self, x):
        x = self.second(self.first(self.norm(self.stem(x)).relu()).relu())
        return self.rows(x.sum(1))


@pytest.mark.parametrize("fold", [True, False])
def test_to_mlir_keeps_operators(fold):
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")
    torch.manual_seed(3)
    network, example = _Mixed().eval(), torch.randn(2, 3, 6, 6)
    network.norm.running_var.uniform_(0.5, 2)
    exported = kas.torch.to_mlir(network, example, fold_batch_norms=fold, keep_operators=True)
    text = str(exported.module)
    assert text.count("kas.apply @") == 3
    assert text.count("kas.operator @") == 2
    assert "call @" not in text
    assert 'kas.name = "first.weight0"' in text
    run = exported.module.clone().compile("forward", threads=1)
    expected = network(example).detach().numpy()
    actual = run(example.numpy(), *(tensor.numpy() for tensor in exported.tensors.values()))
    assert numpy.abs(actual - expected).max() < 1e-4 * numpy.abs(expected).max()
    plain = str(kas.torch.to_mlir(network, example, fold_batch_norms=fold).module)
    assert "kas.apply" not in plain


def test_to_mlir_keeps_operators_of_networks_without_any():
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")
    network, example = nn.Linear(4, 5), torch.randn(2, 4)
    kept = kas.torch.to_mlir(network, example, keep_operators=True)
    assert str(kept.module) == str(kas.torch.to_mlir(network, example).module)
    with pytest.raises(ValueError, match="torch-mlir cannot express this network"):
        lengths = torch.tensor([4, 4]), torch.tensor([2, 2])
        data = torch.randn(4, 2, 5), torch.ones(2, 2, dtype=torch.long), *lengths
        kas.torch.to_mlir(nn.CTCLoss(), data, keep_operators=True)


def test_softmax_of_attention():
    """Rows that are masked as a whole give zeros, and others what PyTorch gives."""
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")

    torch.manual_seed(4)
    infinity = float("inf")
    scores = torch.randn(1, 2, 8, 8)
    mask = torch.zeros(8, 8)
    mask[3], mask[5, 2:], mask[6, 1] = -infinity, -infinity, infinity

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", mask)

        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=self.mask)

    network = Masked()
    exported = kas.torch.to_mlir(network, scores)
    run = exported.module.clone().compile("forward", threads=1)
    actual = run(scores.numpy(), *(tensor.numpy() for tensor in exported.tensors.values()))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = network(scores).numpy()
    assert numpy.isnan(expected[:, :, 6]).all()
    assert not expected[:, :, 3].any()
    assert numpy.allclose(actual, expected, atol=1e-5, equal_nan=True)
