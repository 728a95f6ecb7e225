//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A compiled function with arguments of its own, to be run again and again.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KASBENCH_TIMEDFUNCTION_H
#define KAS_TOOLS_KASBENCH_TIMEDFUNCTION_H

#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"

namespace kas {

class TimedFunction {
public:
  /// The function `name` of `module` on random arguments, its weights prepacked
  /// if `pipeline` says so. It ran once.
  static llvm::Expected<TimedFunction>
  compile(mlir::ModuleOp module, llvm::StringRef name,
          const CPUPipelineOptions &pipeline);

  void run() { llvm::cantFail(function(arguments, results)); }

private:
  TimedFunction(execution::CompiledFunction function,
                llvm::SmallVector<execution::Tensor> arguments,
                llvm::SmallVector<execution::Tensor> results)
      : function(std::move(function)), arguments(std::move(arguments)),
        results(std::move(results)) {}

  execution::CompiledFunction function;
  llvm::SmallVector<execution::Tensor> arguments, results;
};

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_TIMEDFUNCTION_H
