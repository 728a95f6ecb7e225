//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PassRuns.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace kas::fuzz;
using namespace mlir;

/// Beside no options: those that make a pass do something else, or anything at
/// all.
static const std::pair<const char *, const char *> knownOptions[] = {
    {"kas-cpu-pipeline", "threads=1"},
    {"kas-cpu-pipeline", "threads=2 share-short-loops=true"},
    {"kas-cpu-pipeline", "threads=1 register-tiles=false"},
    {"kas-cpu-pipeline", "threads=1 pack-operators=false min-kernels=1"},
    {"kas-cpu-pipeline", "threads=2 prepack-weights=true"},
    {"kas-cpu-pipeline", "threads=2 prepack-weights=true any-batch=true"},
    {"kas-cpu-pipeline", "threads=1 algorithm=winograd"},
    {"kas-cpu-pipeline", "threads=1 algorithm=direct cpu=x86-64-v4"},
    {"kas-cpu-pipeline", "threads=1 precision=bf16 round-all=true "
                         "cpu=sapphirerapids"},
    {"kas-extract", "kernel=true"},
    {"kas-extract", "sequences=true"},
    {"kas-substitute", "operator=kas.conv2d"},
    {"kas-substitute", "operator=kas.linear_low_rank bind=g=1"},
    {"kas-substitute", "operator=@forward"},
    {"kas-linalg-to-cpu-loops", "threads=1"},
    {"kas-pack-contractions", "threads=2 min-parallel-time=0"},
    {"kas-pack-contractions", "prepacked=true"},
    {"kas-training-step", "optimizer=adamw"},
    {"kas-training-step", "loss=mse"},
    {"kas-quantize", "ranges=-1,1"},
    {"kas-quantization-errors", "ranges=-1,1"},
    {"kas-verify-lowering", "lowered=forward:forward"},
    {"kas-specialize", "operator=forward bind=N=1"},
    {"kas-print-cost", "operator=forward bind=N=1,Cin=2,Cout=2,W=4,k=3"},
    {"kas-print-axes", "operator=forward bind=N=1,Cin=2,Cout=2,W=4,k=3"},
    {"kas-proxies", "normalize=true"}};

/// Searches take their seconds, and the JIT's objects no diagnostics.
static bool isLeftOut(StringRef name) {
  return name == "kas-search" || name == "kas-lowered" || name == "kas-bind";
}

std::string Run::getText() const {
  return "-" + name + (options.empty() ? "" : "='" + options + "'");
}

PassRuns::PassRuns() = default;

const std::vector<Run> &PassRuns::getRuns() {
  if (!runs.empty())
    return runs;
  std::vector<std::string> names;
  for (const auto &entry : llvm::cl::getRegisteredOptions())
    if (entry.first.starts_with("kas-") && !isLeftOut(entry.first))
      names.push_back(entry.first.str());
  llvm::sort(names);
  for (const std::string &name : names) {
    Run run{name, "", nullptr};
    auto &parser = translations.getParser();
    if (unsigned index = parser.findOption(name);
        index < parser.getNumOptions())
      run.translation =
          static_cast<const llvm::cl::OptionValue<const mlir::Translation *> &>(
              parser.getOptionValue(index))
              .getValue();
    runs.push_back(run);
    for (auto [pass, options] : knownOptions)
      if (name == pass)
        runs.push_back({name, options, nullptr});
  }
  return runs;
}

std::optional<std::string> PassRuns::execute(const Run &run, ModuleOp module,
                                             const std::string &text) {
  bool diagnosed = false;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &d) {
    // A message is printed by every user, so it must survive that.
    std::string message = d.str();
    diagnosed |= d.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  bool succeeded = false;
  if (run.translation) {
    auto sources = std::make_shared<llvm::SourceMgr>();
    sources->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text), {});
    MLIRContext context(MLIRContext::Threading::DISABLED);
    ScopedDiagnosticHandler inner(&context, [&](Diagnostic &d) {
      diagnosed |= d.getSeverity() == DiagnosticSeverity::Error;
      return success();
    });
    std::string output;
    llvm::raw_string_ostream stream(output);
    succeeded = mlir::succeeded((*run.translation)(sources, stream, &context));
  } else {
    std::unique_ptr<PassManager> &manager = managers[run.getText()];
    if (!manager) {
      manager =
          std::make_unique<PassManager>(module.getContext(), "builtin.module",
                                        PassManager::Nesting::Implicit);
      const PassRegistryEntry *entry = PassInfo::lookup(run.name);
      if (!entry)
        entry = PassPipelineInfo::lookup(run.name);
      if (!entry)
        return "neither a pass nor a pipeline nor a translation";
      std::string wrong;
      if (failed(entry->addToPipeline(*manager, run.options,
                                      [&](const Twine &message) {
                                        wrong = message.str();
                                        return failure();
                                      })))
        return "wrong options: " + wrong;
    }
    OwningOpRef<ModuleOp> copy = module.clone();
    succeeded = mlir::succeeded(manager->run(*copy));
  }
  if (!succeeded && !diagnosed)
    return "failed without a diagnostic";
  return std::nullopt;
}
