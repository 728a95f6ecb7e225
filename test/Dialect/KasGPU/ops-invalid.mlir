// RUN: kas-opt %s -split-input-file -verify-diagnostics

#s = #gpu.address_space<workgroup>
func.func @e1(%b: memref<2xi64, #s>, %i: index) {
  // E1
  // expected-error@below {{expected 1 to 1048575 bytes, got 1048576}}
  kas_gpu.expect_bytes %b[%i], 1048576 : memref<2xi64, #s>
  return
}

// -----

// T1
// expected-error@below {{expected 1 to 5 sizes of a tensor map, got 6}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 8, 8, 8, 8, 8], strides = [8, 64, 512, 4096, 32768], box = [8, 1, 1, 1, 1, 1]>} {}

// -----

// T1
// expected-error@below {{expected 1 strides of a tensor map, got 0}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 8], box = [8, 8]>} {}

// -----

// T1
// expected-error@below {{expected 2 entries of box of a tensor map, got 1}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 8], strides = [8], box = [8]>} {}

// -----

// T2
// expected-error@below {{expected sizes of a tensor map of 1 to 2^32, got 0}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 0], strides = [8], box = [8, 8]>} {}

// -----

// T3
// expected-error@below {{expected strides of a tensor map of at least 8 that are multiples of 1, got 4}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 8], strides = [4], box = [8, 8]>} {}

// -----

// T3
// expected-error@below {{expected strides of a tensor map of at least 16 that are multiples of 8, got 20}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 2, 2], strides = [8, 20], box = [8, 2, 1]>} {}

// -----

// T3: the least stride is 2^71, far above what 64 bits hold
// expected-error@below {{expected strides of a tensor map of at least 1099511627776 that are multiples of 549755813888, got 8}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 4294967296, 2], strides = [549755813888, 8], box = [8, 1, 1]>} {}

// -----

// T5
// expected-error@below {{expected strides of a tensor map of less than 2^40, got 1099511627776}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 8], strides = [1099511627776], box = [8, 8]>} {}

// -----

// T5
// expected-error@below {{expected strides of a tensor map of less than 2^40, got 9223372036854775807}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 2], strides = [9223372036854775807], box = [8, 1]>} {}

// -----

// T6
// expected-error@below {{expected offsets of a tensor map of less than 2^63, got sizes 8, 4294967296 with strides 549755813888}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 4294967296], strides = [549755813888], box = [8, 1]>} {}

// -----

// T4
// expected-error@below {{expected entries of box of a tensor map of 1 to 256, got 257}}
module attributes {test.map = #kas_gpu.tensor_map<sizes = [8, 512], strides = [8], box = [8, 257]>} {}

// -----

#s = #gpu.address_space<workgroup>
func.func @copy(%x: memref<4096xf16>, %m: memref<8192xf16, #s>, %b: memref<2xi64, #s>, %i: index) {
  // K1
  // expected-error@below {{expected 2 coordinates, got 1}}
  kas_gpu.tensor_copy %x[%i] to %m[%i], %b[%i] {map = #kas_gpu.tensor_map<sizes = [64, 64], strides = [64], box = [64, 64]>}
    : memref<4096xf16>, memref<8192xf16, #s>, memref<2xi64, #s>
  return
}

// -----

#s = #gpu.address_space<workgroup>
func.func @copy(%x: memref<4096xf16>, %m: memref<8192xf16, #s>, %b: memref<2xi64, #s>, %i: index) {
  // K2
  // expected-error@below {{expected 128 bytes of the innermost dimension in the box, got 64}}
  kas_gpu.tensor_copy %x[%i, %i] to %m[%i], %b[%i] {map = #kas_gpu.tensor_map<sizes = [64, 64], strides = [64], box = [32, 64]>}
    : memref<4096xf16>, memref<8192xf16, #s>, memref<2xi64, #s>
  return
}

// -----

#s = #gpu.address_space<workgroup>
func.func @copy(%x: memref<4096xf16>, %m: memref<8192xf16, #s>, %b: memref<2xi64, #s>, %i: index) {
  // K3
  // expected-error@below {{expected strides that are multiples of 16 bytes and less than 2^40, got 120}}
  kas_gpu.tensor_copy %x[%i, %i] to %m[%i], %b[%i] {map = #kas_gpu.tensor_map<sizes = [60, 64], strides = [60], box = [64, 64]>}
    : memref<4096xf16>, memref<8192xf16, #s>, memref<2xi64, #s>
  return
}

// -----

#s = #gpu.address_space<workgroup>
func.func @copy(%x: memref<4096xf16>, %m: memref<8192xf16, #s>, %b: memref<2xi64, #s>, %i: index) {
  // K4
  // expected-error@below {{expected a tensor inside of the buffer of 4096 elements, got one of 4160}}
  kas_gpu.tensor_copy %x[%i, %i] to %m[%i], %b[%i] {map = #kas_gpu.tensor_map<sizes = [64, 65], strides = [64], box = [64, 64]>}
    : memref<4096xf16>, memref<8192xf16, #s>, memref<2xi64, #s>
  return
}

// -----

#s = #gpu.address_space<workgroup>
func.func @copy(%x: memref<4096xf16>, %m: memref<8192xbf16, #s>, %b: memref<2xi64, #s>, %i: index) {
  // K5
  // expected-error@below {{expected memory of 'f16', got 'bf16'}}
  kas_gpu.tensor_copy %x[%i, %i] to %m[%i], %b[%i] {map = #kas_gpu.tensor_map<sizes = [64, 64], strides = [64], box = [64, 64]>}
    : memref<4096xf16>, memref<8192xbf16, #s>, memref<2xi64, #s>
  return
}

// -----

#s = #gpu.address_space<workgroup>
func.func @m1(%m: memref<8192xf16, #s>, %i: index) -> i64 {
  // M1
  // expected-error@below {{expected distances that are multiples of 16 bytes and less than 2^18, got 1000}}
  %d = kas_gpu.matrix_descriptor %m[%i], leading = 16, stride = 1000 : memref<8192xf16, #s>
  return %d : i64
}

// -----

#s = #gpu.address_space<workgroup>
func.func @w1(%d: i64, %m: memref<8192xf16, #s>, %sums: vector<33x2x2xf32>) {
  // W1
  // expected-error@below {{expected sums of at most 32 by 2 by 2 numbers, got 'vector<33x2x2xf32>'}}
  %next = kas_gpu.warpgroup_mma %d of %m, %d of %m, %sums : memref<8192xf16, #s>, memref<8192xf16, #s>, vector<33x2x2xf32>
  return
}

// -----

#s = #gpu.address_space<workgroup>
func.func @w2(%d: i64, %m: memref<8192xf16, #s>, %n: memref<8192xbf16, #s>, %sums: vector<8x2x2xf32>) {
  // W2
  // expected-error@below {{expected columns of 'f16', got 'bf16'}}
  %next = kas_gpu.warpgroup_mma %d of %m, %d of %n, %sums : memref<8192xf16, #s>, memref<8192xbf16, #s>, vector<8x2x2xf32>
  return
}

// -----

func.func @g1(%sums: vector<8x2x2xf32>) {
  // G1
  // expected-error@below {{expected 0 to 7 groups, got 8}}
  %done = kas_gpu.warpgroup_wait 8, %sums : vector<8x2x2xf32>
  return
}

// -----

func.func @store_matrix_f1(%values: vector<3x2xf16>, %memory: memref<256xf16, #gpu.address_space<workgroup>>, %i: index) {
  // F1
  // expected-error@+1 {{expected fragments of 1, 2 or 4 by 2 numbers of 'f16', got 'vector<3x2xf16>'}}
  kas_gpu.store_matrix %values to %memory[%i] : vector<3x2xf16>, memref<256xf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @store_matrix_f1_type(%values: vector<2x2xbf16>, %memory: memref<256xf16, #gpu.address_space<workgroup>>, %i: index) {
  // F1
  // expected-error@+1 {{expected fragments of 1, 2 or 4 by 2 numbers of 'f16', got 'vector<2x2xbf16>'}}
  kas_gpu.store_matrix %values to %memory[%i] : vector<2x2xbf16>, memref<256xf16, #gpu.address_space<workgroup>>
  return
}
