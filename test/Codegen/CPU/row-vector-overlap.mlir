// RUN: kas-opt %s -kas-cpu-pipeline='cpu=sapphirerapids threads=1 prepack-weights=true' --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: kas-run %s --function=line --threads=1 --check=%s | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=line --threads=2 --check=%s | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=residual --threads=1 --check=%s | FileCheck %s --check-prefix=VALUES

// VALUES: {{^ *}}ok

// Lines of 17 pixels: two tiles of 9 columns, the second of which begins one column earlier. What the sums begin with is a bias, so that a column
// may be computed twice.
//
// REMARK-DAG: RowVectors{{.*}}registerColumns=9
func.func @line(%x: tensor<1x128x17x17xf32>, %w: tensor<192x128x3x3xf32>, %b: tensor<192xf32>) -> tensor<1x192x17x17xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
  } : tensor<1x128x17x17xf32> to tensor<1x128x19x19xf32>
  %empty = tensor.empty() : tensor<1x192x17x17xf32>
  %bias = linalg.broadcast ins(%b : tensor<192xf32>) outs(%empty : tensor<1x192x17x17xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw
      ins(%padded, %w : tensor<1x128x19x19xf32>, tensor<192x128x3x3xf32>) outs(%bias : tensor<1x192x17x17xf32>) -> tensor<1x192x17x17xf32>
  return %y : tensor<1x192x17x17xf32>
}

// A residual that the result may overwrite: the sums are computed once.
func.func @residual(%x: tensor<1x64x17x17xf32>, %v: tensor<64x64x1x1xf32>, %w: tensor<64x64x1x1xf32>, %b: tensor<64xf32>) -> tensor<1x64x17x17xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64x17x17xf32>
  %bias = linalg.broadcast ins(%b : tensor<64xf32>) outs(%empty : tensor<1x64x17x17xf32>) dimensions = [0, 2, 3]
  %r = linalg.conv_2d_nchw_fchw
      ins(%x, %v : tensor<1x64x17x17xf32>, tensor<64x64x1x1xf32>) outs(%bias : tensor<1x64x17x17xf32>) -> tensor<1x64x17x17xf32>
  %y = linalg.conv_2d_nchw_fchw
      ins(%x, %w : tensor<1x64x17x17xf32>, tensor<64x64x1x1xf32>) outs(%bias : tensor<1x64x17x17xf32>) -> tensor<1x64x17x17xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %r : tensor<1x64x17x17xf32>, tensor<1x64x17x17xf32>) outs(%empty : tensor<1x64x17x17xf32>) {
    ^bb0(%i: f32, %j: f32, %o: f32):
      %m = arith.addf %i, %j : f32
      linalg.yield %m : f32
  } -> tensor<1x64x17x17xf32>
  return %s : tensor<1x64x17x17xf32>
}
