//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text of `--version`, and the error of builds without GPUs.
// Programs without GPU code refuse GPU options by name instead of not knowing
// them.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Version.h"
#include "kas/Support/Features.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

/// Set by CMake from the project's version.
const char *kas::getVersion() { return KAS_VERSION; }

/// LLVM's own lines come first; which parts were built in answers most reports
/// of options that a program does not know.
void kas::addVersionPrinter() {
  llvm::cl::AddExtraVersionPrinter([](llvm::raw_ostream &os) {
    os << "\nkas version " << getVersion() << "\n  GPUs: "
       << (KAS_ENABLE_GPU ? "built in" : "left out (KAS_ENABLE_GPU=OFF)")
       << '\n';
  });
}

llvm::Error kas::requireGPU(const llvm::Twine &what) {
  // A constant, so that the compiler drops the code of GPUs after this check.
  if (KAS_ENABLE_GPU)
    return llvm::Error::success();
  return llvm::createStringError(
      what + " requires a kas built with KAS_ENABLE_GPU=ON, got one built "
             "without");
}
