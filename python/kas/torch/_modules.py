# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators as PyTorch modules."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from .._function import Function
from .._module import Binding, Module, Operator, Shapes, binding_to_text


def parse_binding(binding: Binding) -> dict[str, int]:
    """A binding as a dictionary."""
    if isinstance(binding, Mapping):
        binding_to_text(binding)
        return {name: value.__index__() for name, value in binding.items()}
    result = {}
    for entry in filter(None, (part.strip() for part in binding_to_text(binding).split(","))):
        name, _, value = entry.partition("=")
        if not value.strip().isdigit():
            raise ValueError(f"a binding must be text such as 'N=1,C=64', got {binding!r}")
        result[name.strip()] = int(value)
    return result


# The operators of all modules are known to the custom op by their text, so that an exported graph holds all it needs.
# Compilation is cached in this process.


@functools.lru_cache(maxsize=256)
def _operator(text: str) -> Operator:
    module = Module(text, "<operator>")
    return module[module.operators[0]]


@functools.lru_cache(maxsize=1024)
def _shapes(text: str, binding: str) -> Shapes:
    return _operator(text).shapes(binding)


@functools.lru_cache(maxsize=1024)
def _forward(text: str, binding: str, threads: int) -> Function:
    return _operator(text).compile(binding, threads=threads)


@functools.lru_cache(maxsize=1024)
def _gradient(text: str, binding: str, tensor: int, threads: int) -> Function:
    return _operator(text).compile_gradient(tensor, binding, threads=threads)


@torch.library.custom_op("kas::apply", mutates_args=(), device_types="cpu")
def _apply(data: torch.Tensor, weights: Sequence[torch.Tensor], text: str, binding: str, threads: int) -> torch.Tensor:
    output: torch.Tensor = _forward(text, binding, threads)(data.contiguous(), *(w.contiguous() for w in weights))
    return output


@_apply.register_fake
def _(data: torch.Tensor, weights: Sequence[torch.Tensor], text: str, binding: str, threads: int) -> torch.Tensor:
    return data.new_empty(_shapes(text, binding).output)


@torch.library.custom_op("kas::gradient", mutates_args=(), device_types="cpu")
def _apply_gradient(
    gradient: torch.Tensor,
    data: torch.Tensor,
    weights: Sequence[torch.Tensor],
    tensor: int,
    text: str,
    binding: str,
    threads: int,
) -> torch.Tensor:
    arguments = (data, *weights, gradient)
    result: torch.Tensor = _gradient(text, binding, tensor, threads)(*(argument.contiguous() for argument in arguments))
    return result


@_apply_gradient.register_fake
def _(
    gradient: torch.Tensor,
    data: torch.Tensor,
    weights: Sequence[torch.Tensor],
    tensor: int,
    text: str,
    binding: str,
    threads: int,
) -> torch.Tensor:
    return data.new_empty(data.shape if tensor == 0 else weights[tensor - 1].shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    data, weights, *rest = inputs
    ctx.save_for_backward(data, *weights)
    ctx.rest = rest


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    data, *weights = ctx.saved_tensors
    needs_data, needs_weights = ctx.needs_input_grad[:2]
    # The second entry is a list where PyTorch tells the weights apart.
    needed = needs_weights if isinstance(needs_weights, (list, tuple)) else [needs_weights] * len(weights)
    results = [
        torch.ops.kas.gradient(gradient, data, weights, tensor, *ctx.rest) if is_needed else None
        for tensor, is_needed in enumerate([needs_data, *needed])
    ]
    return results[0], results[1:], None, None, None


_apply.register_autograd(_backward, setup_context=_setup_context)


@torch.compiler.disable  # type: ignore[untyped-decorator]
@functools.lru_cache(maxsize=1024)
def _exported_function(text: str, binding: str) -> Callable[..., torch.Tensor]:
    """The function of the exported PyTorch code."""
    operator = _operator(text)
    names: dict[str, Any] = {}
    code = operator.to_pytorch(binding)
    exec(compile(code, f"<PyTorch code of {operator.name}>", "exec"), names)
    function: Callable[..., torch.Tensor] = next(
        value for value in names.values() if getattr(value, "__code__", None) is not None
    )
    return function


class KasModule(nn.Module):
    """An operator as a module with its weights as parameters `weight0`, `weight1`, ...

    `backend` is "compiled" for compiled kernels with compiled gradients (f32, on the CPU), or "pytorch" for PyTorch
    code (any floating-point type, any device, also second derivatives). Both work under torch.compile and torch.export.
    Data of another shape than the binding says, such as a last batch that is smaller, is taken where the shape gives
    the symbols new values; the weights must keep their shapes.

    With `bias_dim`, that dimension of the output has a parameter `bias`, which starts as zeros.

    The weights start such that rectified data keeps its mean square, by the number of terms that the operator's sums
    really have (He et al., "Delving Deep into Rectifiers", ICCV 2015, carried over to operators).
    """

    bias: nn.Parameter | None
    """The parameter of `bias_dim`."""

    def __init__(
        self,
        operator: Operator,
        binding: Binding,
        backend: str = "compiled",
        *,
        threads: int = 0,
        bias_dim: int | None = None,
    ):
        super().__init__()
        if not isinstance(operator, Operator):
            raise TypeError(f"expected a kas.Operator, such as kas.operator('conv2d'), got {type(operator).__name__}")
        if backend not in ("compiled", "pytorch"):
            raise ValueError(f"the backend must be 'compiled' or 'pytorch', got {backend!r}")
        # Other operators of the same module are not part of this one.
        self.text = str(operator.alone())
        self.operator_name = operator.name
        self.binding = parse_binding(binding)
        self.backend = backend
        self.threads = threads
        self._data_sizes = operator.sizes["data"]
        self._primaries = operator.symbols[0]
        shapes = operator.shapes(self.binding)
        self._data_shape = shapes.data
        self._weight_shapes = shapes.weights
        self._fan_in = operator.fan_in(self.binding)
        for index, shape in enumerate(shapes.weights):
            self.register_parameter(f"weight{index}", nn.Parameter(torch.empty(shape)))
        if bias_dim is not None and not -len(shapes.output) <= bias_dim < len(shapes.output):
            raise ValueError(f"bias_dim must be a dimension of the output {shapes.output}, got {bias_dim}")
        self.bias_dim = None if bias_dim is None else bias_dim % len(shapes.output)
        bias = None if bias_dim is None else nn.Parameter(torch.empty(shapes.output[bias_dim]))
        self.register_parameter("bias", bias)
        self._make_functions()
        self.reset_parameters()

    def _make_functions(self) -> None:
        """PyTorch code by binding: made before anything is traced."""
        self._functions: dict[str, Callable[..., torch.Tensor]] = {}
        if self.backend == "pytorch":
            text = binding_to_text(self.binding)
            self._functions[text] = _exported_function(self.text, text)

    def __getstate__(self) -> dict[str, Any]:
        # Functions that were made from text cannot be pickled.
        return {**self.__dict__, "_functions": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._make_functions()

    @property
    def weights(self) -> list[nn.Parameter]:
        """The parameters `weight0`, `weight1`, ..."""
        return [getattr(self, f"weight{index}") for index in range(len(self._weight_shapes))]

    def reset_parameters(self) -> None:
        """Draws the weights anew; the bias becomes 0."""
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if not self._weight_shapes:
            return
        # Each of W independent factors has the W-th root of the product's variance.
        deviation = (2 / self._fan_in) ** (0.5 / len(self._weight_shapes))
        for weight in self.weights:
            nn.init.normal_(weight, std=deviation)

    def extra_repr(self) -> str:
        """The operator, the binding and the backend."""
        return f"{self.operator_name}, {binding_to_text(self.binding)}, backend={self.backend!r}"

    def _binding_for(self, data: torch.Tensor) -> str:
        """The binding at the shape of the data."""
        shape = tuple(int(size) for size in data.shape)
        if shape == self._data_shape:
            return binding_to_text(self.binding)
        if len(shape) != len(self._data_shape):
            raise ValueError(
                f"expected data with {len(self._data_shape)} dimensions, as {self._data_shape}, got {shape}"
            )
        binding = dict(self.binding)
        binding.update((size, extent) for size, extent in zip(self._data_sizes, shape) if size in self._primaries)
        text = binding_to_text(binding)
        shapes = _shapes(self.text, text)
        if shapes.data != shape or shapes.weights != self._weight_shapes:
            raise ValueError(
                f"data of shape {shape} does not fit this module, which was made for {self._data_shape}; "
                "make a KasModule with a binding of that shape"
            )
        return text

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """The output for the data, differentiable."""
        output = self._apply_operator(data)
        if self.bias is None or self.bias_dim is None:
            return output
        return output + self.bias.reshape([-1] + [1] * (output.ndim - self.bias_dim - 1))

    def _apply_operator(self, data: torch.Tensor) -> torch.Tensor:
        binding = self._binding_for(data)
        if self.backend == "pytorch":
            if binding not in self._functions:
                self._functions[binding] = _exported_function(self.text, binding)
            return self._functions[binding](data, *self.weights)
        for name, tensor in (("data", data), *((f"weight{i}", weight) for i, weight in enumerate(self.weights))):
            if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
                raise TypeError(
                    f"compiled kernels take float32 on the CPU, got {name} of {tensor.dtype} on '{tensor.device}'; "
                    "use backend='pytorch' for others"
                )
        output: torch.Tensor = torch.ops.kas.apply(data, self.weights, self.text, binding, self.threads)
        return output
