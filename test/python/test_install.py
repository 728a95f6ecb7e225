# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pip install .`, with the libraries of the build tree so that they are not compiled a second time."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_pip_install(tmp_path):
    build = os.environ.get("KAS_BUILD")
    if build is None:
        pytest.fail("KAS_BUILD must name the build tree, as tools/check.sh does")
    target = tmp_path / "site"
    settings = [
        "cmake.define.KAS_USE_INSTALLED=ON",
        f"cmake.define.Kas_DIR={build}/lib/cmake/kas",
        f"build-dir={tmp_path}/build",
    ]
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-build-isolation", "--no-deps"]
    command += ["--target", str(target), *(f"--config-settings={setting}" for setting in settings), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {path.name for path in (target / "kas").iterdir()}
    assert {"__init__.py", "py.typed", "_kas.pyi"} <= names

    code = "import kas; print(kas.__file__, kas.operator('matmul').name)"
    environment = {**os.environ, "PYTHONPATH": str(target)}
    printed = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True, cwd=tmp_path)
    assert printed.startswith(str(target))
