//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass that lowers contractions on buffers to register tiles, by the
// schedule of the operation or by the cost model, and remarks what prevents it.
// `StridedContraction::match` says what an operation computes,
// `emitContraction` chooses and emits the tiles; here is what lies around the
// operation: the fill before it, its epilogue, and whether its inputs are
// weights. What all passes for contractions share (PackOperations.h) is here,
// too.
//
//===----------------------------------------------------------------------===//

#include "../Emit/EmitContraction.h"
#include "../Strategy/ContractionChoice.h"
#include "../Strategy/MatchContraction.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "kas/Dialect/KasCPU/IR/ModuleTarget.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-pack-contractions"

namespace kas::codegen {
#define GEN_PASS_DEF_KASPACKCONTRACTIONSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The buffer that a view is of.
static Value getViewed(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return buffer;
}

/// Whether what is in a buffer may be made of weights alone: linalg operations
/// that read nothing else write it.
static bool isFromWeights(Value buffer) {
  // A worklist: the buffer, then all that linalg operations make it of.
  SetVector<Value> sources;
  sources.insert(getViewed(buffer));
  for (size_t i = 0; i < sources.size(); ++i) {
    Value source = sources[i];
    if (auto argument = dyn_cast<BlockArgument>(source)) {
      if (isData(argument))
        return false;
      continue;
    }
    if (!source.getDefiningOp<memref::AllocOp>())
      return false;
    // Through views of it, too.
    SmallVector<Value> seen{source};
    while (!seen.empty()) {
      Value buffer = seen.pop_back_val();
      for (Operation *user : buffer.getUsers()) {
        if (isa<ViewLikeOpInterface>(user)) {
          llvm::append_range(seen, user->getResults());
          continue;
        }
        auto linalgOp = dyn_cast<linalg::LinalgOp>(user);
        // A loop or a call may write anything.
        if (!linalgOp && !isa<memref::DeallocOp>(user))
          return false;
        if (!linalgOp || !llvm::is_contained(linalgOp.getDpsInits(), buffer))
          continue;
        for (Value input : linalgOp.getDpsInputs())
          if (isa<BaseMemRefType>(input.getType()))
            sources.insert(getViewed(input));
      }
    }
  }
  return true;
}

/// The operations that read or write `buffer`, also through views; nothing
/// where it is not allocated here, so that there may be others.
static std::optional<SmallVector<Operation *>> findUsers(Value buffer) {
  if (!buffer.getDefiningOp<memref::AllocOp>())
    return std::nullopt;
  SmallVector<Operation *> users;
  SmallVector<Value> names{buffer};
  while (!names.empty())
    for (Operation *user : names.pop_back_val().getUsers()) {
      if (isa<ViewLikeOpInterface>(user))
        llvm::append_range(names, user->getResults());
      else if (llvm::any_of(user->getResultTypes(), llvm::IsaPred<ShapedType>))
        return std::nullopt;
      else
        users.push_back(user);
    }
  return users;
}

/// What fills the output of `op` with zeros before, with nothing in between
/// that reads or writes it, so that the sums can replace it; null if there is
/// none.
static linalg::FillOp findZeros(linalg::LinalgOp op) {
  Value output = op.getDpsInits().front();
  auto users = findUsers(output);
  for (Operation *at = op->getPrevNode(); at; at = at->getPrevNode()) {
    if (auto fill = dyn_cast<linalg::FillOp>(at);
        fill && fill.getOutputs().front() == output)
      // Another value is something that the sums are added to.
      return matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) ||
                     matchPattern(fill.getInputs()[0], m_Zero())
                 ? fill
                 : linalg::FillOp();
    if (isa<memref::AllocOp>(at) || isMemoryEffectFree(at))
      continue;
    // Such as what lays the inputs out.
    if (!users || llvm::any_of(*users, [&](Operation *user) {
          return at->isAncestor(user);
        }))
      return nullptr;
  }
  return nullptr;
}

/// Leaves out the elementwise operation where the best tiles cannot compute it:
/// they may begin with the bias all the same.
static void keepBias(ContractionEpilogue &epilogue,
                     const StridedContraction &contraction,
                     const ContractionOptions &options) {
  if (!epilogue.bias || !epilogue.elementwise)
    return;
  FailureOr<ContractionChoice> choice =
      chooseContraction(contraction, ContractionTarget(options.target), options,
                        [](const Twine &) {});
  if (failed(choice) || choice->takesEpilogue)
    return;
  epilogue.elementwise = nullptr;
  epilogue.inputs.clear();
}

namespace {

struct PackContractions
    : kas::codegen::impl::KasPackContractionsPassBase<PackContractions> {
  using KasPackContractionsPassBase::KasPackContractionsPassBase;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      // What is in a parallel loop already is part of a nest that others have
      // cut.
      if (op.hasPureBufferSemantics() &&
          !op->getParentOfType<scf::ParallelOp>())
        ops.push_back(op);
    });
    ContractionOptions options{getNumThreads(getOperation(), threads),
                               getContractionTarget(getOperation(), vectorBits),
                               /*deallocate=*/true, prepacked};
    options.algorithm = algorithm;
    options.minParallelTime = minParallelTime;
    // Epilogues that were computed with a contraction are among `ops`, too.
    llvm::SmallPtrSet<Operation *, 8> erased;
    for (linalg::LinalgOp op : ops)
      if (!erased.contains(op) && failed(lower(op, options, erased)))
        return signalPassFailure();
  }

  /// Fails for an operation with a schedule that does not suit it.
  static LogicalResult lower(linalg::LinalgOp op, ContractionOptions options,
                             llvm::SmallPtrSetImpl<Operation *> &erased) {
    options.schedule = getSchedule(op);
    auto emitReason = [&](const Twine &reason) {
      // Nobody expects panels of a copy.
      if (op.getNumReductionLoops() > 0)
        remarkNotPacked(op, op->getName().getStringRef(), reason);
    };
    FailureOr<StridedContraction> contraction =
        matchContraction(op, emitReason);
    if (failed(contraction))
      return failure(options.schedule != nullptr);
    // Of scalar inputs it is the estimate that counts: row vectors pack them at
    // each call, or ahead of the calls.
    for (StridedAccess &access : contraction->scalarInputs)
      access.isPrepacked = options.prepacked && isFromWeights(access.buffer);
    for (PackedAccess &access : contraction->vectorInputs)
      access.isPrepacked = options.prepacked && isFromWeights(access.buffer);
    linalg::FillOp zeros = findZeros(op);
    contraction->accumulates = !zeros;
    ContractionEpilogue epilogue = ContractionEpilogue::find(op, *contraction);
    options.epilogue = epilogue ? &epilogue : nullptr;
    keepBias(epilogue, *contraction, options);
    // Before anything is emitted, as tiles write the epilogue's result.
    prepareEpilogue(epilogue, op);
    bool tookEpilogue = false;
    OpBuilder builder(op);
    if (failed(emitContraction(builder, op.getLoc(), *contraction, options,
                               emitReason, &tookEpilogue)))
      return failure(options.schedule != nullptr);
    LDBG() << op.getLoc() << ": packed"
           << (tookEpilogue ? " with its epilogue" : "");
    if (tookEpilogue) {
      erased.insert(epilogue.broadcast);
      erased.insert(epilogue.elementwise);
      eraseEpilogue(epilogue);
    }
    op->erase();
    // The sums replace what the output holds; nobody else reads the zeros.
    if (zeros)
      zeros->erase();
    return success();
  }
};

} // namespace
