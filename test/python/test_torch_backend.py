# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.torch.backend: networks by torch.compile, and what stays with PyTorch."""

from __future__ import annotations

import copy
import itertools
import pathlib
import random

import numpy
import pytest

import kas

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from small_networks import Images  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import kas.torch  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def begin():
    torch._dynamo.reset()
    kas.torch.explain()
    torch.manual_seed(0)


def compile_and_compare(network, *inputs, compiled=None):
    """The results of both, and the compiled network."""
    if compiled is None:
        compiled = torch.compile(network, backend=kas.torch.backend)
    with torch.no_grad():
        expected, found = network(*inputs), compiled(*inputs)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    return compiled


def test_networks_are_compiled_once_for_batches_of_any_size():
    network, compiled = Images().eval(), None
    for batch in (2, 5, 2, 3, 11, 8):
        compiled = compile_and_compare(network, torch.randn(batch, 3, 12, 12), compiled=compiled)
    static, dynamic = kas.torch.explain()
    assert (static.shapes, static.batches) == (((2, 3, 12, 12),), ())
    assert (dynamic.shapes, dynamic.batches) == (((5, 3, 12, 12),), (8, 2))
    assert all(graph.reason is None and graph.operations > 5 and graph.seconds > 0 for graph in (static, dynamic))
    assert kas.torch.explain() == []
    # Weights are packed for each of the parts.
    with torch.no_grad():
        network.first.weight.mul_(2)
    compile_and_compare(network, torch.randn(9, 3, 12, 12), compiled=compiled)
    assert kas.torch.explain() == []


def test_several_inputs_have_batches():
    weight = torch.randn(4, 6)
    compiled = None
    for batch in (3, 10, 4):
        inputs = (torch.randn(batch, 5, 4), torch.randn(batch, 5, 6))
        compiled = compile_and_compare(lambda x, y: ((x @ weight + y).softmax(-1), y.exp()), *inputs, compiled=compiled)
    assert [graph.batches for graph in kas.torch.explain()] == [(), (8, 2)]


@pytest.mark.parametrize(
    "call",
    [lambda x: x.squeeze() * 2, lambda x: x.squeeze().sum(1).reshape(x.shape[0], 4) + 1],
    ids=["squeeze", "sum"],
)
def test_one_sample_alone_may_mean_something_else(call):
    # A part of one sample would be squeezed as well, and be wrong where its shape is right.
    compiled = None
    for batch in (3, 9, 4, 11, 2):
        compiled = compile_and_compare(call, torch.randn(batch, 4, 1, 4), compiled=compiled)
    assert [graph.batches for graph in kas.torch.explain()] == [(), (8, 2)]


def test_few_samples_after_batches_of_any_size():
    compiled = None
    for batch in (3, 9, 1, 0, 2):
        compiled = compile_and_compare(
            lambda x: (x * 2).exp() @ torch.ones(5, 3), torch.randn(batch, 5), compiled=compiled
        )
    assert all(graph.reason is None for graph in kas.torch.explain())


@pytest.mark.parametrize("shape", [(0, 4), (2, 0)])
def test_views_of_nothing(shape):
    network = nn.Sequential(nn.Embedding(7, 3), nn.Linear(3, 5), nn.ReLU()).eval()
    compiled = compile_and_compare(network, torch.randint(0, 7, shape))
    (graph,) = kas.torch.explain()
    assert graph.reason is None
    compile_and_compare(network, torch.randint(0, 7, (3, 4)), compiled=compiled)
    assert kas.torch.explain()[-1].reason is None


def test_what_all_samples_share_is_read_again():
    memory = numpy.zeros((5, 6), numpy.float32)
    compiled = None
    for batch, value in ((3, 1), (9, 2), (4, 3), (9, 4)):
        # PyTorch does not know that this changes.
        memory[:] = value
        inputs = (torch.randn(batch, 5), torch.from_numpy(memory))
        compiled = compile_and_compare(lambda x, shared: x @ shared, *inputs, compiled=compiled)
    assert [graph.batches for graph in kas.torch.explain()] == [(), (8, 2)]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x - x.mean(0),
        lambda x: x.cumsum(0) * 2,
        lambda x: x / x.shape[0],
        lambda x: (x * 2).flatten()[: x.shape[0]],
        lambda x: (x.exp(), x.sum(0)),
    ],
    ids=["mean", "cumulative-sum", "scale", "slice", "sum"],
)
def test_what_mixes_samples_is_compiled_for_each_batch(call):
    compiled = None
    for batch in (3, 10, 4):
        compiled = compile_and_compare(call, torch.randn(batch, 6), compiled=compiled)
    assert all(graph.batches == () for graph in kas.torch.explain())


def test_attention(monkeypatch):
    # Else the whole layer is one operation of PyTorch.
    monkeypatch.setattr(torch.backends.mha, "get_fastpath_enabled", lambda: False)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=True).eval()
    compile_and_compare(layer, torch.randn(2, 7, 16))
    (graph,) = kas.torch.explain()
    assert graph.reason is None


class Language(nn.Module):
    """A language model: tokens in, scores of the next ones out; its embedding is its last layer as well."""

    def __init__(self, causal):
        super().__init__()
        self.causal, self.tokens, self.places = causal, nn.Embedding(50, 16), nn.Embedding(12, 16)
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, 4, 4).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        x = x + self.down(functional.gelu(self.up(self.second(x)), approximate="tanh" if self.causal else "none"))
        return x @ self.tokens.weight.T


@pytest.mark.parametrize("causal", [False, True])
def test_language_models(causal):
    network, compiled = Language(causal).eval(), None
    for batch in (2, 5, 3, 11):
        compiled = compile_and_compare(network, torch.randint(0, 50, (batch, 12)), compiled=compiled)
    graphs = kas.torch.explain()
    assert [graph.batches for graph in graphs] == [(), (8, 2)]
    assert all(graph.reason is None and graph.left == () for graph in graphs)
    tokens = torch.randint(0, 50, (9, 12))
    tokens[4, 7] = 50
    with torch.no_grad(), pytest.raises(RuntimeError, match="index must be smaller than dim size"):
        compiled(tokens)


def test_language_models_learn():
    network = Language(causal=True)
    tokens = torch.randint(0, 50, (3, 12))
    reference = copy.deepcopy(network)
    compiled = torch.compile(network, backend=kas.torch.backend)
    for model in (compiled, reference):
        functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    for one, other in zip(network.parameters(), reference.parameters()):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-6)
    forward, backward = kas.torch.explain()
    assert (forward.kind, forward.left) == ("forward", ())
    assert (backward.reason, backward.left) == (None, ())


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_integers_enter_and_leave(dtype):
    places = torch.tensor([[3, 0], [1, 3], [2, 2]], dtype=dtype)
    values = torch.randn(4, 5)

    def call(x, places):
        return x[places.long()].exp(), places * 3 + 1, x.argmax(1)

    compile_and_compare(call, values, places)
    (graph,) = kas.torch.explain()
    assert (graph.reason, graph.left) == (None, ())


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_places_of_rows(dim):
    from kas.torch._indexing import index, index_select

    data, places = torch.randn(4, 5, 6), torch.tensor([[0, -1], [3, 2], [-4, 1]])
    indices = [None, None, None]
    indices[dim] = places
    assert torch.equal(index(data, indices), data[tuple(slice(None) if i is None else i for i in indices)])
    assert torch.equal(index_select(data, dim, places[1]), data.index_select(dim, places[1]))


@pytest.mark.parametrize(
    "call", [lambda x, i: x[i] * 2, lambda x, i: x.index_select(0, i) * 2], ids=["index", "index_select"]
)
@pytest.mark.parametrize("place", [4, -5, 10**12])
def test_places_that_are_not_there(call, place):
    compiled = torch.compile(call, backend=kas.torch.backend)
    with torch.no_grad():
        compiled(torch.randn(4, 5), torch.tensor([1, 0]))
        with pytest.raises((RuntimeError, IndexError)):
            compiled(torch.randn(4, 5), torch.tensor([1, place]))


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: a % b,
        torch.fmod,
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        lambda a, b: a // b,
        lambda a, b: 7 % b,
        lambda a, b: torch.eye(3)[a, b] * 2,
    ],
    ids=["remainder", "fmod", "trunc", "floor", "of-a-number", "two-places"],
)
def test_integers_are_checked(call):
    a, b = torch.tensor([1, 0, 1]), torch.tensor([1, 2, 1])
    compiled = compile_and_compare(call, a, b)
    (graph,) = kas.torch.explain()
    assert (graph.reason, graph.left) == (None, ())
    with torch.no_grad(), pytest.raises((RuntimeError, IndexError)):
        compiled(a, torch.tensor([0, 0, 7]))


def test_integers_by_numbers():
    a = torch.tensor([7, -7, 0, -(2**63)])
    compile_and_compare(lambda a: (a % 3, a // 4), a)
    assert kas.torch.explain()[0].reason is None
    for divisor in (0, -1):
        compiled = torch.compile(lambda a, divisor=divisor: torch.fmod(a, divisor), backend=kas.torch.backend)
        # As PyTorch does: an error, or zeros.
        if divisor == 0:
            with pytest.raises(RuntimeError):
                compiled(a)
        else:
            assert torch.equal(compiled(a), torch.zeros_like(a))


@pytest.mark.parametrize(
    "call, inputs",
    [
        (lambda x: x[1:3].as_strided((2, 6), (6, 1), 0) + 1, [(4, 6)]),
        (lambda x: x.as_strided((12,), (1,)) * 2, [(3, 4), (5, 4), (6, 4)]),
        (lambda x: x.as_strided((x.shape[0], 2, 3), (6, 3, 1)) * 2, [(3, 6), (5, 6), (6, 8)]),
    ],
    ids=["offset", "part", "symbols"],
)
def test_views_by_strides_that_are_none(call, inputs):
    compiled = torch.compile(call, backend=kas.torch.backend, dynamic=True)
    for shape in inputs:
        compile_and_compare(call, torch.randn(shape), compiled=compiled)


def test_paddings_by_less_than_nothing_in_networks():
    compile_and_compare(lambda x: functional.pad(x, (1, -1), value=3.0) * 2, torch.randn(2, 6))


def test_gelu_is_as_exact_as_pytorch():
    x = torch.linspace(-6, 6, 1001)
    compiled = torch.compile(lambda x: functional.gelu(x, approximate="tanh"), backend=kas.torch.backend)
    expected = functional.gelu(x.double(), approximate="tanh")
    assert (compiled(x) - expected).abs().max() < 1e-6


def test_weights_may_change():
    network = Images().eval()
    compiled = compile_and_compare(network, torch.randn(2, 3, 8, 8))
    with torch.no_grad():
        network.first.weight.mul_(2)
    compile_and_compare(network, torch.randn(2, 3, 8, 8), compiled=compiled)
    network.first.weight.data = torch.randn_like(network.first.weight)
    compile_and_compare(network, torch.randn(2, 3, 8, 8), compiled=compiled)
    assert all(graph.reason is None for graph in kas.torch.explain())


def test_weights_in_other_layouts_may_change():
    network = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU()).eval().to(memory_format=torch.channels_last)
    compiled = None
    for _ in range(4):
        with torch.no_grad():
            network[0].weight.mul_(1.5)
        compiled = compile_and_compare(network, torch.randn(2, 3, 9, 9), compiled=compiled)


def test_weights_that_take_the_memory_of_others():
    network, compiled = nn.Linear(64, 64).eval(), None
    for _ in range(6):
        # The memory that is freed is what the next weights get.
        network.weight.data = torch.empty(0)
        network.weight.data = torch.randn(64, 64)
        compiled = compile_and_compare(network, torch.randn(3, 64), compiled=compiled)


def test_inference_mode():
    with torch.inference_mode():
        network = Images().eval()
        compiled, x = torch.compile(network, backend=kas.torch.backend), torch.randn(2, 3, 8, 8)
        for _ in range(3):
            network.first.weight.mul_(1.5)
            torch.testing.assert_close(compiled(x), network(x), rtol=1e-4, atol=1e-5)


def test_buffers_that_a_network_changes_are_changed():
    network = Images().train()
    other = copy.deepcopy(network)
    compiled, x = torch.compile(network, backend=kas.torch.backend), torch.randn(4, 3, 8, 8)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), other(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(network.norm.running_mean, other.norm.running_mean)
    torch.testing.assert_close(network.norm.running_var, other.norm.running_var)
    assert network.norm.num_batches_tracked == 2


def test_several_inputs_and_outputs_of_all_kinds():
    weight = torch.randn(4, 3)

    def call(x, y):
        z = x @ weight
        return z, z.t(), y, x.shape[0] + 1, None, (z + y, z)

    compile_and_compare(call, torch.randn(5, 4), torch.randn(5, 3))
    compile_and_compare(call, torch.randn(4, 5).t(), torch.randn(5, 3))
    assert all(graph.reason is None for graph in kas.torch.explain())


def test_inputs_that_a_function_changes_are_changed():
    def call(x):
        x.mul_(2)
        return x.relu()

    first = torch.randn(3, 4)
    second = first.clone()
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(call, backend=kas.torch.backend)(first), call(second))
    assert torch.equal(first, second)


def test_operators_in_networks():
    operator = kas.operator("conv2d_depthwise_separable")
    binding = {"N": 2, "Cin": 4, "Cout": 8, "H": 6, "W": 6, "k": 3}
    compile_and_compare(kas.torch.KasModule(operator, binding, "pytorch").eval(), torch.randn(2, 4, 6, 6))
    assert all(graph.reason is None for graph in kas.torch.explain())


@pytest.mark.parametrize(
    "call, make, reason",
    [
        (lambda x: x * 2, lambda: (torch.ones(3, dtype=torch.complex64),), "requires tensors of float64, float32"),
        (lambda x: x.mode()[0], lambda: (torch.randn(3, 3),), "torch-mlir cannot express torch.aten.mode"),
    ],
)
def test_what_kas_does_not_compile_is_run_by_pytorch(call, make, reason, capfd):
    compile_and_compare(call, *make())
    (graph,) = kas.torch.explain()
    assert graph.reason.startswith(reason)
    assert "error" not in capfd.readouterr().err


def test_random_numbers_follow_the_seed():
    compiled, x = torch.compile(lambda x: torch.dropout(x, 0.5, True), backend=kas.torch.backend), torch.ones(64)
    found = []
    with torch.no_grad():
        for call in (compiled, compiled, lambda x: torch.dropout(x, 0.5, True)):
            torch.manual_seed(3)
            found.append(call(x))
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    (graph,) = kas.torch.explain()
    assert graph.reason.startswith("requires a network without random numbers, got aten.")


def test_results_have_the_layout_of_pytorch():
    network, x = nn.Conv2d(3, 5, 3), torch.randn(2, 3, 7, 9)
    compiled = torch.compile(network, backend=kas.torch.backend)
    with torch.no_grad():
        for data in (x, x.to(memory_format=torch.channels_last), x):
            expected, found = network(data), compiled(data)
            assert found.stride() == expected.stride()
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert all(graph.reason is None for graph in kas.torch.explain())


@pytest.mark.parametrize("shape", [(), (1,), (0, 3)])
def test_few_elements(shape):
    compile_and_compare(lambda x: (x * 2 + 1).exp(), torch.randn(shape))


def compare_gradients(network, *inputs, rtol=1e-4):
    """One step of both: results, gradients of inputs and parameters, buffers; what became of the graphs."""
    other = copy.deepcopy(network)
    arguments = [[x.clone().requires_grad_(x.is_floating_point()) for x in inputs] for _ in range(2)]
    found = torch.compile(network, backend=kas.torch.backend)(*arguments[0])
    expected = other(*arguments[1])
    torch.testing.assert_close(found, expected, rtol=rtol, atol=1e-5)
    change = torch.randn(expected.shape)
    (found * change).sum().backward()
    (expected * change).sum().backward()
    pairs = [*zip(arguments[0], arguments[1]), *zip(network.parameters(), other.parameters())]
    for found, expected in pairs:
        if expected.grad is not None:
            torch.testing.assert_close(
                found.grad, expected.grad, rtol=rtol, atol=rtol * expected.grad.abs().max().item()
            )
    torch.testing.assert_close(list(network.buffers()), list(other.buffers()), rtol=rtol, atol=1e-5)
    graphs = kas.torch.explain()
    assert [graph.kind for graph in graphs] == ["forward", "backward"]
    return graphs


def test_gradients_are_those_of_pytorch():
    forward, backward = compare_gradients(Images().eval(), torch.randn(2, 3, 8, 8))
    for graph in (forward, backward):
        assert graph.reason is None
        # The places of maxima are integers.
        assert all("max_pool2d_with_indices" in name for name, _ in graph.left)


class Smooth(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.SiLU())
        self.grouped = nn.Sequential(nn.Conv2d(8, 12, 3, padding=2, dilation=2, groups=4), nn.GELU())
        self.depthwise = nn.Sequential(nn.Conv2d(12, 12, 5, stride=2, padding=2, groups=12), nn.Hardswish())
        self.scale = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(12, 12, 1), nn.Sigmoid())
        self.head = nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.LayerNorm(12), nn.Linear(12, 5))

    def forward(self, x):
        x = self.depthwise(self.grouped(self.stem(x)))
        return self.head(x * self.scale(x)).log_softmax(1)


def test_gradients_of_many_kinds_of_layers():
    for graph in compare_gradients(Smooth().train(), torch.randn(4, 3, 11, 11)):
        assert graph.reason is None and graph.parts == 1
        # The count of the batches of a norm.
        assert all(name == "aten.add.Tensor" for name, _ in graph.left)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_attention(causal):
    class Attention(nn.Module):
        def forward(self, query, key, value):
            return functional.scaled_dot_product_attention(query, key, value, is_causal=causal)

    for graph in compare_gradients(Attention(), *(torch.randn(2, 3, 7, 8) for _ in range(3))):
        assert graph.reason is None and graph.left == ()


def test_gradients_of_attention_to_nothing():
    class Attention(nn.Module):
        def forward(self, query, key, value):
            mask = torch.zeros(5, 5).index_fill(0, torch.tensor([2]), -torch.inf)
            return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    forward, backward = compare_gradients(Attention(), *(torch.randn(2, 3, 5, 8) for _ in range(3)))
    assert forward.reason is None and backward.reason is None


class PooledChannelsLast(nn.Module):
    """A pooling of a whole image whose channels lie together: PyTorch makes views by strides of it."""

    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.LayerNorm(6), nn.Linear(6, 5)

    def forward(self, x):
        x = self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))


def test_gradients_of_views_by_strides():
    forward, backward = compare_gradients(PooledChannelsLast(), torch.randn(2, 6, 4, 4))
    for graph in (forward, backward):
        assert (graph.reason, graph.parts, graph.left) == (None, 1, ())


@pytest.mark.parametrize(
    ("size", "stride", "dims"),
    [
        ((2, 3), (3, 1), [0, 1]),
        ((3, 2), (1, 3), [1, 0]),
        ((2, 1, 3), (3, 9, 1), [0, 2, 1]),
        ((2, 3), (1, 1), None),
        ((2, 2), (3, 1), None),
        ((3, 3), (2, 1), None),
    ],
)
def test_views_by_strides(size, stride, dims):
    from kas.torch._graph_parts import _find_view

    assert _find_view(size, stride, 6) == dims
    if dims is not None:
        data = torch.arange(6.0)
        view = data.view([size[dim] for dim in dims]).permute([dims.index(dim) for dim in range(len(dims))])
        assert torch.equal(view, data.as_strided(size, stride))


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices_that_are_replaced(dim, step):
    from kas.torch._decompositions import slice_scatter

    for start, end in itertools.product((None, 0, 1, 3, -4), (None, 4, -1, 100)):
        data = torch.randn(5, 7, 6)
        place = [slice(None)] * 3
        place[dim] = slice(start, end, step)
        source = torch.randn(data[place].shape)
        if source.numel():
            expected = torch.slice_scatter(data, source, dim, start, end, step)
            assert torch.equal(slice_scatter(data, source, dim, start, end, step), expected)


@pytest.mark.parametrize("pad", [[-1, 0], [-2, 3], [0, -1, 2, -3], [-1, -1, 0, 0, 1, -1], [1, -7]])
def test_paddings_by_less_than_nothing(pad):
    from kas.torch._decompositions import constant_pad_nd

    data = torch.randn(3, 6, 7)
    assert torch.equal(constant_pad_nd(data, pad, 2.0), functional.pad(data, pad, value=2.0))


class Windows(nn.Module):
    """Shifted windows with learned values for places that are looked up, every second pixel, and a padding."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(9, 4))
        self.register_buffer("index", torch.arange(16).reshape(4, 4) % 9)
        self.layer = nn.Linear(16, 4)

    def forward(self, x):
        x = functional.pad(x, (0, 0, 0, 1))
        x = torch.roll(x, (-1, -2), (1, 2)) + self.table[self.index[:, :1]].transpose(0, 1)
        x = torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1)
        return self.layer(x)


def test_windows_have_gradients_and_batches():
    network = Windows()
    forward, backward = compare_gradients(network, torch.randn(2, 4, 3, 4))
    assert (forward.reason, backward.reason) == (None, None)
    compiled = None
    for batch in (2, 5, 9):
        compiled = compile_and_compare(network, torch.randn(batch, 4, 3, 4), compiled=compiled)
    assert [graph.batches for graph in kas.torch.explain()] == [(), (8, 2)]


def test_networks_learn_as_with_pytorch():
    network = Smooth().train()
    other = copy.deepcopy(network)
    compiled = torch.compile(network, backend=kas.torch.backend)
    x, labels = torch.randn(16, 3, 11, 11), torch.randint(0, 5, (16,))
    losses = []
    for call, module in ((compiled, network), (other, other)):
        optimizer = torch.optim.SGD(module.parameters(), 0.05, momentum=0.9)
        losses.append([])
        for _ in range(5):
            loss = functional.nll_loss(call(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-3) and losses[0][-1] < losses[0][0]
    # Each graph once: weights that change are not compiled again.
    assert len(kas.torch.explain()) == 2


def test_random_transposed_convolutions_are_those_of_pytorch():
    from kas.torch._gradient_decompositions import convolution, convolution_backward

    for seed in range(60):
        chance = random.Random(seed)
        torch.manual_seed(seed)
        rank, groups = chance.choice([1, 2, 3]), chance.choice([1, 2])
        kernel, stride, dilation = ([chance.choice([1, 2, 3]) for _ in range(rank)] for _ in range(3))
        padding = [chance.randrange(far * (taps - 1) + 1) for far, taps in zip(dilation, kernel)]
        after = [chance.randrange(max(step, far)) for step, far in zip(stride, dilation)]
        data = torch.randn(2, 2 * groups, *(chance.choice([4, 5, 12]) for _ in range(rank)), dtype=torch.float64)
        weight = torch.randn(2 * groups, 3, *kernel, dtype=torch.float64)
        sizes = (stride, padding, dilation, True, after, groups)
        result = torch.ops.aten.convolution(data, weight, None, *sizes)
        if groups > 1:
            torch.testing.assert_close(convolution(data, weight, None, *sizes), result)
        arguments = (torch.randn_like(result), data, weight, [3 * groups], *sizes, [True] * 3)
        expected = torch.ops.aten.convolution_backward(*arguments)
        for found, gradient in zip(convolution_backward(*arguments), expected):
            torch.testing.assert_close(found, gradient, msg=lambda text, seed=seed: f"seed {seed}: {text}")


def test_random_convolutions_have_the_gradients_of_pytorch():
    from kas.torch._gradient_decompositions import convolution_backward

    for seed in range(200):
        chance = random.Random(seed)
        rank, groups = chance.choice([1, 2, 2, 3]), chance.choice([1, 1, 2, 4])
        sizes = [
            [chance.choice(values) for _ in range(rank)] for values in ([1, 2, 3, 5], [1, 2, 3], [0, 1, 5], [1, 2])
        ]
        kernel, stride, padding, dilation = sizes
        inputs, outputs = groups * chance.choice([1, 2, 3]), groups * chance.choice([1, 2])
        positions = chance.choice([9, 16 if rank < 3 else 10])
        data = torch.randn(3, inputs, *(positions + chance.randrange(3) for _ in range(rank)), dtype=torch.float64)
        weight = torch.randn(outputs, inputs // groups, *kernel, dtype=torch.float64)
        zeros = [0] * rank
        result = torch.ops.aten.convolution(data, weight, None, stride, padding, dilation, False, zeros, groups)
        arguments = (torch.randn_like(result), data, weight, [outputs], stride, padding, dilation, False, zeros, groups)
        expected = torch.ops.aten.convolution_backward(*arguments, [True] * 3)
        for found, gradient in zip(convolution_backward(*arguments, [True] * 3), expected):
            torch.testing.assert_close(found, gradient, msg=lambda text, seed=seed: f"seed {seed}: {text}")


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(12, 16)
        self.layer, self.head = nn.Sequential(nn.Linear(16, 24), nn.GELU()), nn.Linear(24, 50)

    def forward(self, indices):
        x = self.words(indices) + self.places(torch.arange(indices.shape[1]))
        return self.head(torch.fft.irfft(torch.fft.rfft(self.layer(x)), 24))


def test_pytorch_runs_what_is_between_parts():
    network, indices = Words().eval(), torch.randint(0, 50, (2, 7))
    compile_and_compare(network, indices)
    (graph,) = kas.torch.explain()
    assert graph.reason is None and graph.parts == 2 and graph.shapes == ((2, 7),)
    left = dict(graph.left)
    assert {"aten._fft_r2c.default", "aten._fft_c2r.default"} == left.keys()
    forward, backward = compare_gradients(Words(), indices)
    assert forward.parts == 2 and backward.reason is None


def test_random_numbers_between_parts_follow_the_seed():
    network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4), nn.ReLU())
    compiled, x, found = torch.compile(network, backend=kas.torch.backend), torch.randn(5, 8), []
    for call in (compiled, network, compiled):
        torch.manual_seed(3)
        network.zero_grad()
        result = call(x)
        result.sum().backward()
        found.append((result.detach(), network[0].weight.grad.clone()))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)
    assert all(torch.equal(a, b) for a, b in zip(found[0], found[2]))
    forward, backward = kas.torch.explain()
    assert forward.parts >= 1 and backward.parts >= 1
    assert any("random numbers" in reason for _, reason in forward.left)


def loop_while(x):
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, (y * 1.1).sin()), (torch.tensor(0), x))


def loop_over_rows(x):
    from torch._higher_order_ops.scan import scan

    return scan(lambda y, row: (y * 0.9 + row, (y + row).tanh()), torch.zeros(4), x)


def attend(x):
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(x, x, x, score_mod=lambda score, b, h, i, j: score - (i - j).abs() * 0.1)


@pytest.mark.parametrize(
    ("call", "shape", "name"),
    [(loop_while, (4, 4), "while_loop"), (loop_over_rows, (6, 4), "scan"), (attend, (1, 2, 16, 8), "flex_attention")],
)
def test_what_has_graphs_inside_is_named(call, shape, name):
    x = torch.randn(shape)
    found = torch.compile(call, backend=kas.torch.backend)(x)
    torch.testing.assert_close(found, call(x), rtol=1e-4, atol=1e-5)
    (graph,) = kas.torch.explain()
    assert graph.reason == f"torch-mlir cannot express {name}"


def draw_after_long(x, y):
    """The first numbers depend on much that is computed, the second on nothing, the third on both."""
    first = torch.bernoulli(torch.sigmoid(x @ y))
    second = torch.rand(5)
    return torch.relu(x @ y) * 2 + 1, first @ x, functional.dropout(first * second, 0.5), torch.randint(0, 99, (7,))


def draw_between(x, y):
    """What is compiled needs the last numbers, and is needed by the first: it is two parts."""
    first = torch.rand_like(x @ y)
    second = torch.randn(5, 5)
    return (x @ y).sin().cos() + second.exp().sin(), first


def draw_without_replacement(x, y):
    return torch.multinomial(torch.ones(5), 3), functional.gumbel_softmax(x @ y), torch.randperm(6)


@pytest.mark.parametrize("call", [draw_after_long, draw_between, draw_without_replacement])
def test_random_numbers_are_drawn_in_the_order_of_the_program(call):
    x, y = torch.randn(5, 8), torch.randn(8, 5)
    compiled = torch.compile(call, backend=kas.torch.backend)
    torch.manual_seed(3)
    expected = call(x, y)
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(x, y), expected, rtol=1e-5, atol=1e-6)
    (graph,) = kas.torch.explain()
    assert graph.parts >= 1


def test_flags_enter_and_leave():
    compiled = compile_and_compare(
        lambda x, flag: (torch.where(flag, x * 2, -x), x + 1 > 0, ~flag), x := torch.randn(9), x > 1
    )
    del compiled
    (graph,) = kas.torch.explain()
    assert graph.reason is None and graph.left == ()


def test_views_of_inputs_have_gradients():
    def call(x):
        x = x * 2
        return x.t(), x[0], x.exp()

    x, y = (torch.arange(6.0).view(2, 3).requires_grad_() for _ in range(2))
    found, expected = torch.compile(call, backend=kas.torch.backend)(x), call(y)
    torch.testing.assert_close(found, expected)
    assert [a.stride() for a in found] == [a.stride() for a in expected]
    for results in (found, expected):
        (results[0].sum() + results[1].square().sum() + results[2].sum()).backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_installations_name_the_backend():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.torch_dynamo_backends]\nkas = "kas.torch:backend"\n' in text


class Normed(nn.Module):
    """Convolutions with and without what lets batch norms be folded into them."""

    def __init__(self):
        super().__init__()
        self.plain = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.with_bias = nn.Sequential(nn.Conv2d(8, 8, 3, groups=2), nn.BatchNorm2d(8, affine=False))
        self.twice = nn.Conv2d(8, 8, 1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)])
        self.transposed = nn.Sequential(nn.ConvTranspose2d(8, 4, 2), nn.BatchNorm2d(4))

    def forward(self, x):
        x = self.with_bias(self.plain(x))
        y = self.twice(x)
        return self.transposed(self.norms[0](y) + self.norms[1](self.twice(x + 1)) + y.relu())


def test_batch_norms_are_folded_into_weights(monkeypatch):
    from kas.torch import _backend, _graph_norms

    folded = []

    def fold(graph, static):
        folded.append(_graph_norms.fold_batch_norms(graph, static))
        assert _graph_norms.fold_batch_norms(graph, []) is None
        return folded[-1]

    monkeypatch.setattr(_backend, "fold_batch_norms", fold)
    torch.manual_seed(0)
    network = Normed().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.normal_(module.running_mean)
    x = torch.randn(2, 3, 9, 9)
    compiled = torch.compile(network, backend=kas.torch.backend)
    kas.torch.explain()
    with torch.no_grad():
        for _ in range(2):
            expected = network(x)
            assert (compiled(x) - expected).abs().max() < 1e-5 * expected.abs().max()
            network.plain[1].running_var.mul_(2)
            network.with_bias[0].bias.add_(1)
    (graph,) = kas.torch.explain()
    assert graph.reason is None and graph.left == ()
    # One comes after a convolution that others look at, one after a transposed convolution.
    norm = torch.ops.aten._native_batch_norm_legit_no_training.default
    assert [len(graph.graph.find_nodes(op="call_function", target=norm)) for graph in folded] == [2]


@pytest.mark.parametrize("name", ["conv2d_depthwise_separable", "syno_operator2"])
def test_operators_are_compiled_with_the_rest(name):
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()
    ).eval()
    x = torch.randn(1, 3, 8, 8)
    binding = "g=4,s=2,k=3" if name == "syno_operator2" else None
    sites = kas.torch.extract(network, x)
    other = kas.torch.substitute(network, kas.operator(name), sites, space="conv2d", binding=binding)
    kas.torch.explain()
    compiled = torch.compile(other, backend=kas.torch.backend)
    with torch.no_grad():
        expected = other(x)
        assert (compiled(x) - expected).abs().max() < 1e-5 * expected.abs().max()
    (graph,) = kas.torch.explain()
    assert graph.reason is None and graph.left == () and graph.parts == 1
    compiled(x).sum().backward()
    assert other[2].weight0.grad is not None


@torch.library.custom_op("others::twice", mutates_args=())
def _twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


@_twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_operations_of_others_leave_the_rest_compiled():
    network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16)).eval()
    after = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4)).eval()

    def call(x):
        return after(_twice(network(x)))

    x = torch.randn(3, 8)
    kas.torch.explain()
    with torch.no_grad():
        assert torch.allclose(torch.compile(call, backend=kas.torch.backend)(x), call(x), atol=1e-5)
    (graph,) = kas.torch.explain()
    assert [name for name, _ in graph.left] == ["others.twice.default"] and graph.share > 0.99


@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_and_numbers_that_are_data_stay_with_pytorch(dynamic):
    def compute(x):
        return x[x > 0].sum() + x.max().item() * x, torch.nonzero(x > 0)

    data = torch.randn(4, 5)
    torch._dynamo.reset()
    kas.torch.explain()
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        found = torch.compile(compute, backend="kas", dynamic=dynamic)(data)
    for got, wanted in zip(found, compute(data)):
        torch.testing.assert_close(got, wanted)
    assert "requires sizes and numbers that are known before the call" in kas.torch.explain()[-1].reason


def test_an_operation_that_torch_mlir_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its passes fail on something else, the operation is found, and all others are compiled."""
    from kas.torch import _decompositions, _graph_import

    table = _decompositions.get_inference_table()
    name = "aten.fake_quantize_per_channel_affine_cachemask.default"
    unknown = {key: value for key, value in table.items() if str(key) != name}
    monkeypatch.setattr(_graph_import, "get_inference_table", lambda: unknown)
    network = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))
    steps = torch.full((4,), 0.25), torch.zeros(4, dtype=torch.int32)

    def run(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
        rounded = torch.fake_quantize_per_channel_affine((x.sin() * 2).exp(), scale, zero, 0, -128, 127)
        return network(rounded).softmax(-1)

    torch._dynamo.reset()
    kas.torch.explain()
    x = torch.randn(4, 6)
    with torch.no_grad():
        assert torch.allclose(torch.compile(run, backend="kas")(x, *steps), run(x, *steps), atol=1e-5)
    (graph,) = kas.torch.explain()
    assert graph.parts == 2 and [left for left, _ in graph.left] == [name]
    assert graph.left[0][1].startswith(f"torch-mlir cannot express {name}: failed to legalize")


def test_what_cannot_be_traced_has_a_reason_without_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    from kas.torch import _graph_import

    def fail(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("requires another tensor")

    monkeypatch.setattr(_graph_import, "get_inference_table", lambda: {torch.ops.aten.sin.default: fail})
    torch._dynamo.reset()
    kas.torch.explain()
    torch.compile(lambda x: x.sin().cos(), backend="kas")(torch.randn(7, 6))
    (graph,) = kas.torch.explain()
    assert graph.reason == "cannot be traced: requires another tensor, got aten.sin.default"
