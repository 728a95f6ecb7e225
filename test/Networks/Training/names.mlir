// RUN: kas-opt %s -kas-training-step | FileCheck %s
// RUN: kas-opt %s -kas-training-step -o %t.mlir

// Arguments without names have those of compiled functions. One sample and one class will do.

// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: tensor<1x3xf32> {kas.name = "arg0"}, %{{[a-z0-9]*}}: tensor<1xf32> {kas.name = "labels"}
// CHECK-SAME: tensor<3x1xf32> {kas.name = "arg1"}
// CHECK-SAME: tensor<3x1xf32> {kas.init = "zeros", kas.name = "arg1.momentum"})
// CHECK-SAME: tensor<3x1xf32> {kas.name = "arg1"}, tensor<3x1xf32> {kas.name = "arg1.momentum"})

// Random labels are no classes.
// RUN: not kas-run %t.mlir --function=train_step --args=1 2>&1 | FileCheck %s --check-prefix=LABELS
// LABELS: kas-run: error: {{.*}}: requires labels that are numbers of classes, less than 1
func.func @forward(%x: tensor<1x3xf32>, %w: tensor<3x1xf32>) -> tensor<1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %r = linalg.matmul ins(%x, %w : tensor<1x3xf32>, tensor<3x1xf32>) outs(%f : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %r : tensor<1x1xf32>
}
