# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks as MLIR, by torch-mlir."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from .. import _cache
from .._arguments import set_attributes
from .._errors import need
from .._module import Module
from ._comparisons import replace_comparisons
from ._decompositions import get_table
from ._graph_import import make_key
from ._kept_operators import lower_with_operators
from ._modules import KasModule
from ._tracing import trace_alone


class Exported(NamedTuple):
    """A network as MLIR."""

    module: Module
    """A module with one function, `@forward`, in linalg on tensors: of the data and all parameters and buffers."""
    tensors: dict[str, torch.Tensor]
    """The arguments after the data, in their order, by their names (`kas.name`)."""


class _Lifted(nn.Module):
    """A network as a function of its data and of its parameters."""

    def __init__(self, network: nn.Module, names: list[str], count: int, dropout: bool):
        super().__init__()
        # In a tuple, where PyTorch does not look for parameters.
        self.network = (network,)
        self.names = names
        self.count = count
        self.dropout = dropout
        self.copies_data = False
        """Whether the network gets copies of its data, which it may overwrite."""

    def copy(self) -> _Lifted:
        """One whose modules keep what they change to themselves; the tensors are the same."""
        network = self.network[0]
        shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
        return _Lifted(copy.deepcopy(network, shared), self.names, self.count, self.dropout).eval()

    def forward(self, *arguments: torch.Tensor) -> Any:
        values = dict(zip(self.names, arguments[self.count :]))
        data = tuple(x.clone() if self.copies_data else x for x in arguments[: self.count])
        if not self.dropout:
            return torch.func.functional_call(self.network[0], values, data)
        # What comes after the tensors of the network stands for its dropouts.
        with _Dropouts(list(arguments[self.count + len(self.names) :])):
            return torch.func.functional_call(self.network[0], values, data)


class _Dropouts(TorchFunctionMode):
    """Multiplies by a tensor of rank 0 in place of each dropout, and keeps their probabilities."""

    def __init__(self, markers: list[torch.Tensor] | None = None):
        super().__init__()
        self.markers = None if markers is None else iter(markers)
        self.probabilities: list[float] = []

    def __enter__(self) -> _Dropouts:
        # Functions that PyTorch writes in Python, such as attention, call others without the mode.
        for original, rank in _DROPOUTS.items():
            setattr(functional, original.__name__, partial(self._drop, rank))
        functional.scaled_dot_product_attention = self._attend
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)  # type: ignore[no-untyped-call]
        for original in _DROPOUTS:
            setattr(functional, original.__name__, original)
        functional.scaled_dot_product_attention = _ATTENTION

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None
    ) -> Any:
        keywords = keywords or {}
        if function in _DROPOUTS:
            return self._drop(_DROPOUTS[function], *arguments, **keywords)
        if function is _ATTENTION:
            return self._attend(*arguments, **keywords)
        if function in _OTHER_DROPOUTS and _is_training(*arguments, **keywords):
            raise ValueError(f"'{function.__name__}' has no equivalent in kas; use dropout=False, or nn.Dropout")
        return function(*arguments, **keywords)

    def _mark(self, value: torch.Tensor, probability: float) -> torch.Tensor:
        self.probabilities.append(float(probability))
        return value if self.markers is None else value * next(self.markers)

    def _drop(
        self, rank: int, input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        if not training or p == 0:
            return input
        if not 0 <= p < 1:
            raise ValueError(f"dropout requires a probability of at least 0 and less than 1, got {p}")
        if rank == 0:
            return self._mark(input, p)
        # Whole channels: of samples, where there are any.
        channels = 2 if input.dim() == rank + 2 else 1
        ones = torch.ones_like(input[(slice(None),) * channels + (slice(0, 1),) * (input.dim() - channels)])
        return input * self._mark(ones, p)

    def _attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if dropout_p == 0:
            return _ATTENTION(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)
        if enable_gqa:
            raise ValueError("attention with dropout and with groups of queries has no equivalent in kas")
        scores = (query * (query.shape[-1] ** -0.5 if scale is None else scale)) @ key.transpose(-2, -1)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        elif attn_mask is not None:
            scores = scores + attn_mask
        return self._drop(0, torch.softmax(scores, -1), dropout_p) @ value


_DROPOUTS = {
    functional.dropout: 0,
    functional.dropout1d: 1,
    functional.dropout2d: 2,
    functional.dropout3d: 3,
}
"""How many dimensions there are after the channels, where whole channels are left out."""

_ATTENTION = functional.scaled_dot_product_attention

_OTHER_DROPOUTS = {functional.alpha_dropout, functional.feature_alpha_dropout, functional.rrelu}


def _is_training(*arguments: Any, training: bool = False, **_: Any) -> bool:
    return training or any(argument is True for argument in arguments[2:])


def _train_all_but_normalizations(network: nn.Module) -> None:
    """Dropout and what looks at `training` as in training, normalizations by their running statistics."""
    network.train()
    for module in network.modules():
        if isinstance(module, (nn.modules.batchnorm._NormBase, KasModule)):
            module.eval()


class _Tracer(fx.Tracer):
    """Leaves operators as modules: what they do depends on the shape of their data."""

    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        return isinstance(module, KasModule) or super().is_leaf_module(module, name)


def _prepare(model: nn.Module, fold_batch_norms: bool, keep_operators: bool) -> nn.Module:
    """A copy in evaluation mode, operators as PyTorch code unless they are kept, batch norms folded into weights."""
    model = copy.deepcopy(model).eval()
    for module in model.modules():
        if isinstance(module, KasModule):
            module.backend = module.chosen = "compiled" if keep_operators else "pytorch"
            module._make_functions()
    if fold_batch_norms and any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules()):
        from torch.fx.experimental.optimization import fuse

        try:
            with trace_alone():
                model = fuse(fx.GraphModule(model, _Tracer().trace(model)), no_trace=True)
        except Exception as error:
            raise ValueError(
                f"batch norms cannot be folded, since the network cannot be traced ({error}); use "
                "fold_batch_norms=False"
            ) from error
    return model


def _make_key(lifted: _Lifted, arguments: tuple[torch.Tensor, ...], kind: str) -> str | None:
    """The key of what `_lower` makes; None where the network has none.

    Of the graph that PyTorch records of one call, which takes a tenth of the time that it takes to export it.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    if not _cache.get_limit():
        return None
    try:
        # Before PyTorch writes operations by others: what is exported begins there, too.
        graph = make_fx(lifted.copy(), tracing_mode="fake", pre_dispatch=True)(*arguments)
    except Exception:
        # The export says why, or can do it.
        return None
    return make_key(graph, arguments, kind)


class _StateError(ValueError):
    """The network has a state."""


def _check_state(program: torch.export.ExportedProgram, names: Sequence[str]) -> None:
    """Raises where a call changes tensors of the network, which the next one reads; `names` of all inputs, "" of data.

    Its data it may overwrite, as rectifiers in place do.
    """
    signature = program.graph_signature
    places = {name: place for place, name in enumerate(signature.user_inputs)}
    changed = [names[places[name]] for name in signature.user_inputs_to_mutate.values()]
    changed += signature.buffers_to_mutate.values()
    if changed := [name for name in changed if name]:
        raise _StateError(
            f"requires a network that computes the same in each call, got one that changes '{changed[0]}'"
        )


def _lower(lifted: _Lifted, arguments: tuple[torch.Tensor, ...], names: Sequence[str], keep_operators: bool) -> str:
    """The network in linalg on tensors, as text; as it was kept where the same one was lowered before."""
    key = _make_key(lifted, arguments, f"export without state {keep_operators}")
    if key and (found := _cache.load_bytes(key)):
        return found.decode()
    # Not before: importing it takes almost as long as the graph.
    from torch_mlir import fx as importer

    program = torch.export.export(lifted, arguments, strict=False).run_decompositions(get_table())
    if program.graph_signature.user_inputs_to_mutate or program.graph_signature.buffers_to_mutate:
        _check_state(program, names)
        # What is overwritten would be a result, before the others.
        lifted.copies_data = True
        program = torch.export.export(lifted, arguments, strict=False).run_decompositions(get_table())
    replace_comparisons(program.graph_module)
    lowered = importer.export_and_import(
        program,
        output_type="raw" if keep_operators else "linalg-on-tensors",
        func_name="forward",
        decomposition_table={},
    )
    text = lower_with_operators(lowered) if keep_operators else str(lowered)
    if key:
        _cache.store_bytes(key, text.encode())
    return text


def to_mlir(
    model: nn.Module,
    example: Any,
    *,
    fold_batch_norms: bool = True,
    dropout: bool = False,
    keep_operators: bool = False,
) -> Exported:
    """The network in evaluation mode as MLIR (linalg on tensors), by torch-mlir, for data of the shapes of `example`.

    No weights are inside: parameters and buffers are arguments that say their names, so that `kas-extract` finds the
    layers: `exported.module.run("kas-extract")`. `exported.module.compile("forward")` compiles it; the function takes
    the data and `exported.tensors`. Buffers, and parameters that require no gradient, have the attribute
    `kas.constant`: training leaves them as they are. Running statistics of batch norms have their momentum
    (`kas.momentum`; where it is None, `num_batches_tracked` is among the tensors); those of norms in evaluation, of a
    network in training, are constant, too.

    `keep_operators`: each `KasModule` is a `kas.apply` of its operator, which the pipelines lower by the strategies of
    operators, and not the products and sums of its PyTorch code.

    A quantized network, as PyTorch's PT2E flow makes it (`torch.export.load(file).module()`), computes its layers
    in int8 ([`-kas-fuse-dequantize`](../reference/passes.md#-kas-fuse-dequantize)); zero points that are 0 are no
    arguments.

    `dropout`: the network as in training, but for normalizations, with `kas.dropout` for `nn.Dropout`, `Dropout1d` to
    `Dropout3d`, their functions and the dropout of attention: for `-kas-training-step`.

    Raises `kas.MissingExtraError` without torch-mlir, `ValueError` when it cannot express the network, and when a call
    of the network changes its buffers: functions have no state.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a torch.nn.Module, got {type(model).__name__}")
    need("torch_mlir", "torch-mlir")
    from torch.nn.attention import SDPBackend, sdpa_kernel

    data = tuple(example) if isinstance(example, (list, tuple)) else (example,)
    network = _prepare(model, fold_batch_norms, keep_operators)
    tensors = {name: tensor.detach() for name, tensor in network.named_parameters()}
    norms = _find_norms(model)
    for name, value in network.named_buffers():
        if name.endswith("num_batches_tracked"):
            # Evaluation never reads how many batches there were, training where statistics are means over all of them.
            norm = norms.get(name.removesuffix(".num_batches_tracked"))
            if norm is not None and norm.momentum is None:
                tensors[name] = value.to(torch.float32)
        elif not _are_zero_points(value):
            tensors[name] = value
    lifted = _Lifted(network, list(tensors), len(data), dropout).eval()
    probabilities: list[float] = []
    if dropout:
        _train_all_but_normalizations(network)
        probabilities = _find_dropouts(network, data)
    markers = [torch.ones(()) for _ in probabilities]
    try:
        # Attention as products and a softmax.
        with trace_alone(), _without_fast_path(), torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            names = [*([""] * len(data)), *tensors, *([""] * len(markers))]
            text = _lower(lifted, (*data, *tensors.values(), *markers), names, keep_operators)
    except _StateError:
        raise
    except Exception as error:
        _check_runs(network, data)
        raise ValueError(f"torch-mlir cannot express this network: {type(error).__name__}: {error}") from error
    attributes: list[dict[str, Any]] = [{"kas.name": f"input{index or ''}"} for index in range(len(data))]
    for attribute in attributes[1:]:
        attribute["kas.data"] = None
    trained = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    for name in tensors:
        attributes.append({"kas.name": name} | _describe_training(name, name in trained, norms, model.training))
    attributes += [{"kas.dropout": probability} for probability in probabilities]
    exported = Module(set_attributes(text, attributes), "<network>")
    if any(tensor.dtype in (torch.int8, torch.uint8) for tensor in tensors.values()):
        exported.run("kas-fuse-dequantize")
    return Exported(exported.run("kas-mark-dropout") if dropout else exported, tensors)


def _check_runs(network: nn.Module, data: tuple[Any, ...]) -> None:
    """A `ValueError` where it is the network that does not take the example, and not what comes after."""
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            network(*data)
    except Exception as error:
        types = ", ".join(f"{tuple(one.shape)} {one.dtype}" for one in data if isinstance(one, torch.Tensor))
        raise ValueError(f"requires data that the network takes, got {types}: {error}") from error


@contextlib.contextmanager
def _without_fast_path() -> Iterator[None]:
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def _find_norms(model: nn.Module) -> dict[str, Any]:
    """The batch norms with running statistics, by name."""
    kind = nn.modules.batchnorm._NormBase
    return {name: norm for name, norm in model.named_modules() if isinstance(norm, kind) and norm.track_running_stats}


def _describe_training(name: str, is_trained: bool, norms: dict[str, Any], training: bool) -> dict[str, Any]:
    """The attributes of a tensor that say how `-kas-training-step` changes it."""
    prefix, _, kind = name.rpartition(".")
    if prefix in norms and kind in ("running_mean", "running_var", "num_batches_tracked"):
        # A norm in evaluation in a network in training is frozen.
        if training and not norms[prefix].training:
            return {"kas.constant": None}
        momentum = norms[prefix].momentum
        return {"kas.momentum": float(momentum)} if kind == "running_mean" and momentum is not None else {}
    return {} if is_trained else {"kas.constant": None}


def _are_zero_points(buffer: torch.Tensor) -> bool:
    """Whether a buffer can be the zero points of weights, which the code has to know: those of quantized networks."""
    return buffer.dtype in (torch.int32, torch.int64) and buffer.dim() == 1 and not bool(buffer.any())


def _find_dropouts(network: nn.Module, data: tuple[Any, ...]) -> list[float]:
    """The probabilities of the dropouts, in the order in which they are applied."""
    state = {name: value.clone() for name, value in network.named_buffers()}
    with torch.no_grad(), torch.random.fork_rng(devices=[]), _Dropouts() as dropouts:
        torch.func.functional_call(network, state, data)
    return dropouts.probabilities
