# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mode=, options=, dynamic= and fullgraph= of torch.compile with kas."""

from __future__ import annotations

import numpy
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402

import kas.torch  # noqa: E402
from kas.torch._options import MODES, Options, read_options  # noqa: E402


@pytest.fixture(autouse=True)
def begin():
    torch._dynamo.reset()
    kas.torch.explain()
    torch.manual_seed(0)


def make_network():
    return nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)).eval()


def test_modes_stand_for_options():
    assert read_options(None, None) == read_options("default", {}) == Options()
    assert read_options("reduce-overhead", None) == Options(bind_calls=True)
    assert read_options("max-autotune", {"tuning_seconds": 3}) == Options(bind_calls=True, tuning_seconds=3)


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("fast", None, "requires a mode of 'default', 'reduce-overhead', .*, got 'fast'"),
        (None, {"thread": 2}, "requires options of 'threads', 'precision', .*, got 'thread'"),
        (None, {"threads": -1}, "'threads' .* requires a whole number of at least 0, got -1"),
        (None, {"threads": 1.5}, "'threads' .* requires a whole number of at least 0, got 1.5"),
        (None, {"threads": True}, "'threads' .* requires a whole number of at least 0, got True"),
        (None, {"precision": "f8"}, "'precision' .* requires one of 'f32', 'tf32', 'f16', 'bf16', got 'f8'"),
        (None, {"algorithm": 3}, "'algorithm' .* requires one of 'auto', .*, got 3"),
        (None, {"strict": 1}, "'strict' .* requires True or False, got 1"),
        (None, {"tuning_seconds": "long"}, "'tuning_seconds' .* requires a number of at least 0, got 'long'"),
    ],
)
def test_what_is_unknown_is_an_error(mode, options, message):
    with pytest.raises(ValueError, match=message):
        read_options(mode, options)


def test_errors_reach_the_caller():
    compiled = torch.compile(make_network(), backend=kas.torch.backend, options={"fast": True})
    with pytest.raises(Exception, match=r"requires options of 'threads', .*, got 'fast'"), torch.no_grad():
        compiled(torch.randn(2, 4, 6, 6))


@pytest.mark.parametrize("mode", MODES)
def test_results_are_the_same_in_all_modes(mode):
    network, data = make_network(), torch.randn(2, 4, 6, 6)
    compiled = torch.compile(network, backend=kas.torch.backend, mode=mode)
    with torch.no_grad():
        torch.testing.assert_close(compiled(data), network(data), rtol=1e-4, atol=1e-5)
    (graph,) = kas.torch.explain()
    assert graph.reason is None
    compiled(data).sum().backward()
    assert [graph.reason for graph in kas.torch.explain()] == [None, None]


def test_memory_of_results_is_taken_again_only_where_nothing_has_it():
    compiled = torch.compile(lambda x: (x * 2, x + 1), backend=kas.torch.backend, mode="reduce-overhead")
    with torch.no_grad():
        first = compiled(torch.full((1000,), 1.0))
        view = first[1][10:20]
        places = [result.data_ptr() for result in first]
        array = first[0].numpy()
        del first
        # An array has the first one, a view the second.
        second = compiled(torch.full((1000,), 2.0))
        assert not {result.data_ptr() for result in second} & set(places)
        assert array[0] == 2 and view[0] == 2 and second[0][0] == 4 and second[1][0] == 3
        places = [result.data_ptr() for result in second]
        del second
        third = compiled(torch.full((1000,), 3.0))
        assert [result.data_ptr() for result in third] == places
        assert third[0][0] == 6 and third[1][0] == 4


KEEP = {
    "view": lambda result: result.view(-1),
    "detached": lambda result: result.detach(),
    "array": lambda result: result.numpy(),
    "part of an array": lambda result: numpy.asarray(result)[1:],
    "buffer": lambda result: memoryview(result.numpy()),
    "dlpack": torch.utils.dlpack.to_dlpack,
    "storage": lambda result: result.untyped_storage(),
    "typed storage": lambda result: result.storage(),
}


@pytest.mark.parametrize("keep", KEEP.values(), ids=KEEP)
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_whatever_refers_to_memory_keeps_it(keep):
    compiled = torch.compile(lambda x: x * 2, backend=kas.torch.backend, mode="reduce-overhead")
    with torch.no_grad():
        kept, places = [], []
        for number in range(3):
            result = compiled(torch.full((10,), float(number)))
            places.append(result.data_ptr())
            kept.append(keep(result))
            del result
        assert len(set(places)) == 3
        del kept
        assert compiled(torch.ones(10)).data_ptr() == places[-1]


def test_strict_graphs_are_compiled_or_errors():
    def call(x):
        return (x @ x).mode()[0] + 1

    data = torch.randn(4, 4)
    with torch.no_grad():
        torch.compile(call, backend=kas.torch.backend)(data)
        assert kas.torch.explain()[0].left
        torch._dynamo.reset()
        with pytest.raises(Exception, match=r"strict=True requires a graph that kas compiles, got: .*mode"):
            torch.compile(call, backend=kas.torch.backend, options={"strict": True})(data)
        torch._dynamo.reset()
        torch.compile(torch.exp, backend=kas.torch.backend, options={"strict": True}, fullgraph=True)(data)


def test_without_dynamic_shapes_each_shape_is_compiled():
    network = make_network()
    compiled = torch.compile(network, backend=kas.torch.backend, dynamic=False)
    with torch.no_grad():
        for batch in (2, 5, 3):
            data = torch.randn(batch, 4, 6, 6)
            torch.testing.assert_close(compiled(data), network(data), rtol=1e-4, atol=1e-5)
    assert [graph.batches for graph in kas.torch.explain()] == [(), (), ()]
