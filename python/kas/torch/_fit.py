# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of operators that come close to the layers whose places they took."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ._layers import is_layer, observing
from ._modules import KasModule
from ._sizes import bind, find_operator

_PRODUCTS = 8
"""Steps of conjugate gradients for a weight before the next one has its turn."""
_RIDGE = 1e-6
"""What is added to the second moments of features, over their mean: some may be sums of others."""


class _Seen:
    """What a layer sees: all of it, or, of rows of features that count one by one and are many, the second moment."""

    def __init__(self, has_rows: bool):
        self.has_rows = has_rows
        self.parts: list[torch.Tensor] = []
        self.moment: torch.Tensor | None = None

    def add(self, data: torch.Tensor) -> None:
        data = data.detach()
        if not self.has_rows:
            self.parts.append(data.clone())
            return
        rows = data.flatten(0, -2)
        if self.moment is None and sum(map(len, [*self.parts, rows])) <= rows.shape[-1]:
            self.parts.append(rows.clone())
            return
        moment = torch.zeros((), dtype=torch.float64) if self.moment is None else self.moment
        for part in [*self.parts, rows]:
            moment = moment + part.double().T @ part.double()
        self.moment, self.parts = moment, []

    def is_finite(self) -> bool:
        """Whether it is numbers."""
        values = [*self.parts] if self.moment is None else [self.moment]
        return all(bool(value.isfinite().all()) for value in values)

    def get_data(self) -> torch.Tensor:
        """Data for which errors of a linear layer have the same sum of squares."""
        if self.moment is None:
            return torch.cat(self.parts)
        # Of zeros alone, as after a rectifier, the moments are zero.
        ridge = (_RIDGE * self.moment.diagonal().mean()).clamp_min(torch.finfo(torch.float64).tiny)
        lower = torch.linalg.cholesky(self.moment + ridge * torch.eye(len(self.moment), dtype=torch.float64))
        rows: torch.Tensor = lower.T.float().contiguous()
        return rows


def _observe(model: nn.Module, operators: Mapping[str, KasModule], data: Any) -> dict[str, _Seen]:
    """What the layers at the places of the operators see in evaluation mode."""
    modules = dict(model.named_modules())
    seen = {name: _Seen(operator._has_rows) for name, operator in operators.items()}
    hooks: dict[nn.Module, Callable[[nn.Module, Any, Any], None]] = {}
    for name, one in seen.items():

        def record(_: nn.Module, inputs: tuple[Any, ...], output: Any, one: _Seen = one) -> None:
            one.add(inputs[0])

        hooks[modules[name]] = record
    with observing(model, hooks):
        for batch in [data] if isinstance(data, (torch.Tensor, tuple)) else data:
            model(*(batch if isinstance(batch, (list, tuple)) else (batch,)))
    return seen


def _solve(
    apply: Callable[[torch.Tensor], torch.Tensor], weight: torch.Tensor, residual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The weight and the residual after steps of conjugate gradients for least squares; `apply` is linear."""
    variable = weight.clone().requires_grad_()
    output = apply(variable)

    def transpose(value: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(output, variable, value, retain_graph=True)[0]

    gradient = transpose(residual)
    direction, size = gradient, gradient.square().sum()
    for _ in range(_PRODUCTS):
        if size == 0:
            break
        with torch.no_grad():
            image = apply(direction)
        step = size / image.square().sum().clamp_min(torch.finfo(image.dtype).tiny)
        weight, residual = weight + step * direction, residual - step * image
        gradient = transpose(residual)
        previous, size = size, gradient.square().sum()
        direction = gradient + size / previous * direction
    return weight, residual


def _balance(weights: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same product of weights, all of one size."""
    sizes = [weight.square().mean().sqrt() for weight in weights]
    if min(map(float, sizes), default=0) == 0:
        return weights
    mean = torch.stack(sizes).log().mean().exp()
    return [weight * (mean / size) for weight, size in zip(weights, sizes)]


def fit_weights(
    apply: Callable[[Sequence[torch.Tensor]], torch.Tensor],
    weights: Sequence[torch.Tensor],
    target: torch.Tensor,
    rounds: int,
    tolerance: float,
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Weights for which `apply`, linear in each of them, comes close to the target, and what is left of that."""
    weights = [weight.detach().clone() for weight in weights]
    with torch.no_grad():
        residual = target - apply(weights)
    error = residual.norm()
    for _ in range(rounds):
        for number in range(len(weights)):
            others = weights[:number], weights[number + 1 :]

            def apply_one(weight: torch.Tensor, others: Any = others) -> torch.Tensor:
                return apply([*others[0], weight, *others[1]])

            with torch.enable_grad():
                weights[number], residual = _solve(apply_one, weights[number], residual)
        weights = _balance(weights)
        previous, error = error, residual.norm()
        if error > (1 - tolerance) * previous:
            break
    return weights, residual


def _fit_module(module: KasModule, layer: nn.Module, data: torch.Tensor, rounds: int, tolerance: float) -> float:
    """Fits one module; the error that is left, over the norm of the outputs."""
    plain = copy.deepcopy(layer)
    plain.register_parameter("bias", None)
    with torch.no_grad():
        target = plain(data)
    # As PyTorch code, whose gradients take no compilation.
    code = KasModule(find_operator(module.text), bind(module.text, module._binding_text, data.shape), "pytorch")

    def apply(weights: Sequence[torch.Tensor]) -> torch.Tensor:
        return code.apply_weights(data, module.with_trained(weights))

    weights, _ = fit_weights(apply, module.trained_weights, target, rounds, tolerance)
    norm = target.norm().clamp_min(torch.finfo(target.dtype).tiny)
    with torch.no_grad():
        for parameter, weight in zip(module.trained_weights, weights):
            parameter.copy_(weight)
        return float((target - apply(weights)).norm() / norm)


def fit(
    network: nn.Module, original: nn.Module, data: Any, *, rounds: int = 50, tolerance: float = 1e-3
) -> dict[str, float]:
    """Gives the operators in `network` weights with which they come close to the layers of `original`.

    `network` is what `substitute` made of `original`. For each of its `KasModule`s the sum of squares of the
    differences from the layer at the same place, for what that sees when `original` runs on `data` (a batch, or an
    iterable of them), is made small: by least squares for one weight after the other, with conjugate gradients, for at
    most so many `rounds` over all weights, or until one lowers the error by less than `tolerance` of it. The weights
    that the operators have are where it starts; all of an operator then have the same root mean square. Each layer is
    fitted by itself, to what it sees in `original`.

    Returns the root of the sum of squares that is left, over that of the layer's outputs without bias, by the paths of
    the modules: 0 is exact, 1 no better than zeros.

    Raises `ValueError` where an operator takes maxima (it is not linear in its weights), or there is no layer at its
    place, or there is no operator at all, or a layer sees what is not finite.
    """
    layers = dict(original.named_modules())
    modules = {name: module for name, module in network.named_modules() if isinstance(module, KasModule)}
    if not modules:
        raise ValueError("requires a network with operators, such as kas.torch.substitute makes, got none")
    for name, module in modules.items():
        if name not in layers or not is_layer(layers[name]):
            raise ValueError(f"requires a convolution or linear layer '{name}' in the original, got none")
        if module.has_maxima:
            raise ValueError(f"requires operators of sums, got '{module.operator_name}' with maxima at '{name}'")
    seen = _observe(original, modules, data)
    errors: dict[str, float] = {}
    for name, module in modules.items():
        if not seen[name].is_finite():
            raise ValueError(f"requires finite data of the layer '{name}', got infinity or NaN")
        if not seen[name].parts and seen[name].moment is None:
            raise ValueError(f"requires data for which the original runs its layer '{name}'")
        errors[name] = _fit_module(module, layers[name], seen[name].get_data(), rounds, tolerance)
    return errors
