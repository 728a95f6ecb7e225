//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the passes on models.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_MODELS_PASSES_H
#define KAS_MODELS_PASSES_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace kas {

#define GEN_PASS_DECL
#include "kas/Models/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kas/Models/Passes.h.inc"

} // namespace kas

#endif // KAS_MODELS_PASSES_H
