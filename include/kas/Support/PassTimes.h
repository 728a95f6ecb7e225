//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When passes ran, and how long.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_PASSTIMES_H
#define KAS_SUPPORT_PASSTIMES_H

#include "mlir/Pass/PassManager.h"
#include <mutex>
#include <string>
#include <vector>

namespace kas {

/// One run of a pass, or of another step of a compilation, in seconds of the
/// monotonic clock.
struct PassRun {
  std::string name;
  double begin = 0, end = 0;
};

/// Collects runs of passes, of several pass managers on any threads. Must
/// outlive them.
class PassTimes {
public:
  /// Notes all passes of `manager`, by the names of their options.
  void observe(mlir::PassManager &manager);
  void add(PassRun run);

  /// All runs so far, by the times when they began.
  std::vector<PassRun> getRuns() const;

private:
  mutable std::mutex mutex;
  std::vector<PassRun> runs;
};

} // namespace kas

#endif // KAS_SUPPORT_PASSTIMES_H
