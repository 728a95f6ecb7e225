# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators as ONNX functions: runtimes give what the reference gives."""

import json
import math

import numpy
import pytest
from operators import make_arrays, named_cases, random_kernels, random_operators, relative_error
from test_kernel import named_kernels

import kas

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

import kas.onnx  # noqa: E402

SEQUENCE = """
kas.operator @depthwise<N, Cin, H, W | k>(%n: N, %o: Cin, %h: H, %w: W) from [N, Cin, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %o_d, %o_w = kas.share %o : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %h, %i_d : H, k
  %y = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %o_d, %x, %y) weight(%o_w, %i_w, %j_w)
}
kas.operator @pointwise<N, Cin, Cout, H, W>(%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.sequence @separable [@depthwise, @pointwise] between [STEP]
"""
SIZES = {"N": 2, "Cin": 4, "Cout": 6, "H": 5, "W": 7, "k": 3}


def run(model, arrays):
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([value.name for value in session.get_inputs()], arrays)))[0]


def run_openvino(model, arrays):
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    return core.compile_model(core.read_model(model.SerializeToString()), "CPU", settings)(list(arrays))[0]


def make_integers(shapes, seed):
    """Integers from -2 to 2, for which contractions of few numbers are exact."""
    generator = numpy.random.default_rng(seed)
    return [generator.integers(-2, 3, shape).astype(numpy.float32) for shape in shapes]


def check_operator(operator, binding, seed=0, runners=(run,)):
    """Integers give the same bits; of other numbers sums differ by roundings of their terms, not of what is left."""
    shapes = operator.shapes(binding)
    model = kas.onnx.export(operator, binding, inline=run_openvino in runners)
    nodes = [node for function in model.functions for node in function.node] or model.graph.node
    # Means are quotients, which round.
    has_quotients = any(node.op_type in ("AveragePool", "Div") for node in nodes) or "mean" in str(operator)
    terms = max(1, operator.existing_flops(binding) / max(1, math.prod(shapes.output)))
    for exact in (True, False):
        arrays = make_integers([shapes.data, *shapes.weights], seed) if exact else make_arrays(operator, binding, seed)
        expected = operator.evaluate(binding, *arrays)
        size = float(operator.evaluate(binding, *map(numpy.abs, arrays)).max(initial=0))
        is_exact = exact and size < 2**24 and not has_quotients
        for runner in runners:
            output = runner(model, arrays)
            assert output.shape == expected.shape and output.dtype == numpy.float32
            error = float(numpy.abs(output - expected).max(initial=0))
            what = f"{runner.__name__}, seed {seed}: {error} of {size}\n{operator}\n{binding}"
            assert error <= (0 if is_exact else 5e-7 * (1 + math.sqrt(terms)) * size), what
    return model


def count(model, kind):
    return sum(node.op_type == kind for function in model.functions for node in function.node)


CONVOLUTIONS = {
    "bottleneck": 3,
    "conv1d": 1,
    "conv1d_depthwise": 1,
    "conv1d_depthwise_causal": 1,
    "conv1d_dilated": 1,
    "conv1x1": 1,
    "conv1x1_strided": 1,
    "conv2d": 1,
    "conv2d_depthwise": 1,
    "conv2d_depthwise_dilated": 1,
    "conv2d_depthwise_separable": 2,
    "conv2d_depthwise_strided": 1,
    "conv2d_dilated": 1,
    "conv2d_grouped": 1,
    "conv2d_grouped_strided": 1,
    "conv2d_spatially_separable": 2,
    "conv2d_strided": 1,
    "conv2d_strided_dilated": 1,
    "conv2d_strided_unpadded": 1,
}
WINDOWS = ("Gather", "Pad", "Slice", "MatMul", "Einsum")


def test_named_operators():
    cases = named_cases()
    assert len(cases) == 59
    for operator, binding in cases:
        model = check_operator(operator, binding)
        assert [function.name for function in model.functions] == [operator.name]
        assert [node.op_type for node in model.graph.node] == [operator.name]
        assert not count(model, "Einsum")
        if wanted := CONVOLUTIONS.get(operator.name):
            # Nothing but convolutions of weights in other orders.
            assert count(model, "Conv") == wanted, operator.name
            assert not any(count(model, kind) for kind in WINDOWS), operator.name


def test_poolings_are_poolings():
    for name, kind in (("max_pool2d", "MaxPool"), ("average_pool2d", "AveragePool")):
        ((operator, binding),) = [case for case in named_cases() if case[0].name == name]
        model = kas.onnx.export(operator, binding)
        assert [node.op_type for node in model.functions[0].node] == [kind]


def test_random_operators():
    for number, (operator, binding) in enumerate(random_operators(100)):
        check_operator(operator, binding, number)


@pytest.mark.slow
def test_a_thousand_random_operators():
    for number, (operator, binding) in enumerate(random_operators(1000, seed=1000)):
        check_operator(operator, binding, 1000 + number)


def test_openvino_runs_operators():
    pytest.importorskip("openvino")
    for number, (operator, binding) in enumerate([*named_cases(), *random_operators(40, seed=40)]):
        check_operator(operator, binding, number, (run, run_openvino))


@pytest.mark.slow
def test_openvino_runs_many_operators():
    pytest.importorskip("openvino")
    for number, (operator, binding) in enumerate(random_operators(300, seed=300)):
        check_operator(operator, binding, 300 + number, (run_openvino,))


@pytest.mark.parametrize("opset", kas.onnx.OPSETS)
def test_each_version(opset):
    for operator, binding in [case for case in named_cases() if "pool" in case[0].name]:
        model = kas.onnx.export(operator, binding, opset=opset)
        assert {entry.domain: entry.version for entry in model.opset_import} == {"": opset, "kas": 1}
        arrays = make_arrays(operator, binding)
        assert relative_error(run(model, arrays), operator.evaluate(binding, *arrays)) < 1e-5


def check_kernel(kernel, binding, seed):
    shapes = kernel.shapes(binding, batch=2)
    generator = numpy.random.default_rng(seed)
    inputs = [generator.standard_normal(shape, dtype=numpy.float32) for shape in shapes.inputs]
    weights = [
        (deviation * generator.standard_normal(shape)).astype(numpy.float32)
        for shape, deviation in zip(shapes.weights, shapes.deviations)
    ]
    model = kas.onnx.export(kernel, binding, batch=2)
    output = run(model, [*inputs, *weights])
    for sample in range(2):
        expected = kernel.evaluate(binding, [array[sample] for array in inputs], weights)
        most = max(1e-3, float(numpy.abs(expected).max(initial=0)))
        error = float(numpy.abs(output[sample] - expected).max(initial=0))
        assert error <= 2e-5 * most, f"seed {seed}: {error} of {most}\n{kernel}\n{binding}"
    return model


def test_named_kernels():
    cases = list(named_kernels())
    assert len(cases) == 21
    models = {kernel.name: check_kernel(kernel, binding, 0) for kernel, binding in cases}
    for name in ("convolution", "depthwise_convolution", "grouped_convolution", "separable_convolution"):
        assert count(models[name], "Conv") == 1 and not count(models[name], "Gather"), name


def test_random_kernels():
    for number, kernel in enumerate(random_kernels(60)):
        check_kernel(kernel, None, number)


@pytest.mark.parametrize("step", ["none", "relu", "normalize", "normalize_relu"])
def test_sequences_are_modules(step):
    import torch

    import kas.torch

    torch.manual_seed(0)
    sequence = kas.parse(SEQUENCE.replace("STEP", step)).sequences["separable"]
    module = kas.torch.SequenceModule(sequence, SIZES, "pytorch").eval()
    for name, tensor in module.state_dict().items():
        if name.endswith(("running_mean", "running_var", "norm.weight", "norm.bias")):
            tensor.uniform_(0.5, 1.5)
    model = kas.onnx.export(sequence, SIZES, weights=module.state_dict())
    assert [value.name for value in model.graph.input] == ["data"]
    assert count(model, "Conv") == 2
    data = torch.randn(2, 4, 5, 7)
    with torch.no_grad():
        expected = module(data).numpy()
    numpy.testing.assert_allclose(run(model, [data.numpy()]), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("step", ["add", "multiply", "join"])
def test_parallel_operators_are_added_multiplied_or_joined(step):
    import torch

    import kas.torch

    torch.manual_seed(0)
    text = SEQUENCE[: SEQUENCE.index("kas.sequence")].replace("Cout", "Cin")
    last = "pointwise" if step != "join" else "wide"
    text += """kas.operator @wide<N, Cin, H, W>(%n: N, %o: Cin, %h: H, %w: W) from [N, 2*Cin, H, W] {
      %c = kas.reduce sum : 2*Cin
      %c_d, %c_w = kas.share %c : 2*Cin
      kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
    }
    """
    text += f"kas.sequence @branches [@depthwise {step} @pointwise, @{last}] between [normalize_relu]"
    sequence = kas.parse(text.replace("Cin, Cin", "Cin")).sequences["branches"]
    module = kas.torch.SequenceModule(sequence, SIZES, "pytorch").eval()
    for name, tensor in module.state_dict().items():
        if "norm" in name and not name.endswith("tracked"):
            tensor.uniform_(0.5, 1.5)
    model = kas.onnx.export(sequence, SIZES, weights=module.state_dict())
    data = torch.randn(2, 4, 5, 7)
    with torch.no_grad():
        expected = module(data).numpy()
    numpy.testing.assert_allclose(run(model, [data.numpy()]), expected, rtol=1e-4, atol=1e-5)


def test_weights_are_inputs_or_constants(tmp_path):
    operator, path = kas.operator("conv2d"), tmp_path / "conv2d.onnx"
    shapes = operator.shapes(SIZES)
    arrays = make_integers([shapes.data, *shapes.weights], 0)
    model = kas.onnx.export(operator, SIZES)
    assert [value.name for value in model.graph.input] == ["data", "weight0"]
    for weights in ([arrays[1]], {"weight0": arrays[1], "other": 0}):
        with_weights = kas.onnx.export(operator, SIZES, path, weights=weights)
        assert [value.name for value in with_weights.graph.input] == ["data"]
        numpy.testing.assert_array_equal(run(with_weights, arrays[:1]), run(model, arrays))
    # The same model is the same file.
    first = path.read_bytes()
    kas.onnx.export(operator, SIZES, path, weights=[arrays[1]])
    assert path.read_bytes() == first
    onnx.checker.check_model(str(path), full_check=True)


def test_functions_can_be_inlined():
    operator = kas.operator("conv2d")
    model = kas.onnx.export(operator, SIZES, inline=True)
    assert not model.functions
    assert [node.op_type for node in model.graph.node] == ["Conv"]


def test_errors_of_export():
    operator = kas.operator("conv2d")
    weight = numpy.zeros((6, 4, 3, 3), numpy.float32)
    for call, kind, message in (
        (lambda: kas.onnx.export("conv2d"), TypeError, "requires a kas.Operator, .* got str"),
        (lambda: kas.onnx.export(operator, SIZES, opset=16), ValueError, "requires an opset of 17 to 22, got 16"),
        (lambda: kas.onnx.export(operator, {"N": 1}), kas.Error, "got none"),
        (lambda: kas.onnx.export(operator, SIZES, weights=[]), ValueError, "requires 1 weights .*weight0.*, got 0"),
        (
            lambda: kas.onnx.export(operator, SIZES, weights={"w": weight}),
            ValueError,
            "requires the weight 'weight0', got w",
        ),
        (
            lambda: kas.onnx.export(operator, SIZES, weights=[weight[0]]),
            ValueError,
            r"requires the weight 'weight0' of shape \(6, 4, 3, 3\), got \(4, 3, 3\)",
        ),
    ):
        with pytest.raises(kind, match=message):
            call()


def test_the_command_writes_files(tmp_path, capsys):
    from kas.cli import main

    path = tmp_path / "conv2d.onnx"
    assert main(["export", "conv2d", "--bind=N=2,Cin=4,Cout=6,H=5,W=7,k=3", "--format=onnx", f"--output={path}"]) == 0
    arrays = make_arrays(kas.operator("conv2d"), SIZES)
    expected = kas.operator("conv2d").evaluate(SIZES, *arrays)
    assert relative_error(run(onnx.load(path), arrays), expected) < 1e-5
    assert capsys.readouterr().out == ""
    own = ["export", "conv2d", "--bind=N=2,Cin=4,Cout=6,H=5,W=7,k=3", "--format=onnx"]
    assert main([*own, "-o", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == str(path)
    assert main(own) == 1
    assert "--format=onnx requires a file: -o FILE.onnx" in capsys.readouterr().err
