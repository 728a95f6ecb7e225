# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`pip install .`, and installations that are killed on the way.

They take the libraries of the build tree, so that these are not compiled a second time.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def kill_when(folder, pattern, command, environment=None):
    """Starts a command, and kills it and all that it has started as soon as such a file is in the folder."""
    process = subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not list(folder.glob(pattern)):
        assert process.poll() is None, f"{command} ended before {folder / pattern} was there"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.slow
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
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-build-isolation",
        "--no-deps",
    ]
    command += ["--target", str(target), *(f"--config-settings={setting}" for setting in settings), str(ROOT)]
    # Killed while it compiles: nothing is installed, and the same command goes on.
    kill_when(tmp_path, "build/build.ninja", command)
    assert not (target / "kas").exists()
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {path.name for path in (target / "kas").iterdir()}
    assert {"__init__.py", "py.typed", "_kas.pyi"} <= names

    code = "import kas; print(kas.__file__, kas.operator('matmul').name)"
    environment = {**os.environ, "PYTHONPATH": str(target)}
    printed = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True, cwd=tmp_path)
    assert printed.startswith(str(target))


def write_wheel(path):
    """A package of one empty module."""
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("small.py", "")
        wheel.writestr("small-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1\n")
        wheel.writestr(
            "small-1.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("small-1.dist-info/RECORD", "")


def test_an_environment_that_was_interrupted(tmp_path):
    """tools/python.sh, killed while it makes the environment, makes it again.

    A package that is missing is an error that says what to do, and leaves nothing.
    """
    script = tmp_path / "tools" / "python.sh"
    script.parent.mkdir()
    shutil.copy(ROOT / "tools" / "python.sh", script)
    requirements = tmp_path / "python" / "requirements.txt"
    requirements.parent.mkdir()
    wheel = tmp_path / "small-1-py3-none-any.whl"
    requirements.write_text(f"--no-index\n{wheel}\n")
    environment = {**os.environ, "KAS_PYTHON_CACHE": str(tmp_path / "cache")}
    command = [str(script), "--environment-only"]

    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "could not be installed" in done.stderr and "KAS_PYTHON=skip" in done.stderr
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]

    write_wheel(wheel)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    # As soon as the environment has an interpreter, long before it is whole.
    kill_when(tmp_path / "cache", f"{version}-*/bin/python", command, environment)
    assert not list((tmp_path / "cache").glob("*/complete"))
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    subprocess.run([done.stdout.splitlines()[-1], "-c", "import small"], check=True)
