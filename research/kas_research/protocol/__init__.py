# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparing operators in networks: accuracy at a latency, by one protocol.

The page research/guide/discovery.md introduces it.
"""

from kas.zoo._backbones import NETWORKS as NETWORKS
from kas.zoo._contenders import Contender, make_layer, make_network
from kas.zoo._layers import LAYERS as LAYERS
from kas.zoo._layers import OPERATORS as OPERATORS

from . import statistics
from ._latency import measure
from ._protocol import Job, Point, Protocol, StageSearch
from ._report import update_page, write_plot, write_tables
from ._results import Condition, NetworkResults, Result, read_results
from ._run import plan, run
from ._spec import parse_protocol, read_protocol
from ._stage_search import Found, search_stages
from ._store import Store, StoreError
from ._train import Worker, make_unseen

__all__ = [
    "Condition",
    "Contender",
    "Found",
    "Job",
    "NetworkResults",
    "Point",
    "Protocol",
    "Result",
    "StageSearch",
    "Store",
    "StoreError",
    "Worker",
    "make_layer",
    "make_network",
    "make_unseen",
    "measure",
    "parse_protocol",
    "plan",
    "read_protocol",
    "read_results",
    "run",
    "search_stages",
    "statistics",
    "update_page",
    "write_plot",
    "write_tables",
]
