//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How `kas.apply` bufferizes: it reads its operands and writes a new buffer.
// One-shot bufferization then needs no pass before it: an apply that is still
// there becomes the loops of `-kas-to-affine`
// (docs/internals/code-generation.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/KasToAffine.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace kas;

namespace {
/// Reads all operands and makes its result in a new buffer.
struct ApplyOpInterface
    : public BufferizableOpInterface::ExternalModel<ApplyOpInterface, ApplyOp> {
  bool bufferizesToAllocation(Operation *, Value) const { return true; }
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  /// No operand is overwritten: an output element is read from many inputs.
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  /// The result shares no buffer with an operand.
  AliasingValueList getAliasingValues(Operation *, OpOperand &,
                                      const AnalysisState &) const {
    return {};
  }

  LogicalResult bufferize(Operation *operation, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto apply = cast<ApplyOp>(operation);
    OperatorOp op = apply.getOperator();
    // Loop bounds are constants: symbols must be gone.
    if (!op || !op.isConcrete())
      return apply.emitOpError() << "requires a concrete operator (see "
                                    "-kas-specialize), got '@"
                                 << apply.getCallee() << "'";
    SmallVector<Value> inputs;
    for (Value tensor : apply->getOperands()) {
      FailureOr<Value> buffer = getBuffer(rewriter, tensor, options, state);
      if (failed(buffer))
        return failure();
      inputs.push_back(*buffer);
    }
    auto type = cast<MemRefType>(getMemRefTypeWithStaticIdentityLayout(
        cast<TensorType>(apply.getResult().getType())));
    FailureOr<Value> output =
        options.createAlloc(rewriter, apply.getLoc(), type, {});
    if (failed(output))
      return failure();
    emitAffineLoops(rewriter, apply.getLoc(), getCoordinates(op), inputs,
                    *output);
    replaceOpWithBufferizedValues(rewriter, operation, *output);
    return success();
  }
};
} // namespace

void kas::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KasDialect *) {
    ApplyOp::attachInterface<ApplyOpInterface>(*context);
    // `bufferize` makes ops of these, and may not load dialects itself, since
    // passes run in several threads.
    context->loadDialect<affine::AffineDialect, arith::ArithDialect,
                         memref::MemRefDialect>();
  });
}
