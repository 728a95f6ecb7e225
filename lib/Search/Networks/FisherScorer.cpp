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
// Fisher Potential: Turner et al., ASPLOS 2021, section 5;
// docs/guide/network-search.md lists the errors N1 to N3. The score of a
// configuration is the sum over its layers, each scored with the other layers
// left as they are.
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

/// A context and a scorer with modules in it: what one thread needs. MLIR
/// contexts and modules must not be used by two threads at once, so each thread
/// borrows a bench. All benches share the recorded activations and gradients.
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

/// The scored network may be another function than the one that is transformed,
/// usually the same one for more samples: layers are matched by their number
/// among the convolutions, and must have the same shapes but for the batch.
Error FisherScorer::checkLayers(const LayerScorer &scorer) const {
  for (const NetworkProblem::Layer &layer : problem->layers) {
    if (layer.index >= scorer.getNumLayers()) // N2
      return createStringError(
          "requires a scored network with the convolution of '" + layer.name +
          "', got " + llvm::Twine(scorer.getNumLayers()) + " convolutions");
    OwningOpRef<ModuleOp> owner = scorer.getModule(layer.index);
    auto own = owner->lookupSymbol<func::FuncOp>(layerFunctionName);
    // The module of the problem is read into the scorer's context to compare
    // the types.
    OwningOpRef<ModuleOp> module =
        readBytecode(problem->modules[layer.shape], own.getContext());
    auto given = module->lookupSymbol<func::FuncOp>(layerFunctionName);
    auto getShape = [](func::FuncOp function, unsigned argument) {
      return cast<ShapedType>(function.getArgumentTypes()[argument]).getShape();
    };
    // Argument 1 is the weight, argument 0 the data, of which dimension 0 is
    // the batch.
    if (getShape(own, 1) != getShape(given, 1) ||
        getShape(own, 0).drop_front() != getShape(given, 0).drop_front()) // N2
      return createStringError("requires a scored network whose layer '" +
                               layer.name +
                               "' has the shapes of the network, but for the "
                               "samples, got others");
    // With one sample the sum over samples is no statistic.
    if (getShape(own, 0).front() < 2) // N3
      return createStringError("requires a network for at least 2 samples for "
                               "Fisher Potential, got " +
                               llvm::Twine(getShape(own, 0).front()) +
                               "; see the option 'scored-network'");
  }
  return Error::success();
}

/// Runs the network once: everything later works on the records of this run.
Expected<std::unique_ptr<FisherScorer>>
FisherScorer::create(func::FuncOp function,
                     std::shared_ptr<const NetworkProblem> problem) {
  std::unique_ptr<FisherScorer> result(new FisherScorer(problem));
  // The first bench owns the records and is never borrowed: `share` refers to
  // it.
  result->first =
      std::make_unique<Bench>(function->getContext()->getDialectRegistry());
  Bench &bench = *result->first;
  // A copy in the context of the bench: the caller's context may be in use.
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
  // One bench to borrow is there from the start; others are made when more
  // threads ask at once.
  result->idle.push_back(
      std::make_unique<Bench>(function->getContext()->getDialectRegistry()));
  result->idle.back()->scorer =
      bench.scorer->share(result->idle.back()->context);
  // The original score counts the layers that are transformed only, so that a
  // ratio to it shows what the search can change.
  for (const NetworkProblem::Layer &layer : problem->layers)
    result->original += bench.scorer->getOriginal(layer.index).fisher;
  return result;
}

/// The caller must give the bench back, or drop it after an error.
std::unique_ptr<FisherScorer::Bench> FisherScorer::takeBench() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!idle.empty()) {
    std::unique_ptr<Bench> bench = std::move(idle.back());
    idle.pop_back();
    return bench;
  }
  // Under the lock, since `share` reads the first bench.
  auto bench = std::make_unique<Bench>(first->context.getDialectRegistry());
  bench->scorer = first->scorer->share(bench->context);
  return bench;
}

void FisherScorer::giveBack(std::unique_ptr<Bench> bench) {
  std::lock_guard<std::mutex> lock(mutex);
  idle.push_back(std::move(bench));
}

/// Makes the program in a fresh copy of the layer and scores it. Expensive: it
/// compiles and runs the layer.
Expected<double> FisherScorer::scoreLayer(const NetworkProblem::Layer &layer,
                                          ArrayRef<ProgramStep> program) {
  std::unique_ptr<Bench> bench = takeBench();
  OwningOpRef<ModuleOp> module = bench->scorer->getModule(layer.index);
  auto function = module->lookupSymbol<func::FuncOp>(layerFunctionName);
  IRRewriter rewriter(&bench->context);
  std::string reason;
  // A program of a candidate has been made before, so this fails only if the
  // scored network differs from the searched one.
  if (failed(applyProgram(rewriter, findConvolutions(function).front(), program,
                          reason)))
    return createStringError("layer '" + layer.name + "': " + reason);
  auto score = bench->scorer->score(layer.index, *module);
  // Before the bench is given back: the module lives in its context.
  module = nullptr;
  giveBack(std::move(bench));
  if (!score)
    return score.takeError();
  return score->fisher;
}

/// Layers are looked up by program, since most configurations share theirs. Two
/// threads may score the same program at once; both find the same score.
Expected<double>
FisherScorer::score(const NetworkConfiguration &configuration) {
  double sum = 0;
  for (auto [layer, all] :
       llvm::zip_equal(problem->layers, configuration.programs)) {
    // How values are computed does not change the score. Strategies do not, and
    // neither does a split without a neural step: such a program scores like
    // the layer as it is.
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
    // The lock is not held while a layer is scored.
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
