//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which outputs the weights of an operator depend on.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_WEIGHTOUTPUTS_H
#define KAS_DIALECT_KAS_ANALYSIS_WEIGHTOUTPUTS_H

#include "kas/Dialect/Kas/IR/Kas.h"

namespace kas {

/// By weight: the output dimensions of `op`, in ascending order, of which some
/// coordinate of the weight is made. A weight that depends on a position of an
/// image (not only on its channels and on reductions) treats the same pattern
/// differently at different places: the operator is no convolution.
llvm::SmallVector<llvm::SmallVector<unsigned>> getWeightOutputs(OperatorOp op);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_WEIGHTOUTPUTS_H
