//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strides output coordinates of an operator before anything else is done with
// them, so that every operator has a form for layers with a stride.
//
// A layer with stride s computes every s-th output of the same operator with
// stride 1: the output coordinate gets the size H/s, and a `kas.stride` by s
// below everything else gives the old coordinate back.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/StrideOutputs.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace kas;

namespace kas {
#define GEN_PASS_DEF_KASSTRIDEOUTPUTSPASS
#include "kas/Dialect/Kas/Transforms/Passes.h.inc"
} // namespace kas

/// A dimension twice would be strided twice.
static LogicalResult verifyDims(OperatorOp op, ArrayRef<int64_t> dims,
                                EmitErrorFn emitError) {
  int64_t rank = op.getOutputs().size();
  if (dims.empty())
    return emitError() << "requires output dimensions of '@" << op.getSymName()
                       << "', 0 to " << rank - 1 << ", got none";
  llvm::SmallSet<int64_t, 4> seen;
  for (int64_t dim : dims)
    if (dim < 0 || dim >= rank || !seen.insert(dim).second)
      return emitError() << "requires distinct output dimensions of '@"
                         << op.getSymName() << "', 0 to " << rank - 1
                         << ", got " << dim;
  return success();
}

LogicalResult kas::strideOutputs(OperatorOp op, ArrayRef<int64_t> dims,
                                 StringRef symbol, EmitErrorFn emitError) {
  auto isSymbol = [&](Attribute name) {
    return cast<StringAttr>(name) == symbol;
  };
  if (llvm::any_of(op.getPrimaries(), isSymbol) ||
      llvm::any_of(op.getCoefficients(), isSymbol))
    return emitError() << "requires a symbol that '@" << op.getSymName()
                       << "' does not have, got '" << symbol << "'";
  if (failed(verifyDims(op, dims, emitError)))
    return failure();
  OpBuilder builder = OpBuilder::atBlockBegin(&op.getBody().front());
  SizeAttr factor = SizeAttr::getSymbol(builder.getContext(), symbol);
  for (int64_t dim : dims) {
    BlockArgument output = op.getOutputs()[dim];
    // `H/s` is a legal size: s is a coefficient.
    SizeAttr few = getSize(output).divide(factor);
    output.setType(CoordType::get(builder.getContext(), few));
    auto stride = StrideOp::create(builder, op.getLoc(), output, factor);
    output.replaceAllUsesExcept(stride.getResult(), stride);
  }
  SmallVector<Attribute> coefficients(op.getCoefficients().getValue());
  coefficients.push_back(builder.getStringAttr(symbol));
  op.setCoefficientsAttr(builder.getArrayAttr(coefficients));
  return success();
}

namespace {
struct KasStrideOutputsPass
    : public kas::impl::KasStrideOutputsPassBase<KasStrideOutputsPass> {
  using KasStrideOutputsPassBase::KasStrideOutputsPassBase;

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](OperatorOp op) {
      if (failed(strideOutputs(op, dims, symbol,
                               [&] { return op.emitOpError(); })))
        return WalkResult::interrupt();
      // The body has primitives only.
      return WalkResult::skip();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
