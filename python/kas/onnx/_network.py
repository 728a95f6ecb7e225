# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch networks with operators in them as ONNX models."""

from __future__ import annotations

import copy
import io
import os
import warnings
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import onnx
import torch
from torch import nn

import kas.torch

from .._module import Module
from ..torch._sizes import find_operator, fit
from ._export import DOMAIN, OPSETS, Form, Function, finish_model, save

_LAST_OPSET = 20
"""The last version that the exporter of PyTorch writes."""


class _Call(torch.autograd.Function):
    """What a module computes, and a call of its function in the model."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., torch.Tensor], function: Function, *tensors: torch.Tensor) -> torch.Tensor:
        return run(*tensors)

    @staticmethod
    def symbolic(g: Any, run: Any, function: Function, *tensors: Any) -> Any:
        result = g.op(f"{DOMAIN}::{function.name}", *tensors)
        return result.setType(tensors[0].type().with_sizes(list(function.output_shape)))


class _Functions:
    """The functions of a model: one for each form, sizes and batch."""

    def __init__(self, opset: int):
        self.opset = opset
        self.found: dict[Any, Function] = {}

    def get(self, text: str, make: Callable[[], Form], binding: Any, batch: int = 1) -> Function:
        key = (text, str(binding), batch)
        if key not in self.found:
            form, taken = make(), {function.name for function in self.found.values()}
            numbers = (f"{form.name}_{number}" for number in range(1, len(taken) + 1))
            name = next(name for name in (form.name, *numbers) if name not in taken)
            self.found[key] = Function(form, binding, self.opset, batch, name)
        return self.found[key]

    def call_operator(self, module: kas.torch.KasModule, data: torch.Tensor) -> torch.Tensor:
        binding = fit(module.text, module._binding_text, tuple(int(size) for size in data.shape))
        function = self.get(module.text, partial(find_operator, module.text), binding)
        run = type(module)._apply_operator
        return _apply(lambda data, *_: run(module, data), function, data, *module.weights)

    def call_kernel(self, module: kas.torch.KernelModule, *inputs: torch.Tensor) -> torch.Tensor:
        def make() -> Form:
            return next(iter(Module(module.text, "<kernel>").kernels.values()))

        function = self.get(module.text, make, module.binding, int(inputs[0].shape[0]))
        run = type(module).forward
        count = len(inputs)
        return _apply(lambda *tensors: run(module, *tensors[:count]), function, *inputs, *module.weights)


def _apply(run: Callable[..., torch.Tensor], function: Function, *tensors: torch.Tensor) -> torch.Tensor:
    output: torch.Tensor = _Call.apply(run, function, *tensors)  # type: ignore[no-untyped-call]
    return output


def export_network(
    network: nn.Module,
    example: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    opset: int = 17,
    inline: bool = False,
) -> onnx.ModelProto:
    """A PyTorch network in evaluation mode as an ONNX model, its operators as functions of standard operations.

    `kas.torch.KasModule`, `SequenceModule` and `KernelModule` become calls of functions as those of `export`; all else
    is written by `torch.onnx.export`. `example` is the data, or a tuple of them; the model is for tensors of these
    shapes. They are called `data` (`data0`, ... where there are several), the result `output`.

    `path`: a file to write. `opset`: 17 to 20, what PyTorch writes. `inline`: no functions, but their operations in
    the graph itself, for runtimes that take none, such as OpenVINO.

    Raises `ValueError` where PyTorch has no ONNX for a part of the network.
    """
    if not isinstance(network, nn.Module):
        raise TypeError(f"requires a torch.nn.Module, got {type(network).__name__}")
    if not OPSETS[0] <= opset <= _LAST_OPSET:
        raise ValueError(f"requires an opset of {OPSETS[0]} to {_LAST_OPSET} for a network, got {opset}")
    data = tuple(example) if isinstance(example, (list, tuple)) else (example,)
    functions = _Functions(opset)
    network = copy.deepcopy(network).eval()
    for module in network.modules():
        if isinstance(module, kas.torch.KasModule):
            # What functions stand for is traced, too, and not all of a gathered convolution can be.
            module.backend = module.chosen = "pytorch"
            module._make_functions()
            module._apply_operator = MethodType(lambda self, x: functions.call_operator(self, x), module)  # type: ignore[method-assign]
        elif isinstance(module, kas.torch.KernelModule):
            module.forward = MethodType(lambda self, *x: functions.call_kernel(self, *x), module)  # type: ignore[method-assign]
    graph = _trace(network, data, opset).graph
    model = finish_model(graph, [function.proto for function in functions.found.values()], opset, inline)
    save(model, path)
    return model


def _trace(network: nn.Module, data: tuple[torch.Tensor, ...], opset: int) -> onnx.ModelProto:
    buffer = io.BytesIO()
    names = ["data"] if len(data) == 1 else [f"data{index}" for index in range(len(data))]
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # The exporter by traces is called old; the new one needs a package more, and has no calls of functions.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network,
                data,
                buffer,  # type: ignore[arg-type]
                dynamo=False,
                opset_version=opset,
                input_names=names,
                output_names=["output"],
            )
    except Exception as error:
        raise ValueError(f"PyTorch cannot write this network as ONNX: {type(error).__name__}: {error}") from error
    return onnx.load_model_from_string(buffer.getvalue())
