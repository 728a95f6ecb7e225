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

void kas::ignoreFileSizeSignal() {
  // Handlers are installed once: whoever asks for them later leaves this alone.
  llvm::sys::SetInterruptFunction(nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
}
