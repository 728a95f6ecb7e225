# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled operators and their gradients as custom ops of PyTorch, and all transforms of `torch.func` of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from .._function import Function
from ._sizes import find_operator, fit, output_shape

# Compilation is cached in this process.


@functools.lru_cache(maxsize=1024)
def _forward(text: str, binding: str, threads: int) -> Function:
    return find_operator(text).compile(binding, threads=threads)


@functools.lru_cache(maxsize=1024)
def _gradient(text: str, binding: str, tensor: int, threads: int) -> Function:
    return find_operator(text).compile_gradient(tensor, binding, threads=threads)


def is_empty(text: str, binding: str, data: torch.Tensor) -> bool:
    """The data is a batch without examples, which has no binding: symbols are at least 1."""
    if data.ndim == 0 or data.shape[0] != 0 or not find_operator(text).has_batch:
        return False
    fit(text, binding, (1, *data.shape[1:]))
    return True


# ---- The custom ops: what torch.compile and torch.export see


@torch.library.custom_op("kas::apply", mutates_args=(), device_types="cpu")
def _apply(data: torch.Tensor, weights: Sequence[torch.Tensor], text: str, binding: str, threads: int) -> torch.Tensor:
    if is_empty(text, binding, data):
        return data.new_empty(output_shape(text, binding, data.shape))
    function = _forward(text, fit(text, binding, tuple(data.shape)), threads)
    output: torch.Tensor = function(data.contiguous(), *(weight.contiguous() for weight in weights))
    return output


@_apply.register_fake
def _(data: torch.Tensor, weights: Sequence[torch.Tensor], text: str, binding: str, threads: int) -> torch.Tensor:
    return data.new_empty(output_shape(text, binding, data.shape))


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
    if is_empty(text, binding, data):
        return torch.zeros((data, *weights)[tensor].shape)
    arguments = (data, *weights, gradient)
    function = _gradient(text, fit(text, binding, tuple(data.shape)), tensor, threads)
    result: torch.Tensor = function(*(argument.contiguous() for argument in arguments))
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


# ---- The same with derivatives of any order, in both modes, and batching rules: what runs without tracing
#
# An operator without a maximum is linear in each of its tensors. So are its gradients, in the gradient of the output
# and in each of the other tensors: all derivatives are the operator and its gradients at other tensors.

_Key = tuple[str, str, int]
"""Text, binding and threads."""


def _require_linear(key: _Key, what: str) -> None:
    if "kas.reduce max" in key[0]:
        raise NotImplementedError(
            f"the compiled operator '{find_operator(key[0]).name}' takes a maximum, which has no {what}; "
            "use backend='pytorch' for that"
        )


def _exchange(tensors: Sequence[torch.Tensor], index: int, tensor: torch.Tensor) -> list[torch.Tensor]:
    return [tensor if position == index else other for position, other in enumerate(tensors)]


def _sum(terms: list[torch.Tensor]) -> torch.Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def each_element(
    size: int, dims: Sequence[int | None], tensors: Sequence[torch.Tensor]
) -> Iterator[list[torch.Tensor]]:
    """The tensors at each of the `size` elements of the vectorized dimensions; None: a tensor has no such dimension."""
    for index in range(size):
        yield [tensor if dim is None else tensor.select(dim, index) for dim, tensor in zip(dims, tensors)]


def map_elements(
    function: Callable[..., torch.Tensor], size: int, dims: Sequence[int | None], tensors: Sequence[torch.Tensor]
) -> torch.Tensor:
    """The results for each element of the vectorized dimensions."""
    return torch.stack([function(*elements) for elements in each_element(size, dims, tensors)])


def _merge_batches(dim: int | None, size: int, tensor: torch.Tensor) -> torch.Tensor:
    """The vectorized dimension as a part of the batch."""
    return (tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)).flatten(0, 1)


def _split_batches(size: int, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(size, tensor.shape[0] // size, *tensor.shape[1:])


class _Apply(torch.autograd.Function):
    """The output for the data and the weights."""

    @staticmethod
    def forward(key: _Key, *tensors: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = torch.ops.kas.apply(tensors[0], tensors[1:], *key)
        return output

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.key, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:]
        return None, *(
            call(_Gradient, ctx.key, tensor, gradient, *tensors) if is_needed else None
            for tensor, is_needed in enumerate(needed)
        )

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: torch.Tensor | None) -> torch.Tensor:
        _require_linear(ctx.key, "forward-mode derivative")
        tensors = ctx.saved_tensors
        return _sum(
            [
                call(_Apply, ctx.key, *_exchange(tensors, index, tangent))
                for index, tangent in enumerate(tangents)
                if tangent is not None
            ]
        )

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], key: _Key, *tensors: torch.Tensor) -> tuple[torch.Tensor, int]:
        size = info.batch_size
        function = functools.partial(call, _Apply, key)
        if find_operator(key[0]).has_batch and all(dim is None for dim in dims[2:]):
            return _split_batches(size, function(_merge_batches(dims[1], size, tensors[0]), *tensors[1:])), 0
        return map_elements(function, size, dims[1:], tensors), 0


class _Gradient(torch.autograd.Function):
    """The gradient of a tensor for that of the output, the data and the weights."""

    @staticmethod
    def forward(key: _Key, tensor: int, gradient: torch.Tensor, *tensors: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.ops.kas.gradient(gradient, tensors[0], tensors[1:], tensor, *key)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.key, ctx.tensor, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> tuple[Any, ...]:
        _require_linear(ctx.key, "second derivative")
        gradient, *tensors = ctx.saved_tensors
        exchanged = _exchange(tensors, ctx.tensor, cotangent)
        needs_gradient, *needed = ctx.needs_input_grad[2:]
        return (
            None,
            None,
            call(_Apply, ctx.key, *exchanged) if needs_gradient else None,
            *(
                call(_Gradient, ctx.key, index, gradient, *exchanged) if is_needed and index != ctx.tensor else None
                for index, is_needed in enumerate(needed)
            ),
        )

    @staticmethod
    def jvp(ctx: Any, _key: None, _tensor: None, tangent: torch.Tensor | None, *tangents: Any) -> torch.Tensor:
        _require_linear(ctx.key, "second derivative")
        gradient, *tensors = ctx.saved_tensors
        terms = [] if tangent is None else [call(_Gradient, ctx.key, ctx.tensor, tangent, *tensors)]
        terms += [
            call(_Gradient, ctx.key, ctx.tensor, gradient, *_exchange(tensors, index, tangent))
            for index, tangent in enumerate(tangents)
            if tangent is not None and index != ctx.tensor
        ]
        return _sum(terms) if terms else torch.zeros_like(tensors[ctx.tensor])

    @staticmethod
    def vmap(
        info: Any, dims: tuple[Any, ...], key: _Key, tensor: int, *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, int]:
        size, dims = info.batch_size, dims[2:]
        function = functools.partial(call, _Gradient, key, tensor)
        if tensor == 0 and find_operator(key[0]).has_batch and all(dim is None for dim in dims[2:]):
            merged = (_merge_batches(dim, size, one) for dim, one in zip(dims[:2], tensors[:2]))
            return _split_batches(size, function(*merged, *tensors[2:])), 0
        return map_elements(function, size, dims, tensors), 0


def call(function: type[torch.autograd.Function], *arguments: Any) -> torch.Tensor:
    """Applies a function of autograd."""
    result: torch.Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result


def apply_compiled(
    data: torch.Tensor, weights: Sequence[torch.Tensor], text: str, binding: str, threads: int
) -> torch.Tensor:
    """The output of the compiled operator for f32 tensors on the CPU, differentiable."""
    if torch.compiler.is_compiling():
        output: torch.Tensor = torch.ops.kas.apply(data, weights, text, binding, threads)
        return output
    return call(_Apply, (text, binding, threads), data, *weights)
