//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values of affine expressions, apart from the product's own evaluation.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_AFFINEVALUE_H
#define KAS_TEST_LIB_AFFINEVALUE_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/ArrayRef.h"

namespace kas::test {

/// The value of `expr` where its dimensions are `dims` and its symbols
/// `symbols`, by integers alone.
int64_t getAffineValue(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> dims,
                       llvm::ArrayRef<int64_t> symbols = {});

} // namespace kas::test

#endif // KAS_TEST_LIB_AFFINEVALUE_H
