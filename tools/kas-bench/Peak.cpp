//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peak.h"

using namespace kas;

llvm::Expected<TimedFunction> kas::compilePeak(mlir::MLIRContext &context,
                                               const TargetNames &names) {
  auto target = getTarget(names);
  if (!target)
    return target.takeError();
  auto module = execution::makePeakModule(context, *target);
  if (!module)
    return llvm::createStringError("the kernel of the peak does not parse");
  return TimedFunction::compile(*module, "peak", {});
}
