// What one library alone may compute: the rest is compiled as if the other one did not exist, with weights and images in the order of kernels. cuDNN computes
// products, too, as convolutions of 1x1.
// DEFINE: %{libraries} = auto
// DEFINE: %{lower} = kas-opt %s -kas-gpu-front-half='device=sm_90a precision=f16 elements=f16 layout=as_is libraries=%{libraries}'
// RUN: %{lower} | FileCheck %s --check-prefixes=CHECK,BOTH --implicit-check-not='kas_gpu.library ='
// REDEFINE: %{libraries} = cublaslt
// RUN: %{lower} | FileCheck %s --check-prefixes=CHECK,PRODUCTS --implicit-check-not='kas_gpu.library ='
// REDEFINE: %{libraries} = cudnn
// RUN: %{lower} | FileCheck %s --check-prefixes=CHECK,CONVOLUTIONS --implicit-check-not='kas_gpu.library ='
// REDEFINE: %{libraries} = none
// RUN: %{lower} | FileCheck %s --check-prefixes=CHECK,NEITHER --implicit-check-not='kas_gpu.library ='

// CHECK-LABEL: func.func @convolution
// BOTH-NOT: num_prepack_launches
// CONVOLUTIONS-NOT: num_prepack_launches
// PRODUCTS-SAME: kas_gpu.num_prepack_launches = 1
// NEITHER-SAME: kas_gpu.num_prepack_launches = 1
func.func @convolution(%x: tensor<8x128x30x30xf32>, %w: tensor<128x128x3x3xf32> {kas.name = "w"})
    -> tensor<8x128x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x128x28x28xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x128x28x28xf32>) -> tensor<8x128x28x28xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<8x128x30x30xf32>, tensor<128x128x3x3xf32>)
    outs(%f : tensor<8x128x28x28xf32>) -> tensor<8x128x28x28xf32>
  return %y : tensor<8x128x28x28xf32>
}

// CHECK-LABEL: func.func @product
func.func @product(%x: tensor<512x768xf32>, %w: tensor<768x3072xf32> {kas.name = "w"}) -> tensor<512x3072xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x3072xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x3072xf32>) -> tensor<512x3072xf32>
  %y = linalg.matmul ins(%x, %w : tensor<512x768xf32>, tensor<768x3072xf32>)
    outs(%f : tensor<512x3072xf32>) -> tensor<512x3072xf32>
  return %y : tensor<512x3072xf32>
}

// BOTH: gpu.func @convolution_0
// BOTH-SAME: kas_gpu.library = #kas_gpu.convolution
// BOTH: gpu.func @product_0
// BOTH-SAME: kas_gpu.library = #kas_gpu.matmul
// PRODUCTS: gpu.func @convolution_1
// PRODUCTS: gpu.func @product_0
// PRODUCTS-SAME: kas_gpu.library = #kas_gpu.matmul
// CONVOLUTIONS: gpu.func @convolution_0
// CONVOLUTIONS-SAME: kas_gpu.library = #kas_gpu.convolution
// CONVOLUTIONS: gpu.func @product_0
// CONVOLUTIONS-SAME: kas_gpu.library = #kas_gpu.convolution
// NEITHER: gpu.func @convolution_1
// NEITHER: gpu.func @product_0
