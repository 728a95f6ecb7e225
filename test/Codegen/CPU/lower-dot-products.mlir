// Products of bytes, of i16 and of bf16 become instructions where the target has them for vectors of that size.

// RUN: kas-opt %s -kas-attach-cpu-target="cpu=cascadelake" -kas-lower-dot-products | FileCheck %s --check-prefixes=CHECK,AVX512
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=alderlake" -kas-lower-dot-products | FileCheck %s --check-prefixes=CHECK,AVX
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=haswell" -kas-lower-dot-products | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=sandybridge" -kas-lower-dot-products | FileCheck %s --check-prefixes=CHECK,SSE
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=skylake-avx512" -kas-lower-dot-products | FileCheck %s --check-prefixes=CHECK,BW
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=neoverse-v1" -kas-lower-dot-products | FileCheck %s --check-prefixes=CHECK,ARM
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=cooperlake" -kas-lower-dot-products | FileCheck %s --check-prefixes=CHECK,BF16

// CHECK-LABEL: @wide(
// CHECK-SAME:    %[[A:.*]]: vector<64xi8>, %[[B:.*]]: vector<64xi8>, %[[SUM:.*]]: vector<16xi32>
// AVX512: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%[[SUM]], %[[A]], %[[B]])
// AVX-NOT: call_intrinsic
// BW-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"
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
// NONE: %[[X:.*]] = vector.bitcast %{{.*}} : vector<32xi8> to vector<16xi16>
// NONE: %[[Y:.*]] = vector.bitcast %{{.*}} : vector<32xi8> to vector<16xi16>
// NONE: %[[EVEN:.*]] = arith.andi %[[X]]
// NONE: %[[ODD:.*]] = arith.shrui %[[X]]
// NONE: arith.shli %[[Y]]
// NONE-COUNT-2: arith.shrsi
// NONE: %[[FIRST:.*]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%[[EVEN]], %{{.*}})
// NONE: arith.addi %{{.*}}, %[[FIRST]]
// NONE: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%[[ODD]], %{{.*}})
// SSE-COUNT-4: arith.muli
// ARM-COUNT-4: arith.muli
func.func @middle(%a: vector<32xi8>, %b: vector<32xi8>, %sum: vector<8xi32>) -> vector<8xi32> {
  %r = kas_cpu.dot %a, %b, %sum : vector<32xi8>, vector<8xi32>
  return %r : vector<8xi32>
}

// CHECK-LABEL: @narrow(
// AVX512: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.128"
// AVX: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.128"
// NONE-COUNT-2: llvm.call_intrinsic "llvm.x86.sse2.pmadd.wd"
// SSE-COUNT-2: llvm.call_intrinsic "llvm.x86.sse2.pmadd.wd"
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

// CHECK-LABEL: @shorts(
// CHECK-SAME:    %[[A:.*]]: vector<16xi16>, %[[B:.*]]: vector<16xi16>, %[[SUM:.*]]: vector<8xi32>
// NONE: %[[PRODUCTS:.*]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%[[A]], %[[B]])
// NONE: arith.addi %[[SUM]], %[[PRODUCTS]]
// BW: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%[[A]], %[[B]])
// SSE-COUNT-2: arith.muli
// ARM: %[[LEFT:.*]] = vector.bitcast %[[A]] : vector<16xi16> to vector<8xi32>
// ARM: arith.shli %[[LEFT]]
// ARM: arith.shrsi
// ARM: %[[LOWER:.*]] = arith.muli
// ARM: %[[NEXT:.*]] = arith.addi %[[SUM]], %[[LOWER]]
// ARM: arith.muli
// ARM: arith.addi %[[NEXT]]
func.func @shorts(%a: vector<16xi16>, %b: vector<16xi16>, %sum: vector<8xi32>) -> vector<8xi32> {
  %r = kas_cpu.dot %a, %b, %sum : vector<16xi16>, vector<8xi32>
  return %r : vector<8xi32>
}

// The upper halves of words first.
// CHECK-LABEL: @floats(
// CHECK-SAME:    %[[A:.*]]: vector<32xbf16>, %[[B:.*]]: vector<32xbf16>, %[[SUM:.*]]: vector<16xf32>
// BF16: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%[[SUM]], %[[A]], %[[B]])
// AVX512: %[[X:.*]] = vector.bitcast %[[A]] : vector<32xbf16> to vector<16xi32>
// AVX512: %[[UPPER:.*]] = arith.andi %[[X]]
// AVX512: %[[LEFT:.*]] = vector.bitcast %[[UPPER]] : vector<16xi32> to vector<16xf32>
// AVX512: %[[NEXT:.*]] = vector.fma %[[LEFT]], %{{.*}}, %[[SUM]]
// AVX512: arith.shli
// AVX512: arith.shli
// AVX512: vector.fma %{{.*}}, %{{.*}}, %[[NEXT]]
// ARM-COUNT-2: vector.fma
func.func @floats(%a: vector<32xbf16>, %b: vector<32xbf16>, %sum: vector<16xf32>) -> vector<16xf32> {
  %r = kas_cpu.dot %a, %b, %sum : vector<32xbf16>, vector<16xf32>
  return %r : vector<16xf32>
}

// CHECK-LABEL: @few_floats(
// BF16: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.128"
// ARM: llvm.call_intrinsic "llvm.aarch64.neon.bfdot"
func.func @few_floats(%a: vector<8xbf16>, %b: vector<8xbf16>, %sum: vector<4xf32>) -> vector<4xf32> {
  %r = kas_cpu.dot %a, %b, %sum : vector<8xbf16>, vector<4xf32>
  return %r : vector<4xf32>
}

// CHECK-LABEL: @words(
// CHECK-SAME:    %[[A:.*]]: memref<128xbf16>
// CHECK:       %[[FROM:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<128xbf16> to !llvm.struct
// CHECK:       %[[PTR:.*]] = llvm.extractvalue %[[FROM]][1]
// CHECK:       llvm.insertvalue %[[PTR]], %{{.*}}[1]
// CHECK:       %[[SIZE:.*]] = llvm.mlir.constant(64 : index)
// CHECK:       %[[TO:.*]] = llvm.insertvalue %[[SIZE]], %{{.*}}[3, 0]
// CHECK:       builtin.unrealized_conversion_cast %{{.*}} : !llvm.struct<{{.*}}> to memref<64xf32>
func.func @words(%a: memref<128xbf16>, %i: index) -> f32 {
  %groups = kas_cpu.view_vnni_groups %a : memref<128xbf16> to memref<64xf32>
  %word = memref.load %groups[%i] : memref<64xf32>
  return %word : f32
}
