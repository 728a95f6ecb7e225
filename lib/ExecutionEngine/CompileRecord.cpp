//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The notes on a function that is compiled to be profiled.
//
// Operations get labels before the first pass; remarks with locations of such a
// label then say by which strategy each was lowered, and timestamps between
// them measure their times (Profile.cpp).
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Profile.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringSwitch.h"

using namespace kas;
using namespace kas::execution;
using namespace mlir;
using llvm::StringRef;

/// Of remarks about contractions (docs/internals/code-generation.md).
static constexpr llvm::StringLiteral remarkCategory = "kas-panels";

/// What a profile calls the strategy that a remark names.
static StringRef getStrategyName(StringRef remark) {
  return llvm::StringSwitch<StringRef>(remark)
      .Case("Packed", "panels")
      .Case("Direct", "direct tiles")
      .Case("RowVectors", "row vectors")
      .Case("InnerProducts", "inner products")
      .Case("Winograd", "winograd")
      .Case("Rearranged", "rearranged")
      .Case("NotPacked", "loops")
      .Default(remark);
}

namespace {
/// Keeps the strategies of operations that have labels.
class StrategyListener : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit StrategyListener(std::map<unsigned, LoweringStrategy> &strategies)
      : strategies(strategies) {}

  /// Called for each remark of the category while passes run.
  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    bool isMissed = remark.getRemarkName() == "NotPacked";
    StringRef name = getStrategyName(remark.getRemarkName());
    std::string reason;
    for (const remark::detail::Remark::Arg &arg : remark.getArgs()) {
      // A missed remark has one argument that matters, its reason.
      if (isMissed && arg.key != "Reason")
        continue;
      reason += reason.empty() ? "" : ", ";
      reason += isMissed ? arg.val : arg.key + "=" + arg.val;
    }
    for (unsigned label : codegen::getLabels(remark.getLocation()))
      note(label, name, reason);
  }

private:
  /// An operation may be rearranged and tiled, or have several stages. That one
  /// pass leaves it to another is not the last word.
  void note(unsigned label, StringRef name, StringRef reason) {
    LoweringStrategy &known = strategies[label];
    if (known.name.empty() || known.name == "loops") {
      known = {name.str(), reason.str()};
      return;
    }
    if (name == "loops")
      return;
    if (!StringRef(known.name).contains(name))
      known.name += ", " + name.str();
    known.reason += "; " + reason.str();
  }

  std::map<unsigned, LoweringStrategy> &strategies;
};
} // namespace

void CompileRecord::begin(ModuleOp module, StringRef name) {
  if (auto function = module.lookupSymbol<func::FuncOp>(name))
    // Labels are in the locations of operations, which passes keep and fuse.
    operations = codegen::labelOperations(function);
  MLIRContext *context = module.getContext();
  // Somebody else listens to remarks, a tool with --remarks-filter perhaps: a
  // context has one listener.
  if (context->getRemarkEngine())
    return;
  remark::RemarkCategories categories;
  categories.passed = categories.missed = remarkCategory.str();
  listens = succeeded(remark::enableOptimizationRemarks(
      *context, std::make_unique<StrategyListener>(strategies),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories));
}

void CompileRecord::finish(ModuleOp module, StringRef name) {
  if (listens)
    module.getContext()->setRemarkEngine(nullptr);
  listens = false;
  if (auto function = module.lookupSymbol<func::FuncOp>(name))
    // On buffers: operations are in their final order, and fusion is done.
    steps = codegen::insertProfileTimestamps(function);
}

// The steps of LLVM follow each other from `begin` on, in seconds.
void CompileRecord::addSteps(const CompileTimes &times, double begin) {
  auto add = [&](StringRef name, double milliseconds) {
    passes.add({name.str(), begin, begin + milliseconds * 1e-3});
    begin += milliseconds * 1e-3;
  };
  add("translation", times.translate);
  add("optimization", times.optimize);
  add("code", times.codegen);
  add("linking", times.link);
}
