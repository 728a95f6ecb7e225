# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators as PyTorch modules."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .._module import Binding, Operator, binding_to_text, parse_binding
from ._apply import apply_compiled, is_empty
from ._code import Code, any_batch_function, exported_function
from ._effective import EffectiveConvolution, find_effective_convolution
from ._sizes import find_operator, fit

BACKENDS = ("compiled", "pytorch", "effective", "auto")


def is_row_operator(operator: Operator) -> bool:
    """From rows of channels to rows of channels, each by itself."""
    sizes = operator.sizes
    return operator.has_batch and len(sizes["data"]) == len(sizes["output"]) == 2


class ModuleOfParameters(nn.Module):
    """A module whose parameters are dense whatever memory format a network is given.

    `Module.to(memory_format=torch.channels_last)` takes each parameter of four dimensions for the weight of a
    convolution, and fails for one of five.
    """

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Any:
        def apply(tensor: torch.Tensor) -> torch.Tensor:
            return fn(tensor.reshape(-1)).reshape(tensor.shape) if tensor.ndim in (4, 5) else fn(tensor)

        return super()._apply(apply, recurse)  # type: ignore[no-untyped-call]


def cast_for_autocast(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Under autocast in f32, as `torch.amp.custom_fwd(cast_inputs=torch.float32)` does; else as they are."""
    if not torch.is_autocast_enabled(tensors[0].device.type):
        return tensors
    return tuple(
        tensor.float() if tensor.is_floating_point() and tensor.dtype != torch.float64 else tensor for tensor in tensors
    )


def _check_fixed(fixed: Mapping[int, torch.Tensor], shapes: Sequence[tuple[int, ...]]) -> dict[int, torch.Tensor]:
    """Copies of the values of weights that are fixed, by number."""
    for index, values in fixed.items():
        if index not in range(len(shapes)):
            raise ValueError(f"requires numbers of weights from 0 to {len(shapes) - 1} as fixed, got {index!r}")
        if tuple(values.shape) != tuple(shapes[index]):
            raise ValueError(
                f"requires values of shape {tuple(shapes[index])} for the fixed weight {index}, "
                f"got {tuple(values.shape)}"
            )
    return {index: values.detach().to(torch.float32).clone() for index, values in fixed.items()}


class KasModule(ModuleOfParameters):
    """An operator as a module with its weights as parameters `weight0`, `weight1`, ...

    `backend` is "compiled" for compiled kernels with compiled gradients (f32, on the CPU; under autocast data and
    weights are cast to f32), "pytorch" for PyTorch code (any floating-point type, any device), "effective" for one
    convolution of PyTorch whose weight is gathered from those of the operator, or "auto" for the faster of "compiled"
    and "pytorch": both are timed, forward and backward, on the first data, and `chosen` is what was kept; "pytorch" for
    what the other one does not take, and while PyTorch traces before there was data.

    "effective" is for operators that are a zero-padded convolution, exactly, whose weight is a contraction of
    elements of theirs: it costs what that convolution costs, whatever the stages of the operator are. For others the
    constructor raises `kas.Error` with the reason.

    All work with `torch.func` (`grad`, `jvp`, `vmap` and any combination) and have derivatives of any order, except
    that compiled operators that take a maximum have first ones in reverse mode alone, and that inside torch.compile
    second ones need "pytorch". All work under torch.compile and torch.export, with a batch of any size: where each
    example is computed by itself (`kas.Operator.has_batch`) the size may be symbolic, and a batch may be empty.
    Data of another shape than the binding says, such as a last batch that is smaller, is taken where the shape gives
    the symbols new values; the weights must keep their shapes.

    `fixed` has values of weights that are not trained, by their numbers, such as a basis of cosines: they are buffers
    `weight0`, ... of the module.

    With `bias_dim`, that dimension of the output has a parameter `bias`, which starts as zeros.

    An operator of a row of channels, such as `kas.linear_monarch`, takes data with more dimensions before its channels,
    as `torch.nn.Linear` does: where data and output have two dimensions and each row is computed by itself.

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
        fixed: Mapping[int, torch.Tensor] | None = None,
    ):
        super().__init__()
        if not isinstance(operator, Operator):
            raise TypeError(f"expected a kas.Operator, such as kas.operator('conv2d'), got {type(operator).__name__}")
        if backend not in BACKENDS:
            raise ValueError(f"the backend must be 'compiled', 'pytorch', 'effective' or 'auto', got {backend!r}")
        # Other operators of the same module are not part of this one.
        self.text = str(operator.alone())
        self.operator_name = operator.name
        self.binding = parse_binding(binding)
        self._binding_text = binding_to_text(self.binding)
        self.backend = backend
        self.threads = threads
        self.chosen: str | None = None if backend == "auto" else backend
        """The implementation that runs, "compiled", "pytorch" or "effective"; None for "auto" before there was data."""
        shapes = operator.shapes(self.binding)
        self._has_batch = operator.has_batch
        self._data_shape = shapes.data
        self._weight_shapes = shapes.weights
        self._fan_in = operator.fan_in(self.binding)
        self._fixed = _check_fixed(fixed or {}, shapes.weights)
        for index, shape in enumerate(shapes.weights):
            if index in self._fixed:
                self.register_buffer(f"weight{index}", self._fixed[index])
            else:
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
        self._has_rows = is_row_operator(find_operator(self.text))
        self._functions: dict[str, Code] = {}
        self._any_batch: Code | None = None
        self._effective: EffectiveConvolution | None = None
        if self.backend == "effective":
            self._effective = find_effective_convolution(self.text, self._binding_text)
        if self.backend in ("pytorch", "auto"):
            self._functions[self._binding_text] = exported_function(self.text, self._binding_text)
            self._any_batch = any_batch_function(self.text, self._binding_text)

    def __getstate__(self) -> dict[str, Any]:
        # Functions that were made from text cannot be pickled.
        return {**self.__dict__, "_functions": {}, "_any_batch": None, "_effective": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._make_functions()

    @property
    def weights(self) -> list[torch.Tensor]:
        """`weight0`, `weight1`, ...: parameters, and buffers for those that are fixed."""
        return [getattr(self, f"weight{index}") for index in range(len(self._weight_shapes))]

    @property
    def trained_weights(self) -> list[nn.Parameter]:
        """Those of the weights that are parameters."""
        return [weight for weight in self.weights if isinstance(weight, nn.Parameter)]

    def with_trained(self, weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """All weights, with these in the place of those that are trained."""
        rest = iter(weights)
        return [next(rest) if isinstance(weight, nn.Parameter) else weight for weight in self.weights]

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draws the weights again, from PyTorch's generator or a given one; the bias becomes 0."""
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        trained = self.trained_weights
        if not trained:
            return
        # Each of W independent factors has the W-th root of the product's variance, less what fixed ones have of it.
        variance = 2 / self._fan_in
        for values in self._fixed.values():
            variance /= max(float(values.double().square().mean()), torch.finfo(torch.float32).tiny)
        deviation = variance ** (0.5 / len(trained))
        for weight in trained:
            nn.init.normal_(weight, std=deviation, generator=generator)

    def extra_repr(self) -> str:
        """The operator, the binding and the backend."""
        return f"{self.operator_name}, {self._binding_text}, backend={self.backend!r}"

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """The output for the data, differentiable."""
        if self._has_rows and data.ndim > 2:
            rows = self.forward(data.flatten(0, -2))
            return rows.reshape(*data.shape[:-1], rows.shape[-1])
        return self._add_bias(self._apply_operator(data))

    def _add_bias(self, output: torch.Tensor) -> torch.Tensor:
        if self.bias is None or self.bias_dim is None:
            return output
        return output + self.bias.reshape([-1] + [1] * (output.ndim - self.bias_dim - 1))

    @property
    def has_maxima(self) -> bool:
        """Whether the output is not linear in each of the weights."""
        return re.search(r"kas\.reduce (?!(?:sum|mean)\b)", self.text) is not None

    def apply_weights(self, data: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """The output of these weights without bias, differentiable, by PyTorch: no kernels are compiled."""
        if self._has_rows and data.ndim > 2:
            rows = self.apply_weights(data.flatten(0, -2), weights)
            return rows.reshape(*data.shape[:-1], rows.shape[-1])
        return self._run_effective(data, weights) if self.backend == "effective" else self._run_code(data, weights)

    def _apply_operator(self, data: torch.Tensor) -> torch.Tensor:
        backend = self.chosen
        if backend is None and not torch.compiler.is_compiling():
            backend = self.chosen = self._choose(data)
        if backend == "effective":
            return self._run_effective(data, self.weights)
        return self._run_compiled(data) if backend == "compiled" else self._run_code(data, self.weights)

    def _run_compiled(self, data: torch.Tensor) -> torch.Tensor:
        data, *weights = cast_for_autocast(data, *self.weights)
        for name, tensor in (("data", data), *((f"weight{i}", weight) for i, weight in enumerate(weights))):
            if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
                raise TypeError(
                    f"compiled kernels take float32 on the CPU, got {name} of {tensor.dtype} on '{tensor.device}'; "
                    "use backend='pytorch' for others"
                )
        return apply_compiled(data, weights, self.text, self._binding_text, self.threads)

    def _run_code(self, data: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        if self._any_batch is not None and data.ndim > 0:
            if data.shape[0] == 0:
                # Of one example of zeros nothing is left.
                padding = [0, 0] * (data.ndim - 1) + [0, 1]
                return self._run_code(functional.pad(data, padding), weights)[:0]
            is_traced = torch.compiler.is_dynamo_compiling() or not isinstance(data.shape[0], int)
            if is_traced and data.shape[1:] == self._data_shape[1:]:
                return self._any_batch(data, *weights)
        binding = fit(self.text, self._binding_text, tuple(int(size) for size in data.shape))
        if binding not in self._functions:
            self._functions[binding] = exported_function(self.text, binding)
        return self._functions[binding](data, *weights)

    def _run_effective(self, data: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        convolution = self._effective
        is_same = self._has_batch and data.shape[1:] == self._data_shape[1:]
        if convolution is None or not is_same:
            binding = fit(self.text, self._binding_text, tuple(int(size) for size in data.shape))
            convolution = find_effective_convolution(self.text, binding)
        return convolution(data, weights)

    def _choose(self, data: torch.Tensor) -> str | None:
        """The faster backend for data like this; None where an empty batch cannot tell."""
        for tensor in (data, *self.weights):
            if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
                return "pytorch"
        if is_empty(self.text, self._binding_text, data):
            return None
        key = (self.text, fit(self.text, self._binding_text, tuple(data.shape)), self.threads, torch.get_num_threads())
        if key not in _choices:
            _choices[key] = min(("compiled", "pytorch"), key=lambda backend: self._measure(backend, data))
        return _choices[key]

    def _measure(self, backend: str, data: torch.Tensor, runs: int = 3) -> float:
        """The seconds of a forward and a backward, the least of some after a first one."""
        times = []
        for _ in range(1 + runs):
            tensors = [tensor.detach().clone().requires_grad_() for tensor in (data, *self.weights)]
            with torch.enable_grad(), torch.autocast("cpu", enabled=False):
                start = time.perf_counter()
                if backend == "compiled":
                    output = apply_compiled(tensors[0], tensors[1:], self.text, self._binding_text, self.threads)
                else:
                    output = self._run_code(tensors[0], tensors[1:])
                torch.autograd.grad(output, tensors, torch.ones_like(output))
                times.append(time.perf_counter() - start)
        return min(times[1:])


_choices: dict[tuple[str, str, int, int], str] = {}
"""The faster backend, by text, binding, threads of compiled kernels and of PyTorch."""
