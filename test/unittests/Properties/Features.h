//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is special about an operator, by name: to show that random operators do
// cover it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_PROPERTIES_FEATURES_H
#define KAS_TEST_UNITTESTS_PROPERTIES_FEATURES_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include <set>
#include <string>

namespace kas::test {

/// The features of `op` at `binding`: `unfold` where the primitive occurs,
/// `merge(unfold)` where one takes a result of the other, and others in words.
std::set<std::string> getFeatures(OperatorOp op, const Binding &binding);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_PROPERTIES_FEATURES_H
