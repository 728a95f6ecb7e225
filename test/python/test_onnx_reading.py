# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models as MLIR: compiled, they give what ONNX Runtime gives."""

import io
import warnings

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("torch_mlir")

from onnx import helper, numpy_helper  # noqa: E402

import kas.onnx  # noqa: E402

GENERATOR = numpy.random.default_rng(0)


class Convolutional(nn.Sequential):
    def __init__(self):
        super().__init__(
            *(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)),
            *(nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.Hardswish(), nn.AvgPool2d(2)),
            *(nn.Conv2d(8, 16, 1), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)),
        )


class Block(nn.Module):
    """A block of a transformer."""

    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.projection, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, data):
        batch, length, width = data.shape
        parts = self.projection(self.norms[0](data)).reshape(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        data = data + self.output(attended.transpose(1, 2).reshape(batch, length, width))
        return data + self.mlp(self.norms[1](data))


class Language(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Embedding(11, 16), Block(), nn.Linear(16, 11, bias=False))


def make_model(network, data, opset, **options):
    torch.manual_seed(0)
    for tensor in network.state_dict().values():
        if tensor.is_floating_point():
            tensor.uniform_(0.1, 0.9)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (data,),
            buffer,
            dynamo=False,
            opset_version=opset,
            input_names=["x"],
            output_names=["y"],
            **options,
        )
    return onnx.load_model_from_string(buffer.getvalue())


def run(model, arrays):
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([value.name for value in session.get_inputs()], arrays)))


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("network", [Convolutional, Block])
def test_networks_are_read(network, opset, tmp_path):
    data = torch.randn(2, 3, 32, 32) if network is Convolutional else torch.randn(2, 5, 16)
    model, path = make_model(network(), data, opset), tmp_path / "network.onnx"
    onnx.save(model, path)
    loaded = kas.onnx.load(path)
    output = loaded.module.compile("forward", threads=1)(data.numpy(), *loaded.tensors.values())
    (expected,) = run(model, [data.numpy()])
    assert numpy.abs(output - expected).max() < 1e-4 * max(1, numpy.abs(expected).max())
    # The weights are arguments with their names, and the layers are found.
    assert set(loaded.tensors) == {tensor.name for tensor in model.graph.initializer if tensor.dims}
    assert all(f'kas.name = "{name}"' in str(loaded.module) for name in ("x", *loaded.tensors))
    found = set(loaded.module.run("kas-extract").spaces)
    wanted = {"conv2d_strided_stem", "conv2d_depthwise", "conv1x1", "linear"}
    assert found == (wanted if network is Convolutional else {"linear"})


@pytest.mark.parametrize("opset", [17, 20])
def test_language_models_are_read(opset):
    model = make_model(Language(), torch.randint(0, 11, (2, 5)), opset)
    loaded = kas.onnx.load(model)
    text = str(loaded.module)
    assert "tensor<2x5xi64>" in text and "-> tensor<2x5x11xf32>" in text


def test_symbolic_sizes_are_given():
    data = torch.randn(2, 3, 32, 32)
    model = make_model(Convolutional(), data, 17, dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})
    with pytest.raises(ValueError, match=r"requires a shape for input 'x' of sizes \('N', 3, 32, 32\), got none"):
        kas.onnx.load(model)
    with pytest.raises(ValueError, match=r"of sizes \('N', 3, 32, 32\), got of shape \(2, 4, 32, 32\)"):
        kas.onnx.load(model, {"x": (2, 4, 32, 32)})
    with pytest.raises(ValueError, match=r"requires shapes of inputs \(x\), got one of 'z'"):
        kas.onnx.load(model, {"z": (2, 3, 32, 32)})
    loaded = kas.onnx.load(model, {"x": (2, 3, 32, 32)})
    output = loaded.module.compile("forward", threads=1)(data.numpy(), *loaded.tensors.values())
    numpy.testing.assert_allclose(output, run(model, [data.numpy()])[0], rtol=1e-4, atol=1e-4)


def test_what_was_written_is_read():
    binding = {"N": 2, "Cin": 4, "Cout": 6, "H": 5, "W": 7, "k": 3}
    operator = kas.operator("conv2d_depthwise_separable")
    shapes = operator.shapes(binding)
    arrays = [GENERATOR.standard_normal(shape, dtype=numpy.float32) for shape in (shapes.data, *shapes.weights)]
    loaded = kas.onnx.load(kas.onnx.export(operator, binding, weights=arrays[1:]))
    assert list(loaded.tensors) == ["weight0", "weight1"]
    output = loaded.module.compile("forward", threads=1)(arrays[0], *loaded.tensors.values())
    numpy.testing.assert_allclose(output, operator.evaluate(binding, *arrays), rtol=1e-4, atol=1e-4)


def normal(*shape):
    return GENERATOR.standard_normal(shape, dtype=numpy.float32)


def positive(*shape):
    return 0.5 + GENERATOR.random(shape, dtype=numpy.float32)


def numbers(*values):
    return numpy.array(values, numpy.int64)


def make_node(kind, inputs, opset, outputs=1, **attributes):
    """A model of one node; what is f32 is an input, all else is known."""
    names = ["" if array is None else f"i{index}" for index, array in enumerate(inputs)]
    given = [(name, numpy.asarray(array)) for name, array in zip(names, inputs) if name]
    values = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, array.shape)
        for name, array in given
        if array.dtype == numpy.float32 and array.ndim and array is not HALVES
    ]
    read = {value.name for value in values}
    constants = [numpy_helper.from_array(array, name) for name, array in given if name not in read]
    results = [f"o{index}" for index in range(outputs)]
    node = helper.make_node(kind, names, results, name="the_node", **attributes)
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name=name) for name in results], constants)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version={17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10}[opset],
    )
    return onnx.shape_inference.infer_shapes(model), [array for name, array in given if name in read]


IMAGE = normal(1, 4, 6, 6)
HALF, HALVES = [1, 1, 1, 1], numpy.array([1, 1, 2, 2], numpy.float32)
UNARY = """Abs Acos Asin Asinh Atan Ceil Celu Cos Cosh Elu Erf Exp Floor HardSigmoid HardSwish Identity LeakyRelu
Neg Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Tan Tanh ThresholdedRelu Softmax LogSoftmax
Hardmax Dropout LpNormalization Shrink Flatten"""
BINARY = "Add Sub Mul Div Max Min Mean Sum Pow"
REDUCTIONS = "ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp ReduceLogSum"
OPERATIONS = [
    *((kind, [0.5 * normal(2, 3)], {}) for kind in UNARY.split()),
    *((kind, [positive(2, 3)], {}) for kind in ("Log", "Sqrt")),
    *((kind, [positive(2, 3), positive(1, 3)], {}) for kind in BINARY.split()),
    *((kind, [positive(1, 4, 6, 6), numbers(2, 3)], {"since": 18}) for kind in REDUCTIONS.split()),
    *((kind, [positive(1, 4, 6, 6)], {"axes": [2, 3], "until": 17}) for kind in REDUCTIONS.split()),
    ("ReduceSum", [IMAGE, numbers(2, 3)], {}),
    ("Gelu", [normal(2, 3)], {"since": 20}),
    *((kind, [normal(2, 3)], {"since": 18}) for kind in ("Mish", "Softsign")),
    ("PRelu", [IMAGE, normal(4, 1, 1)], {}),
    ("Clip", [normal(2, 3), numpy.float32(-0.5), numpy.float32(0.5)], {}),
    ("Where", [numpy.array([True, False, True]), normal(2, 3), normal(2, 3)], {}),
    ("MatMul", [normal(2, 3, 4), normal(4, 5)], {}),
    ("MatMul", [normal(2, 3, 4), normal(2, 4, 5)], {}),
    ("Gemm", [normal(3, 4), normal(5, 4), normal(5)], {"transB": 1, "alpha": 0.5}),
    ("Einsum", [normal(2, 3, 4), normal(4, 5)], {"equation": "abc,cd->abd"}),
    ("Conv", [IMAGE, normal(8, 4, 3, 3), normal(8)], {"kernel_shape": [3, 3], "pads": HALF}),
    (
        "Conv",
        [IMAGE, normal(8, 2, 3, 3)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "group": 2, "pads": [0, 0, 1, 1]},
    ),
    ("Conv", [IMAGE, normal(8, 4, 3, 3)], {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("Conv", [normal(1, 4, 8), normal(4, 4, 3)], {"kernel_shape": [3], "dilations": [2]}),
    ("ConvTranspose", [IMAGE, normal(4, 8, 2, 2)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    *(
        ("ConvTranspose", [IMAGE, normal(4, 8, size, size)], {"strides": [stride, stride], "auto_pad": padding})
        for padding in ("SAME_UPPER", "SAME_LOWER")
        for size, stride in ((3, 2), (4, 2), (2, 3), (1, 2))
    ),
    ("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": HALF}),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": HALF, "count_include_pad": 1}),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": HALF}),
    ("GlobalAveragePool", [IMAGE], {}),
    ("GlobalMaxPool", [IMAGE], {}),
    ("BatchNormalization", [IMAGE, normal(4), normal(4), normal(4), positive(4)], {}),
    ("InstanceNormalization", [IMAGE, normal(4), normal(4)], {}),
    ("LayerNormalization", [normal(2, 3, 8), normal(8), normal(8)], {}),
    ("GroupNormalization", [IMAGE, normal(4), normal(4)], {"num_groups": 2, "since": 21}),
    ("LRN", [IMAGE], {"size": 3}),
    ("Reshape", [IMAGE, numbers(1, -1)], {}),
    ("Transpose", [IMAGE], {"perm": [0, 2, 3, 1]}),
    ("Squeeze", [normal(1, 3, 1), numbers(0, 2)], {}),
    ("Unsqueeze", [normal(3), numbers(0, 2)], {}),
    ("Concat", [normal(2, 3), normal(2, 4)], {"axis": 1}),
    ("Split", [normal(2, 6), numbers(2, 4)], {"axis": 1, "outputs": 2}),
    ("Slice", [IMAGE, numbers(1), numbers(5), numbers(2), numbers(2)], {}),
    ("Slice", [normal(5), numbers(-1), numbers(-6), numbers(0), numbers(-1)], {}),
    ("Gather", [normal(7, 3), numbers(0, 2, 5)], {}),
    ("GatherElements", [normal(3, 3), numpy.array([[0, 1, 2], [2, 1, 0]])], {"axis": 0}),
    ("GatherND", [normal(3, 3), numpy.array([[0, 1], [2, 2]])], {}),
    ("Expand", [normal(1, 3), numbers(4, 3)], {}),
    ("Tile", [normal(2, 3), numbers(2, 2)], {}),
    *(("Pad", [IMAGE, numbers(0, 0, 1, 1, 0, 0, 1, 1)], {"mode": mode}) for mode in ("constant", "reflect", "edge")),
    *(("DepthToSpace", [IMAGE], {"blocksize": 2, "mode": mode}) for mode in ("DCR", "CRD")),
    ("SpaceToDepth", [IMAGE], {"blocksize": 2}),
    ("Resize", [IMAGE, None, HALVES], {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}),
    (
        "Resize",
        [IMAGE, None, HALVES],
        {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"},
    ),
    ("Trilu", [normal(4, 4)], {}),
]


@pytest.mark.parametrize("kind, inputs, attributes", OPERATIONS, ids=lambda entry: entry if type(entry) is str else "")
def test_operations_are_read(kind, inputs, attributes):
    attributes = dict(attributes)
    first, last = attributes.pop("since", 17), attributes.pop("until", 22)
    for opset in sorted({first, last}):
        model, arrays = make_node(kind, inputs, opset, **attributes)
        loaded = kas.onnx.load(model)
        outputs = loaded.module.compile("forward", threads=1)(*arrays, *loaded.tensors.values())
        outputs = outputs if isinstance(outputs, list) else [outputs]
        for output, expected in zip(outputs, run(model, arrays), strict=True):
            assert output.shape == expected.shape
            assert numpy.abs(output - expected).max() < 1e-4, opset


# Of what is computed by steps or by comparisons.
LATER = [
    ("LSTM", [normal(3, 1, 4), normal(1, 20, 4), normal(1, 20, 5)], {"hidden_size": 5}),
    ("GRU", [normal(3, 1, 4), normal(1, 15, 4), normal(1, 15, 5)], {"hidden_size": 5}),
    ("RNN", [normal(3, 1, 4), normal(1, 5, 4), normal(1, 5, 5)], {"hidden_size": 5}),
    ("AffineGrid", [normal(1, 2, 3), numbers(1, 1, 4, 4)], {"since": 20}),
    ("Col2Im", [normal(1, 16, 9), numbers(6, 6), numbers(2, 2)], {"strides": [2, 2], "since": 18}),
    ("Compress", [normal(3, 2), numpy.array([True, False, True])], {"axis": 0}),
    ("CumSum", [normal(2, 3), numpy.int64(1)], {"reverse": 1, "exclusive": 1}),
    ("DFT", [normal(1, 8, 1)], {"until": 17}),
    *(
        ("GridSample", [IMAGE, normal(1, 3, 3, 2)], {"padding_mode": mode, "until": 17})
        for mode in ("zeros", "border", "reflection")
    ),
    *(
        (
            "MaxRoiPool",
            [IMAGE, numpy.array([[0, *corners]], numpy.float32)],
            {"pooled_shape": [2, 2], "spatial_scale": 0.5, "until": 17},
        )
        # With the scale: whole numbers, halves between each two of these, and some of no region.
        for corners in ([0, 2, 8, 10], [1, 3, 5, 7], [3, 1, 9, 9], [-1, -3, 5, 7], [7, 7, 3, 3])
    ),
    (
        "RoiAlign",
        [IMAGE, numpy.array([[0.3, 0.5, 4.2, 5]], numpy.float32), numbers(0)],
        {"output_height": 2, "output_width": 2, "sampling_ratio": 2, "until": 17},
    ),
    ("ScatterElements", [normal(3, 3), numpy.array([[1, 0, 2]]), normal(1, 3)], {}),
    ("ScatterND", [normal(4, 3), numpy.array([[0], [2]]), normal(2, 3)], {}),
    ("TopK", [normal(2, 8), numbers(3)], {"outputs": 2}),
]


@pytest.mark.parametrize("kind, inputs, attributes", LATER, ids=lambda entry: entry if type(entry) is str else "")
def test_more_operations_are_read(kind, inputs, attributes):
    test_operations_are_read(kind, inputs, attributes)


UNKNOWN = [
    ("Bernoulli", [positive(2, 3)], {}, "requires operations that are read, got Bernoulli \\(node the_node\\)"),
    ("NonMaxSuppression", [normal(1, 4, 4), normal(1, 1, 4)], {}, "got NonMaxSuppression \\(node the_node\\)"),
    ("NonZero", [normal(2, 3)], {}, "NonZero \\(node the_node\\): requires input 0 \\('i0'\\) to be known"),
    ("RandomNormalLike", [normal(2, 3)], {}, "got RandomNormalLike \\(node the_node\\)"),
    ("Unique", [normal(4)], {}, "Unique \\(node the_node\\): .* the size of the result depends on its elements"),
    ("Conv", [IMAGE, normal(8, 3, 3, 3)], {}, "Conv \\(node the_node\\): requires 3 channels, got 4"),
    ("Reshape", [IMAGE, numbers(5, 7)], {}, "Reshape \\(node the_node\\): .* 144 elements, got \\(5, 7\\)"),
]


@pytest.mark.parametrize("kind, inputs, attributes, said", UNKNOWN, ids=[entry[0] for entry in UNKNOWN])
def test_what_is_refused_is_named(kind, inputs, attributes, said):
    names = [f"i{index}" for index in range(len(inputs))]
    values = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, array.shape)
        for name, array in zip(names, inputs)
        if array.dtype == numpy.float32
    ]
    constants = [numpy_helper.from_array(a, n) for n, a in zip(names, inputs) if a.dtype != numpy.float32]
    node = helper.make_node(kind, names, ["o0"], name="the_node", **attributes)
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name="o0")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(ValueError, match=said):
        kas.onnx.load(model)


def test_all_that_is_missing_is_named():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Bernoulli", ["a"], ["b"], name="second"),
        helper.make_node("RandomNormalLike", ["b"], ["c"], name="third"),
        helper.make_node("Bernoulli", ["c"], ["y"], name="fourth"),
    ]
    data = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 8, 1])
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 8, 1])
    graph = helper.make_graph(nodes, "g", [data], [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ValueError, match=r"got Bernoulli \(node second, fourth\); RandomNormalLike \(node third\)$"):
        kas.onnx.load(model)


def test_versions():
    model, arrays = make_node("Add", [normal(2), normal(2)], 17)
    for version in (7, 13, onnx.defs.onnx_opset_version()):
        model.opset_import[0].version = version
        loaded = kas.onnx.load(model)
        output = loaded.module.compile("forward", threads=1)(*arrays)
        numpy.testing.assert_allclose(output, arrays[0] + arrays[1], rtol=1e-6)
    for version in (0, onnx.defs.onnx_opset_version() + 1):
        model.opset_import[0].version = version
        with pytest.raises(ValueError, match=rf"requires a model of opset 1 to \d+, got {version}$"):
            kas.onnx.load(model)


def test_settings_are_given():
    """Shapes that are inputs of a model."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="the_node")
    values = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 6]),
        helper.make_tensor_value_info("shape", onnx.TensorProto.INT64, [2]),
    ]
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(ValueError, match=r"Reshape \(node the_node\): requires input 1 \('shape'\) to be known"):
        kas.onnx.load(model)
    with pytest.raises(ValueError, match=r"requires constants of inputs \(x, shape\), got one of 'z'"):
        kas.onnx.load(model, constants={"z": numbers(1)})
    data = normal(2, 6)
    loaded = kas.onnx.load(model, constants={"shape": numbers(3, -1)})
    numpy.testing.assert_array_equal(loaded.module.compile("forward", threads=1)(data), data.reshape(3, 4))


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "model.onnx"
    with pytest.raises(FileNotFoundError):
        kas.onnx.load(path)
    path.write_bytes(b"no model")
    with pytest.raises(ValueError, match=r"requires an ONNX model in '.*model.onnx', got another file"):
        kas.onnx.load(path)
    with pytest.raises(ValueError, match=r"requires an ONNX model, got 8 other bytes"):
        kas.onnx.load(b"no model")
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"requires a model of opset 1 to \d+, got 0"):
        kas.onnx.load(path)


def test_tokens():
    """Inputs of integers, as language models have."""
    words = numpy.random.default_rng(0).standard_normal((10, 6)).astype(numpy.float32)
    nodes = [
        helper.make_node("Gather", ["words", "x"], ["rows"]),
        helper.make_node("ReduceMean", ["rows"], ["y"], axes=[1]),
    ]
    data = helper.make_tensor_value_info("x", onnx.TensorProto.INT64, [2, 3])
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 1, 6])
    graph = helper.make_graph(nodes, "g", [data], [output], [numpy_helper.from_array(words, "words")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    loaded = kas.onnx.load(model)
    tokens = numpy.array([[1, 2, 3], [0, 9, 5]])
    (expected,) = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": tokens})
    found = loaded.module.compile("forward")(tokens, *loaded.tensors.values())
    assert found.dtype == numpy.float32
    assert numpy.abs(found - expected).max() < 1e-6
