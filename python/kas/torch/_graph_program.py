# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of PyTorch on tensors of fixed shapes as programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import getitem
from typing import Any, NamedTuple

import torch
from torch import fx, nn

from .. import _cache
from .._errors import Error
from .._module import Module
from ._graph_import import UnsupportedGraphError, describe, import_graph
from ._graph_parts import check_random, check_tensors, find_blocked, find_calls, get_targets, split


class _Result(NamedTuple):
    """What one output of a graph is."""

    result: int | None
    """The number of the result of the compiled function."""
    argument: int | None
    """The argument that is passed on."""
    constant: Any
    """What it is if it is no tensor."""


def _get_strides(result: torch.Tensor) -> tuple[int, ...] | None:
    """Of a result whose layout, such as channels last, is not that of rows."""
    strides = tuple(result.stride())
    order = sorted(range(result.dim()), key=lambda dim: -strides[dim])
    is_dense = result.permute(order).is_contiguous()
    return strides if is_dense and not result.is_contiguous() else None


def _replace_flags(graph: fx.GraphModule, arguments: Sequence[fx.Node], computed: list[fx.Node]) -> None:
    """Lets flags enter and leave as numbers, 0 and 1."""
    for node in arguments:
        value = node.meta["val"]
        if value.dtype != torch.bool:
            continue
        with graph.graph.inserting_after(node):
            flag = graph.graph.call_function(torch.ops.aten.ne.Scalar, (node, 0))
        flag.meta["val"] = value
        for user in [user for user in node.users if user is not flag]:
            user.replace_input_with(node, flag)
        node.meta = {"val": value.to(torch.float32)}
    for place, node in enumerate(computed):
        value = node.meta["val"]
        if value.dtype != torch.bool:
            continue
        with graph.graph.inserting_after(node):
            number = graph.graph.call_function(torch.ops.aten._to_copy.default, (node,), {"dtype": torch.float32})
        number.meta["val"] = value.to(torch.float32)
        computed[place] = number


def _reorder(graph: fx.GraphModule, arguments: Sequence[fx.Node], order: Sequence[int]) -> None:
    """Puts the arguments of the graph in this order."""
    first = next(iter(graph.graph.nodes))
    for place in reversed(order):
        if arguments[place] is not first:
            first.prepend(arguments[place])
            first = arguments[place]


class _Function(nn.Module):
    """A graph that is compiled as a whole. Changes the graph.

    `sample_wise`: only if it computes the samples of a batch one by one, so that a batch may come in parts.
    """

    def __init__(self, graph: fx.GraphModule, static: set[int], threads: int, sample_wise: bool = False):
        super().__init__()
        arguments = graph.graph.find_nodes(op="placeholder")
        output = graph.graph.output_node()
        is_single = isinstance(output.args[0], fx.Node)
        values: Sequence[Any] = (output.args[0],) if is_single else output.args[0]  # type: ignore[assignment]
        computed = list(dict.fromkeys(v for v in values if isinstance(v, fx.Node) and v.op != "placeholder"))
        if not computed:
            raise UnsupportedGraphError("requires a result that is computed, got none")
        for node in (*arguments, *computed):
            if reason := check_tensors(node.meta["val"]):
                raise UnsupportedGraphError(reason)
        self.is_single = is_single
        self.outputs = [
            _Result(
                computed.index(value) if isinstance(value, fx.Node) and value.op != "placeholder" else None,
                arguments.index(value) if isinstance(value, fx.Node) and value.op == "placeholder" else None,
                None if isinstance(value, fx.Node) else value,
            )
            for value in values
        ]
        results = [node.meta["val"] for node in computed]
        self.shapes = [tuple(result.shape) for result in results]
        self.strides = [_get_strides(result) for result in results]
        self.flags = [number for number, result in enumerate(results) if result.dtype == torch.bool]
        data = [place for place in range(len(arguments)) if place not in static]
        self.order = [*data, *(place for place in range(len(arguments)) if place in static)]
        _replace_flags(graph, arguments, computed)
        output.args = (tuple(computed),)
        _reorder(graph, arguments, self.order)
        graph.recompile()
        # Weights are packed ahead where all but the first argument are weights.
        self.is_packed = len(data) == 1
        text = describe(graph)
        self.pipeline = f"kas-cpu-pipeline{{threads={threads} prepare-weights={str(self.is_packed).lower()}}}"
        if sample_wise:
            self.pipeline = f"kas-check-samples{{data={len(data)}}},{self.pipeline}"
        self.key = text and _cache.make_key(torch.__version__, self.pipeline, text)
        self.wall_clock = threads != 1
        cached = _cache.load(self.key) if self.key else None
        self.is_cached = cached is not None
        self.module = import_graph(graph) if cached is None else Module(cached, "<cache>")

    def compile(self) -> None:
        try:
            if not self.is_cached:
                self.module.run(self.pipeline)
            folder = _cache.get_folder(self.key) if self.key else None
            self.program: Any = self.module._handle.load(2, str(folder) if folder else None)
        except (Error, ValueError) as error:
            raise UnsupportedGraphError(" ".join(str(error).split())) from error
        if self.key and not self.is_cached:
            _cache.store(self.key, str(self.module))
        del self.module
        self.num_packed = self.program.get_num_prepared_elements("forward") if self.is_packed else 0
        self.versions: list[tuple[int, int]] | None = None
        self.packed: torch.Tensor | None = None

    def _pack(self, weights: list[torch.Tensor]) -> torch.Tensor:
        """Packs the weights, unless they are those of the last call, unchanged."""
        versions = [(weight.data_ptr(), weight._version) for weight in weights]
        if self.packed is not None and versions == self.versions:
            return self.packed
        memory = torch.zeros(self.num_packed + 16)
        start = -(memory.data_ptr() // 4) % 16
        self.packed = memory[start : start + self.num_packed]
        self.program.call("forward_prepare", [*weights, self.packed], 1, False)
        self.versions = versions
        return self.packed

    def forward(self, *arguments: torch.Tensor) -> Any:
        tensors = [arguments[place].detach().to(torch.float32).contiguous() for place in self.order]
        results = [torch.empty(shape) for shape in self.shapes]
        packed = []
        if self.num_packed:
            packed = [self._pack(tensors[1:])]
        self.program.call("forward", [*tensors, *results, *packed], 1, self.wall_clock)
        for number, strides in enumerate(self.strides):
            if strides is not None:
                results[number] = torch.empty_strided(self.shapes[number], strides).copy_(results[number])
        for number in self.flags:
            results[number] = results[number].to(torch.bool)
        values = [
            results[output.result]
            if output.result is not None
            else arguments[output.argument]
            if output.argument is not None
            else output.constant
            for output in self.outputs
        ]
        return values[0] if self.is_single else values


class Compiled(NamedTuple):
    """What became of a graph."""

    program: nn.Module | None
    """Takes the tensors of the graph and gives what the graph gives; None where nothing was compiled."""
    parts: int
    """That were compiled."""
    left: dict[str, str]
    """The operations that PyTorch runs, such as `aten.i0.default`, with the reason; without a program all."""


def _copy(graph: fx.GraphModule) -> fx.GraphModule:
    copy = fx.Graph()
    copy.output(copy.graph_copy(graph.graph, {}))
    return fx.GraphModule(graph, copy)


class _Parts:
    """A graph between whose compiled parts PyTorch runs what is left."""

    def __init__(self, graph: fx.GraphModule, static: set[int], threads: int, reasons: Mapping[str, str]):
        self.graph, self.threads = _copy(graph), threads
        arguments = self.graph.graph.find_nodes(op="placeholder")
        weights = {arguments[place] for place in static}
        blocked = find_blocked(self.graph)
        for name, reason in reasons.items():
            blocked.update(dict.fromkeys(find_calls(self.graph, [name]), reason))
        self.left = {str(node.target): reason for node, reason in blocked.items() if node.target is not getitem}
        self.failures: list[str] = []
        self.calls: list[tuple[str, set[int]]] = []
        """Name of each part, and which of its arguments are weights."""
        if not blocked:
            return
        for call in split(self.graph, blocked):
            self.calls.append((str(call.target), {place for place, node in enumerate(call.args) if node in weights}))
        for target in get_targets(self.graph):
            self.left.setdefault(target, "is alone between operations that PyTorch runs")

    def import_parts(self) -> tuple[dict[str, _Function], dict[str, str]]:
        """The parts that can be imported, and the operations that cannot, unless they are not known."""
        functions: dict[str, _Function] = {}
        for name, static in self.calls:
            part = self.graph.get_submodule(name)
            assert isinstance(part, fx.GraphModule)
            try:
                functions[name] = _Function(_copy(part), static, self.threads)
            except UnsupportedGraphError as error:
                if any(find_calls(part, error.operations)):
                    return {}, dict.fromkeys(error.operations, str(error))
                self._leave(name, str(error))
        return functions, {}

    def compile(self, functions: Mapping[str, _Function]) -> Compiled:
        parts = 0
        for name, function in functions.items():
            try:
                function.compile()
            except UnsupportedGraphError as error:
                self._leave(name, str(error))
            else:
                self.graph.set_submodule(name, function)
                parts += 1
        return Compiled(self.graph if parts else None, parts, self.left)

    def _leave(self, name: str, reason: str) -> None:
        self.failures.append(reason)
        part = self.graph.get_submodule(name)
        assert isinstance(part, fx.GraphModule)
        self.left.update(dict.fromkeys(get_targets(part), reason))


class BatchProgram(nn.Module):
    """A graph for batches of any size: parts of it are computed by programs for a few sizes."""

    def __init__(self, programs: Mapping[int, nn.Module], shared: set[int]):
        """`programs` by size, 1 among them, compute samples one by one; `shared` are the places of what all share."""
        super().__init__()
        self.programs = dict(sorted(programs.items(), reverse=True))
        self.shared = shared

    def forward(self, *arguments: torch.Tensor) -> Any:
        total = next(a.shape[0] for place, a in enumerate(arguments) if place not in self.shared)
        results: list[list[Any]] = []
        begin = 0
        for size, program in self.programs.items():
            while total - begin >= size:
                part = [a if place in self.shared else a[begin : begin + size] for place, a in enumerate(arguments)]
                results.append(list(program(*part)))
                begin += size
        return [torch.cat(parts) if isinstance(parts[0], torch.Tensor) else parts[0] for parts in zip(*results)]


def compile_whole(graph: fx.GraphModule, static: set[int], threads: int, sample_wise: bool = False) -> nn.Module:
    """The program of a traced graph, without parts that PyTorch runs.

    UnsupportedGraphError where there is none; with `sample_wise` also where it mixes the samples of a batch.
    """
    check_random(graph)
    function = _Function(_copy(graph), static, threads, sample_wise)
    function.compile()
    return function


def compile_graph(graph: fx.GraphModule, static: set[int], threads: int) -> Compiled:
    """Compiles a traced graph, or the parts of it between operations that cannot be compiled.

    `static` are the places of the arguments that are weights.
    """
    reasons: dict[str, str] = {}
    try:
        return Compiled(compile_whole(graph, static, threads), 1, {})
    except UnsupportedGraphError as error:
        whole = str(error)
        reasons.update(dict.fromkeys(error.operations, whole))
    while True:
        parts = _Parts(graph, static, threads, reasons)
        functions, unknown = parts.import_parts()
        if not unknown.keys() - reasons.keys():
            break
        reasons.update(unknown)
    compiled = parts.compile(functions)
    if compiled.parts:
        return compiled
    # Of the parts, where there were some: why none of them is compiled.
    return Compiled(None, 0, {"": "; ".join(dict.fromkeys([whole, *parts.failures]))})
