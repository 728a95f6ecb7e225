# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A backend of `torch.compile`: graphs are compiled by kas, or stay with PyTorch and say why."""

from __future__ import annotations

import collections
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from .._errors import Error, need
from .._module import Module
from ._decompositions import get_table

Boxed = Callable[[list[Any]], list[Any]]
"""Takes its arguments as one list, which it may empty."""


class CompiledGraph(NamedTuple):
    """What became of a graph that PyTorch gave to the backend."""

    operations: int
    """Of the graph, as PyTorch wrote it."""
    shapes: tuple[tuple[int, ...], ...]
    """Of its data: what is no parameter and no buffer."""
    seconds: float
    """That it took to compile."""
    reason: str | None
    """Why PyTorch runs it; None where kas does."""


_graphs: collections.deque[CompiledGraph] = collections.deque(maxlen=1000)


def explain() -> list[CompiledGraph]:
    """The last graphs that `torch.compile(..., backend="kas")` met, oldest first, and forgets them.

    A network is one graph for each part that PyTorch can trace, and one for each set of shapes that it is called with.
    """
    graphs = list(_graphs)
    _graphs.clear()
    return graphs


class _UnsupportedGraphError(Exception):
    """Why a graph is not compiled by kas."""


class _Layout(NamedTuple):
    """What the arguments of a compiled function are, and its results."""

    data: list[int]
    """Places among the arguments of the graph."""
    weights: list[int]
    outputs: list[int | None]
    """For each output of the graph the number of the result; None: an argument, or no tensor."""
    constants: list[Any]
    """For each output what it is if it is no tensor, else None."""
    shapes: list[tuple[int, ...]]
    """Of the results."""
    strides: list[tuple[int, ...] | None]
    """Of results that PyTorch has in another layout than that of rows; None for the others."""


def _import(graph: fx.GraphModule) -> Module:
    """The graph in linalg on tensors."""
    from torch_mlir import fx as importer
    from torch_mlir import ir
    from torch_mlir.dialects import torch as dialect
    from torch_mlir.extras.fx_importer import FxImporter

    context = ir.Context()
    dialect.register_dialect(context)
    diagnostics: list[str] = []

    def collect(diagnostic: Any) -> bool:
        diagnostics.append(str(diagnostic))
        return True

    try:
        with context.attach_diagnostic_handler(collect):
            module = importer.stateless_fx_import(
                graph,
                output_type="linalg-on-tensors",
                fx_importer=FxImporter(context=context),
                model_name="forward",
            )
            return Module(str(module), "<graph>")
    except Exception as error:
        text = "\n".join([*diagnostics, str(error)])
        unknown = sorted({name.rstrip(".") for name in re.findall(r"torch\.aten\.[\w.]+", text)})
        reason = ", ".join(unknown) if unknown else " ".join((diagnostics or [str(error)])[0].split())
        raise _UnsupportedGraphError(f"torch-mlir cannot express {reason}") from error


def _trace(graph: fx.GraphModule, arguments: Sequence[Any]) -> fx.GraphModule:
    """The graph for arguments of these shapes, with what is no tensor inside."""
    from torch.fx.experimental.proxy_tensor import make_fx

    places = [place for place, argument in enumerate(arguments) if isinstance(argument, torch.Tensor)]

    def call(*tensors: torch.Tensor) -> Any:
        values = list(arguments)
        for place, tensor in zip(places, tensors):
            values[place] = tensor
        return graph(*values)

    tensors = [arguments[place] for place in places]
    with torch.no_grad():
        traced: fx.GraphModule = make_fx(call, decomposition_table=get_table(), tracing_mode="fake")(*tensors)
    return traced


def _get_outputs(graph: fx.GraphModule) -> Sequence[Any]:
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    outputs: Sequence[Any] = output.args[0]
    return outputs


def _select_results(graph: fx.GraphModule) -> list[int | None]:
    """Leaves the graph with the tensors that it computes, each once; for each output its number."""
    numbers: list[int | None] = []
    computed: list[fx.Node] = []
    for value in _get_outputs(graph):
        if not isinstance(value, fx.Node) or value.op == "placeholder":
            numbers.append(None)
            continue
        if value not in computed:
            computed.append(value)
        numbers.append(computed.index(value))
    if not computed:
        raise _UnsupportedGraphError("requires a result that is computed, got none")
    for node in computed:
        if node.meta["val"].dtype != torch.float32:
            raise _UnsupportedGraphError(f"requires results of float32, got {node.meta['val'].dtype}")
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    output.args = (tuple(computed),)
    graph.recompile()
    return numbers


def _get_strides(result: torch.Tensor) -> tuple[int, ...] | None:
    """Of a result whose layout, such as channels last, is not that of rows."""
    strides = tuple(result.stride())
    order = sorted(range(result.dim()), key=lambda dim: -strides[dim])
    is_dense = result.permute(order).is_contiguous()
    return strides if is_dense and not result.is_contiguous() else None


def _check_deterministic(graph: fx.GraphModule) -> None:
    for node in graph.graph.nodes:
        # Attention has an argument for dropout.
        is_attention = "scaled_dot_product" in str(node.target) and not any(node.args[3:4])
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not is_attention:
            # What PyTorch draws follows from torch.manual_seed.
            raise _UnsupportedGraphError(f"requires a network without random numbers, got {node.target}")


def _reorder(graph: fx.GraphModule, order: Sequence[int]) -> None:
    """Puts the arguments of the graph in this order."""
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    first = next(iter(graph.graph.nodes))
    for place in reversed(order):
        if nodes[place] is not first:
            first.prepend(nodes[place])
            first = nodes[place]
    graph.recompile()


class _Compiled:
    """A graph for one set of shapes."""

    def __init__(self, graph: fx.GraphModule, arguments: Sequence[Any], static: set[int], threads: int):
        tensors = [place for place, argument in enumerate(arguments) if isinstance(argument, torch.Tensor)]
        for place in tensors:
            tensor = arguments[place]
            if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
                raise _UnsupportedGraphError(
                    f"requires tensors of float32 on the CPU, got {tensor.dtype} on '{tensor.device}'"
                )
        _check_deterministic(graph)
        traced = _trace(graph, arguments)
        constants = [None if isinstance(value, fx.Node) else value for value in _get_outputs(traced)]
        outputs = _select_results(traced)
        values = [node.meta["val"] for node in _get_outputs(traced)]
        shapes, strides = [tuple(value.shape) for value in values], [_get_strides(value) for value in values]
        data = [place for place in tensors if place not in static]
        weights = [place for place in tensors if place in static]
        _reorder(traced, [tensors.index(place) for place in (*data, *weights)])
        self.layout = _Layout(data, weights, outputs, constants, shapes, strides)
        # Weights are packed ahead where all but the first argument are weights.
        self.is_packed = len(data) == 1
        module = _import(traced)
        try:
            if self.is_packed:
                module.run(f"kas-cpu-pipeline{{threads={threads} prepare-weights=true}}")
                self.program: Any = module._handle.load(2)
                self.num_packed = self.program.get_num_prepared_elements("forward")
            else:
                self.program = module.compile("forward", threads=threads)
        except (Error, ValueError) as error:
            raise _UnsupportedGraphError(" ".join(str(error).split())) from error
        self.versions: list[tuple[int, int]] | None = None
        self.packed: torch.Tensor | None = None
        self.wall_clock = threads != 1

    def _pack(self, weights: list[torch.Tensor]) -> None:
        """Packs the weights, unless they are those of the last call, unchanged."""
        versions = [(weight.data_ptr(), weight._version) for weight in weights]
        if versions == self.versions:
            return
        memory = torch.zeros(self.num_packed + 16)
        start = -(memory.data_ptr() // 4) % 16
        self.packed = memory[start : start + self.num_packed]
        self.program.call("forward_prepare", [*weights, self.packed], 1, False)
        self.versions = versions

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        layout = self.layout
        tensors = [arguments[place].detach().contiguous() for place in (*layout.data, *layout.weights)]
        results = [torch.empty(shape) for shape in layout.shapes]
        if self.is_packed:
            if self.num_packed:
                self._pack(tensors[1:])
                self.program.call("forward", [*tensors, *results, self.packed], 1, self.wall_clock)
            else:
                self.program.call("forward", [*tensors, *results], 1, self.wall_clock)
        else:
            self.program(*tensors, out=results)
        for number, strides in enumerate(layout.strides):
            if strides is not None:
                results[number] = torch.empty_strided(layout.shapes[number], strides).copy_(results[number])
        return [
            constant if number is None else results[number]
            for number, constant in zip(layout.outputs, layout.constants)
        ]


class _Graph:
    """A graph that is compiled for each set of shapes that it is called with."""

    _boxed_call = True

    def __init__(self, graph: fx.GraphModule, static: Sequence[int]):
        self.graph, self.static = graph, set(static)
        self.operations = sum(node.op not in ("placeholder", "output", "get_attr") for node in graph.graph.nodes)
        self.compiled: dict[Any, _Compiled | None] = {}
        arguments = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self.passed = [
            arguments.index(value) if isinstance(value, fx.Node) and value.op == "placeholder" else None
            for value in _get_outputs(graph)
        ]
        """For each output the argument that it is, if it is one."""

    def __call__(self, arguments: list[Any]) -> list[Any]:
        threads = torch.get_num_threads()
        key = (threads, *((*a.shape, *a.stride()) if isinstance(a, torch.Tensor) else a for a in arguments))
        if key not in self.compiled:
            self.compiled[key] = self._compile(arguments, threads)
        compiled = self.compiled[key]
        if compiled is None:
            outputs: list[Any] = list(self.graph(*arguments))
            return outputs
        values = compiled(arguments)
        results = [value if place is None else arguments[place] for value, place in zip(values, self.passed)]
        arguments.clear()
        return results

    def _compile(self, arguments: Sequence[Any], threads: int) -> _Compiled | None:
        start, compiled, reason = time.perf_counter(), None, None
        try:
            compiled = _Compiled(self.graph, arguments, self.static, threads)
        except _UnsupportedGraphError as error:
            reason = str(error)
        shapes = tuple(
            tuple(argument.shape)
            for place, argument in enumerate(arguments)
            if isinstance(argument, torch.Tensor) and place not in self.static
        )
        _graphs.append(CompiledGraph(self.operations, shapes, time.perf_counter() - start, reason))
        return compiled


def _compile_inference(graph: fx.GraphModule, _: Sequence[Any]) -> Boxed:
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    return _Graph(graph, metadata.static_input_indices if metadata else ())


def backend(graph: fx.GraphModule, arguments: Sequence[Any]) -> Callable[..., Any]:
    """Compiles a graph: `torch.compile(network, backend="kas")`, where not installed `backend=kas.torch.backend`.

    Networks that infer (`torch.no_grad()`) on float32 tensors of the CPU are compiled as a whole, once for each set of
    shapes and for `torch.get_num_threads()` threads; weights are packed once, and again when they have changed. Graphs
    that need gradients, random numbers or other types, or have operations that torch-mlir does not know, are run by
    PyTorch: `kas.torch.explain()` says which, and why. Needs torch-mlir.
    """
    need("torch_mlir", "torch-mlir")
    from torch._dynamo.backends.common import aot_autograd

    if torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments):
        operations = sum(node.op.startswith("call_") for node in graph.graph.nodes)
        _graphs.append(CompiledGraph(operations, (), 0.0, "requires a network without gradients (torch.no_grad())"))
        run: Callable[..., Any] = graph.forward
        return run
    compiled: Callable[..., Any] = aot_autograd(fw_compiler=_compile_inference, inference_compiler=_compile_inference)(
        graph, arguments
    )
    return compiled
