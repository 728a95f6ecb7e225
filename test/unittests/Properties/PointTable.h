//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A second way to compute an operator, for tests of the reference evaluator and
// of specialization. It tabulates the product at every point of the iteration
// space first, with a mark where the point does not exist, and reduces the
// table axis by axis afterwards.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_PROPERTIES_POINTTABLE_H
#define KAS_TEST_UNITTESTS_PROPERTIES_POINTTABLE_H

#include "Properties.h"

namespace kas::test {

/// Evaluates `op`, symbolic or concrete, at `binding`: traverses its primitives
/// once per point.
std::vector<float> tabulate(OperatorOp op, const Binding &binding,
                            const Inputs &inputs);

/// The same for a concrete operator, from the affine expressions that the
/// lowerings use (`PrimitiveOpInterface::getTopExpressions`).
std::vector<float> tabulateAffine(OperatorOp concrete, const Inputs &inputs);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_PROPERTIES_POINTTABLE_H
