//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The verifier of operators: the numbered constraints of
// docs/reference/dialect.md.
// Here are those that hold or not whatever symbols are bound to; the others are
// checked at a binding (KasBinding.cpp).
//
//===----------------------------------------------------------------------===//

#include "KasSyntax.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kas;

/// `'C*k/s'`, for messages.
/// Names come from the attribute, so an undeclared symbol prints as well.
static std::string quote(SizeAttr size) {
  std::string text;
  llvm::raw_string_ostream os(text);
  SmallVector<StringRef> names = llvm::map_to_vector(
      size.getNames(), [](StringAttr name) { return name.getValue(); });
  names.resize(SymbolSet::maxSymbols);
  printSize(os, size.getValue(), names);
  return "'" + text + "'";
}

/// Coefficients may be in a denominator (`C/s`); a primary there is hardly ever
/// an integer, and the search never makes one.
LogicalResult kas::verifySymbolicSize(SizeAttr size, const SymbolSet &symbols,
                                      StringRef what, StringRef constraint,
                                      EmitErrorFn emitError) {
  for (StringAttr name : size.getNames())
    if (!symbols.lookup(name.getValue()))
      return emitError() << "requires declared symbols in " << what << " ("
                         << constraint << "), got '" << name.getValue()
                         << "' in " << quote(size);
  Size value = *size.toSize(symbols);
  for (unsigned index = 0; index < symbols.size(); ++index)
    if (symbols.getKind(index) == SymbolKind::Primary &&
        value.getExponent(index) < 0)
      return emitError() << "requires no primary symbol in the denominator of "
                         << what << " (" << constraint << "), got "
                         << quote(size);
  if (value.isConstant() && !value.hasIntegerConstant())
    return emitError() << "requires an integer for " << what << " ("
                       << constraint << "), got " << quote(size);
  return success();
}

//===----------------------------------------------------------------------===//
// YieldOp
//===----------------------------------------------------------------------===//

LogicalResult YieldOp::verify() {
  if (getData().empty())
    return emitOpError("requires at least one data coordinate (C10)");
  for (OperandRange weight : getWeights())
    if (weight.empty())
      return emitOpError("requires at least one coordinate in each weight");
  return success();
}

//===----------------------------------------------------------------------===//
// OperatorOp
//===----------------------------------------------------------------------===//

/// The op itself; `verifyRegions` has the body, whose ops are verified by then.
LogicalResult OperatorOp::verify() {
  llvm::Expected<SymbolSet> symbols =
      makeSymbolSet(getPrimaries(), getCoefficients());
  if (!symbols)
    return emitOpError() << llvm::toString(symbols.takeError());
  if (getInputSizes().empty())
    return emitOpError("requires data of rank 1 at least, got rank 0 (C10)");
  if (getInputUnordered().size() != getInputSizes().size())
    return emitOpError("requires one 'unordered' flag per input dimension");
  Block &block = getBody().front();
  if (getOutputUnordered().size() != block.getNumArguments())
    return emitOpError("requires one 'unordered' flag per output coordinate");
  for (BlockArgument argument : block.getArguments())
    if (!isa<CoordType>(argument.getType()))
      return emitOpError("requires coordinates as output, got ")
             << argument.getType();
  if (block.empty() || !isa<YieldOp>(block.back()))
    return emitOpError("requires a body that ends in kas.yield");
  return success();
}

/// C1, C2, C5, C6, C7: the sizes that a primitive makes or names are legal.
static LogicalResult verifyPrimitiveSizes(PrimitiveOpInterface primitive,
                                          const SymbolSet &symbols) {
  StringRef constraint = TypeSwitch<Operation *, StringRef>(primitive)
                             .Case<SplitOp>([](auto) { return "C1"; })
                             .Case<MergeOp>([](auto) { return "C2"; })
                             .Case<ShiftOp>([](auto) { return "C3"; })
                             .Case<UnfoldOp>([](auto) { return "C5"; })
                             .Case<StrideOp>([](auto) { return "C6"; })
                             .Case<ReduceOp>([](auto) { return "C7"; })
                             .Default([](auto) { return "C9"; });
  auto emitError = [&] { return primitive->emitOpError(); };
  for (SizeAttr size : primitive.getParameterSizes())
    if (failed(verifySymbolicSize(size, symbols, "its parameter", constraint,
                                  emitError)))
      return failure();
  for (Value result : primitive->getResults())
    if (failed(verifySymbolicSize(kas::getSize(result), symbols, "its result",
                                  constraint, emitError)))
      return failure();
  return success();
}

/// The part of C3 and C5 that holds or not whatever the symbols are bound to.
/// Constants decide at once, so that a mistake in a concrete operator is
/// reported at the primitive and not at an application.
static LogicalResult verifyPrimitiveNumbers(PrimitiveOpInterface primitive) {
  auto emitError = [&] { return primitive->emitOpError(); };
  if (auto shift = dyn_cast<ShiftOp>(*primitive)) {
    if (shift.getAmount() == 0)
      return emitError()
             << "requires a shift amount d with 0 < |d| (C3), got 0";
    if (!kas::getSize(shift.getCoord()).getConstantValue())
      return success();
  } else if (auto unfold = dyn_cast<UnfoldOp>(*primitive)) {
    auto low = dyn_cast_or_null<IntegerAttr>(unfold.getLowAttr());
    if (low && low.getInt() < 0)
      return emitError() << "requires 0 <= low (C5), got " << low.getInt();
    SizeAttr window = kas::getSize(unfold.getWindow());
    // Equal as symbols: low < K holds at no binding.
    if (unfold.getLowAttr() == window)
      return emitError() << "requires low < " << quote(window)
                         << " (C5), got the same";
    auto symbolic = dyn_cast_or_null<SizeAttr>(unfold.getLowAttr());
    if (!window.getConstantValue() ||
        (symbolic && !symbolic.getConstantValue()))
      return success();
  } else {
    return success();
  }
  return primitive.verifyAtBinding(
      [](SizeAttr size) { return *size.getConstantValue(); }, emitError);
}

/// C9: each coordinate is used exactly once.
/// `name` is the coordinate in the diagnostic; both ways to violate the rule
/// say what to write instead.
static LogicalResult verifySingleUse(Value coordinate, Location location,
                                     const Twine &name) {
  if (coordinate.hasOneUse())
    return success();
  if (coordinate.use_empty())
    return emitError(location)
           << name << " requires exactly one use (C9), got none: drop it with "
           << "kas.expand or index a weight with it";
  return emitError(location)
         << name << " requires exactly one use (C9), got "
         << std::distance(coordinate.use_begin(), coordinate.use_end())
         << ": double it with kas.share";
}

/// Coordinates are linear (C9), which is what lets rewrites take a definition
/// and its only user together.
static LogicalResult verifySingleUses(OperatorOp op) {
  for (BlockArgument argument : op.getOutputs())
    if (failed(verifySingleUse(argument, argument.getLoc(),
                               "output coordinate " +
                                   Twine(argument.getArgNumber()))))
      return failure();
  for (Operation &primitive : op.getBody().front())
    for (OpResult result : primitive.getResults())
      if (failed(verifySingleUse(result, primitive.getLoc(),
                                 "result " + Twine(result.getResultNumber()) +
                                     " of '" +
                                     primitive.getName().getStringRef() + "'")))
        return failure();
  return success();
}

/// C8: the weight side of a share goes to a weight, as it is.
static LogicalResult verifyShares(OperatorOp op) {
  // Operands of the yield: data first, then weights.
  unsigned dataCount = op.getYield().getData().size();
  for (auto share : op.getBody().getOps<ShareOp>()) {
    OpOperand &use = *share.getWeight().use_begin();
    if (!isa<YieldOp>(use.getOwner()) || use.getOperandNumber() < dataCount)
      return share.emitOpError("requires its weight side in a weight of "
                               "kas.yield (C8), got a use in '")
             << use.getOwner()->getName() << "'"
             << (isa<YieldOp>(use.getOwner()) ? " as data" : "");
  }
  return success();
}

/// C10: the data has the declared sizes, in order.
static LogicalResult verifyData(OperatorOp op) {
  YieldOp yield = op.getYield();
  if (yield.getData().size() != op.getInputSizes().size())
    return yield.emitOpError("requires ")
           << op.getInputSizes().size() << " data coordinates (C10), got "
           << yield.getData().size();
  for (auto [index, coordinate, declared] : llvm::enumerate(
           yield.getData(), op.getInputSizes().getAsRange<SizeAttr>()))
    if (kas::getSize(coordinate) != declared)
      return yield.emitOpError("requires size ")
             << quote(declared) << " for data coordinate " << index
             << " (C10), got " << quote(kas::getSize(coordinate));
  return success();
}

/// C11: every reduction is reached from data or a weight.
static LogicalResult verifyReached(OperatorOp op) {
  llvm::SmallPtrSet<Value, 16> reached;
  Block &block = op.getBody().front();
  // Backwards from the yield; one pass, since operands come before their users.
  for (Operation &primitive : llvm::reverse(block))
    if (isa<YieldOp>(primitive) ||
        llvm::any_of(primitive.getResults(),
                     [&](Value result) { return reached.contains(result); }))
      reached.insert_range(primitive.getOperands());
  for (ReduceOp reduce : getReductions(op))
    if (!reached.contains(reduce.getResult()))
      return reduce.emitOpError(
          "requires to be reached from data or a weight (C11), got only "
          "kas.expand");
  return success();
}

/// Sizes first: later checks compare them. C9 comes before C8 and C11, which
/// take the first use for the only one.
LogicalResult OperatorOp::verifyRegions() {
  Block &block = getBody().front();
  SymbolSet symbols = getSymbolSet();
  auto emitError = [&] { return emitOpError(); };
  for (auto [index, argument] : llvm::enumerate(block.getArguments()))
    if (failed(verifySymbolicSize(
            kas::getSize(argument), symbols,
            ("the size of output coordinate " + Twine(index)).str(), "C9",
            emitError)))
      return failure();
  for (auto [index, size] :
       llvm::enumerate(getInputSizes().getAsRange<SizeAttr>()))
    if (failed(verifySymbolicSize(
            size, symbols,
            ("the size of input dimension " + Twine(index)).str(), "C10",
            emitError)))
      return failure();
  for (Operation &op : block.without_terminator()) {
    auto primitive = dyn_cast<PrimitiveOpInterface>(op);
    if (!primitive)
      return op.emitError("requires primitives of the kas dialect in the body "
                          "of kas.operator, got '")
             << op.getName() << "'";
    if (failed(verifyPrimitiveSizes(primitive, symbols)) ||
        failed(verifyPrimitiveNumbers(primitive)))
      return failure();
  }
  return failure(failed(verifySingleUses(*this)) ||
                 failed(verifyShares(*this)) || failed(verifyData(*this)) ||
                 failed(verifyReached(*this)));
}
