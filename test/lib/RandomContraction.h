//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random products of two tensors for tests of what matrix instructions
// compute, which few operators among all random ones are.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_RANDOMCONTRACTION_H
#define KAS_TEST_LIB_RANDOMCONTRACTION_H

#include "RandomOperator.h"

namespace kas::test {

/// Makes the contraction number `seed`, called `name`, at the builder's
/// insertion point: output coordinates of the data alone, of the weight alone
/// and of both, and reductions of both, one or two of each, in any order in
/// each of the three tensors, some of the data's as one dimension together or
/// cut in two. The innermost dimension of data and weight is the last
/// coordinate of its kind or the last reduction, a multiple of 8. At most
/// `maxProducts` products. The same seed gives the same operator on every
/// machine; sizes are numbers, so the binding is empty.
RandomOperator makeRandomContraction(mlir::OpBuilder &builder,
                                     llvm::StringRef name, uint64_t seed,
                                     int64_t maxProducts);

} // namespace kas::test

#endif // KAS_TEST_LIB_RANDOMCONTRACTION_H
