# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches on many machines: the tree and the database at one process, evaluators anywhere.

>>> import kas.distributed
>>> with kas.Searcher(space, "mcts", database="search.db", objective="-accuracy") as searcher:
...     with kas.distributed.RayPool(evaluator, workers=64, num_gpus=0.5, address="auto") as pool:
...         kas.distributed.run(searcher, pool, evaluations=1000)

An evaluator is a picklable function of a `kas.Request` to a dictionary of metrics; what it raises is the reason of a
failure. The same call after whatever happened goes on from the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._accelerate import AccelerateJob
from ._driver import Outcome, Pool, Summary, run
from ._local import LocalPool
from ._simulation import SimulatedPool
from ._trainers import TrainingPool, TrainJob

__all__ = [
    "AccelerateJob",
    "LocalPool",
    "Outcome",
    "Pool",
    "RayPool",
    "SimulatedPool",
    "Summary",
    "TrainJob",
    "TrainingPool",
    "run",
]


if TYPE_CHECKING:
    from ._ray import RayPool
else:

    def __getattr__(name):
        # Ray takes a second to import.
        if name == "RayPool":
            from ._ray import RayPool

            return RayPool
        raise AttributeError(f"module 'kas.distributed' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
