# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ONNX on graphs, sequences and optional values: all that is decided when a model is read."""

from __future__ import annotations

from typing import Any

import numpy
import onnx
import torch
from torch.utils._python_dispatch import _disable_current_modes

from .._graph import Value, Values, make_known
from .._node import Node, constant, define

MOST_ITERATIONS = 1024
"""The iterations of a loop, each of which is computed by code of its own."""


def _run_body(node: Node, name: str, inputs: list[Any]) -> list[Any]:
    body: onnx.GraphProto = node.get(name)
    scope = dict(node.scope)
    # Names of the body hide those around it.
    for tensor in body.initializer:
        scope.pop(tensor.name, None)
    for value, given in zip(body.input, inputs):
        scope[value.name] = given
    return node.reader.run(body, scope)


def _choose(node: Node, condition: torch.Tensor, a: Any, b: Any) -> Any:
    """One of two values, by a condition that is computed."""
    if not isinstance(a, Value) or not isinstance(b, Value) or a.kind != b.kind or a.tensor.shape != b.tensor.shape:
        raise node.refuse(
            "requires a condition that is known when the model is read, or branches whose results have the same shapes"
        )
    return Value(torch.where(condition.reshape(()), a.tensor, b.tensor), a.kind)


@define("If", moves=True)
def _if(node: Node, condition: torch.Tensor) -> list[Any]:
    if node.inputs[0].real is not None:
        return _run_body(node, "then_branch" if node.read(0).reshape(-1)[0] else "else_branch", [])
    branches = [_run_body(node, name, []) for name in ("then_branch", "else_branch")]
    return [_choose(node, condition, a, b) for a, b in zip(*branches)]


def _is_true(value: Any) -> bool | None:
    """None where it is not known."""
    if value is None:
        return True
    if value.real is None:
        return None
    with _disable_current_modes():
        return bool(value.real.reshape(-1)[0])


@define("Loop", moves=True)
def _loop(node: Node, *_: Any) -> list[Any]:
    count = node.read_ints(0)[0] if node.is_given(0) else MOST_ITERATIONS + 1
    body: onnx.GraphProto = node.get("body")
    states = list(node.inputs[2:])
    num_scans = len(body.output) - 1 - len(states)
    scans: list[list[Value]] = [[] for _ in range(num_scans)]
    going = node.inputs[1] if node.is_given(1) else None
    for iteration in range(count):
        state = _is_true(going)
        if state is False:
            break
        if iteration >= MOST_ITERATIONS:
            raise node.refuse(f"requires at most {MOST_ITERATIONS} iterations, got more")
        if state is None and (num_scans or not node.is_given(0)):
            raise node.refuse("requires a condition that is known when the model is read, got one that is computed")
        number = make_known(constant(iteration, torch.int64), onnx.TensorProto.INT64)
        condition = make_known(constant(True, torch.bool), onnx.TensorProto.BOOL) if going is None else going
        after, *results = _run_body(node, "body", [number, condition, *states])
        if state is None and going is not None:
            # What comes after the end changes nothing.
            results = [_choose(node, going.tensor, a, b) for a, b in zip(results, states)]
            after = Value(torch.logical_and(going.tensor.reshape(()), after.tensor.reshape(())), going.kind)
        states, going = results[: len(states)], after
        for entries, result in zip(scans, results[len(states) :]):
            entries.append(result)
    if any(not entries for entries in scans):
        raise node.refuse("requires an iteration at least, got none: what it collects has no shape")
    return [*states, *(_stack(entries, 0) for entries in scans)]


def _stack(entries: list[Value], axis: int) -> Value:
    if all(entry.real is not None and not entry.is_weight for entry in entries):
        with _disable_current_modes():
            return make_known(torch.stack([entry.tensor for entry in entries], axis), entries[0].kind)
    return Value(torch.stack([entry.tensor for entry in entries], axis), entries[0].kind)


@define("Scan", moves=True)
def _scan(node: Node, *_: Any) -> list[Any]:
    if node.opset < 9:
        raise node.refuse(f"requires version 9 at least, got {node.opset}")
    body: onnx.GraphProto = node.get("body")
    count = node.get("num_scan_inputs")
    num_states = len(node.inputs) - count
    states, data = list(node.inputs[:num_states]), node.inputs[num_states:]
    num_scans = len(body.output) - num_states
    axes = [node.wrap(axis, value.tensor.dim()) for axis, value in zip(node.get("scan_input_axes", [0] * count), data)]
    backward = node.get("scan_input_directions", [0] * count)
    backward_out = node.get("scan_output_directions", [0] * num_scans)
    steps = data[0].tensor.shape[axes[0]]
    if not 0 < steps <= MOST_ITERATIONS:
        raise node.refuse(f"requires 1 to {MOST_ITERATIONS} steps, got {steps}")
    scans: list[list[Value]] = [[] for _ in range(num_scans)]
    for step in range(steps):
        parts = []
        for value, axis, is_backward in zip(data, axes, backward):
            part = value.tensor.select(axis, steps - 1 - step if is_backward else step)
            parts.append(Value(part, value.kind))
        results = _run_body(node, "body", [*states, *parts])
        states = results[:num_states]
        for entries, result in zip(scans, results[num_states:]):
            entries.append(result)
    collected = []
    for place, entries in enumerate(scans):
        axis = node.get("scan_output_axes", [0] * num_scans)[place]
        entries = entries[::-1] if backward_out[place] else entries
        collected.append(_stack(entries, axis % (entries[0].tensor.dim() + 1)))
    return [*states, *collected]


@define("Gradient", domain="ai.onnx.preview.training", moves=True)
def _gradient(node: Node, *_: Any) -> list[Any]:
    """Of the nodes between `xs` and `y`, which are computed again."""
    graph = node.reader.graphs[-1]
    names = list(node.get("xs"))

    def call(*tensors: torch.Tensor) -> torch.Tensor:
        scope = dict(node.scope)
        changed = set(names)
        for name, value, tensor in zip(names, node.inputs, tensors):
            scope[name] = Value(tensor, value.kind)
        for index, proto in enumerate(graph.node):
            if proto == node.proto:
                break
            if changed.intersection(proto.input):
                changed.update(proto.output)
                node.reader.run_node(proto, index, scope)
        result: torch.Tensor = scope[node.get("y")].tensor
        return result

    values = node.inputs[: len(names)]
    y, differentiate = torch.func.vjp(call, *(value.tensor for value in values))[:2]
    return [Value(found, value.kind) for value, found in zip(values, differentiate(torch.ones_like(y)))]


# Sequences and optional values.


@define("SequenceConstruct", moves=True)
def _sequence(node: Node, *_: Any) -> Values:
    return Values(node.inputs)


@define("SequenceEmpty", moves=True)
def _empty(node: Node) -> Values:
    return Values()


def _place(node: Node, number: int, count: int) -> int:
    place = node.read_ints(number)[0]
    if not -count <= place < count:
        raise node.refuse(f"requires a place of {-count} to {count - 1}, got {place}")
    return place % count


@define("SequenceAt", moves=True)
def _at(node: Node, sequence: Values, place: Any) -> Any:
    return sequence[_place(node, 1, len(sequence))]


@define("SequenceInsert", moves=True)
def _insert(node: Node, sequence: Values, value: Any, place: Any = None) -> Values:
    entries = list(sequence)
    at = node.read_ints(2)[0] if node.is_given(2) else len(entries)
    entries.insert(at if at >= 0 else len(entries) + at, node.inputs[1])
    return Values(entries)


@define("SequenceErase", moves=True)
def _erase(node: Node, sequence: Values, place: Any = None) -> Values:
    entries = list(sequence)
    del entries[_place(node, 1, len(entries)) if node.is_given(1) else -1]
    return Values(entries)


@define("SequenceLength", moves=True)
def _length(node: Node, sequence: Values) -> Any:
    return numpy.array(len(sequence), numpy.int64)


@define("ConcatFromSequence", moves=True)
def _concat(node: Node, sequence: Values) -> Value:
    axis = node.get("axis")
    tensors = [value.tensor for value in sequence]
    joined = torch.stack(tensors, axis) if node.get("new_axis", 0) else torch.cat(tensors, axis)
    return Value(joined, sequence[0].kind, joined if type(joined) is torch.Tensor else None)


@define("SplitToSequence", moves=True)
def _split(node: Node, x: torch.Tensor, split: Any = None) -> Values:
    axis = node.wrap(node.get("axis", 0), x.dim())
    size, kind = x.shape[axis], node.kind(0)
    keeps = node.get("keepdims", 1) or node.is_given(1)
    if not node.is_given(1):
        sizes = [1] * size
    elif node.read(1).ndim == 0:
        length = node.read_ints(1)[0]
        sizes = [min(length, size - begin) for begin in range(0, size, length)]
    else:
        sizes = node.read_ints(1)
    parts, begin = [], 0
    for count in sizes:
        part = x.narrow(axis, begin, count)
        parts.append(part if keeps else part.squeeze(axis))
        begin += count
    return Values(Value(part, kind, part if type(part) is torch.Tensor else None) for part in parts)


@define("SequenceMap", moves=True)
def _map(node: Node, sequence: Values, *_: Any) -> list[Any]:
    others = node.inputs[1:]
    rows = []
    for place, value in enumerate(sequence):
        rows.append(_run_body(node, "body", [value, *(o[place] if isinstance(o, Values) else o for o in others)]))
    return [Values(column) for column in zip(*rows)] if rows else [Values() for _ in range(node.num_results)]


@define("Optional", moves=True)
def _optional(node: Node, value: Any = None) -> list[Any]:
    return [node.inputs[0] if node.inputs else None]


@define("OptionalHasElement", moves=True)
def _has_element(node: Node, value: Any = None) -> Any:
    return numpy.array(bool(node.inputs) and node.inputs[0] is not None)


@define("OptionalGetElement", moves=True)
def _get_element(node: Node, value: Any) -> Any:
    if node.inputs[0] is None:
        raise node.refuse("requires an element, got an empty optional value")
    return node.inputs[0]
