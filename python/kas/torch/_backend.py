# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A backend of `torch.compile`: graphs are compiled by kas, or stay with PyTorch and say why."""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import fx, nn

from .._errors import need
from ._graph_batch import BATCHES, Batch, find_batch, get_batch_key, set_batch
from ._graph_device import find_device, move_to_host
from ._graph_flops import count_flops, warn_of_fallback
from ._graph_import import UnsupportedGraphError, make_key, trace
from ._graph_norms import fold_batch_norms
from ._graph_parts import replace_strided
from ._graph_program import BatchProgram, Compiled, compile_graph, compile_whole, find_function
from ._options import Options, read_options
from ._tracing import trace_alone

Boxed = Callable[[list[Any]], list[Any]]
"""Takes its arguments as one list, which it may empty."""


class CompiledGraph(NamedTuple):
    """The outcome of a graph that PyTorch gave to the backend."""

    operations: int
    """Of the graph, as PyTorch wrote it."""
    shapes: tuple[tuple[int, ...], ...]
    """Of its data: what is no parameter and no buffer."""
    seconds: float
    """That it took to compile."""
    reason: str | None
    """Why PyTorch runs all of it; None where kas runs it or parts of it."""
    kind: str = "inference"
    """`inference`, or of a training `forward` (which computes what the gradients need as well) and `backward`."""
    parts: int = 1
    """The functions that kas compiled; more than one where PyTorch runs something in between."""
    left: tuple[tuple[str, str], ...] = ()
    """Where kas runs parts: each operation that PyTorch runs, such as `aten.embedding.default`, and why."""
    batches: tuple[int, ...] = ()
    """Where it is compiled for batches of any size: the sizes of the parts that these are computed in."""
    flops: int = 0
    """Of the whole graph, where they were counted."""
    share: float = 1.0
    """Of these, what kas computes."""


_graphs: collections.deque[CompiledGraph] = collections.deque(maxlen=1000)


def explain() -> list[CompiledGraph]:
    """The last graphs that `torch.compile(..., backend="kas")` met, oldest first, and forgets them.

    A network is one graph for each part that PyTorch can trace, and one for each set of shapes that it is called with;
    in training two of them, forward and backward.
    """
    graphs = list(_graphs)
    _graphs.clear()
    return graphs


def _has_symbols(value: Any) -> bool:
    """Whether an argument differs between the calls of a graph in more than its elements."""
    if not isinstance(value, torch.Tensor):
        return True
    return any(isinstance(size, torch.SymInt) for size in (*value.shape, *value.stride()))


def _take_changes(graph: fx.GraphModule) -> list[int]:
    """Makes what a graph writes to its arguments at its end outputs, the last ones; the places of these arguments."""
    arguments = graph.graph.find_nodes(op="placeholder")
    copies = graph.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)
    copies = [copy for copy in copies if copy.args[0] in arguments and not copy.users]
    if not copies:
        return []
    output = graph.graph.output_node()
    values = output.args[0]
    assert isinstance(values, (list, tuple))
    output.args = ((*values, *(copy.args[1] for copy in copies)),)
    places = [arguments.index(copy.args[0]) for copy in copies]
    for copy in copies:
        graph.graph.erase_node(copy)
    graph.recompile()
    return places


class _Graph:
    """A graph that is compiled for each set of shapes that it is called with."""

    _boxed_call = True

    def __init__(self, graph: fx.GraphModule, kind: str, static: Sequence[int], options: Options):
        self.graph, self.kind, self.static, self.options = graph, kind, set(static), options
        self.operations = sum(node.op not in ("placeholder", "output", "get_attr") for node in graph.graph.nodes)
        replace_strided(graph)
        self.changed = _take_changes(graph)
        """The arguments that get the values of the last outputs."""
        self.programs: dict[Any, nn.Module | None] = {}
        # PyTorch guards the shapes and strides of what has no symbols.
        self.has_symbols = any(_has_symbols(node.meta.get("val")) for node in graph.graph.find_nodes(op="placeholder"))
        self.batch = find_batch(graph) if kind == "inference" and not self.changed else None
        """Of a graph for batches of any size."""

    def __call__(self, arguments: list[Any]) -> list[Any]:
        threads = self.options.threads or torch.get_num_threads()
        key: Any = threads
        if self.has_symbols:
            key = (threads, *((*a.shape, *a.stride()) if isinstance(a, torch.Tensor) else a for a in arguments))
        # Schedules for GPUs are chosen for one size: each batch has a program of its own there.
        is_on_host = not any(isinstance(a, torch.Tensor) and a.device.type == "cuda" for a in arguments)
        if self.batch and is_on_host and (any_batch := get_batch_key(threads, arguments, self.batch)):
            batch = self.batch
            if self._get_program(any_batch, lambda: self._compile_batches(arguments, batch, threads)):
                key = any_batch
        program = self._get_program(key, lambda: self._compile(arguments, threads))
        outputs: list[Any]
        if program is None:
            outputs = list(self.graph(*arguments))
        else:
            tensors = [a for a in arguments if isinstance(a, torch.Tensor)] if self.has_symbols else arguments
            with torch.no_grad():
                outputs = list(program(*tensors))
        if self.changed:
            with torch.no_grad():
                for place, value in zip(self.changed, outputs[-len(self.changed) :]):
                    arguments[place].copy_(value)
            del outputs[-len(self.changed) :]
        arguments.clear()
        return outputs

    def _get_program(self, key: Any, compile: Callable[[], nn.Module | None]) -> nn.Module | None:
        if key not in self.programs:
            with trace_alone():
                # Unless another thread was first.
                if key not in self.programs:
                    self.programs[key] = compile()
        return self.programs[key]

    def _compile(self, arguments: Sequence[Any], threads: int) -> nn.Module | None:
        start = time.perf_counter()
        places = [place for place, argument in enumerate(arguments) if isinstance(argument, torch.Tensor)]
        data = [place for place in places if place not in self.static]
        compiled = self._trace_and_compile(arguments, places, threads)
        left = tuple(compiled.left.items())
        shapes = tuple(tuple(arguments[place].shape) for place in data)
        seconds = time.perf_counter() - start
        _graphs.append(
            CompiledGraph(
                self.operations,
                shapes,
                seconds,
                compiled.reason,
                self.kind,
                compiled.parts,
                left,
                flops=compiled.flops,
                share=compiled.share,
            )
        )
        warn_of_fallback(compiled.flops, compiled.share, compiled.reason, compiled.left)
        if self.options.strict and (compiled.reason or left):
            reasons = [compiled.reason] if compiled.reason else [f"{name} {reason}" for name, reason in left]
            raise UnsupportedGraphError(f"strict=True requires a graph that kas compiles, got: {'; '.join(reasons)}")
        return compiled.program

    def _compile_batches(self, arguments: Sequence[Any], batch: Batch, threads: int) -> nn.Module | None:
        """A program for batches of any size, where samples are computed one by one; else None."""
        start = time.perf_counter()
        places = [place for place, argument in enumerate(arguments) if isinstance(argument, torch.Tensor)]
        static = self._find_tensors(places, self.static)
        batched = frozenset(self._find_tensors(places, batch.batched))
        options = self.options._replace(threads=threads)
        programs = {}
        graph = None
        try:
            for size in BATCHES:
                sized = set_batch(arguments, batch, size)
                key = make_key(self.graph, sized, self.kind, static, options, batched)
                if found := find_function(key, options):
                    programs[size], _ = found
                    continue
                graph = graph or self._fold(places) or self.graph
                traced = trace(graph, sized, with_gradients=False)
                programs[size] = compile_whole(traced, static, options, key, batched)
        except UnsupportedGraphError:
            return None
        shapes = tuple(tuple(arguments[place].shape) for place in places if place not in self.static)
        seconds = time.perf_counter() - start
        _graphs.append(CompiledGraph(self.operations, shapes, seconds, None, self.kind, 1, (), BATCHES))
        return BatchProgram(programs, batched)

    def _trace_and_compile(self, arguments: Sequence[Any], places: list[int], threads: int) -> Compiled:
        static = self._find_tensors(places, self.static)
        try:
            if device := find_device([arguments[place] for place in places]):
                return self._compile_on_device(arguments, places, device)
        except UnsupportedGraphError as error:
            return Compiled(None, 0, {}, str(error))
        options = self.options._replace(threads=threads)
        key = make_key(self.graph, arguments, self.kind, static, options)
        # Before anything is traced, which takes longer than all else.
        if found := find_function(key, options):
            return Compiled(found[0], 1, {}, None, found[1], 1.0)
        if folded := self._fold(places):
            with contextlib.suppress(UnsupportedGraphError):
                whole = trace(folded, arguments, False)
                return Compiled(compile_whole(whole, static, options, key), 1, {}, None, count_flops(whole), 1.0)
        try:
            traced = trace(self.graph, arguments, self.kind != "inference")
        except UnsupportedGraphError as error:
            return Compiled(None, 0, {}, str(error))
        return compile_graph(traced, static, options, key)

    def _compile_on_device(self, arguments: Sequence[Any], places: list[int], device: str) -> Compiled:
        """All of it or nothing: PyTorch runs no parts between those that kas compiles for a CUDA device."""
        if self.kind != "inference":
            raise UnsupportedGraphError(
                f"requires a graph that infers on '{device}', got the {self.kind} of a training"
            )
        graph, hosts = move_to_host(self.graph, arguments)
        traced = trace(self._fold(places, graph) or graph, hosts, with_gradients=False)
        static = self._find_tensors(places, self.static)
        program = compile_whole(traced, static, self.options, None, device=device)
        return Compiled(program, 1, {}, None, count_flops(traced), 1.0)

    def _fold(self, places: Collection[int], graph: fx.GraphModule | None = None) -> fx.GraphModule | None:
        """The graph without its batch norms, where weights are packed ahead; None where it is the same."""
        if self.kind != "inference" or sum(place not in self.static for place in places) != 1:
            return None
        return fold_batch_norms(graph or self.graph, self.static)

    @staticmethod
    def _find_tensors(places: list[int], wanted: Collection[int]) -> set[int]:
        """Of arguments, their numbers among the tensors at `places`."""
        return {number for number, place in enumerate(places) if place in wanted}


def _get_static() -> Sequence[int]:
    """The arguments of the graph at hand that are parameters and buffers."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    return metadata.static_input_indices if metadata else ()


def _compile_inference(graph: fx.GraphModule, _: Sequence[Any], options: Options) -> Boxed:
    return _Graph(graph, "inference", _get_static(), options)


def _compile_forward(graph: fx.GraphModule, _: Sequence[Any], options: Options) -> Boxed:
    # Parameters change with each step: nothing is packed ahead.
    return _Graph(graph, "forward", (), options)


def _compile_backward(graph: fx.GraphModule, _: Sequence[Any], options: Options) -> Boxed:
    compiled = _Graph(graph, "backward", (), options)

    # A function: PyTorch wraps it and keeps the attributes of functions alone.
    def run(arguments: list[Any]) -> list[Any]:
        return compiled(arguments)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def backend(
    graph: fx.GraphModule,
    arguments: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles a graph: `torch.compile(network, backend="kas")`, or `backend=kas.torch.backend`.

    Networks on tensors of the CPU are compiled for each set of shapes and for `torch.get_num_threads()`
    threads, those that infer (`torch.no_grad()`) with weights that are packed once, and again when they have changed;
    those that train with their gradients. With a second batch size, a network that infers is compiled for all, where it
    computes samples one by one. Elements are floats of 16, 32 and 64 bits, flags, and integers but uint64; operations
    on halves are computed in float32 and rounded one by one, as PyTorch's are. Operations that torch-mlir does not
    know, on other types, or with random numbers are run by PyTorch between parts that are compiled:
    `kas.torch.explain()` says which, and why, and so does a `RuntimeWarning` where these are more than a tenth of the
    FLOPs of a graph that has a million. Needs torch-mlir.

    Networks on tensors of one CUDA device that infer are compiled for it as a whole, for each set of shapes; calls take
    tensors where they are, in `torch.cuda.current_stream()` (never tried on a GPU).

    `torch.compile(..., mode=...)`: `reduce-overhead` writes results to the memory of earlier ones that nothing refers
    to any more; `max-autotune` measures variants of each function, too, and keeps the fastest.
    `torch.compile(..., options={...})` takes `threads` (0: `torch.get_num_threads()`), `precision` (`f32` or `bf16`,
    of the factors of products; on CUDA devices also `tf32` and `f16`), `libraries` (there, `none`: without cuBLASLt and
    cuDNN), `algorithm` (of convolutions: `auto`, `direct`, `im2col`, `spatial-pack` or `winograd`), `bind_calls`,
    `tuning_seconds` (for each function; 60 with `max-autotune`), and `strict`, with which it is an error where PyTorch
    would run something. `dynamic=False` compiles for each shape alone; `fullgraph=True` is PyTorch's: an error where it
    cannot trace the network as one graph.
    """
    chosen = read_options(mode, options)
    need("torch_mlir", "torch-mlir")
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    compiled: Callable[..., Any] = aot_autograd(
        fw_compiler=partial(_compile_forward, options=chosen),
        bw_compiler=partial(_compile_backward, options=chosen),
        inference_compiler=partial(_compile_inference, options=chosen),
        partition_fn=min_cut_rematerialization_partition,
        # What a graph changes among its arguments, such as statistics of norms, it may also keep for the backward pass.
        keep_inference_input_mutations=True,
    )(graph, arguments)
    return compiled
