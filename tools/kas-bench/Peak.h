//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The most multiply-adds per second that one core of this machine can do.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KASBENCH_PEAK_H
#define KAS_TOOLS_KASBENCH_PEAK_H

#include "TimedFunction.h"
#include "kas/ExecutionEngine/MachineRoof.h"

namespace kas {

/// A kernel of independent fused multiply-adds in registers, compiled as kas
/// compiles operators for `names`, which must run here. What it reaches is the
/// peak that shares are taken of: of one thread, at the clock of the moment.
llvm::Expected<TimedFunction> compilePeak(mlir::MLIRContext &context,
                                          const TargetNames &names = {});

using execution::peakFlops;

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_PEAK_H
