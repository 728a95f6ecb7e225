//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores configurations of a network by the Fisher Potential, layer by layer,
// each program once.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Networks/FisherScorer.h"
#include "kas/Support/Bytecode.h"

using namespace kas;
using namespace kas::networks;
using namespace kas::search;
using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

/// A context and a scorer with modules in it: what one thread needs.
struct FisherScorer::Bench {
  explicit Bench(const DialectRegistry &registry)
      : context(registry, MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }

  MLIRContext context;
  std::unique_ptr<LayerScorer> scorer;
};

FisherScorer::FisherScorer(std::shared_ptr<const NetworkProblem> problem)
    : problem(std::move(problem)) {}

FisherScorer::~FisherScorer() = default;

Error FisherScorer::checkLayers(const LayerScorer &scorer) const {
  for (const NetworkProblem::Layer &layer : problem->layers) {
    if (layer.index >= scorer.getNumLayers()) // N2
      return createStringError(
          "requires a scored network with the convolution of '" + layer.name +
          "', got " + llvm::Twine(scorer.getNumLayers()) + " convolutions");
    OwningOpRef<ModuleOp> owner = scorer.getModule(layer.index);
    auto own = owner->lookupSymbol<func::FuncOp>(layerFunctionName);
    OwningOpRef<ModuleOp> module =
        readBytecode(problem->modules[layer.shape], own.getContext());
    auto given = module->lookupSymbol<func::FuncOp>(layerFunctionName);
    auto getShape = [](func::FuncOp function, unsigned argument) {
      return cast<ShapedType>(function.getArgumentTypes()[argument]).getShape();
    };
    if (getShape(own, 1) != getShape(given, 1) ||
        getShape(own, 0).drop_front() != getShape(given, 0).drop_front()) // N2
      return createStringError("requires a scored network whose layer '" +
                               layer.name +
                               "' has the shapes of the network, but for the "
                               "samples, got others");
    if (getShape(own, 0).front() < 2) // N3
      return createStringError("requires a network for at least 2 samples for "
                               "Fisher Potential, got " +
                               llvm::Twine(getShape(own, 0).front()) +
                               "; see the option 'scored-network'");
  }
  return Error::success();
}

Expected<std::unique_ptr<FisherScorer>>
FisherScorer::create(func::FuncOp function,
                     std::shared_ptr<const NetworkProblem> problem) {
  std::unique_ptr<FisherScorer> result(new FisherScorer(problem));
  result->first =
      std::make_unique<Bench>(function->getContext()->getDialectRegistry());
  Bench &bench = *result->first;
  OwningOpRef<ModuleOp> module =
      readBytecode(writeBytecode(function), &bench.context);
  if (!module)
    return createStringError("cannot read the network");
  auto scorer = LayerScorer::create(
      *module, function.getSymName(), {},
      {.normalize = problem->limits.normalize, .onlyFisher = true});
  if (!scorer)
    return scorer.takeError();
  bench.scorer = std::move(*scorer);
  if (Error error = result->checkLayers(*bench.scorer))
    return error;
  result->idle.push_back(
      std::make_unique<Bench>(function->getContext()->getDialectRegistry()));
  result->idle.back()->scorer =
      bench.scorer->share(result->idle.back()->context);
  for (const NetworkProblem::Layer &layer : problem->layers)
    result->original += bench.scorer->getOriginal(layer.index).fisher;
  return result;
}

std::unique_ptr<FisherScorer::Bench> FisherScorer::takeBench() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!idle.empty()) {
    std::unique_ptr<Bench> bench = std::move(idle.back());
    idle.pop_back();
    return bench;
  }
  auto bench = std::make_unique<Bench>(first->context.getDialectRegistry());
  bench->scorer = first->scorer->share(bench->context);
  return bench;
}

void FisherScorer::giveBack(std::unique_ptr<Bench> bench) {
  std::lock_guard<std::mutex> lock(mutex);
  idle.push_back(std::move(bench));
}

Expected<double> FisherScorer::scoreLayer(const NetworkProblem::Layer &layer,
                                          ArrayRef<ProgramStep> program) {
  std::unique_ptr<Bench> bench = takeBench();
  OwningOpRef<ModuleOp> module = bench->scorer->getModule(layer.index);
  auto function = module->lookupSymbol<func::FuncOp>(layerFunctionName);
  IRRewriter rewriter(&bench->context);
  std::string reason;
  if (failed(applyProgram(rewriter, findConvolutions(function).front(), program,
                          reason)))
    return createStringError("layer '" + layer.name + "': " + reason);
  auto score = bench->scorer->score(layer.index, *module);
  module = nullptr;
  giveBack(std::move(bench));
  if (!score)
    return score.takeError();
  return score->fisher;
}

Expected<double>
FisherScorer::score(const NetworkConfiguration &configuration) {
  double sum = 0;
  for (auto [layer, all] :
       llvm::zip_equal(problem->layers, configuration.programs)) {
    // How values are computed does not change the score.
    LayerProgram program = all;
    llvm::erase_if(program, [](const ProgramStep &step) {
      return step.kind == StepKind::Schedule;
    });
    if (llvm::none_of(program, [](const ProgramStep &step) {
          return isNeural(step.kind);
        }))
      program.clear();
    auto key = std::pair(layer.index, toString(program));
    std::optional<double> known;
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (auto found = scores.find(key); found != scores.end())
        known = found->second;
    }
    if (!known) {
      Expected<double> found = scoreLayer(layer, program);
      if (!found)
        return found;
      known = *found;
      std::lock_guard<std::mutex> lock(mutex);
      scores[key] = *known;
    }
    sum += *known;
  }
  return sum;
}

uint64_t FisherScorer::getNumScored() const {
  std::lock_guard<std::mutex> lock(mutex);
  return scores.size();
}
