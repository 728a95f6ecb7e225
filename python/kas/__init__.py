# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas discovers and compiles new neural-network operators.

>>> import kas
>>> conv = kas.operator("conv2d")
>>> run = conv.compile({"N": 1, "Cin": 8, "Cout": 8, "H": 16, "W": 16, "k": 3})
>>> y = run(x, w)                                               # NumPy arrays or torch tensors
"""

from typing import TYPE_CHECKING

from ._builder import Coordinate, OperatorBuilder
from ._device_function import DeviceCall, DeviceFunction
from ._errors import Diagnostic, Error, MissingExtraError
from ._exact import ExactCheck
from ._function import Function, load_compiled
from ._kas import __version__
from ._kernel import Kernel, KernelShapes, kernel
from ._module import (
    AxisProperties,
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
from ._profile import CompiledPass, Profile, ProfiledOperation
from ._quantize import quantize
from ._request import Request
from ._search import ALGORITHMS, Candidate, Membership, Searcher, SearchResult, SearchSpace
from ._sequence import OperatorSequence

__all__ = [
    "ALGORITHMS",
    "AxisProperties",
    "Candidate",
    "CompiledPass",
    "Coordinate",
    "Cost",
    "DeviceCall",
    "DeviceFunction",
    "Diagnostic",
    "Entry",
    "Error",
    "ExactCheck",
    "Function",
    "Kernel",
    "KernelShapes",
    "Membership",
    "MissingExtraError",
    "Module",
    "Operator",
    "OperatorBuilder",
    "OperatorSequence",
    "Profile",
    "ProfiledOperation",
    "Request",
    "SearchResult",
    "SearchSpace",
    "Searcher",
    "Shapes",
    "SymbolicCost",
    "__version__",
    "kernel",
    "load",
    "load_compiled",
    "named_kernels",
    "named_operators",
    "operator",
    "parse",
    "quantize",
]


# Their packages take seconds to import: they are imported when they are used.
_MODULES = ("distributed", "evaluate", "onnx", "report", "torch")
_OF_MODEL_SEARCH = ("Budget", "Halving", "SearchCallback", "SearchOutcome", "Trained", "search", "search_in_turn")

_OF_ACCELERATE = ("Accelerated", "accelerate")
_OF_RESEARCH = ("bench1", "structured", "study")

if TYPE_CHECKING:
    from . import distributed as distributed
    from . import evaluate as evaluate
    from . import onnx as onnx
    from . import report as report
    from . import torch as torch
    from ._accelerate import Accelerated as Accelerated
    from ._accelerate import accelerate as accelerate
    from ._model_search import search as search
    from ._search_in_turn import search_in_turn as search_in_turn
    from ._search_outcome import Budget as Budget
    from ._search_outcome import SearchCallback as SearchCallback
    from ._search_outcome import SearchOutcome as SearchOutcome
    from ._search_outcome import Trained as Trained
    from .evaluate._halving import Halving as Halving
else:

    def __getattr__(name):
        if name in _MODULES:
            import importlib

            return importlib.import_module(f"kas.{name}")
        if name in _OF_ACCELERATE:
            from . import _accelerate

            return getattr(_accelerate, name)
        if name in _OF_MODEL_SEARCH:
            from . import _model_search, _search_in_turn

            return getattr(_search_in_turn if name == "search_in_turn" else _model_search, name)
        if name in _OF_RESEARCH:
            raise AttributeError(f"'kas.{name}' is now 'kas_research.{name}', of the package kas-research")
        raise AttributeError(f"module 'kas' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_OF_ACCELERATE, *_OF_MODEL_SEARCH})
