# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on halves, and on integers that are unsigned or of few bits, as PyTorch computes them.

PyTorch's kernels compute halves in float32 and round each result, and integers wrap around. So an operation on these is
the same operation on float32, int32 or int64, between conversions: what is simpler than it keeps the wide type. And
torch-mlir, which confuses signs, has no unsigned elements: their bits are those of signed ones.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from ._quantized import compute_quantized, is_quantized

aten = torch.ops.aten

WIDE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
    torch.uint8: torch.int32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
}
"""What operations on elements of a type are computed in."""
_SIGNED = {torch.uint8: torch.int8, torch.uint16: torch.int16, torch.uint32: torch.int32}
"""Of the same bits."""
_HALVES = (torch.float16, torch.bfloat16)
_MOVES = (
    aten._unsafe_view.default,
    aten.cat.default,
    aten.clone.default,
    aten.flip.default,
    aten.lift_fresh_copy.default,
    aten.roll.default,
)
"""That do not look at what they move, as views do."""
_SIGNED_MOVES = (aten.embedding.default, aten.gather.default, aten.index_select.default)
"""The same, for elements that are not unsigned."""
_OF_THE_TYPE = (
    aten.grid_sampler_2d,
    aten.grid_sampler_2d_backward,
    aten.grid_sampler_3d,
    aten.grid_sampler_3d_backward,
    aten.linalg_matrix_exp,
    aten.mvlgamma,
    aten.nextafter,
    aten.soft_margin_loss,
    aten.soft_margin_loss_backward,
)
"""Whose results differ by more than rounding, as what they compute on the way has the type as well."""
_CONVERT = torch.ops.prims.convert_element_type.default
"""What decompositions make of `_to_copy`."""
_COMPARISONS = (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge)
_ROUNDED = (
    *(aten.eq.Scalar, aten.ne.Scalar, aten.lt.Scalar, aten.le.Scalar, aten.gt.Scalar, aten.ge.Scalar),
    *(aten.remainder.Scalar, aten.fmod.Scalar, aten.pow.Tensor_Scalar),
    *(aten.remainder.Scalar_Tensor, aten.pow.Scalar),
)
"""Whose scalars are rounded as elements are. Those of sums, products and quotients are not."""


_WITH_STATE = ("run_and_save_rng_state", "run_with_rng_state")
"""Of checkpoints: run a given operation, and keep or set the state from which random numbers are drawn."""


def is_random(target: Any, arguments: Sequence[Any]) -> bool:
    """Whether what an operation draws follows from torch.manual_seed."""
    if isinstance(target, torch._ops.HigherOrderOperator):
        return str(target) in _WITH_STATE
    # Attention has an argument for dropout.
    is_attention = "scaled_dot_product" in str(target) and not any(arguments[3:4])
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()) and not is_attention


def convert(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`x.to(dtype)` in the steps in which PyTorch goes, for numbers that are too large as well."""
    if x.dtype in _HALVES and dtype != torch.float32:
        x = x.to(torch.float32)
    if dtype in _HALVES and x.dtype != torch.bool:
        x = x.to(torch.float32)
    elif dtype in WIDE and x.dtype.is_floating_point:
        x = x.to(torch.int64 if dtype in (torch.uint8, torch.uint32) else torch.int32)
    return x.to(dtype)


def _to_copy(x: torch.Tensor, *, dtype: torch.dtype | None = None, **options: Any) -> torch.Tensor:
    if dtype is None or dtype == x.dtype:
        copy: torch.Tensor = aten._to_copy.default(x, **options)
        return copy
    layout = options.get("memory_format")
    return convert(x if layout is None else x.contiguous(memory_format=layout), dtype)


def _find_common(tensors: Sequence[torch.Tensor]) -> torch.dtype | None:
    """The type, where it is one of these, that an operation brings all tensors to.

    A single number changes it only where it is a float and they are integers.
    """
    common, *others = [tensor.dtype for tensor in tensors if tensor.dim()] or [tensor.dtype for tensor in tensors]
    for dtype in others:
        common = torch.promote_types(common, dtype)
    if not common.is_floating_point and any(tensor.dtype.is_floating_point for tensor in tensors):
        return None
    return common if common in WIDE else None


def _round(value: float, dtype: torch.dtype) -> float:
    # Not traced.
    with _disable_current_modes():
        return torch.tensor(value, dtype=dtype).item()


def _round_scalar(value: Any, dtype: torch.dtype, target: Any) -> Any:
    """A number beside elements of a type."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if dtype in _HALVES:
        return _round(value, dtype) if target in _ROUNDED else value
    if isinstance(value, float):
        return value
    limits = torch.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise NotImplementedError(f"requires numbers of {dtype} beside such elements, got {value} in {target}")
    return value


def _round_first(value: Any, dtype: torch.dtype) -> Any:
    """What is divided is rounded as elements are, also where it is a number; a divisor is not."""
    if not isinstance(value, torch.Tensor):
        return _round(value, dtype)
    return value if value.dim() or value.dtype == dtype else convert(value, dtype)


class _NarrowTypes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    supports_higher_order_operators = True

    def __torch_dispatch__(
        self, target: Any, types: Any, arguments: tuple[Any, ...] = (), options: dict[str, Any] | None = None
    ) -> Any:
        options = options or {}
        if target is aten._to_copy.default:
            return _to_copy(*arguments, **options)
        if is_quantized(target):
            # Step by step: these look at the types of their arguments.
            with self:
                return compute_quantized(target, arguments, options)
        tensors = [t for t in tree_leaves((arguments, options)) if isinstance(t, torch.Tensor)]
        dtype = options.get("dtype")
        is_narrow = dtype in WIDE or any(t.dtype in WIDE for t in tensors)
        is_moved = target in _SIGNED_MOVES and not any(t.dtype in _SIGNED for t in tensors)
        if not is_narrow or is_moved or _is_left(target, arguments):
            return target(*arguments, **options)
        return _compute_wide(target, tensors, arguments, options)


def _is_left(target: Any, arguments: Sequence[Any]) -> bool:
    """Whether an operation is what it is for all types."""
    if not isinstance(target, torch._ops.OpOverload) or target in _MOVES:
        return True
    return target.is_view or is_random(target, arguments)


def _compute_wide(
    target: Any, tensors: Sequence[torch.Tensor], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    if target.overloadpacket in _OF_THE_TYPE or target._schema.is_mutable:
        raise NotImplementedError(f"requires an operation that is the same in wider types, got {target}")
    with disable_proxy_modes_tracing():
        expected = target(*arguments, **options)
    dtype = options.get("dtype")
    is_pointwise = torch.Tag.pointwise in target.tags or target.overloadpacket in (aten.floor_divide, aten.isin)
    common = _find_common(tensors) if is_pointwise and tensors else None

    if target is aten.floor_divide.default and common in _HALVES:
        arguments = (_round_first(arguments[0], common), *arguments[1:])

    def widen(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return _round_scalar(value, common, target) if common else value
        if dtype in WIDE:
            value = convert(value, dtype)
        # Single numbers, and integers beside halves.
        is_rounded = not value.dtype.is_floating_point or target.overloadpacket in _COMPARISONS
        if common and value.dtype not in (torch.bool, common) and is_rounded:
            value = convert(value, common)
        return convert(value, WIDE[value.dtype]) if value.dtype in WIDE else value

    if dtype in WIDE:
        options = options | {"dtype": WIDE[dtype]}
    if common in _HALVES and "alpha" in options:
        options = options | {"alpha": _round(options["alpha"], common)}
    if target is aten.nan_to_num.default and common in _HALVES:
        arguments, options = arguments[:1], _replace_infinities(common, *arguments[1:], **options)
    wide = tree_map(widen, (arguments, options))
    try:
        with _without_log():
            found = target(*wide[0], **wide[1])
    except NotImplementedError:
        raise
    except (AssertionError, RuntimeError):
        # It is one of bytes, or of halves, alone.
        return target(*arguments, **options)
    return _narrow(found, expected)


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """Within it, PyTorch prints no errors of operations that are tried."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    was_disabled, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was_disabled


def _replace_infinities(
    dtype: torch.dtype, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> dict[str, float | None]:
    """The options of `torch.nan_to_num`, with the largest numbers of a type."""
    limits = torch.finfo(dtype)
    large = {"posinf": limits.max if posinf is None else posinf, "neginf": limits.min if neginf is None else neginf}
    return {"nan": nan, **large}


def _narrow(found: Any, expected: Any) -> Any:
    if isinstance(expected, torch.Tensor):
        return found if found.dtype == expected.dtype else convert(found, expected.dtype)
    if isinstance(expected, (tuple, list)):
        return type(expected)(_narrow(one, other) for one, other in zip(found, expected))
    return found


def narrow_types(graph: Any) -> contextlib.AbstractContextManager[Any]:
    """Within it, what the graph computes of halves and integers of few bits is computed, and traced, in wider types.

    Of a function it is not known whether there are such.
    """
    if isinstance(graph, fx.GraphModule):
        values = [node.meta.get("val") for node in graph.graph.nodes]
        has_quantized = any(is_quantized(node.target) for node in graph.graph.nodes)
        if not has_quantized and not any(isinstance(v, torch.Tensor) and v.dtype in WIDE for v in tree_leaves(values)):
            return contextlib.nullcontext()
    mode: contextlib.AbstractContextManager[Any] = _NarrowTypes()  # type: ignore[no-untyped-call]
    return mode


def keep_doubles(graph: fx.GraphModule) -> None:
    """Makes numbers that doubles are subtracted from, or divide, doubles: torch-mlir takes first numbers for floats."""
    for node in graph.graph.nodes:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or node.op != "call_function" or not node.args:
            continue
        if isinstance(node.args[0], float) and value.dtype == torch.float64 and len(node.args) > 1:
            with graph.graph.inserting_before(node):
                number = graph.graph.call_function(aten.full.default, ([], node.args[0]), {"dtype": value.dtype})
            number.meta["val"] = value.new_empty(())
            node.args = (number, *node.args[1:])


def replace_unsigned(graph: fx.GraphModule) -> None:
    """Gives unsigned elements the signed type of the same bits, and lets conversions see to their values."""
    for node in list(graph.graph.nodes):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype not in _SIGNED:
            continue
        signed = _SIGNED[value.dtype]
        # Without what else says the type.
        node.meta = {"val": value.to(signed)}
        if node.target is aten._to_copy.default:
            node.kwargs = node.kwargs | {"dtype": signed}
        elif node.target is _CONVERT:
            node.args = (node.args[0], signed)
        if node.op == "get_attr":
            constant = getattr(graph, str(node.target))
            setattr(graph, str(node.target), constant.view(signed))
        for user in list(node.users):
            is_converted = user.target in (aten._to_copy.default, _CONVERT)
            if is_converted and user.meta["val"].dtype not in (value.dtype, torch.bool):
                user.replace_input_with(node, _extend(graph.graph, node, user, value))


def _extend(graph: fx.Graph, node: fx.Node, user: fx.Node, value: torch.Tensor) -> fx.Node:
    """The values of unsigned elements, as wider ones."""
    wide = value.to(WIDE[value.dtype])
    with graph.inserting_before(user):
        extended = graph.call_function(aten._to_copy.default, (node,), {"dtype": wide.dtype})
        extended.meta["val"] = wide
        bits = graph.call_function(aten.bitwise_and.Scalar, (extended, torch.iinfo(value.dtype).max))
        bits.meta["val"] = wide
    return bits
