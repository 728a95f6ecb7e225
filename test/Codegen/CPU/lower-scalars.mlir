// RUN: kas-opt %s -kas-lower-scalars | FileCheck %s
// RUN: kas-opt %s -kas-cpu-pipeline=threads=1 | FileCheck %s --check-prefix=LOWERED

// CHECK-LABEL: func.func @power(
// CHECK-NOT:     math.ipowi
// CHECK:         @__mlir_math_ipowi_i32
// LOWERED-LABEL: llvm.func @power(
func.func @power(%x: tensor<8xi32>, %k: tensor<8xi32>) -> tensor<8xi32> {
  %0 = tensor.empty() : tensor<8xi32>
  %1 = linalg.map ins(%x, %k : tensor<8xi32>, tensor<8xi32>) outs(%0 : tensor<8xi32>)
    (%a: i32, %b: i32, %o: i32) {
      %2 = math.ipowi %a, %b : i32
      linalg.yield %2 : i32
    }
  return %1 : tensor<8xi32>
}

// CHECK-LABEL: func.func @product(
// CHECK-NOT:     complex.
// LOWERED-LABEL: llvm.func @product(
func.func @product(%x: complex<f32>, %y: complex<f32>) -> f32 {
  %0 = complex.mul %x, %y : complex<f32>
  %1 = complex.re %0 : complex<f32>
  return %1 : f32
}

// CHECK-LABEL: func.func @classes(
// CHECK-NOT:     math.is
// CHECK-NOT:     math.clampf
// LOWERED-LABEL: llvm.func @classes(
func.func @classes(%x: f32, %low: f32, %high: f32) -> (i1, i1, f32) {
  %0 = math.isinf %x : f32
  %1 = math.isnormal %x : f32
  %2 = math.clampf %x to [%low, %high] : f32
  return %0, %1, %2 : i1, i1, f32
}

// CHECK-LABEL: func.func @index(
// CHECK:         @__mlir_math_ipowi_i64
// CHECK:         arith.addui_extended {{.*}} : i64, i1
// LOWERED-LABEL: llvm.func @index(
func.func @index(%x: index, %y: index) -> (index, index, i1) {
  %0 = math.ipowi %x, %y : index
  %1, %2 = arith.addui_extended %x, %y : index, i1
  return %0, %1, %2 : index, index, i1
}
