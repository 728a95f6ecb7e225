//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names for what texts about operators mention.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TARGET_NAMES_H
#define LIB_TARGET_NAMES_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "llvm/ADT/MapVector.h"

namespace kas::target {

/// Names for the outputs and the reductions of `op`: an output is called like
/// a symbol of its size, in small letters, where there is one, else o0, o1,
/// ...; reductions are i, j, k, ... as far as these are free. None is the name
/// of a symbol.
llvm::MapVector<mlir::Value, std::string> nameLoops(OperatorOp op);

/// `W`, or `W1`, `W2`, ... where there are several.
std::string nameWeight(OperatorOp op, unsigned index);

enum class ExprSyntax { C, Python };

/// `expr` as code, dimension i being called `names[i]`. `ranges` are those of
/// the dimensions: C rounds down for values from 0 on only, so where a dividend
/// may be negative, `floordiv(a, b)` and `floormod(a, b)` are called there.
std::string printExpr(mlir::AffineExpr expr, llvm::ArrayRef<std::string> names,
                      llvm::ArrayRef<Interval> ranges, ExprSyntax syntax);

} // namespace kas::target

#endif // LIB_TARGET_NAMES_H
