// Products of bytes are laid out in words of four, unsigned by signed, those of bf16 in words of two. Targets that multiply
// i16 in pairs, but no bytes, have words of two i16.

// RUN: kas-opt %s -split-input-file -kas-pack-dot-products | FileCheck %s
// RUN: kas-opt %s -split-input-file -kas-cpu-pipeline="cpu=cascadelake threads=1" | FileCheck %s --check-prefix=TILES
// RUN: kas-opt %s -split-input-file -kas-attach-cpu-target="cpu=haswell" -kas-pack-dot-products | FileCheck %s --check-prefix=SHORTS
// RUN: kas-opt %s -split-input-file -kas-cpu-pipeline="cpu=haswell threads=1" | FileCheck %s --check-prefix=PAIRS

// One input is unsigned: nothing but the layout changes.

// CHECK-LABEL: @unsigned_by_signed(
// CHECK-SAME:    %[[X:.*]]: tensor<8x64xi8>, %[[W:.*]]: tensor<32x64xi8>
// CHECK:       tensor.expand_shape %[[X]] {{.*}} : tensor<8x64xi8> into tensor<8x16x4xi8>
// CHECK:       tensor.expand_shape %[[W]] {{.*}} : tensor<32x64xi8> into tensor<32x16x4xi8>
// CHECK:       linalg.generic
// CHECK-SAME:    iterator_types = ["parallel", "parallel", "reduction", "reduction"]
// CHECK-SAME:    ins(%{{.*}}, %{{.*}} : tensor<8x16x4xi8>, tensor<32x16x4xi8>)
// CHECK:         arith.extui
// CHECK:         arith.extsi

// SHORTS-LABEL: @unsigned_by_signed(
// SHORTS-SAME:    %[[X:.*]]: tensor<8x64xi8>, %[[W:.*]]: tensor<32x64xi8>
// SHORTS:       %[[WIDE_X:.*]] = linalg.generic {{.*}} ins(%[[X]] : {{.*}} outs(%{{.*}} : tensor<8x64xi16>)
// SHORTS:         arith.extui {{.*}} : i8 to i16
// SHORTS:       %[[WIDE_W:.*]] = linalg.generic {{.*}} ins(%[[W]] : {{.*}} outs(%{{.*}} : tensor<32x64xi16>)
// SHORTS:         arith.extsi {{.*}} : i8 to i16
// SHORTS:       tensor.expand_shape %[[WIDE_X]] {{.*}} : tensor<8x64xi16> into tensor<8x32x2xi16>
// SHORTS:       tensor.expand_shape %[[WIDE_W]] {{.*}} : tensor<32x64xi16> into tensor<32x32x2xi16>
// SHORTS:       linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x32x2xi16>, tensor<32x32x2xi16>)
// SHORTS-COUNT-2: arith.extsi {{.*}} : i16 to i32

// Nothing is taken apart in the tiles.
// PAIRS-LABEL: llvm.func @unsigned_by_signed(
// PAIRS:         llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// PAIRS-NOT:     llvm.ashr
// PAIRS:         llvm.return
func.func @unsigned_by_signed(%x: tensor<8x64xi8>, %w: tensor<32x64xi8>, %init: tensor<8x32xi32>) -> tensor<8x32xi32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xi8>, tensor<32x64xi8>) outs(%init : tensor<8x32xi32>) {
  ^bb0(%a: i8, %b: i8, %sum: i32):
    %c = arith.extui %a : i8 to i32
    %d = arith.extsi %b : i8 to i32
    %p = arith.muli %c, %d : i32
    %s = arith.addi %sum, %p : i32
    linalg.yield %s : i32
  } -> tensor<8x32xi32>
  return %y : tensor<8x32xi32>
}

// -----

// Both are signed: 128 is added to the data, and 128 times the sums of the weights, over channels and windows, is
// subtracted; three channels are filled up with a zero.

// CHECK-LABEL: @convolution(
// CHECK-SAME:    %[[X:.*]]: tensor<1x3x9x9xi8>, %[[W:.*]]: tensor<8x3x3x3xi8>
// CHECK:       linalg.generic {{.*}} ins(%[[X]] :
// CHECK:         arith.constant -128 : i8
// CHECK:         arith.xori
// CHECK:       %[[SUMS:.*]] = linalg.generic {{.*}} ins(%[[W]] : {{.*}} outs(%{{.*}} : tensor<8xi32>)
// CHECK:       linalg.generic {{.*}} ins(%[[SUMS]] : tensor<8xi32>)
// CHECK:         arith.constant -128 : i32
// CHECK:         arith.muli
// CHECK:       tensor.pad
// CHECK:       linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<1x1x9x9x4xi8>, tensor<8x1x3x3x4xi8>)

// As i16 both may be signed.
// SHORTS-LABEL: @convolution(
// SHORTS-NOT:   arith.xori
// SHORTS:       linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<1x2x9x9x2xi16>, tensor<8x2x3x3x2xi16>)
func.func @convolution(%x: tensor<1x3x9x9xi8>, %w: tensor<8x3x3x3xi8>, %init: tensor<1x8x7x7xi32>) -> tensor<1x8x7x7xi32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x9x9xi8>, tensor<8x3x3x3xi8>)
    outs(%init : tensor<1x8x7x7xi32>) -> tensor<1x8x7x7xi32>
  return %y : tensor<1x8x7x7xi32>
}

// -----

// A window per channel has no reduction that is a dimension of the data.

// CHECK-LABEL: @depthwise(
// CHECK-NEXT:  linalg.depthwise_conv_2d_nchw_chw
func.func @depthwise(%x: tensor<1x8x9x9xi8>, %w: tensor<8x3x3xi8>, %init: tensor<1x8x7x7xi32>) -> tensor<1x8x7x7xi32> {
  %y = linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : tensor<1x8x9x9xi8>, tensor<8x3x3xi8>)
    outs(%init : tensor<1x8x7x7xi32>) -> tensor<1x8x7x7xi32>
  return %y : tensor<1x8x7x7xi32>
}

// -----

// I16 is for targets that multiply it.

// CHECK-LABEL: @halves(
// CHECK-NEXT:  linalg.matmul
// SHORTS-LABEL: @halves(
// SHORTS:       linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x32x2xi16>, tensor<32x32x2xi16>)
func.func @halves(%x: tensor<8x64xi16>, %w: tensor<64x32xi16>, %init: tensor<8x32xi32>) -> tensor<8x32xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xi16>, tensor<64x32xi16>) outs(%init : tensor<8x32xi32>) -> tensor<8x32xi32>
  return %y : tensor<8x32xi32>
}

// -----

// CHECK-LABEL: @floats(
// CHECK-SAME:    %[[X:.*]]: tensor<8x64xbf16>, %[[W:.*]]: tensor<64x32xbf16>
// CHECK:       tensor.expand_shape %[[X]] {{.*}} : tensor<8x64xbf16> into tensor<8x32x2xbf16>
// CHECK:       linalg.transpose {{.*}} permutation = [0, 2, 1]
// CHECK:       linalg.generic
// CHECK-SAME:    iterator_types = ["parallel", "parallel", "reduction", "reduction"]
// CHECK-SAME:    ins(%{{.*}}, %{{.*}} : tensor<8x32x2xbf16>, tensor<32x32x2xbf16>) outs(%{{.*}} : tensor<8x32xf32>)
// CHECK:         arith.extf
func.func @floats(%x: tensor<8x64xbf16>, %w: tensor<64x32xbf16>, %init: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xbf16>, tensor<64x32xbf16>) outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// Bytes without a sign on both sides are of i16 alone.

// CHECK-LABEL: @unsigned_by_unsigned(
// CHECK-NEXT:  linalg.generic
// CHECK-SAME:    ins(%{{.*}}, %{{.*}} : tensor<8x64xi8>, tensor<32x64xi8>)
// SHORTS-LABEL: @unsigned_by_unsigned(
// SHORTS-COUNT-2: arith.extui {{.*}} : i8 to i16
func.func @unsigned_by_unsigned(%x: tensor<8x64xi8>, %w: tensor<32x64xi8>, %init: tensor<8x32xi32>) -> tensor<8x32xi32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xi8>, tensor<32x64xi8>) outs(%init : tensor<8x32xi32>) {
  ^bb0(%a: i8, %b: i8, %sum: i32):
    %c = arith.extui %a : i8 to i32
    %d = arith.extui %b : i8 to i32
    %p = arith.muli %c, %d : i32
    %s = arith.addi %sum, %p : i32
    linalg.yield %s : i32
  } -> tensor<8x32xi32>
  return %y : tensor<8x32xi32>
}

// -----

// I16 without a sign would be read with one.

// SHORTS-LABEL: @unsigned_halves(
// SHORTS-NEXT:  linalg.generic
// SHORTS-SAME:    ins(%{{.*}}, %{{.*}} : tensor<8x64xi16>, tensor<32x64xi16>)
func.func @unsigned_halves(%x: tensor<8x64xi16>, %w: tensor<32x64xi16>, %init: tensor<8x32xi32>) -> tensor<8x32xi32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x64xi16>, tensor<32x64xi16>) outs(%init : tensor<8x32xi32>) {
  ^bb0(%a: i16, %b: i16, %sum: i32):
    %c = arith.extui %a : i16 to i32
    %d = arith.extsi %b : i16 to i32
    %p = arith.muli %c, %d : i32
    %s = arith.addi %sum, %p : i32
    linalg.yield %s : i32
  } -> tensor<8x32xi32>
  return %y : tensor<8x32xi32>
}

// -----

// Sums of bf16 stay as they are: `-kas-set-contraction-precision` makes them sums of f32.

// CHECK-LABEL: @narrow_sums(
// CHECK-NEXT:  linalg.matmul
func.func @narrow_sums(%x: tensor<8x64xbf16>, %w: tensor<64x32xbf16>, %init: tensor<8x32xbf16>) -> tensor<8x32xbf16> {
  %y = linalg.matmul ins(%x, %w : tensor<8x64xbf16>, tensor<64x32xbf16>) outs(%init : tensor<8x32xbf16>) -> tensor<8x32xbf16>
  return %y : tensor<8x32xbf16>
}

// -----

// Words that a module has itself: instructions are for unsigned by signed bytes, not for two of a kind.

// CHECK-LABEL: @words(
// CHECK-NEXT:  linalg.generic
// TILES-LABEL: llvm.func @words(
// TILES:         vpdpbusd
func.func @words(%x: tensor<8x16x4xi8>, %w: tensor<16x32x4xi8>, %init: tensor<8x32xi32>) -> tensor<8x32xi32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k, j) -> (m, k, j)>, affine_map<(m, n, k, j) -> (k, n, j)>, affine_map<(m, n, k, j) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<8x16x4xi8>, tensor<16x32x4xi8>) outs(%init : tensor<8x32xi32>) {
  ^bb0(%a: i8, %b: i8, %sum: i32):
    %c = arith.extui %a : i8 to i32
    %d = arith.extsi %b : i8 to i32
    %p = arith.muli %c, %d : i32
    %s = arith.addi %sum, %p : i32
    linalg.yield %s : i32
  } -> tensor<8x32xi32>
  return %y : tensor<8x32xi32>
}

// -----

// CHECK-LABEL: @signed_groups(
// CHECK-NEXT:  linalg.generic
// TILES-LABEL: llvm.func @signed_groups(
// TILES-NOT:     vpdpbusd
// TILES:         llvm.return
func.func @signed_groups(%x: tensor<8x16x4xi8>, %w: tensor<16x32x4xi8>, %init: tensor<8x32xi32>) -> tensor<8x32xi32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k, j) -> (m, k, j)>, affine_map<(m, n, k, j) -> (k, n, j)>, affine_map<(m, n, k, j) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<8x16x4xi8>, tensor<16x32x4xi8>) outs(%init : tensor<8x32xi32>) {
  ^bb0(%a: i8, %b: i8, %sum: i32):
    %c = arith.extsi %a : i8 to i32
    %d = arith.extsi %b : i8 to i32
    %p = arith.muli %c, %d : i32
    %s = arith.addi %sum, %p : i32
    linalg.yield %s : i32
  } -> tensor<8x32xi32>
  return %y : tensor<8x32xi32>
}
