//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Draws operations of all registered dialects by name.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_FUZZ_RANDOMOPERATIONS_H
#define KAS_TEST_FUZZ_RANDOMOPERATIONS_H

#include "mlir/IR/MLIRContext.h"
#include <random>
#include <string>
#include <vector>

namespace kas::fuzz {

/// Functions of operations that verify, each found by trial: a name, operands
/// and results of a few types, attributes of a few kinds.
class RandomOperations {
public:
  /// The text of a function `@name` of up to `trials` / 20 operations.
  std::string makeFunction(mlir::MLIRContext &context, std::mt19937_64 &random,
                           const std::string &name, unsigned trials);

private:
  /// The names of all registered operations but those of builtin, sorted.
  std::vector<std::string> names;
};

} // namespace kas::fuzz

#endif // KAS_TEST_FUZZ_RANDOMOPERATIONS_H
