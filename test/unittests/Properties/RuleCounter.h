//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which rewrite rules were applied, for tests that must see all of them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_PROPERTIES_RULECOUNTER_H
#define KAS_TEST_UNITTESTS_PROPERTIES_RULECOUNTER_H

#include "mlir/IR/PatternMatch.h"
#include <map>
#include <string>

namespace kas::test {

/// Counts how often each rule was applied.
struct RuleCounter : mlir::RewriterBase::Listener {
  void notifyPatternBegin(const mlir::Pattern &pattern,
                          mlir::Operation *) override {
    current = pattern.getDebugName();
  }
  void notifyPatternEnd(const mlir::Pattern &,
                        llvm::LogicalResult status) override {
    llvm::StringRef name = current;
    counts[name.substr(name.rfind(':') + 1).str()] += succeeded(status);
  }
  llvm::StringRef current;
  std::map<std::string, unsigned> counts;
};

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_PROPERTIES_RULECOUNTER_H
