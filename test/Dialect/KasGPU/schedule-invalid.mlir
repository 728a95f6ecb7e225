// REQUIRES: gpu
// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-gpu-outline

kas.operator @copy(%c: 8) from [8] {
  kas.yield data(%c)
}
func.func @c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // C1
  // expected-error@below {{expected 1 to 1024 threads, got 0}}
  %y = kas.apply @copy(%x) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 0, tile = [1]>}
    : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

kas.operator @copy(%c: 8) from [8] {
  kas.yield data(%c)
}
func.func @c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // C1
  // expected-error@below {{expected 1 to 1024 threads, got 1025}}
  %y = kas.apply @copy(%x) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 1025, tile = [1]>}
    : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// C2
// expected-error@below {{expected entries of tile of at least 1, got 0}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [4, 0]>} {}

// -----

// C2
// expected-error@below {{expected a tile of at most 256 points, got array<i64: 32, 9>}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [32, 9]>} {}

// -----

// C3
// expected-error@below {{expected no block for direct kernels, got array<i64: 4>}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [4], block = [4]>} {}

// -----

// C3
// expected-error@below {{expected a depth of 0, or a power of two above 1 that divides the threads, for direct kernels, got 8}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [4], depth = 8>} {}

// -----

// C3
// expected-error@below {{expected a depth of 0, or a power of two above 1 that divides the threads, for direct kernels, got 1}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [4], depth = 1>} {}

// -----

// C3
// expected-error@below {{expected a depth of 0, or a power of two above 1 that divides the threads, for direct kernels, got 6}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = direct, threads = 12, tile = [4], depth = 6>} {}

// -----

// C3
// expected-error@below {{expected no padding for direct kernels, got 1}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [4], padding = 1>} {}

// -----

// C3
// expected-error@below {{expected 1 stage for direct kernels, got 2}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [4], stages = 2>} {}

// -----

// C4
// expected-error@below {{expected 2 entries in tile of staged kernels, got 1}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = staged, threads = 16, tile = [4], block = [16, 16], depth = 8>} {}

// -----

// C4
// expected-error@below {{expected 2 entries in block of staged kernels, got 3}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = staged, threads = 16, tile = [4, 4], block = [16, 16, 4], depth = 8>} {}

// -----

// C4
// expected-error@below {{expected a depth of at least 1, got 0}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = staged, threads = 16, tile = [4, 4], block = [16, 16]>} {}

// -----

// C5
// expected-error@below {{expected an entry of block that 4 of tile divides, got 18}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = staged, threads = 16, tile = [4, 4], block = [16, 18], depth = 8>} {}

// -----

// C5
// expected-error@below {{expected 16 threads for these tiles and blocks, got 32}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = staged, threads = 32, tile = [4, 4], block = [16, 16], depth = 8>} {}

// -----

// C6
// expected-error@below {{expected a padding of at least 0, got -1}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = staged, threads = 16, tile = [4, 4], block = [16, 16], depth = 8, padding = -1>} {}

// -----

// C6
// expected-error@below {{expected 1 or 2 stages, got 3}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = staged, threads = 16, tile = [4, 4], block = [16, 16], depth = 8, stages = 3>} {}

// -----

kas.operator @copy(%c: 8) from [8] {
  kas.yield data(%c)
}
func.func @c7(%x: tensor<8xf32>) -> tensor<8xf32> {
  // C7
  // expected-error@below {{expected a #kas_gpu.schedule as kas_gpu.schedule, got 3}}
  %y = kas.apply @copy(%x) {kas_gpu.schedule = 3} : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// C8
// expected-error@below {{expected kas_gpu.schedule on a kas.apply or a linalg.generic, got func.func}}
func.func @c8() attributes {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [1]>} {
  return
}

// -----

// D1
// expected-error@below {{expected subgroup of at least 1, got 0}}
module attributes {kas_gpu.device = #kas_gpu.device<name = "any", processors = 1, max_threads = 64, shared_bytes = 1024,
  max_blocks = 8, max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024,
  thread_registers = 64, subgroup = 0>} {}

// -----

// D1
// expected-error@below {{expected max_threads of at most 1024, got 2048}}
module attributes {kas_gpu.device = #kas_gpu.device<name = "any", processors = 1, max_threads = 2048, shared_bytes = 1024,
  max_blocks = 8, max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024,
  thread_registers = 64, subgroup = 32>} {}

// -----

// D2
// expected-error@below {{expected a #kas_gpu.device as kas_gpu.device, got 1}}
module attributes {kas_gpu.device = 1} {}

// -----

// D3
// expected-error@below {{expected kas_gpu.device on a module, got func.func}}
func.func @d3() attributes {kas_gpu.device = #kas_gpu.device<name = "any", processors = 1, max_threads = 64,
  shared_bytes = 1024, max_blocks = 8, max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024,
  registers = 1024, thread_registers = 64, subgroup = 32>} {
  return
}

// -----

// expected-error@below {{expected no attribute of this dialect but kas_gpu.schedule}}
func.func @other() attributes {kas_gpu.other} {
  return
}

// -----

// C2
// expected-error@below {{expected a tile of at most 8192 points, got array<i64: 128, 128>}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [128, 128], block = [128, 128], depth = 16, stages = 2, precision = f16>} {}

// -----

// C9
// expected-error@below {{expected a precision of tf32, f16 or bf16 for tensor-core kernels, got f32}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16, 16], depth = 16, stages = 2>} {}

// -----

// C9
// expected-error@below {{expected a precision of f32 for direct kernels, got f16}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [1], precision = f16>} {}

// -----

// C10
// expected-error@below {{expected 2 entries in tile and in block of tensor-core kernels, got 2 and 1}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16], depth = 16, stages = 2, precision = f16>} {}

// -----

// C10
// expected-error@below {{expected multiples of 16 in tile of tensor-core kernels, got 8}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 8], block = [16, 8], depth = 16, stages = 2, precision = f16>} {}

// -----

// C10
// expected-error@below {{expected an entry of block that 32 of tile divides, got 48}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [32, 16], block = [48, 16], depth = 16, stages = 2, precision = f16>} {}

// -----

// C10
// expected-error@below {{expected 64 threads for these tiles and blocks, got 32}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [32, 16], depth = 16, stages = 2, precision = f16>} {}

// -----

// C10
// expected-error@below {{expected a depth that is a multiple of 16 for tensor-core kernels, got 24}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16, 16], depth = 24, stages = 2, precision = f16>} {}

// -----

// C10
// expected-error@below {{expected a padding that is a multiple of 8 elements of bf16, got 4}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16, 16], depth = 16, padding = 4, stages = 2, precision = bf16>} {}

// -----

// C10
// expected-error@below {{expected a padding that is a multiple of 4 elements of tf32, got 2}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16, 16], depth = 16, padding = 2, stages = 2, precision = tf32>} {}

// -----

// C11
// expected-error@below {{expected 2 to 8 stages for tensor-core kernels, got 1}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16, 16], depth = 16, precision = f16>} {}

// -----

// C2
// expected-error@below {{expected a tile of at most 16384 points, got array<i64: 128, 192>}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [128, 192], block = [128, 192], depth = 64, stages = 2, precision = f16>} {}

// -----

// C12
// expected-error@below {{expected a precision of f16 or bf16 for warpgroup kernels, got tf32}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [64, 64], depth = 64, stages = 2, precision = tf32>} {}

// -----

// C13
// expected-error@below {{expected 2 entries in tile and in block of warpgroup kernels, got 2 and 1}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [64], depth = 64, stages = 2, precision = f16>} {}

// -----

// C13
// expected-error@below {{expected multiples of 64 in tile of warpgroup kernels, got 32}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 32], block = [64, 32], depth = 64, stages = 2, precision = f16>} {}

// -----

// C13
// expected-error@below {{expected an entry of block of at most 256 that 128 of tile divides, got 384}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 384, tile = [64, 128], block = [64, 384], depth = 64, stages = 2, precision = f16>} {}

// -----

// C13
// expected-error@below {{expected an entry of block of at most 256 that 64 of tile divides, got 96}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [96, 64], depth = 64, stages = 2, precision = f16>} {}

// -----

// C13
// expected-error@below {{expected 256 threads for these tiles and blocks, got 128}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [128, 64], depth = 64, stages = 2, precision = f16>} {}

// -----

// C14
// expected-error@below {{expected a depth of 64 for warpgroup kernels, got 32}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [64, 64], depth = 32, stages = 2, precision = bf16>} {}

// -----

// C14
// expected-error@below {{expected no padding for warpgroup kernels, got 8}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [64, 64], depth = 64, padding = 8, stages = 2, precision = bf16>} {}

// -----

// C14
// expected-error@below {{expected 2 to 8 stages for warpgroup kernels, got 9}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [64, 64], depth = 64, stages = 9, precision = bf16>} {}

// -----

// C5: in 64 bits, the product of the quotients is 1024
// expected-error@below {{expected an entry of block of at most 1024 tiles of 1, got 384307168202282336}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = staged, threads = 1024, tile = [1, 1], block = [96, 384307168202282336], depth = 8>} {}

// -----

// C10: as C5
// expected-error@below {{expected an entry of block of at most 32 tiles of 16, got 6148914691236517376}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 1024, tile = [16, 16], block = [48, 6148914691236517376], depth = 16, stages = 2, precision = f16>} {}

// -----

// C15
// expected-error@below {{expected a depth of at most 65536, got 4611686018427387904}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = staged, threads = 16, tile = [4, 4], block = [16, 16], depth = 4611686018427387904>} {}

// -----

// C15
// expected-error@below {{expected a depth of at most 65536, got 65552}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16, 16], depth = 65552, stages = 2, precision = f16>} {}

// -----

// C15
// expected-error@below {{expected a padding of at most 65536, got 9223372036854775807}}
module attributes {test.schedule = #kas_gpu.schedule<strategy = staged, threads = 16, tile = [4, 4], block = [16, 16], depth = 8, padding = 9223372036854775807>} {}
