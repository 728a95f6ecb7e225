//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles, checks and times variants of a function on the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_FORKEDRUNNER_H
#define KAS_TUNING_FORKEDRUNNER_H

#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Tuning/KernelRunner.h"

namespace kas::tuning {

/// Measures a function that was compiled for the CPU, in turn with what the
/// cost model makes of it.
class ForkedRunner : public KernelRunner {
public:
  /// Compiles the function as it is and by plain loops. An error: one of them
  /// cannot be compiled, or they differ. The module must outlive this object.
  static llvm::Expected<std::unique_ptr<ForkedRunner>>
  create(mlir::ModuleOp module, llvm::StringRef function,
         const MeasureOptions &options);

private:
  using KernelRunner::KernelRunner;
  llvm::Error compareWithLoops();
  llvm::Expected<StoredMeasurement> compileAndTime(int64_t scale) override;

  mlir::ModuleOp module;
  std::string name;
  CPUPipelineOptions pipeline;
  std::unique_ptr<execution::CompiledFunction> unchanged;
};

} // namespace kas::tuning

#endif // KAS_TUNING_FORKEDRUNNER_H
