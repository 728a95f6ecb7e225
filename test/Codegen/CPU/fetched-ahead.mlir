// RUN: kas-opt %s -kas-cpu-pipeline='cpu=sapphirerapids threads=1 prepack-weights=true' | FileCheck %s
// RUN: kas-opt %s -kas-cpu-pipeline='cpu=sapphirerapids threads=1 prepack-weights=true' --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: kas-run %s --function=image --threads=1 --check=%s | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=image --threads=2 --check=%s | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=tokens --threads=1 --check=%s | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=tokens --threads=2 --check=%s | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=pixel --threads=1 --check=%s | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=pixels --threads=1 --check=%s | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=patches --threads=1 --check=%s | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=patches --threads=2 --check=%s | FileCheck %s --check-prefix=VALUES

// VALUES: {{^ *}}ok

// A step goes from one channel to the next, which is in another page: what the next tile reads is fetched at each step, and a part of the weights of
// the next block of rows.
//
// REMARK-DAG: RowVectors{{.*}}registerColumns=14
// CHECK-LABEL: llvm.func @image_prepack(
// CHECK-LABEL: llvm.func @image(
// CHECK:         "llvm.intr.prefetch"
// CHECK:         "llvm.intr.prefetch"
// CHECK-NOT:     "llvm.intr.prefetch"
// CHECK:         llvm.return
func.func @image(%x: tensor<1x256x28x28xf32>, %w: tensor<64x256x1x1xf32>) -> tensor<1x64x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64x28x28xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  %y = linalg.conv_2d_nchw_fchw
      ins(%x, %w : tensor<1x256x28x28xf32>, tensor<64x256x1x1xf32>) outs(%zeros : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  return %y : tensor<1x64x28x28xf32>
}

// All panels of a linear layer's weights are packed ahead, and not the transposed weights that they are packed from: 3 panels of 768 by 32 and 64.
//
// REMARK-DAG: Packed{{.*}}columns=32, depth=768
// CHECK-LABEL: llvm.func @tokens_prepack(
// CHECK:         llvm.call @malloc
// CHECK:         llvm.call @free
// CHECK-LABEL: llvm.func @tokens_prepacked_elements(
// CHECK-NEXT:    llvm.mlir.constant(73920 : i64)
// CHECK-LABEL: llvm.func @tokens(
// CHECK-NOT:     llvm.call
// CHECK:         "llvm.intr.prefetch"
// CHECK:         llvm.return
func.func @tokens(%x: tensor<50x768xf32>, %w: tensor<96x768xf32>) -> tensor<50x96xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<50x96xf32>
  %other = tensor.empty() : tensor<768x96xf32>
  %transposed = linalg.transpose ins(%w : tensor<96x768xf32>) outs(%other : tensor<768x96xf32>) permutation = [1, 0]
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<50x96xf32>) -> tensor<50x96xf32>
  %y = linalg.matmul ins(%x, %transposed : tensor<50x768xf32>, tensor<768x96xf32>) outs(%zeros : tensor<50x96xf32>) -> tensor<50x96xf32>
  return %y : tensor<50x96xf32>
}

// One pixel steps with its weights alone: vectors along the channels of a copy, to which the bias is added after.
//
// REMARK-DAG: Direct{{.*}}registerColumns=1
// CHECK-LABEL: llvm.func @pixel_prepack(
// CHECK-LABEL: llvm.func @pixel(
// CHECK:         llvm.intr.{{fma|fmuladd}}{{.*}}vector<16xf32>
func.func @pixel(%x: tensor<1x48x1x1xf32>, %w: tensor<24x48x1x1xf32>, %b: tensor<24xf32>) -> tensor<1x24x1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x24x1x1xf32>
  %bias = linalg.broadcast ins(%b : tensor<24xf32>) outs(%empty : tensor<1x24x1x1xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw
      ins(%x, %w : tensor<1x48x1x1xf32>, tensor<24x48x1x1xf32>) outs(%bias : tensor<1x24x1x1xf32>) -> tensor<1x24x1x1xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : tensor<1x24x1x1xf32>) outs(%empty : tensor<1x24x1x1xf32>) {
    ^bb0(%i: f32, %o: f32):
      %m = arith.maximumf %i, %zero : f32
      linalg.yield %m : f32
  } -> tensor<1x24x1x1xf32>
  return %r : tensor<1x24x1x1xf32>
}

// Several images of one pixel, with panels of the copied weights.
func.func @pixels(%x: tensor<40x256x1x1xf32>, %w: tensor<64x256x1x1xf32>, %b: tensor<64xf32>) -> tensor<40x64x1x1xf32> {
  %empty = tensor.empty() : tensor<40x64x1x1xf32>
  %bias = linalg.broadcast ins(%b : tensor<64xf32>) outs(%empty : tensor<40x64x1x1xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw
      ins(%x, %w : tensor<40x256x1x1xf32>, tensor<64x256x1x1xf32>) outs(%bias : tensor<40x64x1x1xf32>) -> tensor<40x64x1x1xf32>
  return %y : tensor<40x64x1x1xf32>
}

// A window that moves by its size: its steps read different elements, and are unrolled.
//
// CHECK-LABEL: llvm.func @patches(
// CHECK-COUNT-112: llvm.intr.fm
// CHECK:           llvm.return
func.func @patches(%x: tensor<1x64x28x28xf32>, %w: tensor<96x64x2x2xf32>, %b: tensor<96xf32>) -> tensor<1x96x14x14xf32> {
  %empty = tensor.empty() : tensor<1x96x14x14xf32>
  %bias = linalg.broadcast ins(%b : tensor<96xf32>) outs(%empty : tensor<1x96x14x14xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>}
      ins(%x, %w : tensor<1x64x28x28xf32>, tensor<96x64x2x2xf32>) outs(%bias : tensor<1x96x14x14xf32>) -> tensor<1x96x14x14xf32>
  return %y : tensor<1x96x14x14xf32>
}
