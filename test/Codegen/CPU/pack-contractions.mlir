// RUN: kas-opt %s -kas-pack-contractions="threads=1 vector-bits=512" | FileCheck %s
// RUN: kas-opt %s -kas-pack-contractions="threads=2 vector-bits=512" | FileCheck %s --check-prefix=THREADS
// RUN: kas-opt %s -kas-pack-contractions="threads=2 vector-bits=512 min-parallel-time=100000000" | FileCheck %s --check-prefix=SHORT
// RUN: kas-opt %s -kas-pack-contractions="threads=1 vector-bits=256" | FileCheck %s --check-prefix=NARROW
// RUN: kas-opt %s -kas-pack-contractions="threads=1 vector-bits=512" --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

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
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>,
                            kas_cpu.schedule = #kas_cpu.schedule<strategy = panels>}
    ins(%x, %w : memref<1x64x58x58xf32>, memref<64x64x3x3xf32>) outs(%y : memref<1x64x56x56xf32>)
  return
}

// Weights that are not packed ahead are packed at each call where many products are summed and many columns read them:
// row vectors take the least time. Sums of few products are stored as they are.
// REMARK:        [[@LINE+2]]:3: remark: [Passed] RowVectors |
func.func @deep(%x: memref<1x64x58x58xf32>, %w: memref<64x64x3x3xf32>, %y: memref<1x64x56x56xf32>) {
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : memref<1x64x58x58xf32>, memref<64x64x3x3xf32>) outs(%y : memref<1x64x56x56xf32>)
  return
}

// REMARK:        [[@LINE+2]]:3: remark: [Passed] {{Direct|Packed}} |
func.func @shallow(%x: memref<1x32x56x56xf32>, %w: memref<64x32x1x1xf32>, %y: memref<1x64x56x56xf32>) {
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : memref<1x32x56x56xf32>, memref<64x32x1x1xf32>) outs(%y : memref<1x64x56x56xf32>)
  return
}

// Weights of more elements than columns would be packed for one use.
func.func @large_weights(%x: memref<1x512x9x9xf32>, %w: memref<512x512x3x3xf32>, %y: memref<1x512x7x7xf32>) {
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : memref<1x512x9x9xf32>, memref<512x512x3x3xf32>) outs(%y : memref<1x512x7x7xf32>)
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

// Zeros that something else comes after, such as a copy of the image, are no sums to be added to.
// CHECK-LABEL: func.func @zeros_before_a_copy
// CHECK-NOT:     linalg.fill
// CHECK:         linalg.copy
// CHECK:         vector.fma
func.func @zeros_before_a_copy(%x: memref<1x64x58x58xf32>, %w: memref<64x64x3x3xf32>, %y: memref<1x64x56x56xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() {alignment = 64 : i64} : memref<1x64x56x56xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<1x64x56x56xf32>)
  %copy = memref.alloc() {alignment = 64 : i64} : memref<1x64x58x58xf32>
  linalg.copy ins(%x : memref<1x64x58x58xf32>) outs(%copy : memref<1x64x58x58xf32>)
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%copy, %w : memref<1x64x58x58xf32>, memref<64x64x3x3xf32>) outs(%sums : memref<1x64x56x56xf32>)
  linalg.copy ins(%sums : memref<1x64x56x56xf32>) outs(%y : memref<1x64x56x56xf32>)
  memref.dealloc %copy : memref<1x64x58x58xf32>
  memref.dealloc %sums : memref<1x64x56x56xf32>
  return
}

// Others stay: what comes after them reads them through a view, writes, or may know the buffer by another name.
// CHECK-LABEL: func.func @zeros_that_are_read
// CHECK-NOT:     linalg.copy
// CHECK:         linalg.fill
// CHECK:         linalg.copy
// CHECK:         vector.fma
func.func @zeros_that_are_read(%x: memref<1x64x58x58xf32>, %w: memref<64x64x3x3xf32>, %y: memref<1x64x56x56xf32>,
                               %z: memref<64x56x56xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() {alignment = 64 : i64} : memref<1x64x56x56xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<1x64x56x56xf32>)
  %view = memref.collapse_shape %sums [[0, 1], [2], [3]] : memref<1x64x56x56xf32> into memref<64x56x56xf32>
  linalg.copy ins(%view : memref<64x56x56xf32>) outs(%z : memref<64x56x56xf32>)
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : memref<1x64x58x58xf32>, memref<64x64x3x3xf32>) outs(%sums : memref<1x64x56x56xf32>)
  linalg.copy ins(%sums : memref<1x64x56x56xf32>) outs(%y : memref<1x64x56x56xf32>)
  memref.dealloc %sums : memref<1x64x56x56xf32>
  return
}

// CHECK-LABEL: func.func @zeros_that_are_written
// CHECK-NOT:     linalg.copy
// CHECK:         linalg.fill
// CHECK:         linalg.copy
// CHECK:         vector.fma
func.func @zeros_that_are_written(%x: memref<1x64x58x58xf32>, %w: memref<64x64x3x3xf32>, %y: memref<1x64x56x56xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() {alignment = 64 : i64} : memref<1x64x56x56xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<1x64x56x56xf32>)
  linalg.copy ins(%y : memref<1x64x56x56xf32>) outs(%sums : memref<1x64x56x56xf32>)
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : memref<1x64x58x58xf32>, memref<64x64x3x3xf32>) outs(%sums : memref<1x64x56x56xf32>)
  linalg.copy ins(%sums : memref<1x64x56x56xf32>) outs(%y : memref<1x64x56x56xf32>)
  memref.dealloc %sums : memref<1x64x56x56xf32>
  return
}

// CHECK-LABEL: func.func @zeros_of_an_argument
// CHECK-NOT:     linalg.copy
// CHECK:         linalg.fill
// CHECK:         linalg.copy
// CHECK:         vector.fma
func.func @zeros_of_an_argument(%x: memref<1x64x58x58xf32>, %w: memref<64x64x3x3xf32>, %y: memref<1x64x56x56xf32>,
                                %z: memref<1x64x56x56xf32>, %u: memref<1x64x56x56xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x64x56x56xf32>)
  linalg.copy ins(%z : memref<1x64x56x56xf32>) outs(%u : memref<1x64x56x56xf32>)
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : memref<1x64x58x58xf32>, memref<64x64x3x3xf32>) outs(%y : memref<1x64x56x56xf32>)
  return
}
