//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The messages of assertions that fail in programs.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_CODEGEN_COMMON_ASSERTIONS_H
#define KAS_CODEGEN_COMMON_ASSERTIONS_H

#include "mlir/IR/Location.h"
#include <string>

namespace kas::codegen {

/// "model.mlir:12:3: MESSAGE": the place in the model where the assertion with
/// `message` is, that is the first one of a file in `location`, and what it
/// says. Without a known place: the message alone.
std::string getAssertionText(mlir::Location location, llvm::StringRef message);

} // namespace kas::codegen

#endif // KAS_CODEGEN_COMMON_ASSERTIONS_H
