# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks with fewer channels: the same computation with the channels of all layers cut in the same proportion.

Channels that meet, by sums, normalizations, depthwise convolutions or concatenations that are not there, belong
together; those of a group with the largest weights stay (Li et al., "Pruning Filters for Efficient ConvNets", ICLR
2017). Networks that PyTorch cannot trace, or that do anything else with channels, stay as they are.
"""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

_ELEMENTWISE = {
    functional.relu, functional.relu6, functional.gelu, functional.silu, functional.hardswish, functional.leaky_relu,
    functional.elu, functional.sigmoid, functional.dropout, torch.relu, torch.sigmoid, torch.tanh, torch.clamp,
}  # fmt: skip
_POOLS = {functional.avg_pool2d, functional.max_pool2d, functional.adaptive_avg_pool2d, functional.adaptive_max_pool2d}
_SUMS = {operator.add, operator.iadd, operator.mul, torch.add, torch.mul}
_ELEMENTWISE_MODULES = (
    nn.ReLU, nn.ReLU6, nn.GELU, nn.SiLU, nn.Hardswish, nn.LeakyReLU, nn.ELU, nn.Sigmoid, nn.Tanh, nn.Identity,
    nn.Dropout, nn.Dropout2d, nn.AvgPool2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d,
)  # fmt: skip
_METHODS = {"relu", "sigmoid", "tanh", "contiguous", "add", "mul", "clamp", "add_"}


class NotNarrowableError(ValueError):
    """Why the channels of a network cannot be cut."""


class _Groups:
    """Sets of channels that belong together, by union and find."""

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.sizes: list[int] = []
        self.fixed: set[int] = set()

    def make(self, size: int, is_fixed: bool = False) -> int:
        self.parents.append(len(self.parents))
        self.sizes.append(size)
        if is_fixed:
            self.fixed.add(len(self.parents) - 1)
        return len(self.parents) - 1

    def find(self, one: int) -> int:
        while self.parents[one] != one:
            one = self.parents[one]
        return one

    def join(self, one: int, other: int) -> int:
        one, other = self.find(one), self.find(other)
        if self.sizes[one] != self.sizes[other]:
            raise NotNarrowableError(f"requires as many channels, got {self.sizes[one]} and {self.sizes[other]}")
        if one != other:
            self.parents[other] = one
            if other in self.fixed:
                self.fixed.add(one)
        return one

    def is_fixed(self, one: int) -> bool:
        return self.find(one) in self.fixed


class _Analysis:
    """For each module the groups of its inputs and outputs."""

    def __init__(self, model: nn.Module, example: torch.Tensor):
        try:
            traced = fx.symbolic_trace(model)
        except Exception as error:
            raise NotNarrowableError(f"requires a network that torch.fx can trace: {error}") from error
        from torch.fx.passes.shape_prop import ShapeProp

        with torch.no_grad():
            ShapeProp(traced).propagate(example)
        self.groups = _Groups()
        self.inputs: dict[str, int] = {}
        self.outputs: dict[str, int] = {}
        self.repeats: dict[str, int] = {}
        """Of linear layers after a flattening: how many inputs a channel has."""
        self.modules = dict(traced.named_modules())
        self.nodes: dict[fx.Node, int] = {}
        self.spread: dict[fx.Node, int] = {}
        for node in traced.graph.nodes:
            self._visit(node)

    def _shape(self, node: fx.Node) -> tuple[int, ...]:
        meta = node.meta.get("tensor_meta")
        if meta is None or not hasattr(meta, "shape"):
            raise NotNarrowableError(f"requires tensors, got something else of '{node.name}'")
        return tuple(meta.shape)

    def _visit(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            self._set(node, self.groups.make(self._shape(node)[1], True))
        elif node.op == "output":
            for one in node.all_input_nodes:
                self.groups.fixed.add(self.groups.find(self.nodes[one]))
        elif node.op == "call_module":
            self._visit_module(node, str(node.target), self.modules[str(node.target)])
        elif node.op in ("call_function", "call_method"):
            self._visit_function(node)
        elif node.op == "get_attr":
            self._set(node, self.groups.make(-1, True))

    def _set(self, node: fx.Node, group: int, spread: int = 1) -> None:
        self.nodes[node], self.spread[node] = group, spread

    def _visit_module(self, node: fx.Node, name: str, module: nn.Module) -> None:
        source = node.all_input_nodes[0]
        group, spread = self.nodes[source], self.spread[source]
        if name in self.inputs:
            raise NotNarrowableError(f"requires layers that run once, got '{name}' again")
        if isinstance(module, nn.Conv2d) and spread == 1:
            self.inputs[name] = group
            if module.groups == 1:
                self.outputs[name] = self.groups.make(module.out_channels)
            elif module.groups == module.in_channels == module.out_channels:
                self.outputs[name] = group
            else:
                self.groups.fixed.add(self.groups.find(group))
                self.outputs[name] = self.groups.make(module.out_channels, True)
            self._set(node, self.outputs[name])
        elif isinstance(module, nn.Linear) and len(self._shape(source)) == 2:
            self.inputs[name], self.repeats[name] = group, spread
            self.outputs[name] = self.groups.make(module.out_features)
            self._set(node, self.outputs[name])
        elif isinstance(module, (nn.BatchNorm2d, nn.BatchNorm1d)) and spread == 1:
            self.inputs[name] = self.outputs[name] = group
            self._set(node, group)
        elif isinstance(module, nn.Flatten):
            self._flatten(node, source)
        elif isinstance(module, _ELEMENTWISE_MODULES):
            self._set(node, group, spread)
        else:
            raise NotNarrowableError(f"requires layers whose channels are known, got {type(module).__name__} '{name}'")

    def _flatten(self, node: fx.Node, source: fx.Node) -> None:
        before, after = self._shape(source), self._shape(node)
        if len(after) != 2 or after[0] != before[0]:
            raise NotNarrowableError(f"requires a flattening to [examples, values], got {after}")
        spread = self.spread[source]
        for size in before[2:]:
            spread *= size
        self._set(node, self.nodes[source], spread)

    def _visit_function(self, node: fx.Node) -> None:
        sources = node.all_input_nodes
        target = node.target
        if target in (torch.flatten, "flatten"):
            self._flatten(node, sources[0])
        elif target in ("mean", torch.mean) and len(self._shape(sources[0])) == 4:
            dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
            kept = sorted(int(dim) % 4 for dim in (dims if isinstance(dims, (tuple, list)) else [dims or 0]))  # type: ignore[arg-type]
            if kept != [2, 3]:
                raise NotNarrowableError("requires means over places, got others")
            self._set(node, self.nodes[sources[0]])
        elif target in _SUMS or target in _ELEMENTWISE or target in _POOLS or target in _METHODS:
            group = self.nodes[sources[0]]
            for other in sources[1:]:
                if len(self._shape(other)) != len(self._shape(sources[0])):
                    raise NotNarrowableError(f"requires tensors of one rank, got others of '{node.name}'")
                group = self.groups.join(group, self.nodes[other])
            self._set(node, group, self.spread[sources[0]])
        else:
            raise NotNarrowableError(f"requires operations whose channels are known, got '{node.name}'")


def narrow(model: nn.Module, example: torch.Tensor, share: float, multiple: int = 8) -> nn.Module:
    """A copy with `share` of the channels of each group, in multiples, those with the largest weights.

    Raises `NotNarrowableError` where that is impossible, or where nothing would change.
    """
    if not isinstance(example, torch.Tensor):
        raise NotNarrowableError("requires a network of one tensor, got several")
    analysis = _Analysis(model, example)
    network = copy.deepcopy(model)
    modules = dict(network.named_modules())
    scores: dict[int, torch.Tensor] = {}
    for name, group in analysis.outputs.items():
        module = modules[name]
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            own = module.weight.detach().double().flatten(1).square().sum(1)
            root = analysis.groups.find(group)
            scores[root] = scores.get(root, torch.zeros_like(own)) + own / own.mean().clamp_min(1e-30)
    chosen: dict[int, torch.Tensor] = {}
    for root, score in scores.items():
        count = max(multiple, round(share * len(score) / multiple) * multiple)
        if not analysis.groups.is_fixed(root) and count < len(score):
            chosen[root] = score.argsort(descending=True, stable=True)[:count].sort().values
    if not chosen:
        raise NotNarrowableError("requires channels that can be cut, got none")

    def pick(group: int | None) -> torch.Tensor | None:
        return None if group is None else chosen.get(analysis.groups.find(group))

    for name, module in modules.items():
        if name in analysis.outputs:
            _cut(module, pick(analysis.inputs.get(name)), pick(analysis.outputs[name]), analysis.repeats.get(name, 1))
    return network


def _cut(module: nn.Module, inputs: torch.Tensor | None, outputs: torch.Tensor | None, repeats: int) -> None:
    """Keeps these inputs and outputs of a layer."""

    def select(name: str, dim: int, kept: torch.Tensor | None) -> None:
        tensor: Any = getattr(module, name)
        if kept is None or tensor is None:
            return
        new = tensor.detach().index_select(dim, kept).clone()
        setattr(module, name, nn.Parameter(new, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else new)

    if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
        for name in ("weight", "bias", "running_mean", "running_var"):
            select(name, 0, outputs)
        module.num_features = module.num_features if outputs is None else len(outputs)
        return
    assert isinstance(module, (nn.Conv2d, nn.Linear))
    select("weight", 0, outputs)
    select("bias", 0, outputs)
    if isinstance(module, nn.Linear):
        if inputs is not None and repeats > 1:
            inputs = (inputs[:, None] * repeats + torch.arange(repeats)).flatten()
        select("weight", 1, inputs)
        module.out_features, module.in_features = module.weight.shape
    else:
        if module.groups == 1:
            select("weight", 1, inputs)
            module.in_channels = module.weight.shape[1]
        else:
            module.groups = module.in_channels = module.weight.shape[0] if outputs is not None else module.groups
        module.out_channels = module.weight.shape[0]
