//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The result of a call of the device runtime: success, or a code and a text.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_STATUS_H
#define LIB_RUNTIME_STATUS_H

#include "kas-rt/kas-rt.h"
#include <string>
#include <utility>

namespace kas::rt {

/// Like every text of an error, `text` is one line.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(KasRtStatus code, std::string text)
      : code(code), text(std::move(text)) {}

  bool isError() const { return code != KAS_RT_SUCCESS; }
  KasRtStatus getCode() const { return code; }
  const std::string &getText() const { return text; }

  /// The first error of two results that both count.
  Status &operator+=(Status other) {
    if (!isError())
      *this = std::move(other);
    return *this;
  }

private:
  KasRtStatus code = KAS_RT_SUCCESS;
  std::string text;
};

inline Status invalidArgument(std::string text) {
  return {KAS_RT_ERROR_INVALID_ARGUMENT, std::move(text)};
}

} // namespace kas::rt

#endif // LIB_RUNTIME_STATUS_H
