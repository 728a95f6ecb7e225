//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds epilogues. Elementwise operations have been fused with each other
// before (`-kas-gpu-form-kernels`), so there is one after a kernel, if any. A
// result that has another reader, such as a sum that is also a residual, must
// be in memory, and its readers are kernels of their own.
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"
#include "ContractionProblem.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

ArrayRef<int64_t> Epilogue::getShape() const {
  return cast<ShapedType>(op->getResultTypes().front()).getShape();
}

/// Types that sums are in, and that kernels of operators store.
static bool isRounded(Value value) {
  return isa<Float32Type, Float16Type, BFloat16Type>(
      getElementTypeOrSelf(value.getType()));
}

/// Whether `op` is computed as a sum of products, on whose result types the
/// emitters rely.
static bool isProduct(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return !generic || isContraction(generic);
}

/// Whether `op` is a kernel that may have an epilogue.
static bool isReducing(Operation *op) {
  if (!op || op->getNumResults() != 1)
    return false;
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return generic.hasPureTensorSemantics() &&
           generic.getNumReductionLoops() != 0;
  return isa<ApplyOp>(op);
}

/// Whether `op` computes each element of one tensor by itself, and is no kernel
/// of its own by a schedule.
static bool isElementwise(linalg::GenericOp op) {
  if (op->hasAttr(KasGPUDialect::scheduleName) || op->getNumResults() != 1 ||
      !op.hasPureTensorSemantics() || op.getNumReductionLoops() != 0 ||
      op.hasIndexSemantics() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isPermutation())
    return false;
  for (Type type : op->getOperandTypes())
    if (auto shaped = dyn_cast<ShapedType>(type);
        shaped &&
        (!shaped.hasStaticShape() || !shaped.getElementType().isIntOrFloat()))
      return false;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  return captured.empty();
}

linalg::GenericOp kas::codegen::getOnlyReader(Value value) {
  linalg::GenericOp reader;
  SmallVector<Value> values{value};
  while (!values.empty())
    for (Operation *user : values.pop_back_val().getUsers()) {
      if (isTensorView(user)) {
        llvm::append_range(values, user->getResults());
        continue;
      }
      auto generic = dyn_cast<linalg::GenericOp>(user);
      if (!generic || (reader && generic != reader))
        return nullptr;
      reader = generic;
    }
  return reader;
}

/// `access` in terms of the result's coordinates.
static void replaceLoops(TensorAccess &access, linalg::GenericOp op) {
  MLIRContext *context = op.getContext();
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<AffineExpr> coordinates(op.getNumLoops());
  for (auto [coordinate, expr] : llvm::enumerate(map.getResults()))
    coordinates[cast<AffineDimExpr>(expr).getPosition()] =
        getAffineDimExpr(coordinate, context);
  for (AffineExpr &expr : access.indices)
    expr = expr.replaceDims(coordinates);
  for (Guard &guard : access.guards)
    guard.expr = guard.expr.replaceDims(coordinates);
}

/// Whether element by element is read where the result has it.
static bool isInOrder(const TensorAccess &access, ArrayRef<int64_t> shape) {
  auto type = dyn_cast<ShapedType>(access.source.getType());
  if (!type || !access.guards.empty() ||
      type.getNumElements() != ShapedType::getNumElements(shape))
    return false;
  MLIRContext *context = type.getContext();
  SmallVector<Interval> ranges;
  SmallVector<AffineExpr> coordinates;
  for (int64_t size : shape) {
    coordinates.push_back(getAffineDimExpr(ranges.size(), context));
    ranges.push_back({0, size - 1});
  }
  auto get = [&](ArrayRef<AffineExpr> indices, ArrayRef<int64_t> sizes) {
    return simplifyInRanges(linearize(indices, sizes, context), ranges);
  };
  return simplifyInRanges(get(access.indices, type.getShape()) -
                              get(coordinates, shape),
                          ranges) == 0;
}

/// What `op` reads, with the result of `kernel` as its sum; nothing where that
/// is read in another way as well.
static std::optional<Epilogue> getReads(linalg::GenericOp op,
                                        Operation *kernel) {
  Epilogue epilogue;
  epilogue.op = op;
  for (OpOperand &operand : op->getOpOperands()) {
    TensorAccess &access = epilogue.accesses.emplace_back();
    bool &isSum = epilogue.isSum.emplace_back(false);
    bool &isWhole = epilogue.isWhole.emplace_back(false);
    if (!op.payloadUsesValueFromOperand(&operand))
      continue;
    access = TensorAccess::get(operand);
    if (!access.source)
      continue;
    if (!isa<ShapedType>(access.source.getType()))
      return std::nullopt;
    replaceLoops(access, op);
    isWhole = isInOrder(access, epilogue.getShape());
    isSum = access.source.getDefiningOp() == kernel;
    if (isSum && !isWhole)
      return std::nullopt;
    if (!isSum && !llvm::is_contained(epilogue.inputs, access.source))
      epilogue.inputs.push_back(access.source);
  }
  if (!llvm::is_contained(epilogue.isSum, true))
    return std::nullopt;
  return epilogue;
}

/// Whether `kernel` could compute `op` for its results.
static std::optional<Epilogue> match(Operation *kernel, linalg::GenericOp op) {
  if (!isReducing(kernel) || kernel->getBlock() != op->getBlock() ||
      getOnlyReader(kernel->getResult(0)) != op)
    return std::nullopt;
  if (isProduct(kernel) &&
      !(isRounded(kernel->getResult(0)) && isRounded(op.getResult(0))))
    return std::nullopt;
  return getReads(op, kernel);
}

std::optional<Epilogue> Epilogue::get(Operation *kernel) {
  if (!isReducing(kernel))
    return std::nullopt;
  linalg::GenericOp op = getOnlyReader(kernel->getResult(0));
  if (!op || !isElementwise(op))
    return std::nullopt;
  std::optional<Epilogue> epilogue = match(kernel, op);
  if (!epilogue)
    return std::nullopt;
  // Others whose results it reads.
  auto isBetter = [](Operation *first, Operation *second) {
    if (isProduct(first) != isProduct(second))
      return isProduct(first);
    return second->isBeforeInBlock(first);
  };
  for (Value input : epilogue->inputs)
    if (Operation *other = input.getDefiningOp())
      if (match(other, op) && isBetter(other, kernel))
        return std::nullopt;
  return epilogue;
}
