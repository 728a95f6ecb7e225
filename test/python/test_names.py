# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of the package: those that are imported when they are used, and former ones."""

import importlib
import os
import pathlib
import re
import subprocess
import sys

import numpy
import pytest

import kas
from kas import cli

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAZY = ["Budget", "Halving", "SearchCallback", "SearchOutcome", "Trained", "search", "search_in_turn"]


def test_lazy_names_are_listed():
    assert set(LAZY) <= set(dir(kas))
    assert {"distributed", "evaluate", "report", "torch"} <= set(dir(kas))
    for name in dir(kas):
        getattr(kas, name)
    assert "RayPool" in dir(kas.distributed)
    with pytest.raises(AttributeError, match=r"module 'kas' has no attribute 'serch'"):
        _ = kas.serch


def test_import_is_light():
    code = "import sys, kas; dir(kas); assert not {'torch', 'ray', 'pandas', 'plotly'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_types_are_known(tmp_path):
    """Mypy sees what a lazy name is, and a name that is not there."""
    build = pathlib.Path(os.environ["KAS_BUILD"])
    code = tmp_path / "program.py"
    code.write_text(
        "import kas\n"
        "reveal_type(kas.Budget)\n"
        "reveal_type(kas.search)\n"
        "reveal_type(kas.distributed.RayPool)\n"
        "reveal_type(kas.__version__)\n"
        "kas.serch\n"
    )
    # The cache of tools/lint.sh has what mypy knows of torch.
    options = ["--config-file", ROOT / "pyproject.toml", "--cache-dir", build / "lint" / "mypy-cache"]
    output = subprocess.run(
        [sys.executable, "-m", "mypy", *options, code],
        env={**os.environ, "MYPYPATH": str(build / "python")},
        capture_output=True,
        text=True,
    ).stdout
    notes = [line.partition("note: ")[2] for line in output.splitlines() if "note: " in line]
    assert "_search_outcome.Budget" in notes[0] and "Any" not in notes[0], output
    assert "-> kas._search_outcome.SearchOutcome" in notes[1], output
    assert "kas.distributed._ray.RayPool" in notes[2], output
    assert '"str"' in notes[3].replace("builtins.", ""), output
    errors = [line for line in output.splitlines() if " error: " in line]
    assert len(errors) == 1 and 'Module has no attribute "serch"' in errors[0], output


def test_former_names():
    """They work for one release, and say what they are called now."""
    with pytest.warns(DeprecationWarning, match=r"kas\.evaluate\.judges is now called kas\.evaluate\.proxies"):
        former = importlib.import_module("kas.evaluate.judges")
    from kas.evaluate import proxies

    assert former.Combination is proxies.Combination and former.static_features is proxies.static_features
    conv = kas.operator("conv2d")
    binding = {"N": 1, "Cin": 2, "Cout": 2, "H": 4, "W": 4, "k": 3}
    with pytest.warns(DeprecationWarning, match=r"the argument 'road' is now called 'lowering'"):
        conv.compile_gradient(1, binding, road="loops")
    with pytest.raises(TypeError, match=r"expected one of them, got both"):
        conv.compile_gradient(1, binding, road="loops", lowering="loops")
    module = kas.Module(
        "func.func @f(%x: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    )
    with pytest.warns(DeprecationWarning, match=r"the argument 'prepare_weights' is now called 'prepack_weights'"):
        function = module.compile("f", threads=1, prepare_weights=True)
    x = numpy.ones(2, numpy.float32)
    call = function.bind(x, x)
    with pytest.warns(DeprecationWarning, match=r"'prepare' is now called 'prepack'"):
        call.prepare()
    assert (call() == x).all()


@pytest.mark.parametrize("name", ["bench1", "compare", "study"])
def test_commands_of_research(name, capsys):
    """They say where they went."""
    assert cli.main([name, "--help"]) == 2
    assert capsys.readouterr().err == f"error: 'kas {name}' is now 'kas-research {name}', of the package kas-research\n"


def test_modules_of_research():
    for name in ("bench1", "structured", "study"):
        with pytest.raises(
            AttributeError, match=rf"'kas\.{name}' is now 'kas_research\.{name}', of the package kas-res"
        ):
            getattr(kas, name)


@pytest.mark.parametrize(
    "pattern, file",
    [
        (r"FROM (candidate|metric|setting|training|statistic)\b", "_search_database.py"),
        (r"import multiprocessing\b|ProcessPoolExecutor", "_processes.py"),
        (r"kas-cpu-pipeline\{", "_pipelines.py"),
        (r"\bload_dataset\(", "_data_sets.py"),
        (r"\bTrainingPlan\(|\bkeep \+ 1e-", "_halving.py"),
        (r"\bdescribe_objective\(|[\"']\\s\*pareto", "_search.py"),
    ],
)
def test_what_is_said_once(pattern, file):
    """One reader of search databases, one pool of processes, one place that spells the options of the pipeline.

    One door to the library's readers of data sets, its plans of trainings with their halving, and its objectives.
    """
    sources = [
        path
        for folder in ("python/kas", "research")
        for path in (ROOT / folder).rglob("*.py")
        if "test" not in path.relative_to(ROOT).parts
    ]
    assert len(sources) > 200
    found = {path.name for path in sources if re.search(pattern, path.read_text(encoding="utf-8"))}
    assert found == {file}
