//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensor level of the kas dialect: kernels as graphs of tensors of symbolic
// shape. Apart from Kas.h, so that those who need only operators do not compile
// it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASDAG_H
#define KAS_DIALECT_KAS_IR_KASDAG_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Solver/SizeRules.h"

namespace kas {
class DagOutputOp;
class KernelOp;

/// `factor` times the product of `sizes`: one term of a cost.
struct SizeProduct {
  int64_t factor = 1;
  llvm::SmallVector<SizeAttr> sizes;
};
} // namespace kas

#include "kas/Dialect/Kas/IR/KasDagEnums.h.inc"
#include "kas/Dialect/Kas/IR/KasDagInterfaces.h.inc"

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/IR/KasDagOps.h.inc"

namespace kas {

/// The product of `sizes`, or null when it does not fit.
SizeAttr getProduct(mlir::MLIRContext *context, llvm::ArrayRef<SizeAttr> sizes);

/// What a verified kernel says about its symbols. The variables of a solved
/// kernel are ordinary symbols.
solver::SizeRules getSizeRules(KernelOp kernel);

/// The shape of a tensor of a verified kernel, over its symbols.
solver::TensorShape getShape(mlir::Value tensor, const SymbolSet &symbols);

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_KASDAG_H
