//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an operator does along an axis: which positions it reads, which
// translations move its output, whether its weights fit other grids.
// docs/reference/properties.md has the definitions.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_AXISPROPERTIES_H
#define KAS_DIALECT_KAS_ANALYSIS_AXISPROPERTIES_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/IR/SpaceAxes.h"

namespace kas {

/// The axes of an operator, by the rule for spaces. Where no dimension is
/// marked `unordered`, the second one of the output and of the data are
/// channels.
llvm::SmallVector<SpaceAxis> getOperatorAxes(OperatorOp op);

struct AxisProperties {
  /// Positions of the data along the axis.
  int64_t size = 1;
  /// How many of them an element of the output reads, at least and at most.
  int64_t fewestRead = 0, mostRead = 0;
  Translations translations = Translations::None;

  /// A global receptive field: each element reads all positions.
  bool readsAll() const { return fewestRead == size; }
};

/// Along dimension `output` of the output and `input` of the data of a concrete
/// operator. Exact, at all points of the loops that these dimensions depend on
/// and that depend on each other; fails where these are more than 2^22. With a
/// maximum, `translations` looks for the same terms in the same order, which is
/// sufficient. `input` is a multiple of `output`: they are an axis.
llvm::FailureOr<AxisProperties> getAxisProperties(OperatorOp op,
                                                  unsigned output,
                                                  unsigned input,
                                                  EmitErrorFn emitError);

/// Whether weights that are trained on one grid fit any other: the axis has a
/// primary symbol, and no size of a weight has one of it.
bool fitsAnyGrid(OperatorOp op, const SpaceAxis &axis);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_AXISPROPERTIES_H
