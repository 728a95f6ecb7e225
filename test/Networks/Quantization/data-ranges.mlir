// A function that returns the range of the data of each layer that can be int8: of what is padded, not of the
// zeros around it; a depthwise convolution is no such layer, nor is a product of data by data.

// RUN: kas-opt %s -kas-data-ranges | FileCheck %s
// RUN: kas-opt %s -kas-data-ranges -kas-cpu-pipeline=threads=1 -o /dev/null

// CHECK-LABEL: func.func @forward(
// CHECK-LABEL: func.func @forward_ranges(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<1x8x6x6xf32> {kas.name = "x"}, %{{.*}}: tensor<4x8x3x3xf32>
// CHECK-SAME:    -> tensor<1x2xf32>
// CHECK:       linalg.generic {{.*}} iterator_types = ["reduction", "reduction", "reduction", "reduction"]} ins(%[[X]] :
// CHECK:         arith.minimumf
// CHECK:       %[[LOWER:.*]] = tensor.extract
// CHECK:       linalg.generic {{.*}} ins(%[[X]] :
// CHECK:         arith.maximumf
// CHECK:       %[[UPPER:.*]] = tensor.extract
// CHECK:       %[[RANGES:.*]] = tensor.from_elements %[[LOWER]], %[[UPPER]] : tensor<1x2xf32>
// CHECK:       return %[[RANGES]]
func.func @forward(%x: tensor<1x8x6x6xf32> {kas.name = "x"}, %w: tensor<4x8x3x3xf32> {kas.name = "w"},
                   %v: tensor<4x3x3xf32> {kas.name = "v"}) -> tensor<1x4x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x6x6xf32> to tensor<1x8x8x8xf32>
  %e = tensor.empty() : tensor<1x4x6x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x8x8x8xf32>, tensor<4x8x3x3xf32>)
    outs(%init : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %f = tensor.empty() : tensor<1x4x4x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%f : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %z = linalg.depthwise_conv_2d_nchw_chw ins(%y, %v : tensor<1x4x6x6xf32>, tensor<4x3x3xf32>)
    outs(%start : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %z : tensor<1x4x4x4xf32>
}
