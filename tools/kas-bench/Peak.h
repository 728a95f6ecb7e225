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

#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include <memory>

namespace kas {

/// A kernel of independent fused multiply-adds in registers, compiled for the
/// host as kas compiles operators. What it reaches is the peak that shares are
/// taken of: of one thread, at the clock of the moment.
class PeakKernel {
public:
  static llvm::Expected<PeakKernel> compile(mlir::MLIRContext &context);

  void run();
  /// Two per multiply-add.
  static constexpr double flops = 2.0 * 16 * 12 * 5000;

private:
  PeakKernel(execution::CompiledFunction function,
             llvm::SmallVector<execution::Tensor> arguments,
             llvm::SmallVector<execution::Tensor> results)
      : function(std::move(function)), arguments(std::move(arguments)),
        results(std::move(results)) {}

  execution::CompiledFunction function;
  llvm::SmallVector<execution::Tensor> arguments, results;
};

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_PEAK_H
