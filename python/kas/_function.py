# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions on arrays."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from . import _kas
from ._deprecated import renamed_method
from ._errors import Error
from ._exact import ExactCheck


class BoundCall:
    """A function with the arrays that it takes and gives, for many calls: their memory must stay where it is."""

    def __init__(self, handle: _kas.BoundCall, results: Any):
        self._handle = handle
        self.results = results
        """As the function gives them."""

    def prepack(self) -> None:
        """Packs the weights, which a function that was compiled with `prepack_weights` needs before the first call.

        What it packs is the function's, not that of these arrays. Again when a weight has changed; no call may run
        meanwhile. Does nothing for other functions. Raises `kas.Error` as calls do.
        """
        if (message := self._handle.prepack()) is not None:
            raise Error(message)

    prepare = renamed_method("prepare", prepack)

    def __call__(self) -> Any:
        """Runs the function on what the arrays hold now; raises `kas.Error` as it does."""
        if (message := self._handle.run()) is not None:
            raise Error(message)
        return self.results


class Function:
    """A compiled function on arrays of fixed shapes, or on batches of any size (`any_batch`).

    Takes NumPy arrays, torch tensors on the CPU and whatever else speaks DLPack, without copies, and gives arrays of
    the kind of the first argument. Runs without Python's lock, in any number of threads at once. A copy is the function
    itself; one that was pickled is compiled again where it is loaded, or read again from the file that it came from.
    """

    def __init__(self, module: _kas.Module, source: str | bytes, method: str, *arguments: Any):
        """Compiles by a method of `module`; `source` is text, or bytecode, for which it does the same."""
        self._describe(getattr(module, method)(*arguments), _compile, source, method, arguments)

    def _describe(self, handle: _kas.Function, again: Callable[..., Function], *source: Any) -> None:
        """`again` makes the same function of `source` and of how it was checked."""
        self._handle, self._again, self._source = handle, again, source
        self.arguments: list[tuple[str, tuple[int, ...]]] = [(name, tuple(shape)) for name, shape in handle.arguments]
        """Name and shape of each argument."""
        self.types: list[str] = list(handle.types)
        """The types of the elements as NumPy and PyTorch name them, of all arguments and then of all results."""
        self.check: ExactCheck | None = None
        """The inputs on which it was compared with the reference when it was compiled with `check="exact"`."""
        self.results: list[tuple[str, tuple[int, ...]]] = [(name, tuple(shape)) for name, shape in handle.results]
        self.any_batch: bool = handle.any_batch
        """Whether the first dimension of the first argument and of the results may have any size (`any_batch`)."""

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, (*self._source, self.check)

    def __copy__(self) -> Function:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        return self

    @property
    def compile_milliseconds(self) -> float:
        """How long it took to compile; 0 of a function from a file."""
        return self._handle.compile_milliseconds

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        """Runs the function. `out` is the result's array, or a list of them; made when not given.

        Raises `kas.Error` when an assertion (`cf.assert`) of the function fails, with its place in the model and its
        message; arguments are as before then, and an array given as `out` has any values.
        """
        return self.bind(*arguments, out=out)()

    def _shapes(self, arguments: tuple[Any, ...]) -> list[tuple[int, ...]]:
        """Those of the results."""
        shapes = [shape for _, shape in self.results]
        data_shape = tuple(getattr(arguments[0], "shape", ())) if arguments else ()
        return [(data_shape[0], *shape[1:]) for shape in shapes] if self.any_batch and data_shape else shapes

    def bind(self, *arguments: Any, out: Any = None) -> BoundCall:
        """A call with these arrays, which are looked at once; `out` as above.

        ```python
        step = function.bind(x, weights, out=y)
        x[:] = ...
        step()  # y is what the function gives for the new x
        ```
        """
        arguments = tuple(as_plain_array(argument) for argument in arguments)
        if out is None:
            like = arguments[0] if arguments else None
            kinds = self.types[len(self.arguments) :]
            results = [_empty_like(like, shape, kind) for shape, kind in zip(self._shapes(arguments), kinds)]
        else:
            results = list(out) if isinstance(out, (list, tuple)) else [out]
        for position, array in enumerate((*arguments, *results)):
            if not hasattr(array, "__dlpack__"):
                raise TypeError(
                    f"argument {position} must be a NumPy array, a torch tensor or another array with __dlpack__, "
                    f"got {type(array).__name__}"
                )
        single = len(results) == 1 and not isinstance(out, (list, tuple))
        try:
            call = self._handle.bind(list(arguments), results)
        except TypeError:
            _check_dlpack((*arguments, *results))
            raise
        return BoundCall(call, results[0] if single else results)


def load_compiled(path: str | os.PathLike[str]) -> Function:
    """The function of a file that `Module.save` has written, with the weights in it.

    It takes the arguments that are not in the file, which is mapped into memory: it may be removed or replaced, but not
    written to. Raises `kas.Error` for something else, a file that is damaged, one of another version of kas, and code
    for a processor with features that this one does not have.
    """
    return _load(os.path.abspath(path), None)


def _load(path: str, check: ExactCheck | None) -> Function:
    function = Function.__new__(Function)
    function._describe(_kas.load_function(path), _load, path)
    function.check = check
    return function


def _compile(source: str | bytes, method: str, arguments: tuple[Any, ...], check: ExactCheck | None) -> Function:
    """A function that was pickled; `check` was done when it was compiled first."""
    function = Function(_kas.Module(source, "<function>"), source, method, *arguments)
    function.check = check
    return function


def _is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def as_plain_array(array: Any) -> Any:
    """DLPack refuses tensors that record gradients; the memory is the same."""
    if _is_torch(array):
        if array.device.type != "cpu":
            raise ValueError(f"this function was compiled for the CPU, got a tensor on '{array.device}'; use .cpu()")
        return array.detach()
    return array


def _check_dlpack(arrays: Iterable[Any]) -> None:
    """TypeError for the first of these arrays whose memory DLPack cannot describe, with its reason."""
    for position, array in enumerate(arrays):
        try:
            array.__dlpack__()
        except Exception as error:
            kind = getattr(array, "dtype", type(array).__name__)
            raise TypeError(
                f"argument {position} must be a plain array in this machine's memory, got {kind}: {error}"
            ) from error


def _empty_like(array: Any, shape: tuple[int, ...], kind: str) -> Any:
    if _is_torch(array) or kind == "bfloat16":
        import torch

        return torch.empty(shape, dtype=getattr(torch, kind))
    import numpy

    return numpy.empty(shape, dtype=kind)
