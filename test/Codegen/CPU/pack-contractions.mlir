// RUN: kas-opt %s -kas-pack-contractions="threads=1 vector-bits=512" | FileCheck %s
// RUN: kas-opt %s -kas-pack-contractions="threads=2 vector-bits=512" | FileCheck %s --check-prefix=THREADS
// RUN: kas-opt %s -kas-pack-contractions="threads=2 vector-bits=512 min-parallel-time=100000000" | FileCheck %s --check-prefix=SHORT
// RUN: kas-opt %s -kas-pack-contractions="threads=1 vector-bits=256" | FileCheck %s --check-prefix=NARROW

// Two rows of the image make a tile of 112 columns. They are packed, as three
// vectors and a half, then multiplied with eight filters and up to three vectors.
// CHECK-LABEL: func.func @conv
// CHECK:         memref.alloc() {alignment = 64 : i64}
// CHECK-NOT:     scf.parallel
// CHECK:         vector.load {{.*}} vector<16xf32>
// CHECK:         vector.maskedload {{.*}} vector<16xf32>
// CHECK:         scf.for {{.*}} iter_args({{.*}}) ->
// CHECK-COUNT-8:   vector.fma
// CHECK:         vector.store
// CHECK:         memref.dealloc
// CHECK-NOT:     linalg.
// CHECK:         return
// THREADS-LABEL: func.func @conv
// THREADS:       scf.parallel
// Threads are not woken for what one computes sooner.
// SHORT-LABEL:   func.func @conv
// SHORT-NOT:     scf.parallel
// SHORT:         return
// NARROW-LABEL:  func.func @conv
// NARROW:        vector.fma {{.*}} vector<8xf32>
func.func @conv(%x: memref<1x64x58x58xf32>, %w: memref<64x64x3x3xf32>, %y: memref<1x64x56x56xf32>) {
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : memref<1x64x58x58xf32>, memref<64x64x3x3xf32>) outs(%y : memref<1x64x56x56xf32>)
  return
}

// No datum is used often enough to pay for a copy: register tiles read the
// image. The output has values already, to which the products are added.
// CHECK-LABEL: func.func @depthwise
// CHECK-NOT:     memref.alloc
// CHECK:         vector.load
// CHECK:         vector.fma
// CHECK:         vector.store
// CHECK-NOT:     linalg.
// CHECK:         return
func.func @depthwise(%x: memref<1x8x18x18xf32>, %w: memref<8x3x3xf32>, %y: memref<1x8x16x16xf32>) {
  linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : memref<1x8x18x18xf32>, memref<8x3x3xf32>) outs(%y : memref<1x8x16x16xf32>)
  return
}

// A maximum is no sum.
// CHECK-LABEL: func.func @pool
// CHECK:         linalg.pooling_nchw_max
func.func @pool(%x: memref<1x8x18x18xf32>, %w: memref<3x3xf32>, %y: memref<1x8x16x16xf32>) {
  linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : memref<1x8x18x18xf32>, memref<3x3xf32>) outs(%y : memref<1x8x16x16xf32>)
  return
}
