// RUN: kas-opt %s -kas-training-step='data=input,scales' | FileCheck %s
// RUN: not kas-opt %s -kas-training-step=data=none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kas-opt %s -kas-training-step=data=input,input 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not kas-opt %s -kas-training-step 2>&1 | FileCheck %s --check-prefix=TRAINED
// RUN: kas-opt %s -kas-training-step='data=input,scales' -kas-cpu-pipeline=threads=1 -o /dev/null

// NONE: error: to train, requires data that are arguments (kas.name), each once, got 'none'
// TWICE: error: to train, requires data that are arguments (kas.name), each once, got 'input'
// TRAINED: error: to train, requires parameters of 'f32', got 'scales' of type 'tensor<2xi64>' (data are named by the option 'data', what is not trained has the attribute 'kas.constant')

// Two inputs, one of integers, an embedding, a constant and a dropout.

// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[INPUT:[a-z0-9]*]]: tensor<2x3xf32> {kas.name = "input"}, %[[SCALES:[a-z0-9]*]]: tensor<2xf32> {kas.name = "scales"},
// CHECK-SAME: tensor<2xf32> {kas.name = "labels"}, %{{[a-z0-9]*}}: tensor<f32> {kas.init = "constant(0.1)", kas.name = "learning_rate"},
// CHECK-SAME: %[[SEED:[a-z0-9]*]]: tensor<2xf32> {kas.name = "seed"},
// CHECK-SAME: %[[TABLE:[a-z0-9]*]]: tensor<7x4xf32> {kas.name = "table"}, %[[MASK:[a-z0-9]*]]: tensor<4xf32> {kas.constant, kas.name = "mask"},
// CHECK-SAME: tensor<7x4xf32> {kas.init = "zeros", kas.name = "table.momentum"})
// CHECK-SAME: -> (tensor<f32> {kas.name = "loss"}, tensor<f32> {kas.name = "correct"}, tensor<7x4xf32> {kas.name = "table"}, tensor<4xf32> {kas.name = "mask"},
// CHECK-SAME: tensor<7x4xf32> {kas.name = "table.momentum"})
// CHECK: ins(%[[INPUT]] : tensor<2x3xf32>)
// CHECK: cf.assert %{{.*}}, "requires whole numbers for integers, less than 16777216"
// CHECK: arith.fptosi %{{.*}} : f32 to i64
// CHECK: kas.dropout %{{.*}} probability 1.000000e-01 seed %[[SEED]] stream 0 : tensor<2x3x4xf32>, tensor<2xf32>
// The gradient is left out at the same places.
// CHECK: kas.dropout %{{.*}} probability 1.000000e-01 seed %[[SEED]] stream 0 : tensor<2x3x4xf32>, tensor<2xf32>
// Each element goes to where it came from.
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tensor.insert %{{.*}} into %{{.*}} : tensor<7x4xf32>

// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: tensor<2x3xf32> {kas.name = "input"}, %{{[a-z0-9]*}}: tensor<2xf32> {kas.name = "scales"}, %{{[a-z0-9]*}}: tensor<2xf32> {kas.name = "labels"},
// CHECK-NOT: kas.dropout
func.func @forward(%input: tensor<2x3xi64> {kas.name = "input"}, %scales: tensor<2xi64> {kas.name = "scales"},
    %table: tensor<7x4xf32> {kas.name = "table"}, %mask: tensor<4xf32> {kas.name = "mask", kas.constant}) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x4xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(n, l, c) -> (n, l)>, affine_map<(n, l, c) -> (n, l, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%input : tensor<2x3xi64>) outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%a: i64, %b: f32):
    %c7 = arith.constant 7 : index
    %i = arith.index_cast %a : i64 to index
    %c = linalg.index 2 : index
    %low = arith.cmpi ult, %i, %c7 : index
    cf.assert %low, "requires numbers of rows, less than 7"
    %v = tensor.extract %table[%i, %c] : tensor<7x4xf32>
    linalg.yield %v : f32
  } -> tensor<2x3x4xf32>
  %y = kas.dropout %x probability 0.1 : tensor<2x3x4xf32>
  %t = tensor.empty() : tensor<2x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%t : tensor<2x4xf32>) -> tensor<2x4xf32>
  %logits = linalg.generic {indexing_maps = [affine_map<(n, c, l) -> (n, l, c)>, affine_map<(n, c, l) -> (n)>, affine_map<(n, c, l) -> (c)>,
      affine_map<(n, c, l) -> (n, c)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %scales, %mask : tensor<2x3x4xf32>, tensor<2xi64>, tensor<4xf32>) outs(%f : tensor<2x4xf32>) {
  ^bb0(%a: f32, %b: i64, %m: f32, %o: f32):
    %k = arith.sitofp %b : i64 to f32
    %p = arith.mulf %a, %k : f32
    %q = arith.mulf %p, %m : f32
    %s = arith.addf %o, %q : f32
    linalg.yield %s : f32
  } -> tensor<2x4xf32>
  return %logits : tensor<2x4xf32>
}
