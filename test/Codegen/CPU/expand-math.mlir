// RUN: kas-opt %s -kas-expand-math | FileCheck %s
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=x86-64 triple=x86_64-linux-gnu" -kas-expand-math | FileCheck %s --check-prefix=PLAIN

// Functions of f32 become arithmetic, where there are fused multiply-adds;
// others stay.

// CHECK-LABEL: func.func @functions
// CHECK-NOT:     math.{{exp|erf|tanh}}
// CHECK:         math.fma
// CHECK-NOT:     math.{{exp|erf|tanh}}
// CHECK:         math.exp %{{.*}} : f64
// CHECK-NEXT:    math.sin %{{.*}} : f32
// PLAIN-LABEL: func.func @functions
// PLAIN:         math.exp %{{.*}} : f32
// PLAIN:         math.erf %{{.*}} : f32
// PLAIN:         math.tanh %{{.*}} : f32
func.func @functions(%x: f32, %y: f64) -> (f32, f64, f32) {
  %0 = math.exp %x : f32
  %1 = math.erf %0 : f32
  %2 = math.tanh %1 : f32
  %3 = math.exp %y : f64
  %4 = math.sin %x : f32
  return %2, %3, %4 : f32, f64, f32
}

// The root of two of a GELU: a product takes less time.
// CHECK-LABEL: func.func @gelu
// CHECK-DAG:     %[[RECIPROCAL:.*]] = arith.constant dense<0.707106{{.*}}> : vector<16xf32>
// CHECK:         arith.mulf %{{.*}}, %[[RECIPROCAL]] : vector<16xf32>
// CHECK:         arith.divf
// CHECK-NOT:     arith.divf
// CHECK:         return
func.func @gelu(%x: vector<16xf32>) -> vector<16xf32> {
  %root = arith.constant dense<1.41421354> : vector<16xf32>
  %0 = arith.divf %x, %root : vector<16xf32>
  %1 = math.erf %0 : vector<16xf32>
  return %1 : vector<16xf32>
}

// What is near zero is not lost, on all targets and types.
// CHECK-LABEL: func.func @differences
// CHECK-NOT:     math.log1p
// CHECK-NOT:     math.expm1
// CHECK:         %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK:         %[[LOG:.*]] = math.log %[[SUM]] : f32
// CHECK:         arith.divf %[[LOG]]
// CHECK:         arith.select
// CHECK:         return
// PLAIN-LABEL: func.func @differences
// PLAIN-NOT:     math.log1p
// PLAIN-NOT:     math.expm1
// PLAIN:         return
func.func @differences(%x: f32, %y: vector<4xf64>) -> (f32, vector<4xf64>) {
  %0 = math.log1p %x : f32
  %1 = math.expm1 %y : vector<4xf64>
  return %0, %1 : f32, vector<4xf64>
}
