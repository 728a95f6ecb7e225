# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Profiles of functions and operators."""

import json

import numpy
import pytest

import kas

LAYER = """
func.func @layer(%x: tensor<8x16xf32>, %w: tensor<16x32xf32> {kas.name = "fc.weight"}) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x32xf32>) outs(%init : tensor<8x32xf32>)
      -> tensor<8x32xf32>
  %z = linalg.exp ins(%y : tensor<8x32xf32>) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %z : tensor<8x32xf32>
}
"""


def test_function(tmp_path):
    module = kas.parse(LAYER, "layer.mlir")
    x = numpy.ones((8, 16), numpy.float32)
    profile = module.profile("layer", x, threads=1, runs=4)
    assert (profile.function, profile.threads, profile.runs) == ("layer", 1, 4)
    matmul, exp = profile.operations
    assert (matmul.operation, matmul.layer, matmul.location) == ("matmul", "fc", "layer.mlir:6:8")
    assert matmul.flops == 2 * 8 * 16 * 32
    assert matmul.strategy and matmul.reason
    assert (exp.operation, exp.flops, exp.layer) == ("exp", 8 * 32, "")
    total = sum(row.ms for row in profile.operations) + profile.outside_ms
    assert total == pytest.approx(profile.ms)
    assert 0 < profile.min_ms <= profile.ms
    assert "kas-pack-contractions" in {compiled.name for compiled in profile.passes}
    assert str(profile).startswith("profile of layer on 1 thread: ")
    profile.write_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    # The module is as before, and the context without remarks.
    assert "kas_cpu.operation" not in str(module)
    assert module.compile("layer")(x, numpy.zeros((16, 32), numpy.float32)).max() == 1


def test_operator(conv2d_binding):
    profile = kas.operator("conv2d").profile(conv2d_binding, runs=2)
    assert "kas.apply @operator" in {row.operation for row in profile.operations}


EMBEDDING = """
func.func @embed(%words: tensor<5xi64>, %table: tensor<7x16xi8>) -> tensor<5x16xi8> {
  %empty = tensor.empty() : tensor<5x16xi8>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%words : tensor<5xi64>) outs(%empty : tensor<5x16xi8>) {
  ^bb0(%word: i64, %out: i8):
    %row = arith.index_cast %word : i64 to index
    %limit = arith.constant 7 : index
    %isRow = arith.cmpi ult, %row, %limit : index
    cf.assert %isRow, "requires a word below 7"
    %column = linalg.index 1 : index
    %byte = tensor.extract %table[%row, %column] : tensor<7x16xi8>
    linalg.yield %byte : i8
  } -> tensor<5x16xi8>
  return %y : tensor<5x16xi8>
}
"""


def test_functions_of_other_types():
    """Words and bytes, as networks of language and quantized ones have; what is not given is zero."""
    module = kas.parse(EMBEDDING)
    words = numpy.array([0, 6, 3, 3, 1])
    table = numpy.arange(7 * 16, dtype=numpy.int8).reshape(7, 16)
    for given in ((), (words,), (words, table), (words, table.view(numpy.uint8))):
        assert module.profile("embed", *given, threads=1, runs=2).operations
    with pytest.raises(kas.Error, match="requires a word below 7"):
        module.profile("embed", words + 1)
    with pytest.raises(kas.Error, match="'arg0' must have elements of i64, got i32"):
        module.profile("embed", words.astype(numpy.int32))


def test_errors():
    module = kas.parse(LAYER)
    with pytest.raises(kas.Error, match=r"'arg0' must have the shape 8x16, got 8x8"):
        module.profile("layer", numpy.ones((8, 8), numpy.float32))
    with pytest.raises(kas.Error, match=r"expected at most 2 arguments of 'layer', got 3"):
        module.profile("layer", *[numpy.ones((8, 16), numpy.float32)] * 3)
    with pytest.raises(kas.Error, match="'arg0' must have elements of f32, got f64"):
        module.profile("layer", numpy.ones((8, 16)))
    with pytest.raises(kas.Error, match="'arg0' must have elements of f32, got i1"):
        module.profile("layer", numpy.ones((8, 16), bool))
    with pytest.raises(ValueError, match="'argument 0' must be contiguous"):
        module.profile("layer", numpy.ones((8, 32), numpy.float32)[:, ::2])
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        module.profile("layer", runs=-1)
    with pytest.raises(kas.Error, match="no function"):
        module.profile("other")


def test_assertion():
    module = kas.parse(
        """
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
          %false = arith.constant false
          cf.assert %false, "requires something else"
          return %x : tensor<4xf32>
        }
        """
    )
    with pytest.raises(kas.Error, match="requires something else"):
        module.profile("f")
