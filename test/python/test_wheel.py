# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The wheel that machines without a compiler, MLIR and LLVM can use."""

import json
import os
import pathlib
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
    assert wheel.name.startswith("kas-0.1.0-cp310-abi3-manylinux") and wheel.stat().st_size < 100e6
    content = wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert not [name for name in names if "libMLIR" in name or "libLLVM" in name]
        assert {"kas/_kas.abi3.so", "kas/py.typed", "kas/bin/kas-opt", "kas/lib/libomp.so.5"} <= set(names)
        metadata = archive.read("kas-0.1.0.dist-info/METADATA").decode()
        assert "\nRequires-Dist: nanobind-backend>=" in metadata
        bills = [json.loads(archive.read(name)) for name in names if name.endswith(".cdx.json")]
        packages = {component["name"] for bill in bills for component in bill["components"]} - {"kas"}
        assert {"llvm-22-dev", "libmlir-22-dev", "libsqlite3-0", "libzstd1"} < packages
        assert {f"kas-0.1.0.dist-info/licenses/{name}.txt" for name in packages} < set(names)
    assert "from the environment to the first operator" in run("tools/wheel.sh", "--test")
    run("tools/wheel.sh")
    assert wheel.read_bytes() == content
