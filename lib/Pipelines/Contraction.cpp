//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace kas;
using namespace mlir;

/// Adds `factor * expr` to the coefficients of the dimensions and the constant.
/// False for anything that is not linear.
static bool addLinear(AffineExpr expr, int64_t factor,
                      MutableArrayRef<int64_t> coefficients,
                      int64_t &constant) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    coefficients[dim.getPosition()] += factor;
    return true;
  }
  if (auto value = dyn_cast<AffineConstantExpr>(expr)) {
    constant += factor * value.getValue();
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (binary.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), factor, coefficients, constant) &&
           addLinear(binary.getRHS(), factor, coefficients, constant);
  auto scale = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (binary.getKind() != AffineExprKind::Mul || !scale)
    return false;
  return addLinear(binary.getLHS(), factor * scale.getValue(), coefficients,
                   constant);
}

static FailureOr<StridedAccess> getAccess(Value buffer, AffineMap map) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  if (!type || !type.hasStaticShape() || !type.getElementType().isF32())
    return failure();
  SmallVector<int64_t> strides;
  StridedAccess access;
  if (failed(type.getStridesAndOffset(strides, access.base)) ||
      ShapedType::isDynamic(access.base) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return failure();
  access.buffer = buffer;
  access.strides.assign(map.getNumDims(), 0);
  access.size = access.base + 1;
  for (auto [stride, size, index] :
       llvm::zip_equal(strides, type.getShape(), map.getResults())) {
    access.size += stride * (size - 1);
    if (!addLinear(index, stride, access.strides, access.base))
      return failure();
  }
  return access;
}

/// The body adds a product of all inputs to the output and does nothing else.
static bool isSumOfProducts(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  auto sum = dyn_cast_or_null<arith::AddFOp>(
      body->getTerminator()->getOperand(0).getDefiningOp());
  if (!sum)
    return false;
  BlockArgument output = body->getArguments().back();
  Value product = sum.getLhs() == output   ? sum.getRhs()
                  : sum.getRhs() == output ? sum.getLhs()
                                           : Value();
  if (!product)
    return false;
  SmallVector<bool> seen(body->getNumArguments() - 1, false);
  SmallVector<Value> factors{product};
  while (!factors.empty()) {
    Value factor = factors.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(factor)) {
      if (argument == output || seen[argument.getArgNumber()])
        return false;
      seen[argument.getArgNumber()] = true;
      continue;
    }
    auto times = factor.getDefiningOp<arith::MulFOp>();
    if (!times || !times->hasOneUse())
      return false;
    factors.push_back(times.getLhs());
    factors.push_back(times.getRhs());
  }
  return !llvm::is_contained(seen, false);
}

/// Makes one loop of two neighbours that every buffer walks through as if they
/// were one: fewer loops, longer vectors.
static void mergeLoops(Contraction &contraction) {
  SmallVector<StridedAccess *> accesses{&contraction.output};
  for (StridedAccess &access : contraction.vectorInputs)
    accesses.push_back(&access);
  for (StridedAccess &access : contraction.scalarInputs)
    accesses.push_back(&access);
  auto &loops = contraction.loops;
  for (size_t i = 0; i + 1 < loops.size();) {
    bool merge = loops[i].isReduction == loops[i + 1].isReduction &&
                 llvm::all_of(accesses, [&](StridedAccess *access) {
                   return access->strides[i] ==
                          access->strides[i + 1] * loops[i + 1].extent;
                 });
    if (!merge) {
      ++i;
      continue;
    }
    loops[i + 1].extent *= loops[i].extent;
    loops.erase(loops.begin() + i);
    for (StridedAccess *access : accesses)
      access->strides.erase(access->strides.begin() + i);
  }
}

/// Loops of one iteration index nothing.
static void dropUnitLoops(Contraction &contraction,
                          SmallVectorImpl<StridedAccess> &inputs) {
  for (size_t i = contraction.loops.size(); i-- > 0;) {
    if (contraction.loops[i].extent != 1)
      continue;
    contraction.loops.erase(contraction.loops.begin() + i);
    contraction.output.strides.erase(contraction.output.strides.begin() + i);
    for (StridedAccess &input : inputs)
      input.strides.erase(input.strides.begin() + i);
  }
}

static bool stepsWith(ArrayRef<StridedAccess> accesses, unsigned dim) {
  return llvm::any_of(accesses, [&](const StridedAccess &access) {
    return access.strides[dim] != 0;
  });
}

static void classifyLoops(Contraction &contraction) {
  for (unsigned dim = 0; dim < contraction.loops.size(); ++dim) {
    bool scalar = stepsWith(contraction.scalarInputs, dim);
    bool vector = stepsWith(contraction.vectorInputs, dim);
    if (contraction.loops[dim].isReduction)
      contraction.reductions.push_back(dim);
    else if (scalar == vector)
      contraction.batches.push_back(dim);
    else
      (vector ? contraction.columns : contraction.rows).push_back(dim);
  }
  // Ties by position: the order must not depend on the sorting algorithm.
  llvm::sort(contraction.columns, [&](unsigned a, unsigned b) {
    return std::pair(-contraction.output.strides[a], a) <
           std::pair(-contraction.output.strides[b], b);
  });
  // The last row loop is the one that registers are blocked along.
  llvm::sort(contraction.rows, [&](unsigned a, unsigned b) {
    return std::pair(contraction.loops[a].extent, a) <
           std::pair(contraction.loops[b].extent, b);
  });
}

FailureOr<Contraction>
Contraction::match(linalg::LinalgOp op,
                   function_ref<void(const Twine &)> because) {
  auto fail = [&](const Twine &reason) {
    because(reason);
    return failure();
  };
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0 ||
      op.getNumDpsInputs() < 2)
    return fail("it is no reduction of at least two inputs to one output");
  if (!isSumOfProducts(op))
    return fail("its body is no sum of products");

  Contraction contraction;
  for (auto [extent, kind] :
       llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    contraction.loops.push_back(
        {extent, kind == utils::IteratorType::reduction});
  OpOperand *init = op.getDpsInitOperand(0);
  FailureOr<StridedAccess> output =
      getAccess(init->get(), op.getMatchingIndexingMap(init));
  if (failed(output) ||
      !op.getMatchingIndexingMap(init).isProjectedPermutation())
    return fail("its output is not strided");
  contraction.output = *output;
  SmallVector<StridedAccess> inputs;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    FailureOr<StridedAccess> access =
        getAccess(operand->get(), op.getMatchingIndexingMap(operand));
    if (failed(access))
      return fail("an input is not strided");
    inputs.push_back(*access);
  }
  dropUnitLoops(contraction, inputs);

  auto innermost = llvm::find(contraction.output.strides, 1);
  if (innermost == contraction.output.strides.end())
    return fail("no loop walks along the output's last dimension");
  unsigned vectorLoop = innermost - contraction.output.strides.begin();
  for (StridedAccess &input : inputs)
    (input.strides[vectorLoop] ? contraction.vectorInputs
                               : contraction.scalarInputs)
        .push_back(input);
  mergeLoops(contraction);
  classifyLoops(contraction);
  if (contraction.columns.empty() ||
      contraction.output.strides[contraction.columns.back()] != 1)
    return fail("all inputs step with the output's last dimension");
  if (contraction.reductions.empty())
    return fail("its reductions have one iteration");
  if (contraction.rows.empty())
    return fail("no input could be reused for several rows");
  return contraction;
}
