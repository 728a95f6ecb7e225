# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Across-stack studies: models, compressions, algorithms, schedules, targets in all combinations.

The page research/guide/studies.md introduces them.
"""

from .._spec import SpecError
from ._models import NETWORKS, Layer, get_layers
from ._report import get_best, update_page, write_plot, write_tables
from ._run import run
from ._spec import Configuration, Model, Spec, parse_spec, read_spec
from ._store import Outcome, StudyError, read_studies

__all__ = [
    "NETWORKS",
    "Configuration",
    "Layer",
    "Model",
    "Outcome",
    "Spec",
    "SpecError",
    "StudyError",
    "get_best",
    "get_layers",
    "parse_spec",
    "read_spec",
    "read_studies",
    "run",
    "update_page",
    "write_plot",
    "write_tables",
]
