// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-pack-operators='threads=1 prepacked=true' -canonicalize -cse | FileCheck %s
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 -kas-bufferize -kas-pack-contractions='threads=1 prepacked=true' \
// RUN:   | FileCheck %s --check-prefix=BUFFERS

// A depthwise convolution reads its image where it is: the border is lanes of masked loads, the sums begin with the bias of the channel, and the
// rectifier is computed before they are stored.
//
// CHECK-LABEL: func.func @padded(
// CHECK-SAME:    %[[X:.*]]: tensor<1x8x14x14xf32>, %{{.*}}: tensor<8x3x3xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK-NOT:     tensor.pad
// CHECK-NOT:     linalg.broadcast
// CHECK:         bufferization.to_buffer %[[X]]
// CHECK:         %[[OUT:.*]] = memref.alloc() {{.*}} : memref<1x8x14x14xf32>
// CHECK:         %[[CHANNEL:.*]] = tensor.extract %[[B]]
// CHECK-NEXT:    vector.broadcast %[[CHANNEL]] : f32 to vector<[[LANES:.*]]xf32>
// CHECK:         vector.fma
// CHECK:         arith.maximumf %{{.*}} : vector<[[LANES]]xf32>
// CHECK-NEXT:    vector.{{store|maskedstore}}
// CHECK-NOT:     linalg.generic
// CHECK:         %[[Y:.*]] = bufferization.to_tensor %[[OUT]]
// CHECK-NEXT:    return %[[Y]]
func.func @padded(%x: tensor<1x8x14x14xf32>, %w: tensor<8x3x3xf32>, %b: tensor<8xf32>) -> tensor<1x8x14x14xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %v: index):
    tensor.yield %zero : f32
  } : tensor<1x8x14x14xf32> to tensor<1x8x16x16xf32>
  %empty = tensor.empty() : tensor<1x8x14x14xf32>
  %init = linalg.broadcast ins(%b : tensor<8xf32>) outs(%empty : tensor<1x8x14x14xf32>) dimensions = [0, 2, 3]
  %y = linalg.depthwise_conv_2d_nchw_chw ins(%padded, %w : tensor<1x8x16x16xf32>, tensor<8x3x3xf32>)
      outs(%init : tensor<1x8x14x14xf32>) -> tensor<1x8x14x14xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : tensor<1x8x14x14xf32>) outs(%empty : tensor<1x8x14x14xf32>) {
  ^bb0(%sum: f32, %out: f32):
    %kept = arith.maximumf %sum, %zero : f32
    linalg.yield %kept : f32
  } -> tensor<1x8x14x14xf32>
  return %z : tensor<1x8x14x14xf32>
}

// The same on buffers, with a residual.
//
// BUFFERS-LABEL: func.func @residual(
// BUFFERS-NOT:     linalg.broadcast
// BUFFERS-NOT:     linalg.generic
// BUFFERS:         vector.broadcast %{{.*}} : f32 to vector
// BUFFERS:         vector.fma
// BUFFERS:         arith.mulf %{{.*}} : vector
// BUFFERS-NEXT:    arith.addf %{{.*}} : vector
// BUFFERS:         vector.{{store|maskedstore}}
// BUFFERS-NOT:     linalg.generic
// BUFFERS:         return
func.func @residual(%x: tensor<1x8x16x16xf32>, %w: tensor<8x3x3xf32>, %b: tensor<8xf32>, %old: tensor<1x8x14x14xf32>)
    -> tensor<1x8x14x14xf32> {
  %empty = tensor.empty() : tensor<1x8x14x14xf32>
  %init = linalg.broadcast ins(%b : tensor<8xf32>) outs(%empty : tensor<1x8x14x14xf32>) dimensions = [0, 2, 3]
  %y = linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : tensor<1x8x16x16xf32>, tensor<8x3x3xf32>)
      outs(%init : tensor<1x8x14x14xf32>) -> tensor<1x8x14x14xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>,
                                        affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %old : tensor<1x8x14x14xf32>, tensor<1x8x14x14xf32>) outs(%empty : tensor<1x8x14x14xf32>) {
  ^bb0(%sum: f32, %more: f32, %out: f32):
    %scaled = arith.mulf %sum, %sum : f32
    %added = arith.addf %scaled, %more : f32
    linalg.yield %added : f32
  } -> tensor<1x8x14x14xf32>
  return %z : tensor<1x8x14x14xf32>
}

// Sums of groups lie like the tensor in which groups and their channels are one dimension: the bias and the rectifier of that are computed with
// them.
//
// BUFFERS-LABEL: func.func @groups(
// BUFFERS-NOT:     linalg.broadcast
// BUFFERS:         vector.load %{{.*}} : memref<32xf32>
// BUFFERS:         vector.fma
// BUFFERS:         arith.maximumf %{{.*}} : vector
// BUFFERS-NEXT:    vector.{{store|maskedstore}}
// BUFFERS-NOT:     linalg.generic
// BUFFERS:         return
func.func @groups(%x: tensor<1x32x14x14xf32>, %w: tensor<4x8x8x3x3xf32>, %b: tensor<32xf32>) -> tensor<1x32x14x14xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %v: index):
    tensor.yield %zero : f32
  } : tensor<1x32x14x14xf32> to tensor<1x32x16x16xf32>
  %image = tensor.expand_shape %padded [[0], [1, 2], [3], [4]] output_shape [1, 4, 8, 16, 16]
      : tensor<1x32x16x16xf32> into tensor<1x4x8x16x16xf32>
  %empty = tensor.empty() : tensor<1x32x14x14xf32>
  %init = linalg.broadcast ins(%b : tensor<32xf32>) outs(%empty : tensor<1x32x14x14xf32>) dimensions = [0, 2, 3]
  %begin = tensor.expand_shape %init [[0], [1, 2], [3], [4]] output_shape [1, 4, 8, 14, 14]
      : tensor<1x32x14x14xf32> into tensor<1x4x8x14x14xf32>
  %sums = linalg.conv_2d_ngchw_gfchw ins(%image, %w : tensor<1x4x8x16x16xf32>, tensor<4x8x8x3x3xf32>)
      outs(%begin : tensor<1x4x8x14x14xf32>) -> tensor<1x4x8x14x14xf32>
  %y = tensor.collapse_shape %sums [[0], [1, 2], [3], [4]] : tensor<1x4x8x14x14xf32> into tensor<1x32x14x14xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : tensor<1x32x14x14xf32>) outs(%empty : tensor<1x32x14x14xf32>) {
  ^bb0(%sum: f32, %out: f32):
    %kept = arith.maximumf %sum, %zero : f32
    linalg.yield %kept : f32
  } -> tensor<1x32x14x14xf32>
  return %z : tensor<1x32x14x14xf32>
}

// The memory of the image may end in between; that of the bias must not end before the sums begin.
//
// BUFFERS-LABEL: func.func @image_ends(
// BUFFERS-NOT:     linalg.
// BUFFERS:         vector.fma
// BUFFERS-NOT:     linalg.
// BUFFERS:         memref.dealloc %{{.*}} : memref<1x8x16x16xf32>
// BUFFERS-NOT:     linalg.
// BUFFERS:         return
func.func @image_ends(%w: memref<8x3x3xf32>, %b: memref<8xf32>, %z: memref<1x8x14x14xf32>) {
  %zero = arith.constant 0.0 : f32
  %x = memref.alloc() : memref<1x8x16x16xf32>
  %y = memref.alloc() : memref<1x8x14x14xf32>
  linalg.broadcast ins(%b : memref<8xf32>) outs(%y : memref<1x8x14x14xf32>) dimensions = [0, 2, 3]
  linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : memref<1x8x16x16xf32>, memref<8x3x3xf32>) outs(%y : memref<1x8x14x14xf32>)
  memref.dealloc %x : memref<1x8x16x16xf32>
  linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : memref<1x8x14x14xf32>) outs(%z : memref<1x8x14x14xf32>) {
  ^bb0(%sum: f32, %out: f32):
    %kept = arith.maximumf %sum, %zero : f32
    linalg.yield %kept : f32
  }
  memref.dealloc %y : memref<1x8x14x14xf32>
  return
}

// BUFFERS-LABEL: func.func @bias_ends(
// BUFFERS:         linalg.broadcast
// BUFFERS-NEXT:    memref.dealloc
// BUFFERS:         vector.fma
// BUFFERS:         return
func.func @bias_ends(%x: memref<1x8x16x16xf32>, %w: memref<8x3x3xf32>, %y: memref<1x8x14x14xf32>) {
  %b = memref.alloc() : memref<8xf32>
  linalg.broadcast ins(%b : memref<8xf32>) outs(%y : memref<1x8x14x14xf32>) dimensions = [0, 2, 3]
  memref.dealloc %b : memref<8xf32>
  linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : memref<1x8x16x16xf32>, memref<8x3x3xf32>) outs(%y : memref<1x8x14x14xf32>)
  return
}

// Where the residual is what the result is written to, direct tiles cannot add it, but begin with the bias all the same.
//
// BUFFERS-LABEL: func.func @in_place(
// BUFFERS-NOT:     linalg.broadcast
// BUFFERS:         vector.broadcast %{{.*}} : f32 to vector
// BUFFERS:         vector.fma
// BUFFERS:         linalg.generic
// BUFFERS:         return
func.func @in_place(%x: memref<1x8x16x16xf32>, %w: memref<8x3x3xf32>, %b: memref<8xf32>, %z: memref<1x8x14x14xf32>) {
  %y = memref.alloc() : memref<1x8x14x14xf32>
  linalg.broadcast ins(%b : memref<8xf32>) outs(%y : memref<1x8x14x14xf32>) dimensions = [0, 2, 3]
  linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : memref<1x8x16x16xf32>, memref<8x3x3xf32>) outs(%y : memref<1x8x14x14xf32>)
  linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>,
                                   affine_map<(n, c, h, w) -> (n, c, h, w)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %z : memref<1x8x14x14xf32>, memref<1x8x14x14xf32>) outs(%z : memref<1x8x14x14xf32>) {
  ^bb0(%sum: f32, %more: f32, %out: f32):
    %added = arith.addf %sum, %more : f32
    linalg.yield %added : f32
  }
  memref.dealloc %y : memref<1x8x14x14xf32>
  return
}
