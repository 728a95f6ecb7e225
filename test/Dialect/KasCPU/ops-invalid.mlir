// RUN: kas-opt %s -split-input-file -verify-diagnostics

// D1: three bytes for each lane
func.func @d1_0(%a: vector<48xi8>, %b: vector<48xi8>, %sum: vector<16xi32>) {
  // expected-error@below {{expected 64 elements of 'i8' for 16 lanes of the sum, got 48}}
  %r = kas_cpu.dot %a, %b, %sum : vector<48xi8>, vector<16xi32>
  return
}

// -----

// D1: one bf16 for each lane
func.func @d1_1(%a: vector<16xbf16>, %b: vector<16xbf16>, %sum: vector<16xf32>) {
  // expected-error@below {{expected 32 elements of 'bf16' for 16 lanes of the sum, got 16}}
  %r = kas_cpu.dot %a, %b, %sum : vector<16xbf16>, vector<16xf32>
  return
}

// -----

// D1: four i16 for each lane
func.func @d1_2(%a: vector<64xi16>, %b: vector<64xi16>, %sum: vector<16xi32>) {
  // expected-error@below {{expected 32 elements of 'i16' for 16 lanes of the sum, got 64}}
  %r = kas_cpu.dot %a, %b, %sum : vector<64xi16>, vector<16xi32>
  return
}

// -----

// D2: a sum of f32 for bytes
func.func @d2_0(%a: vector<64xi8>, %b: vector<64xi8>, %sum: vector<16xf32>) {
  // expected-error@below {{expected a sum of i32 for products of 'i8', got 'vector<16xf32>'}}
  %r = kas_cpu.dot %a, %b, %sum : vector<64xi8>, vector<16xf32>
  return
}

// -----

// D2: a sum of i32 for bf16
func.func @d2_1(%a: vector<32xbf16>, %b: vector<32xbf16>, %sum: vector<16xi32>) {
  // expected-error@below {{expected a sum of f32 for products of 'bf16', got 'vector<16xi32>'}}
  %r = kas_cpu.dot %a, %b, %sum : vector<32xbf16>, vector<16xi32>
  return
}

// -----

// D2: a sum of f32 for i16
func.func @d2_2(%a: vector<32xi16>, %b: vector<32xi16>, %sum: vector<16xf32>) {
  // expected-error@below {{expected a sum of i32 for products of 'i16', got 'vector<16xf32>'}}
  %r = kas_cpu.dot %a, %b, %sum : vector<32xi16>, vector<16xf32>
  return
}

// -----

// D3: as many VNNI groups as elements
func.func @d3_0(%a: memref<64xbf16>) {
  // expected-error@below {{expected half as many VNNI groups as elements without holes, got 'memref<64xf32>' of 'memref<64xbf16>'}}
  %r = kas_cpu.view_vnni_groups %a : memref<64xbf16> to memref<64xf32>
  return
}

// -----

// D3: a size that is not known
func.func @d3_1(%a: memref<?xbf16>) {
  // expected-error@below {{expected half as many VNNI groups as elements without holes, got 'memref<64xf32>' of 'memref<?xbf16>'}}
  %r = kas_cpu.view_vnni_groups %a : memref<?xbf16> to memref<64xf32>
  return
}

// -----

// D3: holes
func.func @d3_2(%a: memref<128xbf16, strided<[2]>>) {
  // expected-error@below {{expected half as many VNNI groups as elements without holes}}
  %r = kas_cpu.view_vnni_groups %a : memref<128xbf16, strided<[2]>> to memref<64xf32>
  return
}

// -----

// D4: groups of f32 for i16
func.func @d4_0(%a: memref<128xi16>) {
  // expected-error@below {{expected VNNI groups of i32 for 'i16', got 'f32'}}
  %r = kas_cpu.view_vnni_groups %a : memref<128xi16> to memref<64xf32>
  return
}

// -----

// D4: groups of i32 for bf16
func.func @d4_1(%a: memref<128xbf16>) {
  // expected-error@below {{expected VNNI groups of f32 for 'bf16', got 'i32'}}
  %r = kas_cpu.view_vnni_groups %a : memref<128xbf16> to memref<64xi32>
  return
}
