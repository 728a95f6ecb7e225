// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-nvvm-pipeline
// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-spirv-pipeline

// Input for other pipelines.

func.func @no_rank(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{the pipeline for GPUs requires a rank, got 'tensor<*xf32>' in 'bufferization.alloc_tensor'}}
  %0 = "bufferization.alloc_tensor"() {"operandSegmentSizes" = 1.0 : f32} : () -> (tensor<*xf32>)
  return %x : tensor<4xf32>
}
