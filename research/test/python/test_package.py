# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package kas-research as a wheel."""

import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_wheel(tmp_path):
    """It holds the modules and the tables, nothing of kas, and the command."""
    options = ["--no-build-isolation", "--no-deps", "--disable-pip-version-check", f"--wheel-dir={tmp_path}"]
    command = [sys.executable, "-m", "pip", "wheel", *options, ROOT / "research"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("kas_research-0.1.0-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        command = archive.read("kas_research-0.1.0.dist-info/entry_points.txt").decode()
    assert "kas-research = kas_research.cli:main" in command.replace("=", " = ").replace("  ", " ")
    modules = {"bench1", "protocol", "study"}
    assert {f"kas_research/{name}/__init__.py" for name in modules} | {"kas_research/structured.py"} <= set(names)
    assert {path.name for path in (ROOT / "research/kas_research/bench1/data").iterdir()} <= {
        name.rpartition("/")[2] for name in names if name.startswith("kas_research/bench1/data/")
    }
    assert all(name.split("/")[0] in ("kas_research", "kas_research-0.1.0.dist-info") for name in names)
