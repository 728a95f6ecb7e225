// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-specialize -kas-pack-operators='threads=1 prepacked=true' | FileCheck %s
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-specialize -kas-pack-operators='threads=1' | FileCheck %s --check-prefix=UNPREPARED

// A convolution of a padded image reads the image itself. Its lines that do not exist are left out by the range of a loop; the first
// of 14 columns lacks a product at the first step of the window, the last one at the third.
//
// CHECK-LABEL: func.func @padded(
// CHECK-SAME:    %[[X:.*]]: tensor<1x16x14x14xf32>, %{{.*}}: tensor<32x16x3x3xf32>, %[[B:.*]]: tensor<32xf32>, %[[OLD:.*]]: tensor<1x32x14x14xf32>)
// CHECK:         %[[DATA:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK:         %[[BIAS:.*]] = bufferization.to_buffer %[[B]] read_only
// CHECK:         %[[RESIDUAL:.*]] = bufferization.to_buffer %[[OLD]] read_only
// CHECK-DAG:     %[[FLAT:.*]] = memref.reinterpret_cast %[[DATA]]
// CHECK:         %[[LOWER:.*]] = arith.maxsi
// CHECK:         %[[UPPER:.*]] = arith.minsi
// CHECK:         scf.for
// CHECK:           scf.for %{{.*}} = %[[LOWER]] to %[[UPPER]]
// CHECK-COUNT-26:    vector.fma
// CHECK:             scf.yield
// CHECK:           scf.for %{{.*}} = %[[LOWER]] to %[[UPPER]]
// CHECK-COUNT-28:    vector.fma
// CHECK:             scf.yield
// CHECK:           scf.for %{{.*}} = %[[LOWER]] to %[[UPPER]]
// CHECK-COUNT-26:    vector.fma
// CHECK:             scf.yield
// CHECK-NOT:     vector.fma
// CHECK:         arith.addf %{{.*}} : vector<16xf32>
// CHECK:         arith.maximumf %{{.*}} : vector<16xf32>
// CHECK-NOT:     linalg.
// CHECK:         return
//
// Without weights packed ahead all stays as it is.
//
// UNPREPARED-LABEL: func.func @padded(
// UNPREPARED:         tensor.pad
// UNPREPARED:         linalg.conv_2d_nchw_fchw
// UNPREPARED:         linalg.generic
func.func @padded(%x: tensor<1x16x14x14xf32>, %w: tensor<32x16x3x3xf32>, %b: tensor<32xf32>, %old: tensor<1x32x14x14xf32>)
    -> tensor<1x32x14x14xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %v: index):
    tensor.yield %zero : f32
  } : tensor<1x16x14x14xf32> to tensor<1x16x16x16xf32>
  %empty = tensor.empty() : tensor<1x32x14x14xf32>
  %init = linalg.broadcast ins(%b : tensor<32xf32>) outs(%empty : tensor<1x32x14x14xf32>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x16x16x16xf32>, tensor<32x16x3x3xf32>)
      outs(%init : tensor<1x32x14x14xf32>) -> tensor<1x32x14x14xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>,
                                        affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %old : tensor<1x32x14x14xf32>, tensor<1x32x14x14xf32>) outs(%empty : tensor<1x32x14x14xf32>) {
  ^bb0(%sum: f32, %more: f32, %out: f32):
    %added = arith.addf %sum, %more : f32
    %kept = arith.maximumf %added, %zero : f32
    linalg.yield %kept : f32
  } -> tensor<1x32x14x14xf32>
  return %z : tensor<1x32x14x14xf32>
}

// Lines of 7 are joined in pairs: of the first pair only the second line exists at the first step of the window's height. Both
// lines lack a column at the first step of its width.
//
// CHECK-LABEL: func.func @joined(
// CHECK:         %[[FIRST:.*]] = arith.cmpi sle
// CHECK-NEXT:    scf.if %[[FIRST]]
// CHECK-COUNT-12:  vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         } else {
// CHECK-COUNT-24:  vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         scf.if
// CHECK-COUNT-14:  vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         } else {
// CHECK-COUNT-28:  vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         scf.if
func.func @joined(%x: tensor<1x16x7x7xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x32x7x7xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %v: index):
    tensor.yield %zero : f32
  } : tensor<1x16x7x7xf32> to tensor<1x16x9x9xf32>
  %empty = tensor.empty() : tensor<1x32x7x7xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x16x9x9xf32>, tensor<32x16x3x3xf32>)
      outs(%init : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
  return %y : tensor<1x32x7x7xf32>
}

// What is padded with ones is no operator that leaves points out.
//
// CHECK-LABEL: func.func @ones(
// CHECK:         tensor.pad
// CHECK:         linalg.conv_2d_nchw_fchw
func.func @ones(%x: tensor<1x16x14x14xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x32x14x14xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %v: index):
    tensor.yield %one : f32
  } : tensor<1x16x14x14xf32> to tensor<1x16x16x16xf32>
  %empty = tensor.empty() : tensor<1x32x14x14xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x14x14xf32>) -> tensor<1x32x14x14xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x16x16x16xf32>, tensor<32x16x3x3xf32>)
      outs(%init : tensor<1x32x14x14xf32>) -> tensor<1x32x14x14xf32>
  return %y : tensor<1x32x14x14xf32>
}

// The bias and the rectifier after an operator are computed with it.
kas.operator @conv2d<N, Cin, Cout, H, W | k> (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
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

// CHECK-LABEL: func.func @operator(
// CHECK-SAME:    %{{.*}}: tensor<{{.*}}>, %{{.*}}: tensor<{{.*}}>, %[[B:.*]]: tensor<32xf32>)
// CHECK:         %[[BIAS:.*]] = bufferization.to_buffer %[[B]] read_only
// CHECK:         %[[FLAT:.*]] = memref.reinterpret_cast %[[BIAS]]
// CHECK:         vector.fma
// CHECK:         %[[VALUE:.*]] = memref.load %[[FLAT]]
// CHECK-NEXT:    vector.broadcast %[[VALUE]] : f32 to vector<16xf32>
// CHECK:         arith.maximumf %{{.*}} : vector<16xf32>
// CHECK-NOT:     linalg.
// CHECK:         return
func.func @operator(%x: tensor<1x16x14x14xf32>, %w: tensor<32x16x3x3xf32>, %b: tensor<32xf32>) -> tensor<1x32x14x14xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x14x14xf32>
  %y = kas.apply @conv2d<k = 3>(%x, %w) : (tensor<1x16x14x14xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x14x14xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>,
                                        affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %b : tensor<1x32x14x14xf32>, tensor<32xf32>) outs(%empty : tensor<1x32x14x14xf32>) {
  ^bb0(%sum: f32, %more: f32, %out: f32):
    %added = arith.addf %sum, %more : f32
    %kept = arith.maximumf %added, %zero : f32
    linalg.yield %kept : f32
  } -> tensor<1x32x14x14xf32>
  return %z : tensor<1x32x14x14xf32>
}

// Lines that are shifted in a circle: the address changes where it wraps around. A guard before the shift leaves out the same steps
// as without it.
kas.operator @shifted<N, Cin, Cout, H, W | k> (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %u = kas.unfold %h, %i_d : H, k
  %y = kas.shift %u by 1 : H
  kas.yield data(%n, %c_d, %y, %w) weight(%o, %c_w, %i_w)
}

// CHECK-LABEL: func.func @shift(
// CHECK:         arith.minsi
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             arith.divsi
// CHECK-COUNT-28: vector.fma
// CHECK-NOT:      vector.fma
// CHECK:         return
func.func @shift(%x: tensor<1x64x14x14xf32>, %w: tensor<32x64x3xf32>) -> tensor<1x32x14x14xf32> {
  %y = kas.apply @shifted<k = 3>(%x, %w) : (tensor<1x64x14x14xf32>, tensor<32x64x3xf32>) -> tensor<1x32x14x14xf32>
  return %y : tensor<1x32x14x14xf32>
}

// In joined lines it is known when the tile is emitted: the last line of the last pair reads the first line of the image at the last
// step, which is code of its own.
//
// CHECK-LABEL: func.func @shift_joined(
// CHECK:         scf.if
// CHECK-COUNT-14:  vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         } else {
// CHECK-COUNT-28:  vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         scf.for
// CHECK-COUNT-28:  vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         scf.if
// CHECK-COUNT-28:  vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         } else {
// CHECK-COUNT-28:  vector.fma
// CHECK-NOT:       vector.fma
// CHECK:         scf.for
func.func @shift_joined(%x: tensor<1x64x7x7xf32>, %w: tensor<32x64x3xf32>) -> tensor<1x32x7x7xf32> {
  %y = kas.apply @shifted<k = 3>(%x, %w) : (tensor<1x64x7x7xf32>, tensor<32x64x3xf32>) -> tensor<1x32x7x7xf32>
  return %y : tensor<1x32x7x7xf32>
}
