# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions on tensors in the memory of CUDA devices."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _kas
from ._function import Function

PRECISIONS = ("f32", "tf32", "f16", "bf16")
_TYPES = {"<f2": "float16", "<f4": "float32", "<f8": "float64", "|i1": "int8", "<i4": "int32", "<i8": "int64"}


class Place(NamedTuple):
    """Where a tensor is, and what."""

    address: int
    shape: tuple[int, ...]
    type: str
    is_dense: bool
    version: int | None
    """Another one after each change that PyTorch sees; None where nobody counts them."""
    stream: int | None
    """Where it is computed, if it says so."""


def _is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _find_torch(tensor: Any, name: str, device: str) -> Place:
    where = str(tensor.device)
    if where != device:
        raise ValueError(f"'{name}' must be on '{device}', got a tensor on '{where}'; use .to('{device}')")
    return Place(
        tensor.data_ptr(),
        tuple(tensor.shape),
        str(tensor.dtype).removeprefix("torch."),
        tensor.is_contiguous(),
        # Tensors made in the mode of inference have no counter.
        None if tensor.is_inference() else tensor._version,
        None,
    )


def _is_dense(shape: Sequence[int], strides: Sequence[int] | None, width: int) -> bool:
    if strides is None or 0 in shape:
        return True
    step = width
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def find_place(array: Any, name: str, device: str) -> Place:
    """Of a torch tensor, or of another array by its `__cuda_array_interface__`.

    TypeError for anything else, ValueError for tensors elsewhere than on `device`.
    """
    if _is_torch(array):
        return _find_torch(array, name, device)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(
            f"'{name}' must be a torch tensor on '{device}' or another array with __cuda_array_interface__, "
            f"got {type(array).__name__}"
        )
    shape, kind = tuple(interface["shape"]), interface["typestr"]
    dense = _is_dense(shape, interface.get("strides"), int(kind[2:]))
    return Place(interface["data"][0], shape, _TYPES.get(kind, kind), dense, None, interface.get("stream"))


def check_place(place: Place, name: str, shape: tuple[int, ...], kind: str) -> None:
    """ValueError or TypeError unless a compiled function can take what is there."""
    if place.type != kind:
        raise TypeError(f"'{name}' must have elements of type {kind}, got {place.type}")
    if place.shape != shape:
        raise ValueError(f"'{name}' must have the shape {shape}, got {place.shape}")
    if not place.is_dense:
        raise ValueError(f"'{name}' must be contiguous; make it so by .contiguous() or the like")
    if place.address % 16:
        raise ValueError(f"'{name}' must begin at a multiple of 16 bytes, got {place.address:#x}; copy it first")


def choose_stream(stream: Any, arrays: Sequence[Any], places: Sequence[Place], device: str) -> int:
    """The handle of the stream that the caller names, else of PyTorch's current one, else of the arrays'."""
    if stream is not None:
        return int(getattr(stream, "cuda_stream", getattr(stream, "ptr", stream)))
    if any(_is_torch(array) for array in arrays):
        import torch

        return int(torch.cuda.current_stream(torch.device(device)).cuda_stream)
    streams = {place.stream for place in places if place.stream is not None}
    if len(streams) > 1:
        raise ValueError(f"arrays of several streams require stream=, got those of {sorted(streams)}")
    return streams.pop() if streams else 0


class Weights:
    """Says when weights have changed where they are, as far as PyTorch counts it."""

    def __init__(self, function: Any):
        self.function, self.positions = function, function.weights
        self.versions: list[int | None] = []

    def check(self, versions: Sequence[int | None]) -> None:
        """To be called before each call, with the versions of all arguments."""
        now = [versions[position] for position in self.positions]
        if now != self.versions:
            self.function.forget_weights()
            self.versions = now


class DeviceCall:
    """A function with the tensors that it takes and gives, for many calls: their memory must stay where it is."""

    def __init__(self, function: DeviceFunction, arrays: Sequence[Any], results: Any, stream: Any):
        self._function, self._stream, self.results = function, stream, results
        # Also keeps them alive.
        self._arrays = arrays
        self._places = function._find_places(arrays)
        self._addresses = [place.address for place in self._places]

    def prepack(self) -> None:
        """Lets the next call prepack the weights again, where they have changed and PyTorch does not count it."""
        self._function.prepack()

    def __call__(self) -> Any:
        """Starts the function; raises `kas.Error` as it does."""
        function = self._function
        function._weights.check([None if not _is_torch(a) or a.is_inference() else a._version for a in self._arrays])
        stream = choose_stream(self._stream, self._arrays, self._places, function.device)
        function._handle.call(self._addresses, stream)
        return self.results


class DeviceFunction(Function):
    """A compiled function on tensors of fixed shapes in the memory of a CUDA device.

    Takes torch tensors there and other arrays with `__cuda_array_interface__`, such as CuPy's, without copies, and
    gives torch tensors; `out` is required where the first argument is none. Calls run in the caller's stream: `stream`
    (a handle, or an object of PyTorch or CuPy), else PyTorch's current one, else that of the arrays, else the default
    one. They return before the kernels are done, unless the function has assertions. Weights are prepacked by the first
    call, and again when PyTorch has counted a change or they are elsewhere. Any number of threads may call.
    """

    def __init__(
        self, module: _kas.Module, source: str | bytes, function: str, device: str, precision: str, use_libraries: bool
    ):
        """Compiles `function` of `module`, whose text or bytecode is `source`, and loads it on the device."""
        how = (function, device, precision, use_libraries)
        self._handle: Any
        # It has the properties of functions on the CPU.
        handle: Any = _kas.DeviceFunction(module, *how)
        self._describe(handle, _compile, source, *how)
        self.device = device if ":" in device else f"{device}:0"
        """Such as `cuda:0`."""
        self._weights = Weights(self._handle)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, self._source

    @property
    def libraries(self) -> list[str]:
        """What computes each launch: `kernel`, cuBLASLt or cuDNN with its version, or `kernel: ` and why it is none."""
        return str(self._handle.libraries).splitlines()

    def prepack(self) -> None:
        """Lets the next call prepack the weights again, where they have changed and PyTorch does not count it."""
        self._handle.forget_weights()

    def _find_places(self, arrays: Sequence[Any]) -> list[Place]:
        tensors = [*self.arguments, *self.results]
        if len(arrays) != len(tensors):
            got = len(arrays) - len(self.results)
            raise TypeError(f"expected {len(self.arguments)} arguments, got {got}")
        places = []
        for array, (name, shape), kind in zip(arrays, tensors, self.types):
            places.append(find_place(array, name, self.device))
            check_place(places[-1], name, shape, kind)
        return places

    def __call__(self, *arguments: Any, out: Any = None, stream: Any = None) -> Any:
        """Starts the function. `out` is the result's tensor, or a list of them; made when not given.

        Raises `kas.Error` for what the driver refuses, with the device and its architecture.
        """
        return self.bind(*arguments, out=out, stream=stream)()

    def bind(self, *arguments: Any, out: Any = None, stream: Any = None) -> DeviceCall:  # type: ignore[override]
        """A call with these tensors, which are looked at once; `out` and `stream` as above."""
        if out is not None:
            results = list(out) if isinstance(out, (list, tuple)) else [out]
        elif arguments and _is_torch(arguments[0]):
            import torch

            kinds = self.types[len(self.arguments) :]
            shapes = [shape for _, shape in self.results]
            like = arguments[0].detach()
            results = [like.new_empty(shape, dtype=getattr(torch, kind)) for shape, kind in zip(shapes, kinds)]
        else:
            raise TypeError("out= is required where the first argument is no torch tensor, got none")
        single = len(results) == 1 and not isinstance(out, (list, tuple))
        return DeviceCall(self, (*arguments, *results), results[0] if single else results, stream)


def _compile(source: str | bytes, *how: Any) -> DeviceFunction:
    """A function that was pickled."""
    return DeviceFunction(_kas.Module(source, "<function>"), source, *how)
