//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Serial loops for functions that several threads call at once: parts of a
// batch (`kas_cpu.serial`, set by `-kas-split-batch` and
// `-kas-batch-versions`). Most passes plan for one thread there
// (`getNumThreads`); the parallel loops that others make are undone here.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/PatternMatch.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASSERIALIZELOOPSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace mlir;

namespace {

struct SerializeLoops
    : kas::codegen::impl::KasSerializeLoopsPassBase<SerializeLoops> {
  using KasSerializeLoopsPassBase::KasSerializeLoopsPassBase;

  void runOnOperation() override {
    if (!getOperation()->hasAttr(KasCPUDialect::serialName))
      return;
    // Collected first: the rewriter erases what a traversal would go on from.
    SmallVector<scf::ParallelOp> loops;
    getOperation().walk([&](scf::ParallelOp op) { loops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (scf::ParallelOp op : loops)
      if (failed(scf::parallelForToNestedFors(rewriter, op))) {
        op.emitError("cannot be lowered to serial loops");
        return signalPassFailure();
      }
  }
};

} // namespace
