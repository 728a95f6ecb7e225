//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operator that options of passes and tools name.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_NAMEDOPERATOR_H
#define KAS_DIALECT_KAS_IR_NAMEDOPERATOR_H

#include "kas/Dialect/Kas/IR/Kas.h"

namespace kas {

/// The operator `name` of the symbol table `root`, and the binding `bind`: what
/// the options `operator` and `bind` of a pass name. Reports what is not there.
mlir::FailureOr<std::pair<OperatorOp, Binding>>
getNamedOperator(mlir::Operation *root, llvm::StringRef name,
                 llvm::StringRef bind);

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_NAMEDOPERATOR_H
