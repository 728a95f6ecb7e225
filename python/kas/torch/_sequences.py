# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences of operators as PyTorch modules."""

from __future__ import annotations

import torch
from torch import nn

from .._module import Binding, Operator
from .._sequence import OperatorSequence
from ._modules import KasModule

_NORMS: dict[int, type[nn.Module]] = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
"""By the rank of the data."""


class _Stage(KasModule):
    """An operator of a sequence with the step after it."""

    def __init__(self, operator: Operator, binding: Binding, step: str, backend: str, threads: int):
        super().__init__(operator, binding, backend, threads=threads)
        self.step = step
        if step.startswith("normalize"):
            output = operator.shapes(binding).output
            if len(output) not in _NORMS:
                raise ValueError(f"requires data of rank 2 to 5 for a normalization, got {len(output)}")
            self.norm = _NORMS[len(output)](output[1])

    def extra_repr(self) -> str:
        """The operator, the binding, the backend and the step."""
        return f"{super().extra_repr()}, then {self.step}"

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """The output after the step, differentiable."""
        output = super().forward(data)
        if self.step.startswith("normalize"):
            output = self.norm(output)
        return output.relu() if self.step.endswith("relu") else output


class SequenceModule(nn.Sequential):
    """A `kas.OperatorSequence` as a module: one `KasModule` after the other.

    Each but the last normalizes and rectifies its output as the sequence says; a normalization is its child `norm`, a
    batch norm of PyTorch. So parameters are `0.weight0`, `0.norm.weight`, `1.weight0` ... `backend`, `threads` and
    `bias_dim` (a bias of the output) are those of `KasModule`.
    """

    def __init__(
        self,
        sequence: OperatorSequence,
        binding: Binding,
        backend: str = "compiled",
        *,
        threads: int = 0,
        bias_dim: int | None = None,
    ):
        if not isinstance(sequence, OperatorSequence):
            raise TypeError(f"expected a kas.OperatorSequence, got {type(sequence).__name__}")
        *bindings, last = sequence.bindings(binding)
        stages: list[KasModule] = [
            _Stage(operator, values, step, backend, threads)
            for operator, values, step in zip(sequence.operators, bindings, sequence.steps)
        ]
        stages.append(KasModule(sequence.operators[-1], last, backend, threads=threads, bias_dim=bias_dim))
        super().__init__(*stages)
        self.sequence_name = sequence.name
