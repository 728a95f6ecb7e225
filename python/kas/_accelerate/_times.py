# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks and layers as programs of this machine, and what these take."""

from __future__ import annotations

import copy
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from .._arguments import set_attributes
from .._errors import Error
from .._function import BoundCall
from .._module import Module
from .._quantize import quantize
from ..evaluate._task import map_tensors
from ..torch._export import _prepare, to_mlir
from ..torch._graph_import import UnsupportedGraphError, import_graph, trace
from ..torch._modules import KasModule

PRECISIONS = ("f32", "bf16", "int8")
ROUNDS, CALLS_MS = 5, 4.0
"""Rounds of a measurement and the least milliseconds of each."""


TRACING = threading.RLock()
"""PyTorch's tracers change how modules are called, in all threads: what traces, or calls modules meanwhile, has it."""


# What PyTorch says when it copies its own graphs.
warnings.filterwarnings("ignore", r".*isinstance\(treespec, LeafSpec\)", FutureWarning)


class UntraceableError(ValueError):
    """The network cannot be written as MLIR; the message says why and what to do."""


class Exported(NamedTuple):
    """A network as MLIR, with the arguments after its inputs."""

    module: Module
    weights: list[torch.Tensor]


def export(network: nn.Module, example: Any) -> Exported:
    """The network as MLIR, batch norms folded where PyTorch can trace it; one at a time."""
    with TRACING:
        return _export(network, example)


def _export(network: nn.Module, example: Any) -> Exported:
    try:
        if not any(isinstance(module, KasModule) for module in network.modules()):
            try:
                return _export_graph(network, example)
            except UnsupportedGraphError:
                # What is written in another way may be known.
                pass
        return _export_program(network, example)
    except ValueError as error:
        raise UntraceableError(str(error)) from error


def _fold(network: nn.Module) -> nn.Module:
    try:
        return _prepare(network, fold_batch_norms=True, keep_operators=False)
    except ValueError:
        return _prepare(network, fold_batch_norms=False, keep_operators=False)


def _export_graph(network: nn.Module, example: Any) -> Exported:
    """By the importer of `torch.compile`, which takes a fifth of the time."""
    network = _fold(network)
    inputs = list(example) if isinstance(example, (tuple, list)) else [example]
    tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    tensors = {name: one.detach() for name, one in tensors.items() if not name.endswith("num_batches_tracked")}

    def call(*arguments: torch.Tensor) -> list[torch.Tensor]:
        weights = dict(zip(tensors, arguments[len(inputs) :]))
        outputs = torch.func.functional_call(network, weights, tuple(arguments[: len(inputs)]))
        return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]

    traced = trace(call, [*inputs, *tensors.values()], with_gradients=False)
    names = [f"input{number or ''}" for number in range(len(inputs))]
    attributes: list[dict[str, Any]] = [{"kas.name": name} for name in [*names, *tensors]]
    for attribute in attributes[1 : len(inputs)]:
        attribute["kas.data"] = None
    text = set_attributes(str(import_graph(traced)), attributes)
    return Exported(Module(text, "<network>"), list(tensors.values()))


def _export_program(network: nn.Module, example: Any) -> Exported:
    operators = any(isinstance(module, KasModule) for module in network.modules())
    try:
        found = to_mlir(network, example, keep_operators=operators)
    except ValueError as error:
        if "fold_batch_norms" not in str(error):
            raise
        found = to_mlir(network, example, fold_batch_norms=False, keep_operators=operators)
    return Exported(found.module, list(found.tensors.values()))


class Program:
    """A compiled network for examples of the shapes of one, with its weights packed.

    A call takes the inputs and gives the outputs, tensors that the next call overwrites.
    """

    def __init__(self, module: Module, weights: Sequence[torch.Tensor], example: Any, threads: int, precision: str):
        inputs = example if isinstance(example, (tuple, list)) else (example,)
        self.module, self.weights = module, weights
        self.inputs = [one.detach().clone().contiguous() for one in inputs]
        # Of functions of several inputs, what comes after the first would be taken for weights.
        prepared = len(self.inputs) == 1
        function = module.compile(
            "forward",
            threads=threads,
            prepack_weights=prepared,
            precision="bf16" if precision == "bf16" else "f32",
        )
        self._call: BoundCall = function.bind(*self.inputs, *weights)
        self._call.prepack()

    def __call__(self, inputs: Any) -> Any:
        """The outputs for inputs of the shapes of the example."""
        for own, given in zip(self.inputs, inputs if isinstance(inputs, (tuple, list)) else (inputs,)):
            own.copy_(given)
        return self._call()

    def run(self) -> None:
        """A call with the inputs that are there."""
        self._call()

    def predict(self, inputs: Any) -> Any:
        """The outputs for any number of examples, the batch of the program at a time."""
        tensors = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        size, count = len(self.inputs[0]), len(tensors[0])
        parts = []
        for start in range(0, count, size):
            found = min(size, count - start)
            for own, given in zip(self.inputs, tensors):
                own[:found].copy_(given[start : start + found])
            outputs = self._call()
            parts.append(_take(outputs, found))
        if isinstance(parts[0], torch.Tensor):
            return torch.cat(parts)
        return tuple(torch.cat(column) for column in zip(*parts))


def _take(outputs: Any, count: int) -> Any:
    return map_tensors(lambda tensor: tensor[:count].clone(), outputs)


def compile_network(
    network: nn.Module, example: Any, threads: int, precision: str = "f32", calibration: Sequence[Any] = ()
) -> Program:
    """A network as a program. `calibration` are batches of the shape of the example, for int8.

    Raises `UntraceableError` where torch-mlir cannot write it, `kas.Error` where it cannot be compiled.
    """
    network = copy.deepcopy(network).eval()
    module, weights = export(network, example)
    if precision == "int8":
        module = quantize(module, calibration, weights)
    return Program(module, weights, example, threads, precision)


def time_calls(calls: Sequence[Callable[[], None]], rounds: int = ROUNDS) -> list[float]:
    """Milliseconds of each call: the least over rounds in which each has its turn."""
    counts, best = [], []
    for one in calls:
        one()
        start = time.perf_counter()
        one()
        took = 1e3 * (time.perf_counter() - start)
        counts.append(max(1, min(1000, int(CALLS_MS / max(took, 1e-4)))))
        best.append(took)
    for _ in range(rounds):
        for number, one in enumerate(calls):
            # The least of single calls: what else runs on the machine interrupts some, not all.
            for _ in range(counts[number]):
                start = time.perf_counter()
                one()
                best[number] = min(best[number], 1e3 * (time.perf_counter() - start))
    return best


class LayerTimes:
    """Times of single layers and of what may take their place, each kind once."""

    def __init__(self, batch: int, threads: int, precision: str = "f32"):
        self.batch, self.threads, self.precision = batch, threads, precision
        self.known: dict[str, float] = {}
        self.failures: dict[str, str] = {}

    def get_key(self, module: nn.Module, data_shape: Sequence[int]) -> str:
        """The same for modules that are computed alike."""
        return f"{self.precision} {tuple(data_shape)} {module!r}"

    def _compile(self, module: nn.Module, example: torch.Tensor) -> Program:
        if self.precision == "int8":
            try:
                return compile_network(module, example, self.threads, "int8", [example])
            except Error:
                # A layer that is not quantized to int8, such as a depthwise one, stays as it is in networks, too.
                return compile_network(module, example, self.threads)
        return compile_network(module, example, self.threads, self.precision)

    def measure(self, module: nn.Module, data_shape: Sequence[int]) -> float | None:
        """Milliseconds of a module on a batch; None where it cannot be compiled (`failures`)."""
        key = self.get_key(module, data_shape)
        if key in self.failures:
            return None
        if key not in self.known:
            example = torch.randn(self.batch, *data_shape, generator=torch.Generator().manual_seed(0))
            try:
                if not any(True for _ in module.parameters()) and isinstance(module, nn.Identity):
                    self.known[key] = 0.0
                else:
                    self.known[key] = time_calls([self._compile(module, example).run])[0]
            except (Error, UntraceableError) as error:
                self.failures[key] = " ".join(str(error).split())
                return None
        return self.known[key]
