//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `--version` prints, and the error of builds without GPUs.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Version.h"
#include "kas/Support/Features.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

const char *kas::getVersion() { return KAS_VERSION; }

void kas::addVersionPrinter() {
  llvm::cl::AddExtraVersionPrinter([](llvm::raw_ostream &os) {
    os << "\nkas version " << getVersion() << "\n  GPUs: "
       << (KAS_ENABLE_GPU ? "built in" : "left out (KAS_ENABLE_GPU=OFF)")
       << '\n';
  });
}

llvm::Error kas::requireGPU(const llvm::Twine &what) {
  if (KAS_ENABLE_GPU)
    return llvm::Error::success();
  return llvm::createStringError(
      what + " requires a kas built with KAS_ENABLE_GPU=ON, got one built "
             "without");
}
