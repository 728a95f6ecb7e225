//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes that lower operations that kas's pipelines do not take.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_CODEGEN_COMMON_LOWERINGHINTS_H
#define KAS_LIB_CODEGEN_COMMON_LOWERINGHINTS_H

#include "mlir/IR/Operation.h"

namespace kas::codegen {

/// A clause such as "; -convert-shape-to-std lowers it", or nothing where no
/// pass is known.
std::string getLoweringHint(mlir::Operation *op);

} // namespace kas::codegen

#endif // KAS_LIB_CODEGEN_COMMON_LOWERINGHINTS_H
