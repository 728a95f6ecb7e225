//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes that compute a batch in parts, and batches of any size.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_CPU_BATCHPASSES_TD
#define KAS_CODEGEN_CPU_BATCHPASSES_TD

include "kas/Codegen/CPU/ContractionPasses.td"
include "mlir/Pass/PassBase.td"

def KasBatchInnermostPass : Pass<"kas-batch-innermost", "::mlir::ModuleOp"> {
  let summary = "Choose where the samples are in tensors between operators";
  let description = [{
    Input: `kas.apply`s of concrete operators on f32 tensors, such as the stages
    of `-kas-rfactor`, that compute one by one the samples of their first
    dimension, the first of them on lists of channels. Where groups of channels
    have weights of their own, few of them fit a vector, but many samples do. So
    in a chain of such operators each tensor gets the samples in its first or its
    last dimension, such that all take the least time by the cost model of
    `-kas-pack-operators`. The first and the last tensor of the chain keep their
    layout: others are made by `linalg.transpose`, whose time counts.

    ```mlir
    kas.operator private @blocks(%n: 64, %c: 16, %r: 8) from [64, 16, 32] {
      %k = kas.reduce sum : 32
      %k_d, %k_w = kas.share %k : 32
      %c_d, %c_w = kas.share %c : 16
      kas.yield data(%n, %c_d, %k_d) weight(%c_w, %r, %k_w)
    }
    // gets another form, if that is faster:
    kas.operator private @blocks_batch_innermost(%c: 16, %r: 8, %n: 64) from [16, 32, 64]
    ```

    Example: `test/Codegen/CPU/batch-innermost.mlir`.
  }];
  let options = KasPipelines_ContractionOptions;
  let statistics = [
    Statistic<"numChains", "chains", "chains of operators with the batch innermost">
  ];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect", "::kas::KasDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def KasSplitBatchPass : Pass<"kas-split-batch", "::mlir::ModuleOp"> {
  let summary = "Let networks compute parts of a batch, one after the other";
  let description = [{
    A public function whose first argument is a batch, whose others are weights,
    and which computes samples one by one (`-kas-check-samples`) becomes one for
    a part of the batch, with the attribute `kas_cpu.batch_parts`, from which
    `-kas-loop-over-batch` makes the loop. All layers of a part are computed
    before the next part, so that tensors between them remain in the cache, and
    threads share the parts, not the layers of each.

    The part is `size` samples. With 0, it is chosen by the time that arithmetic
    takes, and bytes that come from beyond the second-level cache: tensors that
    do not fit, and weights that are read again for each part. Where that gains
    less than 3 % the function stays as it is, as does one with a schedule
    (`kas_cpu.schedule`), which was chosen for the whole batch. There are at most
    4 096 parts.

    ```mlir
    func.func @forward(%x: tensor<16x48x8x8xf32>, %w: tensor<48x3x3xf32>)
        -> tensor<16x48xf32>
    // becomes
    func.func @forward(%x: tensor<4x48x8x8xf32>, %w: tensor<48x3x3xf32>)
        -> tensor<4x48xf32> attributes {
      kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 4, bytes = [49152, 0, 768]>,
      kas_cpu.serial}
    ```

    Example: `test/Codegen/CPU/split-batch.mlir`.
  }];
  let options = [
    Option<"size", "size", "int64_t", /*default=*/"0",
           "Samples of a part; 0: by the cost model">,
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the parts; 0: unknown">
  ];
  let statistics = [
    Statistic<"numSplit", "split", "functions that compute parts">
  ];
  let dependentDialects = [
    "::kas::KasCPUDialect", "::kas::KasDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def KasBatchVersionsPass : Pass<"kas-batch-versions", "::mlir::ModuleOp"> {
  let summary = "Make versions of networks for batches of any size";
  let description = [{
    Each public function, whose first argument is a batch, whose others are weights,
    and which computes samples one by one (`-kas-check-samples`, else an error),
    becomes one to three functions for parts of a batch, with the attribute
    `kas_cpu.batch_version`, from which `-kas-dispatch-batch` makes one for batches
    of any size. They are those that `-kas-split-batch` chooses for the batch that
    the function has, for one of 8 samples, and for one sample, so that these sizes
    are as fast as functions for them alone. A batch has 2 to 4 096 samples here.

    ```mlir
    func.func @forward(%x: tensor<64x48x8x8xf32>, %w: tensor<48x3x3xf32>)
        -> tensor<64x48xf32>
    // becomes, beside @forward_batch1,
    func.func @forward_batch4(%x: tensor<4x48x8x8xf32>, %w: tensor<48x3x3xf32>)
        -> tensor<4x48xf32> attributes {
      kas_cpu.batch_version = #kas_cpu.batch_version<of = "forward", samples = 4,
        most = 64, cycles = 12000, bytes = [49152, 0, 768]>,
      kas_cpu.serial}
    ```

    Example: `test/Codegen/CPU/batch-versions.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the parts; 0: unknown">
  ];
  let statistics = [
    Statistic<"numFunctions", "functions", "functions with versions">
  ];
  let dependentDialects = [
    "::kas::KasCPUDialect", "::kas::KasDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def KasLoopOverBatchPass : Pass<"kas-loop-over-batch", "::mlir::ModuleOp"> {
  let summary = "Call functions that compute parts of a batch for all of it";
  let description = [{
    Input: functions of the LLVM dialect on plain pointers. One with the
    attribute `kas_cpu.batch_parts` becomes an internal one, `@NAME_part`, and
    `@NAME` calls it for each part, in a loop of the OpenMP dialect where threads
    share the parts. Where parts return messages of assertions, `@NAME` returns
    the first one, in the order of the parts.

    ```mlir
    llvm.func @f(%x: !llvm.ptr, %y: !llvm.ptr) attributes {
      kas_cpu.batch_parts = #kas_cpu.batch_parts<count = 4, bytes = [64, 8]>}
    ```

    Example: `test/Codegen/CPU/loop-over-batch.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the parts; 1: a serial loop, 0: unknown">
  ];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::omp::OpenMPDialect"
  ];
}

def KasDispatchBatchPass : Pass<"kas-dispatch-batch", "::mlir::ModuleOp"> {
  let summary = "Call versions for parts of a batch of any size";
  let description = [{
    Input: functions of the LLVM dialect on plain pointers. Those with the attribute
    `kas_cpu.batch_version` become internal, and the function that they are versions
    of calls them, with the number of samples as its last argument. Which ones is
    read from a table: the calls that take the least time together, by the cost
    model. Threads share the parts of serial versions. Where parts return messages
    of assertions, the first one is returned, as is one for a negative number of
    samples. With prepacked weights there are functions `@NAME_prepack` and
    `@NAME_prepacked_elements` for all versions together.

    ```mlir
    llvm.func @f_batch1(%x: !llvm.ptr, %y: !llvm.ptr) attributes {
      kas_cpu.batch_version = #kas_cpu.batch_version<of = "f", samples = 1, most = 64,
        cycles = 100, bytes = [64, 8]>}
    // gets a caller
    llvm.func @f(%x: !llvm.ptr, %y: !llvm.ptr, %samples: i64) -> !llvm.ptr
    ```

    Example: `test/Codegen/CPU/dispatch-batch.mlir`.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "Threads to share the parts; 1: a serial loop, 0: unknown">
  ];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::omp::OpenMPDialect"
  ];
}

#endif // KAS_CODEGEN_CPU_BATCHPASSES_TD
