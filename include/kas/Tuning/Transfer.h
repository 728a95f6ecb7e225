//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Schedules of one kernel for another one of its class.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_TRANSFER_H
#define KAS_TUNING_TRANSFER_H

#include "kas/Codegen/CPU/ScheduleSpace.h"
#include "kas/Tuning/TuningDevice.h"

namespace kas::tuning {

struct AdaptedSchedule {
  ScheduleFit fit = ScheduleFit::Invalid;
  /// Null if it is invalid.
  CPUScheduleAttr schedule = nullptr;
};

/// The schedule of `space` that is nearest to `recorded`: the same strategy,
/// and, number by number (tile, depth, vectors, columns, rows), the number
/// itself if it divides its loop, else its largest divisor that does and is
/// larger than half of it, else the number itself with a last tile that is not
/// full, where that suits, else the largest number below that suits.
AdaptedSchedule adaptSchedule(CPUScheduleAttr recorded,
                              const codegen::ScheduleSpace &space);

} // namespace kas::tuning

#endif // KAS_TUNING_TRANSFER_H
