# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python code of the pages runs as it is written."""

import functools
import pathlib
import re

import kas.torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


@functools.cache
def run_page(name, least=5):
    """The names of the page after its code has run, once for all tests; it has at least so many blocks."""
    text = (ROOT / "docs" / name).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= least
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    return names


def test_python_page():
    # The page shows what became of its own network: graphs of tests before are forgotten.
    kas.torch.explain()
    run_page("guide/python.md")


def test_compile_a_model_page():
    kas.torch.explain()
    assert set(run_page("guide/compile-a-model.md")["times"]) == {"PyTorch", "kas"}


def test_own_tasks():
    names = run_page("guide/own-tasks.md")
    assert names["angles"].is_complete and names["segments"].is_complete and names["outcome"].is_complete


def test_quantization_page():
    run_page("guide/quantization.md", least=1)


def test_zoo_page():
    run_page("guide/zoo.md", least=1)


def test_tutorial(tmp_path, monkeypatch):
    # It leaves files where it is run.
    monkeypatch.chdir(tmp_path)
    names = run_page("guide/tutorial.md")
    assert (tmp_path / "operator.py").exists()
    outcome = names["outcome"]
    assert len(outcome.trained) == 18 and len(outcome.finalists) == 2
    assert outcome.best.metrics["final_test_accuracy"] > 0.5


def test_onnx_page(tmp_path, monkeypatch):
    # It leaves files where it is run.
    monkeypatch.chdir(tmp_path)
    run_page("guide/onnx.md")
    assert (tmp_path / "network.onnx").exists()


def test_accelerating_page(tmp_path, monkeypatch):
    # It leaves a folder where it is run.
    monkeypatch.chdir(tmp_path)
    names = run_page("guide/accelerating.md", least=1)
    assert names["outcome"].is_complete and (tmp_path / "faster" / "report.html").exists()
