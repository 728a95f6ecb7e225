//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Timing on a machine whose speed drifts: in turn with a kernel that never
// changes.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_REFERENCETIMING_H
#define KAS_EXECUTIONENGINE_REFERENCETIMING_H

#include "kas/ExecutionEngine/Timing.h"

namespace kas::execution {

/// Milliseconds that the reference kernel takes now: some 10^6 multiply-adds on
/// data in the first-level cache, about 0.1 ms.
double timeReferenceKernel();

/// Milliseconds that the reference kernel takes when nothing disturbs it: the
/// least of `runs`.
double calibrateReferenceKernel(int64_t runs = 100);

/// The median of `times[i] * nominal / r`, where r is the mean of
/// `references[i]` and `references[i + 1]`, measured before and after it: what
/// slows both down by the same factor cancels. There is one more reference than
/// times, and at least one time.
double getDriftFreeMedian(llvm::ArrayRef<double> times,
                          llvm::ArrayRef<double> references, double nominal);

/// Runs `function` in turn with the reference kernel and returns its
/// `getDriftFreeMedian` in milliseconds.
double measureAgainstReference(llvm::function_ref<void()> function,
                               double nominal,
                               const TimingOptions &options = {});

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_REFERENCETIMING_H
