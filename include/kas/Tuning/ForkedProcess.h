//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work that may crash or hang, in a process of its own.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_FORKEDPROCESS_H
#define KAS_TUNING_FORKEDPROCESS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace kas::tuning {

struct ProcessLimits {
  /// Seconds until the process counts as one that hangs.
  double seconds = 20;
  /// Bytes of address space; 0: no limit.
  uint64_t memory = 0;
};

/// Runs `work` in a process that is forked for it and returns its bytes, or its
/// error. Other errors: the process died, ended without an answer, or did not
/// end in time. What it prints is lost. This process must not use threads that
/// `work` needs.
llvm::Expected<std::string>
runForked(llvm::function_ref<llvm::Expected<std::string>()> work,
          const ProcessLimits &limits = {});

} // namespace kas::tuning

#endif // KAS_TUNING_FORKEDPROCESS_H
