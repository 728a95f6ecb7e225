//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random functions of what exported networks contain, as text.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_PROPERTIES_EXPORTEDFUNCTIONS_H
#define KAS_TEST_UNITTESTS_PROPERTIES_EXPORTEDFUNCTIONS_H

#include <cstdint>
#include <string>

namespace kas::test {

/// The text of a function `name` on tensors of f32: its first argument goes
/// through rolls, concatenations, slices, padding, shuffles, transpositions,
/// convolutions, einsums with weights that may be einsums themselves, matrix
/// products and elementwise operations, one after another, with residuals. The
/// same for the same seed on every machine.
std::string makeExportedFunction(const std::string &name, uint64_t seed);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_PROPERTIES_EXPORTEDFUNCTIONS_H
