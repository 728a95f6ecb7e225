//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the multiplications that stand for dropout in an exported network into
// `kas.dropout`. An exporter that keeps dropout (`kas.torch.to_mlir(...,
// dropout=True)`) leaves a multiplication by an argument, which is marked with
// the probability (docs/guide/gradients.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Training/Dropout.h"
#include "kas/Dialect/Kas/IR/KasNetworkOps.h"
#include "kas/Dialect/Kas/IR/TrainingAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

/// What the only use of `marker` multiplies by it; null where that is no
/// multiplication of all elements of one tensor.
/// An argument of rank 0 or of any shape that is broadcast.
/// For example, with the marker %m of rank 0:
///    %y = linalg.generic ins(%x, %m) { yield (x * m) }
/// becomes
///    %y = kas.dropout %x {probability = 0.5}
static OpOperand *getFactor(BlockArgument marker) {
  auto product = marker.hasOneUse()
                     ? dyn_cast<linalg::GenericOp>(*marker.getUsers().begin())
                     : nullptr;
  if (!product || product.getNumDpsInputs() != 2 ||
      product->getNumResults() != 1 || product.getNumReductionLoops() != 0)
    return nullptr;
  auto multiply = dyn_cast<arith::MulFOp>(product.getBody()->front());
  OpOperand *data =
      product.getDpsInputOperand(product.getDpsInputs()[0] == marker ? 1 : 0);
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  if (!multiply || product.getBody()->getOperations().size() != 2 ||
      multiply.getLhs() == multiply.getRhs() ||
      llvm::is_contained(multiply->getOperands(),
                         product.getBody()->getArguments().back()) ||
      maps[data->getOperandNumber()] != maps.back() ||
      !maps.back().isIdentity() ||
      data->get().getType() != product.getResult(0).getType())
    return nullptr;
  return data;
}

/// The marked arguments are removed; seeds and streams come with the training
/// step.
LogicalResult kas::networks::markDropouts(func::FuncOp function) {
  OpBuilder builder(function->getContext());
  llvm::BitVector erased(function.getNumArguments());
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto probability =
        function.getArgAttrOfType<FloatAttr>(index, dropoutAttrName);
    if (!probability)
      continue;
    BlockArgument marker = function.getArgument(index);
    OpOperand *data = getFactor(marker);
    if (!data)
      return function.emitError("requires arguments with '")
             << dropoutAttrName
             << "' that are used once, to multiply all elements of one tensor, "
                "got argument "
             << index;
    Operation *product = data->getOwner();
    builder.setInsertionPoint(product);
    auto dropout = DropoutOp::create(
        builder, product->getLoc(), data->get().getType(), data->get(),
        /*seed=*/Value(),
        builder.getF64FloatAttr(probability.getValueAsDouble()),
        /*stream=*/IntegerAttr());
    product->getResult(0).replaceAllUsesWith(dropout.getResult());
    product->erase();
    erased.set(index);
  }
  // All at once, so that positions stay those of the loop.
  return function.eraseArguments(erased);
}
