//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs lowered functions op by op, wrong ones too: it checks each access.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_CONVERSION_LOWEREDEVALUATOR_H
#define KAS_TEST_UNITTESTS_CONVERSION_LOWEREDEVALUATOR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <vector>

namespace kas::test {

/// The result of `function`, of affine loops, arith, linalg and tensor ops and
/// concrete operators, on `inputs`, in double precision. Elements that nothing
/// has written are NaN. Nothing when an access is out of bounds.
std::optional<std::vector<double>>
evaluateLowered(mlir::func::FuncOp function,
                llvm::ArrayRef<std::vector<float>> inputs);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_CONVERSION_LOWEREDEVALUATOR_H
