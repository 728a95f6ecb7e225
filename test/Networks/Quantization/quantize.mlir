// A layer in int8: its data by a scale and a zero point, its weights by a scale for each channel.

// RUN: kas-opt %s -kas-quantize="ranges=-1,4.1" -canonicalize | FileCheck %s
// RUN: kas-opt %s -kas-quantize="ranges=-1,4.1" -kas-cpu-pipeline="cpu=cascadelake threads=1 prepack-weights=true" | FileCheck %s --check-prefix=CODE

// 5.1 are 255 steps, and zero is the fiftieth.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<1x8x6x6xf32>, %[[W:[^:]*]]: tensor<4x8x3x3xf32>, %[[B:[^:]*]]: tensor<4xf32>
// CHECK-DAG:   %[[SCALE:.*]] = arith.constant 2.000000e-02 : f32
// CHECK-DAG:   %[[STEPS:.*]] = arith.constant 5.000000e+01 : f32
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 50 : i8
// CHECK:       %[[BYTES:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<1x8x6x6xf32>) outs(%{{.*}} : tensor<1x8x6x6xi8>)
// CHECK:         arith.mulf
// CHECK:         arith.addf %{{.*}}, %[[STEPS]]
// CHECK:         math.roundeven
// CHECK:         arith.maxnumf
// CHECK:         arith.minnumf
// CHECK:         arith.fptosi
// CHECK:         arith.trunci
// CHECK:       tensor.pad %[[BYTES]] low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK:         tensor.yield %[[ZERO]] : i8
// CHECK:       linalg.generic {{.*}} ins(%[[W]] :
// CHECK:         math.absf
// CHECK:         arith.maximumf
// CHECK:       linalg.generic {{.*}} outs(%{{.*}} : tensor<4xf32>)
// CHECK:       %[[WEIGHTS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4x8x3x3xi8>)
// CHECK:         arith.divf
// CHECK:       %[[SUMS:.*]] = linalg.generic {{.*}} ins(%[[WEIGHTS]] : tensor<4x8x3x3xi8>) outs(%{{.*}} : tensor<4xi32>)
// CHECK:       linalg.generic {{.*}} ins(%[[SUMS]], %{{.*}}, %[[B]] : tensor<4xi32>, tensor<4xf32>, tensor<4xf32>)
// CHECK:       %[[PRODUCTS:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[WEIGHTS]] : tensor<1x8x8x8xi8>, tensor<4x8x3x3xi8>) outs(%{{.*}} : tensor<1x4x6x6xi32>)
// CHECK:         arith.extui
// CHECK:         arith.extsi
// CHECK:       %[[Y:.*]] = linalg.generic {{.*}} ins(%[[PRODUCTS]], %{{.*}}, %{{.*}} : tensor<1x4x6x6xi32>, tensor<4xf32>, tensor<4xf32>)
// CHECK:         arith.sitofp
// CHECK-NEXT:    arith.mulf
// CHECK-NEXT:    arith.addf
// CHECK:       return %[[Y]]

// Weights are quantized once.
// CODE-LABEL: llvm.func @forward_prepack(
// CODE:         fdiv
// CODE-LABEL: llvm.func @forward(
// CODE-NOT:     fdiv
// CODE:         vpdpbusd
func.func @forward(%x: tensor<1x8x6x6xf32>, %w: tensor<4x8x3x3xf32>, %b: tensor<4xf32>) -> tensor<1x4x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x6x6xf32> to tensor<1x8x8x8xf32>
  %e = tensor.empty() : tensor<1x4x6x6xf32>
  %init = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<1x4x6x6xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x8x8x8xf32>, tensor<4x8x3x3xf32>)
    outs(%init : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %y : tensor<1x4x6x6xf32>
}
