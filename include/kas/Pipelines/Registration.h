//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers pipelines of modules by their textual options.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PIPELINES_REGISTRATION_H
#define KAS_PIPELINES_REGISTRATION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace kas {

/// Registers a pipeline whose passes run on modules. One that is nested in
/// another operation, as in `func.func(kas-cpu-pipeline)`, is an error of the
/// text; `mlir::PassPipelineRegistration` would end the process there.
template <typename Options>
void registerModulePipeline(llvm::StringRef name, llvm::StringRef description,
                            void (*build)(mlir::OpPassManager &,
                                          const Options &)) {
  mlir::registerPassPipeline(
      name, description,
      [name = name.str(),
       build](mlir::OpPassManager &manager, llvm::StringRef text,
              llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)> fail)
          -> llvm::LogicalResult {
        llvm::StringRef anchor = manager.getOpAnchorName();
        if (anchor != mlir::ModuleOp::getOperationName() &&
            anchor != mlir::OpPassManager::getAnyOpAnchorName())
          return fail("pipeline '" + name + "' requires '" +
                      mlir::ModuleOp::getOperationName() + "', got '" + anchor +
                      "'");
        Options options;
        if (failed(options.parseFromString(text)))
          return llvm::failure();
        build(manager, options);
        return llvm::success();
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)> visit) {
        visit(Options());
      });
}

} // namespace kas

#endif // KAS_PIPELINES_REGISTRATION_H
