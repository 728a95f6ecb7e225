# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much a graph computes, in FLOPs, and how much of it is left to PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

_MOVES = ("view", "reshape", "permute", "transpose", "expand", "squeeze", "slice", "select", "clone", "detach", "alias")
SMALLEST = 1e6
"""Of graphs with fewer FLOPs it does not matter who computes them."""


def count_flops(graph: fx.GraphModule) -> int:
    """Products as PyTorch's counter has them, of other operations one FLOP for each element of a result."""
    return sum(_count(node) for node in graph.graph.nodes if node.op == "call_function")


def _count(node: fx.Node) -> int:
    from torch.utils.flop_counter import flop_registry

    packet = getattr(node.target, "overloadpacket", None)
    if packet is None or any(part in str(packet) for part in _MOVES):
        return 0
    value = node.meta.get("val")
    if packet in flop_registry:
        arguments, options = fx.node.map_arg((node.args, node.kwargs), lambda source: source.meta.get("val"))
        return int(flop_registry[packet](*arguments, **options, out_val=value))
    values: Any = value if isinstance(value, (tuple, list)) else [value]
    return sum(int(entry.numel()) for entry in values if isinstance(entry, torch.Tensor))


def warn_of_fallback(total: int, share: float, reason: str | None, left: Mapping[str, str]) -> None:
    """Warns where PyTorch computes more than a tenth of a graph."""
    if total < SMALLEST or share >= 0.9:
        return
    reasons = [reason] if reason else [f"{name}: {why}" for name, why in left.items()]
    amount = f"{100 * (1 - share):.0f} % of {total / 1e6:.0f} MFLOP"
    text = f"kas leaves {amount} of a graph to PyTorch: {'; '.join(reasons[:3])}"
    warnings.warn(text, RuntimeWarning, stacklevel=2)
