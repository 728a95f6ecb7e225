# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks with fewer channels: the same computation with the channels of all layers cut in the same proportion.

Channels that meet, by sums, normalizations or depthwise convolutions, belong together; those of a group with the
largest weights stay (Li et al., "Pruning Filters for Efficient ConvNets", ICLR 2017). Where anything else is done with
channels, all of them stay.
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
    nn.Dropout,
)  # fmt: skip
_POOL_MODULES = (nn.AvgPool2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d, nn.Dropout2d)
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


class _Tracer(fx.Tracer):
    """Keeps layers that others have derived from PyTorch's, such as normalizations with an activation."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """See `torch.fx.Tracer`."""
        return _is_known(m) or super().is_leaf_module(m, module_qualified_name)


def _is_known(module: nn.Module) -> bool:
    """Whether it is a layer that can be cut: derived ones may have no parameters of their own."""
    if not isinstance(module, (nn.Conv2d, nn.Linear, nn.BatchNorm1d, nn.BatchNorm2d)):
        return False
    return {name for name, _ in module.named_parameters()} <= {"weight", "bias"}


class _Analysis:
    """For each module the groups of its inputs and outputs."""

    def __init__(self, model: nn.Module, example: torch.Tensor):
        try:
            traced = fx.GraphModule(model, _Tracer().trace(model))
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
        self.last: set[fx.Node] = set()
        """What has its channels in the last dimension, as tokens do, and not in the one after the batch."""
        for node in traced.graph.nodes:
            self._visit(node)

    def _shape(self, node: fx.Node) -> tuple[int, ...]:
        """Empty for what is no tensor."""
        return tuple(getattr(node.meta.get("tensor_meta"), "shape", ()))

    def _visit(self, node: fx.Node) -> None:
        if node.op == "output":
            for one in node.all_input_nodes:
                self._fix(one)
        elif (
            node.op == "call_module" and self._visit_module(node, str(node.target), self.modules[str(node.target)])
        ) or (node.op in ("call_function", "call_method") and self._visit_function(node)):
            pass
        else:
            self._keep(node)

    def _set(self, node: fx.Node, group: int, spread: int = 1, is_last: bool = False) -> bool:
        self.nodes[node], self.spread[node] = group, spread
        if is_last:
            self.last.add(node)
        return True

    def _fix(self, node: fx.Node) -> None:
        self.groups.fixed.add(self.groups.find(self.nodes[node]))

    def _keep(self, node: fx.Node) -> None:
        """What is not known: no channels that go into it, or come from it, are cut."""
        for source in node.all_input_nodes:
            self._fix(source)
        shape = self._shape(node)
        self._set(node, self.groups.make(shape[1] if len(shape) > 1 else -1, True))

    def _visit_module(self, node: fx.Node, name: str, module: nn.Module) -> bool:
        """Whether the module is known."""
        if len(node.all_input_nodes) != 1:
            return False
        source = node.all_input_nodes[0]
        group, spread = self.nodes[source], self.spread[source]
        if name in self.inputs:
            # Both calls have the same weight.
            self.groups.fixed |= {self.groups.find(one[name]) for one in (self.inputs, self.outputs)}
            return False
        if isinstance(module, _ELEMENTWISE_MODULES):
            return self._set(node, group, spread, source in self.last)
        if isinstance(module, _POOL_MODULES) and source not in self.last:
            return self._set(node, group, spread)
        if isinstance(module, nn.Flatten):
            return self._flatten(node, source)
        if not _is_known(module):
            return False
        if isinstance(module, nn.Linear):
            is_vector = len(self._shape(source)) == 2
            if not is_vector and source not in self.last:
                self._fix(source)
                group = self.groups.make(module.in_features, True)
            self.inputs[name], self.repeats[name] = group, spread if is_vector else 1
            self.outputs[name] = self.groups.make(module.out_features)
            return self._set(node, self.outputs[name], is_last=not is_vector)
        if spread != 1 or source in self.last:
            return False
        self.inputs[name] = self.outputs[name] = group
        if isinstance(module, nn.Conv2d) and module.groups == 1:
            self.outputs[name] = self.groups.make(module.out_channels)
        elif isinstance(module, nn.Conv2d) and not module.groups == module.in_channels == module.out_channels:
            self._fix(source)
            self.outputs[name] = self.groups.make(module.out_channels, True)
        return self._set(node, self.outputs[name])

    def _flatten(self, node: fx.Node, source: fx.Node) -> bool:
        before, after = self._shape(source), self._shape(node)
        if len(before) < 2 or len(after) != 2 or after[0] != before[0] or source in self.last:
            return False
        spread = self.spread[source]
        for size in before[2:]:
            spread *= size
        return self._set(node, self.nodes[source], spread)

    def _is_mean_of_places(self, node: fx.Node) -> bool:
        source = node.all_input_nodes[0]
        if node.target not in ("mean", torch.mean) or len(self._shape(source)) != 4 or source in self.last:
            return False
        dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        return isinstance(dims, (tuple, list)) and sorted(int(dim) % 4 for dim in dims) == [2, 3]

    def _visit_function(self, node: fx.Node) -> bool:
        """Whether the operation is known."""
        sources, target = node.all_input_nodes, node.target
        if target in (torch.flatten, "flatten"):
            return self._flatten(node, sources[0])
        if self._is_mean_of_places(node):
            return self._set(node, self.nodes[sources[0]])
        if not (target in _SUMS or target in _ELEMENTWISE or target in _POOLS or target in _METHODS):
            return False
        is_last = sources[0] in self.last
        if is_last and target in _POOLS:
            return False
        shapes = {(len(shape), shape[-1:] if is_last else shape[1:2]) for shape in map(self._shape, sources)}
        kinds = {(self.spread[source], source in self.last) for source in sources}
        if len(shapes) != 1 or shapes == {(0, ())} or len(kinds) != 1:
            return False
        group = self.nodes[sources[0]]
        for other in sources[1:]:
            group = self.groups.join(group, self.nodes[other])
        return self._set(node, group, self.spread[sources[0]], is_last)


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
