// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v3 -kas-pack-contractions --remarks-filter=kas-panels 2>&1 | FileCheck %s

// CHECK: remark: [Passed] Packed | Category:kas-panels | columns=128, depth=256, lanes=8, registerRows=6, registerVectors=2, rowGroups=4, schedule="#kas_cpu.schedule<strategy = panels, rows = 6, vectors = 2, tile = 128, depth = 256>", weightsCombined=false
func.func @product(%a: memref<256x256xf32>, %b: memref<256x256xf32>, %c: memref<256x256xf32>) {
  linalg.matmul ins(%a, %b : memref<256x256xf32>, memref<256x256xf32>) outs(%c : memref<256x256xf32>)
  return
}

// CHECK: remark: [Passed] Direct | Category:kas-panels | columnGroups=1, lanes=8, registerColumns=1, registerRows=4, registerVectors=3, rowGroups=1, schedule="#kas_cpu.schedule<strategy = direct, rows = 4, columns = 1, vectors = 3>", weightsCombined=false
func.func @thin(%a: memref<4x32xf32>, %b: memref<32x64xf32>, %c: memref<4x64xf32>) {
  linalg.matmul ins(%a, %b : memref<4x32xf32>, memref<32x64xf32>) outs(%c : memref<4x64xf32>)
  return
}

// CHECK: remark: [Missed] NotPacked | Category:kas-panels | Reason="its body is no contraction", operation=linalg.pooling_nchw_max
func.func @pool(%x: memref<1x8x18x18xf32>, %w: memref<3x3xf32>, %y: memref<1x8x16x16xf32>) {
  linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : memref<1x8x18x18xf32>, memref<3x3xf32>) outs(%y : memref<1x8x16x16xf32>)
  return
}

// CHECK: remark: [Missed] NotPacked | {{.*}} | Reason="expected columns of the output that fill half a vector of 8, got 3; expected an output whose last dimension fills half a vector of 8, got 3", operation=linalg.matmul
func.func @narrow(%a: memref<16x32xf32>, %b: memref<32x3xf32>, %c: memref<16x3xf32>) {
  linalg.matmul ins(%a, %b : memref<16x32xf32>, memref<32x3xf32>) outs(%c : memref<16x3xf32>)
  return
}

// A factor from outside of the body is no input, whatever its number is.
// CHECK: remark: [Missed] NotPacked | {{.*}} | Reason="its body is no contraction", operation=linalg.generic
func.func @captured(%scale: f32, %a: memref<256x256xf32>, %b: memref<256x256xf32>, %c: memref<256x256xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%a, %b : memref<256x256xf32>, memref<256x256xf32>) outs(%c : memref<256x256xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %scale, %y : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  return
}
