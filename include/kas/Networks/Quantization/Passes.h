//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_QUANTIZATION_PASSES_H
#define KAS_NETWORKS_QUANTIZATION_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"

namespace kas::networks {

#define GEN_PASS_DECL
#include "kas/Networks/Quantization/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kas/Networks/Quantization/Passes.h.inc"

} // namespace kas::networks

#endif // KAS_NETWORKS_QUANTIZATION_PASSES_H
