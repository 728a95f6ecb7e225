// RUN: kas-opt %s -split-input-file -verify-diagnostics -kas-gpu-outline

// Another kind of kernel.
#device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 256, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
#rows = affine_map<(n, i) -> (n, i)>
#row = affine_map<(n, i) -> (n)>
#vector = affine_map<(o, k) -> (k)>
#matrix = affine_map<(o, k) -> (o, k)>
#result = affine_map<(o, k) -> (o)>
module attributes {kas_gpu.device = #device} {
func.func @another(%x: tensor<32x4xf32>, %w: tensor<8x32xf32>, %z: tensor<32xf32>, %z8: tensor<8xf32>) -> (tensor<8xf32>, tensor<32xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<32x4xf32>) outs(%f : tensor<32xf32>) attrs = {kas_gpu.prologue} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  %g = linalg.fill ins(%zero : f32) outs(%z8 : tensor<8xf32>) -> tensor<8xf32>
  // expected-error@below {{expected a direct kernel with a depth after kas_gpu.prologue, got #kas_gpu.schedule<strategy = direct, threads = 8, tile = [1]>}}
  %y = linalg.generic {indexing_maps = [#vector, #matrix, #result], iterator_types = ["parallel", "reduction"]}
      ins(%sum, %w : tensor<32xf32>, tensor<8x32xf32>) outs(%g : tensor<8xf32>)
      attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 8, tile = [1]>} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  return %y, %z : tensor<8xf32>, tensor<32xf32>
}
}

// -----

// Workgroup memory for both.
#device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 256, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
#rows = affine_map<(n, i) -> (n, i)>
#row = affine_map<(n, i) -> (n)>
#vector = affine_map<(o, k) -> (k)>
#matrix = affine_map<(o, k) -> (o, k)>
#result = affine_map<(o, k) -> (o)>
module attributes {kas_gpu.device = #device} {
func.func @memory(%x: tensor<32x4xf32>, %w: tensor<8x32xf32>, %z: tensor<32xf32>, %z8: tensor<8xf32>) -> (tensor<8xf32>, tensor<32xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<32x4xf32>) outs(%f : tensor<32xf32>) attrs = {kas_gpu.prologue} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  %g = linalg.fill ins(%zero : f32) outs(%z8 : tensor<8xf32>) -> tensor<8xf32>
  // expected-error@below {{expected at most 256 bytes of workgroup memory for the device 'small', got 384 with those of kas_gpu.prologue}}
  %y = linalg.generic {indexing_maps = [#vector, #matrix, #result], iterator_types = ["parallel", "reduction"]}
      ins(%sum, %w : tensor<32xf32>, tensor<8x32xf32>) outs(%g : tensor<8xf32>)
      attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 64, tile = [1], depth = 4>} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  return %y, %z : tensor<8xf32>, tensor<32xf32>
}
}

// -----

// A result that is needed elsewhere.
#device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 256, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
#rows = affine_map<(n, i) -> (n, i)>
#row = affine_map<(n, i) -> (n)>
#vector = affine_map<(o, k) -> (k)>
#matrix = affine_map<(o, k) -> (o, k)>
#result = affine_map<(o, k) -> (o)>
module attributes {kas_gpu.device = #device} {
func.func @returned(%x: tensor<32x4xf32>, %w: tensor<8x32xf32>, %z: tensor<32xf32>, %z8: tensor<8xf32>) -> (tensor<8xf32>, tensor<32xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<32xf32>) -> tensor<32xf32>
  // expected-error@below {{expected kas_gpu.prologue on a reduction that one contraction with a schedule alone reads, got another operation}}
  %sum = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<32x4xf32>) outs(%f : tensor<32xf32>) attrs = {kas_gpu.prologue} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  %g = linalg.fill ins(%zero : f32) outs(%z8 : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#vector, #matrix, #result], iterator_types = ["parallel", "reduction"]}
      ins(%sum, %w : tensor<32xf32>, tensor<8x32xf32>) outs(%g : tensor<8xf32>)
      attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 8, tile = [1], depth = 4>} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  return %y, %sum : tensor<8xf32>, tensor<32xf32>
}
}

// -----

// No number of steps that threads can share.
#device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 256, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
#rows = affine_map<(n, i) -> (n, i)>
#row = affine_map<(n, i) -> (n)>
#vector = affine_map<(o, k) -> (k)>
#matrix = affine_map<(o, k) -> (o, k)>
#result = affine_map<(o, k) -> (o)>
module attributes {kas_gpu.device = #device} {
func.func @steps(%x: tensor<32x4xf32>, %w: tensor<8x32xf32>, %z: tensor<32xf32>, %z8: tensor<8xf32>) -> (tensor<8xf32>, tensor<32xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<32x4xf32>) outs(%f : tensor<32xf32>) attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 8, tile = [1]>} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  %g = linalg.fill ins(%zero : f32) outs(%z8 : tensor<8xf32>) -> tensor<8xf32>
  // expected-error@below {{expected a sum whose size 64 of depth divides for a direct kernel, got none}}
  %y = linalg.generic {indexing_maps = [#vector, #matrix, #result], iterator_types = ["parallel", "reduction"]}
      ins(%sum, %w : tensor<32xf32>, tensor<8x32xf32>) outs(%g : tensor<8xf32>)
      attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 64, tile = [1], depth = 64>} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  return %y, %z : tensor<8xf32>, tensor<32xf32>
}
}

// -----

// Threads share the steps of contractions alone.
#device = #kas_gpu.device<name = "small", processors = 1, max_threads = 64, shared_bytes = 256, max_blocks = 64,
  max_bytes = 65536, processor_threads = 64, processor_shared_bytes = 1024, registers = 1024, thread_registers = 64,
  subgroup = 32>
#rows = affine_map<(n, i) -> (n, i)>
#row = affine_map<(n, i) -> (n)>
#vector = affine_map<(o, k) -> (k)>
#matrix = affine_map<(o, k) -> (o, k)>
#result = affine_map<(o, k) -> (o)>
module attributes {kas_gpu.device = #device} {
func.func @loops(%x: tensor<32x4xf32>, %w: tensor<8x32xf32>, %z: tensor<32xf32>, %z8: tensor<8xf32>) -> (tensor<8xf32>, tensor<32xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<32xf32>) -> tensor<32xf32>
  // expected-error@below {{expected a direct kernel with a tile of 1 entries of 1, the last one at most 1, for an operation that is no contraction, got #kas_gpu.schedule<strategy = direct, threads = 8, tile = [1], depth = 4>}}
  %sum = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<32x4xf32>) outs(%f : tensor<32xf32>) attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 8, tile = [1], depth = 4>} {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  %g = linalg.fill ins(%zero : f32) outs(%z8 : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#vector, #matrix, #result], iterator_types = ["parallel", "reduction"]}
      ins(%sum, %w : tensor<32xf32>, tensor<8x32xf32>) outs(%g : tensor<8xf32>)
      attrs = {kas_gpu.schedule = #kas_gpu.schedule<strategy = direct, threads = 8, tile = [1], depth = 4>} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  return %y, %z : tensor<8xf32>, tensor<32xf32>
}
}
