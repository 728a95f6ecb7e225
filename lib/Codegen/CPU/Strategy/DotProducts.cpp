//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matches products of int8, i16 or bf16 that dot-product instructions (VNNI,
// VPMADDWD, DPBF16) compute, and finds the reduction whose elements fill a
// 32-bit group.
//
//===----------------------------------------------------------------------===//

#include "DotProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

std::optional<DotProduct> DotProduct::match(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || !hasContractionBody(op))
    return std::nullopt;
  DotProduct product;
  product.element = getElementTypeOrSelf(op.getDpsInputOperand(0)->get());
  Type sum = getElementTypeOrSelf(op.getDpsInitOperand(0)->get());
  bool isOfIntegers = product.isOfInt8() || product.isOfInt16();
  if (!(isOfIntegers && sum.isInteger(32)) &&
      !(product.element.isBF16() && sum.isF32()))
    return std::nullopt;
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (getElementTypeOrSelf(input->get()) != product.element)
      return std::nullopt;
    BlockArgument argument = op.getMatchingBlockArgument(input);
    if (!argument.hasOneUse())
      return std::nullopt;
    Operation *widened = *argument.user_begin();
    if (!isa<arith::ExtUIOp, arith::ExtSIOp, arith::ExtFOp>(widened) ||
        widened->getResult(0).getType() != sum)
      return std::nullopt;
    product.isUnsigned[input->getOperandNumber()] =
        isa<arith::ExtUIOp>(widened);
    // Instructions are for signed ones alone.
    if (product.isOfInt16() && isa<arith::ExtUIOp>(widened))
      return std::nullopt;
  }
  return product;
}

//===----------------------------------------------------------------------===//
// VNNI groups
//===----------------------------------------------------------------------===//

/// Whether `loop` alone is the index of one dimension, and of no other part.
static bool isDimension(ArrayRef<AffineExpr> indices, unsigned loop) {
  unsigned alone = 0;
  for (AffineExpr expr : indices) {
    if (!expr.isFunctionOfDim(loop))
      continue;
    if (!isa<AffineDimExpr>(expr))
      return false;
    ++alone;
  }
  return alone == 1;
}

std::optional<unsigned> kas::codegen::findVNNILoop(linalg::LinalgOp op,
                                                   int64_t size) {
  if (op.getNumDpsInputs() != 2)
    return std::nullopt;
  std::optional<unsigned> loop;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (map.getNumResults() == 0)
      return std::nullopt;
    auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
    if (!last || !isDimension(map.getResults(), last.getPosition()) ||
        (loop && *loop != last.getPosition()))
      return std::nullopt;
    loop = last.getPosition();
  }
  bool isWord =
      op.getStaticLoopRanges()[*loop] == size &&
      op.getIteratorTypesArray()[*loop] == utils::IteratorType::reduction;
  return isWord ? loop : std::nullopt;
}

std::optional<unsigned>
kas::codegen::chooseVNNILoop(const Contraction &contraction, int64_t size) {
  std::optional<unsigned> best;
  double bestPart = 0;
  for (auto [loop, entry] : llvm::enumerate(contraction.loops)) {
    int64_t extent = entry.extent;
    bool suits =
        entry.isReduction && extent > 1 &&
        llvm::all_of(contraction.inputs, [&](const Contraction::Input &input) {
          return isDimension(input.indices, loop);
        });
    double part = double(extent) / llvm::alignTo(extent, size);
    if (!suits ||
        (best && std::pair(part, extent) <=
                     std::pair(bestPart, contraction.loops[*best].extent)))
      continue;
    best = loop;
    bestPart = part;
  }
  return best;
}
