// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-specialize -kas-winograd='threads=1 prepacked=true' | FileCheck %s
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=neoverse-n1 -kas-specialize -kas-winograd='threads=1 prepacked=true' | FileCheck %s --check-prefix=NEON
// RUN: not kas-opt %s -kas-cpu-pipeline='algorithm=fft' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v4 threads=1 prepack-weights=true algorithm=winograd' --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v4 threads=1 prepack-weights=true algorithm=direct' --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s --check-prefix=DIRECT
// RUN: kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v4 threads=1 prepack-weights=true algorithm=im2col' --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s --check-prefix=IM2COL
// RUN: kas-opt %s -kas-cpu-pipeline='cpu=x86-64-v4 threads=1 prepack-weights=true algorithm=spatial-pack' --remarks-filter=kas-panels -o /dev/null 2>&1 | FileCheck %s --check-prefix=PACK

// UNKNOWN: Cannot find option named 'fft'!

// Windows are transformed by loops that move to a function of their own, the 36 matrices 144 and not 128 elements apart: an
// odd number of cache lines; then tiles of 6x6 of the data, 36 products, and
// tiles of 4x4 outputs.
//
// CHECK-LABEL: func.func @convolution(
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<5184xf32>
// CHECK-COUNT-36:  memref.store
// CHECK:         vector.maskedload
// CHECK:         vector.shuffle
// CHECK:         vector.fma
// CHECK:         vector.maskedstore
// CHECK-NOT:     kas.apply @conv2d
//
// A window of stride 2 stays.
//
// CHECK-LABEL: func.func @strided(
// CHECK:         kas.apply
//
// NEON-LABEL: func.func @convolution(
// NEON:         kas.apply
//
// REMARK:     Winograd | Category:kas-panels | groups=1
// REMARK-NOT: Winograd |
// DIRECT:     Direct |
// DIRECT:     Direct |
// IM2COL:     Packed |
// IM2COL:     Packed |
// PACK:       RowVectors | {{.*}} lanes=16
// PACK:       RowVectors | {{.*}} lanes=8
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
kas.operator @conv2d_strided<N, Cin, Cout, H, W | k, s>
    (%n: N, %o: Cout, %h: H/s, %w: W/s) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %h_s = kas.stride %h by s : H/s
  %w_s = kas.stride %w by s : W/s
  %y = kas.unfold %h_s, %i_d : H, k
  %x = kas.unfold %w_s, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}

func.func @convolution(%x: tensor<1x8x32x32xf32>, %w: tensor<16x8x3x3xf32>) -> tensor<1x16x32x32xf32> {
  %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x8x32x32xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x32x32xf32>
  return %y : tensor<1x16x32x32xf32>
}

func.func @strided(%x: tensor<1x8x32x32xf32>, %w: tensor<12x8x3x3xf32>) -> tensor<1x12x16x16xf32> {
  %y = kas.apply @conv2d_strided<k = 3, s = 2>(%x, %w) : (tensor<1x8x32x32xf32>, tensor<12x8x3x3xf32>) -> tensor<1x12x16x16xf32>
  return %y : tensor<1x12x16x16xf32>
}
