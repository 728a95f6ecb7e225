// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-transpose-weights="device=sm_90 libraries=auto precision=tf32" \
// RUN:   -kas-gpu-schedule="device=sm_90 libraries=auto precision=tf32" | FileCheck %s
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-transpose-weights="device=sm_90 precision=tf32" \
// RUN:   -kas-gpu-schedule="device=sm_90 precision=tf32" | FileCheck %s --check-prefix=NONE
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-transpose-weights="device=vulkan libraries=auto" \
// RUN:   -kas-gpu-schedule="device=vulkan libraries=auto" | FileCheck %s --check-prefix=NONE
// RUN: kas-opt %s -kas-nvvm-pipeline="libraries=auto precision=tf32" | kas-translate -kas-gpu-to-manifest \
// RUN:   | FileCheck %s --check-prefix=MANIFEST
// Convolutions are described to libraries with their sizes and windows, in the two orders of dimensions that these have, and
// keep their weights then; nothing else is.
// NONE-NOT: kas_gpu.library
// NONE: linalg.generic {{.*}}ins({{.*}} : tensor<64x64x3x3xf32>) outs({{.*}} : tensor<64x3x3x64xf32>)

#all = affine_map<(n, o, h, w) -> (n, o, h, w)>
#channel = affine_map<(n, o, h, w) -> (o)>
#row = affine_map<(n, o, h, w) -> (h)>
#image = affine_map<(n, o, h, w, c, i, j) -> (n, c, h + i, w + j)>
#filter = affine_map<(n, o, h, w, c, i, j) -> (o, c, i, j)>
#sum = affine_map<(n, o, h, w, c, i, j) -> (n, o, h, w)>

// With all that may follow it.
// CHECK-LABEL: func.func @padded
// CHECK-NOT: tensor<64x3x3x64xf32>
// CHECK: kas_gpu.library = #kas_gpu.convolution<image = 0, filter = 1, result = 4, image_sizes = [8, 64, 56, 56], filter_sizes = [64, 64, 3, 3], strides = [1, 1], dilations = [1, 1], pads = [1, 1], bias = 2, residual = 3, rectified = true, precision = tf32>
// MANIFEST: "name":"padded_0",
// MANIFEST-SAME: "convolution":{"image":0,"filter":1,"result":4,"image_sizes":[8,64,56,56],"filter_sizes":[64,64,3,3],"strides":[1,1],"dilations":[1,1],"pads":[1,1],"channels_last":false,"bias":2,"residual":3,"rectified":true,"precision":"tf32"}}
func.func @padded(%x: tensor<8x64x56x56xf32>, %w: tensor<64x64x3x3xf32>, %bias: tensor<64xf32>,
                  %residual: tensor<8x64x56x56xf32>) -> tensor<8x64x56x56xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%d0: index, %d1: index, %d2: index, %d3: index):
      tensor.yield %zero : f32
  } : tensor<8x64x56x56xf32> to tensor<8x64x58x58xf32>
  %empty = tensor.empty() : tensor<8x64x56x56xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x64x56x56xf32>) -> tensor<8x64x56x56xf32>
  %sum = linalg.generic {indexing_maps = [#image, #filter, #sum],
                         iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%pad, %w : tensor<8x64x58x58xf32>, tensor<64x64x3x3xf32>) outs(%zeros : tensor<8x64x56x56xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %product = arith.mulf %a, %b : f32
      %next = arith.addf %c, %product : f32
      linalg.yield %next : f32
  } -> tensor<8x64x56x56xf32>
  %y = linalg.generic {indexing_maps = [#all, #channel, #all, #all],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum, %bias, %residual : tensor<8x64x56x56xf32>, tensor<64xf32>, tensor<8x64x56x56xf32>)
      outs(%empty : tensor<8x64x56x56xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
      %biased = arith.addf %a, %b : f32
      %added = arith.addf %biased, %c : f32
      %rectified = arith.maximumf %added, %zero : f32
      linalg.yield %rectified : f32
  } -> tensor<8x64x56x56xf32>
  return %y : tensor<8x64x56x56xf32>
}

// Channels last, with a stride. The data is what the innermost dimension of the result depends on: the filter.
// CHECK-LABEL: func.func @channels_last
// CHECK: kas_gpu.library = #kas_gpu.convolution<image = 1, filter = 0, result = 2, image_sizes = [8, 64, 57, 57], filter_sizes = [128, 64, 3, 3], strides = [2, 2], dilations = [1, 1], pads = [0, 0], channels_last = true, precision = tf32>
func.func @channels_last(%x: tensor<8x57x57x64xf32>, %w: tensor<128x3x3x64xf32>) -> tensor<8x28x28x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x28x28x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x28x28x128xf32>) -> tensor<8x28x28x128xf32>
  %y = linalg.conv_2d_nhwc_fhwc {strides = dense<2> : tensor<2xi64>}
      ins(%x, %w : tensor<8x57x57x64xf32>, tensor<128x3x3x64xf32>) outs(%zeros : tensor<8x28x28x128xf32>)
      -> tensor<8x28x28x128xf32>
  return %y : tensor<8x28x28x128xf32>
}

// Images with channels last and filters with those of the result last, as TensorFlow has them, are no order of libraries.
// CHECK-LABEL: func.func @mixed
// CHECK-NOT: kas_gpu.library
func.func @mixed(%x: tensor<8x57x57x64xf32>, %w: tensor<3x3x64x128xf32>) -> tensor<8x28x28x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x28x28x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x28x28x128xf32>) -> tensor<8x28x28x128xf32>
  %y = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>}
      ins(%x, %w : tensor<8x57x57x64xf32>, tensor<3x3x64x128xf32>) outs(%zeros : tensor<8x28x28x128xf32>)
      -> tensor<8x28x28x128xf32>
  return %y : tensor<8x28x28x128xf32>
}

// An operator with groups, dilated.
kas.operator @grouped(%n: 8, %go: 64, %h: 56, %w: 56) from [8, 64, 56, 56] {
  %c = kas.reduce sum : 16
  %i = kas.reduce sum : 3
  %j = kas.reduce sum : 3
  %G, %o = kas.merge %go by 16 : 64
  %G_d, %G_w = kas.share %G : 4
  %c_d, %c_w = kas.share %c : 16
  %i_d, %i_w = kas.share %i : 3
  %j_d, %j_w = kas.share %j : 3
  %gc = kas.split %G_d, %c_d : 4, 16
  %i_s = kas.stride %i_d by 2 : 3
  %j_s = kas.stride %j_d by 2 : 3
  %y = kas.unfold %h, %i_s low 2 : 56, 6
  %x = kas.unfold %w, %j_s low 2 : 56, 6
  kas.yield data(%n, %gc, %y, %x) weight(%G_w, %o, %c_w, %i_w, %j_w)
}
// CHECK-LABEL: func.func @groups
// CHECK: kas.apply {{.*}}kas_gpu.library = #kas_gpu.convolution<image = 0, filter = 1, result = 2, image_sizes = [8, 64, 56, 56], filter_sizes = [64, 16, 3, 3], strides = [1, 1], dilations = [2, 2], pads = [2, 2], precision = tf32>
func.func @groups(%x: tensor<8x64x56x56xf32>, %w: tensor<4x16x16x3x3xf32>) -> tensor<8x64x56x56xf32> {
  %y = kas.apply @grouped(%x, %w) : (tensor<8x64x56x56xf32>, tensor<4x16x16x3x3xf32>) -> tensor<8x64x56x56xf32>
  return %y : tensor<8x64x56x56xf32>
}

// Means, pads at one end alone, and each channel for itself. The kernel has these.
kas.operator @mean(%n: 8, %o: 64, %h: 56, %w: 56) from [8, 64, 56, 56] {
  %c = kas.reduce mean : 64
  %i = kas.reduce sum : 3
  %j = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 64
  %i_d, %i_w = kas.share %i : 3
  %j_d, %j_w = kas.share %j : 3
  %y = kas.unfold %h, %i_d : 56, 3
  %x = kas.unfold %w, %j_d : 56, 3
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
kas.operator @even(%n: 8, %o: 64, %h: 56, %w: 56) from [8, 64, 56, 56] {
  %c = kas.reduce sum : 64
  %i = kas.reduce sum : 4
  %j = kas.reduce sum : 4
  %c_d, %c_w = kas.share %c : 64
  %i_d, %i_w = kas.share %i : 4
  %j_d, %j_w = kas.share %j : 4
  %y = kas.unfold %h, %i_d : 56, 4
  %x = kas.unfold %w, %j_d : 56, 4
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
kas.operator @depthwise(%n: 8, %c: 64, %h: 56, %w: 56) from [8, 64, 56, 56] {
  %i = kas.reduce sum : 3
  %j = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 64
  %i_d, %i_w = kas.share %i : 3
  %j_d, %j_w = kas.share %j : 3
  %y = kas.unfold %h, %i_d : 56, 3
  %x = kas.unfold %w, %j_d : 56, 3
  kas.yield data(%n, %c_d, %y, %x) weight(%c_w, %i_w, %j_w)
}
// CHECK-LABEL: func.func @others
// CHECK-NOT: kas_gpu.library
func.func @others(%x: tensor<8x64x56x56xf32>, %v: tensor<64x64x3x3xf32>, %w: tensor<64x64x4x4xf32>, %u: tensor<64x3x3xf32>)
    -> (tensor<8x64x56x56xf32>, tensor<8x64x56x56xf32>, tensor<8x64x56x56xf32>) {
  %mean = kas.apply @mean(%x, %v) : (tensor<8x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x56x56xf32>
  %even = kas.apply @even(%x, %w) : (tensor<8x64x56x56xf32>, tensor<64x64x4x4xf32>) -> tensor<8x64x56x56xf32>
  %depthwise = kas.apply @depthwise(%x, %u) : (tensor<8x64x56x56xf32>, tensor<64x3x3xf32>) -> tensor<8x64x56x56xf32>
  return %mean, %even, %depthwise : tensor<8x64x56x56xf32>, tensor<8x64x56x56xf32>, tensor<8x64x56x56xf32>
}

// Nor a rectifier without a bias, a bias of rows, or results of another type.
kas.operator @conv(%n: 8, %o: 64, %h: 56, %w: 56) from [8, 64, 56, 56] {
  %c = kas.reduce sum : 64
  %i = kas.reduce sum : 3
  %j = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 64
  %i_d, %i_w = kas.share %i : 3
  %j_d, %j_w = kas.share %j : 3
  %y = kas.unfold %h, %i_d : 56, 3
  %x = kas.unfold %w, %j_d : 56, 3
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
// CHECK-LABEL: func.func @epilogues
// CHECK-NOT: kas_gpu.library
func.func @epilogues(%x: tensor<8x64x56x56xf32>, %w: tensor<64x64x3x3xf32>, %v: tensor<64x64x3x3xf32>,
                     %rows: tensor<56xf32>, %x16: tensor<8x64x56x56xf16>, %w16: tensor<64x64x3x3xf16>)
    -> (tensor<8x64x56x56xf32>, tensor<8x64x56x56xf32>, tensor<8x64x56x56xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x64x56x56xf32>
  %sum0 = kas.apply @conv(%x, %w) : (tensor<8x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x56x56xf32>
  %rectified = linalg.generic {indexing_maps = [#all, #all],
                               iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum0 : tensor<8x64x56x56xf32>) outs(%empty : tensor<8x64x56x56xf32>) {
    ^bb0(%a: f32, %out: f32):
      %max = arith.maximumf %a, %zero : f32
      linalg.yield %max : f32
  } -> tensor<8x64x56x56xf32>
  %sum1 = kas.apply @conv(%x, %v) : (tensor<8x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x56x56xf32>
  %biased = linalg.generic {indexing_maps = [#all, #row, #all],
                            iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum1, %rows : tensor<8x64x56x56xf32>, tensor<56xf32>) outs(%empty : tensor<8x64x56x56xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %added = arith.addf %a, %b : f32
      linalg.yield %added : f32
  } -> tensor<8x64x56x56xf32>
  %sum2 = kas.apply @conv(%x16, %w16) : (tensor<8x64x56x56xf16>, tensor<64x64x3x3xf16>) -> tensor<8x64x56x56xf16>
  %wide = linalg.generic {indexing_maps = [#all, #all],
                          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum2 : tensor<8x64x56x56xf16>) outs(%empty : tensor<8x64x56x56xf32>) {
    ^bb0(%a: f16, %out: f32):
      %extended = arith.extf %a : f16 to f32
      linalg.yield %extended : f32
  } -> tensor<8x64x56x56xf32>
  return %rectified, %biased, %wide : tensor<8x64x56x56xf32>, tensor<8x64x56x56xf32>, tensor<8x64x56x56xf32>
}

// A schedule that is there is what is wanted; and the cost model expects the kernel to be faster where there is little to do.
kas.operator @small(%n: 1, %o: 16, %h: 14, %w: 14) from [1, 16, 14, 14] {
  %c = kas.reduce sum : 16
  %i = kas.reduce sum : 3
  %j = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 16
  %i_d, %i_w = kas.share %i : 3
  %j_d, %j_w = kas.share %j : 3
  %y = kas.unfold %h, %i_d : 14, 3
  %x = kas.unfold %w, %j_d : 14, 3
  kas.yield data(%n, %c_d, %y, %x) weight(%o, %c_w, %i_w, %j_w)
}
// CHECK-LABEL: func.func @scheduled
// CHECK-NOT: kas_gpu.library
func.func @scheduled(%x: tensor<8x64x56x56xf32>, %w: tensor<64x64x3x3xf32>, %s: tensor<1x16x14x14xf32>,
                   %v: tensor<16x16x3x3xf32>) -> (tensor<8x64x56x56xf32>, tensor<1x16x14x14xf32>) {
  %y = kas.apply @conv(%x, %w)
      {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 64, tile = [1, 1, 1, 1]>}
      : (tensor<8x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x56x56xf32>
  %z = kas.apply @small(%s, %v) : (tensor<1x16x14x14xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x14x14xf32>
  return %y, %z : tensor<8x64x56x56xf32>, tensor<1x16x14x14xf32>
}
