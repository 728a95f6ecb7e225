# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas discovers and compiles new neural-network operators.

>>> import kas
>>> conv = kas.operator("conv2d")
>>> run = conv.compile({"N": 1, "Cin": 8, "Cout": 8, "H": 16, "W": 16, "k": 3})
>>> y = run(x, w)                                               # NumPy arrays or torch tensors
"""

from ._builder import Coordinate, OperatorBuilder
from ._errors import Diagnostic, Error, MissingExtraError
from ._function import Function
from ._kas import __version__
from ._kernel import Kernel, KernelShapes, kernel
from ._module import (
    Cost,
    Entry,
    Module,
    Operator,
    Shapes,
    SymbolicCost,
    load,
    named_kernels,
    named_operators,
    operator,
    parse,
)
from ._request import Request
from ._search import ALGORITHMS, Candidate, Searcher, SearchResult, SearchSpace

__all__ = [
    "ALGORITHMS",
    "Candidate",
    "Coordinate",
    "Cost",
    "Diagnostic",
    "Entry",
    "Error",
    "Function",
    "Kernel",
    "KernelShapes",
    "MissingExtraError",
    "Module",
    "Operator",
    "OperatorBuilder",
    "Request",
    "SearchResult",
    "SearchSpace",
    "Searcher",
    "Shapes",
    "SymbolicCost",
    "__version__",
    "kernel",
    "load",
    "named_kernels",
    "named_operators",
    "operator",
    "parse",
]


_OF_MODEL_SEARCH = ("Budget", "Halving", "SearchCallback", "SearchOutcome", "Trained", "search")


def __getattr__(name: str):
    # Their packages take seconds to import: only who asks for them pays.
    if name in ("distributed", "evaluate", "report", "torch"):
        import importlib

        return importlib.import_module(f"kas.{name}")
    if name in _OF_MODEL_SEARCH:
        from . import _model_search

        return getattr(_model_search, name)
    raise AttributeError(f"module 'kas' has no attribute '{name}'")
