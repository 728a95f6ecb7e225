//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Failures whose reason is reported to the caller, who decides whether it is an
// error, a remark or nothing.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_REASON_H
#define KAS_SUPPORT_REASON_H

#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace kas {

/// Stores what the arguments print to in `reason`.
template <typename... Parts>
llvm::LogicalResult miss(std::string &reason, Parts &&...parts) {
  reason.clear();
  llvm::raw_string_ostream os(reason);
  (os << ... << parts);
  return llvm::failure();
}

} // namespace kas

#endif // KAS_SUPPORT_REASON_H
