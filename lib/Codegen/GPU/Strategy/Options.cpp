//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Former names of the options of GPU pipelines.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Strategy/Options.h"
#include "kas/Support/FormerNames.h"

std::string kas::codegen::renameFormerOptions(llvm::StringRef options) {
  static constexpr FormerName names[] = {{"road", "strategy"}};
  return kas::renameFormerOptions(options, names).text;
}
