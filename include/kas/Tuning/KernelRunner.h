//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What measures schedules.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_KERNELRUNNER_H
#define KAS_TUNING_KERNELRUNNER_H

#include "kas/ExecutionEngine/Tensor.h"
#include "kas/Tuning/TuningStore.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kas::tuning {

struct MeasureOptions {
  unsigned threads = 1;
  /// Seconds until a variant counts as one that hangs.
  double limitSeconds = 20;
  /// Runs, each after one of the function as it is.
  int64_t runs = 15;
  /// Bytes of address space of a worker; 0: no limit.
  uint64_t memoryLimit = 0;
  /// The largest error allowed, relative to the largest magnitude.
  double tolerance = 1e-4;
  /// Compare with plain loops; else with the function as it is, which saves
  /// their time where all kernels were compared before.
  bool plainLoops = true;
  uint64_t seed = 0;

  /// What a measurement of these options is called in a database.
  std::string getProtocol() const;
};

/// A function, its data, and what it must compute. Each variant runs in a
/// process that is forked for it: one that crashes or hangs is an outcome like
/// others. The context of the module must not use threads.
class KernelRunner {
public:
  virtual ~KernelRunner() = default;

  /// What becomes of the function when `change`, which runs in the other
  /// process, has changed the module. `scale` times as many runs as usual.
  StoredMeasurement measure(llvm::function_ref<void()> change,
                            int64_t scale = 1);

  /// Milliseconds of one run of plain loops; 0 if they were not requested.
  double getPlainMs() const { return plainMs; }

protected:
  explicit KernelRunner(const MeasureOptions &options) : options(options) {}

  /// Compiles the module as it is now, checks and times it; in the other
  /// process.
  virtual llvm::Expected<StoredMeasurement> compileAndTime(int64_t scale) = 0;
  /// The error of `results`; or a failure if it is not tolerated.
  llvm::Expected<double> check(llvm::ArrayRef<execution::Tensor> results) const;

  MeasureOptions options;
  llvm::SmallVector<execution::Tensor> arguments, expected;
  double plainMs = 0;
};

} // namespace kas::tuning

#endif // KAS_TUNING_KERNELRUNNER_H
