//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts the kernels of a network out as tuning tasks, equal ones once.
// A task is a module of one function with the kernel alone: what it reads in
// tensors becomes arguments, padding and initial values are computed within,
// and one elementwise reader comes along, because the strategies fuse it as an
// epilogue.
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/Task.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/ExecutionEngine/Signature.h"
#include "kas/Support/Random.h"
#include "kas/Tuning/StructuralKey.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::tuning;
using namespace mlir;
using llvm::Expected;

/// 16 hexadecimal digits.
std::string TuningTask::getClassKey() const {
  return llvm::formatv("{0:x-16}", llvm::xxh3_64bits(classText)).str();
}

/// Each kernel searches with draws of its own, the same in each run and
/// network.
uint64_t TuningTask::getSeed(uint64_t seed) const {
  return RandomStream(seed, shape).bits(0);
}

namespace {

/// The operations of one kernel, and what they read from outside.
class KernelCut {
public:
  // The anchor with what it needs, then the epilogue with what that needs.
  explicit KernelCut(Operation *anchor) : anchor(anchor) {
    include(anchor);
    last = findReader();
    if (last != anchor)
      include(last);
    // In the order of the block, so that clones find their operands.
    llvm::SmallVector<Operation *> sorted = ops.takeVector();
    llvm::sort(sorted, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    ops.insert_range(sorted);
  }

  TuningTask makeTask(const TuningDevice &device) const;

private:
  /// What is computed again with each kernel.
  static bool isPartOfKernel(Operation *op) {
    return isa_and_nonnull<tensor::PadOp, tensor::EmptyOp, linalg::FillOp,
                           linalg::BroadcastOp, arith::ConstantOp>(op);
  }
  /// Adds `op` and those operations before it that are part of the kernel.
  void include(Operation *op);
  Operation *findReader() const;
  OwningOpRef<ModuleOp> makeModule(const TuningDevice &device) const;

  Operation *anchor, *last = nullptr;
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Value> inputs;
};

} // namespace

void KernelCut::include(Operation *op) {
  if (!ops.insert(op))
    return;
  op->walk([&](Operation *inner) {
    // Values that the body defines itself, and arguments of its blocks, are no
    // inputs.
    for (Value operand : inner->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (source && (op->isProperAncestor(source) || ops.contains(source)))
        continue;
      if (auto argument = dyn_cast<BlockArgument>(operand);
          argument && op->isAncestor(argument.getOwner()->getParentOp()))
        continue;
      if (isPartOfKernel(source) && source->getBlock() == anchor->getBlock())
        include(source);
      else
        inputs.insert(operand);
    }
  });
}

/// The only reader, if it is elementwise and after the anchor; else the
/// anchor.
Operation *KernelCut::findReader() const {
  Value result = anchor->getResult(0);
  if (!result.hasOneUse())
    return anchor;
  // Anything but a bijection between elements would not fuse: sums, several
  // results, permutations, broadcasts of the anchor's result.
  auto reader = dyn_cast<linalg::GenericOp>(*result.getUsers().begin());
  if (!reader || reader.getNumReductionLoops() != 0 ||
      reader->getNumResults() != 1 || !reader.hasPureTensorSemantics() ||
      reader->getBlock() != anchor->getBlock() ||
      reader->getResult(0).getType() != result.getType() ||
      !llvm::all_of(reader.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return anchor;
  return reader;
}

OwningOpRef<ModuleOp> KernelCut::makeModule(const TuningDevice &device) const {
  MLIRContext *context = anchor->getContext();
  Location loc = UnknownLoc::get(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  // The target of the module, which the pipeline reads.
  (*module)->setDiscardableAttrs(
      anchor->getParentOfType<ModuleOp>()->getDiscardableAttrDictionary());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  llvm::StringRef name = "operator";
  if (auto apply = dyn_cast<ApplyOp>(anchor)) {
    // The name of the operator is no part of the kernel; one name for all makes
    // equal modules equal.
    auto copy = cast<OperatorOp>(builder.clone(*apply.getOperator()));
    copy.setSymName(name);
  }
  auto types = llvm::to_vector(ValueRange(inputs.getArrayRef()).getTypes());
  auto function = func::FuncOp::create(
      builder, loc, taskFunctionName,
      builder.getFunctionType(types, last->getResultTypes()));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  for (auto [value, argument] : llvm::zip_equal(inputs, body->getArguments()))
    mapping.map(value, argument);
  for (Operation *op : ops) {
    Operation *copy = builder.clone(*op, mapping);
    copy->walk([&](Operation *inner) { inner->setLoc(loc); });
    if (op != anchor)
      continue;
    // A schedule that the network has is what is being tuned.
    device.set(copy, nullptr);
    if (auto apply = dyn_cast<ApplyOp>(copy))
      apply.setCalleeAttr(FlatSymbolRefAttr::get(context, name));
  }
  func::ReturnOp::create(builder, loc, mapping.lookup(last->getResult(0)));
  return module;
}

TuningTask KernelCut::makeTask(const TuningDevice &device) const {
  TuningTask task;
  task.module = makeModule(device);
  auto function = task.module->lookupSymbol<func::FuncOp>(taskFunctionName);
  // The operations are those of the network in their order.
  auto position = std::distance(ops.begin(), llvm::find(ops, anchor));
  task.anchor = &*std::next(function.getBody().front().begin(), position);
  // `kernel` is what is measured, `sum` the class: the anchor (with its
  // operator) without padding and epilogue.
  StructuralKey kernel, sum;
  kernel.add(*task.module);
  for (OperatorOp op : task.module->getOps<OperatorOp>())
    sum.add(op);
  sum.add(task.anchor);
  task.classText = sum.getStructure();
  // The hash tells kernels of one class apart whose surroundings differ in
  // structure.
  task.shape = llvm::formatv("{0};{1:x-16}", kernel.getNumbers(),
                             llvm::xxh3_64bits(kernel.getStructure()));
  llvm::raw_string_ostream(task.tensors) << function.getFunctionType();
  task.uses = {anchor};
  return task;
}

Expected<std::vector<TuningTask>>
kas::tuning::findTasks(func::FuncOp function, const TuningDevice &device) {
  std::vector<TuningTask> tasks;
  // Ordered by key, not by hash. A key with the value ~0 is a kernel without a
  // schedule: it is not requested again.
  llvm::MapVector<std::pair<std::string, std::string>, size_t,
                  std::map<std::pair<std::string, std::string>, unsigned>>
      known;
  llvm::SmallVector<Operation *> anchors;
  // Operators and whatever reduces; elementwise operations have no schedules.
  for (Operation &op : function.getOps())
    if (isa<ApplyOp>(op) ||
        (isa<linalg::LinalgOp>(op) &&
         cast<linalg::LinalgOp>(op).getNumReductionLoops() > 0))
      if (op.getNumResults() == 1)
        anchors.push_back(&op);
  for (Operation *anchor : anchors) {
    TuningTask task = KernelCut(anchor).makeTask(device);
    auto [entry, isNew] =
        known.try_emplace({task.classText, task.shape}, tasks.size());
    if (!isNew) {
      if (entry->second != ~size_t(0))
        tasks[entry->second].uses.push_back(anchor);
      continue;
    }
    auto space = device.getSpace(task.anchor);
    auto signature = FunctionSignature::get(*task.module, taskFunctionName);
    // No strategy takes it, or it has arguments that cannot be made (integers):
    // left to the cost model.
    if (!space || !signature) {
      llvm::consumeError(space.takeError());
      llvm::consumeError(signature.takeError());
      entry->second = ~size_t(0);
      continue;
    }
    task.space = std::move(*space);
    tasks.push_back(std::move(task));
  }
  return tasks;
}
