//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/Passes.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace kas::codegen {
#define GEN_PASS_DEF_BUFFERIZE
#include "kas/Codegen/Common/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;

namespace {

LogicalResult createCopy(OpBuilder &builder, Location loc, Value from,
                         Value to) {
  linalg::CopyOp::create(builder, loc, from, to);
  return success();
}

/// Lets a function that returns one buffer twice return a copy of it: making
/// results arguments erases the allocation of each.
void separateResults(func::ReturnOp op) {
  OpBuilder builder(op);
  llvm::SmallPtrSet<Value, 8> seen;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type || !type.hasStaticShape() || seen.insert(operand.get()).second)
      continue;
    Value copy = memref::AllocOp::create(builder, op.getLoc(), type);
    linalg::CopyOp::create(builder, op.getLoc(), operand.get(), copy);
    operand.set(copy);
  }
}

/// Gives each operation that writes over a filled tensor one of its own: a
/// shared one would be filled once and copied for each, which takes longer.
void separateFills(linalg::FillOp fill) {
  if (!fill.hasPureTensorSemantics())
    return;
  Value tensor = fill.getResult(0);
  OpBuilder builder(fill->getContext());
  for (OpOperand &use : llvm::make_early_inc_range(tensor.getUses())) {
    auto writer = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
    if (tensor.hasOneUse() || !writer || !writer.isDpsInit(&use))
      continue;
    auto type = cast<RankedTensorType>(tensor.getType());
    if (!type.hasStaticShape())
      continue;
    builder.setInsertionPoint(writer);
    Value empty = tensor::EmptyOp::create(
        builder, fill.getLoc(), type.getShape(), type.getElementType());
    use.set(
        linalg::FillOp::create(builder, fill.getLoc(), fill.getInputs(), empty)
            .getResult(0));
  }
}

/// Gives what is made of weights alone, such as a transpose, a tensor of its
/// own: in a shared one the next weight would take its place, and neither
/// could be made ahead. Weights are the arguments after the data.
void separateWeights(func::FuncOp function) {
  if (function.isExternal() || function.getNumArguments() == 0)
    return;
  DenseSet<Value> weights;
  weights.insert_range(function.getArguments().drop_front());
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    SetVector<Value> values;
    getUsedValuesDefinedAbove(op.getRegions(), values);
    values.insert_range(op.getOperands());
    if (!isMemoryEffectFree(&op) ||
        !llvm::all_of(values, [&](Value v) { return weights.contains(v); }))
      continue;
    weights.insert_range(op.getResults());
    auto writer = dyn_cast<linalg::LinalgOp>(op);
    if (!writer || isa<linalg::FillOp>(op))
      continue;
    OpBuilder builder(&op);
    for (OpOperand &init : writer.getDpsInitsMutable()) {
      auto empty = init.get().getDefiningOp<tensor::EmptyOp>();
      if (empty && !empty->hasOneUse())
        init.set(builder.clone(*empty)->getResult(0));
    }
  }
}

/// Returns the buffer that is filled, in the shape of the result, and not a
/// view of it: that would be copied to where the caller wants the result.
void shapeResults(func::ReturnOp op) {
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands()) {
    // From the buffer to the last view.
    SmallVector<Operation *> views;
    Value source = operand.get();
    while (isa_and_nonnull<memref::ExpandShapeOp, memref::CollapseShapeOp>(
        source.getDefiningOp())) {
      views.push_back(source.getDefiningOp());
      source = views.back()->getOperand(0);
    }
    auto buffer = source.getDefiningOp<memref::AllocOp>();
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (views.empty() || !buffer || !type.hasStaticShape() ||
        !buffer.getType().hasStaticShape() || !type.getLayout().isIdentity() ||
        !buffer.getType().getLayout().isIdentity())
      continue;
    builder.setInsertionPoint(buffer);
    Value shaped = memref::AllocOp::create(builder, buffer.getLoc(), type,
                                           buffer.getAlignmentAttr());
    Value flat = memref::ReinterpretCastOp::create(
        builder, buffer.getLoc(), buffer.getType(), shaped, /*offset=*/0,
        buffer.getType().getShape(),
        buffer.getType().getStridesAndOffset().first);
    buffer.replaceAllUsesWith(flat);
    buffer.erase();
    operand.set(shaped);
  }
}

struct Bufferize : kas::codegen::impl::BufferizeBase<Bufferize> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // Callers keep their arguments; callees inside the module may reuse them.
    auto writable = StringAttr::get(
        &getContext(), bufferization::BufferizationDialect::kWritableAttrName);
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPublic() && !function.isExternal())
        for (unsigned i = 0; i < function.getNumArguments(); ++i)
          if (isa<TensorType>(function.getArgument(i).getType()))
            function.setArgAttr(i, writable,
                                BoolAttr::get(&getContext(), false));

    module.walk(separateFills);
    module.walk(separateWeights);
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.setFunctionBoundaryTypeConversion(
        bufferization::LayoutMapOption::IdentityLayoutMap);
    options.memCpyFn = createCopy;
    bufferization::BufferizationState state;
    if (failed(
            bufferization::runOneShotModuleBufferize(module, options, state)))
      return signalPassFailure();

    module.walk(separateResults);
    module.walk(shapeResults);
    bufferization::BufferResultsToOutParamsOpts results;
    results.memCpyFn = createCopy;
    results.hoistStaticAllocs = true;
    results.modifyPublicFunctions = true;
    if (failed(bufferization::promoteBufferResultsToOutParams(module, results)))
      return signalPassFailure();
  }
};

} // namespace
