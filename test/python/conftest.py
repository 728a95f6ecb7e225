# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of the Python tests."""

import os
import pathlib

import pytest

# Before anything starts OpenMP: two threads of such small networks mostly wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests compile what they test, and keep nothing.
os.environ.setdefault("KAS_CACHE_MB", "0")
os.environ.setdefault("KAS_LAYERS", "")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the slow tests, too")


def has_gpu():
    """Whether the build was configured with KAS_ENABLE_GPU; what knows nothing of the option has GPUs."""
    cache = pathlib.Path(os.environ.get("KAS_BUILD", "build"), "CMakeCache.txt")
    return not cache.exists() or "KAS_ENABLE_GPU:BOOL=OFF" not in cache.read_text()


def pytest_collection_modifyitems(config, items):
    # Deselected, not skipped: a test that is skipped is one that could not run.
    left_out = set()
    if not config.getoption("--slow"):
        left_out.add("slow")
    if not has_gpu():
        left_out.add("gpu")
    config.hook.pytest_deselected(items=[item for item in items if left_out & set(item.keywords)])
    items[:] = [item for item in items if not left_out & set(item.keywords)]


@pytest.fixture
def conv2d_binding():
    return {"N": 2, "Cin": 4, "Cout": 6, "H": 7, "W": 5, "k": 3}
