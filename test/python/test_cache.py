# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is compiled is kept on disk: functions, graphs of torch.compile, and `kas cache`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy
import pytest

import kas
from kas import _cache, cli


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("KAS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("KAS_CACHE_MB", "1")
    return tmp_path / "cache"


PRODUCT = """func.func @product(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %empty = tensor.empty() : tensor<4x8xf32>
  %zero = arith.constant FACTOR : f32
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%filled : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}"""


def run_product(start=0.0, **options):
    """What starts with another number is another function."""
    function = kas.parse(PRODUCT.replace("FACTOR", repr(float(start)))).compile("product", threads=1, **options)
    x, w = numpy.ones((4, 8), numpy.float32), numpy.full((8, 8), 2, numpy.float32)
    call = function.bind(x, w)
    call.prepack()
    assert (call() == 16 + start).all()


def test_functions_are_found_again(directory):
    run_product()
    (entry,) = directory.iterdir()
    written = entry.read_bytes()
    entry.chmod(0o400)
    run_product()
    assert [entry] == list(directory.iterdir())
    assert entry.read_bytes() == written
    for number, options in enumerate(({"prepack_weights": True}, {"opt_level": 1}, {"start": 1}), 2):
        run_product(**options)
        assert _cache.get_state().entries == number
    # The name is that of nothing else.
    kas.operator("conv2d").compile("N=1,Cin=2,Cout=2,H=4,W=4,k=3", threads=1)
    assert _cache.get_state().entries == 5


def test_another_process_finds_it(directory):
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_cache; test_cache.run_product()"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code, os.path.dirname(__file__)], check=True)
        (entry,) = directory.iterdir()
        os.utime(entry, (1, 1))
    run_product()
    assert entry.stat().st_mtime > 1, "read, not written again"
    assert list(directory.iterdir()) == [entry]


def test_damaged_entries_are_made_again(directory):
    run_product()
    (entry,) = directory.iterdir()
    content = entry.read_bytes()
    middle = len(content) // 2
    for other in (content[:-1], b"", content[8:], content[:middle] + b"\0\1\2\3" + content[middle + 4 :]):
        entry.write_bytes(other)
        run_product()
        assert entry.read_bytes() == content


def test_other_machines_and_builds_have_other_keys(monkeypatch):
    key = _cache.make_key("a")
    monkeypatch.setattr(_cache, "describe_environment", lambda: "another")
    assert _cache.make_key("a") != key


def test_other_importers_have_other_keys(tmp_path, monkeypatch):
    monkeypatch.setattr(_cache, "_SOURCES", tmp_path)
    keys = []
    for text in ("def importer(): return 1", "def importer(): return 2"):
        (tmp_path / "importer.py").write_text(text)
        _cache.describe_environment.cache_clear()
        keys.append(_cache.make_key("a"))
    _cache.describe_environment.cache_clear()
    assert keys[0] != keys[1]


def test_what_was_not_used_for_the_longest_time_is_forgotten(directory):
    run_product()
    (first,) = directory.iterdir()
    for number in range(300):
        (directory / f"{number:032x}.kaso").write_bytes(bytes(10_000))
        os.utime(directory / f"{number:032x}.kaso", (number, number))
    os.utime(first, (0, 0))
    # Read, so that it is the last to go.
    run_product()
    for number in range(20):
        run_product(number + 1)
    state = _cache.get_state()
    assert state.bytes <= (1 << 20) + (1 << 20) // 32
    assert first.exists()
    assert not (directory / f"{0:032x}.kaso").exists()


def test_nothing_is_kept_without_room(directory, monkeypatch):
    monkeypatch.setenv("KAS_CACHE_MB", "0")
    run_product()
    assert not directory.exists()
    monkeypatch.setenv("KAS_CACHE_MB", "much")
    with pytest.raises(kas.Error, match="KAS_CACHE_MB requires a number of megabytes, got 'much'"):
        run_product()


def test_a_directory_that_cannot_be_written_costs_nothing_but_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KAS_CACHE_DIR", str(tmp_path / "file" / "cache"))
    run_product()


def test_what_a_process_left_unfinished_is_removed(directory):
    directory.mkdir()
    (directory / f"{0:032x}.kaso.12345678.tmp").write_bytes(b"1234")
    (directory / "other").mkdir()
    assert (_cache.get_state().entries, _cache.get_state().bytes) == (1, 4)
    _cache.clear()
    assert [path.name for path in directory.iterdir()] == ["other"]


def test_the_command_shows_and_clears(directory, capsys):
    run_product()
    assert cli.main(["cache", "--json"]) == 0
    state = json.loads(capsys.readouterr().out)
    assert (state["directory"], state["entries"], state["limit"]) == (str(directory), 1, 1 << 20)
    assert cli.main(["cache"]) == 0
    assert "1 entries" in capsys.readouterr().out
    assert cli.main(["cache", "--clear"]) == 0
    assert "0 entries, 0.0 of 1 MB" in capsys.readouterr().out


def test_compiled_graphs_come_from_the_cache(directory, monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    import kas.torch
    from kas.torch import _backend, _graph_program

    torch.manual_seed(0)
    network, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()).eval(), torch.randn(3, 4)

    def call(factor):
        torch._dynamo.reset()
        with torch.no_grad():
            compiled = torch.compile(
                lambda x: network(x) * factor * torch.tensor([1.0, 2.0, 3.0, 4.0]), backend=kas.torch.backend
            )
            torch.testing.assert_close(compiled(x), network(x) * factor * torch.arange(1.0, 5.0), rtol=1e-4, atol=1e-5)
        return [graph.reason for graph in kas.torch.explain()]

    kas.torch.explain()
    assert call(2) == [None]
    (entry,) = directory.iterdir()
    content = entry.read_bytes()
    entry.write_bytes(content[:-1])
    assert call(2) == [None]
    assert entry.read_bytes() == content

    def fail(*_):
        raise _graph_program.UnsupportedGraphError("traces")

    monkeypatch.setattr(_backend, "trace", fail)
    assert call(2) == [None]
    assert call(3) == ["traces"]


def test_graphs_with_constants_and_other_layouts_come_from_the_cache(directory, monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    import kas.torch
    from kas.torch import _backend

    def network(x, flag):
        # Results: of another layout, a flag, an argument, one that is known, none.
        y = (x * 2).to(memory_format=torch.channels_last)
        return y, flag & (x[0, :, 0, 0] > 0), x, torch.full((2, 3), 7, dtype=torch.int64), None

    torch.manual_seed(0)
    x, flag = torch.randn(2, 3, 4, 5), torch.tensor([True, False, True])
    found = []
    for _ in range(2):
        torch._dynamo.reset()
        kas.torch.explain()
        with torch.no_grad():
            found.append(torch.compile(network, backend=kas.torch.backend)(x, flag))
        assert [graph.reason for graph in kas.torch.explain()] == [None]
        # The second time nothing is to be traced.
        monkeypatch.setattr(_backend, "trace", None)
    for results in found:
        for result, expected in zip(results, network(x, flag)):
            if expected is None:
                assert result is None
                continue
            torch.testing.assert_close(result, expected)
            assert result.stride() == expected.stride()


def test_parts_of_graphs_have_keys_with_their_layouts(directory):
    """Beside an operation that PyTorch runs: what a part gives follows the layout of what it takes."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    import kas.torch

    def network(x):
        y = (x * 2).exp()
        return y + 1, torch.linalg.eigvals(y).abs().sum()

    x = torch.randn(4, 4)
    for data in (x, x.t().contiguous().t(), x):
        torch._dynamo.reset()
        for result, expected in zip(torch.compile(network, backend=kas.torch.backend)(data), network(data)):
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
            assert result.stride() == expected.stride()
    assert len([*directory.iterdir()]) > 1


def test_steps_of_trainings_come_from_the_cache(directory, monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir")
    import kas.torch
    from kas.torch import _backend

    torch.manual_seed(0)
    network, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 2)), torch.randn(3, 4)
    expected = torch.autograd.grad(network(x).square().sum(), list(network.parameters()))
    for _ in range(2):
        torch._dynamo.reset()
        kas.torch.explain()
        compiled = torch.compile(network, backend=kas.torch.backend)
        torch.testing.assert_close(
            torch.autograd.grad(compiled(x).square().sum(), list(network.parameters())), expected, rtol=1e-4, atol=1e-5
        )
        assert [graph.reason for graph in kas.torch.explain()] == [None, None]
        monkeypatch.setattr(_backend, "trace", None)
