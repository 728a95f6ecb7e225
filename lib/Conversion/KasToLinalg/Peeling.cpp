//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Peels the primitives of an operator off its tensors until a plain contraction
// remains, by views and pads that a `TensorRewriter` makes.
// The rules are a template (kas/Conversion/Peeling.h), of which this is the
// instance that emits tensor ops; the exporter to PyTorch writes text with it.
//
//===----------------------------------------------------------------------===//

#include "Peeling.h"

using namespace mlir;
using namespace kas;

FailureOr<StageContraction> kas::peel(TensorRewriter &rewriter, OperatorOp op,
                                      Value data, ValueRange weights,
                                      bool isMax) {
  Peeler<TensorRewriter> peeler(rewriter, op, isMax);
  YieldOp yield = op.getYield();
  peeler.addOperand(LabelledTensor(data), yield.getData());
  for (auto [weight, coordinates] :
       llvm::zip_equal(weights, yield.getWeights()))
    peeler.addOperand(LabelledTensor(weight), coordinates);
  if (failed(peeler.peelAll()))
    return failure();
  return peeler.getContraction();
}
