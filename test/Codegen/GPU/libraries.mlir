// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-schedule="device=sm_90 libraries=auto" | FileCheck %s
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-schedule="device=sm_90 libraries=auto precision=tf32" \
// RUN:   | FileCheck %s --check-prefix=TF32
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-schedule="device=sm_90" | FileCheck %s --check-prefix=NONE
// RUN: kas-opt %s -kas-gpu-form-kernels -kas-gpu-schedule="device=vulkan libraries=auto" | FileCheck %s --check-prefix=NONE
// RUN: kas-opt %s -kas-nvvm-pipeline=libraries=auto | kas-translate -kas-gpu-to-manifest | FileCheck %s --check-prefix=MANIFEST
// Products of matrices are described to libraries with their arguments, sizes and strides, whatever form they have, and
// nothing else is.
// NONE-NOT: kas_gpu.library

#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
#column = affine_map<(d0, d1) -> (d0)>

// The epilogue's arguments follow those of the product.
// CHECK-LABEL: func.func @linear
// CHECK: kas_gpu.library = #kas_gpu.matmul<sizes = [1, 64, 32, 128], left = [1, 0, 128, 1], right = [0, 0, 128, 1], result = [4, 0, 32, 1], bias = 2, residual = 3, rectified = true>
// TF32-LABEL: func.func @linear
// TF32: kas_gpu.library = #kas_gpu.matmul<{{.*}}rectified = true, precision = tf32>
// MANIFEST: "name":"linear_0",
// MANIFEST-SAME: "matmul":{"sizes":[1,64,32,128],"left":{"argument":{{[01]}},"strides":[0,128,1]},"right":{"argument":{{[01]}},"strides":[0,128,1]},"result":{"argument":4,"strides":[0,32,1]},"bias":2,"residual":3,"rectified":true,"precision":"f32"}}
func.func @linear(%x: tensor<64x128xf32>, %w: tensor<32x128xf32>, %bias: tensor<32xf32>, %residual: tensor<64x32xf32>)
    -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>,
                                          affine_map<(d0, d1, d2) -> (d0, d1)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x128xf32>, tensor<32x128xf32>) outs(%zeros : tensor<64x32xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %product = arith.mulf %a, %b : f32
      %next = arith.addf %c, %product : f32
      linalg.yield %next : f32
  } -> tensor<64x32xf32>
  %y = linalg.generic {indexing_maps = [#matrix, #row, #matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %bias, %residual : tensor<64x32xf32>, tensor<32xf32>, tensor<64x32xf32>)
      outs(%empty : tensor<64x32xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
      %biased = arith.addf %a, %b : f32
      %all = arith.addf %biased, %c : f32
      %positive = arith.cmpf ugt, %all, %zero : f32
      %rectified = arith.select %positive, %all, %zero : f32
      linalg.yield %rectified : f32
  } -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// A convolution with windows of one point, of operators: as many products as images, with one matrix of weights. The second
// one, with an operator of linalg.
kas.operator @pointwise<N, Cin, Cout, H, W>
    (%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
// CHECK-LABEL: func.func @images
// CHECK: kas.apply {{.*}}kas_gpu.library = #kas_gpu.matmul<sizes = [4, 32, 64, 16], left = [1, 0, 16, 1], right = [0, 1024, 1, 64], result = [2, 2048, 64, 1]>
func.func @images(%x: tensor<4x16x8x8xf32>, %w: tensor<32x16xf32>) -> tensor<4x32x8x8xf32> {
  %y = kas.apply @pointwise_0(%x, %w) : (tensor<4x16x8x8xf32>, tensor<32x16xf32>) -> tensor<4x32x8x8xf32>
  return %y : tensor<4x32x8x8xf32>
}
kas.operator @pointwise_0(%n: 4, %o: 32, %h: 8, %w: 8) from [4, 16, 8, 8] {
  %c = kas.reduce sum : 16
  %c_d, %c_w = kas.share %c : 16
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}

// A bias for each row is none of the library's: the kernel has it.
// CHECK-LABEL: func.func @bias_of_rows
// CHECK-NOT: kas_gpu.library
func.func @bias_of_rows(%x: tensor<64x128xf32>, %w: tensor<128x32xf32>, %bias: tensor<64xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %sum = linalg.matmul ins(%x, %w : tensor<64x128xf32>, tensor<128x32xf32>) outs(%zeros : tensor<64x32xf32>)
      -> tensor<64x32xf32>
  %y = linalg.generic {indexing_maps = [#matrix, #column, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %bias : tensor<64x32xf32>, tensor<64xf32>) outs(%empty : tensor<64x32xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %biased = arith.addf %a, %b : f32
      linalg.yield %biased : f32
  } -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// Nor are an exponential, a product with a scale, the sum twice, or two residuals.
// CHECK-LABEL: func.func @others
// CHECK-NOT: kas_gpu.library
func.func @others(%x: tensor<4x64x128xf32>, %w: tensor<128x32xf32>, %r: tensor<64x32xf32>, %s: tensor<64x32xf32>)
    -> (tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [1, 64, 128] [1, 1, 1] : tensor<4x64x128xf32> to tensor<64x128xf32>
  %sum0 = linalg.matmul ins(%x0, %w : tensor<64x128xf32>, tensor<128x32xf32>) outs(%zeros : tensor<64x32xf32>)
      -> tensor<64x32xf32>
  %x1 = tensor.extract_slice %x[1, 0, 0] [1, 64, 128] [1, 1, 1] : tensor<4x64x128xf32> to tensor<64x128xf32>
  %sum1 = linalg.matmul ins(%x1, %w : tensor<64x128xf32>, tensor<128x32xf32>) outs(%zeros : tensor<64x32xf32>)
      -> tensor<64x32xf32>
  %x2 = tensor.extract_slice %x[2, 0, 0] [1, 64, 128] [1, 1, 1] : tensor<4x64x128xf32> to tensor<64x128xf32>
  %sum2 = linalg.matmul ins(%x2, %w : tensor<64x128xf32>, tensor<128x32xf32>) outs(%zeros : tensor<64x32xf32>)
      -> tensor<64x32xf32>
  %x3 = tensor.extract_slice %x[3, 0, 0] [1, 64, 128] [1, 1, 1] : tensor<4x64x128xf32> to tensor<64x128xf32>
  %sum3 = linalg.matmul ins(%x3, %w : tensor<64x128xf32>, tensor<128x32xf32>) outs(%zeros : tensor<64x32xf32>)
      -> tensor<64x32xf32>
  %exp = linalg.exp ins(%sum0 : tensor<64x32xf32>) outs(%empty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %scaled = linalg.mul ins(%sum1, %r : tensor<64x32xf32>, tensor<64x32xf32>) outs(%empty : tensor<64x32xf32>)
      -> tensor<64x32xf32>
  %twice = linalg.add ins(%sum2, %sum2 : tensor<64x32xf32>, tensor<64x32xf32>) outs(%empty : tensor<64x32xf32>)
      -> tensor<64x32xf32>
  %two = linalg.generic {indexing_maps = [#matrix, #matrix, #matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%sum3, %r, %s : tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>) outs(%empty : tensor<64x32xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
      %d = arith.addf %a, %b : f32
      %e = arith.addf %d, %c : f32
      linalg.yield %e : f32
  } -> tensor<64x32xf32>
  return %exp, %scaled, %twice, %two
      : tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>
}

// Windows overlap, or are guarded; a sum over windows in two dimensions is not at one distance.
// CHECK-LABEL: func.func @windows
// CHECK-NOT: kas_gpu.library
func.func @windows(%x: tensor<1x8x32x32xf32>, %w: tensor<16x8x3x3xf32>) -> tensor<1x16x30x30xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x16x30x30xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x16x30x30xf32>) -> tensor<1x16x30x30xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x32x32xf32>, tensor<16x8x3x3xf32>)
      outs(%zeros : tensor<1x16x30x30xf32>) -> tensor<1x16x30x30xf32>
  return %y : tensor<1x16x30x30xf32>
}

// A mean is no sum.
kas.operator @mean(%n: 4, %o: 32, %h: 8, %w: 8) from [4, 16, 8, 8] {
  %c = kas.reduce mean : 16
  %c_d, %c_w = kas.share %c : 16
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
// CHECK-LABEL: func.func @means
// CHECK-NOT: kas_gpu.library
func.func @means(%x: tensor<4x16x8x8xf32>, %w: tensor<32x16xf32>) -> tensor<4x32x8x8xf32> {
  %y = kas.apply @mean(%x, %w) : (tensor<4x16x8x8xf32>, tensor<32x16xf32>) -> tensor<4x32x8x8xf32>
  return %y : tensor<4x32x8x8xf32>
}

// A schedule that is there is what is wanted.
// CHECK-LABEL: func.func @scheduled
// CHECK-NOT: kas_gpu.library
func.func @scheduled(%x: tensor<4x16x8x8xf32>, %w: tensor<32x16xf32>) -> tensor<4x32x8x8xf32> {
  %y = kas.apply @pointwise_0(%x, %w)
      {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 64, tile = [1, 1, 1, 1]>}
      : (tensor<4x16x8x8xf32>, tensor<32x16xf32>) -> tensor<4x32x8x8xf32>
  return %y : tensor<4x32x8x8xf32>
}

// The cost model expects the kernel to be faster: a matrix that is read once, for one row.
// CHECK-LABEL: func.func @one_row
// CHECK-NOT: kas_gpu.library
func.func @one_row(%x: tensor<1x64xf32>, %w: tensor<64x65536xf32>) -> tensor<1x65536xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x65536xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x65536xf32>) -> tensor<1x65536xf32>
  %y = linalg.matmul ins(%x, %w : tensor<1x64xf32>, tensor<64x65536xf32>) outs(%zeros : tensor<1x65536xf32>)
      -> tensor<1x65536xf32>
  return %y : tensor<1x65536xf32>
}
