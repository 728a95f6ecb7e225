# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/lint.sh on a small repository with sound and unsound files."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Repository:
    """A git repository with the script and what it needs."""

    def __init__(self, folder):
        self.folder = folder
        copied = [".clang-format", "pyproject.toml", "python/requirements.txt"]
        for name in (*copied, "tools/lint.sh", "tools/python.sh", "tools/plain-commands.py"):
            self.write(name, (ROOT / name).read_text())
            shutil.copymode(ROOT / name, folder / name)
        self.git("init", "-q")

    def git(self, *arguments):
        identity = ["-c", "user.name=kas", "-c", "user.email=kas@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=self.folder, check=True)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, **files):
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "files")

    def lint(self, *options, **environment):
        process = subprocess.run(
            [self.folder / "tools" / "lint.sh", *options],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
        )
        return process.returncode, process.stdout + process.stderr


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_format(repository):
    repository.commit(**{"good.cpp": "int one = 1;\n"})
    code, output = repository.lint("--format")
    assert code == 0 and output.endswith("lint: 1 passed, 0 failed, 0 left out\n")
    repository.commit(**{"bad.cpp": "int  two=2;\n"})
    code, output = repository.lint("--format")
    assert code == 1 and "bad.cpp:1" in output and "lint: format: failed" in output
    # Files that did not change, or are not named, do not count.
    assert repository.lint("--format", "--changed-since=HEAD")[1].endswith("0 passed, 0 failed, 1 left out\n")
    assert repository.lint("--format", "--changed-since=HEAD~1")[0] == 1
    assert repository.lint("--format", "good.cpp")[0] == 0
    repository.git("revert", "--no-edit", "HEAD")
    assert repository.lint("--format", "--changed-since=HEAD~2")[1].endswith("1 left out\n")
    # A file that is not in git yet counts as changed.
    repository.write("new.cpp", "int  three=3;\n")
    assert repository.lint("--format", "--changed-since=HEAD")[0] == 1
    assert repository.lint("--format", "--fix", "new.cpp")[0] == 0
    assert (repository.folder / "new.cpp").read_text() == "int three = 3;\n"


def test_ruff(repository):
    repository.commit(**{"good.py": '"""Nothing."""\n'})
    assert repository.lint("--ruff")[0] == 0
    repository.commit(**{"unused.py": '"""Nothing."""\n\nimport os\n'})
    code, output = repository.lint("--ruff")
    assert code == 1 and "F401" in output and "unused.py" in output
    repository.commit(**{"unused.py": '"""Nothing."""\n', "unformatted.py": '"""Nothing."""\n\nx = {  }\n'})
    code, output = repository.lint("--ruff")
    assert code == 1 and "+x = {}" in output
    code, output = repository.lint("--ruff", KAS_PYTHON="skip")
    assert code == 0 and output.endswith("lint: 0 passed, 0 failed, 1 left out\n")


def test_mypy(repository):
    """A package with an extension, of which the build tree has the stub, and one function whose type is wrong."""
    package = "python/kas/"
    repository.write("build/python/kas/_kas.pyi", "def count() -> int: ...\n")
    # In place of the script that would build the extension.
    python = subprocess.run([ROOT / "tools" / "python.sh", "--environment-only"], capture_output=True, text=True).stdout
    repository.write("tools/python.sh", f"#!/bin/sh\necho {python}")
    repository.write(f"{package}__init__.py", "from . import _kas\n\n\ndef right() -> int:\n    return _kas.count()\n")
    repository.write("research/kas_research/__init__.py", "from kas import right\n\nrows = right()\n")
    assert repository.lint("--mypy")[0] == 0
    repository.write(f"{package}wrong.py", "from . import _kas\n\n\ndef wrong() -> str:\n    return _kas.count()\n")
    code, output = repository.lint("--mypy")
    assert code == 1 and "python/kas/wrong.py:5: error: Incompatible return value type" in output
    repository.write(f"{package}wrong.py", "def untyped(x):\n    return x\n")
    assert repository.lint("--mypy")[0] == 1


def test_plain_headers(repository):
    """A source that takes what it needs from the precompiled header alone."""
    headers = "precompiled.hxx"
    repository.write(headers, "struct Known {};\n")
    repository.commit(**{"complete.cpp": "int one = 1;\n", "incomplete.cpp": "Known known;\n", "unbuilt.cpp": "?\n"})
    header = str(repository.folder / headers)
    flags = f"-Winvalid-pch -Xclang -include-pch -Xclang {header}.pch -Xclang -include -Xclang {header}"
    commands = [
        {"directory": str(repository.folder), "file": name, "command": f"clang++-22 {flags} -o {name}.o -c {name}"}
        for name in ("complete.cpp", "incomplete.cpp")
    ]
    code, output = repository.lint("--plain-headers")
    assert code == 1 and "there is no build tree in 'build'" in output
    repository.write("build/compile_commands.json", json.dumps(commands))
    code, output = repository.lint("--plain-headers")
    assert code == 1 and "unknown type name 'Known'" in output and "unbuilt" not in output
    assert repository.lint("--plain-headers", "--only=^complete")[0] == 0
    # Of a history that is shorter than REV says all is new; the last changed comes first.
    assert repository.lint("--plain-headers=HEAD~30")[0] == 1
    repository.commit(**{"complete.cpp": "int one = 2;\n"})
    assert repository.lint("--plain-headers=HEAD~30", "--at-most=1")[0] == 0
    assert repository.lint("--plain-headers=HEAD~1")[0] == 0
    # A source that is not built is not looked at.
    assert repository.lint("--plain-headers", "--only=unbuilt")[1].endswith("lint: 0 passed, 0 failed, 1 left out\n")
    assert not list(repository.folder.glob("*.o"))


def test_wrong_options(repository):
    assert repository.lint("--formt")[0] == 2
    assert repository.lint("--at-most=no")[0] == 2
    shutil.rmtree(repository.folder / ".git")
    code, output = repository.lint("--format")
    assert code == 1 and "expected a git repository" in output
