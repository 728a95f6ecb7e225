//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All passes, pipelines and translations of kas, to be run on any module.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_FUZZ_PASSRUNS_H
#define KAS_TEST_FUZZ_PASSRUNS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kas::fuzz {

/// A pass or pipeline with options, or a translation.
struct Run {
  std::string name, options;
  const mlir::Translation *translation = nullptr;

  std::string getText() const;
};

/// What is registered under names that begin with `kas-`. Only one object: it
/// adds the options of all passes to the command line.
class PassRuns {
public:
  PassRuns();

  /// Every one at least once, with different options where some are known,
  /// sorted; the list is the same after each call.
  const std::vector<Run> &getRuns();

  /// Runs one on a copy of `module`; the error is what is wrong with how it
  /// ended: without a diagnostic where it failed.
  std::optional<std::string> execute(const Run &run, mlir::ModuleOp module,
                                     const std::string &text);

private:
  mlir::PassPipelineCLParser passes{"", "passes"};
  llvm::cl::opt<const mlir::Translation *, false, mlir::TranslationParser>
      translations{"", llvm::cl::desc("translations")};
  std::vector<Run> runs;
  std::map<std::string, std::unique_ptr<mlir::PassManager>> managers;
};

} // namespace kas::fuzz

#endif // KAS_TEST_FUZZ_PASSRUNS_H
