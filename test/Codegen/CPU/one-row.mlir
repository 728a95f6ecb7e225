// Weights that one row reads once, and that no cache keeps, are packed ahead in
// the order in which they are read.

// RUN: kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v4 threads=1 prepack-weights=true' --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s

// CHECK: one-row.mlir:[[#@LINE+8]]:8: remark: [Passed] Packed | {{.*}}columns=23, depth=768, {{.*}}registerRows=1, {{.*}}strategy = panels
func.func @token(%x: tensor<1x768xf32> {kas.name = "input"}, %w: tensor<3013x768xf32> {kas.name = "w"})
    -> tensor<1x3013xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<768x3013xf32>
  %t = linalg.transpose ins(%w : tensor<3013x768xf32>) outs(%e : tensor<768x3013xf32>) permutation = [1, 0]
  %o = tensor.empty() : tensor<1x3013xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x3013xf32>) -> tensor<1x3013xf32>
  %y = linalg.matmul ins(%x, %t : tensor<1x768xf32>, tensor<768x3013xf32>) outs(%f : tensor<1x3013xf32>)
      -> tensor<1x3013xf32>
  return %y : tensor<1x3013xf32>
}

// CHECK: one-row.mlir:[[#@LINE+8]]:8: remark: [Passed] Direct
func.func @small(%x: tensor<1x64xf32> {kas.name = "input"}, %w: tensor<80x64xf32> {kas.name = "w"})
    -> tensor<1x80xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x80xf32>
  %t = linalg.transpose ins(%w : tensor<80x64xf32>) outs(%e : tensor<64x80xf32>) permutation = [1, 0]
  %o = tensor.empty() : tensor<1x80xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x80xf32>) -> tensor<1x80xf32>
  %y = linalg.matmul ins(%x, %t : tensor<1x64xf32>, tensor<64x80xf32>) outs(%f : tensor<1x80xf32>)
      -> tensor<1x80xf32>
  return %y : tensor<1x80xf32>
}

// The schedule that a remark names is one that may be given.
// CHECK: one-row.mlir:[[#@LINE+8]]:8: remark: [Passed] Packed | {{.*}}registerRows=1,
func.func @as_scheduled(%x: tensor<1x64xf32> {kas.name = "input"}, %w: tensor<80x64xf32> {kas.name = "w"})
    -> tensor<1x80xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x80xf32>
  %t = linalg.transpose ins(%w : tensor<80x64xf32>) outs(%e : tensor<64x80xf32>) permutation = [1, 0]
  %o = tensor.empty() : tensor<1x80xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x80xf32>) -> tensor<1x80xf32>
  %y = linalg.matmul {kas_cpu.schedule = #kas_cpu.schedule<strategy = panels, rows = 1, vectors = 1>}
      ins(%x, %t : tensor<1x64xf32>, tensor<64x80xf32>) outs(%f : tensor<1x80xf32>) -> tensor<1x80xf32>
  return %y : tensor<1x80xf32>
}
