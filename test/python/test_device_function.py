# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Module.compile for CUDA devices, on a stand-in for the driver: nothing here has run on a GPU."""

from __future__ import annotations

import gc
import pickle
import threading

import numpy
import pytest

import kas

torch = pytest.importorskip("torch")

from cuda_stand_in import FILE, CudaTensor, StandIn, read  # noqa: E402

pytestmark = pytest.mark.gpu

# One kernel; weights are read as they are.
LINEAR = """
func.func @forward(%x: tensor<8x64xf32>, %w: tensor<64x32xf32> {kas.name = "weight"}) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>)
    outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
"""
STREAM = 0x77


class Stream:
    cuda_stream = STREAM


@pytest.fixture
def driver(monkeypatch):
    monkeypatch.setenv("KAS_RT_LIBCUDA", "")
    stand_in = StandIn()
    stand_in.add_stream(STREAM)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream)

    def multiply(get):
        # Kernels take what makes rows first.
        w, x, y = (read(get(i), size) for i, size in enumerate((64 * 32, 8 * 64, 8 * 32)))
        y[:] = (x.reshape(8, 64) @ w.reshape(64, 32)).reshape(-1)

    stand_in.set_kernel("forward_0", multiply)
    yield stand_in
    gc.collect()
    assert stand_in.violations == ""
    assert stand_in.controls.count_live() == 0


def place(stand_in, host):
    """The tensor as one on the device."""
    stand_in.controls.add_memory(host.data_ptr(), host.numel() * host.element_size())
    return CudaTensor(host)


@pytest.fixture
def tensors(driver):
    torch.manual_seed(0)
    return [place(driver, tensor) for tensor in (torch.randn(8, 64), torch.randn(64, 32), torch.zeros(8, 32))]


def test_runs_where_the_tensors_are(driver, tensors):
    x, w, y = tensors
    function = kas.parse(LINEAR).compile("forward", "cuda")
    assert isinstance(function, kas.DeviceFunction) and function.device == "cuda:0"
    assert [name for name, _ in function.arguments] == ["arg0", "weight"]
    assert function.types == ["float32"] * 3 and function.compile_milliseconds > 0
    assert function.libraries == ["kernel"]
    call = function.bind(x, w, out=y)
    for round in range(4):
        x.host.normal_()
        assert call() is y
        torch.testing.assert_close(y.host, x.host @ w.host)
        assert len(driver.find_calls("cuGraphLaunch")) == round
    # All of it in the caller's stream; nothing was copied to or from the device.
    assert {line.split(", ")[-1] for line in driver.find_calls("cuGraphLaunch")} == {hex(STREAM)}
    assert driver.find_calls("cuLaunchKernel")[0].endswith(hex(STREAM))
    assert not driver.find_calls("cuMemcpyHtoDAsync_v2") and not driver.find_calls("cuMemcpyDtoHAsync_v2")
    del call, function


def test_results_are_made_where_the_arguments_are(driver, tensors, monkeypatch):
    made = place(driver, torch.zeros(8, 32))
    monkeypatch.setattr(CudaTensor, "new_empty", lambda self, shape, dtype: made, raising=False)
    monkeypatch.setattr(CudaTensor, "detach", lambda self: self, raising=False)
    function = kas.parse(LINEAR).compile("forward", "cuda:0")
    assert function(*tensors[:2]) is made
    torch.testing.assert_close(made.host, tensors[0].host @ tensors[1].host)
    del function


class Array:
    """As CuPy's arrays describe themselves."""

    def __init__(self, host, **changes):
        self.__cuda_array_interface__ = {
            "shape": tuple(host.shape),
            "typestr": host.numpy().dtype.str,
            "data": (host.data_ptr(), False),
            "version": 3,
            **changes,
        }


def test_arrays_of_others(driver, tensors):
    x, w, y = (tensor.host for tensor in tensors)
    function = kas.parse(LINEAR).compile("forward", "cuda")
    driver.add_stream(0x99)
    driver.add_stream(0)
    arrays = Array(x, stream=0x99), Array(w, strides=(128, 4))
    function(*arrays, out=Array(y))
    torch.testing.assert_close(y, x @ w)
    function(*arrays, out=Array(y), stream=Stream)
    function(Array(x), Array(w), out=Array(y))
    last = [line.split(", ")[-1] for line in driver.find_calls("cu(?:LaunchKernel|GraphLaunch)")]
    # The graph is recorded in a stream of its own.
    assert [last[0], *last[2:]] == ["0x99", hex(STREAM), "0"]
    with pytest.raises(ValueError, match=r"arrays of several streams require stream=, got those of \[1, 2\]"):
        function(Array(x, stream=1), Array(w, stream=2), out=Array(y))
    with pytest.raises(TypeError, match="out= is required where the first argument is no torch tensor"):
        function(*arrays)
    with pytest.raises(ValueError, match="'weight' must be contiguous"):
        function(Array(x), Array(w, strides=(4, 256)), out=Array(y))
    del function


def test_what_a_call_refuses(driver, tensors):
    x, w, y = tensors
    function = kas.parse(LINEAR).compile("forward", "cuda")
    for arguments, error, message in (
        ((x,), TypeError, "expected 2 arguments, got 1"),
        ((x.host, w), ValueError, r"'arg0' must be on 'cuda:0', got a tensor on 'cpu'; use .to\('cuda:0'\)"),
        ((x, CudaTensor(w.host, "cuda:1")), ValueError, "'weight' must be on 'cuda:0', got a tensor on 'cuda:1'"),
        ((x, CudaTensor(torch.zeros(32, 64))), ValueError, r"'weight' must have the shape \(64, 32\), got \(32, 64\)"),
        ((x, CudaTensor(torch.zeros(64, 32).half())), TypeError, "elements of type float32, got float16"),
        ((x, CudaTensor(torch.zeros(32, 64).t())), ValueError, "'weight' must be contiguous"),
        ((x, CudaTensor(torch.zeros(64 * 32 + 1)[1:].view(64, 32))), ValueError, "multiple of 16 bytes, got 0x"),
        ((x, numpy.zeros((64, 32), "f4")), TypeError, "'weight' must be a torch tensor on 'cuda:0' or another array"),
    ):
        with pytest.raises(error, match=message):
            function(*arguments, out=y)
    assert not driver.find_calls("cuLaunchKernel")
    driver.controls.fail(b"cuLaunchKernel", 1, 719)
    with pytest.raises(kas.Error, match=r"cuda:0 \(Stand-in\).*CUDA_ERROR_LAUNCH_FAILED"):
        function(x, w, out=y)
    del function


@pytest.mark.parametrize(
    "options, message",
    [
        ({"device": "rocm"}, "the device must be 'cpu', 'cuda' or 'cuda:INDEX', got 'rocm'"),
        ({"device": "cuda", "any_batch": True}, "any_batch= requires device='cpu', got 'cuda'"),
        ({"device": "cuda", "check": "exact"}, "check= requires device='cpu', got 'cuda'"),
        ({"device": "cuda", "threads": 2}, "threads= requires device='cpu', got 'cuda'"),
        ({"device": "cuda", "precision": "f8"}, "precision requires 'f32', 'tf32', 'f16', 'bf16', got 'f8'"),
        ({"device": "cuda", "libraries": "some"}, "libraries requires 'auto' or 'none', got 'some'"),
    ],
)
def test_options_that_there_are_not(options, message):
    with pytest.raises(ValueError, match=message):
        kas.parse(LINEAR).compile("forward", **options)


def test_errors_name_the_driver_the_architecture_and_a_remedy(driver, monkeypatch):
    module = kas.parse(LINEAR)
    with pytest.raises(kas.Error, match=r"no device cuda:7: looked for it in .*, which has 2 CUDA devices"):
        module.compile("forward", "cuda:7")
    monkeypatch.setenv("KAS_STAND_IN_ARCHITECTURE", "70")
    with pytest.raises(kas.Error, match=r"cuda \(Stand-in, sm_70\): expected a device of .*; compile for the CPU"):
        module.compile("forward", "cuda")
    monkeypatch.delenv("KAS_STAND_IN_ARCHITECTURE")
    driver.controls.fail(b"cuModuleLoadDataEx", 1, 222)
    with pytest.raises(kas.Error, match=r"on cuda:0 \(Stand-in\).*for sm_90 the driver is for CUDA 12.4; a newer one"):
        module.compile("forward", "cuda")
    for changes, message in (
        (("f32", "f64"), "expected elements of f32, f16 or bf16 for 'arg0' on a CUDA device, got f64"),
        (("8x", "0x"), "expected elements in 'arg0' on a CUDA device, got none"),
    ):
        with pytest.raises(kas.Error, match=message):
            kas.parse(LINEAR.replace(*changes)).compile("forward", "cuda")
    monkeypatch.setenv("KAS_RT_LIBCUDA", "libnone.so")
    message = r"no CUDA driver: looked for the library libnone.so .*; install NVIDIA's driver, or compile for the CPU"
    with pytest.raises(kas.Error, match=message):
        module.compile("forward", "cuda")


def test_sixteen_bits_use_tensor_cores_without_being_asked(driver):
    module = kas.parse(LINEAR.replace("f32", "f16"))
    function = module.compile("forward", "cuda", libraries="none")
    assert function.types == ["float16"] * 3 and function.libraries == ["kernel"]
    del function
    # Each kernel for tensor cores of 16 bits here needs more memory than it declares, or a descriptor.
    assert driver.find_calls("cuModuleLoadDataEx")


def test_without_libraries_kernels_have_their_own_order(driver, monkeypatch):
    # Loaded twice: nothing was found that could compute the product.
    function = kas.parse(LINEAR).compile("forward", "cuda")
    assert function.libraries == ["kernel"] and len(driver.find_calls("cuModuleLoadDataEx")) == 2
    del function
    monkeypatch.setenv("KAS_RT_LIBCUBLASLT", str(FILE.with_name("libkas-cublaslt-stand-in.so")))
    function = kas.parse(LINEAR).compile("forward", "cuda")
    assert function.libraries == ["cuBLASLt 12.1.3"] and len(driver.find_calls("cuModuleLoadDataEx")) == 3
    del function


# A convolution for cuDNN and a product for cuBLASLt, each faster there than by a kernel.
BOTH = """
func.func @forward(%x: tensor<8x128x30x30xf32>, %w: tensor<128x128x3x3xf32> {kas.name = "conv"},
    %a: tensor<512x768xf32>, %b: tensor<768x3072xf32> {kas.name = "linear"})
    -> (tensor<8x128x28x28xf32>, tensor<512x3072xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x128x28x28xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x128x28x28xf32>) -> tensor<8x128x28x28xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<8x128x30x30xf32>, tensor<128x128x3x3xf32>)
    outs(%f : tensor<8x128x28x28xf32>) -> tensor<8x128x28x28xf32>
  %d = tensor.empty() : tensor<512x3072xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<512x3072xf32>) -> tensor<512x3072xf32>
  %z = linalg.matmul ins(%a, %b : tensor<512x768xf32>, tensor<768x3072xf32>)
    outs(%g : tensor<512x3072xf32>) -> tensor<512x3072xf32>
  return %y, %z : tensor<8x128x28x28xf32>, tensor<512x3072xf32>
}
"""


@pytest.mark.parametrize(
    ("found", "computed", "loads"),
    (
        (("cublaslt", "cudnn"), {"cuBLASLt 12.1.3", "cuDNN 8.9.7"}, 1),
        (("cublaslt",), {"cuBLASLt 12.1.3"}, 2),
        (("cudnn",), {"cuDNN 8.9.7"}, 2),
        ((), set(), 2),
    ),
)
def test_a_library_that_is_missing_is_not_compiled_for(driver, monkeypatch, found, computed, loads):
    for library in ("cublaslt", "cudnn"):
        file = FILE.with_name(f"libkas-{library}-stand-in.so") if library in found else "libnone.so"
        monkeypatch.setenv(f"KAS_RT_LIB{library.upper()}", str(file))
    function = kas.parse(BOTH).compile("forward", "cuda", precision="tf32")
    # Nothing is left for a library that is missing: such a kernel would say so, and read weights in its order.
    assert set(function.libraries) - {"kernel"} == computed
    assert len(driver.find_calls("cuModuleLoadDataEx")) == loads
    del function


def test_a_second_library_that_is_missing_is_found_out_later(driver, monkeypatch):
    # A 1x1 convolution is cuDNN's; without it, it is a product for cuBLASLt, which is not opened before.
    for library in ("cublaslt", "cudnn"):
        monkeypatch.setenv(f"KAS_RT_LIB{library.upper()}", "libnone.so")
    network = """
func.func @forward(%x: tensor<1x512x28x28xf32>, %w: tensor<512x512x1x1xf32> {kas.name = "conv"})
    -> tensor<1x512x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x512x28x28xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x512x28x28xf32>) -> tensor<1x512x28x28xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x512x28x28xf32>, tensor<512x512x1x1xf32>)
    outs(%f : tensor<1x512x28x28xf32>) -> tensor<1x512x28x28xf32>
  return %y : tensor<1x512x28x28xf32>
}
"""
    function = kas.parse(network).compile("forward", "cuda", precision="tf32")
    assert set(function.libraries) == {"kernel"}
    assert len(driver.find_calls("cuModuleLoadDataEx")) >= 2
    del function


def test_several_threads_and_copies(driver, tensors):
    x, w, _ = tensors
    function = kas.parse(LINEAR).compile("forward", "cuda")
    again = pickle.loads(pickle.dumps(function))
    assert isinstance(again, kas.DeviceFunction) and again.arguments == function.arguments
    results = [place(driver, torch.zeros(8, 32)) for _ in range(4)]
    calls = [(function if i % 2 else again).bind(x, w, out=result) for i, result in enumerate(results)]

    def run(call):
        for _ in range(20):
            call()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        torch.testing.assert_close(result.host, x.host @ w.host)
    del calls, function, again
