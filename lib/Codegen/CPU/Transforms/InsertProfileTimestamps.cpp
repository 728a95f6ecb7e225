//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets a function on buffers call a clock after each of its loop nests. The
// calls are between top-level operations, outside of parallel loops: as many as
// there are nests, and nothing changes inside of these
// (docs/guide/profiling.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Codegen/CPU/Profile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASINSERTPROFILETIMESTAMPSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// What takes time. A fill belongs to what follows it, as in
/// `-kas-outline-kernels`.
static bool endsStep(Operation *op) {
  // `-kas-outline-kernels` moves it to the function of the loop nest after it.
  if (isa<linalg::FillOp>(op))
    return false;
  return isa<linalg::LinalgOp, LoopLikeOpInterface, CallOpInterface,
             memref::CopyOp>(op) ||
         // Such as an `scf.if` with loops.
         (op->getNumRegions() > 0 && !isMemoryEffectFree(op));
}

/// 0 where the shape or the element has no known size.
static int64_t getBytes(MemRefType type) {
  if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return 0;
  int64_t bits = type.getElementTypeBitWidth();
  return type.getNumElements() * llvm::divideCeil(bits, 8);
}

/// The bytes of the buffers and views that `op` uses.
static int64_t countBytes(Operation *op) {
  // Each buffer once, however often it is read: what has to come from memory at
  // least.
  SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  int64_t bytes = 0;
  for (Value value : used)
    if (auto type = dyn_cast<MemRefType>(value.getType()))
      bytes += getBytes(type);
  return bytes;
}

/// The numbers of the model's operations (`labelOperations`) that are in the
/// locations of `ops` and of all in their regions, ascending.
static SmallVector<unsigned> collectLabels(ArrayRef<Operation *> ops) {
  // Locations repeat within a nest, and each is a tree that must be walked.
  llvm::SetVector<Location> locations;
  for (Operation *op : ops)
    op->walk([&](Operation *inner) { locations.insert(inner->getLoc()); });
  SmallVector<unsigned> labels;
  for (Location location : locations)
    llvm::append_range(labels, getLabels(location));
  llvm::sort(labels);
  labels.erase(llvm::unique(labels), labels.end());
  return labels;
}

/// The clock's declaration, made once per module.
static func::FuncOp declareTimestamp(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<func::FuncOp>(profileTimestampName))
    return known;
  OpBuilder builder(function);
  auto timestamp =
      func::FuncOp::create(builder, function.getLoc(), profileTimestampName,
                           builder.getFunctionType({builder.getI64Type()}, {}));
  timestamp.setPrivate();
  return timestamp;
}

SmallVector<ProfileStep>
kas::codegen::insertProfileTimestamps(func::FuncOp function) {
  SmallVector<ProfileStep> steps;
  // After control flow was lowered there is no order of steps to number.
  if (!function.getBody().hasOneBlock())
    return steps;
  func::FuncOp timestamp = declareTimestamp(function);
  Block &body = function.front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  auto insertTimestamp = [&](int64_t number) {
    Value step = arith::ConstantOp::create(builder, function.getLoc(),
                                           builder.getI64IntegerAttr(number));
    func::CallOp::create(builder, function.getLoc(), timestamp, step);
  };
  // What belongs to the step that is not finished: fills, then the loop nest.
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
    if (isa<linalg::FillOp>(op) || endsStep(&op))
      ops.push_back(&op);
    if (!endsStep(&op))
      continue;
    builder.setInsertionPointAfter(&op);
    insertTimestamp(steps.size());
    steps.push_back({op.getName().getStringRef().str(), collectLabels(ops),
                     countBytes(&op)});
    ops.clear();
  }
  // Last, so that the traversal above does not meet it.
  builder.setInsertionPointToStart(&body);
  insertTimestamp(-1);
  return steps;
}

namespace {
struct InsertProfileTimestamps
    : kas::codegen::impl::KasInsertProfileTimestampsPassBase<
          InsertProfileTimestamps> {
  void runOnOperation() override {
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (function.isPublic())
        insertProfileTimestamps(function);
  }
};
} // namespace
