# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is compiled is kept on disk: kas._cache, torch.compile with it, and `kas cache`."""

from __future__ import annotations

import json
import os

import pytest

from kas import _cache, cli


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("KAS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("KAS_CACHE_MB", "1")
    return tmp_path / "cache"


def test_texts_are_found_again(directory):
    key = _cache.make_key("a", "bc")
    assert _cache.load(key) is None
    _cache.store(key, "text")
    assert _cache.load(key) == "text"
    assert [path.name for path in directory.iterdir()] == [key]
    assert len({key, _cache.make_key("ab", "c"), _cache.make_key("a", "bd")}) == 3
    assert _cache.get_state().entries == 1


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


def test_damaged_files_are_not_read(directory):
    key = _cache.make_key("a")
    _cache.store(key, "text" * 100)
    (path,) = (directory / key).iterdir()
    content = path.read_bytes()
    for other in (content[:-1], b"", content.replace(b"kas", b"KAS"), content[:20] + b"\0" + content[21:]):
        path.write_bytes(other)
        assert _cache.load(key) is None
    path.write_bytes(content)
    assert _cache.load(key) == "text" * 100


def test_what_was_not_used_for_the_longest_time_is_forgotten(directory):
    keys = [_cache.make_key(str(number)) for number in range(5)]
    for number, key in enumerate(keys):
        _cache.store(key, os.urandom(100_000).hex())
        (path,) = (directory / key).iterdir()
        os.utime(path, (number, number))
    assert _cache.get_state().entries == 5
    assert _cache.load(keys[0]) is not None
    # More than a megabyte in all: numbers 1 and later go, and not 0, which was read.
    for key in map(_cache.make_key, "abcde"):
        _cache.store(key, os.urandom(100_000).hex())
    assert _cache.get_state().bytes <= 1 << 20
    assert _cache.load(keys[1]) is None
    assert _cache.load(keys[0]) is not None


def test_nothing_is_kept_without_room(directory, monkeypatch):
    monkeypatch.setenv("KAS_CACHE_MB", "0")
    _cache.store("key", "text")
    assert not directory.exists()
    assert _cache.load("key") is None
    monkeypatch.setenv("KAS_CACHE_MB", "much")
    with pytest.raises(ValueError, match="KAS_CACHE_MB requires a number of megabytes, got 'much'"):
        _cache.load("key")


def test_a_directory_that_cannot_be_written_costs_nothing_but_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KAS_CACHE_DIR", str(tmp_path / "file" / "cache"))
    _cache.store("key", "text")
    assert _cache.load("key") is None


def test_what_a_process_left_unfinished_is_removed(directory):
    (directory / _cache.make_key("a")).mkdir(parents=True)
    (directory / _cache.make_key("a") / "code.kaso").write_bytes(b"1234")
    (directory / "other").mkdir()
    assert (_cache.get_state().entries, _cache.get_state().bytes) == (1, 4)
    _cache.clear()
    assert [path.name for path in directory.iterdir()] == ["other"]


def test_the_command_shows_and_clears(directory, capsys):
    _cache.store(_cache.make_key("a"), "text")
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
    from kas.torch import _graph_program

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
    assert {path.suffix for path in entry.iterdir()} == {".kasc", ".kaso"}

    (text,) = (_cache.load(entry.name) for entry in directory.iterdir())
    _cache.store(entry.name, "what another MLIR wrote")
    assert call(2) == [None]
    assert _cache.load(entry.name) == text

    def fail(graph):
        raise _graph_program.UnsupportedGraphError("imports")

    monkeypatch.setattr(_graph_program, "import_graph", fail)
    assert call(2) == [None]
    assert call(3) == ["imports"]
