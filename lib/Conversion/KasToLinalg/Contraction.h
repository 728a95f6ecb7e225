//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of labelled tensors, reduced: what is left of an operator once its
// primitives are gone; and the linalg ops for it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_CONVERSION_KASTOLINALG_CONTRACTION_H
#define KAS_LIB_CONVERSION_KASTOLINALG_CONTRACTION_H

#include "LabelledTensor.h"

namespace kas {

using StageContraction = BasicContraction<LabelledTensor>;

/// Emits one linalg op for `contraction`, before scaling, into `init`: a named
/// op when it is one and `namedOps` is set. The result has one dimension per
/// output.
mlir::Value emitContraction(mlir::ImplicitLocOpBuilder &b,
                            const StageContraction &contraction, bool namedOps);

/// The named linalg op that `contraction` is, into `init` (filled with the
/// neutral element), or null. Weights may be transposed for it.
mlir::Value emitNamedOp(mlir::ImplicitLocOpBuilder &b,
                        const StageContraction &contraction, mlir::Value init);

} // namespace kas

#endif // KAS_LIB_CONVERSION_KASTOLINALG_CONTRACTION_H
