// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-gpu-outline

// One test for each limit at which a kernel of a linalg operation is refused.

// Threads of a block.
#small = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 2,
                         max_bytes = 1024, processor_threads = 1024, processor_shared_bytes = 1024, registers = 65536,
                         thread_registers = 255, subgroup = 32>
#id = affine_map<(d0) -> (d0)>
module attributes {kas_gpu.device = #small} {
func.func @threads(%x: tensor<128xf32>) -> tensor<128xf32> {
  %empty = tensor.empty() : tensor<128xf32>
  // expected-error@below {{expected at most 64 threads of a block for the device 'small', got 65}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<128xf32>) outs(%empty : tensor<128xf32>)
    attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 65, tile = [1]>} {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<128xf32>
  return %y : tensor<128xf32>
}
}

// -----

// Blocks of a grid: two along each of three dimensions.
#small = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 2,
                         max_bytes = 1024, processor_threads = 1024, processor_shared_bytes = 1024, registers = 65536,
                         thread_registers = 255, subgroup = 32>
#id = affine_map<(d0) -> (d0)>
module attributes {kas_gpu.device = #small} {
func.func @blocks(%x: tensor<9xf32>) -> tensor<9xf32> {
  %empty = tensor.empty() : tensor<9xf32>
  // expected-error@below {{expected a grid of at most 2 blocks along each dimension for the device 'small', got 9 blocks}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<9xf32>) outs(%empty : tensor<9xf32>)
    attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [1]>} {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}
}

// -----

// Bytes of a buffer.
#small = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 2,
                         max_bytes = 1024, processor_threads = 1024, processor_shared_bytes = 1024, registers = 65536,
                         thread_registers = 255, subgroup = 32>
#id = affine_map<(d0) -> (d0)>
module attributes {kas_gpu.device = #small} {
func.func @bytes(%x: tensor<257xf32>) -> tensor<257xf32> {
  %empty = tensor.empty() : tensor<257xf32>
  // expected-error@below {{expected tensors of at most 1024 bytes for the device 'small', got 1028 for input 0}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<257xf32>) outs(%empty : tensor<257xf32>)
    attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 32, tile = [1]>} {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<257xf32>
  return %y : tensor<257xf32>
}
}

// -----

// Tiles of one point.
#small = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 2,
                         max_bytes = 1024, processor_threads = 1024, processor_shared_bytes = 1024, registers = 65536,
                         thread_registers = 255, subgroup = 32>
#id = affine_map<(d0) -> (d0)>
module attributes {kas_gpu.device = #small} {
func.func @tile(%x: tensor<8xf32>) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  // expected-error@below {{expected a direct kernel with a tile of 1 entries of 1, the last one at most 1, for an operation that is no contraction, got}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
    attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 32, tile = [2]>} {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}
}

// -----

// Shapes that are known.
#schedule = #kas_gpu.schedule<strategy = direct, threads = 32, tile = [1]>
#id = affine_map<(d0) -> (d0)>
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@below {{requires tensors of static shapes (see -kas-gpu-form-kernels)}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) attrs = {kas_gpu.schedule = #schedule} {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Each point of the loops writes an element of its own.
#schedule = #kas_gpu.schedule<strategy = direct, threads = 32, tile = [1, 1]>
module attributes {kas_gpu.device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64,
    shared_bytes = 1024, max_blocks = 2, max_bytes = 1024, processor_threads = 1024, processor_shared_bytes = 1024,
    registers = 65536, thread_registers = 255, subgroup = 32>} {
func.func @race(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  // expected-error@below {{expected outputs that depend on each parallel loop, got affine_map<(d0, d1) -> (d0)>}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<4x8xf32>) outs(%empty : tensor<4xf32>) attrs = {kas_gpu.schedule = #schedule} {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
}
