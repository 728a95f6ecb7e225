// What has been formed stays as it is, with its schedules: tuners set them there.
// RUN: kas-opt %s --pass-pipeline='builtin.module(kas-specialize,kas-rfactor,canonicalize,cse,func.func(kas-gpu-form-kernels))' -o %t.once
// RUN: FileCheck %s --input-file=%t.once
// RUN: kas-opt %t.once --pass-pipeline='builtin.module(kas-gpu-schedule{device=vulkan})' -o %t.scheduled
// RUN: kas-opt %t.scheduled --pass-pipeline='builtin.module(kas-specialize,kas-rfactor,canonicalize,cse,func.func(kas-gpu-form-kernels))' -o %t.again
// RUN: diff %t.scheduled %t.again

// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK: kas.apply

kas.operator @conv1d<N, Cin, Cout, W | k>
    (%n: N, %o: Cout, %w: W) from [N, Cin, W] {
  %c = kas.reduce sum : Cin
  %j = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %j_d, %j_w = kas.share %j : k
  %x = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %x) weight(%o, %c_w, %j_w)
}

#map = affine_map<(a, b, c) -> (a, b, c)>
func.func @forward(%x: tensor<1x8x16xf32>, %v: tensor<8x8x3xf32>, %w: tensor<16x8x3xf32>, %b: tensor<8xf32>) -> tensor<1x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x8x16xf32> to tensor<1x8x18xf32>
  %empty = tensor.empty() : tensor<1x8x16xf32>
  %init = linalg.broadcast ins(%b : tensor<8xf32>) outs(%empty : tensor<1x8x16xf32>) dimensions = [0, 2]
  %y = linalg.conv_1d_ncw_fcw ins(%p, %v : tensor<1x8x18xf32>, tensor<8x8x3xf32>)
    outs(%init : tensor<1x8x16xf32>) -> tensor<1x8x16xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%y : tensor<1x8x16xf32>) outs(%empty : tensor<1x8x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.maximumf %in, %zero : f32
    linalg.yield %m : f32
  } -> tensor<1x8x16xf32>
  %z = kas.apply @conv1d<k = 3>(%r, %w) : (tensor<1x8x16xf32>, tensor<16x8x3xf32>) -> tensor<1x16x16xf32>
  return %z : tensor<1x16x16xf32>
}
