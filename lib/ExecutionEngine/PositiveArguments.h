//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments that a function needs to be positive, such as running variances.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_EXECUTIONENGINE_POSITIVEARGUMENTS_H
#define LIB_EXECUTIONENGINE_POSITIVEARGUMENTS_H

#include "mlir/IR/Value.h"

namespace kas::execution {

/// Whether values of `argument`, a tensor, must be positive: followed through
/// copies, changes of shape and type, calls, and additions of positive
/// constants, it gets to a square root, to a power with a fraction as exponent,
/// or to an assertion that it is more than zero or not zero.
bool mustBePositive(mlir::Value argument);

} // namespace kas::execution

#endif // LIB_EXECUTIONENGINE_POSITIVEARGUMENTS_H
