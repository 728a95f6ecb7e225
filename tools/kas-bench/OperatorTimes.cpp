//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OperatorTimes.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/Transforms/ExistingCost.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/ExecutionEngine/Timing.h"
#include "kas/Search/Core/MakeSearcher.h"
#include "kas/Search/Operators/GraphState.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/ThreadPool.h"
#include <optional>

using namespace kas;
using namespace kas::execution;
using namespace kas::search;
using llvm::createStringError;
using llvm::Expected;

Expected<TimedFunction> kas::compileOperator(mlir::MLIRContext &context,
                                             const SearchProblem &problem,
                                             const OperatorGraph &graph,
                                             const Binding &binding) {
  mlir::OpBuilder builder(&context);
  mlir::Location location = builder.getUnknownLoc();
  mlir::OwningOpRef<mlir::ModuleOp> scratch = mlir::ModuleOp::create(location);
  builder.setInsertionPointToEnd(scratch->getBody());
  OperatorOp op = buildOperator(builder, location, "candidate", problem, graph);
  mlir::FailureOr<OperatorOp> concrete =
      specialize(builder, op, binding, "candidate_concrete",
                 [&] { return op.emitError(); });
  if (mlir::failed(concrete))
    return createStringError("the operator has no concrete form");
  auto module = createOperatorModule(*concrete);
  CPUPipelineOptions pipeline;
  pipeline.threads = 1;
  pipeline.prepackWeights = true;
  return TimedFunction::compile(*module, operatorFunctionName, pipeline);
}

std::vector<int64_t>
kas::countExistingFlops(mlir::MLIRContext &context,
                        const SearchProblem &problem,
                        llvm::ArrayRef<OperatorAtBinding> all) {
  mlir::Location location = mlir::UnknownLoc::get(&context);
  std::vector<int64_t> counts;
  for (const OperatorAtBinding &one : all) {
    mlir::OwningOpRef<mlir::ModuleOp> scratch =
        mlir::ModuleOp::create(location);
    mlir::OpBuilder builder(scratch->getBodyRegion());
    OperatorOp op =
        buildOperator(builder, location, "candidate", problem, *one.graph);
    mlir::FailureOr<int64_t> macs = getExistingMacs(
        op, problem.bindings[one.binding], [&] { return op.emitError(); });
    counts.push_back(mlir::failed(macs) ? 0 : 2 * *macs);
  }
  return counts;
}

/// On all cores; nothing for one that does not compile.
static std::vector<std::optional<TimedFunction>>
compileAll(mlir::MLIRContext &context, const SearchProblem &problem,
           llvm::ArrayRef<OperatorAtBinding> all) {
  std::vector<std::optional<TimedFunction>> compiled(all.size());
  auto compile = [&](size_t index) {
    const OperatorAtBinding &one = all[index];
    auto timed = compileOperator(context, problem, *one.graph,
                                 problem.bindings[one.binding]);
    if (timed)
      compiled[index] = std::move(*timed);
    else
      llvm::consumeError(timed.takeError());
  };
  // The first one loads the dialects, which threads must not do.
  if (!all.empty())
    compile(0);
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency());
  for (size_t index = 1; index < all.size(); ++index)
    pool.async([&, index] { compile(index); });
  pool.wait();
  return compiled;
}

std::vector<double> kas::timeOperators(mlir::MLIRContext &context,
                                       const SearchProblem &problem,
                                       llvm::ArrayRef<OperatorAtBinding> all) {
  std::vector<double> times(all.size(), 0);
  std::vector<std::optional<TimedFunction>> compiled =
      compileAll(context, problem, all);
  std::vector<size_t> owners;
  std::vector<std::function<void()>> functions;
  for (auto [index, one] : llvm::enumerate(compiled)) {
    if (!one)
      continue;
    functions.push_back([&one] { one->run(); });
    owners.push_back(index);
  }
  if (functions.empty())
    return times;
  TimingOptions options;
  options.minRuns = 3;
  options.seconds = 0.004;
  options.warmUpRuns = 1;
  for (auto [timing, owner] : llvm::zip_equal(
           measureInterleaved(functions, options, /*rounds=*/3), owners))
    times[owner] = timing.min;
  return times;
}

std::vector<std::shared_ptr<const OperatorGraph>>
kas::sampleOperators(std::shared_ptr<const SearchProblem> problem,
                     unsigned count, uint64_t seed, uint64_t expansions) {
  SearcherSettings settings;
  settings.seed = seed;
  settings.space.treeExpansions = expansions;
  auto searcher = llvm::cantFail(
      makeSearcher("uniform", makeGraphState(std::move(problem)), settings));
  std::vector<std::shared_ptr<const OperatorGraph>> sample;
  while (sample.size() < count) {
    std::vector<Candidate> candidates = searcher->ask(1);
    if (candidates.empty())
      break;
    sample.push_back(std::static_pointer_cast<const OperatorGraph>(
        candidates.front().solution));
  }
  return sample;
}
