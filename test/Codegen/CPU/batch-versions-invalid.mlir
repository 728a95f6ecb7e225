// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-batch-versions
// RUN: not kas-opt -kas-batch-versions=threads=-1 %S/split-batch-invalid.mlir 2>&1 | FileCheck %s

// CHECK: error: option 'threads' requires a number of at least 0, got -1

// expected-error@below {{requires data with at least 2 samples first, to take batches of any size, got '(tensor<1x4xf32>) -> tensor<1x4xf32>'}}
func.func @one(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  return %x : tensor<1x4xf32>
}

// -----

// expected-error@below {{requires data with at least 2 samples first, to take batches of any size, got '() -> ()'}}
func.func @nothing() {
  return
}

// -----

// expected-error@below {{requires at most 4096 samples, to take batches of any size, got 4097}}
func.func @many(%x: tensor<4097x4xf32>) -> tensor<4097x4xf32> {
  %y = arith.addf %x, %x : tensor<4097x4xf32>
  return %y : tensor<4097x4xf32>
}

// -----

// expected-error@below {{requires elements of 1, 8, 16, 32 or 64 bits, to take batches of any size, got '(tensor<4x4xi7>) -> tensor<4x4xi7>'}}
func.func @elements(%x: tensor<4x4xi7>) -> tensor<4x4xi7> {
  %y = arith.addi %x, %x : tensor<4x4xi7>
  return %y : tensor<4x4xi7>
}

// -----

// expected-error@below {{requires a function that no other one uses, to take batches of any size}}
func.func @used(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  return %x : tensor<4x4xf32>
}
func.func private @user(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %y = func.call @used(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

func.func @sum(%x: tensor<4x3xf32>, %s: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error@below {{requires samples that are computed one by one, got a sum over samples}}
  %y = linalg.reduce {arith.addf} ins(%x : tensor<4x3xf32>) outs(%s : tensor<3xf32>) dimensions = [0]
  return %y : tensor<3xf32>
}
