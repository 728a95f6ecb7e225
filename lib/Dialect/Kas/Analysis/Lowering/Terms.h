//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values as sums and maxima of products of tensor elements, with affine
// conditions and indices: the form in which operators and lowered code are
// compared.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_TERMS_H
#define KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_TERMS_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Value.h"

namespace kas::lowering {

/// `expr >= 0`, or `expr == 0`.
struct Constraint {
  mlir::AffineExpr expr;
  bool isEquality = false;
};

/// The points at which all constraints hold.
using Conditions = llvm::SmallVector<Constraint>;

/// A reduction over 0 <= dimension < extent.
struct Loop {
  unsigned dim;
  int64_t extent;
  bool isMax;
};

/// An element of a tensor.
struct Factor {
  mlir::Value tensor;
  llvm::SmallVector<mlir::AffineExpr> indices;
};

/// The reductions `loops`, the outermost first, over the product of `scale` and
/// `factors`, at the points of `where`. A reduction without points is no point
/// of the one outside.
struct Term {
  llvm::SmallVector<Loop> loops;
  Conditions where;
  llvm::SmallVector<Factor> factors;
  double scale = 1;
  /// What a term without points is: zero, or minus infinity.
  bool isZeroWhereEmpty = true;
};

/// A value: `accumulator`, if any, plus all terms.
struct Terms {
  mlir::Value accumulator;
  llvm::SmallVector<Term> terms;
  /// Where minus infinity is added, and where nothing has defined the value.
  llvm::SmallVector<Conditions> lowest, undefined;
  /// Some terms are zero in one place and minus infinity in another where they
  /// have no points, which `isZeroWhereEmpty` cannot say.
  bool isMixed = false;
};

/// The dimensions of the expressions, each from 0 to its extent.
struct Dims {
  llvm::SmallVector<Interval> ranges;

  unsigned add(int64_t extent) {
    ranges.push_back({0, extent - 1});
    return ranges.size() - 1;
  }
};

/// Adds a constraint unless the ranges of `dims` imply it. False when they
/// exclude it.
bool addConstraint(Conditions &region, Constraint constraint, const Dims &dims);

/// Adds 0 <= expr < extent. False when the ranges exclude it.
bool addBounds(Conditions &region, mlir::AffineExpr expr, int64_t extent,
               const Dims &dims);

/// Adds all constraints of `other`. False when the ranges exclude one.
bool addConditions(Conditions &region, const Conditions &other,
                   const Dims &dims);

/// The points outside of `region`, as regions that have none in common.
llvm::SmallVector<Conditions> getComplement(const Conditions &region,
                                            const Dims &dims);

/// `value` in `region`; zero and defined elsewhere.
Terms restrictTo(Terms value, const Conditions &region, const Dims &dims);

/// Adds the terms of `from` to `to`; the accumulator of `from` goes away.
void addTerms(Terms &to, Terms from);

/// The product of two values without accumulators. Fails where it is not a sum
/// of terms: for a maximum times something else than a positive constant.
llvm::FailureOr<Terms> multiply(const Terms &left, const Terms &right,
                                const Dims &dims);

/// Drops terms and regions without points when there are many of them.
void dropEmpty(Terms &value, const Dims &dims);

/// Whether `expr` mentions a dimension of `loops`.
bool mentions(mlir::AffineExpr expr, llvm::ArrayRef<Loop> loops);

/// The expression of the row-major position of `indices` in `shape`, and the
/// indices of a position.
mlir::AffineExpr linearize(llvm::ArrayRef<mlir::AffineExpr> indices,
                           llvm::ArrayRef<int64_t> shape,
                           mlir::MLIRContext *context);
llvm::SmallVector<mlir::AffineExpr> delinearize(mlir::AffineExpr position,
                                                llvm::ArrayRef<int64_t> shape);

/// A point at which all constraints hold, with a value for each dimension that
/// they mention and 0 for others; nothing when there is none.
std::optional<llvm::SmallVector<int64_t>> findPoint(const Conditions &region,
                                                    const Dims &dims);

/// A point of `region` that is in none of `parts`.
std::optional<llvm::SmallVector<int64_t>>
findUncovered(const Conditions &region, llvm::ArrayRef<Conditions> parts,
              const Dims &dims);

/// `expr` at `point`, which has a value for each dimension.
int64_t evaluateAt(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> point);

/// Whether `point` is in `region`.
bool contains(const Conditions &region, llvm::ArrayRef<int64_t> point);

/// The term of a concrete operator, from its primitives as they are: nothing is
/// simplified. `dims` has the outputs, then gets the reductions. Factors have
/// the tensors `inputs`.
Term getOperatorTerm(OperatorOp op, mlir::ValueRange inputs,
                     llvm::ArrayRef<mlir::AffineExpr> outputs, Dims &dims);

} // namespace kas::lowering

#endif // KAS_LIB_DIALECT_KAS_ANALYSIS_LOWERING_TERMS_H
