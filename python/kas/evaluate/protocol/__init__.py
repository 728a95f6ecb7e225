# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparing operators in networks: accuracy at a latency, by one protocol.

The page docs/guide/discovery.md introduces it.
"""

from ._layers import LAYERS, OPERATORS
from ._networks import NETWORKS
from ._protocol import Contender, Job, Point, Protocol
from ._run import plan, run
from ._store import Store, StoreError
from ._train import Worker, make_network, make_unseen

__all__ = [
    "LAYERS",
    "NETWORKS",
    "OPERATORS",
    "Contender",
    "Job",
    "Point",
    "Protocol",
    "Store",
    "StoreError",
    "Worker",
    "make_network",
    "make_unseen",
    "plan",
    "run",
]
