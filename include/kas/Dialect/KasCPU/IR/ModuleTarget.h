//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The target of a module, as its attributes.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KASCPU_IR_MODULETARGET_H
#define KAS_DIALECT_KASCPU_IR_MODULETARGET_H

#include "kas/Support/Target.h"
#include "llvm/Support/LogicalResult.h"
#include <optional>

namespace mlir {
class ModuleOp;
class Operation;
} // namespace mlir

namespace kas {

/// Writes `target` to attributes of `module`: its names as upstream's
/// `llvm.target`, registers and caches as `dlti.target_system_spec` with the
/// device `"CPU"`, where they can be read and changed. The dialects `llvm` and
/// `dlti` must be loaded.
void setModuleTarget(mlir::ModuleOp module, const Target &target);

/// The target of the module that `op` is in, or is. Numbers that the module
/// does not give, or that no processor can have, are those of `Target` by
/// default; nothing if the module names no target.
std::optional<Target> getModuleTarget(mlir::Operation *op);

/// Fails, with an error, where a number of the module's target is none that a
/// processor can have.
llvm::LogicalResult verifyModuleTarget(mlir::ModuleOp module);

} // namespace kas

#endif // KAS_DIALECT_KASCPU_IR_MODULETARGET_H
