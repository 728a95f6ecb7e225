//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Formulas as text in SMT-LIB.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_RULEEXPORT_H
#define KAS_TEST_LIB_RULEEXPORT_H

#include "RuleFormula.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kas::test {

/// The formula as ops of the dialect `smt`, which must be loaded: one
/// `smt.check` for each claim, those of the first section first, which finds
/// whether its negation can be satisfied.
mlir::OwningOpRef<mlir::ModuleOp> getSolver(const Formula &formula,
                                            mlir::MLIRContext &context);

/// The same as text in SMT-LIB, after a comment with the name of each claim.
mlir::LogicalResult exportFormula(const Formula &formula,
                                  mlir::MLIRContext &context,
                                  llvm::raw_ostream &os);

} // namespace kas::test

#endif // KAS_TEST_LIB_RULEEXPORT_H
