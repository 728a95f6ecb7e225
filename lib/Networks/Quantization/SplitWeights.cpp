//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves what weights alone decide to a function of its own, so that a file can
// hold what comes of it: of a quantized network the bytes, steps and offsets
// instead of weights in f32.
// Works on tensors, on the operations of the only block of a function.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/DataAttribute.h"
#include "kas/Networks/Quantization/Quantize.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace kas;
using namespace mlir;

namespace {

/// What a value of the function depends on.
enum class Origin { Constants, Weights, Data };

class Splitting {
public:
  explicit Splitting(func::FuncOp function) : function(function) {}

  void classify();
  func::FuncOp makeWeightsFunction(StringRef name);
  void replace();

private:
  Origin getOrigin(Operation &op) const;
  /// Whether something reads the value where it stays.
  bool isKept(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      Operation *outer =
          function.getBody().front().findAncestorOpInBlock(*user);
      return !moved.contains(outer);
    });
  }

  func::FuncOp function;
  DenseMap<Value, Origin> origins;
  /// The operations that weights alone decide, and of no weight.
  SetVector<Operation *> moved, constants;
  /// What the function takes instead of its weights, in order: those of them
  /// that it still reads, then what is computed.
  SmallVector<Value> taken;
};

} // namespace

/// Of a tensor of static shape; nothing of other values.
static std::optional<int64_t> getNumBytes(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return std::nullopt;
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// What becomes larger, as a bias that is repeated for each point, is left
/// where it is.
Origin Splitting::getOrigin(Operation &op) const {
  if (!isMemoryEffectFree(&op) || op.hasTrait<OpTrait::IsTerminator>())
    return Origin::Data;
  SetVector<Value> values;
  getUsedValuesDefinedAbove(op.getRegions(), values);
  values.insert_range(op.getOperands());
  int64_t numBytes = 0;
  bool readsWeights = false;
  for (Value value : values) {
    Origin origin = origins.lookup(value);
    if (origin == Origin::Data)
      return Origin::Data;
    readsWeights |= origin == Origin::Weights;
    if (origin == Origin::Weights)
      numBytes += getNumBytes(value).value_or(0);
  }
  if (!readsWeights)
    return Origin::Constants;
  for (Value result : op.getResults())
    if (getNumBytes(result).value_or(numBytes + 1) > numBytes)
      return Origin::Data;
  return Origin::Weights;
}

/// In program order, so that operands come before what reads them.
void Splitting::classify() {
  for (BlockArgument argument : function.getArguments()) {
    bool isWeight = !isData(argument) && getNumBytes(argument);
    origins[argument] = isWeight ? Origin::Weights : Origin::Data;
  }
  for (Operation &op : function.getBody().front()) {
    Origin origin = getOrigin(op);
    for (Value result : op.getResults())
      origins[result] = origin;
    if (origin == Origin::Weights)
      moved.insert(&op);
    if (origin == Origin::Constants)
      constants.insert(&op);
  }
  for (BlockArgument argument : function.getArguments())
    if (origins[argument] == Origin::Weights && isKept(argument))
      taken.push_back(argument);
  for (Operation *op : moved)
    for (Value result : op->getResults())
      if (isKept(result))
        taken.push_back(result);
}

/// It takes all weights, and returns what is taken in their place. Constants
/// are copied.
func::FuncOp Splitting::makeWeightsFunction(StringRef name) {
  OpBuilder builder(function->getContext());
  builder.setInsertionPointAfter(function);
  SmallVector<Value> weights;
  for (BlockArgument argument : function.getArguments())
    if (!isData(argument))
      weights.push_back(argument);
  auto type = builder.getFunctionType(ValueRange(weights).getTypes(),
                                      ValueRange(taken).getTypes());
  auto made = func::FuncOp::create(builder, function.getLoc(), name, type);
  builder.setInsertionPointToStart(made.addEntryBlock());
  IRMapping mapping;
  for (auto [index, weight] : llvm::enumerate(weights)) {
    mapping.map(weight, made.getArgument(index));
    unsigned number = cast<BlockArgument>(weight).getArgNumber();
    if (DictionaryAttr attributes = function.getArgAttrDict(number))
      made.setArgAttrs(index, attributes);
  }
  for (Operation &op : function.getBody().front())
    if (moved.contains(&op) || constants.contains(&op))
      builder.clone(op, mapping);
  SmallVector<Value> results = llvm::map_to_vector(
      taken, [&](Value value) { return mapping.lookup(value); });
  func::ReturnOp::create(builder, function.getLoc(), results);
  return made;
}

/// Arguments for all that is computed come last; weights that nothing reads any
/// more go.
void Splitting::replace() {
  for (Value value : taken) {
    if (isa<BlockArgument>(value))
      continue;
    unsigned index = function.getNumArguments();
    (void)function.insertArgument(index, value.getType(),
                                  DictionaryAttr::get(function.getContext()),
                                  value.getLoc());
    value.replaceAllUsesWith(function.getArgument(index));
  }
  for (Operation *op : llvm::reverse(moved))
    if (op->use_empty())
      op->erase();
  for (unsigned index = function.getNumArguments(); index-- > 0;) {
    BlockArgument argument = function.getArgument(index);
    if (origins.lookup(argument) == Origin::Weights && argument.use_empty())
      (void)function.eraseArgument(index);
  }
}

/// Functions of one block: what a branch decides is no weight's.
LogicalResult kas::networks::splitWeights(func::FuncOp function,
                                          StringRef name) {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError("requires a function of one block, got ")
           << function.getBody().getBlocks().size();
  for (BlockArgument argument : function.getArguments())
    if (!isData(argument) && !getNumBytes(argument))
      return function.emitError("requires weights that are tensors of static "
                                "shape, got ")
             << argument.getType();
  Splitting splitting(function);
  splitting.classify();
  splitting.makeWeightsFunction(name);
  splitting.replace();
  return success();
}
