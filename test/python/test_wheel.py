# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The wheel that machines without a compiler, MLIR and LLVM can use."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, status=0):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_usage():
    assert "usage: tools/wheel.sh" in run("tools/wheel.sh", "--help")
    assert "error: unknown option '--tests'" in run("tools/wheel.sh", "--tests", status=2)


@pytest.mark.slow
def test_wheel():
    if pathlib.Path(os.environ.get("KAS_BUILD", "")).resolve() != ROOT / "build":
        pytest.skip("tools/wheel.sh packs the build tree 'build'")
    run("tools/wheel.sh")
    (wheel,) = (ROOT / "build/wheel").glob("kas-*.whl")
    assert wheel.name.startswith("kas-0.1.0-cp310-abi3-manylinux") and wheel.stat().st_size <= 70e6
    content = wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert not [name for name in names if re.search("libMLIR|libLLVM|research|bench1|study|protocol", name)]
        assert {"kas/_kas.abi3.so", "kas/py.typed", "kas/bin/kas-opt", "kas/lib/libomp.so.5"} <= set(names)
        # Nothing in it depends on where it was built.
        assert not [name for name in names if str(ROOT).encode() in archive.read(name)]
        metadata = archive.read("kas-0.1.0.dist-info/METADATA").decode()
        assert "\nRequires-Dist: nanobind-backend>=" in metadata
        bills = [json.loads(archive.read(name)) for name in names if name.endswith(".cdx.json")]
        packages = {component["name"] for bill in bills for component in bill["components"]} - {"kas"}
        assert {"llvm-22-dev", "libmlir-22-dev", "libsqlite3-0", "libzstd1"} < packages
        assert {f"kas-0.1.0.dist-info/licenses/{name}.txt" for name in packages} < set(names)
    assert "from the environment to the first operator" in run("tools/wheel.sh", "--test")
    run("tools/wheel.sh")
    assert wheel.read_bytes() == content


def test_release_usage():
    assert "usage: tools/release.sh" in run("tools/release.sh", "--help")
    assert "error: unknown option '--tests'" in run("tools/release.sh", "--tests", status=2)


def test_release_of_what_is_not_ready(tmp_path):
    """Nothing is built for it."""
    (tmp_path / "tools").mkdir()
    script = shutil.copy(ROOT / "tools/release.sh", tmp_path / "tools")
    (tmp_path / "pyproject.toml").write_text('version = "9.9.1"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n")
    assert "error: requires a section '## 9.9.1' of CHANGELOG.md, got none" in run(script, status=1)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 9.9.1 - 2026-01-01\n")
    run("git", "init", "-q", tmp_path)
    assert "error: requires a tree without changes, got:\n?? CHANGELOG.md" in run(script, status=1)
    run("git", "-C", tmp_path, "add", ".")
    commit = ("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "all")
    run("git", "-C", tmp_path, *commit)
    assert "error: requires a secret key of gpg, got 'nobody'" in run(script, "--sign=nobody", status=1)
