//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SumOfProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// Counts the arguments of `body` that `value` is a product of; all of it may
/// be widened. False if it is something else.
static bool collectFactors(Value value, Block *body,
                           MutableArrayRef<unsigned> uses) {
  if (auto widened = value.getDefiningOp<arith::ExtFOp>())
    value = widened.getIn();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != body)
      return false;
    ++uses[argument.getArgNumber()];
    return true;
  }
  auto product = value.getDefiningOp<arith::MulFOp>();
  return product && collectFactors(product.getLhs(), body, uses) &&
         collectFactors(product.getRhs(), body, uses);
}

bool kas::codegen::isSumOfProducts(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0 ||
      op.getNumDpsInputs() < 2)
    return false;
  Block *body = op.getBlock();
  auto sum =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum)
    return false;
  BlockArgument output = body->getArguments().back();
  Value product = sum.getLhs() == output   ? sum.getRhs()
                  : sum.getRhs() == output ? sum.getLhs()
                                           : Value();
  SmallVector<unsigned> uses(body->getNumArguments());
  return product && collectFactors(product, body, uses) && uses.back() == 0 &&
         llvm::all_of(ArrayRef(uses).drop_back(),
                      [](unsigned count) { return count == 1; });
}
