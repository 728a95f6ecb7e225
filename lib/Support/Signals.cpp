//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets writes beyond the largest file size fail as on a full disk instead of
// ending the program.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Signals.h"
#include "llvm/Support/Signals.h"
#include <csignal>

/// Called by programs before they write results that may be large.
void kas::ignoreFileSizeSignal() {
  // Handlers are installed once: whoever asks for them later leaves this alone.
  // LLVM's handler treats SIGXFSZ as a crash. Asking for a function that does
  // nothing installs its handlers now, before the line below.
  llvm::sys::SetInterruptFunction(nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
}
