# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences of operators as PyTorch modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn

from .._module import Binding, Operator
from .._sequence import OperatorSequence
from ._modules import KasModule

_NORMS: dict[int, type[nn.Module]] = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
"""By the rank of the data."""


_COMBINATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": torch.add,
    "multiply": torch.mul,
    "join": lambda first, second: torch.cat([first, second], 1),
}
"""What becomes of the results of two parallel operators."""


class _Stage(KasModule):
    """An operator of a sequence with the steps before and after it; of parallel ones the last has the step."""

    def __init__(
        self,
        operator: Operator,
        binding: Binding,
        combination: str | None,
        output: tuple[int, ...],
        step: str | None,
        backend: str,
        *,
        threads: int,
        bias_dim: int | None,
        fixed: Mapping[int, torch.Tensor],
    ):
        super().__init__(operator, binding, backend, threads=threads, bias_dim=bias_dim, fixed=fixed)
        self.combination = combination
        self.step = step
        if self.bias_dim is not None:
            self.bias = nn.Parameter(torch.zeros(output[self.bias_dim]))
        if step is not None and step.startswith("normalize"):
            if len(output) not in _NORMS:
                raise ValueError(f"requires data of rank 2 to 5 for a normalization, got {len(output)}")
            self.norm = _NORMS[len(output)](output[1])

    def extra_repr(self) -> str:
        """The operator, the binding, the backend and the steps."""
        before = f"{self.combination} to what is parallel: " if self.combination else ""
        after = f", then {self.step}" if self.step else ""
        return f"{before}{super().extra_repr()}{after}"

    def forward(self, data: torch.Tensor, parallel: torch.Tensor | None = None) -> torch.Tensor:
        """The output after the step, differentiable; `parallel` is that of the parallel operators before it."""
        if self._has_rows and data.ndim > 2:
            rows = self.forward(data.flatten(0, -2), None if parallel is None else parallel.flatten(0, -2))
            return rows.reshape(*data.shape[:-1], rows.shape[-1])
        output = self._apply_operator(data)
        if self.combination is not None and parallel is not None:
            output = _COMBINATIONS[self.combination](parallel, output)
        output = self._add_bias(output)
        if self.step is None or self.step == "none":
            return output
        if self.step.startswith("normalize"):
            output = self.norm(output)
        return output.relu() if self.step.endswith("relu") else output


def _split_names(fixed: Mapping[str, torch.Tensor], counts: Sequence[int]) -> list[dict[int, torch.Tensor]]:
    """Tensors by names such as `0.weight1`, for each operator by the number of its weight."""
    places = {
        f"{number}.weight{index}": (number, index) for number, count in enumerate(counts) for index in range(count)
    }
    found: list[dict[int, torch.Tensor]] = [{} for _ in counts]
    for name, values in fixed.items():
        if name not in places:
            raise ValueError(f"requires names of weights ({', '.join(places)}) as fixed, got {name!r}")
        number, index = places[name]
        found[number][index] = values
    return found


class SequenceModule(nn.Sequential):
    """A `kas.OperatorSequence` as a module: one `KasModule` after the other.

    Each but the last normalizes and rectifies its output as the sequence says; a normalization is its child `norm`, a
    batch norm of PyTorch. So parameters are `0.weight0`, `0.norm.weight`, `1.weight0` ... Of parallel operators, whose
    results are added, multiplied or joined, the last one has the normalization. `backend`, `threads` and `bias_dim` (a
    bias of the output) are those of `KasModule`; `fixed` has the values of weights that are not trained by their names.
    """

    def __init__(
        self,
        sequence: OperatorSequence,
        binding: Binding,
        backend: str = "compiled",
        *,
        threads: int = 0,
        bias_dim: int | None = None,
        fixed: Mapping[str, torch.Tensor] | None = None,
    ):
        if not isinstance(sequence, OperatorSequence):
            raise TypeError(f"expected a kas.OperatorSequence, got {type(sequence).__name__}")
        stages: list[KasModule] = []
        outputs = sequence.output_shapes(binding)
        own_fixed = _split_names(fixed or {}, [operator.num_weights for operator in sequence.operators])
        for number, (operator, values) in enumerate(zip(sequence.operators, sequence.bindings(binding))):
            is_last = number == len(sequence.steps)
            combination = sequence.steps[number - 1] if sequence.is_parallel(number) else None
            step = None if is_last or sequence.is_parallel(number + 1) else sequence.steps[number]
            own_bias = bias_dim if is_last else None
            stage = _Stage(
                operator,
                values,
                combination,
                outputs[number],
                step,
                backend,
                threads=threads,
                bias_dim=own_bias,
                fixed=own_fixed[number],
            )
            stages.append(stage)
        super().__init__(*stages)
        self.sequence_name = sequence.name
        self._is_parallel = [sequence.is_parallel(number) for number in range(len(stages))]

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """The output of the last operator, or of the last parallel ones together, differentiable."""
        output = data
        for stage, is_parallel in zip(self, self._is_parallel):
            if is_parallel:
                output = stage(data, output)
            else:
                data, output = output, stage(output)
        return output
