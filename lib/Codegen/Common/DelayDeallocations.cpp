//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keeps deallocations out of what becomes one loop nest.
// Buffer deallocation frees a buffer right after its last reader. Example:
//    sum = contraction(x, w); dealloc(x); y = relu(sum)
// The deallocation between the two would keep the emitters from computing the
// rectifier in the epilogue of the contraction.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASDELAYDEALLOCATIONSPASS
#include "kas/Codegen/Common/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;

/// Whether `next` goes on with the output of `op` in the same loops: sums over
/// a bias, or computes something of each sum.
static bool continues(linalg::LinalgOp op, linalg::LinalgOp next) {
  if (op.getNumDpsInits() != 1)
    return false;
  Value output = op.getDpsInits().front();
  if (isa<linalg::BroadcastOp>(op))
    return next.getNumReductionLoops() != 0 &&
           llvm::is_contained(next.getDpsInits(), output);
  if (op.getNumReductionLoops() == 0 || next.getNumReductionLoops() != 0 ||
      !llvm::is_contained(next.getDpsInputs(), output))
    return false;
  // What overwrites another tensor than the sums keeps some tiles from doing
  // it, and these would not begin with the bias either. Sums of integers, which
  // no result replaces, have none.
  return getElementTypeOrSelf(output).isInteger() ||
         llvm::none_of(next.getDpsInits(), [&](Value init) {
           return init != output &&
                  llvm::is_contained(next.getDpsInputs(), init);
         });
}

/// Moves the deallocations right after `op` after what continues with its
/// output, if that follows.
static void delayDeallocations(linalg::LinalgOp op) {
  // Looks ahead past what has no effect on memory that matters, up to the first
  // other operation.
  SmallVector<memref::DeallocOp> deallocations;
  for (Operation *at = op->getNextNode(); at; at = at->getNextNode()) {
    if (auto deallocation = dyn_cast<memref::DeallocOp>(at)) {
      deallocations.push_back(deallocation);
      continue;
    }
    if (isa<memref::AllocOp>(at) || isMemoryEffectFree(at))
      continue;
    auto next = dyn_cast<linalg::LinalgOp>(at);
    if (next && continues(op, next))
      // Reversed, as each is moved to right after `next`: the order stays.
      for (memref::DeallocOp deallocation : llvm::reverse(deallocations))
        deallocation->moveAfter(next);
    return;
  }
}

namespace {
struct DelayDeallocations
    : kas::codegen::impl::KasDelayDeallocationsPassBase<DelayDeallocations> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    // In order: what was moved after a sum moves on after what follows it.
    llvm::for_each(ops, delayDeallocations);
  }
};
} // namespace
