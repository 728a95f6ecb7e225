//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers in messages.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRAINING_NUMBERTEXT_H
#define LIB_TRAINING_NUMBERTEXT_H

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace kas::training {

/// `value` with six digits at most, as `%g` has it.
inline std::string toText(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

} // namespace kas::training

#endif // LIB_TRAINING_NUMBERTEXT_H
