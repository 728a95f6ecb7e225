# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of the Python tests."""

import dataclasses
import os

import pytest

# Before anything starts OpenMP: two threads of such small networks mostly wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests compile what they test, and keep nothing.
os.environ.setdefault("KAS_CACHE_MB", "0")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the slow tests, too")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    # Deselected, not skipped: a test that is skipped is one that could not run.
    slow = [item for item in items if "slow" in item.keywords]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if "slow" not in item.keywords]


@pytest.fixture
def conv2d_binding():
    return {"N": 2, "Cin": 4, "Cout": 6, "H": 7, "W": 5, "k": 3}


@pytest.fixture(scope="session")
def table():
    """KAS-Bench-1."""
    from kas import bench1

    return bench1.load()


@pytest.fixture(scope="session")
def untrained(table):
    """The operators of KAS-Bench-1 without what was measured."""
    from kas.bench1 import Table

    about = {**table.manifest, "tasks": {"noise": {}}}
    return Table([dataclasses.replace(row, trainings=(), latencies=()) for row in table], {}, about)
