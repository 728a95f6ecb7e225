//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PassOptions.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <unistd.h>

using namespace mlir;

static bool check(StringRef name, StringRef options) {
  const PassRegistryEntry *entry = PassInfo::lookup(name);
  if (!entry)
    entry = PassPipelineInfo::lookup(name);
  if (!entry)
    return true;
  OpPassManager manager(ModuleOp::getOperationName(),
                        OpPassManager::Nesting::Implicit);
  std::string reason;
  llvm::raw_string_ostream stream(reason);
  auto handle = [&](const Twine &message) {
    stream << message;
    return failure();
  };
  if (succeeded(entry->addToPipeline(manager, options, handle)))
    return true;
  llvm::WithColor::error() << "'-" << name << "' does not take '" << options
                           << "'" << (reason.empty() ? "" : ": " + reason)
                           << "; its options are:\n";
  llvm::errs().flush();
  // The registry prints to the other stream.
  llvm::outs().flush();
  dup2(STDERR_FILENO, STDOUT_FILENO);
  entry->printHelpStr(/*indent=*/2, /*descIndent=*/36);
  return false;
}

/// Each `kas-NAME{OPTIONS}` of a textual pipeline.
static bool checkPipeline(StringRef text) {
  while (true) {
    size_t begin = text.find("kas-");
    if (begin == StringRef::npos)
      return true;
    text = text.drop_front(begin);
    size_t length =
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-");
    StringRef name = text.take_front(length);
    text = text.drop_front(name.size());
    if (!text.consume_front("{"))
      continue;
    if (!check(name, text.take_until([](char c) { return c == '}'; })))
      return false;
  }
}

bool checkPassOptions(llvm::ArrayRef<const char *> arguments) {
  for (StringRef argument : arguments) {
    if (!argument.consume_front("-"))
      continue;
    argument.consume_front("-");
    auto [name, options] = argument.split('=');
    bool holds = name == "pass-pipeline"    ? checkPipeline(options)
                 : name.starts_with("kas-") ? check(name, options)
                                            : true;
    if (!holds)
      return false;
  }
  return true;
}
