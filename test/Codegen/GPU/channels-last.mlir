// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-channels-last="device=sm_90a layout=inside" | FileCheck %s --check-prefixes=CHECK,INSIDE
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-channels-last="device=sm_90a layout=whole" | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-channels-last="device=sm_90a layout=as_is" | FileCheck %s --check-prefix=SAME
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-channels-last="device=vulkan layout=whole" | FileCheck %s --check-prefix=SAME
// By the cost model: kernels alone stay as they are, and cuDNN is faster with channels last, copies included.
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-channels-last="device=sm_90a precision=tf32" | FileCheck %s --check-prefix=SAME
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-channels-last="device=sm_90a precision=tf32 libraries=auto" | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: kas-opt %s -kas-nvvm-pipeline="chip=sm_90a precision=tf32 libraries=auto" | kas-translate -kas-gpu-to-manifest | FileCheck %s --check-prefix=MANIFEST
// RUN: kas-opt %s -kas-nvvm-pipeline="chip=sm_90a precision=tf32 libraries=auto layout=as_is" | kas-translate -kas-gpu-to-manifest | FileCheck %s --check-prefix=ASIS
// Images between convolutions are written with the channels last, and filters copied to that order; what reads them does so through a view.
// SAME-NOT: tensor<8x56x56x64xf32>
// Two different convolutions, filters copied once for all calls, and in each call one copy of the argument and one of the result.
// MANIFEST-COUNT-2: "channels_last":true
// MANIFEST-NOT: "convolution"
// MANIFEST: "prepack_launches":3,"launches":[{"kernel":1,"arguments":[1,7]},{"kernel":1,"arguments":[2,8]},{"kernel":1,"arguments":[3,9]},{"kernel":0,"arguments":[0,6]},{"kernel":2,"arguments":[7,6,4,10]},{"kernel":3,"arguments":[8,10,11]},{"kernel":3,"arguments":[9,11,12]},{"kernel":4,"arguments":[12,5]}]
// ASIS-NOT: "channels_last":true
// ASIS-COUNT-2: "channels_last":false
// ASIS-NOT: "prepack_launches"

#all = affine_map<(n, o, h, w) -> (n, o, h, w)>
#channel = affine_map<(n, o, h, w) -> (o)>
#image = affine_map<(n, o, h, w, c, i, j) -> (n, c, h + i, w + j)>
#filter = affine_map<(n, o, h, w, c, i, j) -> (o, c, i, j)>
#sum = affine_map<(n, o, h, w, c, i, j) -> (n, o, h, w)>

// CHECK-LABEL: func.func @three
// The argument is read as it is, or a copy of it.
// INSIDE-NOT: outs({{.*}} : tensor<8x58x58x64xf32>)
// WHOLE: %[[COPY:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<8x64x58x58xf32>) outs({{.*}} : tensor<8x58x58x64xf32>)
// WHOLE: %[[VIEW:.*]] = linalg.transpose ins(%[[COPY]] {{.*}} permutation = [0, 3, 1, 2]
// INSIDE: %[[FIRST:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x64x58x58xf32>, tensor<64x64x3x3xf32>) outs({{.*}} : tensor<8x56x56x64xf32>)
// WHOLE: %[[FILTER:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<64x64x3x3xf32>) outs({{.*}} : tensor<64x3x3x64xf32>)
// WHOLE: %[[FIRST:.*]] = linalg.generic {{.*}} ins(%[[VIEW]], %[[FILTER]] : tensor<8x64x58x58xf32>, tensor<64x3x3x64xf32>) outs({{.*}} : tensor<8x56x56x64xf32>)
// CHECK: linalg.transpose ins(%[[FIRST]] : tensor<8x56x56x64xf32>) {{.*}} permutation = [0, 3, 1, 2]
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<8x56x56x64xf32>)
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<64x3x3x64xf32>)
// CHECK: linalg.generic {{.*}}tensor<64x3x3x64xf32>) outs({{.*}} : tensor<8x56x56x64xf32>)
// What is returned is in the order of before, written by its kernel or copied.
// INSIDE: %[[END:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<8x64x56x56xf32>)
// WHOLE: %[[LAST:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<8x56x56x64xf32>)
// WHOLE: %[[END:.*]] = linalg.generic {{.*}} ins(%[[LAST]] : tensor<8x56x56x64xf32>) outs({{.*}} : tensor<8x64x56x56xf32>)
// CHECK: return %[[END]] : tensor<8x64x56x56xf32>
func.func @three(%x: tensor<8x64x58x58xf32>, %w1: tensor<64x64x3x3xf32>, %w2: tensor<64x64x3x3xf32>,
                 %w3: tensor<64x64x3x3xf32>, %bias: tensor<64xf32>) -> tensor<8x64x56x56xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x64x56x56xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x64x56x56xf32>) -> tensor<8x64x56x56xf32>
  %sum1 = linalg.generic {indexing_maps = [#image, #filter, #sum],
                          iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w1 : tensor<8x64x58x58xf32>, tensor<64x64x3x3xf32>) outs(%zeros : tensor<8x64x56x56xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %product = arith.mulf %a, %b : f32
      %next = arith.addf %c, %product : f32
      linalg.yield %next : f32
  } -> tensor<8x64x56x56xf32>
  %y1 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum1, %bias : tensor<8x64x56x56xf32>, tensor<64xf32>) outs(%empty : tensor<8x64x56x56xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %biased = arith.addf %a, %b : f32
      %rectified = arith.maximumf %biased, %zero : f32
      linalg.yield %rectified : f32
  } -> tensor<8x64x56x56xf32>
  %pad1 = tensor.pad %y1 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%d0: index, %d1: index, %d2: index, %d3: index):
      tensor.yield %zero : f32
  } : tensor<8x64x56x56xf32> to tensor<8x64x58x58xf32>
  %y2 = linalg.generic {indexing_maps = [#image, #filter, #sum],
                        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%pad1, %w2 : tensor<8x64x58x58xf32>, tensor<64x64x3x3xf32>) outs(%zeros : tensor<8x64x56x56xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %product = arith.mulf %a, %b : f32
      %next = arith.addf %c, %product : f32
      linalg.yield %next : f32
  } -> tensor<8x64x56x56xf32>
  %pad2 = tensor.pad %y2 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%d0: index, %d1: index, %d2: index, %d3: index):
      tensor.yield %zero : f32
  } : tensor<8x64x56x56xf32> to tensor<8x64x58x58xf32>
  %y3 = linalg.generic {indexing_maps = [#image, #filter, #sum],
                        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%pad2, %w3 : tensor<8x64x58x58xf32>, tensor<64x64x3x3xf32>) outs(%zeros : tensor<8x64x56x56xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %product = arith.mulf %a, %b : f32
      %next = arith.addf %c, %product : f32
      linalg.yield %next : f32
  } -> tensor<8x64x56x56xf32>
  return %y3 : tensor<8x64x56x56xf32>
}
