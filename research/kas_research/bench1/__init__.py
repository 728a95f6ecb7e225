# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""KAS-Bench-1: all operators of a published space, with exact costs, latencies and accuracies.

>>> import kas_research.bench1
>>> table = kas_research.bench1.load()
>>> table[4711].costs["network"].flops                          # by number
>>> print(table.find(kas.operator("syno_operator2"), {"k": "k1"}))
>>> table.query(flops=1e9, sees=True)                           # by cost and property
>>> table.replay("mcts", seed=1, budget=50).regret(50)          # a search in seconds

The page research/reports/kas-bench-1.md says what is in it and how it was made; `kas-research bench1` makes it.
"""

from typing import TYPE_CHECKING

from ._files import TableError, load, write_tables
from ._find import Found
from ._space import DEFAULT, LAYERS, PROPERTIES, make_space
from ._table import Costs, Latency, Row, Table, Training

__all__ = [
    "DEFAULT",
    "LAYERS",
    "PROPERTIES",
    "Check",
    "Costs",
    "Found",
    "Latency",
    "Regret",
    "Replay",
    "Row",
    "Step",
    "Table",
    "TableError",
    "Training",
    "get_regrets",
    "load",
    "make_space",
    "reproduce",
    "write_tables",
]

# They need torch, which takes seconds to import.
_OF_MODULES = {
    "Check": "_reproduce",
    "Regret": "_replay",
    "Replay": "_replay",
    "Step": "_replay",
    "get_regrets": "_replay",
    "reproduce": "_reproduce",
}

if TYPE_CHECKING:
    from ._replay import Regret as Regret
    from ._replay import Replay as Replay
    from ._replay import Step as Step
    from ._replay import get_regrets as get_regrets
    from ._reproduce import Check as Check
    from ._reproduce import reproduce as reproduce
else:

    def __getattr__(name):
        if name in _OF_MODULES:
            import importlib

            return getattr(importlib.import_module(f"kas_research.bench1.{_OF_MODULES[name]}"), name)
        raise AttributeError(f"module 'kas_research.bench1' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
