//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
// The attribute by which people and tuners say how a contraction is cut.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KASCPU_IR_KASCPUATTRS_TD
#define KAS_DIALECT_KASCPU_IR_KASCPUATTRS_TD

include "kas/Dialect/Kas/IR/ScheduleInterface.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def KasCPU_Dialect : Dialect {
  let name = "kas_cpu";
  let cppNamespace = "::kas";
  let summary = "How operators are compiled for CPUs";
  let description = [{
    Has operations for products of narrow elements. Its attribute `kas_cpu.schedule` is set on `kas.apply` and on
    linalg operations, `kas_cpu.batch_parts`, `kas_cpu.batch_version` and `kas_cpu.serial` on
    functions. `kas_cpu.serial`, a unit attribute, is that of a function in which threads share
    nothing, as several of them call it at once.

    Constraints (those of the other attributes are C3 to C9, below):
    - A1: an operation has no attribute of this dialect but these, a function's argument or result
      none.
    - A2: `kas_cpu.serial` is a unit attribute of a function.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The name of the attribute on operations.
    static constexpr ::llvm::StringLiteral scheduleName = "kas_cpu.schedule",
                                           batchPartsName = "kas_cpu.batch_parts",
                                           batchVersionName = "kas_cpu.batch_version",
                                           serialName = "kas_cpu.serial";

  private:
    void addKasCPUOps();

  public:
  }];
}

def KasCPU_Strategy : I32EnumAttr<"CPUStrategy", "how a contraction reads its data", [
    I32EnumAttrCase<"Panels", 0, "panels">,
    I32EnumAttrCase<"Direct", 1, "direct">,
    I32EnumAttrCase<"RowVectors", 2, "row_vectors">]> {
  let cppNamespace = "::kas";
}

def KasCPU_ScheduleAttr : AttrDef<KasCPU_Dialect, "CPUSchedule",
    [DeclareAttrInterfaceMethods<Kas_ScheduleAttrInterface, ["getLoopFeatures"]>]> {
  let mnemonic = "schedule";
  let summary = "how a contraction is cut into register tiles";
  let description = [{
    The strategy, and the numbers that are not left to the cost model: `rows` times
    `columns` times `vectors` of sums are in registers at once. Columns are lines of
    the image and belong to direct tiles; panels have `tile` columns of the output,
    which must lie together there, and hold `depth` iterations of the outermost
    reduction. Row vectors are `vectors` along the rows times `columns`, which are
    pixels there: a part of a line, or some whole lines.

    ```mlir
    #kas_cpu.schedule<strategy = direct, rows = 8, columns = 3, vectors = 1>
    #kas_cpu.schedule<strategy = panels, rows = 6, vectors = 4, tile = 112, depth = 64>
    #kas_cpu.schedule<strategy = row_vectors, columns = 14, vectors = 2>
    ```

    Constraints:
    - C1: no number is negative; 0 is as good as none.
    - C2: only panels have a `tile` and a `depth`, panels no `columns`, row vectors
      no `rows`.
    - C3: the attribute `kas_cpu.schedule` of an operation is of this kind.
    - C4: it is on a `kas.apply` or a linalg operation.

    A schedule that does not suit the operation or the registers of the target is an
    error of `-kas-pack-operators` and `-kas-pack-contractions`.
  }];
  let parameters = (ins
    EnumParameter<KasCPU_Strategy>:$strategy,
    DefaultValuedParameter<"int64_t", "0">:$rows,
    DefaultValuedParameter<"int64_t", "0">:$columns,
    DefaultValuedParameter<"int64_t", "0">:$vectors,
    DefaultValuedParameter<"int64_t", "0">:$tile,
    DefaultValuedParameter<"int64_t", "0">:$depth);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def KasCPU_BatchPartsAttr : AttrDef<KasCPU_Dialect, "BatchParts"> {
  let mnemonic = "batch_parts";
  let summary = "a function computes one of several equal parts of a batch";
  let description = [{
    The function is to be called once for each of `count` parts. `bytes` has the
    size of a part of each pointer that it takes, 0 for those that all parts
    share; what it takes after these is shared, too. Set by `-kas-split-batch`,
    read by `-kas-loop-over-batch`.

    ```mlir
    #kas_cpu.batch_parts<count = 4, bytes = [16384, 0, 160]>
    ```

    Constraints:
    - C5: there are at least two parts, and no size is negative.
    - C6: the attribute `kas_cpu.batch_parts` of an operation is of this kind.
    - C7: it is on a function.
  }];
  let parameters = (ins "int64_t":$count, ArrayRefParameter<"int64_t">:$bytes);
  let assemblyFormat = "`<` `count` `=` $count `,` `bytes` `=` `[` $bytes `]` `>`";
  let genVerifyDecl = 1;
}

def KasCPU_BatchVersionAttr : AttrDef<KasCPU_Dialect, "BatchVersion"> {
  let mnemonic = "batch_version";
  let summary = "a function is one of several for parts of a batch of any size";
  let description = [{
    The function computes `samples` samples of a batch for the function `of`, whose
    batch may have any size. `bytes` has the size of so many samples for each
    pointer that it takes, 0 for weights; what it takes after these are packed
    weights. It takes about `cycles`, of one thread where it is serial. At most
    `most` samples are divided among versions at once. Set by
    `-kas-batch-versions`, read by `-kas-dispatch-batch`.

    ```mlir
    #kas_cpu.batch_version<of = "forward", samples = 8, most = 64, cycles = 9000, bytes = [16384, 0, 160]>
    ```

    Constraints:
    - C8: there is at least one sample, `most` is at least that and at most 65 536,
      and no other number is negative.
    - C9: the attribute `kas_cpu.batch_version` of an operation is of this kind, and
      on a function without `kas_cpu.batch_parts`.
  }];
  let parameters = (ins StringRefParameter<>:$of, "int64_t":$samples,
    "int64_t":$most, "int64_t":$cycles, ArrayRefParameter<"int64_t">:$bytes);
  let assemblyFormat = [{`<` `of` `=` $of `,` `samples` `=` $samples `,` `most` `=` $most `,`
    `cycles` `=` $cycles `,` `bytes` `=` `[` $bytes `]` `>`}];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Of `most`: a plan has an entry for each number of samples up to it.
    static constexpr int64_t mostSamples = 65536;
  }];
}

#endif // KAS_DIALECT_KASCPU_IR_KASCPUATTRS_TD
