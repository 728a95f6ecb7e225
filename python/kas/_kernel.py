# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the tensor level: graphs of tensors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from ._function import Function
from ._module import Binding, Module, binding_to_text, find_entry, named_kernels

if TYPE_CHECKING:
    import numpy


class _Description(TypedDict):
    """What the extension reports about a kernel, as JSON."""

    symbols: list[str]
    inputs: int


class KernelShapes(NamedTuple):
    """The shapes of a kernel's tensors at a binding; the batch is the first dimension of inputs and output."""

    inputs: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    deviations: tuple[float, ...]
    """The standard deviations that the weights start with."""


class Kernel:
    """A kernel of a module.

    A binding is a dictionary `{"C": 64}` or text `"C=64"`, with a value for each symbol,
    variables included; those that are left out are taken from the kernel's own first binding, where it has one.
    """

    def __init__(self, module: Module, name: str):
        self.module = module
        self.name = name
        self._description: _Description = json.loads(module._handle.describe_kernel(name))

    def __repr__(self) -> str:
        return f"<kas.Kernel {self.name}>"

    def __str__(self) -> str:
        return self.module.text_of(self.name)

    @property
    def symbols(self) -> list[str]:
        """All symbols: primaries, coefficients, then variables."""
        return self._description["symbols"]

    @property
    def num_inputs(self) -> int:
        """How many data inputs there are, weights not counted."""
        return self._description["inputs"]

    def shapes(self, binding: Binding = None, batch: int = 1) -> KernelShapes:
        """The shapes at a binding for `batch` samples at once."""
        numbers = json.loads(self.module._handle.get_kernel_shapes(self.name, binding_to_text(binding), batch))
        inputs, weights = (tuple(map(tuple, numbers[key])) for key in ("inputs", "weights"))
        return KernelShapes(inputs, weights, tuple(numbers["output"]), tuple(numbers["deviations"]))

    def to_pytorch(self, binding: Binding = None) -> str:
        """A Python file with the kernel as torch.nn.Module, for any batch; it needs no kas."""
        return self.module._handle.kernel_to_pytorch(self.name, binding_to_text(binding))

    def compile(self, binding: Binding = None, *, batch: int = 1, threads: int = 0, opt_level: int = 2) -> Function:
        """Compiles the kernel for the CPU: the result takes the inputs and the weights and gives the output.

        `threads`: 1 makes serial code, 0 leaves the number to OpenMP.
        """
        return self._compile(binding, batch, False, threads, opt_level)

    def compile_gradient(
        self, binding: Binding = None, *, batch: int = 1, threads: int = 0, opt_level: int = 2
    ) -> Function:
        """Compiles all gradients.

        The result takes the inputs, the weights and the gradient of the output, and gives a list of the output and the
        gradient of each input and weight.
        """
        return self._compile(binding, batch, True, threads, opt_level)

    def _compile(self, binding: Binding, batch: int, gradient: bool, threads: int, opt_level: int) -> Function:
        handle = self.module._handle
        arguments = (binding_to_text(binding), batch, gradient, threads, opt_level)
        return Function(handle, str(self), "compile_kernel", self.name, *arguments)

    def evaluate(self, binding: Binding, inputs: Sequence[Any], weights: Sequence[Any] = ()) -> numpy.ndarray:
        """The output of one sample, without a batch, by the reference evaluator that defines what kernels mean."""
        import numpy

        shapes = self.shapes(binding)
        wanted = [*(shape[1:] for shape in shapes.inputs), *shapes.weights]
        arrays = [numpy.ascontiguousarray(array, dtype=numpy.float32) for array in (*inputs, *weights)]
        if [array.shape for array in arrays] != wanted:
            raise ValueError(f"the inputs and weights must have the shapes {wanted}, got {[a.shape for a in arrays]}")
        output = numpy.zeros(shapes.output[1:], dtype=numpy.float32)
        self.module._handle.evaluate_kernel(self.name, binding_to_text(binding), [*arrays, output])
        return output


def kernel(name: str) -> Kernel:
    """The kernel `name` of the library, in a module of its own."""
    entry = find_entry("kernel", named_kernels(), name)
    return Kernel(Module(entry.text, f"kas.{entry.name}"), entry.name)
