//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names and checks the arguments of a network that is to be trained: which are
// data, parameters or constants.
// Arguments are distinguished by names and attributes: data by the option
// `data` (else the first), constants by `kas.constant`, running statistics by
// their names; everything else is trained. Checks come first, with errors that
// say what to change.
//
//===----------------------------------------------------------------------===//

#include "StepArguments.h"
#include "Optimizer.h"
#include "kas/Conversion/TensorEmitter.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/IR/TrainingAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;
using namespace kas::scalars;

/// `argN` where it has none.
std::string kas::networks::getArgumentName(func::FuncOp function,
                                           unsigned argument) {
  auto name = function.getArgAttrOfType<StringAttr>(
      argument, KasDialect::argumentNameAttrName);
  return name ? name.str() : ("arg" + Twine(argument)).str();
}

void kas::networks::nameArguments(func::FuncOp function) {
  Builder builder(function->getContext());
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    function.setArgAttr(
        index, KasDialect::argumentNameAttrName,
        builder.getStringAttr(getArgumentName(function, index)));
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Positions of the data, ascending.
static FailureOr<SmallVector<unsigned>>
findData(func::FuncOp function, const TrainingStepOptions &options) {
  if (options.data.empty())
    return SmallVector<unsigned>{0};
  SmallVector<unsigned> positions;
  for (const std::string &name : options.data) {
    auto found = llvm::find_if(
        llvm::seq<unsigned>(function.getNumArguments()), [&](unsigned index) {
          return getArgumentName(function, index) == name;
        });
    if (found == llvm::seq<unsigned>(function.getNumArguments()).end() ||
        llvm::is_contained(positions, *found))
      return function.emitError("to train, requires data that are arguments "
                                "(kas.name), each once, got '")
             << name << "'";
    positions.push_back(*found);
  }
  llvm::sort(positions);
  return positions;
}

/// Fails where two names of the step's arguments or results would be the same.
/// Compiled functions are called by names.
static LogicalResult checkNames(func::FuncOp function, ArrayRef<unsigned> data,
                                const TrainingStepOptions &options) {
  llvm::StringSet<llvm::BumpPtrAllocator> names;
  // Names that every step adds.
  for (StringRef added :
       {"labels", "learning_rate", "seed", "step", "loss", "correct"})
    names.insert(added);
  SmallVector<StringRef> kinds = OptimizerEmitter::getStateNames(options);
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    // Results carry the names of arguments, so these must differ, too.
    std::string name = getArgumentName(function, index);
    SmallVector<std::string> added{name};
    if (!llvm::is_contained(data, index))
      for (StringRef kind : kinds)
        added.push_back(name + "." + kind.str());
    for (const std::string &text : added)
      if (!names.insert(text).second)
        return function.emitError(
                   "to train, requires names of arguments (kas.name) that "
                   "differ from each other and from what a step adds, got '")
               << text << "' again";
  }
  return success();
}

/// Fails where a number of the options makes no sense.
static LogicalResult checkOptions(func::FuncOp function,
                                  const TrainingStepOptions &options) {
  struct Range {
    StringRef name;
    double value, least, bound;
    bool includesBound = false;
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const Range &range :
       {Range{"label-smoothing", options.labelSmoothing, 0, 1, true},
        Range{"momentum", options.momentum, 0, 1},
        Range{"beta1", options.beta1, 0, 1},
        Range{"beta2", options.beta2, 0, 1},
        Range{"epsilon", options.epsilon, 0, infinity},
        Range{"weight-decay", options.weightDecay, 0, infinity},
        Range{"batch-norm-momentum", options.batchNormMomentum, 0, 1, true},
        Range{"clip-norm", options.clipNorm, 0, infinity}})
    // Not a number is in no range.
    if (!(range.value >= range.least && range.value < range.bound) &&
        !(range.includesBound && range.value == range.bound))
      return function.emitError("option '")
             << range.name << "' requires a number of at least "
             << int64_t(range.least)
             << (range.bound == infinity ? ""
                 : range.includesBound   ? " and at most 1"
                                         : " and less than 1")
             << ", got " << range.value;
  if (options.nesterov && options.momentum == 0)
    return function.emitError("option 'nesterov' requires a momentum, got 0");
  return success();
}

/// Data and what is not trained may be integers.
/// Integers become floats later (`takeIntegersAsFloats`), which are no use as
/// parameters.
static LogicalResult checkType(func::FuncOp function, unsigned index,
                               bool isData, Type element) {
  Type type = function.getArgumentTypes()[index];
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && tensor.hasStaticShape() && tensor.getElementType() == element)
    return success();
  if (!tensor || !tensor.hasStaticShape() ||
      !tensor.getElementType().isSignlessInteger())
    return function.emitError("to train, requires tensors of ")
           << element << " with static shapes, got " << type;
  if (isData || function.getArgAttr(index, constantAttrName))
    return success();
  return function.emitError("to train, requires parameters of ")
         << element << ", got '" << getArgumentName(function, index)
         << "' of type " << type << " (data are named by the option 'data', "
         << "what is not trained has the attribute '" << constantAttrName
         << "')";
}

/// After this, the functions of this folder assume what is checked here.
FailureOr<TrainableNetwork>
kas::networks::checkNetwork(func::FuncOp function,
                            const TrainingStepOptions &options) {
  if (failed(checkOptions(function, options)))
    return failure();
  Operation *end = function.getBody().back().getTerminator();
  auto logits =
      function.getNumResults() == 1
          ? dyn_cast<RankedTensorType>(function.getResultTypes().front())
          : nullptr;
  if (!function.getBody().hasOneBlock() || !isa<func::ReturnOp>(end) ||
      function.getNumArguments() == 0 || !logits || !logits.hasStaticShape() ||
      logits.getRank() != 2 || logits.getNumElements() == 0)
    return function.emitError(
               "to train, requires a function with one block and one "
               "result, logits [samples, classes], got ")
           << function.getFunctionType();
  // Numbers of classes are compared as f32, and written out.
  constexpr int64_t maxClasses = 1 << 24;
  if (logits.getDimSize(1) > maxClasses)
    return function.emitError("to train, requires at most ")
           << maxClasses << " classes, got " << logits.getDimSize(1);
  // Sums, and the counts of steps, need more digits than narrower floats have.
  Type element = logits.getElementType();
  if (!element.isF32() && !element.isF64())
    return function.emitError("to train, requires tensors of f32 or f64, got ")
           << logits;
  FailureOr<SmallVector<unsigned>> data = findData(function, options);
  if (failed(data))
    return failure();
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (failed(checkType(function, index, llvm::is_contained(*data, index),
                         element)))
      return failure();
  if (failed(checkNames(function, *data, options)))
    return failure();
  return TrainableNetwork{logits, *data};
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// An integer of type `type`, which `number` must be.
/// Compiled functions take f32 only, so integers come as floats: a number that
/// is not whole, or too large to be exact, is an error at run time. An i1 is
/// true unless it is 0.
static Value emitInteger(OpBuilder &builder, Location loc, Value number,
                         IntegerType type) {
  auto compare = [&](arith::CmpFPredicate predicate, Value a,
                     Value b) -> Value {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  };
  Type element = number.getType();
  if (type.getWidth() == 1)
    return compare(arith::CmpFPredicate::UNE, number,
                   makeConstant(builder, loc, element, 0));
  // All integers of fewer bits than the significand has, and of the type.
  double bound = std::ldexp(
      1, std::min<unsigned>(type.getWidth() - 1, element.isF64() ? 53 : 24));
  Value isWhole = compare(arith::CmpFPredicate::OEQ, number,
                          math::FloorOp::create(builder, loc, number));
  Value isLow = compare(arith::CmpFPredicate::OLT, number,
                        makeConstant(builder, loc, element, bound));
  Value isHigh = compare(arith::CmpFPredicate::OGE, number,
                         makeConstant(builder, loc, element, -bound));
  cf::AssertOp::create(
      builder, loc,
      arith::AndIOp::create(builder, loc, isWhole,
                            arith::AndIOp::create(builder, loc, isLow, isHigh)),
      "requires whole numbers for integers, less than " +
          std::to_string(int64_t(bound)));
  return arith::FPToSIOp::create(builder, loc, type, number);
}

/// Each argument is converted at the start of the function, in one elementwise
/// operation.
void kas::networks::takeIntegersAsFloats(func::FuncOp function, Type element) {
  Block &block = function.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  for (BlockArgument argument : block.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    auto integer = dyn_cast<IntegerType>(type.getElementType());
    if (!integer)
      continue;
    // The type of the function follows at the end.
    argument.setType(type.clone(element));
    Location loc = argument.getLoc();
    AffineMap map = builder.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> parallel(type.getRank(),
                                              utils::IteratorType::parallel);
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                          type.getElementType());
    auto integers = linalg::GenericOp::create(
        builder, loc, type, ValueRange{argument}, empty, ArrayRef{map, map},
        parallel, [&](OpBuilder &builder, Location loc, ValueRange v) {
          linalg::YieldOp::create(builder, loc,
                                  emitInteger(builder, loc, v[0], integer));
        });
    argument.replaceAllUsesExcept(integers.getResult(0), integers);
  }
  function.setType(builder.getFunctionType(block.getArgumentTypes(),
                                           function.getResultTypes()));
}
