//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of mathematics that compiled code calls by name, beside those of
// the math dialect. They mean at the edges what PyTorch's functions of the same
// names do.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_EXECUTIONENGINE_SPECIALFUNCTIONS_H
#define KAS_LIB_EXECUTIONENGINE_SPECIALFUNCTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace kas::execution {

/// A function of floats, as its address.
struct SpecialFunction {
  llvm::StringRef name;
  void *address;
};

/// All of them, such as `kas_digamma`.
llvm::ArrayRef<SpecialFunction> getSpecialFunctions();

} // namespace kas::execution

#endif // KAS_LIB_EXECUTIONENGINE_SPECIALFUNCTIONS_H
