# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas.onnx.InferenceSession` gives what that of ONNX Runtime gives, for inputs of any shape."""

from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import torch

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("torch_mlir")

from onnx import TensorProto, helper  # noqa: E402
from test_onnx_reading import Convolutional, Language, make_model  # noqa: E402

import kas.onnx  # noqa: E402
from kas.onnx import _session  # noqa: E402

GENERATOR = numpy.random.default_rng(0)


def normal(*shape):
    return GENERATOR.standard_normal(shape, dtype=numpy.float32)


def make_graph_model(nodes, inputs, outputs, **options):
    kinds = {numpy.float32: TensorProto.FLOAT, numpy.int64: TensorProto.INT64}
    values = [helper.make_tensor_value_info(name, kinds[kind], shape) for name, (kind, shape) in inputs.items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "g", values, results)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, **options)


def make_sum():
    """Two inputs that share a size, and two results."""
    inputs = {"a": (numpy.float32, ["N", 3]), "b": (numpy.float32, ["N", 1])}
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Mul", ["a", "b"], ["product"])]
    return make_graph_model(nodes, inputs, ["sum", "product"])


def check(model, feed):
    expected = runtime.InferenceSession(model.SerializeToString()).run(None, feed)
    for got, wanted in zip(
        kas.onnx.InferenceSession(model.SerializeToString(), threads=1).run(None, feed), expected, strict=True
    ):
        assert got.dtype == wanted.dtype
        numpy.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_batches():
    model = make_model(Convolutional(), torch.randn(2, 3, 32, 32), 17, dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})
    session = kas.onnx.InferenceSession(model, threads=1)
    peer = runtime.InferenceSession(model.SerializeToString())
    assert [tuple(value) for value in session.get_inputs()] == [("x", ["N", 3, 32, 32], "tensor(float)")]
    first, *_ = outputs = [session.run(None, {"x": data})[0] for data in (normal(1, 3, 32, 32), normal(5, 3, 32, 32))]
    kept = first.copy()
    data = normal(1, 3, 32, 32)
    (again,) = session.run(["y"], {"x": data})
    numpy.testing.assert_allclose(again, peer.run(None, {"x": data})[0], rtol=1e-4, atol=1e-4)
    # Results are the caller's.
    numpy.testing.assert_array_equal(first, kept)
    assert [len(output) for output in outputs] == [1, 5]
    tensor = torch.randn(5, 3, 32, 32)
    (output,) = session.run(None, {"x": tensor})
    numpy.testing.assert_allclose(output, peer.run(None, {"x": tensor.numpy()})[0], rtol=1e-4, atol=1e-4)


def test_batches_and_lengths():
    axes = {0: "N", 1: "L"}
    model = make_model(Language(), torch.randint(0, 11, (2, 5)), 17, dynamic_axes={"x": axes, "y": axes})
    session = kas.onnx.InferenceSession(model, threads=1)
    peer = runtime.InferenceSession(model.SerializeToString())
    for shape in ((1, 1), (2, 5), (3, 9)):
        tokens = GENERATOR.integers(0, 11, shape)
        (output,), (expected,) = session.run(None, {"x": tokens}), peer.run(None, {"x": tokens})
        numpy.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("samples", [0, 2])
def test_an_empty_batch(samples):
    inputs = {"x": (numpy.float32, ["N", 3])}
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("ReduceSum", ["y"], ["z"], keepdims=1)]
    check(make_graph_model(nodes, inputs, ["y", "z"]), {"x": normal(samples, 3)})


def test_several_inputs_and_results():
    feed = {"a": normal(4, 3), "b": normal(4, 1)}
    model = make_sum()
    check(model, feed)
    (product,) = kas.onnx.InferenceSession(model, threads=1).run(["product"], feed)
    numpy.testing.assert_array_equal(product, feed["a"] * feed["b"])


def test_what_does_not_fit():
    session = kas.onnx.InferenceSession(make_sum(), threads=1)
    cases = [
        ({"a": normal(4, 3)}, "requires inputs a, b, got a"),
        ({"a": normal(4, 2), "b": normal(4, 1)}, r"requires input 'a' of shape \['N', 3\], got \[4, 2\]"),
        ({"a": normal(3), "b": normal(4, 1)}, r"requires input 'a' of shape \['N', 3\], got \[3\]"),
        ({"a": normal(4, 3), "b": normal(2, 1)}, "requires 'N' to be one size, got 4 in 'a' and 2 in 'b'"),
        ({"a": normal(4, 3), "b": numpy.zeros((4, 1))}, "requires input 'b' of float32, got float64"),
    ]
    for feed, message in cases:
        with pytest.raises(ValueError, match=message):
            session.run(None, feed)
    feed = {"a": normal(4, 3), "b": normal(4, 1)}
    with pytest.raises(ValueError, match="requires outputs of sum, product, got 'z'"):
        session.run(["z"], feed)
    # What was compiled before is as it was.
    numpy.testing.assert_array_equal(session.run(["sum"], feed)[0], feed["a"] + feed["b"])


def test_a_model_without_open_sizes_is_refused_at_once():
    node = helper.make_node("NonZero", ["x"], ["y"], name="the_node")
    model = make_graph_model([node], {"x": (numpy.float32, [4])}, ["y"])
    with pytest.raises(ValueError, match=r"NonZero \(node the_node\)"):
        kas.onnx.InferenceSession(model)


def test_settings():
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    model = make_graph_model([node], {"x": (numpy.float32, ["N", 6]), "shape": (numpy.int64, [2])}, ["y"])
    session = kas.onnx.InferenceSession(model, {"shape": numpy.array([3, -1])}, threads=1)
    assert [value.name for value in session.get_inputs()] == ["x"]
    data = normal(2, 6)
    numpy.testing.assert_array_equal(session.run(None, {"x": data})[0], data.reshape(3, 4))


def test_data_outside_of_the_model(tmp_path):
    path = tmp_path / "model.onnx"
    weight = helper.make_tensor("w", TensorProto.FLOAT, [64, 64], normal(64, 64).tobytes(), raw=True)
    model = make_graph_model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (numpy.float32, ["N", 64])}, ["y"])
    model.graph.initializer.append(weight)
    data = normal(3, 64)
    (expected,) = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": data})
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (output,) = kas.onnx.InferenceSession(path, threads=1).run(None, {"x": data})
    numpy.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises((OSError, ValueError), match=r"weights\.bin"):
        kas.onnx.InferenceSession(path, threads=1).run(None, {"x": data})


def refer(name, attribute):
    """An attribute of a node in a function: that of the call."""
    return onnx.AttributeProto(name=name, ref_attr_name=attribute, type=onnx.AttributeProto.FLOAT)


def test_functions_of_the_model():
    """A function that calls another one, with an attribute that is passed on."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    scale = helper.make_node("LeakyRelu", ["x"], ["y"])
    scale.attribute.append(refer("alpha", "slope"))
    inner = helper.make_function("local", "Leak", ["x"], ["y"], [scale], opsets, attributes=["slope"])
    call = helper.make_node("Leak", ["x"], ["z"], domain="local")
    call.attribute.append(refer("slope", "slope"))
    add = helper.make_node("Add", ["x", "z"], ["y"])
    outer = helper.make_function("local", "Twice", ["x"], ["y"], [call, add], opsets, attributes=["slope"])
    node = helper.make_node("Twice", ["x"], ["y"], domain="local", slope=0.25)
    model = make_graph_model([node], {"x": (numpy.float32, ["N", 5])}, ["y"], functions=[inner, outer])
    check(model, {"x": normal(2, 5)})


def test_threads_share_a_session():
    session = kas.onnx.InferenceSession(make_sum(), threads=1)
    feeds = [{"a": normal(1 + size, 3), "b": normal(1 + size, 1)} for size in range(3)] * 8
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda feed: session.run(["sum"], feed)[0], feeds))
    for feed, output in zip(feeds, outputs):
        numpy.testing.assert_array_equal(output, feed["a"] + feed["b"])


def test_few_programs_are_kept(monkeypatch):
    monkeypatch.setattr(_session, "MAX_PROGRAMS", 2)
    session = kas.onnx.InferenceSession(make_sum(), threads=1)
    for size in (1, 2, 1, 3, 1, 2):
        feed = {"a": normal(size, 3), "b": normal(size, 1)}
        numpy.testing.assert_array_equal(session.run(["sum"], feed)[0], feed["a"] + feed["b"])
        assert len(session._programs) <= 2
