//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small random mistakes in lowered functions.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_CONVERSION_LOWEREDMUTATION_H
#define KAS_TEST_UNITTESTS_CONVERSION_LOWEREDMUTATION_H

#include "kas/Support/Random.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace kas::test {

/// Changes one thing of a function in `module`: a number or an index of an
/// access, a bound of a loop, a condition, a padding, an offset, a constant, an
/// accumulation, a factor or a choice that goes away, a primitive of a stage.
/// Returns what, or nothing when the change drawn is not possible.
std::string mutateLowered(mlir::ModuleOp module, Random &random);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_CONVERSION_LOWEREDMUTATION_H
