//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The devices of kas-rt, as what schedules are measured on.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_GPU_GPUTUNINGDEVICE_H
#define KAS_TUNING_GPU_GPUTUNINGDEVICE_H

#include "kas/Tuning/TuningDevice.h"

namespace kas::tuning {

/// The device called `name`: `vulkan`, `cuda`, `cuda:1`, ... An error: it
/// cannot be opened.
llvm::Expected<std::unique_ptr<TuningDevice>>
makeGPUTuningDevice(llvm::StringRef name);

} // namespace kas::tuning

#endif // KAS_TUNING_GPU_GPUTUNINGDEVICE_H
