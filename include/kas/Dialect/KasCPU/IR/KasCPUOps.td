//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of narrow elements, before the target decides by which
// instructions.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KASCPU_IR_KASCPUOPS_TD
#define KAS_DIALECT_KASCPU_IR_KASCPUOPS_TD

include "kas/Dialect/KasCPU/IR/KasCPUAttrs.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"

class KasCPU_Op<string mnemonic, list<Trait> traits = []>
    : Op<KasCPU_Dialect, mnemonic, traits>;

def KasCPU_DotOp : KasCPU_Op<"dot", [Pure,
    AllTypesMatch<["lhs", "rhs"]>, AllTypesMatch<["sum", "result"]>]> {
  let summary = "add products of narrow elements to each lane of a sum";
  let description = [{
    Of bytes: lane `i` of the result is `sum[i]` plus the sum over `j` from 0 to 3 of `lhs[4 i + j] * rhs[4 i + j]`,
    modulo 2^32. The bytes of `lhs` are unsigned, those of `rhs` signed. Of i16, all signed, the same with two for each lane.

    Of bf16: lane `i` is `(sum[i] + lhs[2 i + 1] * rhs[2 i + 1]) + lhs[2 i] * rhs[2 i]`. The products are exact, each sum
    is rounded to the nearest f32, or to odd where the target does so. Subnormal numbers may count as zero.

    ```mlir
    %next = kas_cpu.dot %data, %weights, %sum : vector<64xi8>, vector<16xi32>
    %other = kas_cpu.dot %x, %w, %total : vector<32xbf16>, vector<16xf32>
    ```

    Constraints:
    - D1: as many elements as the lanes of the sum have bits for: four bytes, two i16 or two bf16 for each.
    - D2: the sum of i8 and of i16 is of i32, that of bf16 of f32.

    `-kas-lower-dot-products` makes one instruction of it where the target has one. Sources: Intel's Software Developer's
    Manual, volume 2, `VPDPBUSD`, `VPMADDWD`, `VDPBF16PS`; Arm's Architecture Reference Manual, `USDOT`, `BFDOT`.
  }];
  let arguments = (ins
    VectorOfRankAndType<[1], [I8, I16, BF16]>:$lhs, VectorOfRankAndType<[1], [I8, I16, BF16]>:$rhs,
    VectorOfRankAndType<[1], [I32, F32]>:$sum);
  let results = (outs VectorOfRankAndType<[1], [I32, F32]>:$result);
  let assemblyFormat =
      "$lhs `,` $rhs `,` $sum attr-dict `:` type($lhs) `,` type($sum)";
  let hasVerifier = 1;
}

def KasCPU_ViewVNNIGroupsOp : KasCPU_Op<"view_vnni_groups", [Pure, ViewLikeOpInterface]> {
  let summary = "a buffer of bf16 or i16, two of which are one VNNI group";
  let description = [{
    Element `i` of the result has the bits of elements `2 i` and `2 i + 1` of the source, which is at a multiple of four
    bytes. Groups have the type of sums, f32 or i32, but are only moved and taken apart (`memref.view` is for bytes).

    ```mlir
    %groups = kas_cpu.view_vnni_groups %elements : memref<128xbf16> to memref<64xf32>
    ```

    Constraints:
    - D3: the sizes are known, that of the source is twice that of the result, and the layouts are the identity.
    - D4: groups of bf16 are f32, those of i16 i32.
  }];
  let arguments = (ins MemRefRankOf<[BF16, I16], [1]>:$source);
  let results = (outs MemRefRankOf<[F32, I32], [1]>:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let extraClassDeclaration = [{
    ::mlir::Value getViewSource() { return getSource(); }
    ::mlir::Value getViewDest() { return getResult(); }
  }];
  let hasVerifier = 1;
}

#endif // KAS_DIALECT_KASCPU_IR_KASCPUOPS_TD
