# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the tensor level as PyTorch modules."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from .._function import Function
from .._kernel import Kernel, KernelShapes
from .._module import Binding, Module, binding_to_text, parse_binding
from ._apply import call, each_element, map_elements
from ._modules import ModuleOfParameters, cast_for_autocast

# As for operators, the custom ops know kernels by their text, so that an exported graph holds all it needs.


@functools.lru_cache(maxsize=256)
def _kernel(text: str) -> Kernel:
    (kernel,) = Module(text, "<kernel>").kernels.values()
    return kernel


@functools.lru_cache(maxsize=1024)
def _shapes(text: str, binding: str) -> KernelShapes:
    """For a batch of 1."""
    return _kernel(text).shapes(binding)


@functools.lru_cache(maxsize=1024)
def _compiled(text: str, binding: str, batch: int, gradient: bool, threads: int) -> Function:
    kernel = _kernel(text)
    compile = kernel.compile_gradient if gradient else kernel.compile
    return compile(binding, batch=batch, threads=threads)


@torch.library.custom_op("kas::apply_kernel", mutates_args=(), device_types="cpu")
def _apply(
    inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], text: str, binding: str, threads: int
) -> torch.Tensor:
    if len(inputs[0]) == 0:
        return inputs[0].new_empty(0, *_shapes(text, binding).output[1:])
    function = _compiled(text, binding, len(inputs[0]), False, threads)
    output: torch.Tensor = function(*(tensor.contiguous() for tensor in (*inputs, *weights)))
    return output


@_apply.register_fake
def _(
    inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], text: str, binding: str, threads: int
) -> torch.Tensor:
    return inputs[0].new_empty(inputs[0].shape[0], *_shapes(text, binding).output[1:])


@torch.library.custom_op("kas::kernel_gradients", mutates_args=(), device_types="cpu")
def _apply_gradients(
    gradient: torch.Tensor,
    inputs: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    text: str,
    binding: str,
    threads: int,
) -> list[torch.Tensor]:
    if len(inputs[0]) == 0:
        return [torch.zeros(tensor.shape) for tensor in (*inputs, *weights)]
    function = _compiled(text, binding, len(inputs[0]), True, threads)
    results: list[torch.Tensor] = function(*(tensor.contiguous() for tensor in (*inputs, *weights, gradient)))
    return results[1:]


@_apply_gradients.register_fake
def _(
    gradient: torch.Tensor,
    inputs: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    text: str,
    binding: str,
    threads: int,
) -> list[torch.Tensor]:
    return [torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (*inputs, *weights)]


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    data, weights, *rest = inputs
    ctx.num_inputs = len(data)
    ctx.save_for_backward(*data, *weights)
    ctx.rest = rest


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    tensors, count = ctx.saved_tensors, ctx.num_inputs
    results = torch.ops.kas.kernel_gradients(gradient, tensors[:count], tensors[count:], *ctx.rest)
    return results[:count], results[count:], None, None, None


_apply.register_autograd(_backward, setup_context=_setup_context)

# What runs without tracing: the same, for torch.func as well.

_Key = tuple[int, str, str, int]
"""How many of the tensors are inputs, text, binding and threads."""


def _refuse(key: _Key, what: str) -> NotImplementedError:
    return NotImplementedError(
        f"the compiled kernel '{_kernel(key[1]).name}' has no {what}; the PyTorch code of kas.Kernel.to_pytorch has"
    )


class _Apply(torch.autograd.Function):
    """The output for the inputs and the weights."""

    @staticmethod
    def forward(key: _Key, *tensors: torch.Tensor) -> torch.Tensor:
        count, *rest = key
        output: torch.Tensor = torch.ops.kas.apply_kernel(tensors[:count], tensors[count:], *rest)
        return output

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.key, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        return None, *_Gradients.apply(ctx.key, gradient, *ctx.saved_tensors)  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> torch.Tensor:
        raise _refuse(ctx.key, "forward-mode derivative")

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], key: _Key, *tensors: torch.Tensor) -> tuple[torch.Tensor, int]:
        return map_elements(functools.partial(call, _Apply, key), info.batch_size, dims[1:], tensors), 0


class _Gradients(torch.autograd.Function):
    """The gradients of all inputs and weights for that of the output, the inputs and the weights."""

    @staticmethod
    def forward(key: _Key, gradient: torch.Tensor, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        count, *rest = key
        return tuple(torch.ops.kas.kernel_gradients(gradient, tensors[:count], tensors[count:], *rest))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.key = inputs[0]

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise _refuse(ctx.key, "second derivative")

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise _refuse(ctx.key, "second derivative")

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], key: _Key, *tensors: torch.Tensor) -> tuple[Any, Any]:
        def gradients(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return _Gradients.apply(key, *tensors)  # type: ignore[no-any-return, no-untyped-call]

        rows = [gradients(*elements) for elements in each_element(info.batch_size, dims[1:], tensors)]
        return tuple(torch.stack(column) for column in zip(*rows)), (0,) * len(rows[0])


class KernelModule(ModuleOfParameters):
    """A kernel of the tensor level as a module with its weights as parameters `weight0`, `weight1`, ...

    Forward and gradients are compiled (f32, on the CPU; under autocast inputs and weights are cast to f32). Works under
    torch.compile and torch.export, with a batch of any size, and with `grad` and `vmap` of `torch.func`; derivatives in
    forward mode and second ones raise `NotImplementedError`.

    The binding has a value for each symbol, variables included. The batch, the first dimension of the inputs and the
    output, may be any: each is compiled once. Weights start with the standard deviations of `kas.Kernel.shapes`.
    """

    def __init__(self, kernel: Kernel, binding: Binding = None, *, threads: int = 0):
        super().__init__()
        if not isinstance(kernel, Kernel):
            raise TypeError(f"expected a kas.Kernel, such as kas.kernel('squeeze_excite'), got {type(kernel).__name__}")
        self.text = str(kernel)
        self.kernel_name = kernel.name
        self.binding = parse_binding(binding) if binding is not None else {}
        self.threads = threads
        shapes = kernel.shapes(self.binding)
        self._input_shapes = [shape[1:] for shape in shapes.inputs]
        self._deviations = shapes.deviations
        for index, shape in enumerate(shapes.weights):
            self.register_parameter(f"weight{index}", nn.Parameter(torch.empty(shape)))
        self.reset_parameters()

    @property
    def weights(self) -> list[nn.Parameter]:
        """The parameters `weight0`, `weight1`, ..."""
        return [getattr(self, f"weight{index}") for index in range(len(self._deviations))]

    def reset_parameters(self) -> None:
        """Draws the weights again."""
        for weight, deviation in zip(self.weights, self._deviations):
            nn.init.normal_(weight, std=deviation)

    def extra_repr(self) -> str:
        """The kernel and the binding."""
        return f"{self.kernel_name}, {binding_to_text(self.binding)}"

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The output for the inputs, differentiable."""
        shapes = [tuple(tensor.shape[1:]) for tensor in inputs]
        if shapes != self._input_shapes or any(tensor.shape[0] != inputs[0].shape[0] for tensor in inputs):
            raise ValueError(
                f"expected inputs of shapes {self._input_shapes} after one batch dimension, got "
                f"{[tuple(t.shape) for t in inputs]}"
            )
        tensors = cast_for_autocast(*inputs, *self.weights)
        for tensor in tensors:
            if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
                raise TypeError(f"compiled kernels take float32 on the CPU, got {tensor.dtype} on '{tensor.device}'")
        key, count = (self.text, binding_to_text(self.binding), self.threads), len(inputs)
        if torch.compiler.is_compiling():
            output: torch.Tensor = torch.ops.kas.apply_kernel(tensors[:count], tensors[count:], *key)
            return output
        return call(_Apply, (count, *key), *tensors)
