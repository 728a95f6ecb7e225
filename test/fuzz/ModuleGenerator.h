//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Draws modules of all dialects with odd sizes, types and names.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_FUZZ_MODULEGENERATOR_H
#define KAS_TEST_FUZZ_MODULEGENERATOR_H

#include "RandomOperations.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace kas::fuzz {

/// Makes the texts of modules from templates (Inputs/modules.txt), from a
/// corpus of texts with other numbers in them, and from operations that are
/// drawn from all registered ones. Not all are valid.
class ModuleGenerator {
public:
  ModuleGenerator(std::vector<std::string> templates,
                  std::vector<std::string> corpus);

  /// The text with this number: a function of the seed, the number, the
  /// templates and the corpus, on every machine. Operations are checked in
  /// `context`, which has all dialects.
  std::string make(mlir::MLIRContext &context, uint64_t seed, uint64_t number);

  /// A module of one template with small sizes.
  std::string instantiate(size_t index, uint64_t seed);
  size_t getNumTemplates() const { return templates.size(); }

private:
  std::vector<std::string> templates, corpus;
  RandomOperations operations;
};

} // namespace kas::fuzz

#endif // KAS_TEST_FUZZ_MODULEGENERATOR_H
