//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces former names in the text of options: options of their own would be
// in `--help` and in printed pipelines.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/FormerNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

kas::CurrentOptions kas::renameFormerOptions(llvm::StringRef options,
                                             llvm::ArrayRef<FormerName> names) {
  CurrentOptions result;
  while (!options.empty()) {
    size_t blanks = options.find_first_not_of(' ');
    result.text += options.take_front(blanks);
    options = options.drop_front(std::min(blanks, options.size()));
    llvm::StringRef option =
        options.take_until([](char c) { return c == ' '; });
    options = options.drop_front(option.size());
    llvm::StringRef name = option.split('=').first;
    const auto *found = llvm::find_if(
        names, [&](const FormerName &each) { return each.former == name; });
    if (found != names.end()) {
      result.text += found->current;
      option = option.drop_front(name.size());
      result.note =
          ("the option '" + name + "' is now called '" + found->current + "'")
              .str();
    }
    result.text += option;
  }
  return result;
}
