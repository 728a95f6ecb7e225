# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models that run on inputs of any shape: one program for each set of shapes, compiled when it is first met."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy
import onnx

from ._import import load, read_model

MAX_PROGRAMS = 32
"""The programs that a session keeps; of more the one that was used least recently goes."""


class NodeArg(NamedTuple):
    """An input or output of a model, as ONNX Runtime describes them."""

    name: str
    shape: list[int | str | None] | None
    """Sizes; the names of those that the model leaves open, None for those without a name. None for any shape."""
    type: str
    """For example `tensor(float)`."""


class _Program:
    """The model at one set of shapes, its weights packed."""

    def __init__(self, model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]], session: InferenceSession):
        loaded = load(model, shapes, session.constants, folder=session.folder)
        # A function without data has nothing but weights, which would be packed in each call.
        is_packed = bool(shapes and loaded.tensors)
        function = loaded.module.compile(
            "forward", threads=session.threads, precision=session.precision, prepack_weights=is_packed
        )
        weights = [*loaded.tensors.values()]
        kinds = function.types[: len(shapes)]
        self.kinds = dict(zip(shapes, kinds))
        self._inputs = {name: _make_empty(shape, kind) for (name, shape), kind in zip(shapes.items(), kinds)}
        results = function.types[len(function.arguments) :]
        self._results = [_make_empty(shape, kind) for (_, shape), kind in zip(function.results, results)]
        self._call = function.bind(*self._inputs.values(), *weights, out=self._results)
        if is_packed:
            self._call.prepack()
        self._lock = threading.Lock()

    def run(self, inputs: Mapping[str, Any]) -> list[Any]:
        with self._lock:
            for name, array in self._inputs.items():
                array[...] = inputs[name]
            self._call()
            return [result.clone() if hasattr(result, "clone") else result.copy() for result in self._results]


class InferenceSession:
    """An ONNX model, run as `onnxruntime.InferenceSession` runs one.

    ```python
    session = kas.onnx.InferenceSession("model.onnx")
    (output,) = session.run(None, {"x": data})
    ```

    Sizes that the model leaves open are those of the arrays: for each set of shapes a program is compiled when it is
    first met, and the last 32 are kept. Weights are packed once for each.

    `constants`: values of inputs that are settings (shapes, axes), as in `kas.onnx.load`; these are no inputs of `run`.
    `threads`: 0 for as many as there are processors. `precision` as in `kas.Module.compile`. Safe to use by several
    threads. Raises what `kas.onnx.load` raises; a model without open sizes is compiled, and refused, at once.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes | onnx.ModelProto,
        constants: Mapping[str, Any] | None = None,
        *,
        threads: int = 0,
        precision: str = "f32",
    ):
        self._model, self.folder = read_model(model)
        self.constants, self.threads, self.precision = dict(constants or {}), threads, precision
        initialized = {tensor.name for tensor in self._model.graph.initializer} | self.constants.keys()
        self._inputs = [_describe(value) for value in self._model.graph.input if value.name not in initialized]
        self._outputs = [_describe(value) for value in self._model.graph.output]
        self._programs: OrderedDict[tuple[tuple[int, ...], ...], _Program] = OrderedDict()
        self._lock = threading.Lock()
        shapes = [value.shape for value in self._inputs]
        known = [
            tuple(size for size in shape if isinstance(size, int))
            for shape in shapes
            if shape is not None and all(isinstance(size, int) for size in shape)
        ]
        if len(known) == len(shapes):
            self._get_program(known)

    def get_inputs(self) -> list[NodeArg]:
        """The inputs of `run`."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """The results of `run`."""
        return list(self._outputs)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[Any]:
        """The outputs of these names, all for None; `input_feed` has an array for each input.

        Arrays are NumPy's or tensors of PyTorch, results NumPy's (of bfloat16, PyTorch's). Raises `ValueError` for
        names, shapes and types that the model does not have.
        """
        names = [value.name for value in self._outputs]
        if unknown := [name for name in output_names or () if name not in names]:
            raise ValueError(f"requires outputs of {', '.join(names)}, got '{unknown[0]}'")
        wanted = [value.name for value in self._inputs]
        if set(wanted) != set(input_feed):
            raise ValueError(f"requires inputs {', '.join(wanted)}, got {', '.join(input_feed) or 'none'}")
        arrays = {name: _to_array(input_feed[name]) for name in wanted}
        self._check_sizes(arrays)
        program = self._get_program([tuple(array.shape) for array in arrays.values()])
        for name, array in arrays.items():
            if (kind := _get_kind(array)) != program.kinds[name]:
                raise ValueError(f"requires input '{name}' of {program.kinds[name]}, got {kind}")
        results = dict(zip(names, program.run(arrays)))
        return [results[name] for name in output_names or names]

    def _check_sizes(self, arrays: Mapping[str, Any]) -> None:
        """Each size is that of the model, and those of one name are equal."""
        named: dict[str, tuple[int, str]] = {}
        for value in self._inputs:
            shape = tuple(arrays[value.name].shape)
            if value.shape is None:
                continue
            for size, wanted in zip(shape, value.shape):
                if isinstance(wanted, str) and (first := named.setdefault(wanted, (size, value.name)))[0] != size:
                    raise ValueError(
                        f"requires '{wanted}' to be one size, got {first[0]} in '{first[1]}' "
                        f"and {size} in '{value.name}'"
                    )
            sizes = zip(shape, value.shape)
            if len(shape) != len(value.shape) or any(isinstance(b, int) and a != b for a, b in sizes):
                raise ValueError(f"requires input '{value.name}' of shape {value.shape}, got {list(shape)}")

    def _get_program(self, shapes: Sequence[tuple[int, ...]]) -> _Program:
        key = tuple(shapes)
        with self._lock:
            if key not in self._programs:
                names = [value.name for value in self._inputs]
                self._programs[key] = _Program(self._model, dict(zip(names, shapes)), self)
                if len(self._programs) > MAX_PROGRAMS:
                    self._programs.popitem(last=False)
            self._programs.move_to_end(key)
            return self._programs[key]


def _describe(value: onnx.ValueInfoProto) -> NodeArg:
    kind = value.type.tensor_type
    sizes = [size.dim_value if size.HasField("dim_value") else size.dim_param or None for size in kind.shape.dim]
    name = onnx.TensorProto.DataType.Name(kind.elem_type).lower() if kind.elem_type else "?"
    return NodeArg(value.name, sizes if kind.HasField("shape") else None, f"tensor({name})")


def _to_array(value: Any) -> Any:
    """NumPy's array, or PyTorch's tensor of a type that NumPy does not have."""
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":
        return value.detach()
    return value.detach().numpy() if hasattr(value, "detach") else numpy.asarray(value)


def _get_kind(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _make_empty(shape: Sequence[int], kind: str) -> Any:
    if kind == "bfloat16":
        import torch

        return torch.empty(tuple(shape), dtype=torch.bfloat16)
    return numpy.empty(tuple(shape), dtype=kind)
