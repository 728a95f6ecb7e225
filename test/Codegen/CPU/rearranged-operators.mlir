// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-specialize -kas-pack-operators='threads=1 prepacked=true' | FileCheck %s
// RUN: kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v4 threads=1 prepack-weights=true' --remarks-filter=kas-panels -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v4 threads=1 prepack-weights=true' | FileCheck %s --check-prefix=PREPARE
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-specialize -kas-pack-operators='threads=4' | FileCheck %s --check-prefix=SHARED
// RUN: kas-run %s --function=along_channels --check=exact --threads=1 | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=batches_last --check=exact --threads=1 | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=batches_last --check=exact --threads=2 | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=blocks --check=exact --threads=1 | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=one_set --check=exact --threads=1 | FileCheck %s --check-prefix=VALUES
// RUN: kas-run %s --function=beyond --check=exact --threads=1 | FileCheck %s --check-prefix=VALUES

// VALUES: {{^ *}}ok

// Vectors run along the channels, with which the weight steps by three: a copy with the channels last is made when weights are prepacked.
//
// REMARK: Rearranged{{.*}}copiedWeights=1, transposedOutput=false
// CHECK-LABEL: func.func @along_channels(
// CHECK:         %[[COPY:.*]] = memref.alloc() {{.*}} : memref<3x64xf32>
// CHECK:         memref.store %{{.*}}, %[[COPY]]
// CHECK:         %[[FLAT:.*]] = memref.reinterpret_cast %[[COPY]]
// CHECK:         vector.load %[[FLAT]]
// CHECK-NOT:     memref.store
// CHECK:         return
// PREPARE-LABEL: llvm.func @along_channels_prepack(
kas.operator @depthwise<N, L, C | k>(%n: N, %l: L, %c: C) from [N, L, C] {
  %r = kas.reduce sum : k
  %d, %w = kas.share %r : k
  %cd, %cw = kas.share %c : C
  %u = kas.unfold %l, %d : L, k
  kas.yield data(%n, %u, %cd) weight(%cw, %w)
}
func.func @along_channels(%x: tensor<1x30x64xf32>, %w: tensor<64x3xf32>) -> tensor<1x30x64xf32> {
  %y = kas.apply @depthwise<k = 3>(%x, %w) : (tensor<1x30x64xf32>, tensor<64x3xf32>) -> tensor<1x30x64xf32>
  return %y : tensor<1x30x64xf32>
}

// Data and weight both step with the output's last dimension: one product of matrices for each of its elements. Their sums have the data's
// lines last, and are transposed after.
//
// REMARK: Rearranged{{.*}}copiedWeights=0, transposedOutput=true
// CHECK-LABEL: func.func @batches_last(
// CHECK:         %[[OUT:.*]] = memref.alloc() {{.*}} : memref<1x8x40x48xf32>
// CHECK:         %[[SUMS:.*]] = memref.alloc() {{.*}} : memref<8x48x40xf32>
// CHECK:         vector.fma
// CHECK:         scf.for
// CHECK:         memref.load %[[SUMS]]
// CHECK:         memref.store %{{.*}}, %[[OUT]]
// SHARED-LABEL: func.func @batches_last(
// SHARED:         vector.fma
// SHARED:         scf.parallel
// SHARED:           memref.load
// SHARED:           memref.store
kas.operator @batched<N, P, L, B, R>(%n: N, %p: P, %l: L, %b: B) from [N, R, B, L] {
  %r = kas.reduce sum : R
  %rd, %rw = kas.share %r : R
  %bd, %bw = kas.share %b : B
  kas.yield data(%n, %rd, %bd, %l) weight(%p, %bw, %rw)
}
func.func @batches_last(%x: tensor<1x24x48x40xf32>, %w: tensor<8x48x24xf32>) -> tensor<1x8x40x48xf32> {
  %y = kas.apply @batched(%x, %w) : (tensor<1x24x48x40xf32>, tensor<8x48x24xf32>) -> tensor<1x8x40x48xf32>
  return %y : tensor<1x8x40x48xf32>
}

// 20 elements of the last dimension are a block of 16 and one of 4.
//
// REMARK: Rearranged{{.*}}copiedWeights=0, transposedOutput=true
// CHECK-LABEL: func.func @blocks(
// CHECK:         vector.fma
// CHECK-COUNT-2: memref.load {{.*}} : memref<8x20x40xf32>
func.func @blocks(%x: tensor<1x24x20x40xf32>, %w: tensor<8x20x24xf32>) -> tensor<1x8x40x20xf32> {
  %y = kas.apply @batched(%x, %w) : (tensor<1x24x20x40xf32>, tensor<8x20x24xf32>) -> tensor<1x8x40x20xf32>
  return %y : tensor<1x8x40x20xf32>
}

// Lines of 512 elements one below the other are in two sets of the first-level cache, which do not hold 16 of them: blocks of 4.
//
// REMARK: Rearranged{{.*}}copiedWeights=0, transposedOutput=true
// CHECK-LABEL: func.func @one_set(
// CHECK:         vector.fma
// CHECK:         scf.for %{{.*}} = %{{.*}} to %c20{{.*}} step %c4{{.*}} {
// CHECK:           scf.for %{{.*}} = %{{.*}} to %c512{{.*}} step %c16{{.*}} {
func.func @one_set(%x: tensor<1x24x512x20xf32>, %w: tensor<8x512x24xf32>) -> tensor<1x8x20x512xf32> {
  %y = kas.apply @batched(%x, %w) : (tensor<1x24x512x20xf32>, tensor<8x512x24xf32>) -> tensor<1x8x20x512xf32>
  return %y : tensor<1x8x20x512xf32>
}

// A window of the weight goes beyond its ends, where the copy has zeros: what lies there is not read.
//
// CHECK-LABEL: func.func @beyond(
// CHECK:         %[[SIZE:.*]] = arith.constant 3 : index
// CHECK:         %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %[[SIZE]]
// CHECK:         %[[ELEMENT:.*]] = scf.if %[[INSIDE]] -> (f32) {
// CHECK:           memref.load
// CHECK:         } else {
// CHECK:           arith.constant 0.0
// CHECK:         memref.store %[[ELEMENT]]
kas.operator @clipped<N | k, s>(%o: N, %o_0: N/s, %o_1: N, %o_2: 3*s) from [s**2, 1] {
  %x = kas.stride %o_2 by s : 3*s
  %r = kas.reduce mean : 1
  %s = kas.split %r, %x : 1, 3*s**2
  %t = kas.shift %o_0 by -9 : N/s
  %s_3 = kas.split %t, %o_1 : N/s, N
  %r_4 = kas.reduce sum : 1
  %q, %m = kas.merge %s by 3 : 3*s**2
  %d, %w = kas.share %m : 3
  %u = kas.unfold %d, %s_3 : 3, N**2/s
  kas.yield data(%q, %r_4) weight(%w, %o, %u)
}
func.func @beyond(%x: tensor<9x1xf32>, %w: tensor<3x30x3xf32>) -> tensor<30x10x30x9xf32> {
  %y = kas.apply @clipped<k = 4, s = 3>(%x, %w) : (tensor<9x1xf32>, tensor<3x30x3xf32>) -> tensor<30x10x30x9xf32>
  return %y : tensor<30x10x30x9xf32>
}
