// Contractions are of f32, and products of bf16 where the target has instructions for them and it saves time.

// RUN: kas-opt %s -kas-attach-cpu-target="cpu=cooperlake" -kas-set-contraction-precision | FileCheck %s --check-prefixes=CHECK,DOT,F32
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=cooperlake" -kas-set-contraction-precision="precision=bf16 prepacked=true" | FileCheck %s --check-prefixes=CHECK,DOT,BF16,PREPARED
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=cooperlake" -kas-set-contraction-precision="precision=bf16" | FileCheck %s --check-prefixes=CHECK,DOT,BF16,CALLED
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=cascadelake" -kas-set-contraction-precision="precision=bf16 prepacked=true" | FileCheck %s --check-prefixes=CHECK,WIDE,F32
// RUN: not kas-opt %s -kas-set-contraction-precision="precision=f16" 2>&1 | FileCheck %s --check-prefix=PRECISION

// PRECISION: Cannot find option named 'f16'!

// Products of bf16 are summed in f32, and rounded once.

// CHECK-LABEL: @narrow(
// CHECK-SAME:    %[[X:.*]]: tensor<64x64xbf16>, %[[W:.*]]: tensor<64x32xbf16>
// WIDE-COUNT-2: arith.extf %{{.*}} : bf16 to f32
// CHECK:       %[[ZEROS:.*]] = linalg.fill {{.*}} outs(%{{.*}} : tensor<64x32xf32>)
// DOT:         %[[SUMS:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[W]] : {{.*}}) outs(%[[ZEROS]] : tensor<64x32xf32>)
// DOT-COUNT-2:   arith.extf
// WIDE:        %[[SUMS:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<64x64xf32>, tensor<64x32xf32>)
// CHECK:         arith.mulf %{{.*}} : f32
// CHECK:         arith.addf %{{.*}} : f32
// CHECK:       %[[R:.*]] = linalg.generic {{.*}} ins(%[[SUMS]] : tensor<64x32xf32>) outs(%{{.*}} : tensor<64x32xbf16>)
// CHECK:         arith.truncf %{{.*}} : f32 to bf16
// CHECK:       return %[[R]]
func.func @narrow(%x: tensor<64x64xbf16>, %w: tensor<64x32xbf16>) -> tensor<64x32xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<64x32xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%e : tensor<64x32xbf16>) -> tensor<64x32xbf16>
  %y = linalg.matmul ins(%x, %w : tensor<64x64xbf16>, tensor<64x32xbf16>) outs(%init : tensor<64x32xbf16>) -> tensor<64x32xbf16>
  return %y : tensor<64x32xbf16>
}

// There are no such instructions for f16.

// CHECK-LABEL: @halves(
// CHECK-COUNT-2: arith.extf %{{.*}} : f16 to f32
// CHECK:       linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<64x64xf32>, tensor<64x32xf32>)
func.func @halves(%x: tensor<64x64xf16>, %w: tensor<64x32xf16>, %init: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<64x64xf16>, tensor<64x32xf16>) outs(%init : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// The data is rounded before it is padded, the weights as they are.

// CHECK-LABEL: @convolution(
// CHECK-SAME:    %[[X:.*]]: tensor<1x64x8x8xf32>, %[[W:.*]]: tensor<64x64x3x3xf32>
// F32-NOT:     arith.truncf
// F32:         linalg.conv_2d_nchw_fchw
// BF16:        %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%{{.*}} : tensor<1x64x8x8xbf16>)
// BF16:        %[[PADDED:.*]] = tensor.pad %[[ROUNDED]]
// BF16:        %[[WEIGHTS:.*]] = linalg.generic {{.*}} ins(%[[W]] : {{.*}}) outs(%{{.*}} : tensor<64x64x3x3xbf16>)
// BF16:        linalg.generic {{.*}} ins(%[[PADDED]], %[[WEIGHTS]] :
func.func @convolution(%x: tensor<1x64x8x8xf32>, %w: tensor<64x64x3x3xf32>, %init: tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x64x8x8xf32> to tensor<1x64x10x10xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x64x10x10xf32>, tensor<64x64x3x3xf32>)
    outs(%init : tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32>
  return %y : tensor<1x64x8x8xf32>
}

// Weights of which each is used once are rounded ahead, or not at all.

// CHECK-LABEL: @one_row(
// F32:         linalg.matmul
// CALLED:      linalg.matmul
// PREPARED:    linalg.generic {{.*}} outs(%{{.*}} : tensor<512x2048xbf16>)
// PREPARED:    linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<1x512xbf16>, tensor<512x2048xbf16>)
func.func @one_row(%x: tensor<1x512xf32>, %w: tensor<512x2048xf32>, %init: tensor<1x2048xf32>) -> tensor<1x2048xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<1x512xf32>, tensor<512x2048xf32>) outs(%init : tensor<1x2048xf32>) -> tensor<1x2048xf32>
  return %y : tensor<1x2048xf32>
}

// A window per channel has no reduction that could take two elements.

// CHECK-LABEL: @depthwise(
// CHECK:       linalg.depthwise_conv_2d_nchw_chw
func.func @depthwise(%x: tensor<1x64x10x10xf32>, %w: tensor<64x3x3xf32>, %init: tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32> {
  %y = linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : tensor<1x64x10x10xf32>, tensor<64x3x3xf32>)
    outs(%init : tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32>
  return %y : tensor<1x64x8x8xf32>
}
