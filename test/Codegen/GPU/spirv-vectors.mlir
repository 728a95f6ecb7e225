// Kernels for Vulkan whose buffers hold vectors compute what others do, under the validation layer: staged products whose rows, steps and columns are
// vectors or not, with epilogues, in 32 and 16 bits.
// DEFINE: %{run} = kas-run %s --args=2 --check=%s --device=vulkan
// RUN: %{run} --function=whole | FileCheck %s
// RUN: %{run} --function=whole --elements=f16 --tolerance=1e-2 | FileCheck %s
// RUN: %{run} --function=parts | FileCheck %s
// RUN: %{run} --function=parts --elements=f16 --tolerance=1e-2 | FileCheck %s
// CHECK: ok
// RUN: kas-opt %s -kas-spirv-pipeline | kas-translate -kas-gpu-to-binary -o %t.spv
// RUN: spirv-val --target-env vulkan1.1 %t.spv
// RUN: spirv-dis %t.spv | FileCheck %s --check-prefix=WIDE
// WIDE-DAG: %[[VECTOR:.*]] = OpTypeVector %float 4
// WIDE-DAG: OpDecorate %{{.*}} ArrayStride 16

kas.operator @product<M, N, K> (%m: M, %n: N) from [M, K] {
  %k = kas.reduce sum : K
  %k_d, %k_w = kas.share %k : K
  kas.yield data(%m, %k_d) weight(%k_w, %n)
}

#pair = affine_map<(m, n) -> (m, n)>
func.func @whole(%x: tensor<32x48xf32>, %w: tensor<48x64xf32>, %residual: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %p = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = staged, threads = 32, tile = [4, 8], block = [16, 64], depth = 8, padding = 4, stages = 2>}
    : (tensor<32x48xf32>, tensor<48x64xf32>) -> tensor<32x64xf32>
  %e = tensor.empty() : tensor<32x64xf32>
  %y = linalg.generic {indexing_maps = [#pair, #pair, #pair], iterator_types = ["parallel", "parallel"]}
      ins(%p, %residual : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}

// Rows of 30 are pairs, 49 columns are no vectors.
func.func @parts(%x: tensor<7x30xf32>, %w: tensor<30x49xf32>) -> tensor<7x49xf32> {
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = staged, threads = 32, tile = [4, 4], block = [16, 32], depth = 8, padding = 4, stages = 2>}
    : (tensor<7x30xf32>, tensor<30x49xf32>) -> tensor<7x49xf32>
  return %y : tensor<7x49xf32>
}
