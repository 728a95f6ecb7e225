# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which parts of a graph kas can compile: those between operations that stay with PyTorch."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from ._element_types import is_random
from ._graph_import import UnsupportedGraphError

_SAMPLES = 1000003
"""Any number of samples; a prime, so that no other sizes make it."""
_TYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint32, torch.uint16, torch.uint8, torch.bool),
)
"""Of tensors that may enter and leave a part."""


_aten = torch.ops.aten
_INDEXED = (_aten.index.Tensor, _aten.index_select.default, _aten.index_put.default)
_DIVISIONS = (_aten.remainder, _aten.fmod, _aten.div, _aten.floor_divide)


def get_tensors(value: Any) -> Iterable[torch.Tensor]:
    """The tensors of what a node computes: one, or a tuple of them."""
    for entry in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(entry, torch.Tensor):
            yield entry


def check_tensors(value: Any) -> str | None:
    """Why tensors cannot enter or leave what is compiled; None where they can."""
    for tensor in get_tensors(value):
        if tensor.dtype not in _TYPES or tensor.device.type != "cpu":
            types = ", ".join(str(dtype).removeprefix("torch.") for dtype in _TYPES)
            return f"requires tensors of {types} on the CPU, got {tensor.dtype} on '{tensor.device}'"
    return None


def _is_integer(value: Any) -> bool:
    """Whether it is a tensor of integers, flags aside."""
    return isinstance(value, torch.Tensor) and value.dtype in _TYPES[4:-1]


def check_random(graph: fx.GraphModule) -> None:
    """UnsupportedGraphError where the graph draws random numbers."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and is_random(node.target, node.args):
            raise UnsupportedGraphError(f"requires a network without random numbers, got {node.target}")


def _find_unchecked(graph: fx.GraphModule) -> dict[fx.Node, str]:
    """Where integers that follow from arguments may have values that compiled code does not take, with the reason.

    They are places outside of a tensor, and zeros that something is divided by. Embeddings and `gather` check theirs.
    """
    found: dict[fx.Node, str] = {}
    given: set[fx.Node] = set()
    known: set[fx.Node] = set()
    """What does not follow from arguments, such as the places of an interpolation."""
    for node in graph.graph.nodes:
        value = node.meta.get("val")
        is_integer = _is_integer(value)
        used = given.intersection(node.all_input_nodes)
        if node.op != "placeholder" and known.issuperset(node.all_input_nodes):
            known.add(node)
        # What floats are rounded to may be any integer, too.
        if is_integer and node not in known:
            given.add(node)
        if node.op != "call_function" or not used:
            continue
        divides = is_integer and getattr(node.target, "overloadpacket", None) in _DIVISIONS
        # The least integer by -1 is not one.
        is_safe = not divides or (isinstance(node.args[1], int) and node.args[1] not in (0, -1))
        if node.target in _INDEXED or not is_safe:
            found[node] = f"requires checks of integers that kas does not make, got {node.target}"
    return found


def check_integers(graph: fx.GraphModule) -> None:
    """UnsupportedGraphError where integers may have values that compiled code does not take."""
    for reason in _find_unchecked(graph).values():
        raise UnsupportedGraphError(reason)


_LEFT = {
    _aten._cdist_forward: "PyTorch loses some NaN where it looks for the largest distance",
    _aten._linalg_det: "torch-mlir permutes no rows",
    _aten._embedding_bag: "torch-mlir ignores the weights of samples",
    _aten._embedding_bag_forward_only: "torch-mlir ignores the weights of samples",
    **dict.fromkeys((_aten.adaptive_max_pool2d, _aten.adaptive_max_pool3d), "torch-mlir loses NaN"),
    _aten.grid_sampler_2d: "requires interpolation between pixels",
    _aten.fmod: "torch-mlir rounds quotients",
    **dict.fromkeys(
        (
            _aten.embedding_dense_backward,
            _aten.index_put,
            _aten.max_pool2d_with_indices_backward,
            _aten.max_pool3d_with_indices_backward,
            _aten.scatter,
            _aten.scatter_add,
            _aten.scatter_reduce,
            _aten.index_reduce,
            _aten.put,
            _aten.repeat_interleave,
        ),
        "requires checks of integers that kas does not make",
    ),
}
"""Operations that torch-mlir lowers with another meaning, with the reason why they are left to PyTorch."""
_POOLED = (_aten.max_pool2d_with_indices, _aten.max_pool3d_with_indices)
_POOLS = (*_POOLED, _aten.max_pool1d, _aten.max_pool2d, _aten.max_pool3d)


def _find_wrong_meaning(node: fx.Node) -> str | None:
    """Why an operation would be computed wrongly; None where it is not."""
    packet: Any = getattr(node.target, "overloadpacket", None)
    if packet in _POOLED and any(user.target is operator.getitem and user.args[1] == 1 for user in node.users):
        return "torch-mlir finds no places of infinities"
    if packet in _POOLS and not next(iter(get_tensors(node.meta["val"]))).dtype.is_floating_point:
        return "torch-mlir has no maxima of windows of integers"
    return _LEFT.get(packet)


def check_meaning(graph: fx.GraphModule) -> None:
    """UnsupportedGraphError where the graph has an operation that would be computed wrongly."""
    for node in graph.graph.nodes:
        if reason := _find_wrong_meaning(node):
            raise UnsupportedGraphError(f"{reason}, got {node.target}", [str(node.target)])


def find_blocked(graph: fx.GraphModule) -> dict[fx.Node, str]:
    """The operations that stay with PyTorch in any case, with the reason: types, and random numbers."""
    blocked: dict[fx.Node, str] = {}
    unchecked = _find_unchecked(graph)
    for node in graph.graph.nodes:
        if node.op != "call_function":
            continue
        sources = node.all_input_nodes
        if node.target is operator.getitem:
            if sources[0] in blocked:
                blocked[node] = blocked[sources[0]]
            continue
        value = node.meta.get("val")
        reason = next(filter(None, (check_tensors(source.meta.get("val")) for source in (*sources, node))), None)
        reason = _find_wrong_meaning(node) or unchecked.get(node) or reason
        if is_random(node.target, node.args):
            reason = f"requires a network without random numbers, got {node.target}"
        elif not reason and not any(True for _ in get_tensors(value)):
            reason = f"requires a result that is a tensor, got {value!r}"
        if reason:
            blocked[node] = reason
    return blocked


def _get_symbol(size: Any) -> Any:
    """The expression of a size that is a symbol; None for numbers."""
    value = size.meta.get("val") if isinstance(size, fx.Node) else size
    return value.node.expr if isinstance(value, torch.SymInt) else None


def _find_strided_view(value: torch.Tensor, size: Sequence[Any], stride: Sequence[Any]) -> list[int] | None:
    """The dimensions of a view of `value`, as `_find_view` gives them.

    The outermost size of both may be one symbol, the number of samples, which is the same in both.
    """
    shape: list[Any] = list(value.shape)
    sizes: list[Any] = list(size)
    symbol = _get_symbol(shape[0]) if shape else None
    if symbol is not None and sizes and _get_symbol(sizes[0]) == symbol:
        shape[0] = sizes[0] = _SAMPLES
    if not all(isinstance(number, int) for number in (*shape, *sizes, *stride)):
        return None
    return _find_view(sizes, stride, math.prod(shape))


def _find_view(size: Sequence[int], stride: Sequence[int], elements: int) -> list[int] | None:
    """The dimensions of a view of a tensor in rows, outermost first; None where it does not have each element once."""
    dims = sorted((dim for dim in range(len(size)) if size[dim] != 1), key=lambda dim: -stride[dim])
    expected = 1
    for dim in reversed(dims):
        if stride[dim] != expected:
            return None
        expected *= size[dim]
    return [*dims, *(dim for dim in range(len(size)) if size[dim] == 1)] if expected == elements else None


def replace_strided(graph: fx.GraphModule) -> None:
    """Writes `as_strided` and its gradient as a view with other dimensions where it is one, which all layouts have."""
    aten = torch.ops.aten
    for node in list(graph.graph.nodes):
        if node.op != "call_function" or node.target not in (aten.as_strided.default, aten.as_strided_scatter.default):
            continue
        scatters = node.target is aten.as_strided_scatter.default
        whole, part = node.args[0], node.args[scatters]
        size, stride, *offset = node.args[1 + scatters :]
        value = whole.meta.get("val")
        if not isinstance(value, torch.Tensor) or not value.is_contiguous():
            continue
        # It is one within the memory, not within the tensor.
        first = value.storage_offset()
        if offset and offset[0] is not None and not (isinstance(first, int) and offset[0] == first):
            continue
        dims = _find_strided_view(value, size, stride)
        if dims is None or (scatters and not all(isinstance(number, int) for number in value.shape)):
            continue
        call = graph.graph.call_function
        with graph.graph.inserting_before(node):
            if scatters:
                # All elements are replaced.
                rows = call(aten.permute.default, (part, dims))
                result = call(aten.reshape.default, (rows, list(value.shape)))
            else:
                view = call(aten.view.default, (part, [size[dim] for dim in dims]))
                result = call(aten.permute.default, (view, [dims.index(dim) for dim in range(len(dims))]))
        result.meta = dict(node.meta)
        node.replace_all_uses_with(result)
        graph.graph.erase_node(node)
    graph.recompile()


def get_targets(graph: fx.GraphModule) -> list[str]:
    """The operations that are called, such as `aten.i0.default`."""
    calls = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    return [str(target) for target in calls if target is not operator.getitem]


def find_calls(graph: fx.GraphModule, names: Iterable[str]) -> list[fx.Node]:
    """The calls of these operations, such as `aten.i0` or `aten.sum.dim_IntList`."""
    wanted = set(names)
    return [
        node
        for node in graph.graph.nodes
        if node.op == "call_function" and {str(node.target), str(node.target).rpartition(".")[0]} & wanted
    ]


_DRAWN = "drawn"
"""In the `meta` of a node that draws random numbers: its operation, while it has another one as its target."""


def _draw_after(*arguments: Any, **options: Any) -> Any:
    """Stands for an operation that draws random numbers, with the one that draws before it as first argument."""
    raise NotImplementedError("requires a graph that is being split")


def _chain_random(graph: fx.GraphModule) -> None:
    """Makes each operation that draws random numbers depend on the one before: parts must not change their order."""
    previous: fx.Node | None = None
    for node in graph.graph.nodes:
        if node.op == "call_function" and is_random(node.target, node.args):
            if previous is not None:
                node.meta[_DRAWN], node.target = node.target, _draw_after
                node.args = (previous, *node.args)
            previous = node


def _unchain_random(graph: fx.GraphModule) -> None:
    for node in graph.graph.find_nodes(op="call_function", target=_draw_after):
        node.target = node.meta.pop(_DRAWN)
        node.args = node.args[1:]
    graph.recompile()


def split(graph: fx.GraphModule, blocked: Mapping[fx.Node, str]) -> list[fx.Node]:
    """Moves what is not blocked to few submodules; the calls of these."""
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
            return node.op == "call_function" and node not in blocked

    # Of single operations only products and convolutions are worth a call.
    single = ["convolution", "mm", "addmm", "bmm", "baddbmm"]
    _chain_random(graph)
    partitioner = CapabilityBasedPartitioner(
        graph,
        Support(),
        non_compute_ops=[f"torch.ops.aten.{name}.default" for name in ("view", "permute", "transpose.int", "clone")],
        allowed_single_node_partition_ops=[f"torch.ops.aten.{name}.default" for name in single],
    )
    parts = partitioner.partition_and_fuse()
    _unchain_random(parts)
    return [node for node in parts.graph.nodes if node.op == "call_module"]
