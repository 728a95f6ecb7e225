//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator and its application taken apart, to be changed together.
// Transformations edit a concrete copy: the operator may have other
// applications, and a condition that fails must leave no trace.
//
//===----------------------------------------------------------------------===//

#include "OperatorNest.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace kas;

OperatorNest::OperatorNest(RewriterBase &rewriter, ApplyOp apply, OperatorOp op)
    : rewriter(rewriter), apply(apply), op(op), body(op.getContext()),
      dataValue(apply.getData()), weightValues(apply.getWeights()) {
  for (Value coordinate : op.getOutputs())
    iterators.push_back(coordinate);
  for (ReduceOp reduce : getReductions(op))
    iterators.push_back(reduce.getResult());
  data = llvm::to_vector(op.getYield().getData());
  for (OperandRange weight : op.getYield().getWeights())
    weights.push_back(llvm::to_vector(weight));
}

/// A transformation that did not qualify returns early and leaves no operator.
OperatorNest::~OperatorNest() {
  if (!isFinished)
    rewriter.eraseOp(op);
}

// The copy is put right after the operator, under its name until `finish`.
FailureOr<std::unique_ptr<OperatorNest>>
OperatorNest::get(RewriterBase &rewriter, ApplyOp apply, std::string &reason) {
  OperatorOp op = apply.getOperator();
  auto emitError = [&] { return apply.emitOpError(); };
  // The application is verified, so its operator is there and can be bound.
  FailureOr<Binding> binding = inferBinding(apply, op, emitError);
  if (failed(binding))
    return miss(reason, "requires an operator that can be bound");
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointAfter(op);
  FailureOr<OperatorOp> concrete =
      specialize(rewriter, op, *binding, op.getSymName(), emitError);
  if (failed(concrete))
    return miss(reason, "requires an operator that can be bound");
  return std::unique_ptr<OperatorNest>(
      new OperatorNest(rewriter, apply, *concrete));
}

LogicalResult OperatorNest::checkIterator(int64_t iterator,
                                          std::string &reason) const {
  if (iterator >= 0 && iterator < int64_t(iterators.size())) // T2
    return success();
  return miss(reason, "requires an iterator from 0 to ", iterators.size() - 1,
              ", got ", iterator);
}

/// Follows the chain of shares: each gives a copy to a weight, the end is the
/// data side, or one more weight.
CoordinateUses OperatorNest::getUses(Value coordinate) const {
  CoordinateUses uses;
  auto addWeights = [&](Value value) {
    for (auto [weight, coordinates] : llvm::enumerate(weights))
      for (auto [dimension, other] : llvm::enumerate(coordinates))
        if (other == value)
          uses.weights.push_back({unsigned(weight), unsigned(dimension)});
  };
  while (auto share = dyn_cast<ShareOp>(*coordinate.getUsers().begin())) {
    uses.shares.push_back(share);
    addWeights(share.getWeight());
    coordinate = share.getData();
  }
  size_t before = uses.weights.size();
  addWeights(coordinate);
  if (uses.weights.size() == before)
    uses.data = &*coordinate.use_begin();
  return uses;
}

/// Nothing when a primitive, such as an unfold, is between.
std::optional<unsigned>
OperatorNest::getDataDimension(const CoordinateUses &uses) const {
  if (!uses.data || !isa<YieldOp>(uses.data->getOwner()))
    return std::nullopt;
  return uses.data->getOperandNumber();
}

void OperatorNest::dropShares(const CoordinateUses &uses) {
  // The yield goes at the end, so its operands mean nothing any more.
  for (ShareOp share : uses.shares) {
    share.getWeight().replaceAllUsesWith(share.getCoord());
    share.getData().replaceAllUsesWith(share.getCoord());
    share.erase();
  }
}

/// count - 1 shares: coordinates are linear (C9).
SmallVector<Value> OperatorNest::fanOut(Value coordinate, unsigned count) {
  SmallVector<Value> result;
  for (; result.size() + 1 < count;) {
    auto share = ShareOp::create(body, op.getLoc(), coordinate);
    result.push_back(share.getWeight());
    coordinate = share.getData();
  }
  result.push_back(coordinate);
  return result;
}

/// Gives every result the type that follows from its operands.
/// Sizes have changed at the bottom; program order carries them to the top.
static void inferTypes(OperatorOp op) {
  for (Operation &primitive : op.getBody().front()) {
    auto interface = dyn_cast<InferTypeOpInterface>(primitive);
    if (!interface)
      continue;
    SmallVector<Type> types;
    LogicalResult inferred = interface.inferReturnTypes(
        op.getContext(), primitive.getLoc(), primitive.getOperands(),
        primitive.getAttrDictionary(), primitive.getPropertiesStorage(),
        primitive.getRegions(), types);
    assert(succeeded(inferred) && "sizes of concrete operators are integers");
    (void)inferred;
    for (auto [result, type] : llvm::zip_equal(primitive.getResults(), types))
      result.setType(type);
  }
}

/// The yield is made again from `data` and `weights`, which have been edited.
ApplyOp OperatorNest::finish(StringRef suffix) {
  isFinished = true;
  YieldOp yield = op.getYield();
  SmallVector<ValueRange> segments(weights.begin(), weights.end());
  body.setInsertionPoint(yield);
  YieldOp::create(body, yield.getLoc(), data, segments);
  yield.erase();
  inferTypes(op);
  SmallVector<Attribute> sizes;
  for (Value coordinate : op.getYield().getData())
    sizes.push_back(kas::getSize(coordinate));
  op.setInputSizesAttr(rewriter.getArrayAttr(sizes));

  // A name of its own.
  // `conv` grouped twice becomes `conv_group4` and `conv_group4_group2`.
  auto *table = SymbolTable::getNearestSymbolTable(apply);
  StringRef base = apply.getCallee();
  unsigned counter = 0;
  op.setPrivate();
  op.setSymName(SymbolTable::generateSymbolName<64>(
      (base + "_" + suffix).str(),
      [&](StringRef name) {
        return SymbolTable::lookupSymbolIn(table, name) != nullptr;
      },
      counter));
  // Conditions are checked before; what is built here is correct or our
  // mistake.
  assert(succeeded(verify(op)) && "what operators become is an operator");
  return rewriter.replaceOpWithNewOp<ApplyOp>(
      apply, apply.getType(), op.getSymName(),
      BindingAttr::getNormal(op.getContext(), {}), dataValue, weightValues);
}
