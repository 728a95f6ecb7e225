//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Former names of the options of GPU pipelines.
// The options of a pipeline are one text of `key=value` with blanks between
// them; only a key is renamed, never a value or the end of another key.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Options.h"

std::string kas::codegen::renameFormerOptions(llvm::StringRef options) {
  constexpr llvm::StringLiteral former = "road=", current = "strategy=";
  std::string text;
  // Whether the next character begins a key.
  bool isStart = true;
  while (!options.empty()) {
    if (isStart && options.consume_front(former))
      text += current;
    if (options.empty())
      break;
    isStart = options.front() == ' ';
    text += options.front();
    options = options.drop_front();
  }
  return text;
}
