//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"

namespace kas {
#define GEN_PASS_DEF_BUFFERIZE
#include "kas/Pipelines/Passes.h.inc"
} // namespace kas

using namespace mlir;

namespace {

LogicalResult createCopy(OpBuilder &builder, Location loc, Value from,
                         Value to) {
  linalg::CopyOp::create(builder, loc, from, to);
  return success();
}

struct Bufferize : kas::impl::BufferizeBase<Bufferize> {
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

    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.setFunctionBoundaryTypeConversion(
        bufferization::LayoutMapOption::IdentityLayoutMap);
    options.memCpyFn = createCopy;
    bufferization::BufferizationState state;
    if (failed(
            bufferization::runOneShotModuleBufferize(module, options, state)))
      return signalPassFailure();

    bufferization::BufferResultsToOutParamsOpts results;
    results.memCpyFn = createCopy;
    results.hoistStaticAllocs = true;
    results.modifyPublicFunctions = true;
    if (failed(bufferization::promoteBufferResultsToOutParams(module, results)))
      return signalPassFailure();
  }
};

} // namespace
