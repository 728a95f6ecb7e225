# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of PyTorch on tensors of fixed shapes as programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import getitem
from typing import Any, NamedTuple

import torch
from torch import fx, nn

from .. import _kas
from .._arguments import set_attributes
from .._errors import Error
from .._module import Module
from ._graph_device import DeviceProgram
from ._graph_flops import count_flops
from ._graph_import import UnsupportedGraphError, import_graph, make_key
from ._graph_parts import (
    check_integers,
    check_meaning,
    check_random,
    check_tensors,
    find_blocked,
    find_calls,
    get_targets,
    split,
)
from ._layouts import lay_out_arguments
from ._options import Options
from ._packed_weights import PackedWeights, enter
from ._results import Results
from ._tuning import choose_pipeline, list_pipelines
from ._views import Views, find_bases, make_views


class _Result(NamedTuple):
    """What one output of a graph is."""

    result: int | None
    """The number of the result of the compiled function."""
    argument: int | None
    """The argument that is passed on."""
    constant: Any
    """What it is where it does not depend on the arguments."""
    views: Views = ()
    """Of the result or the argument, whose memory the output shares as PyTorch's does."""

    def choose(self, results: Sequence[torch.Tensor], arguments: Sequence[torch.Tensor]) -> Any:
        """The output of a call."""
        if self.result is not None:
            return make_views(results[self.result], self.views)
        if self.argument is not None:
            return make_views(arguments[self.argument], self.views)
        return self.constant.clone() if isinstance(self.constant, torch.Tensor) else self.constant


def _to_json(constant: Any) -> Any:
    """A constant among the outputs of a graph: None, a number, or a tensor."""
    if not isinstance(constant, torch.Tensor):
        return constant
    content = constant.contiguous().reshape(-1).view(torch.uint8).tolist()
    return {"content": content, "type": _get_name(constant.dtype), "shape": list(constant.shape)}


def _from_json(constant: Any) -> Any:
    if not isinstance(constant, dict):
        return constant
    content = torch.tensor(constant["content"], dtype=torch.uint8)
    return content.view(getattr(torch, constant["type"])).reshape(constant["shape"])


def _get_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class _Plan(NamedTuple):
    """What a program takes and gives: all that calls need to know of its graph."""

    order: list[int]
    """The arguments of the graph, in the order of the program: what has samples, other data, weights."""
    num_data: int
    """Those that are no weights."""
    is_single: bool
    """Whether the graph has one output that is no tuple."""
    outputs: list[_Result]
    results: list[tuple[tuple[int, ...], torch.dtype]]
    """Shapes and types, as the program gives them."""
    strides: list[tuple[int, ...] | None]
    """Of results whose layout is another."""
    flops: int
    """Of the graph."""

    @property
    def is_packed(self) -> bool:
        """The pipeline takes the first argument for data."""
        return 0 < self.num_data < len(self.order)

    def write(self) -> str:
        """As text, for the cache."""
        outputs = [(o.result, o.argument, _to_json(o.constant), o.views) for o in self.outputs]
        results = [(shape, _get_name(dtype)) for shape, dtype in self.results]
        return json.dumps([self.order, self.num_data, self.is_single, outputs, results, self.strides, self.flops])

    @staticmethod
    def read(text: str) -> _Plan:
        order, num_data, is_single, outputs, results, strides, flops = json.loads(text)
        return _Plan(
            order,
            num_data,
            is_single,
            [_Result(result, argument, _from_json(constant), views) for result, argument, constant, views in outputs],
            [(tuple(shape), getattr(torch, dtype)) for shape, dtype in results],
            [None if entry is None else tuple(entry) for entry in strides],
            flops,
        )


def _read_outputs(graph: fx.GraphModule) -> tuple[bool, list[Any]]:
    """Whether the graph has one output that is no tuple, and the outputs, with tensors for what is known."""
    found = graph.graph.output_node().args[0]
    values: Sequence[Any] = (found,) if isinstance(found, fx.Node) else found  # type: ignore[assignment]
    return isinstance(found, fx.Node), [
        getattr(graph, str(v.target)) if isinstance(v, fx.Node) and v.op == "get_attr" else v for v in values
    ]


def _find_results(
    values: Sequence[Any], arguments: list[fx.Node], is_batched: bool
) -> tuple[list[fx.Node], list[_Result]]:
    """What is to be computed for these outputs, and what each of them is.

    Results of batches that come in parts share no memory with each other; UnsupportedGraphError where they have to
    with an argument.
    """
    nodes = [value for value in values if isinstance(value, fx.Node)]
    bases = dict(zip(nodes, find_bases(nodes)))
    if is_batched:
        if any(views and base.op == "placeholder" for base, views in bases.values()):
            raise UnsupportedGraphError("requires results of their own for batches of any size, got views of arguments")
        bases = {node: (node, ()) for node in nodes}
    computed = list(dict.fromkeys(base for base, _ in bases.values() if base.op != "placeholder"))
    results = []
    for value in values:
        if not isinstance(value, fx.Node):
            results.append(_Result(None, None, value))
            continue
        base, views = bases[value]
        is_argument = base.op == "placeholder"
        place = (arguments if is_argument else computed).index(base)
        results.append(_Result(None if is_argument else place, place if is_argument else None, None, views))
    return computed, results


def _get_strides(result: torch.Tensor) -> tuple[int, ...] | None:
    """Of a result whose layout, such as channels last, is not that of rows."""
    strides = tuple(result.stride())
    order = sorted(range(result.dim()), key=lambda dim: -strides[dim])
    is_dense = result.permute(order).is_contiguous()
    return strides if is_dense and not result.is_contiguous() else None


def _replace_flags(graph: fx.GraphModule, arguments: Sequence[fx.Node], computed: list[fx.Node]) -> None:
    """Lets flags enter and leave as the bytes that they are, 0 and 1."""
    for node in arguments:
        value = node.meta["val"]
        if value.dtype != torch.bool:
            continue
        with graph.graph.inserting_after(node):
            flag = graph.graph.call_function(torch.ops.aten.ne.Scalar, (node, 0))
        flag.meta["val"] = value
        for user in [user for user in node.users if user is not flag]:
            user.replace_input_with(node, flag)
        node.meta = {"val": value.to(torch.int8)}
    for place, node in enumerate(computed):
        value = node.meta["val"]
        if value.dtype != torch.bool:
            continue
        with graph.graph.inserting_after(node):
            number = graph.graph.call_function(torch.ops.aten._to_copy.default, (node,), {"dtype": torch.int8})
        number.meta["val"] = value.to(torch.int8)
        computed[place] = number


def _mark_data(module: Module, num_data: int, num_arguments: int) -> Module:
    """The module, of whose arguments so many are no weights."""
    if num_data < 2:
        return module
    marks: list[dict[str, Any]] = [{"kas.data": None} if 0 < place < num_data else {} for place in range(num_arguments)]
    return Module(set_attributes(str(module), marks), "<network>")


def _reorder(graph: fx.GraphModule, arguments: Sequence[fx.Node], order: Sequence[int]) -> None:
    """Puts the arguments of the graph in this order."""
    first = next(iter(graph.graph.nodes))
    for place in reversed(order):
        if arguments[place] is not first:
            first.prepend(arguments[place])
            first = arguments[place]


class _Function(nn.Module):
    """The program of a graph that is compiled as a whole."""

    def __init__(self, plan: _Plan, program: Any, options: Options):
        super().__init__()
        self.plan, self.program = plan, program
        shapes, types = [shape for shape, _ in plan.results], [dtype for _, dtype in plan.results]
        self.results = Results(shapes, types, options.bind_calls)
        num_packed = program.get_num_prepacked_elements("forward") if plan.is_packed else 0
        self.weights = PackedWeights(program, num_packed) if num_packed else None

    def forward(self, *arguments: torch.Tensor) -> Any:
        num_data = self.plan.num_data
        originals = [arguments[place] for place in self.plan.order]
        results = self.results.make()
        tensors = [enter(original) for original in (originals[:num_data] if self.weights else originals)]
        addresses = [tensor.data_ptr() for tensor in (*tensors, *results)]
        if self.weights:
            *weights, packed = self.weights.get_addresses(originals[num_data:])
            addresses[num_data:num_data] = weights
            addresses.append(packed)
        self.program.call_at("forward", addresses)
        for number, strides in enumerate(self.plan.strides):
            if strides is not None:
                rows = results[number]
                results[number] = torch.empty_strided(rows.shape, strides, dtype=rows.dtype).copy_(rows)
        values = [output.choose(results, arguments) for output in self.plan.outputs]
        return values[0] if self.plan.is_single else values


def find_function(key: str | None, options: Options) -> tuple[nn.Module, int] | None:
    """The program that was kept under a key, and the FLOPs of its graph."""
    found = _kas.find_program(key) if key else None
    if found is None:
        return None
    program, text = found
    plan = _Plan.read(text)
    return _Function(plan, program, options), plan.flops


class _Source:
    """A graph that is to be compiled as a whole. Changes the graph.

    `static` are the places of the weights. With `batched`, the places of what has samples, only a graph that computes
    these one by one, so that a batch may come in parts. The program is kept under the `key`, if there is one. `device`:
    a CUDA device in place of the CPU.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        static: set[int],
        options: Options,
        key: str | None,
        batched: frozenset[int] = frozenset(),
        device: str | None = None,
    ):
        self.options, self.key, self.device = options, key, device
        arguments = graph.graph.find_nodes(op="placeholder")
        output = graph.graph.output_node()
        is_single, values = _read_outputs(graph)
        computed, outputs = _find_results(values, arguments, bool(batched))
        if not computed:
            raise UnsupportedGraphError("requires a result that is computed, got none")
        for node in (*arguments, *computed):
            if reason := check_tensors(node.meta["val"]):
                raise UnsupportedGraphError(reason)
        results = [node.meta["val"] for node in computed]
        places = range(len(arguments))
        self.plan = _Plan(
            sorted(places, key=lambda place: (place in static, place not in batched)),
            sum(place not in static for place in places),
            is_single,
            outputs,
            [(tuple(result.shape), result.dtype) for result in results],
            [_get_strides(result) for result in results],
            count_flops(graph),
        )
        _replace_flags(graph, arguments, computed)
        output.args = (tuple(computed),)
        graph.graph.eliminate_dead_code()
        _reorder(graph, arguments, self.plan.order)
        graph.recompile()
        self.pipelines = list_pipelines(options, self.plan.is_packed, len(batched))
        self.module = _mark_data(import_graph(graph), self.plan.num_data, len(arguments))
        values = [arguments[place].meta["val"] for place in self.plan.order]
        self.tensors = [(tuple(value.shape), value.dtype) for value in (*values, *results)]
        """Shapes and types of what enters and leaves, as functions take it."""

    def compile(self) -> nn.Module:
        if self.device:
            return DeviceProgram(self.plan, self.module, self.device, self.options)
        try:
            module = choose_pipeline(
                self.module, self.pipelines, self.tensors, self.plan.num_data, self.options.tuning_seconds
            )
            program: Any = module._handle.load(2, self.key, self.plan.write() if self.key else "")
        except (Error, ValueError) as error:
            raise UnsupportedGraphError(" ".join(str(error).split())) from error
        return _Function(self.plan, program, self.options)


class _Known(nn.Module):
    """A graph that computes nothing: its results are known, or share the memory of its arguments."""

    def __init__(self, is_single: bool, outputs: Sequence[_Result]):
        super().__init__()
        self.is_single, self.outputs = is_single, outputs

    def forward(self, *arguments: torch.Tensor) -> Any:
        values = [output.choose((), arguments) for output in self.outputs]
        return values[0] if self.is_single else values


class Compiled(NamedTuple):
    """The outcome of a graph."""

    program: nn.Module | None
    """Takes the tensors of the graph and gives what the graph gives; None where nothing was compiled."""
    parts: int
    """That were compiled."""
    left: dict[str, str]
    """The operations that PyTorch runs between parts, such as `aten.i0.default`, with the reason."""
    reason: str | None = None
    """Why nothing was compiled."""
    flops: int = 0
    """Of the whole graph."""
    share: float = 0.0
    """Of these, what is compiled."""


def _copy(graph: fx.GraphModule) -> fx.GraphModule:
    copy = fx.Graph()
    copy.output(copy.graph_copy(graph.graph, {}))
    return fx.GraphModule(graph, copy)


class _Parts:
    """A graph between whose compiled parts PyTorch runs what is left."""

    def __init__(self, graph: fx.GraphModule, static: set[int], options: Options, reasons: Mapping[str, str]):
        self.original, self.graph, self.options = graph, _copy(graph), options
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
        lay_out_arguments(self.graph, blocked)
        for call in split(self.graph, blocked):
            self.calls.append((str(call.target), {place for place, node in enumerate(call.args) if node in weights}))
        for target in get_targets(self.graph):
            self.left.setdefault(target, "is alone between operations that PyTorch runs")

    def import_parts(self) -> tuple[dict[str, _Source | nn.Module], dict[str, str]]:
        """The parts that can be imported, or are known, and the operations that cannot, unless they are not known."""
        functions: dict[str, _Source | nn.Module] = {}
        for name, static in self.calls:
            part = self.graph.get_submodule(name)
            assert isinstance(part, fx.GraphModule)
            tensors = [node.meta["val"] for node in part.graph.find_nodes(op="placeholder")]
            key = make_key(part, tensors, "part", static, self.options)
            if found := find_function(key, self.options):
                functions[name] = found[0]
                continue
            try:
                functions[name] = _Source(_copy(part), static, self.options, key)
            except UnsupportedGraphError as error:
                if any(find_calls(part, error.operations)):
                    return {}, dict.fromkeys(error.operations, str(error))
                self._leave(name, str(error))
        return functions, {}

    def compile(self, functions: Mapping[str, _Source | nn.Module]) -> Compiled:
        parts, flops = 0, 0
        total = count_flops(self.original)
        for name, function in functions.items():
            part = self.graph.get_submodule(name)
            assert isinstance(part, fx.GraphModule)
            try:
                compiled = function.compile() if isinstance(function, _Source) else function
            except UnsupportedGraphError as error:
                self._leave(name, str(error))
            else:
                self.graph.set_submodule(name, compiled)
                parts += 1
                flops += count_flops(part)
        program = self.graph if parts else None
        return Compiled(program, parts, self.left, None, total, flops / total if total else 1.0)

    def _leave(self, name: str, reason: str) -> None:
        self.failures.append(reason)
        part = self.graph.get_submodule(name)
        assert isinstance(part, fx.GraphModule)
        self.left.update(dict.fromkeys(get_targets(part), reason))


class BatchProgram(nn.Module):
    """A graph for batches of any size: parts of them are computed by programs for a few sizes."""

    def __init__(self, programs: Mapping[int, nn.Module], batched: frozenset[int]):
        """The programs, by size, compute samples one by one; `batched` are the places of what has samples."""
        super().__init__()
        self.programs = dict(sorted(programs.items(), reverse=True))
        self.batched = batched

    def forward(self, *arguments: torch.Tensor) -> list[torch.Tensor]:
        """For at least as many samples as the smallest size."""
        total = arguments[min(self.batched)].shape[0]
        results: list[list[torch.Tensor]] = []
        begin = 0
        while begin < total:
            size = next((size for size in self.programs if total - begin >= size), min(self.programs))
            # The last part has some samples of the one before again, as there is no program for what remains.
            first = min(begin, total - size)
            part = [a[first : first + size] if place in self.batched else a for place, a in enumerate(arguments)]
            results.append([result[begin - first :] for result in self.programs[size](*part)])
            begin = first + size
        return [torch.cat(parts) for parts in zip(*results)]


def compile_whole(
    graph: fx.GraphModule,
    static: set[int],
    options: Options,
    key: str | None,
    batched: frozenset[int] = frozenset(),
    device: str | None = None,
) -> nn.Module:
    """The program of a traced graph, without parts that PyTorch runs, which is kept under a key.

    `static` are the places of weights, `batched` of what has samples; `device` is a CUDA device in place of the CPU.
    UnsupportedGraphError where there is no program, and with `batched` also where it mixes samples.
    """
    is_single, values = _read_outputs(graph)
    computed, outputs = _find_results(values, graph.graph.find_nodes(op="placeholder"), bool(batched))
    if not computed and not batched and any(output.views or output.constant is not None for output in outputs):
        if device:
            raise UnsupportedGraphError("requires a result that is computed, got none")
        return _Known(is_single, outputs)
    check_random(graph)
    check_integers(graph)
    check_meaning(graph)
    return _Source(_copy(graph), static, options, key, batched, device).compile()


def compile_graph(graph: fx.GraphModule, static: set[int], options: Options, key: str | None) -> Compiled:
    """Compiles a traced graph, or the parts of it between operations that cannot be compiled.

    `static` are the places of the arguments that are weights; a program of all of it is kept under the key.
    """
    reasons: dict[str, str] = {}
    try:
        return Compiled(compile_whole(graph, static, options, key), 1, {}, None, count_flops(graph), 1.0)
    except UnsupportedGraphError as error:
        whole = str(error)
        reasons.update(dict.fromkeys(error.operations, whole))
    while True:
        parts = _Parts(graph, static, options, reasons)
        functions, unknown = parts.import_parts()
        if not unknown.keys() - reasons.keys():
            break
        reasons.update(unknown)
    compiled = parts.compile(functions)
    if compiled.parts:
        return compiled
    # Of the parts, where there were some: why none of them is compiled.
    return Compiled(None, 0, {}, "; ".join(dict.fromkeys([whole, *parts.failures])), count_flops(graph))
