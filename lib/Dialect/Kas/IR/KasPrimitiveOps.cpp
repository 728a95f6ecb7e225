//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Result types of the primitives, with the constraints on sizes that they imply
// (docs/reference/dialect.md), and names of printed values.
//
// Primitives go from the output ("bottom") to the data ("top"): operands are
// bottom coordinates, results top ones (Syno, section 4). `getTopExpressions`
// is the meaning of each as affine expressions, and the one place that defines
// it for analyses and lowerings.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Result types
//===----------------------------------------------------------------------===//

/// A null size is one that does not fit.
static LogicalResult addCoordinate(MLIRContext *context, SizeAttr size,
                                   std::optional<Location> location,
                                   StringRef constraint,
                                   SmallVectorImpl<Type> &types) {
  if (!size)
    return emitOptionalError(
        location, "requires a size whose exponents and constant fit (",
        constraint, ")");
  types.push_back(CoordType::get(context, size));
  return success();
}

LogicalResult SplitOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  // C1
  return addCoordinate(
      context,
      getSize(adaptor.getOuter()).multiply(getSize(adaptor.getInner())),
      location, "C1", types);
}

LogicalResult MergeOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  // C2
  SizeAttr block = adaptor.getBlock();
  return failure(
      failed(addCoordinate(context, getSize(adaptor.getCoord()).divide(block),
                           location, "C2", types)) ||
      failed(addCoordinate(context, block, location, "C2", types)));
}

LogicalResult ShiftOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getCoord().getType());
  return success();
}

/// No result: the coordinate ends here.
LogicalResult ExpandOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor, SmallVectorImpl<Type> &) {
  return success();
}

/// The window's positions are clipped to the size of the coordinate.
LogicalResult UnfoldOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getCoord().getType());
  return success();
}

LogicalResult StrideOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  // C6
  return addCoordinate(
      context, getSize(adaptor.getCoord()).multiply(adaptor.getFactor()),
      location, "C6", types);
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location>,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  types.push_back(CoordType::get(context, adaptor.getSize()));
  return success();
}

LogicalResult ShareOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  types.assign(2, adaptor.getCoord().getType());
  return success();
}

//===----------------------------------------------------------------------===//
// Names of the printed values
//===----------------------------------------------------------------------===//

// One letter per primitive: %o outputs, %r reductions, %q and %m the halves of
// a merge, %u windows, and so on.
void OperatorOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    setName(argument, "o");
}

void SplitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "s");
}
void MergeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getQuotient(), "q");
  setName(getRemainder(), "m");
}
void ShiftOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "t");
}
void ExpandOp::getAsmResultNames(OpAsmSetValueNameFn) {}
void UnfoldOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "u");
}
void StrideOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "x");
}
void ReduceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "r");
}
void ShareOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getData(), "d");
  setName(getWeight(), "w");
}

//===----------------------------------------------------------------------===//
// PrimitiveOpInterface: parameters and what needs numbers
//===----------------------------------------------------------------------===//

// Sizes that the op names in its text, next to those of its results.
SmallVector<SizeAttr> MergeOp::getParameterSizes() { return {getBlock()}; }
SmallVector<SizeAttr> StrideOp::getParameterSizes() { return {getFactor()}; }
SmallVector<SizeAttr> UnfoldOp::getParameterSizes() {
  if (auto low = dyn_cast_or_null<SizeAttr>(getLowAttr()))
    return {low};
  return {};
}

LogicalResult
ShiftOp::verifyAtBinding(llvm::function_ref<int64_t(SizeAttr)> valueOf,
                         EmitErrorFn emitError) {
  // C3
  int64_t size = valueOf(getSize(getCoord()));
  int64_t amount = getAmount();
  if (amount == 0 || amount >= size || amount <= -size)
    return emitError() << "requires a shift amount d with 0 < |d| < " << size
                       << " (C3), got " << amount;
  return success();
}

/// Positions before the coordinate: floor(K/2) unless written, so that odd
/// windows are centred; K - 1 if causal.
int64_t UnfoldOp::getLowValue(llvm::function_ref<int64_t(SizeAttr)> valueOf) {
  Attribute low = getLowAttr();
  if (!low)
    return valueOf(getSize(getWindow())) / 2;
  if (isCausal())
    return valueOf(getSize(getWindow())) - 1;
  if (auto integer = dyn_cast<IntegerAttr>(low))
    return integer.getInt();
  return valueOf(cast<SizeAttr>(low));
}

LogicalResult
UnfoldOp::verifyAtBinding(llvm::function_ref<int64_t(SizeAttr)> valueOf,
                          EmitErrorFn emitError) {
  // C5
  int64_t window = valueOf(getSize(getWindow()));
  int64_t low = getLowValue(valueOf);
  if (low < 0 || low >= window)
    return emitError() << "requires 0 <= low < " << window << " (C5), got "
                       << low;
  return success();
}

//===----------------------------------------------------------------------===//
// PrimitiveOpInterface: top coordinates
//===----------------------------------------------------------------------===//

// [i, j] -> B*i + j, B being the size of j.
void SplitOp::getTopExpressions(ArrayRef<AffineExpr> bottoms,
                                SmallVectorImpl<AffineExpr> &tops, AffineExpr &,
                                int64_t &) {
  tops.push_back(bottoms[0] * getConcreteSize(getInner()) + bottoms[1]);
}

// i -> [i floordiv B, i mod B].
void MergeOp::getTopExpressions(ArrayRef<AffineExpr> bottoms,
                                SmallVectorImpl<AffineExpr> &tops, AffineExpr &,
                                int64_t &) {
  int64_t block = getConcreteSize(getRemainder());
  tops.push_back(bottoms[0].floorDiv(block));
  tops.push_back(bottoms[0] % block);
}

// `mod` of affine expressions is never negative, also for negative amounts.
void ShiftOp::getTopExpressions(ArrayRef<AffineExpr> bottoms,
                                SmallVectorImpl<AffineExpr> &tops, AffineExpr &,
                                int64_t &) {
  tops.push_back((bottoms[0] + int64_t(getAmount())) %
                 getConcreteSize(getCoord()));
}

void ExpandOp::getTopExpressions(ArrayRef<AffineExpr>,
                                 SmallVectorImpl<AffineExpr> &, AffineExpr &,
                                 int64_t &) {}

// [i, w] -> i + w - low, clipped: the only primitive whose points may not
// exist.
void UnfoldOp::getTopExpressions(ArrayRef<AffineExpr> bottoms,
                                 SmallVectorImpl<AffineExpr> &tops,
                                 AffineExpr &guard, int64_t &extent) {
  int64_t low =
      getLowValue([](SizeAttr size) { return *size.getConstantValue(); });
  // The point exists where 0 <= guard < extent.
  guard = bottoms[0] + bottoms[1] - low;
  extent = getConcreteSize(getCoord());
  tops.push_back(guard);
}

// i -> S*i: a coordinate of S*K positions of which every S-th is read.
void StrideOp::getTopExpressions(ArrayRef<AffineExpr> bottoms,
                                 SmallVectorImpl<AffineExpr> &tops,
                                 AffineExpr &, int64_t &) {
  tops.push_back(bottoms[0] * *getFactor().getConstantValue());
}

void ReduceOp::getTopExpressions(ArrayRef<AffineExpr>,
                                 SmallVectorImpl<AffineExpr> &, AffineExpr &,
                                 int64_t &) {
  llvm_unreachable("a reduction makes an iteration variable of its own");
}

// One coordinate for the data and one for a weight: the only way to use one
// twice.
void ShareOp::getTopExpressions(ArrayRef<AffineExpr> bottoms,
                                SmallVectorImpl<AffineExpr> &tops, AffineExpr &,
                                int64_t &) {
  tops.append(2, bottoms[0]);
}
