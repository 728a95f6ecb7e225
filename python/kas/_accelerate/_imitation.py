# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Alternatives learn to do what the layer does, on what it sees in the network: block-wise distillation.

Li et al., "Block-wisely Supervised Neural Architecture Search with Knowledge Distillation", CVPR 2020; Molchanov et
al., "LANA", ECCV 2022, section 3.1.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..evaluate._task import call
from ..evaluate._training import seed_of
from ..torch._fit import fit_weights
from ..torch._layers import observing
from ..torch._modules import KasModule
from ._sequences import FoundSequence, RunModule, apply_stages
from ._units import Unit, get_module

BATCH = 64
RIDGE = 1e-4
"""What least squares add to the second moments of features, over their mean."""
MOST_FEATURES = 1200
"""Larger systems of equations take longer than what they bring."""
FITTED, ROUNDS, TOLERANCE = 64, 8, 0.02
"""Examples that operators are fitted to, rounds over their weights, and what a round has to bring."""
START_ROUNDS = 3
"""Those for sequences without what is between their operators, which is where they start."""


@dataclass
class Seen:
    """What a layer takes and gives in the network on some examples."""

    data: torch.Tensor
    output: torch.Tensor
    own_scale: torch.Tensor | None = None
    """Where the output is a part of another one, the scale of that."""

    @property
    def scale(self) -> torch.Tensor:
        """The deviation of each channel of the output, in the shape of one example's."""
        if self.own_scale is not None:
            return self.own_scale
        channels = 1 if self.output.ndim == 4 else self.output.ndim - 1
        dims = [dim for dim in range(self.output.ndim) if dim != channels]
        deviation = self.output.std(dims, keepdim=True)[0]
        # After a rectifier, channels may be all but constant, and nothing makes them larger again.
        least = 0.1 if not bool((self.output < 0).any()) else 1e-3
        return deviation.clamp_min(least * float(deviation.mean()) + 1e-12)

    def get_error(self, output: torch.Tensor, part: slice = slice(None)) -> torch.Tensor:
        """The mean square of differences from the output, each over the deviation of its channel."""
        return ((output - self.output[part]) / self.scale).square().mean()


def observe_units(model: nn.Module, units: Sequence[Unit], batches: Iterable[Any]) -> dict[str, Seen]:
    """What the units see on all batches of inputs."""
    found: dict[str, tuple[list[torch.Tensor], list[torch.Tensor]]] = {unit.name: ([], []) for unit in units}
    hooks = {}
    for unit in units:

        def record(_: nn.Module, inputs: tuple[Any, ...], output: Any, own: Any = found[unit.name]) -> None:
            own[0].append(inputs[0].detach().clone())
            own[1].append(output.detach().clone())

        hooks[get_module(model, unit.name)] = record
    with observing(model, hooks):
        for inputs in batches:
            call(model, inputs)
    return {name: Seen(torch.cat(data), torch.cat(outputs)) for name, (data, outputs) in found.items()}


# ---- Least squares for the last layer of an alternative


def _split_last(module: nn.Module) -> tuple[nn.Module | None, nn.Module, nn.Module | None]:
    """What comes before the last convolution, linear layer or operator, that layer, and what comes after it."""
    if not isinstance(module, nn.Sequential):
        return None, module, None
    places = [place for place, part in enumerate(module) if isinstance(part, (nn.Conv2d, nn.Linear, KasModule))]
    if not places:
        return None, module, None
    return module[: places[-1]], module[places[-1]], module[places[-1] + 1 :]


def _split_channels(tensor: torch.Tensor, groups: int) -> torch.Tensor:
    """`[examples, groups, channels of a group, ...]`."""
    return tensor.reshape(len(tensor), groups, tensor.shape[1] // groups, *tensor.shape[2:])


def _get_features(layer: nn.Conv2d | nn.Linear, data: torch.Tensor) -> torch.Tensor:
    """What each output is a sum over, `[groups, rows, features]`."""
    if isinstance(layer, nn.Linear):
        return data.flatten(0, -2)[None]
    if tuple(layer.kernel_size) == (1, 1) and not any(map(int, layer.padding)):
        strided = data[:, :, :: layer.stride[0], :: layer.stride[1]]
        return _split_channels(strided, layer.groups).movedim(1, 0).movedim(2, -1).flatten(1, -2)
    padding = layer.padding if not isinstance(layer.padding, str) else 0
    if isinstance(layer.padding, str) and layer.padding == "same":
        padding = tuple(d * (k - 1) // 2 for d, k in zip(layer.dilation, layer.kernel_size))
    columns = functional.unfold(data, layer.kernel_size, layer.dilation, padding, layer.stride)
    return _split_channels(columns, layer.groups).permute(1, 0, 3, 2).flatten(1, 2)


def _get_targets(layer: nn.Conv2d | nn.Linear, output: torch.Tensor) -> torch.Tensor:
    """What the outputs should be, `[groups, rows, outputs]`."""
    if isinstance(layer, nn.Linear):
        return output.flatten(0, -2)[None]
    return _split_channels(output.flatten(2), layer.groups).permute(1, 0, 3, 2).flatten(1, 2)


def _undo(after: nn.Module | None, output: torch.Tensor) -> torch.Tensor | None:
    """What must come before `after` for it to give the output; None where that is not known."""
    from ..zoo._layers import Shuffle

    for part in list(after) if isinstance(after, nn.Sequential) else []:
        if not isinstance(part, Shuffle):
            return None
        groups = output.shape[1] // part.groups
        output = _split_channels(output, groups).transpose(1, 2).flatten(1, 2)
    return output


@torch.no_grad()
def solve_last(module: nn.Module, seen: Seen, examples: int = 128) -> bool:
    """Gives the last layer of an alternative the weights of least squares; False where it has no such layer."""
    if isinstance(module, RunModule):
        return _solve_run(module, seen, examples)
    before, last, after = _split_last(module)
    if not isinstance(last, (nn.Conv2d, nn.Linear, KasModule)):
        return False
    if isinstance(last, KasModule):
        wanted = _undo(after, seen.output[:FITTED])
        data = seen.data[:FITTED]
        scale = seen.scale if after is None or not len(list(after.children())) else None
        return wanted is not None and _fit_operator(last, Seen(data if before is None else before(data), wanted, scale))
    wanted = _undo(after, seen.output[:examples])
    features_each = last.weight[0].numel()
    if wanted is None or features_each > MOST_FEATURES:
        return False
    data = seen.data[:examples]
    features = _get_features(last, data if before is None else before(data)).double()
    targets = _get_targets(last, wanted).double()
    if last.bias is not None:
        features = torch.cat([features, torch.ones_like(features[..., :1])], -1)
    moments = features.transpose(1, 2) @ features
    size = moments.diagonal(dim1=1, dim2=2).mean(1).clamp_min(1e-30)
    ridge = RIDGE * size[:, None, None] * torch.eye(moments.shape[-1], dtype=torch.float64)
    solution = torch.linalg.solve(moments + ridge, features.transpose(1, 2) @ targets)
    if not bool(solution.isfinite().all()):
        return False
    weight = solution[:, :features_each].transpose(1, 2).reshape(last.weight.shape)
    last.weight.copy_(weight)
    if last.bias is not None:
        last.bias.copy_(solution[:, features_each].reshape(-1))
    return True


def _get_places(tensor: torch.Tensor) -> list[int]:
    """The dimensions that are no channels."""
    return [dim for dim in range(tensor.ndim) if dim != (1 if tensor.ndim == 4 else tensor.ndim - 1)]


def _solve_run(module: RunModule, seen: Seen, examples: int) -> bool:
    """The scale by least squares, then what is inside, for what is left.

    Where a rectifier comes last, an output of 0 is one of what is below 0 already and of nothing else: each round makes
    the error smaller. What is further away than the means comes near first, without a rectifier.
    """
    data, output = seen.data[:examples], seen.output[:examples]
    is_far = float(seen.get_error(module(data), slice(examples))) > 1
    for is_first in [True, False] if is_far and module.is_rectified else [False]:
        wanted = output
        if module.is_rectified and not is_first:
            wanted = torch.where(output > 0, output, module.add(data).clamp_max(0))
        _fit_scale(module, data, wanted - module.inner(data))
        if not solve_last(module.inner, Seen(data, _take_scaled(module, data, wanted), seen.scale), examples):
            return False
    return True


def _take_scaled(module: RunModule, data: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """What is left for what is inside."""
    return wanted if module.scale is None else wanted - module.scale * data


def _fit_scale(module: RunModule, data: torch.Tensor, wanted: torch.Tensor) -> None:
    if module.scale is None:
        return
    places = _get_places(data)
    centred = data - data.mean(places, keepdim=True)
    size = centred.square().sum(places)
    scale = (centred * wanted).sum(places) / size.clamp_min(1e-6 * float(size.mean()) + 1e-12)
    module.scale.copy_(scale.reshape(module.scale.shape))


@torch.no_grad()
def _start(module: nn.Module, seen: Seen) -> None:
    """Gives the operators of a sequence weights with which, without what is between them, they come close."""
    data, wanted = seen.data[:FITTED], seen.output[:FITTED]
    sequence = module
    if isinstance(module, RunModule):
        _fit_scale(module, data, wanted)
        sequence, wanted = module.inner, _take_scaled(module, data, wanted)
    if not isinstance(sequence, FoundSequence) or (found := apply_stages(sequence)) is None:
        return
    apply, weights = found
    scale = seen.scale
    target = (wanted - wanted.mean(_get_places(wanted), keepdim=True)) / scale
    fitted, _ = fit_weights(lambda values: apply(data, values) / scale, weights, target, START_ROUNDS, TOLERANCE)
    if all(bool(weight.isfinite().all()) for weight in fitted):
        for parameter, weight in zip(weights, fitted):
            parameter.copy_(weight)


def _fit_operator(module: KasModule, seen: Seen) -> bool:
    """Least squares for one weight after the other, each channel over its deviation; False where it is not linear."""
    if not module.weights or module.has_maxima:
        return False
    data, wanted, scale = seen.data, seen.output, seen.scale
    places = _get_places(wanted)
    mean = wanted.mean(places, keepdim=True) if module.bias is not None else torch.zeros(())

    def apply(weights: Sequence[torch.Tensor]) -> torch.Tensor:
        return module.apply_weights(data, weights) / scale

    weights, _ = fit_weights(apply, module.weights, (wanted - mean) / scale, ROUNDS, TOLERANCE)
    if not all(bool(weight.isfinite().all()) for weight in weights):
        return False
    for parameter, weight in zip(module.weights, weights):
        parameter.copy_(weight)
    if module.bias is not None:
        module.bias.copy_((wanted - scale * apply(weights)).mean(places))
    return True


# ---- Learning


def _has_inner_parameters(module: nn.Module) -> bool:
    if isinstance(module, RunModule):
        return True
    _, last, _ = _split_last(module)
    if isinstance(last, KasModule) and len(last.weights) > 1:
        return True
    inner = sum(parameter.numel() for parameter in module.parameters()) - sum(p.numel() for p in last.parameters())
    return inner > 0


def _set_statistics(module: nn.Module, data: torch.Tensor) -> None:
    """Running statistics of normalizations from all of the data."""
    norms = [one for one in module.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    module.train()
    with torch.no_grad():
        for part in torch.split(data, BATCH):
            if len(part) > 1:
                module(part)
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    module.eval()


def imitate(module: nn.Module, seen: Seen, steps: int, seed: int = 0, learning_rate: float = 4e-3) -> float:
    """Lets an alternative learn what the layer does; the error that is left, 0 of a copy and 1 of the means.

    Least squares for its last layer, `steps` steps of AdamW for all of it, and least squares again. Equal calls give
    equal results.
    """
    _start(module, seen)
    kept = copy.deepcopy(module.state_dict())
    _set_statistics(module, seen.data)
    best = _get_error(module, seen)
    if solve_last(module, seen):
        best = _keep_better(module, seen, kept, best)
    kept = copy.deepcopy(module.state_dict())
    if steps and _has_inner_parameters(module):
        _descend(module, seen, steps, seed, learning_rate)
        _set_statistics(module, seen.data)
        solve_last(module, seen)
        best = _keep_better(module, seen, kept, best)
    module.eval()
    return best


def _get_error(module: nn.Module, seen: Seen) -> float:
    module.eval()
    with torch.no_grad():
        total = 0.0
        for start in range(0, len(seen.data), 256):
            part = slice(start, start + 256)
            data = seen.data[part]
            total += len(data) * float(seen.get_error(module(data), part))
    return total / len(seen.data)


def _keep_better(module: nn.Module, seen: Seen, kept: Mapping[str, Any], before: float) -> float:
    error = _get_error(module, seen)
    if math.isfinite(error) and error <= before:
        return error
    module.load_state_dict(kept)
    return before


def _descend(module: nn.Module, seen: Seen, steps: int, seed: int, learning_rate: float) -> None:
    generator = torch.Generator().manual_seed(seed_of(seed, "imitation"))
    parameters = [parameter.requires_grad_() for parameter in module.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=0.0)
    module.train()
    size = min(BATCH, len(seen.data))
    order: list[torch.Tensor] = []
    scale = seen.scale
    for step in range(steps):
        if not order:
            places = torch.randperm(len(seen.data), generator=generator)
            order = list(places[: len(places) // size * size].reshape(-1, size).unbind())
        chosen = order.pop()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min(1.0, (step + 1) / 5) * 0.5 * (1 + math.cos(math.pi * step / steps))
        with torch.enable_grad():
            loss = ((module(seen.data[chosen]) - seen.output[chosen]) / scale).square().mean()
            if not math.isfinite(loss.item()):
                return
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
        optimizer.step()
