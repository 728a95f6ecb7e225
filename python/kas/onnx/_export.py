# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators, sequences and kernels as ONNX models of one function."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy
import onnx
import onnx.inliner
from onnx import helper, numpy_helper

from .._kas import __version__
from .._kernel import Kernel
from .._module import Binding, Operator, binding_to_text, parse_binding
from .._sequence import OperatorSequence
from ._body import Body, Value
from ._operators import write_kernel, write_operator

DOMAIN = "kas"
"""The domain of the functions."""

OPSETS = range(17, 23)
"""The versions of the standard operations that functions are written in."""

Form: TypeAlias = Operator | OperatorSequence | Kernel
Weights: TypeAlias = Mapping[str, Any] | Sequence[Any] | None

# The first version of ONNX with functions in models of each opset.
_IR_VERSIONS = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10}

_NORMALIZATION = ("weight", "bias", "running_mean", "running_var")
_EPSILON = 1e-5


class Function:
    """A form as a function: its name and nodes, and the names and shapes of its tensors."""

    def __init__(self, form: Form, binding: Binding, opset: int, batch: int = 1, name: str | None = None):
        self.name = name or form.name
        self.opset = opset
        body = Body(opset)
        self.inputs, self.weights = _find_tensors(form, binding, batch)
        data, weights = ([Value(*entry) for entry in entries.items()] for entries in (self.inputs, self.weights))
        if isinstance(form, Kernel):
            output = write_kernel(body, form, binding, data, weights)
        elif isinstance(form, OperatorSequence):
            output = _write_sequence(body, form, binding, data[0], weights)
        else:
            output = write_operator(body, form, binding, data[0], weights)
        self.output_shape = output.shape
        self.proto = helper.make_function(
            DOMAIN,
            self.name,
            [*self.inputs, *self.weights],
            ["output"],
            body.finish(output, "output"),
            [helper.make_opsetid("", opset)],
            doc_string=_describe(form, binding),
        )


def _describe(form: Form, binding: Binding) -> str:
    at = binding_to_text(binding)
    forms = form.operators if isinstance(form, OperatorSequence) else [form] if isinstance(form, Operator) else []
    lines = [f"{one.name}: {one.formula}" for one in forms] or [f"The kernel {form.name}"]
    return "\n".join([*lines, *([f"at {at}"] if at else [])])


def _find_tensors(form: Form, binding: Binding, batch: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The shapes of inputs and weights by their names, which are those of `kas.torch`."""
    if isinstance(form, Kernel):
        shapes = form.shapes(binding, batch)
        names = ["data"] if len(shapes.inputs) == 1 else [f"data{index}" for index in range(len(shapes.inputs))]
        return dict(zip(names, shapes.inputs)), {f"weight{index}": shape for index, shape in enumerate(shapes.weights)}
    if isinstance(form, Operator):
        of_operator = form.shapes(binding)
        weights = {f"weight{index}": shape for index, shape in enumerate(of_operator.weights)}
        return {"data": of_operator.data}, weights
    found: dict[str, Any] = {}
    outputs = form.output_shapes(binding)
    for number, (operator, values) in enumerate(zip(form.operators, form.bindings(binding))):
        stage = operator.shapes(values)
        found |= {f"{number}.weight{index}": shape for index, shape in enumerate(stage.weights)}
        if number < len(form.steps) and form.steps[number].startswith("normalize"):
            found |= {f"{number}.norm.{part}": (outputs[number][1],) for part in _NORMALIZATION}
    return {"data": form.shapes(binding).data}, found


def _write_sequence(
    body: Body, sequence: OperatorSequence, binding: Binding, data: Value, weights: Sequence[Value]
) -> Value:
    rest = list(weights)
    output = data
    for number, (operator, values) in enumerate(zip(sequence.operators, sequence.bindings(binding))):
        own, rest = rest[: operator.num_weights], rest[operator.num_weights :]
        if sequence.is_parallel(number):
            result = write_operator(body, operator, values, data, own)
            output = _combine(body, sequence.steps[number - 1], output, result)
        else:
            data = output
            output = write_operator(body, operator, values, data, own)
        step = sequence.steps[number] if number < len(sequence.steps) else "none"
        if step.startswith("normalize"):
            norm, rest = rest[: len(_NORMALIZATION)], rest[len(_NORMALIZATION) :]
            output = body.add("BatchNormalization", [output, *norm], output.shape, epsilon=_EPSILON)
        if step.endswith("relu"):
            output = body.elementwise("Relu", output)
    return output


def _combine(body: Body, step: str, first: Value, second: Value) -> Value:
    """One tensor of the results of parallel operators."""
    if step != "join":
        return body.elementwise({"add": "Add", "multiply": "Mul"}[step], first, second)
    shape = (first.shape[0], first.shape[1] + second.shape[1], *first.shape[2:])
    return body.add("Concat", [first, second], shape, axis=1)


def finish_model(
    graph: onnx.GraphProto, functions: Sequence[onnx.FunctionProto], opset: int, inline: bool
) -> onnx.ModelProto:
    """The checked model of a graph that calls functions, or in which these are inlined."""
    model = helper.make_model(
        graph,
        functions=functions,
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)],
        ir_version=_IR_VERSIONS[opset],
        producer_name="kas",
        producer_version=__version__,
    )
    onnx.checker.check_model(model, full_check=True)
    return onnx.inliner.inline_local_functions(model) if inline else model


def check_opset(opset: int) -> None:
    """Raises `ValueError` where there are no functions for it."""
    if opset not in OPSETS:
        raise ValueError(f"requires an opset of {OPSETS[0]} to {OPSETS[-1]}, got {opset}")


def save(model: onnx.ModelProto, path: str | os.PathLike[str] | None) -> None:
    """Writes the model where there is a path, the same bytes for the same model."""
    if path is not None:
        with open(path, "wb") as file:
            file.write(model.SerializeToString(deterministic=True))


def _to_array(weight: Any) -> numpy.ndarray:
    detached = weight.detach().cpu() if hasattr(weight, "detach") else weight
    return numpy.ascontiguousarray(detached, dtype=numpy.float32)


def _initialize(shapes: Mapping[str, tuple[int, ...]], weights: Weights) -> list[onnx.TensorProto]:
    if weights is None:
        return []
    if not isinstance(weights, Mapping):
        if len(weights) != len(shapes):
            raise ValueError(f"requires {len(shapes)} weights ({', '.join(shapes)}), got {len(weights)}")
        weights = dict(zip(shapes, weights))
    tensors = []
    for name, shape in shapes.items():
        if name not in weights:
            raise ValueError(f"requires the weight '{name}', got {', '.join(weights) or 'none'}")
        array = _to_array(weights[name])
        if array.shape != shape:
            raise ValueError(f"requires the weight '{name}' of shape {shape}, got {array.shape}")
        tensors.append(numpy_helper.from_array(array, name))
    return tensors


def export(
    form: Form,
    binding: Binding = None,
    path: str | os.PathLike[str] | None = None,
    *,
    weights: Weights = None,
    batch: int = 1,
    opset: int = 17,
    inline: bool = False,
) -> onnx.ModelProto:
    """An operator, a sequence or a kernel as an ONNX model: a graph that calls a function of standard operations.

    The function has the name of the form, in the domain "kas". Its inputs are `data` (`data0`, ... where a kernel has
    several) and the weights, by the names that `kas.torch` gives them: `weight0`, ... , of a sequence `0.weight0`,
    `0.norm.weight`, ...; all are f32. They are inputs of the graph, or constants where `weights` has their values, in
    this order or by name, such as the `state_dict` of a module. The output of the graph is `output`.

    `path`: a file to write. `batch`: the first dimension of the tensors of a kernel. `opset`: 17 to 22. `inline`: the
    operations in the graph itself, for runtimes that take no functions of models, such as OpenVINO.

    Raises `kas.Error` where the form is not legal at the binding, `ValueError` for weights that do not fit.
    """
    if not isinstance(form, (Operator, OperatorSequence, Kernel)):
        raise TypeError(f"requires a kas.Operator, kas.OperatorSequence or kas.Kernel, got {type(form).__name__}")
    check_opset(opset)
    if isinstance(form, (Operator, OperatorSequence)):
        binding = parse_binding(binding)
    function = Function(form, binding, opset, batch)
    constants = _initialize(function.weights, weights)
    open_weights = {} if constants else function.weights
    inputs = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (function.inputs | open_weights).items()
    ]
    output = helper.make_tensor_value_info("output", onnx.TensorProto.FLOAT, function.output_shape)
    call = helper.make_node(function.name, [*function.inputs, *function.weights], ["output"], domain=DOMAIN)
    graph = helper.make_graph([call], function.name, inputs, [output], constants)
    model = finish_model(graph, [function.proto], opset, inline)
    save(model, path)
    return model
