# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recurrent layers of ONNX, one step after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from .._node import Node, define

Tensor = torch.Tensor
MOST_STEPS = 512
"""Each step is computed by code of its own."""

_ACTIVATIONS: dict[str, Callable[[Tensor, float | None, float | None], Tensor]] = {
    "relu": lambda x, a, b: functional.relu(x),
    "tanh": lambda x, a, b: torch.tanh(x),
    "sigmoid": lambda x, a, b: torch.sigmoid(x),
    "affine": lambda x, a, b: x * (1.0 if a is None else a) + (0.0 if b is None else b),
    "leakyrelu": lambda x, a, b: torch.where(x < 0, x * (0.01 if a is None else a), x),
    "thresholdedrelu": lambda x, a, b: torch.where(x > (1.0 if a is None else a), x, 0.0),
    "scaledtanh": lambda x, a, b: torch.tanh(x * (1.0 if b is None else b)) * (1.0 if a is None else a),
    "hardsigmoid": lambda x, a, b: torch.clamp(x * (0.2 if a is None else a) + (0.5 if b is None else b), 0.0, 1.0),
    "elu": lambda x, a, b: torch.where(
        x < 0, (torch.exp(torch.where(x < 0, x, 0.0)) - 1) * (1.0 if a is None else a), x
    ),
    "softsign": lambda x, a, b: x / (1 + x.abs()),
    "softplus": lambda x, a, b: torch.log1p(torch.exp(-x.abs())) + functional.relu(x),
}


def _bind(kind: str, alpha: float | None, beta: float | None) -> Callable[[Tensor], Tensor]:
    return lambda x: _ACTIVATIONS[kind](x, alpha, beta)


class _Layer:
    """What the recurrent layers have in common."""

    def __init__(self, node: Node, x: Tensor, gates: int, defaults: Sequence[str], inputs: Sequence[Tensor | None]):
        self.node = node
        self.direction = node.get("direction", "forward")
        self.layout = node.get("layout", 0)
        self.x = x.transpose(0, 1) if self.layout else x
        self.steps, self.batch = self.x.shape[:2]
        if self.steps > MOST_STEPS:
            raise node.refuse(f"requires sequences of at most {MOST_STEPS} steps, got {self.steps}")
        self.directions = 2 if self.direction == "bidirectional" else 1
        self.hidden = node.get("hidden_size", inputs[1].shape[-1] if inputs[1] is not None else 0)
        self.clip = node.get("clip")
        names = node.get("activations", list(defaults) * self.directions)
        alphas, betas = list(node.get("activation_alpha", [])), list(node.get("activation_beta", []))
        self.activations: list[Callable[[Tensor], Tensor]] = []
        for name in names:
            kind = name.lower()
            if kind not in _ACTIVATIONS:
                raise node.refuse(f"requires activations of {', '.join(_ACTIVATIONS)}, got {name}")
            takes_alpha = kind in ("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu")
            takes_beta = kind in ("affine", "scaledtanh", "hardsigmoid")
            alpha = alphas.pop(0) if alphas and takes_alpha else None
            beta = betas.pop(0) if betas and takes_beta else None
            self.activations.append(_bind(kind, alpha, beta))
        self.per_direction = len(names) // self.directions

    def limit(self, x: Tensor) -> Tensor:
        """Clipped before an activation, where the node wants it."""
        if self.clip is None:
            return x
        x = torch.where(x < -self.clip, -self.clip, x)
        return torch.where(x > self.clip, self.clip, x)

    def initial(self, value: Tensor | None, direction: int) -> Tensor:
        """The state before the first step."""
        if value is None:
            return torch.zeros(self.batch, self.hidden, dtype=self.x.dtype)
        return value[:, direction] if self.layout else value[direction]

    def run(
        self,
        lengths: Tensor | None,
        states: Sequence[Tensor | None],
        step: Callable[[int, list[Callable[[Tensor], Tensor]], Tensor, list[Tensor]], list[Tensor]],
    ) -> list[Tensor]:
        """All outputs of the first state, and the last states."""
        every: list[Tensor] = []
        last: list[list[Tensor]] = [[] for _ in states]
        for direction in range(self.directions):
            is_backward = self.direction == "reverse" or direction == 1
            now = [self.initial(state, direction) for state in states]
            functions = self.activations[direction * self.per_direction : (direction + 1) * self.per_direction]
            outputs: list[Tensor] = [now[0]] * self.steps
            for place in reversed(range(self.steps)) if is_backward else range(self.steps):
                after = step(direction, functions, self.x[place], now)
                outputs[place] = after[0]
                if lengths is not None:
                    is_on = (lengths > place).reshape(-1, 1)
                    outputs[place] = torch.where(is_on, after[0], 0.0)
                    after = [torch.where(is_on, new, old) for new, old in zip(after, now)]
                now = after
            every.append(torch.stack(outputs))
            for entries, state in zip(last, now):
                entries.append(state)
        y = torch.stack(every, 1)
        finals = [torch.stack(entries) for entries in last]
        if self.layout:
            y = y.permute(2, 0, 1, 3)
            finals = [final.transpose(0, 1) for final in finals]
        return [y, *finals]


def _parts(tensor: Tensor, count: int) -> list[Tensor]:
    size = tensor.shape[0] // count
    return [tensor.narrow(0, place * size, size) for place in range(count)]


@define("RNN")
def _rnn(
    node: Node,
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    initial: Tensor | None = None,
) -> list[Tensor]:
    layer = _Layer(node, x, 1, ["Tanh"], [weight, recurrence])

    def step(direction: int, functions: list[Callable[[Tensor], Tensor]], data: Tensor, states: list[Tensor]) -> Any:
        total = torch.mm(data, weight[direction].t()) + torch.mm(states[0], recurrence[direction].t())
        if bias is not None:
            total = total + sum(_parts(bias[direction], 2))
        return [functions[0](layer.limit(total))]

    return layer.run(lengths, [initial], step)


@define("GRU")
def _gru(
    node: Node,
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    initial: Tensor | None = None,
) -> list[Tensor]:
    layer = _Layer(node, x, 3, ["Sigmoid", "Tanh"], [weight, recurrence])
    resets_after = node.get("linear_before_reset", 0)

    def step(direction: int, functions: list[Callable[[Tensor], Tensor]], data: Tensor, states: list[Tensor]) -> Any:
        (before,) = states
        inputs = torch.mm(data, weight[direction].t())
        own = [inputs.narrow(1, place * layer.hidden, layer.hidden) for place in range(3)]
        rows = _parts(recurrence[direction], 3)
        biases = _parts(bias[direction], 6) if bias is not None else None
        gates = []
        for place in range(2):
            total = own[place] + torch.mm(before, rows[place].t())
            total = total if biases is None else total + biases[place] + biases[3 + place]
            gates.append(functions[0](layer.limit(total)))
        update, reset = gates
        if resets_after:
            inner = torch.mm(before, rows[2].t())
            inner = reset * (inner if biases is None else inner + biases[5])
            total = own[2] + inner
        else:
            total = own[2] + torch.mm(reset * before, rows[2].t())
            total = total if biases is None else total + biases[5]
        total = total if biases is None else total + biases[2]
        candidate = functions[1](layer.limit(total))
        return [(1 - update) * candidate + update * before]

    return layer.run(lengths, [initial], step)


@define("LSTM")
def _lstm(
    node: Node,
    x: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    initial: Tensor | None = None,
    initial_cell: Tensor | None = None,
    peepholes: Tensor | None = None,
) -> list[Tensor]:
    layer = _Layer(node, x, 4, ["Sigmoid", "Tanh", "Tanh"], [weight, recurrence])
    couples = node.get("input_forget", 0)

    def step(direction: int, functions: list[Callable[[Tensor], Tensor]], data: Tensor, states: list[Tensor]) -> Any:
        before, cell = states
        total = torch.mm(data, weight[direction].t()) + torch.mm(before, recurrence[direction].t())
        if bias is not None:
            total = total + sum(_parts(bias[direction], 2))
        parts = [total.narrow(1, place * layer.hidden, layer.hidden) for place in range(4)]
        peeks = _parts(peepholes[direction], 3) if peepholes is not None else None
        gate_in = functions[0](layer.limit(parts[0] if peeks is None else parts[0] + peeks[0] * cell))
        if couples:
            forget = 1 - gate_in
        else:
            forget = functions[0](layer.limit(parts[2] if peeks is None else parts[2] + peeks[2] * cell))
        now = forget * cell + gate_in * functions[1](layer.limit(parts[3]))
        gate_out = functions[0](layer.limit(parts[1] if peeks is None else parts[1] + peeks[1] * now))
        return [gate_out * functions[2](now), now]

    return layer.run(lengths, [initial, initial_cell], step)
