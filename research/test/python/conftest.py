# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of the tests of research, which are those of the product's, and the tables of KAS-Bench-1."""

import dataclasses
import pathlib
import runpy
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
# The package, and helpers of the product's tests.
sys.path[:0] = [str(ROOT / "research"), str(ROOT / "test" / "python")]
_of_product = runpy.run_path(str(ROOT / "test" / "python" / "conftest.py"))
pytest_addoption = _of_product["pytest_addoption"]
pytest_collection_modifyitems = _of_product["pytest_collection_modifyitems"]


@pytest.fixture(scope="session")
def table():
    """KAS-Bench-1."""
    from kas_research import bench1

    return bench1.load()


@pytest.fixture(scope="session")
def untrained(table):
    """The operators of KAS-Bench-1 without what was measured."""
    from kas_research.bench1 import Table

    about = {**table.manifest, "tasks": {"noise": {}}}
    return Table([dataclasses.replace(row, trainings=(), latencies=()) for row in table], {}, about)
