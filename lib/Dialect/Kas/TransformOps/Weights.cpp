//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights of their own for transformed operations.
//
// A transformed operation inherits: it reads slices and copies of the old
// weight. Here these become a new argument of the function with an initializer
// (He et al., ICCV 2015), as a network that is trained again needs it.
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"
#include "kas/Dialect/Kas/Analysis/FanIn.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/TransformOps/IteratorDomain.h"
#include "kas/Dialect/Kas/TransformOps/OperatorDomain.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace kas;

/// Moves elements of its only input.
/// A broadcast, a transposition or a gather: no arithmetic.
static bool isCopy(linalg::LinalgOp op) {
  return op.getNumDpsInputs() == 1 && op->getNumResults() == 1 &&
         op.getNumParallelLoops() == op.getNumLoops() &&
         op.getBlock()->without_terminator().empty() &&
         op.getBlock()->getTerminator()->getOperand(0) ==
             op.getRegionInputArgs().front();
}

/// The argument or constant that `value` is made from by moving elements, or
/// null.
/// Through slices, reshapes and copies. Null for anything that is computed.
static Value findRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<arith::ConstantOp>(op))
      return value;
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp>(op) &&
        !(linalgOp && isCopy(linalgOp)))
      return nullptr;
    value = op->getOperand(0);
  }
  auto function = dyn_cast<func::FuncOp>(value.getParentBlock()->getParentOp());
  return function && value.getParentBlock()->isEntryBlock() ? value : nullptr;
}

/// With all that becomes dead by it, from users to producers.
static void eraseDead(RewriterBase &rewriter, Operation *op) {
  llvm::SmallSetVector<Operation *, 4> worklist;
  worklist.insert(op);
  while (!worklist.empty()) {
    Operation *dead = worklist.pop_back_val();
    if (!isOpTriviallyDead(dead))
      continue;
    for (Value operand : dead->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        worklist.insert(producer);
    rewriter.eraseOp(dead);
  }
}

static std::string getName(func::FuncOp function, unsigned index) {
  auto name = function.getArgAttrOfType<StringAttr>(
      index, KasDialect::argumentNameAttrName);
  return name ? name.getValue().str() : "";
}

/// A name for another weight in place of the argument `root`, and where the
/// argument goes: after those that already are.
/// `conv1.weight` -> `conv1.weight.0`, `.1`, ... right after it, so that the
/// order of arguments stays readable. No name where the root has none.
static std::pair<std::string, unsigned> placeWeight(func::FuncOp function,
                                                    BlockArgument root) {
  if (!root)
    return {"", function.getNumArguments()};
  std::string base = getName(function, root.getArgNumber());
  llvm::StringSet<> names;
  unsigned position = root.getArgNumber() + 1;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    names.insert(getName(function, index));
  if (base.empty())
    return {"", position};
  unsigned number = 0;
  for (; names.contains(base + "." + std::to_string(number)); ++number)
    if (position < function.getNumArguments() &&
        getName(function, position) == base + "." + std::to_string(number))
      ++position;
  return {base + "." + std::to_string(number), position};
}

/// The number of products in an element of the result.
/// This is the fan-in of a layer: the variance of weights is 2 / fan-in.
static int64_t countTerms(const LoopNest &nest) {
  int64_t terms = 1;
  for (auto [iterator, size] : llvm::enumerate(nest.sizes))
    if (!nest.isParallel(iterator))
      terms *= size;
  return terms;
}

/// Adds an argument, uses it, and removes the old one if nothing reads it any
/// more. Arguments move, so positions are not kept across calls.
static void renewOperand(RewriterBase &rewriter, func::FuncOp function,
                         OpOperand &operand, Value root, StringRef fanIn) {
  auto argument = dyn_cast<BlockArgument>(root);
  auto [name, position] = placeWeight(function, argument);
  NamedAttrList attributes;
  attributes.append(KasDialect::initializerAttrName,
                    rewriter.getStringAttr("kaiming(" + fanIn + ")"));
  if (!name.empty())
    attributes.append(KasDialect::argumentNameAttrName,
                      rewriter.getStringAttr(name));
  Operation *old = operand.get().getDefiningOp();
  rewriter.modifyOpInPlace(function, [&, position = position] {
    LogicalResult inserted = function.insertArgument(
        position, operand.get().getType(),
        attributes.getDictionary(rewriter.getContext()), function.getLoc());
    assert(succeeded(inserted) && "a func.func takes arguments");
    (void)inserted;
  });
  rewriter.modifyOpInPlace(operand.getOwner(), [&, position = position] {
    operand.set(function.getArgument(position));
  });
  if (old)
    eraseDead(rewriter, old);
  if (argument && argument.use_empty())
    rewriter.modifyOpInPlace(function, [&] {
      LogicalResult erased = function.eraseArgument(argument.getArgNumber());
      assert(succeeded(erased) && "a func.func loses arguments");
      (void)erased;
    });
}

/// New arguments in place of `operands` of `op`.
/// All roots are found before anything changes.
static LogicalResult renewOperands(RewriterBase &rewriter, Operation *op,
                                   ArrayRef<OpOperand *> operands,
                                   StringRef fanIn, std::string &reason) {
  auto function = op->getParentOfType<func::FuncOp>();
  auto module = op->getParentOfType<ModuleOp>();
  // T15
  if (!function || !module ||
      !SymbolTable::symbolKnownUseEmpty(function, module))
    return miss(reason, "requires a function that is not called around the "
                        "operation, because its arguments change");
  SmallVector<std::pair<OpOperand *, Value>> weights;
  for (OpOperand *operand : operands) {
    Value root = findRoot(operand->get());
    if (!root) // T16
      return miss(reason,
                  "requires weights that are made from arguments or "
                  "constants, got input ",
                  operand->getOperandNumber());
    weights.emplace_back(operand, root);
  }
  if (weights.empty())
    return miss(reason, "requires an input besides the data, got none");
  for (auto [operand, root] : weights)
    renewOperand(rewriter, function, *operand, root, fanIn);
  return success();
}

/// By convention input 0 is the data.
LogicalResult kas::renewWeights(RewriterBase &rewriter, linalg::LinalgOp op,
                                std::string &reason) {
  FailureOr<LoopNest> nest = LoopNest::get(op, reason);
  if (failed(nest))
    return failure();
  SmallVector<OpOperand *> operands;
  for (OpOperand *operand : op.getDpsInputOperands())
    if (operand->getOperandNumber() != 0)
      operands.push_back(operand);
  return renewOperands(rewriter, op, operands,
                       std::to_string(countTerms(*nest)), reason);
}

LogicalResult kas::renewWeights(RewriterBase &rewriter, ApplyOp apply,
                                std::string &reason) {
  SmallVector<OpOperand *> operands;
  for (OpOperand &operand : apply->getOpOperands().drop_front())
    operands.push_back(&operand);
  FailureOr<Binding> binding = inferBinding(
      apply, apply.getOperator(), [&] { return apply.emitOpError(); });
  if (failed(binding))
    return miss(reason, "requires an operator that can be bound");
  // As for new weights of substituted operators: the product of the variances
  // is 2 / F, each variance the same.
  double fanIn = 2 * std::pow(getFanIn(apply.getOperator(), *binding) / 2,
                              1.0 / std::max<size_t>(operands.size(), 1));
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.6g", fanIn);
  return renewOperands(rewriter, apply, operands, text, reason);
}
