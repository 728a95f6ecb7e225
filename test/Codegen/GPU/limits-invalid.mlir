// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-gpu-outline

// One test for each limit of a device, at which a kernel is refused.

// Threads of a block.
#device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 2,
  max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @copy(%c: 8) from [8] {
  kas.yield data(%c)
}
func.func @threads(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@below {{expected at most 64 threads of a block for the device 'small', got 65}}
  %y = kas.apply @copy(%x) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 65, tile = [1]>}
    : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
}

// -----

// Workgroup memory.
#device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 2,
  max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @product(%m: 8, %n: 8) from [8, 8] {
  %k = kas.reduce sum : 8
  %d, %w = kas.share %k : 8
  kas.yield data(%m, %d) weight(%w, %n)
}
func.func @shared(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@below {{expected at most 1024 bytes of workgroup memory for the device 'small', got 1088}}
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = staged, threads = 16, tile = [4, 4], block = [16, 16], depth = 8, padding = 1>}
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
}

// -----

// Blocks of a grid: two along each of three dimensions.
#device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 2,
  max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @copy(%c: 9) from [9] {
  kas.yield data(%c)
}
func.func @blocks(%x: tensor<9xf32>) -> tensor<9xf32> {
  // expected-error@below {{expected a grid of at most 2 blocks along each dimension for the device 'small', got 9 blocks}}
  %y = kas.apply @copy(%x) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [1]>}
    : (tensor<9xf32>) -> tensor<9xf32>
  return %y : tensor<9xf32>
}
}

// -----

// Bytes of a buffer.
#device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 2,
  max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @sum() from [257] {
  %k = kas.reduce sum : 257
  kas.yield data(%k)
}
func.func @bytes(%x: tensor<257xf32>) -> tensor<f32> {
  // expected-error@below {{expected tensors of at most 1024 bytes for the device 'small', got 1028 for the data}}
  %y = kas.apply @sum(%x) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 1>}
    : (tensor<257xf32>) -> tensor<f32>
  return %y : tensor<f32>
}
}

// -----

// Elements that indices of 32 bits count, whatever fits into the memory.
#device = #kas_gpu.device<name = "wide", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 2,
  max_bytes = 8589934588, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @sum() from [65536, 32768] {
  %i = kas.reduce sum : 65536
  %j = kas.reduce sum : 32768
  kas.yield data(%i, %j)
}
func.func @elements(%x: tensor<65536x32768xf16>) -> tensor<f16> {
  // expected-error@below {{expected tensors of at most 2147483647 elements, got 2147483648 for the data}}
  %y = kas.apply @sum(%x) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 1>}
    : (tensor<65536x32768xf16>) -> tensor<f16>
  return %y : tensor<f16>
}
}

// -----

// A tile for each output coordinate.
#device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 1024, max_blocks = 2,
  max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @copy(%c: 8) from [8] {
  kas.yield data(%c)
}
func.func @tile(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@below {{expected a tile of 1 entries, one for each output coordinate, got 2}}
  %y = kas.apply @copy(%x) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [1, 1]>}
    : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
}

// -----

// A module that says for which device.
kas.operator @copy(%c: 8) from [8] {
  kas.yield data(%c)
}
func.func @device(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@below {{expected a module with kas_gpu.device (see -kas-gpu-schedule), got none}}
  %y = kas.apply @copy(%x) {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 1, tile = [1]>}
    : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Matrix instructions.
#device = #kas_gpu.device<name = "sm_75", processors = 1, max_threads = 64, shared_bytes = 49152, max_blocks = 2,
  max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 49152, registers = 1024, thread_registers = 64,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @product(%m: 8, %n: 8) from [8, 8] {
  %k = kas.reduce sum : 8
  %d, %w = kas.share %k : 8
  kas.yield data(%m, %d) weight(%w, %n)
}
func.func @matrices(%x: tensor<8x8xf16>, %w: tensor<8x8xf16>) -> tensor<8x8xf16> {
  // expected-error@below {{expected a device with matrix instructions (sm_80 or later) for tensor-core kernels, got 'sm_75'}}
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16, 16],
                                          depth = 16, stages = 2, precision = f16>}
    : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf16>
  return %y : tensor<8x8xf16>
}
}

// -----

#device = #kas_gpu.device<name = "sm_90", processors = 1, max_threads = 64, shared_bytes = 49152, max_blocks = 2,
  max_bytes = 1024, processor_threads = 64, processor_shared_bytes = 49152, registers = 1024, thread_registers = 64,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @copy(%c: 8) from [8] {
  kas.yield data(%c)
}
func.func @no_product(%x: tensor<8xf16>) -> tensor<8xf16> {
  // expected-error@below {{expected contractions of data and weights for a tensor_core kernel, got another operator}}
  %y = kas.apply @copy(%x)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = tensor_core, threads = 32, tile = [16, 16], block = [16, 16],
                                          depth = 16, stages = 2, precision = f16>}
    : (tensor<8xf16>) -> tensor<8xf16>
  return %y : tensor<8xf16>
}
}

// -----

#device = #kas_gpu.device<name = "sm_90", processors = 1, max_threads = 256, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 2048, processor_shared_bytes = 233472, registers = 65536, thread_registers = 255,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @product(%m: 64, %n: 64) from [64, 64] {
  %k = kas.reduce sum : 64
  %d, %w = kas.share %k : 64
  kas.yield data(%m, %d) weight(%w, %n)
}
func.func @matrices(%x: tensor<64x64xf16>, %w: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error@below {{expected the device sm_90a for warpgroup kernels, got 'sm_90'}}
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [64, 64],
                                          depth = 64, stages = 2, precision = f16>}
    : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
  return %y : tensor<64x64xf16>
}
}

// -----

#device = #kas_gpu.device<name = "sm_90a", processors = 1, max_threads = 256, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 2048, processor_shared_bytes = 233472, registers = 65536, thread_registers = 255,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @product(%m: 64, %n: 64) from [64, 64] {
  %k = kas.reduce sum : 64
  %d, %w = kas.share %k : 64
  kas.yield data(%m, %d) weight(%w, %n)
}
func.func @matrices(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error@below {{expected a product of two matrices of 16-bit numbers at constant distances for a warpgroup kernel, got tensors of f32}}
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [64, 64],
                                          depth = 64, stages = 2, precision = f16>}
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
}

// -----

#device = #kas_gpu.device<name = "sm_90a", processors = 1, max_threads = 256, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 2048, processor_shared_bytes = 233472, registers = 65536, thread_registers = 255,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @product(%m: 64, %n: 64) from [64, 64] {
  %k = kas.reduce sum : 64
  %d, %w = kas.share %k : 64
  kas.yield data(%m, %d) weight(%w, %n)
}
func.func @matrices(%x: tensor<64x64xf16>, %w: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error@below {{expected a precision of 'f16' for a warpgroup kernel, got 'bf16'}}
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [64, 64],
                                          depth = 64, stages = 2, precision = bf16>}
    : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
  return %y : tensor<64x64xf16>
}
}

// -----

#device = #kas_gpu.device<name = "sm_90a", processors = 1, max_threads = 256, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 2048, processor_shared_bytes = 233472, registers = 65536, thread_registers = 255,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @product(%m: 64, %n: 36) from [64, 64] {
  %k = kas.reduce sum : 64
  %d, %w = kas.share %k : 64
  kas.yield data(%m, %d) weight(%w, %n)
}
func.func @matrices(%x: tensor<64x64xf16>, %w: tensor<64x36xf16>) -> tensor<64x36xf16> {
  // expected-error@below {{expected a product of two matrices of 16-bit numbers at constant distances for a warpgroup kernel, got distances that are not multiples of 16 bytes}}
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [64, 64],
                                          depth = 64, stages = 2, precision = f16>}
    : (tensor<64x64xf16>, tensor<64x36xf16>) -> tensor<64x36xf16>
  return %y : tensor<64x36xf16>
}
}

// -----

#device = #kas_gpu.device<name = "sm_90a", processors = 1, max_threads = 256, shared_bytes = 49152, max_blocks = 64,
  max_bytes = 65536, processor_threads = 2048, processor_shared_bytes = 233472, registers = 65536, thread_registers = 255,
  subgroup = 32>
module attributes {kas_gpu.device = #device} {
kas.operator @product(%o: 64, %w: 64) from [64, 64] {
  %c = kas.reduce sum : 64
  %j = kas.reduce sum : 3
  %c_d, %c_w = kas.share %c : 64
  %j_d, %j_w = kas.share %j : 3
  %x = kas.unfold %w, %j_d : 64, 3
  kas.yield data(%c_d, %x) weight(%o, %j_w, %c_w)
}
func.func @matrices(%x: tensor<64x64xf16>, %w: tensor<64x3x64xf16>) -> tensor<64x64xf16> {
  // expected-error@below {{expected a product of two matrices of 16-bit numbers at constant distances for a warpgroup kernel, got guards}}
  %y = kas.apply @product(%x, %w)
    {kas_gpu.schedule = #kas_gpu.schedule<strategy = warpgroup, threads = 128, tile = [64, 64], block = [64, 64],
                                          depth = 64, stages = 2, precision = f16>}
    : (tensor<64x64xf16>, tensor<64x3x64xf16>) -> tensor<64x64xf16>
  return %y : tensor<64x64xf16>
}
}
