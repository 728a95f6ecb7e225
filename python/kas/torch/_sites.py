# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of networks that operators can take the place of."""

from __future__ import annotations

import copy
import fnmatch
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn

from .._errors import Error
from .._module import Binding, Module, Operator, parse_binding
from .._search import SearchSpace
from .._sequence import OperatorSequence
from ._layers import NoLayerError, is_layer, observing, write_layer
from ._modules import KasModule, is_row_operator
from ._sequences import SequenceModule

LayerChoice: TypeAlias = str | Sequence[str] | Callable[[str, nn.Module], bool]
"""Layers of a network: the names of modules or patterns of them, or a predicate of the name and the module."""


class Site(NamedTuple):
    """A layer of a network: where it is and what it computes."""

    name: str
    """The path of the module in the network, such as `layer1.0.conv1`."""
    space: str
    """The name of the search problem that the layer belongs to."""
    binding: dict[str, int]
    """The values of the symbols of that problem."""
    data_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    flops: int
    """2 per multiply-add, for the example, over all calls."""
    parameters: int
    """Elements of the weight; the bias stays and does not count."""
    calls: int
    """How often the network calls the module for one example."""


class Sites(NamedTuple):
    """The result of `extract`."""

    module: Module
    """The search problems as MLIR, for `kas-opt -kas-search`."""
    spaces: dict[str, SearchSpace]
    sites: dict[str, Site]
    """The layers by their paths."""
    misses: dict[str, str]
    """Why other convolutions and linear layers are no sites, by their paths."""

    def __repr__(self) -> str:
        spaces = ", ".join(f"{name}: {sum(space.multiplicities)}" for name, space in self.spaces.items())
        return f"<kas.torch.Sites {spaces}>"


class _Call(NamedTuple):
    data: tuple[int, ...]
    output: tuple[int, ...]


def _observe(model: nn.Module, example: Any) -> dict[str, list[_Call]]:
    """The shapes that each layer sees in one run on the example, by its path."""
    calls: dict[str, list[_Call]] = {}
    hooks: dict[nn.Module, Callable[[nn.Module, Any, Any], None]] = {}
    for name, module in model.named_modules():
        if is_layer(module):

            def record(_: nn.Module, inputs: tuple[Any, ...], output: Any, name: str = name) -> None:
                if inputs and isinstance(inputs[0], torch.Tensor) and isinstance(output, torch.Tensor):
                    calls.setdefault(name, []).append(_Call(tuple(inputs[0].shape), tuple(output.shape)))

            hooks[module] = record
    with observing(model, hooks):
        try:
            model(*(example if isinstance(example, (list, tuple)) else (example,)))
        except Exception as error:
            raise ValueError(f"the network does not take this example: {type(error).__name__}: {error}") from error
    return calls


def choose_layers(model: nn.Module, choice: LayerChoice | None) -> set[str]:
    """The paths of the convolutions and linear layers that are chosen.

    Raises `TypeError` for what is no choice, `ValueError` where a pattern or the predicate chooses none.
    """
    layers = {name: module for name, module in model.named_modules() if is_layer(module)}
    if choice is None:
        return set(layers)
    if callable(choice):
        chosen = {name for name, module in layers.items() if choice(name, module)}
        if not chosen and layers:
            raise ValueError(f"requires a predicate that chooses a layer, got none of {', '.join(layers)}")
        return chosen
    patterns = [choice] if isinstance(choice, str) else list(choice)
    chosen = set()
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(
                "layers must be chosen by names, patterns such as 'blocks.*.mlp*', or a predicate of a name and a "
                f"module, got {type(pattern).__name__}"
            )
        found = {name for name in layers if fnmatch.fnmatchcase(name, pattern)}
        if not found:
            raise ValueError(f"requires the name or pattern of a layer of {', '.join(layers)}, got '{pattern}'")
        chosen |= found
    return chosen


def _write(
    model: nn.Module, chosen: set[str], calls: dict[str, list[_Call]], misses: dict[str, str]
) -> tuple[str, dict[str, str], list[str]]:
    """Functions for `kas-extract`, the path that each is for, and that of each line."""
    text, lines = "", [""]
    functions: dict[str, str] = {}
    for name, module in model.named_modules():
        if name not in chosen:
            continue
        shapes = calls.get(name, [])
        try:
            if not shapes:
                raise NoLayerError("the network does not call it for this example")
            if len(set(shapes)) > 1:
                raise NoLayerError(
                    f"requires data of one shape, got {shapes[0].data} and "
                    f"{next(s.data for s in shapes if s != shapes[0])}"
                )
            for _ in shapes:
                function = f"layer{len(functions)}"
                text += (written := write_layer(function, name, module, *shapes[0]))
                lines += [name] * written.count("\n")
                functions[function] = name
        except NoLayerError as reason:
            misses[name] = str(reason)
    return text, functions, lines


def extract(
    model: nn.Module,
    example: Any,
    *,
    sites: LayerChoice | None = None,
    coefficients: str = "g=4",
    flops_ratio: float = 0.5,
    min_flops_ratio: float = 0.1,
    stem_channels: int = 4,
) -> Sites:
    """Finds the convolutions and linear layers of a network, and writes a search problem for each kind of them.

    `example` is data for the network, a tensor or a tuple of arguments; it is run once, in evaluation mode, to see the
    shapes. `sites` are the layers that are wanted (all): names of modules, patterns of them such as `blocks.*.mlp*`, or
    a predicate of the name and the module. The other options are those of the pass `kas-extract`
    (docs/reference/passes.md), which does the work: more coefficients for every problem; how many of the FLOPs of the
    layers an operator may have, at most and at least; up to how many input channels a layer is a stem, with a problem
    of its own.

    Raises `ValueError` when the network does not take the example, or has no such layer, or a name is of none.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a torch.nn.Module, got {type(model).__name__}")
    for value in example if isinstance(example, (list, tuple)) else (example,):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"the example must be a tensor or a tuple of tensors, got {type(value).__name__}")
    chosen = choose_layers(model, sites)
    calls = _observe(model, example)
    misses: dict[str, str] = {}
    text, functions, lines = _write(model, chosen, calls, misses)
    module = Module(text, "<layers>")
    options = f"flops-ratio={flops_ratio} min-flops-ratio={min_flops_ratio} stem-channels={stem_channels}"
    module.run(f'kas-extract{{coefficients="{coefficients}" {options}}}')
    for remark in module.remarks:
        if place := re.match(r"<layers>:(\d+)", remark.location):
            misses[lines[int(place[1])]] = remark.message.removeprefix("not extracted: ")
    spaces = module.spaces
    found: dict[str, Site] = {}
    modules = dict(model.named_modules())
    for function, name in functions.items():
        mark = re.search(r"kas\.site = \{binding = (\d+) : i64.*?space = @([\w$.]+)\}", module.text_of(function))
        if name in found or not mark:
            continue
        weight, shapes = modules[name].weight, calls[name]
        # Each output is a sum over what one output channel has of the weight.
        macs = math.prod(shapes[0].output) * (weight.numel() // weight.shape[0])
        found[name] = Site(
            name,
            mark[2],
            spaces[mark[2]].bindings[int(mark[1])],
            *shapes[0],
            2 * macs * len(shapes),
            weight.numel(),
            len(shapes),
        )
    if not found:
        reasons = "".join(f"\n  {name or 'the network itself'}: {reason}" for name, reason in misses.items())
        raise ValueError(
            "the network has no layer that an operator can take the place of: these are torch.nn.Conv1d, Conv2d and "
            f"Linear that keep the size, or divide it by the stride{'; none of:' if reasons else ''}{reasons}"
        )
    module = Module("".join(space.text for space in spaces.values()), "<spaces>")
    return Sites(module, module.spaces, found, misses)


def fit_strides(operator: Operator, site: Site, given: Mapping[str, int]) -> tuple[Operator, dict[str, int]]:
    """The operator with the strides that the site has and it does not, and the values of their symbols.

    It is the operator itself where the shapes show none.
    """
    sizes, shapes = operator.sizes, (site.data_shape, site.output_shape)
    if len(sizes["data"]) != len(shapes[0]) or len(sizes["output"]) != len(shapes[1]):
        return operator, dict(given)
    primaries, coefficients = operator.symbols
    dims: dict[int, list[int]] = {}
    for dim, (whole, few) in enumerate(zip(*shapes)):
        same = dim < len(sizes["output"]) and sizes["data"][dim] == sizes["output"][dim]
        if same and sizes["data"][dim] in primaries and few and whole % few == 0 and whole > few:
            dims.setdefault(whole // few, []).append(dim)
    values = dict(given)
    module = operator.alone().module
    names = (name for name in ("s", "t", "u", *(f"s{n}" for n in range(9))) if name not in primaries + coefficients)
    for (factor, strided), name in zip(dims.items(), names):
        module.run(f"kas-stride-outputs{{dims={','.join(map(str, strided))} symbol={name}}}")
        values.setdefault(name, factor)
    return (module[operator.name] if dims else operator), values


def get_binding(
    operator: Operator | OperatorSequence, site: Site, layer: nn.Module, given: Mapping[str, int]
) -> dict[str, int]:
    """The symbols of the operator at the site: what is given, what the shapes say, what the layer has."""
    primaries, coefficients = operator.symbols
    if unknown := [name for name in given if name not in primaries + coefficients]:
        raise ValueError(f"requires symbols of the operator in the binding, got '{unknown[0]}'")
    sizes = operator.sizes
    data_shape, output_shape = site.data_shape, site.output_shape
    if isinstance(layer, nn.Linear) and isinstance(operator, Operator) and is_row_operator(operator):
        # What is before the channels are rows, as `KasModule` has it.
        data_shape, output_shape = ((math.prod(shape[:-1]), shape[-1]) for shape in (data_shape, output_shape))
    binding: dict[str, int] = {}
    for what, symbolic, shape in (
        ("data", sizes["data"], data_shape),
        ("output", sizes["output"], output_shape),
    ):
        if len(symbolic) != len(shape):
            raise ValueError(f"requires rank {len(symbolic)} for the {what}, got {len(shape)}")
        for size, extent in zip(symbolic, shape):
            if size in primaries and binding.setdefault(size, extent) != extent:
                raise ValueError(f"requires one value for symbol '{size}', got {binding[size]} and {extent}")
    for name in primaries + coefficients:
        if name in given:
            binding[name] = given[name]
        elif name not in binding:
            if name not in site.binding:
                raise ValueError(
                    f"requires a value for symbol '{name}', which the layer does not have; give it by binding="
                )
            binding[name] = site.binding[name]
    shapes = operator.shapes(binding)
    for what, actual, expected in (
        ("data", shapes.data, data_shape),
        ("output", shapes.output, output_shape),
    ):
        if actual != expected:
            raise ValueError(f"requires the shape {actual} for the {what}, got {expected}")
    return binding


def _select(
    operator: Operator | OperatorSequence, sites: Sites | Sequence[Site], space: str | None
) -> tuple[list[Site], bool]:
    """The sites to replace, and whether the caller named them."""
    if not isinstance(sites, Sites):
        return list(sites), True
    if space is None:
        origin = re.search(r'kas\.origin = "([^"]*)"', str(operator))
        # Sequences for the layers of the space @conv2d are found in the space @conv2d_sequences.
        names = [origin[1], origin[1].removesuffix("_sequences")] if origin else []
        space = next((name for name in names if name in sites.spaces), None)
        if space is None:
            return list(sites.sites.values()), False
    space = space.removeprefix("@")
    if space not in sites.spaces:
        raise ValueError(f"the network has no layers of the space '{space}', only of {', '.join(sites.spaces)}")
    return [site for site in sites.sites.values() if site.space == space], True


def substitute(
    model: nn.Module,
    operator: Operator | OperatorSequence,
    sites: Sites | Sequence[Site] | None = None,
    *,
    example: Any = None,
    space: str | None = None,
    binding: Binding = None,
    backend: str = "compiled",
    threads: int = 0,
    strict: bool = True,
) -> nn.Module:
    """A copy of the network with the operator in place of layers, as `KasModule`s with new weights.

    Of a `kas.OperatorSequence` they are `SequenceModule`s.

    `sites` is what `extract` gave, or a list of some of its sites; without it, it is extracted by `example`. Of all
    sites, those of `space` are replaced; without that, of the space that the operator was found for; or else all that
    it fits. In a layer with a stride, an operator that keeps the size computes every so many points only. Symbols
    that the shapes do not say have the values of the layer; `binding` gives others. The bias of a
    layer stays. `backend` and `threads` are those of `KasModule`.

    Raises `ValueError` when the operator fits no site, or, unless `strict` is false, not all that were named.
    """
    if not isinstance(operator, (Operator, OperatorSequence)):
        raise TypeError(
            "expected a kas.Operator, such as kas.operator('conv2d'), or a kas.OperatorSequence, "
            f"got {type(operator).__name__}"
        )
    if sites is None:
        if example is None:
            raise TypeError("substitute needs the sites that extract found, or an example to find them by")
        sites = extract(model, example)
    selected, named = _select(operator, sites, space)
    given = parse_binding(binding)
    modules = dict(model.named_modules())
    chosen: dict[str, tuple[Operator | OperatorSequence, dict[str, int]]] = {}
    misfits: dict[str, str] = {}
    for site in selected:
        if not is_layer(modules.get(site.name, model)):
            raise ValueError(f"the network has no layer '{site.name}': these sites are of another one")
        try:
            fitting, values = operator, dict(given)
            if isinstance(operator, Operator) and set(given) <= {name for names in operator.symbols for name in names}:
                fitting, values = fit_strides(operator, site, given)
            chosen[site.name] = fitting, get_binding(fitting, site, modules.get(site.name, model), values)
        except (ValueError, Error) as error:
            misfits[site.name] = str(error)
    if not chosen or (misfits and named and strict):
        reasons = "".join(f"\n  {name or 'the network itself'}: {reason}" for name, reason in misfits.items())
        raise ValueError(
            f"the operator '{operator.name}' does not fit {'these' if chosen else 'any of these'} layers:{reasons}"
        )
    return _replace(model, chosen, backend, threads)


def _replace(
    model: nn.Module,
    chosen: dict[str, tuple[Operator | OperatorSequence, dict[str, int]]],
    backend: str,
    threads: int,
) -> nn.Module:
    result = copy.deepcopy(model)
    originals = dict(result.named_modules())
    replacements: dict[nn.Module, nn.Module] = {}
    for name, (operator, values) in chosen.items():
        layer = originals[name]
        bias_dim = None if layer.bias is None else (-1 if isinstance(layer, nn.Linear) else 1)
        made = SequenceModule if isinstance(operator, OperatorSequence) else KasModule
        module = made(operator, values, backend, threads=threads, bias_dim=bias_dim)  # type: ignore[arg-type]
        module = module.to(layer.weight.device, layer.weight.dtype).train(layer.training)
        if bias_dim is not None:
            (module[-1] if isinstance(module, SequenceModule) else module).bias = layer.bias
        replacements[layer] = module
    if result in replacements:
        return replacements[result]
    # A module may have several names.
    for parent in list(result.modules()):
        for name, child in list(parent._modules.items()):
            if child in replacements:
                setattr(parent, name, replacements[child])
    return result
