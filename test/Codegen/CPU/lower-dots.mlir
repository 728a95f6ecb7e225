// Products of bytes become instructions where the target has them for vectors of that size.

// RUN: kas-opt %s -kas-attach-cpu-target="cpu=cascadelake" -kas-lower-dots | FileCheck %s --check-prefixes=CHECK,AVX512
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=alderlake" -kas-lower-dots | FileCheck %s --check-prefixes=CHECK,AVX
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=haswell" -kas-lower-dots | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=neoverse-v1" -kas-lower-dots | FileCheck %s --check-prefixes=CHECK,ARM

// CHECK-LABEL: @wide(
// CHECK-SAME:    %[[A:.*]]: vector<64xi8>, %[[B:.*]]: vector<64xi8>, %[[SUM:.*]]: vector<16xi32>
// AVX512: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%[[SUM]], %[[A]], %[[B]])
// AVX-NOT: call_intrinsic
// NONE: %[[X:.*]] = vector.bitcast %[[A]] : vector<64xi8> to vector<16xi32>
// NONE: %[[Y:.*]] = vector.bitcast %[[B]] : vector<64xi8> to vector<16xi32>
// NONE: arith.shrui %[[X]]
// NONE: arith.andi
// NONE: arith.shli %[[Y]]
// NONE: arith.shrsi
// NONE: arith.muli
// NONE: arith.addi %[[SUM]]
func.func @wide(%a: vector<64xi8>, %b: vector<64xi8>, %sum: vector<16xi32>) -> vector<16xi32> {
  %r = kas_cpu.dot %a, %b, %sum : vector<64xi8>, vector<16xi32>
  return %r : vector<16xi32>
}

// CHECK-LABEL: @middle(
// AVX512: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.256"
// AVX: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.256"
// NONE-COUNT-4: arith.muli
// ARM-COUNT-4: arith.muli
func.func @middle(%a: vector<32xi8>, %b: vector<32xi8>, %sum: vector<8xi32>) -> vector<8xi32> {
  %r = kas_cpu.dot %a, %b, %sum : vector<32xi8>, vector<8xi32>
  return %r : vector<8xi32>
}

// CHECK-LABEL: @narrow(
// AVX512: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.128"
// AVX: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.128"
// ARM: llvm.call_intrinsic "llvm.aarch64.neon.usdot"
func.func @narrow(%a: vector<16xi8>, %b: vector<16xi8>, %sum: vector<4xi32>) -> vector<4xi32> {
  %r = kas_cpu.dot %a, %b, %sum : vector<16xi8>, vector<4xi32>
  return %r : vector<4xi32>
}

// No instruction is for two lanes.
// CHECK-LABEL: @two(
// CHECK-COUNT-4: arith.muli
// CHECK-NOT: call_intrinsic
func.func @two(%a: vector<8xi8>, %b: vector<8xi8>, %sum: vector<2xi32>) -> vector<2xi32> {
  %r = kas_cpu.dot %a, %b, %sum : vector<8xi8>, vector<2xi32>
  return %r : vector<2xi32>
}
