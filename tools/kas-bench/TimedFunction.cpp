//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TimedFunction.h"

using namespace kas;
using namespace kas::execution;

llvm::Expected<TimedFunction>
TimedFunction::compile(mlir::ModuleOp module, llvm::StringRef name,
                       const CPUPipelineOptions &pipeline) {
  auto function = compileForCPU(module, name, pipeline);
  if (!function)
    return function.takeError();
  auto arguments = function->getSignature().makeArguments({}, /*seed=*/0);
  if (!arguments)
    return arguments.takeError();
  auto results = function->getSignature().makeResults();
  if (!results)
    return results.takeError();
  if (llvm::Error error = function->prepack(*arguments))
    return error;
  TimedFunction timed(std::move(*function), std::move(*arguments),
                      std::move(*results));
  timed.run();
  return timed;
}
