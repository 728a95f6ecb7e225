//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Running passes where errors are values.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_RUNPASSES_H
#define KAS_SUPPORT_RUNPASSES_H

#include "kas/Support/PassTimes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

namespace kas {

/// Runs the passes on `module`. Where one fails the error is `failure`,
/// followed by what passes complained about, each with its location on a line.
/// `times` notes when they ran.
llvm::Error runPasses(mlir::ModuleOp module, llvm::StringRef failure,
                      llvm::function_ref<void(mlir::OpPassManager &)> addPasses,
                      PassTimes *times = nullptr);

} // namespace kas

#endif // KAS_SUPPORT_RUNPASSES_H
