//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recognizes the epilogues that libraries have, and reads the two factors of
// kernels.
//
//===----------------------------------------------------------------------===//

#include "LibraryProblem.h"
#include "ContractionProblem.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// The epilogue
//===----------------------------------------------------------------------===//

namespace {

class EpilogueFinder {
public:
  EpilogueFinder(const Epilogue &epilogue, AffineExpr address,
                 AffineExpr biased, ArrayRef<Interval> ranges)
      : epilogue(epilogue), biased(biased), ranges(ranges),
        coordinates(delinearize(address, epilogue.getShape())) {}

  /// False where libraries have none like this.
  bool find();

  LibraryEpilogue result;

private:
  /// Takes all terms of `value`, a sum.
  bool addTerms(Value value);
  bool addArgument(BlockArgument argument);
  bool isBias(const TensorAccess &access) const;

  const Epilogue &epilogue;
  AffineExpr biased;
  ArrayRef<Interval> ranges;
  /// Of an element of the result, in terms of the library's dimensions.
  SmallVector<AffineExpr> coordinates;
  bool hasSum = false;
};

} // namespace

/// `value` before it was made wider.
static Value skipExtensions(Value value) {
  while (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  return value;
}

/// What a rectifier of the result takes, or null.
static Value getRectified(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return nullptr;
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op)) {
    for (unsigned i : {0, 1})
      if (matchPattern(op->getOperand(i), m_AnyZeroFloat()))
        return op->getOperand(1 - i);
    return nullptr;
  }
  auto select = dyn_cast<arith::SelectOp>(op);
  auto compare =
      select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : nullptr;
  using Predicate = arith::CmpFPredicate;
  if (compare &&
      llvm::is_contained(
          {Predicate::OGT, Predicate::OGE, Predicate::UGT, Predicate::UGE},
          compare.getPredicate()) &&
      compare.getLhs() == select.getTrueValue() &&
      matchPattern(compare.getRhs(), m_AnyZeroFloat()) &&
      matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
    return compare.getLhs();
  return nullptr;
}

// Read at one number, whatever the other dimensions are.
bool EpilogueFinder::isBias(const TensorAccess &access) const {
  auto type = cast<ShapedType>(access.source.getType());
  if (!access.guards.empty() || !biased)
    return false;
  AffineExpr address =
      linearize(access.indices, type.getShape(), type.getContext())
          .replaceDims(coordinates);
  return simplifyInRanges(address - biased, ranges) == 0;
}

bool EpilogueFinder::addArgument(BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  const TensorAccess &access = epilogue.accesses[number];
  if (epilogue.isSum[number])
    return !std::exchange(hasSum, true);
  // Both are added in the type of the result.
  if (!access.source || getElementTypeOrSelf(access.source.getType()) !=
                            getElementTypeOrSelf(epilogue.op->getResult(0)))
    return false;
  int64_t position = std::distance(epilogue.inputs.begin(),
                                   llvm::find(epilogue.inputs, access.source));
  // Of one row of a product both are the same.
  bool isFirstBias = result.bias == -1 && isBias(access);
  if (!isFirstBias && (result.residual != -1 || !epilogue.isWhole[number]))
    return false;
  (isFirstBias ? result.bias : result.residual) =
      LibraryProblem::numFactors + position;
  return true;
}

bool EpilogueFinder::addTerms(Value value) {
  value = skipExtensions(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return addArgument(argument);
  auto sum = value.getDefiningOp<arith::AddFOp>();
  return sum && addTerms(sum.getLhs()) && addTerms(sum.getRhs());
}

bool EpilogueFinder::find() {
  linalg::GenericOp op = epilogue.op;
  Operation *yield = op.getBody()->getTerminator();
  Value value = yield->getOperand(0);
  // The library rounds its results, too, after all else.
  if (auto rounding = value.getDefiningOp<arith::TruncFOp>())
    value = rounding.getIn();
  if (Value rectified = getRectified(value)) {
    result.isRectified = true;
    value = rectified;
  }
  return addTerms(value) && hasSum;
}

std::optional<LibraryEpilogue>
LibraryProblem::getEpilogue(AffineExpr address, AffineExpr biased,
                            ArrayRef<Interval> ranges) const {
  if (!epilogue)
    return LibraryEpilogue();
  EpilogueFinder finder(*epilogue, address, biased, ranges);
  if (!finder.find())
    return std::nullopt;
  return finder.result;
}

//===----------------------------------------------------------------------===//
// The factors
//===----------------------------------------------------------------------===//

/// What the kernel of `op` computes without its epilogue, and from what.
static std::optional<GPUKernelProblem> getProblem(Operation *op,
                                                  SmallVector<Value> &inputs) {
  if (auto apply = dyn_cast<ApplyOp>(op)) {
    inputs = apply->getOperands();
    return GPUKernelProblem::get(apply.getOperator());
  }
  auto contraction = ContractionProblem::get(cast<linalg::GenericOp>(op));
  if (!contraction)
    return std::nullopt;
  inputs = contraction->inputs;
  return std::move(contraction->problem);
}

static bool isFloat(Type type) {
  return isa<Float32Type, Float16Type, BFloat16Type>(type);
}

std::optional<LibraryProblem> LibraryProblem::get(Operation *op) {
  SmallVector<Value> inputs;
  std::optional<GPUKernelProblem> problem = getProblem(op, inputs);
  if (!problem || inputs.size() != numFactors ||
      problem->coordinates.getMeanDivisor() != 1)
    return std::nullopt;
  std::optional<Epilogue> epilogue = Epilogue::get(op);
  linalg::GenericOp last = epilogue ? epilogue->op : linalg::GenericOp();
  Type type = getElementTypeOrSelf(inputs[0]),
       resultType = getElementTypeOrSelf(
           (last ? last.getOperation() : op)->getResult(0));
  if (!isFloat(type) || getElementTypeOrSelf(inputs[1]) != type ||
      (!resultType.isF32() && resultType != type))
    return std::nullopt;
  return LibraryProblem{std::move(*problem), std::move(epilogue), type,
                        resultType};
}

//===----------------------------------------------------------------------===//
// Cycles
//===----------------------------------------------------------------------===//

// Sources: NVIDIA, "A100 Tensor Core GPU Architecture", 2020, and "H100 Tensor
// Core GPU Architecture", 2022.
double kas::codegen::getProductsPerCycle(GPUPrecision precision,
                                         GPUDeviceAttr device,
                                         int64_t factorBytes) {
  bool isFull = factorBytes == 4 && precision == GPUPrecision::F32;
  if (isFull || !hasMatrixInstructions(device))
    return 128;
  double halves = hasMatrixStores(device) ? 2048 : 1024;
  return factorBytes == 4 && precision == GPUPrecision::TF32 ? halves / 2
                                                             : halves;
}
