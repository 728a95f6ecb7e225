// RUN: kas-opt %s -kas-specialize -kas-pack-operators="threads=1 vector-bits=512" --remarks-filter=kas-panels 2>&1 | FileCheck %s

kas.operator @conv2d<N, Cin, Cout, H, W | k>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %y = kas.unfold %h, %i_d : H, k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}

// What the cost model chooses can be copied from its remark.
// CHECK: Packed {{.*}} schedule="#kas_cpu.schedule<strategy = panels, rows = {{[0-9]+}}, vectors = {{[0-9]+}}, tile = 128, depth = 16>"
// CHECK: Direct {{.*}} schedule="#kas_cpu.schedule<strategy = direct, rows = 4, columns = 2, vectors = 2>"
// CHECK: Packed {{.*}} schedule="#kas_cpu.schedule<strategy = panels, rows = 3, vectors = 2, tile = 64, depth = 4>"

// CHECK-LABEL: func.func @free
func.func @free(%x: tensor<1x16x32x32xf32>, %w: tensor<64x16x3x3xf32>) -> tensor<1x64x32x32xf32> {
  %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x16x32x32xf32>, tensor<64x16x3x3xf32>) -> tensor<1x64x32x32xf32>
  return %y : tensor<1x64x32x32xf32>
}

// Four rows, two lines and two vectors of sums, which need nine steps of the
// filter each.
// CHECK-LABEL: func.func @direct
// CHECK:         scf.for {{.*}} iter_args
// CHECK-COUNT-144: vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         return
func.func @direct(%x: tensor<1x16x32x32xf32>, %w: tensor<64x16x3x3xf32>) -> tensor<1x64x32x32xf32> {
  %y = kas.apply @conv2d<k = 3>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = direct, rows = 4, columns = 2, vectors = 2>}
    : (tensor<1x16x32x32xf32>, tensor<64x16x3x3xf32>) -> tensor<1x64x32x32xf32>
  return %y : tensor<1x64x32x32xf32>
}

// Two rows of the image make a tile; a panel has four of the sixteen channels.
// CHECK-LABEL: func.func @panels
// CHECK:         memref.alloc() {{.*}} memref<2368xf32>
// CHECK-COUNT-6:   vector.fma
// CHECK-COUNT-2:   vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         return
func.func @panels(%x: tensor<1x16x32x32xf32>, %w: tensor<64x16x3x3xf32>) -> tensor<1x64x32x32xf32> {
  %y = kas.apply @conv2d<k = 3>(%x, %w) {kas_cpu.schedule = #kas_cpu.schedule<strategy = panels, rows = 3, vectors = 2, tile = 64, depth = 4>}
    : (tensor<1x16x32x32xf32>, tensor<64x16x3x3xf32>) -> tensor<1x64x32x32xf32>
  return %y : tensor<1x64x32x32xf32>
}
