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

class KasCPU_Op<string mnemonic, list<Trait> traits = []>
    : Op<KasCPU_Dialect, mnemonic, traits>;

def KasCPU_DotOp : KasCPU_Op<"dot", [Pure,
    AllTypesMatch<["lhs", "rhs"]>, AllTypesMatch<["sum", "result"]>]> {
  let summary = "add products of four bytes to each lane of a sum";
  let description = [{
    Lane `i` of the result is `sum[i]` plus the sum over `j` from 0 to 3 of `lhs[4 i + j] * rhs[4 i + j]`, modulo
    2^32. The bytes of `lhs` are unsigned, those of `rhs` signed.

    ```mlir
    %next = kas_cpu.dot %data, %weights, %sum : vector<64xi8>, vector<16xi32>
    ```

    Constraints:
    - D1: there are four bytes for each lane of the sum.

    `-kas-lower-dots` makes one instruction of it where the target has one. Sources: Intel's Software Developer's
    Manual, volume 2, `VPDPBUSD`; Arm's Architecture Reference Manual, `USDOT`.
  }];
  let arguments = (ins
    VectorOfRankAndType<[1], [I8]>:$lhs, VectorOfRankAndType<[1], [I8]>:$rhs,
    VectorOfRankAndType<[1], [I32]>:$sum);
  let results = (outs VectorOfRankAndType<[1], [I32]>:$result);
  let assemblyFormat =
      "$lhs `,` $rhs `,` $sum attr-dict `:` type($lhs) `,` type($sum)";
  let hasVerifier = 1;
}

#endif // KAS_DIALECT_KASCPU_IR_KASCPUOPS_TD
