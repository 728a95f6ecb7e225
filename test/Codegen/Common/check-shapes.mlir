// RUN: kas-opt %s -kas-check-shapes -verify-diagnostics -split-input-file | FileCheck %s
// RUN: kas-opt %s -kas-cpu-pipeline=threads=1 -verify-diagnostics -split-input-file -o /dev/null

// Sizes that only the function has may be dynamic.
//
// CHECK-LABEL: func.func @inside(
// CHECK:         tensor.cast
func.func @inside(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.cast %x : tensor<4xf32> to tensor<?xf32>
  %1 = tensor.cast %0 : tensor<?xf32> to tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// expected-error @+1 {{expected static shapes of the arguments and results of compiled functions, for argument 1 of '@argument' got 'tensor<?x4xf32>'}}
func.func @argument(%n: tensor<4xf32>, %x: tensor<?x4xf32>) -> tensor<4xf32> {
  return %n : tensor<4xf32>
}

// -----

// No rows are fine, empty ones are not.
// expected-error @+1 {{expected rows with elements of the arguments and results of compiled functions, for argument 1 of '@empty' got 'tensor<4x0xf32>'}}
func.func @empty(%n: tensor<0x4xf32>, %x: tensor<4x0xf32>) -> tensor<0x4xf32> {
  return %n : tensor<0x4xf32>
}

// -----

// expected-error @+1 {{for result 0 of '@result' got 'tensor<?xf32>'}}
func.func @result(%x: tensor<4xf32>) -> tensor<?xf32> {
  %0 = tensor.cast %x : tensor<4xf32> to tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-error @+1 {{for argument 0 of '@buffer' got 'memref<?xf32>'}}
func.func @buffer(%x: memref<?xf32>) {
  return
}

// -----

// expected-error @+1 {{for argument 0 of '@outside' got 'tensor<?xf32>'}}
func.func private @outside(tensor<?xf32>)
func.func @caller(%x: tensor<4xf32>) {
  %0 = tensor.cast %x : tensor<4xf32> to tensor<?xf32>
  call @outside(%0) : (tensor<?xf32>) -> ()
  return
}
