//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions: the one form of operators and of linalg operations that
// code generation for CPUs and GPUs and the search for layers begin with.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_CONTRACTION_H
#define KAS_DIALECT_KAS_ANALYSIS_CONTRACTION_H

#include "kas/Dialect/Kas/Analysis/Coordinates.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace kas {

/// At each point of the loops at which all guards hold, `factor` times the
/// product of one element of each input is added to an element of the output.
struct Contraction {
  /// 0 <= value < extent.
  struct Loop {
    int64_t extent;
    bool isReduction;
  };
  struct Input {
    /// A tensor, or the buffer of one.
    mlir::Value value;
    /// The index of each dimension.
    llvm::SmallVector<mlir::AffineExpr> indices;
  };

  using EmitReasonFn = llvm::function_ref<void(const llvm::Twine &)>;

  /// Loop i is dimension i of every expression.
  llvm::SmallVector<Loop> loops;
  /// The index of each dimension of the output: no loop occurs twice.
  llvm::SmallVector<mlir::AffineExpr> output;
  llvm::SmallVector<Input> inputs;
  llvm::SmallVector<Guard> guards;
  double factor = 1;

  /// What `op` adds to its output, its loops in their order, if it is a sum of
  /// products of at least two inputs; else why it is none. The element types
  /// are any; extents may be dynamic.
  static mlir::FailureOr<Contraction> match(mlir::linalg::LinalgOp op,
                                            EmitReasonFn emitReason);

  /// The operator with these coordinates, which sums, on the data and the
  /// weights. A loop that indices divide becomes two.
  static mlir::FailureOr<Contraction> match(const Coordinates &coordinates,
                                            mlir::ValueRange inputs,
                                            EmitReasonFn emitReason);

  /// Replaces each expression.
  void transform(llvm::function_ref<mlir::AffineExpr(mlir::AffineExpr)> map);

  /// The values that each loop takes.
  llvm::SmallVector<Interval> getRanges() const;
};

/// Whether the body of `op`, which has a reduction, one output and at least two
/// inputs, adds the product of all inputs, each once and perhaps widened, to
/// the output.
bool hasContractionBody(mlir::linalg::LinalgOp op);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_CONTRACTION_H
