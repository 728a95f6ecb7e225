//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves what rearranges weights to a function of its own: `@f` becomes `@f`
// with one more argument, all prepacked weights in one buffer of bytes,
// `@f_prepack`, which fills that buffer from the weights and is called once,
// and `@f_prepacked_elements`, which returns its size in f32.
//
// Works on buffers, on top-level operations of a function: a fixed point of
// which buffers hold functions of the weights alone (`Prepacking::collect`).
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASPREPACKWEIGHTSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// Whether anything writes to the buffer or is passed it. Also through views of
/// it. What reads without saying so by its effects is listed; any other
/// operation without effects counts as a write.
bool isWritten(Value buffer) {
  return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
    if (isa<ViewLikeOpInterface>(user))
      return llvm::any_of(user->getResults(), isWritten);
    if (isa<vector::LoadOp, vector::MaskedLoadOp, vector::GatherOp,
            memref::PrefetchOp>(user))
      return false;
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    return !effects ||
           effects.getEffectOnValue<MemoryEffects::Write>(buffer).has_value();
  });
}

/// Results are written.
bool isWeight(BlockArgument argument) {
  return !isData(argument) && !isWritten(argument);
}

/// The buffer that a view is of.
Value getBuffer(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// Whether another value than a view may stand for the buffer: one of several
/// that a condition selects, a result of `scf.if`, what a loop carries.
bool hasAliases(Value buffer) {
  auto isBuffer = [](Value value) {
    return isa<BaseMemRefType>(value.getType());
  };
  return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
    if (isa<ViewLikeOpInterface>(user))
      return llvm::any_of(user->getResults(), hasAliases);
    return llvm::any_of(user->getResults(), isBuffer) ||
           (user->hasTrait<OpTrait::IsTerminator>() &&
            !isa<func::ReturnOp>(user)) ||
           isa<LoopLikeOpInterface>(user);
  });
}

/// The buffers that an operation and those in its regions read and write.
struct Accesses {
  /// Whether all effects are known and on buffers.
  bool areKnown = true;
  SetVector<Value> reads, writes;

  explicit Accesses(Operation *op) {
    op->walk([&](Operation *inner) { add(inner); });
  }

private:
  void add(Operation *op) {
    // A hint for the cache has no effects, but does not say so.
    if (isa<memref::AllocOp, memref::AllocaOp, memref::PrefetchOp>(op))
      return;
    auto interface = dyn_cast<MemoryEffectOpInterface>(op);
    // What is in its regions is looked at.
    if (!interface && op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return;
    // A buffer that a nested operation frees cannot outlive the call.
    if (!interface || isa<memref::DeallocOp>(op))
      return addUnknown(op);
    SmallVector<MemoryEffects::EffectInstance> effects;
    interface.getEffects(effects);
    for (const MemoryEffects::EffectInstance &effect : effects) {
      Value value = effect.getValue();
      if (!value || !isa<MemRefType>(value.getType())) {
        addUnknown(op);
        continue;
      }
      (isa<MemoryEffects::Read>(effect.getEffect()) ? reads : writes)
          .insert(getBuffer(value));
    }
  }

  void addUnknown(Operation *op) {
    areKnown = false;
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType()))
        writes.insert(getBuffer(operand));
  }
};

/// Whether each element of a buffer is some whole bytes.
bool hasWholeBytes(MemRefType type) {
  // Offsets in the buffer of all prepacked weights are in bytes.
  return type.getElementType().isIntOrFloat() &&
         type.getElementTypeBitWidth() % 8 == 0;
}

/// What one function computes from its weights.
class Prepacking {
public:
  explicit Prepacking(func::FuncOp function) : function(function) {}

  /// Finds the operations that depend on weights only, and the buffers that
  /// they fill.
  void collect();

  bool empty() const { return loops.empty(); }

  /// Moves them to `@NAME_prepack` and lets the function take what they fill.
  void move();

private:
  bool dependsOnWeights(Operation *op, const Accesses &accesses);
  bool collectValue(Value value, SetVector<Operation *> &found);
  /// Leaves what some other operation writes to.
  void removeBuffers(const Accesses &accesses) {
    for (Value value : accesses.writes)
      if (Operation *buffer = value.getDefiningOp())
        buffers.remove(buffer);
  }

  func::FuncOp function;
  /// The operations that fill buffers, the buffers, and the other operations
  /// that they need.
  SetVector<Operation *> loops, buffers, others;
  /// The buffers that only those operations read.
  SetVector<Operation *> temporaries;
};

} // namespace

/// Whether `value` can be had from the weights alone; `found` gets what
/// computes it, in order.
bool Prepacking::collectValue(Value value, SetVector<Operation *> &found) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == &function.getBody().front() &&
           isWeight(argument);
  Operation *op = value.getDefiningOp();
  if (isa<memref::AllocOp>(op))
    return buffers.contains(op);
  // Index arithmetic, views and constants.
  if (!isMemoryEffectFree(op) || op->getNumRegions() != 0)
    return false;
  for (Value operand : op->getOperands())
    if (!collectValue(operand, found))
      return false;
  found.insert(op);
  return true;
}

bool Prepacking::dependsOnWeights(Operation *op, const Accesses &accesses) {
  // What it computes is stored elsewhere.
  if (!op->use_empty() || !accesses.areKnown)
    return false;
  SetVector<Value> values;
  getUsedValuesDefinedAbove(op->getRegions(), values);
  values.insert_range(op->getOperands());
  SetVector<Operation *> found;
  return llvm::all_of(values,
                      [&](Value value) { return collectValue(value, found); });
}

void Prepacking::collect() {
  Block &body = function.getBody().front();
  // All that may write or read; first everything counts as made of weights.
  SmallVector<std::pair<Operation *, Accesses>> operations;
  for (Operation &op : body) {
    if (auto buffer = dyn_cast<memref::AllocOp>(op)) {
      MemRefType type = buffer.getType();
      // Who reads and writes it has to be known.
      if (type.hasStaticShape() && hasWholeBytes(type) && !hasAliases(buffer))
        buffers.insert(&op);
    } else if (!isa<memref::DeallocOp>(op) && !isMemoryEffectFree(&op)) {
      operations.emplace_back(&op, Accesses(&op));
    }
  }
  // A result belongs to the caller.
  for (Value result : body.getTerminator()->getOperands())
    if (Operation *buffer = getBuffer(result).getDefiningOp())
      buffers.remove(buffer);
  // A buffer is one of weights until something else writes to it, or reads it
  // before the last of its values is there. The operations that stay in `@f`.
  // Each round can only move operations to it and take buffers away, so that
  // the rounds end.
  SmallVector<std::pair<Operation *, Accesses>> rest;
  for (bool changed = true; changed;) {
    size_t before = operations.size();
    llvm::erase_if(operations, [&](auto &entry) {
      if (dependsOnWeights(entry.first, entry.second))
        return false;
      removeBuffers(entry.second);
      rest.push_back(entry);
      return true;
    });
    changed = operations.size() != before;
    for (const auto &[reader, ofReader] : rest)
      for (const auto &[writer, ofWriter] : operations)
        for (Value value : ofWriter.writes)
          // Moved ahead, the writer would overwrite what the reader needs.
          if (reader->isBeforeInBlock(writer) && ofReader.reads.contains(value))
            changed |= buffers.remove(value.getDefiningOp());
  }
  // The buffers of the operations that move, and the arithmetic that these
  // need.
  SetVector<Operation *> used;
  for (const auto &[op, accesses] : operations) {
    loops.insert(op);
    for (ArrayRef<Value> values :
         {accesses.reads.getArrayRef(), accesses.writes.getArrayRef()})
      for (Value value : values)
        if (Operation *buffer = value.getDefiningOp();
            buffer && buffers.contains(buffer))
          used.insert(buffer);
    SetVector<Value> values;
    getUsedValuesDefinedAbove(op->getRegions(), values);
    values.insert_range(op->getOperands());
    for (Value value : values)
      (void)collectValue(value, others);
  }
  // What other operations do not read is needed while weights are prepacked.
  buffers.clear();
  for (Operation *buffer : used) {
    bool isRead = llvm::any_of(rest, [&](const auto &entry) {
      return entry.second.reads.contains(buffer->getResult(0));
    });
    (isRead ? buffers : temporaries).insert(buffer);
  }
}

void Prepacking::move() {
  // Each buffer begins at a line of the cache.
  int64_t size = 0;
  SmallVector<int64_t> offsets;
  for (Operation *buffer : buffers) {
    offsets.push_back(size);
    MemRefType type = cast<memref::AllocOp>(buffer).getType();
    // Sizes and offsets are in f32, as `@f_prepacked_elements` counts; 16 of
    // them are a cache line of 64 bytes.
    int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    size += llvm::alignTo(llvm::divideCeil(bytes, sizeof(float)), 16);
  }
  MLIRContext *context = function.getContext();
  auto packedType = MemRefType::get({size * int64_t(sizeof(float))},
                                    IntegerType::get(context, 8));
  unsigned last = function.getNumArguments();
  SmallVector<unsigned> weights;
  SmallVector<Type> types;
  for (BlockArgument argument : function.getArguments())
    if (isWeight(argument)) {
      weights.push_back(argument.getArgNumber());
      types.push_back(argument.getType());
    }
  // After all others: callers pass the weights as before.
  (void)function.insertArgument(last, packedType, {}, function.getLoc());

  OpBuilder builder(function);
  types.push_back(packedType);
  std::string name = function.getName().str();
  auto prepare =
      func::FuncOp::create(builder, function.getLoc(), name + "_prepack",
                           builder.getFunctionType(types, {}));
  Block *body = prepare.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping map;
  for (auto [i, weight] : llvm::enumerate(weights))
    map.map(function.getArgument(weight), body->getArgument(i));
  // A view moves the pointer, so that the buffer's own layout stays. The part
  // of `all` that stands for `buffer`.
  auto take = [&](OpBuilder &at, Value all, Operation *buffer, int64_t offset) {
    auto bytes = arith::ConstantIndexOp::create(
        at, buffer->getLoc(), offset * int64_t(sizeof(float)));
    return memref::ViewOp::create(at, buffer->getLoc(),
                                  cast<memref::AllocOp>(buffer).getType(), all,
                                  bytes, ValueRange());
  };
  for (auto [buffer, offset] : llvm::zip_equal(buffers, offsets))
    map.map(
        buffer->getResult(0),
        take(builder, body->getArguments().back(), buffer, offset).getResult());
  for (Operation *buffer : temporaries)
    builder.clone(*buffer, map);
  // In the order of the program.
  Block &block = function.getBody().front();
  for (Operation &op : block)
    if (others.contains(&op) || loops.contains(&op))
      builder.clone(op, map);
  for (Operation *buffer : temporaries)
    memref::DeallocOp::create(builder, buffer->getLoc(),
                              map.lookup(buffer->getResult(0)));
  func::ReturnOp::create(builder, function.getLoc());

  // From here on `@f` loses what `@f_prepack` does.
  for (Operation *loop : loops)
    loop->erase();
  for (Operation *buffer : temporaries) {
    for (Operation *user : llvm::make_early_inc_range(buffer->getUsers()))
      if (isa<memref::DeallocOp>(user))
        user->erase();
    if (buffer->use_empty())
      buffer->erase();
  }
  // The buffers that `@f` reads become views at its begin.
  OpBuilder start = OpBuilder::atBlockBegin(&block);
  for (auto [buffer, offset] : llvm::zip_equal(buffers, offsets)) {
    for (Operation *user : llvm::make_early_inc_range(buffer->getUsers()))
      if (isa<memref::DeallocOp>(user))
        user->erase();
    Value view =
        take(start, function.getArguments().back(), buffer, offset).getResult();
    buffer->getResult(0).replaceAllUsesWith(view);
  }
  // One of them may be where the builder inserts.
  for (Operation *buffer : buffers)
    buffer->erase();

  builder.setInsertionPointAfter(prepare);
  // A function rather than an attribute: callers link against object files.
  auto count = func::FuncOp::create(
      builder, function.getLoc(), name + "_prepacked_elements",
      builder.getFunctionType({}, {builder.getI64Type()}));
  builder.setInsertionPointToStart(count.addEntryBlock());
  Value elements = arith::ConstantOp::create(builder, function.getLoc(),
                                             builder.getI64IntegerAttr(size));
  func::ReturnOp::create(builder, function.getLoc(), elements);
}

namespace {
struct PrepackWeights
    : kas::codegen::impl::KasPrepackWeightsPassBase<PrepackWeights> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.isPublic() && !function.isExternal() &&
          // With one argument, the data, there are no weights.
          function.getNumArguments() > 1)
        functions.push_back(function);
    for (func::FuncOp function : functions) {
      Prepacking preparation(function);
      preparation.collect();
      if (!preparation.empty())
        preparation.move();
    }
  }
};
} // namespace
