// RUN: kas-opt %s -kas-cpu-pipeline=threads=1 -verify-diagnostics -split-input-file -o /dev/null -allow-unregistered-dialect
// RUN: not kas-opt %s -kas-check-lowered -split-input-file -o /dev/null -allow-unregistered-dialect 2>&1 | FileCheck %s

// What is left is an error, never a module that is reported as done.
// CHECK: error: the pipeline for CPUs requires operations that it lowers to the LLVM dialect, got 'func.func'
func.func @shape(%x: tensor<4xf32>) -> tensor<1xindex> {
  // expected-error @+1 {{the pipeline for CPUs requires an operation that it lowers, got 'shape.shape_of'; -convert-shape-to-std lowers it}}
  %0 = shape.shape_of %x : tensor<4xf32> -> tensor<1xindex>
  return %0 : tensor<1xindex>
}

// -----

func.func @unregistered(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{the pipeline for CPUs requires registered operations, got 'my.op'}}
  %0 = "my.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @stablehlo(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{requires registered operations, got 'stablehlo.add'; -stablehlo-legalize-to-linalg of StableHLO lowers it}}
  %0 = "stablehlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// No way from this tensor to a buffer.
func.func @scatter(%x: tensor<5x6xf32>, %y: tensor<3x1x6xf32>, %i: tensor<3x1xi64>) -> tensor<5x6xf32> {
  // expected-error @+1 {{requires an operation that it lowers, got 'tensor.scatter'}}
  %0 = tensor.scatter %y into %x[%i] scatter_dims([0]) unique : (tensor<3x1x6xf32>, tensor<5x6xf32>, tensor<3x1xi64>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

// -----

// expected-error @+1 {{the pipeline for CPUs requires a rank, got 'tensor<*xf32>' in 'func.func'}}
func.func @unranked(%x: tensor<*xf32>) {
  return
}

// -----

// expected-error @+1 {{the pipeline for CPUs requires elements of f16, bf16, f32, f64, integers of at most 128 bits, or complex numbers of them, got 'tensor<4xf8E4M3FN>' in 'func.func'}}
func.func @float8(%x: tensor<4xf8E4M3FN>) {
  return
}

// -----

// expected-error @+1 {{the pipeline for CPUs requires less than 2^59 elements, got 'tensor<4611686018427387904x4xf32>' in 'func.func'}}
func.func @huge(%x: tensor<4611686018427387904x4xf32>) {
  return
}

// -----

#csr = #sparse_tensor.encoding<{map = (d0, d1) -> (d0 : dense, d1 : compressed)}>
// expected-error @+1 {{the pipeline for CPUs requires no encoding}}
func.func @sparse(%x: tensor<4x4xf32, #csr>) {
  return
}

// -----

// expected-error @+1 {{requires an operation that it lowers, got 'gpu.module'; -gpu-to-llvm, or -kas-nvvm-pipeline for functions on tensors, lowers it}}
gpu.module @kernels {
}

// -----

module {
  // expected-error @+1 {{requires an operation that it lowers, got 'builtin.module'; a run on that module alone lowers it}}
  module @inner {
  }
}

// -----

// Before patterns of upstream see them.
func.func @no_rank_beside_tosa(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tosa.ceil %x : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{the pipeline for CPUs requires a rank, got 'tensor<*xf32>' in 'bufferization.alloc_tensor'}}
  %1 = "bufferization.alloc_tensor"() : () -> (tensor<*xf32>)
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{the pipeline for CPUs requires a rank, got 'tensor<*xf32>' in 'func.func'}}
func.func @scatter(%x: tensor<*xf32>, %i: tensor<*xi32>) -> tensor<*xf32> {
  %0 = "tosa.scatter"(%x, %i, %x) : (tensor<*xf32>, tensor<*xi32>, tensor<*xf32>) -> (tensor<*xf32>)
  return %0 : tensor<*xf32>
}

// -----

func.func @dropped(%x: memref<3x4x1xf32>) -> memref<1x1xf32, strided<[4, 3], offset: 8>> {
  // expected-error @+1 {{'memref.subview' op that drops some of its dimensions of size 1 requires strides of 1, got [1, 3, 3]}}
  %0 = memref.subview %x[2, 0, 0] [1, 1, 1] [1, 3, 3] : memref<3x4x1xf32> to memref<1x1xf32, strided<[4, 3], offset: 8>>
  return %0 : memref<1x1xf32, strided<[4, 3], offset: 8>>
}

// -----

func.func @softmax_of_integers(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @+1 {{the pipeline for CPUs requires an operation that it lowers, got 'linalg.softmax'}}
  %0 = linalg.softmax dimension(0) ins(%x : tensor<4xi32>) outs(%x : tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
