//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How fast this machine multiplies and copies at most: what shares are taken
// of.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_MACHINEROOF_H
#define KAS_EXECUTIONENGINE_MACHINEROOF_H

#include "kas/Support/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace kas::execution {

/// A module for `target` with a function `@peak`, of one tensor to another of
/// its type: a kernel of independent fused multiply-adds in registers of the
/// target's vectors. What it reaches is the peak of one thread, at the clock of
/// the moment. Null if it does not parse.
mlir::OwningOpRef<mlir::ModuleOp> makePeakModule(mlir::MLIRContext &context,
                                                 const Target &target);

/// Floating-point operations of one run, whatever the target: two per
/// multiply-add.
inline constexpr double peakFlops = 2.0 * 16 * 12 * 5000;

/// The roofs of a number of threads that all work at once.
struct MachineRoof {
  /// A copy of some bytes, read and written ones together.
  struct Copy {
    int64_t bytes = 0;
    double gigabytesPerSecond = 0;
  };

  unsigned threads = 1;
  double peakGflops = 0;
  /// From small copies, which stay in the caches, to large ones.
  std::vector<Copy> copies;

  /// Copies as fast as those of the measured sizes next to `bytes`.
  double getBandwidth(int64_t bytes) const;
  /// The least milliseconds for so much work: at the peak, or as fast as a copy
  /// of so many bytes, whatever takes longer.
  double getMilliseconds(int64_t flops, int64_t bytes) const;
};

/// Measures for some tenths of a second: the peak is that of code for `target`,
/// which must run here.
llvm::Expected<MachineRoof> measureMachineRoof(mlir::MLIRContext &context,
                                               const Target &target,
                                               unsigned threads);

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_MACHINEROOF_H
