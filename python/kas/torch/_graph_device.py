# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs on tensors of a CUDA device: traced as those of the CPU are, compiled for the device, called in its stream."""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import Any

import torch
from torch import fx, nn

from .. import _kas
from .._device_function import Weights
from .._errors import Error
from .._module import Module
from ._graph_import import UnsupportedGraphError
from ._options import Options

_aten = torch.ops.aten
_HOST = torch.device("cpu")


def find_device(tensors: Sequence[torch.Tensor]) -> str | None:
    """The CUDA device of all tensors, such as `cuda:0`; None where they are on the CPU; else UnsupportedGraphError."""
    devices = sorted({str(tensor.device) for tensor in tensors})
    if devices in ([], ["cpu"]):
        return None
    if len(devices) > 1 or not devices[0].startswith("cuda"):
        raise UnsupportedGraphError(f"requires tensors on the CPU or on one CUDA device, got {', '.join(devices)}")
    return devices[0]


def _replace(value: Any) -> Any:
    """On the host, what makes tensors on a device or moves them there."""
    return _HOST if isinstance(value, torch.device) else value


def _get_first(graph: fx.GraphModule, target: Any) -> list[fx.Node]:
    """The calls of `target` of whose results the first one alone is read."""
    calls = graph.graph.find_nodes(op="call_function", target=target)
    return [call for call in calls if all(user.target is getitem and user.args[1] == 0 for user in call.users)]


def _replace_norms(graph: fx.GraphModule) -> None:
    for call in _get_first(graph, _aten.cudnn_batch_norm.default):
        *tensors, training, momentum, epsilon = call.args
        if training:
            continue
        call.target, call.args = _aten._native_batch_norm_legit_no_training.default, (*tensors, momentum, epsilon)
        if "val" in call.meta:
            call.meta["val"] = call.meta["val"][:3]


def _replace_attention(graph: fx.GraphModule) -> None:
    attention = _aten.scaled_dot_product_attention.default
    # Without and with a mask, which comes after query, key and value; what is to be returned as well comes next.
    for target, has_mask in (
        (_aten._scaled_dot_product_flash_attention.default, False),
        (_aten._scaled_dot_product_efficient_attention.default, True),
        (_aten._scaled_dot_product_cudnn_attention.default, True),
    ):
        for call in _get_first(graph, target):
            query, key, value, *rest = call.args
            mask = rest.pop(0) if has_mask else None
            if has_mask:
                rest = rest[1:]
            dropout, is_causal = [*rest, *(0.0, False)[len(rest) :]][:2]
            options = {"scale": call.kwargs.get("scale")}
            with graph.graph.inserting_before(call):
                made = graph.graph.call_function(attention, (query, key, value, mask, dropout, is_causal), options)
            for user in list(call.users):
                made.meta = dict(user.meta)
                user.replace_all_uses_with(made)
                graph.graph.erase_node(user)
            graph.graph.erase_node(call)


def move_to_host(graph: fx.GraphModule, arguments: Sequence[Any]) -> tuple[fx.GraphModule, list[Any]]:
    """The same graph on the CPU, and arguments there of the same shapes, strides and types, whatever their elements.

    Tracing computes with neither, so that it needs no device; nothing writes to the memory of the arguments.
    """
    copy = fx.Graph()
    copy.output(copy.graph_copy(graph.graph, {}))
    attributes = {name: value for name, value in _list_constants(graph)}
    for node in copy.nodes:
        node.args = fx.node.map_aggregate(node.args, _replace)
        node.kwargs = fx.node.map_aggregate(node.kwargs, _replace)
    moved = fx.GraphModule({**dict(graph.named_modules()), **attributes}, copy)
    # What PyTorch calls otherwise on CUDA devices.
    _replace_norms(moved)
    _replace_attention(moved)
    moved.recompile()
    hosts = [
        torch.empty_strided(a.shape, a.stride(), dtype=a.dtype) if isinstance(a, torch.Tensor) else a for a in arguments
    ]
    return moved, hosts


def _list_constants(graph: fx.GraphModule) -> list[tuple[str, torch.Tensor]]:
    """What the graph reads of itself, by name, on the CPU."""
    names = {str(node.target) for node in graph.graph.find_nodes(op="get_attr")}
    values = {name: getattr(graph, name, None) for name in sorted(names)}
    return [(name, value.cpu()) for name, value in values.items() if isinstance(value, torch.Tensor)]


class DeviceProgram(nn.Module):
    """The program of a graph on a CUDA device. Results are new tensors; nothing else is copied.

    But for arguments with gaps or at odd addresses, such as views: those of data are copied in each call, weights when
    they have changed.
    """

    def __init__(self, plan: Any, module: Module, device: str, options: Options):
        super().__init__()
        self.plan, self.device = plan, torch.device(device)
        how = (options.precision, options.libraries == "auto")
        try:
            self.function = _kas.DeviceFunction(module._handle, "forward", device, *how)
        except (Error, ValueError) as error:
            raise UnsupportedGraphError(" ".join(str(error).split())) from error
        self.weights = Weights(self.function)
        self.copies: dict[int, tuple[tuple[int, int | None], torch.Tensor]] = {}
        """Of weights, by position: where they were and their version, and the copy."""

    def _enter(self, position: int, tensor: torch.Tensor, version: int | None) -> torch.Tensor:
        """As the function takes it: in rows, from a multiple of 16 bytes on."""
        if tensor.is_contiguous() and tensor.data_ptr() % 16 == 0:
            return tensor
        state = (tensor.data_ptr(), version)
        if position >= self.plan.num_data and version is not None:
            kept = self.copies.get(position)
            if kept and kept[0] == state:
                return kept[1]
        copy = tensor.detach().clone(memory_format=torch.contiguous_format)
        if position >= self.plan.num_data:
            self.copies[position] = (state, copy)
        return copy

    def forward(self, *arguments: torch.Tensor) -> Any:
        originals = [arguments[place] for place in self.plan.order]
        versions = [None if tensor.is_inference() else tensor._version for tensor in originals]
        tensors = [self._enter(*entry) for entry in zip(range(len(originals)), originals, versions)]
        results = [originals[0].new_empty(shape, dtype=dtype) for shape, dtype in self.plan.results]
        self.weights.check(versions)
        stream = int(torch.cuda.current_stream(self.device).cuda_stream)
        self.function.call([tensor.data_ptr() for tensor in (*tensors, *results)], stream)
        for number, strides in enumerate(self.plan.strides):
            if strides is not None:
                rows = results[number]
                results[number] = rows.new_empty_strided(rows.shape, strides).copy_(rows)
        values = [output.choose(results, arguments) for output in self.plan.outputs]
        # Constants of the graph are on the host.
        values = [v.to(self.device) if isinstance(v, torch.Tensor) and v.device != self.device else v for v in values]
        return values[0] if self.plan.is_single else values
