# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that were compiled once for batches of any size."""

from __future__ import annotations

import os
import pickle
import subprocess
from pathlib import Path

import numpy
import pytest
from c_compiler import C_COMPILER

import kas

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import random_networks  # noqa: E402
from per_sample import ASSERTION, Tokens  # noqa: E402

import kas.torch  # noqa: E402
from kas.torch import to_mlir  # noqa: E402

MLP = """
func.func @forward(%x: tensor<{batch}x128xf32> {{kas.name = "x"}}, %w: tensor<128x256xf32> {{kas.name = "w"}},
                   %v: tensor<256x64xf32> {{kas.name = "v"}}) -> (tensor<{batch}x64xf32> {{kas.name = "y"}}) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{batch}x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<{batch}x256xf32>) -> tensor<{batch}x256xf32>
  %h = linalg.matmul ins(%x, %w : tensor<{batch}x128xf32>, tensor<128x256xf32>) outs(%z : tensor<{batch}x256xf32>)
      -> tensor<{batch}x256xf32>
  %f = tensor.empty() : tensor<{batch}x64xf32>
  %u = linalg.fill ins(%zero : f32) outs(%f : tensor<{batch}x64xf32>) -> tensor<{batch}x64xf32>
  %y = linalg.matmul ins(%h, %v : tensor<{batch}x256xf32>, tensor<256x64xf32>) outs(%u : tensor<{batch}x64xf32>)
      -> tensor<{batch}x64xf32>
  return %y : tensor<{batch}x64xf32>
}}
"""


def mlp(batch: int = 16) -> kas.Module:
    return kas.Module(MLP.format(batch=batch), "mlp.mlir")


def weights(seed: int = 0) -> list[numpy.ndarray]:
    draw = numpy.random.default_rng(seed)
    return [draw.standard_normal(shape, numpy.float32) for shape in [(128, 256), (256, 64)]]


def call(function: kas.Function, *tensors: numpy.ndarray) -> numpy.ndarray:
    """What the function gives into memory that nothing was in, with a border that must stay."""
    shape = (tensors[0].shape[0], *function.results[0][1][1:])
    memory = numpy.full(int(numpy.prod(shape)) + 32, numpy.nan, numpy.float32)
    memory[-16:] = memory[:16] = 7
    bound = function.bind(*tensors, out=memory[16:-16].reshape(shape))
    bound.prepack()
    result = bound()
    assert (memory[:16] == 7).all() and (memory[-16:] == 7).all()
    return result


@pytest.mark.parametrize("prepack", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 0])
def test_sizes(prepack: bool, threads: int) -> None:
    function = mlp().compile("forward", threads=threads, prepack_weights=prepack, any_batch=True)
    assert function.any_batch
    w, v = weights()
    for batch in [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 100]:
        x = numpy.random.default_rng(batch).standard_normal((batch, 128), numpy.float32)
        numpy.testing.assert_allclose(call(function, x, w, v), x @ w @ v, rtol=0, atol=5e-3)


@pytest.mark.parametrize("start", [0, 6])
def test_random_networks(start: int) -> None:
    num_checked = 0
    for seed in range(start, start + 6):
        print("seed", seed)
        case = random_networks.make(seed)
        generator = torch.Generator().manual_seed(seed)
        arrays = [t.detach().float().contiguous().numpy() for t in case.tensors.values()]
        batch = case.shape[0]
        try:
            function = case.module.compile(
                "forward", threads=1 + seed % 2, prepack_weights=seed % 3 != 0, any_batch=True
            )
        except kas.Error as error:
            # Norms that take statistics of the batch, and batches of one sample.
            assert "one by one" in str(error) or "at least 2 samples" in str(error), error
            continue
        fixed = case.module.compile("forward", threads=1)
        data = torch.randn(3 * batch, *case.shape[1:], generator=generator).numpy()
        expected = numpy.concatenate(
            [fixed(numpy.ascontiguousarray(data[i : i + batch]), *arrays).copy() for i in range(0, 3 * batch, batch)]
        )
        scale = numpy.abs(expected).max() + 1e-6
        for size in {1, batch - 1, batch, batch + 1, 3 * batch}:
            found = call(function, numpy.ascontiguousarray(data[:size]), *arrays)
            numpy.testing.assert_allclose(found / scale, expected[:size] / scale, rtol=0, atol=1e-5)
        num_checked += 1
    assert num_checked >= 2


@pytest.mark.parametrize("threads", [1, 2])
def test_attention(threads: int) -> None:
    torch.manual_seed(0)
    model = Tokens().eval()
    exported = to_mlir(model, torch.randn(6, 8, 3, 3))
    function = exported.module.compile("forward", threads=threads, prepack_weights=True, any_batch=True)
    arrays = [tensor.detach().numpy() for tensor in exported.tensors.values()]
    for batch in [1, 2, 5, 6, 13]:
        data = torch.randn(batch, 8, 3, 3)
        with torch.no_grad():
            expected = model(data).numpy()
        numpy.testing.assert_allclose(call(function, data.numpy(), *arrays), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_of_few_samples(threads: int) -> None:
    """Images that fill the cache."""
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(8, 8, 3, padding=1, groups=8), torch.nn.Conv2d(8, 32, 1), torch.nn.Conv2d(32, 8, 1)]
    model = torch.nn.Sequential(*layers, *layers).eval()
    exported = to_mlir(model, torch.randn(4, 8, 96, 96))
    function = exported.module.compile("forward", threads=threads, prepack_weights=True, any_batch=True)
    arrays = [tensor.detach().numpy() for tensor in exported.tensors.values()]
    for batch in [1, 3, 9]:
        data = torch.randn(batch, 8, 96, 96)
        with torch.no_grad():
            expected = model(data).numpy()
        numpy.testing.assert_allclose(call(function, data.numpy(), *arrays), expected, rtol=0, atol=1e-5)


def test_new_results_and_pickles() -> None:
    function = mlp().compile("forward", any_batch=True)
    w, v = weights()
    x = numpy.ones((5, 128), numpy.float32)
    assert function(x, w, v).shape == (5, 64)
    tensors = [torch.from_numpy(array) for array in (x, w, v)]
    assert function(*tensors).shape == (5, 64)
    again = pickle.loads(pickle.dumps(function))
    assert again.any_batch
    numpy.testing.assert_array_equal(again(x, w, v), function(x, w, v))
    assert not mlp().compile("forward").any_batch


def test_what_does_not_fit() -> None:
    function = mlp().compile("forward", any_batch=True)
    w, v = weights()
    x = numpy.ones((5, 128), numpy.float32)
    with pytest.raises(ValueError, match=r"'y' must have the shape \(5, 64\), got \(4, 64\)"):
        function(x, w, v, out=numpy.empty((4, 64), numpy.float32))
    with pytest.raises(ValueError, match=r"'x' must have the shape \(5, 128\), got \(5, 127\)"):
        function(numpy.ones((5, 127), numpy.float32), w, v)
    with pytest.raises(ValueError, match=r"'w' must have the shape \(128, 256\), got \(256, 128\)"):
        function(x, w.T.copy(), v)
    with pytest.raises(ValueError, match="'x' must have the shape"):
        function(numpy.array(3, numpy.float32), w, v, out=numpy.empty((1, 64), numpy.float32))
    # What depends on weights alone is packed on every machine.
    doubled = MLP.replace("ins(%x, %w :", "ins(%x, %twice :").replace(
        "  %zero", "  %twice = arith.addf %w, %w : tensor<128x256xf32>\n  %zero", 1
    )
    packed = kas.Module(doubled.format(batch=16), "doubled.mlir")
    with pytest.raises(kas.Error, match="prepacked before the first call"):
        packed.compile("forward", prepack_weights=True, any_batch=True)(x, w, v)
    with pytest.raises(ValueError, match="requires any_batch=False"):
        mlp().compile("forward", any_batch=True, check="exact")


def test_what_is_no_batch() -> None:
    with pytest.raises(kas.Error, match=r"requires data with at least 2 samples first.* got .*tensor<1x128xf32>"):
        mlp(1).compile("forward", any_batch=True)
    with pytest.raises(kas.Error, match=r"requires at most 4096 samples.* got 5000"):
        mlp(5000).compile("forward", any_batch=True)
    mixed = """func.func @forward(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %i = tensor.empty() : tensor<4x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, c) -> (3 - n, c)>, affine_map<(n, c) -> (n, c)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xf32>) outs(%i : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}"""
    with pytest.raises(kas.Error, match="requires samples that are computed one by one"):
        kas.Module(mixed).compile("forward", any_batch=True)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sample", [0, 4, 8, 10])
def test_messages(threads: int, sample: int) -> None:
    function = kas.Module(ASSERTION, "assertion.mlir").compile("forward", threads=threads, any_batch=True)
    data = numpy.ones((11, 2), numpy.float32)
    numpy.testing.assert_array_equal(function(data), data)
    data[sample, 1] = -1
    with pytest.raises(kas.Error, match=r"assertion.mlir:\d+:\d+: requires numbers of at least 0"):
        function(data)


MAIN = """
#include "forward.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

// So many bytes; the page after them may not be touched.
static float *guarded(size_t bytes) {
  size_t page = 4096, whole = (bytes + page - 1) / page * page;
  char *start = mmap(0, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED || mprotect(start + whole, page, PROT_NONE))
    exit(4);
  return (float *)(start + whole - bytes);
}

int main(void) {
  static float w[128 * 256], v[256 * 64];
  for (int i = 0; i < 128 * 256; ++i)
    w[i] = i % 7 - 3;
  for (int i = 0; i < 256 * 64; ++i)
    v[i] = i % 5 - 2;
  void *packed = aligned_alloc(64, forward_prepacked_elements() * sizeof(float));
  if (forward_prepack(w, v, packed))
    return 1;
  for (int64_t samples = 0; samples < 40; ++samples) {
    float *x = guarded(samples * 128 * sizeof(float)), *y = guarded(samples * 64 * sizeof(float));
    for (int i = 0; i < samples * 128; ++i)
      x[i] = i % 11 - 5;
    if (forward(x, w, v, y, packed, samples))
      return 2;
    for (int n = 0; n < samples; ++n)
      for (int o = 0; o < 64; ++o) {
        float sum = 0;
        for (int h = 0; h < 256; ++h) {
          float hidden = 0;
          for (int c = 0; c < 128; ++c)
            hidden += x[n * 128 + c] * w[c * 256 + h];
          sum += hidden * v[h * 64 + o];
        }
        if (sum != y[n * 64 + o])
          return 3;
      }
  }
  puts(forward(0, w, v, 0, packed, -1));
  free(packed);
  return 0;
}
"""


def test_from_c(tmp_path: Path) -> None:
    (tmp_path / "forward.mlir").write_text(MLP.format(batch=16))
    (tmp_path / "main.c").write_text(MAIN)

    # Of the build tree, which need not be in PATH.
    tools = Path(os.environ["KAS_BUILD"]).resolve() / "bin"

    def run(*command: str | Path) -> str:
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    options = "threads=1 prepack-weights=true any-batch=true"
    run(tools / "kas-opt", "forward.mlir", f"-kas-cpu-pipeline={options}", "-o", "l.mlir")
    run(tools / "kas-translate", "-kas-to-object", "l.mlir", "-o", "forward.o")
    lowered = "--kas-lowered=l.mlir"
    header = run(tools / "kas-translate", "-kas-to-c-header", "forward.mlir", lowered, "-o", "-")
    assert " * x: float[samples][128]\n * w: float[128][256]" in header
    assert "y: float[samples][64]" in header
    assert "float *y, const void *packed, int64_t samples);" in header
    (tmp_path / "forward.h").write_text(header)
    run(C_COMPILER, "-O2", "main.c", "forward.o", "-lm", "-o", "main")
    assert "requires a batch of at least 0 samples" in run("./main")
